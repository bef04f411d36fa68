"""The README is true: its Python and its commands print what is shown, its queries parse, its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trellis

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "docs/semantics.md", "docs/attribute-index.md", "CHANGELOG.md")
PYTHON = re.compile(r"^```python( spark)?\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
QUERY = re.compile(r"^```query(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ "
ANYTHING = "…"  # stands for what differs from run to run


def run(code: str, names: dict[str, Any]) -> str:
    """Run a block and give what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines() if line.strip()]


def assert_shown(found: str, shown: str) -> None:
    """Compare line by line; empty lines and blanks at their ends do not count."""
    got, wanted = lines(found), lines(shown)
    assert len(got) == len(wanted), found
    for line, pattern in zip(got, wanted, strict=True):
        assert re.fullmatch(re.escape(pattern).replace(ANYTHING, ".*"), line), f"{line!r} is shown as {pattern!r}"


def test_there_is_code_to_run() -> None:
    kinds = [bool(spark) for spark, _, _ in PYTHON.findall(TEXT)]
    assert True in kinds
    assert False in kinds
    assert len(QUERY.findall(TEXT)) >= 2


def test_python_prints_what_is_shown() -> None:
    names: dict[str, Any] = {}
    for spark, code, shown in PYTHON.findall(TEXT):
        if not spark:
            assert_shown(run(code, names), shown)


@pytest.mark.spark
def test_python_on_spark_prints_what_is_shown(spark: Any) -> None:
    names: dict[str, Any] = {}
    for _, code, shown in PYTHON.findall(TEXT):
        assert_shown(run(code, names), shown)


@pytest.mark.parametrize("text", [text for _, text in QUERY.findall(TEXT)])
def test_queries_parse_and_explain(text: str) -> None:
    query = trellis.query(text)
    assert query.explain({"ratio": 1.05} if "ratio" in text else None)


def commands() -> list[tuple[str, str]]:
    """Every command of the console blocks, with the output shown below it."""
    found: list[tuple[str, str]] = []
    for block in CONSOLE.findall(TEXT):
        for line in block.splitlines():
            if line.startswith(PROMPT):
                found.append((line.removeprefix(PROMPT), ""))
            else:
                command, shown = found[-1]
                found[-1] = (command, f"{shown}{line}\n")
    return found


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    for name, text in QUERY.findall(TEXT):
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": tools, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"}
    for command, shown in commands():
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert_shown(done.stdout, shown)


def test_the_commands_are_there() -> None:
    named = {command.split()[1] for command, _ in commands()}
    assert {"generate", "detect", "count", "explain"} <= named


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|``.*?``|`[^`]*`", "code", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        target = " ".join(target.split())
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page} links to {target}"
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), f"{page} links to #{anchor}"


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_paths_of_one_machine() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert not re.search(r"(?<!\w)/(home|root|tmp|Users)/|localhost", text, re.IGNORECASE), page
