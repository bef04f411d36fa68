"""The site: it builds offline, its links lead somewhere, its pages run, and nothing in it is loaded from elsewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import trellis

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
QUERY = re.compile(r"^```query\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("tutorial", "from-match-recognize", "from-flink", "features")
BUILDER = ROOT / "scripts" / "docs.py"


@cache
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_builder", BUILDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["site_builder"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with notebooks that were not run."""
    folder = tmp_path_factory.mktemp("site")
    builder().build(folder, execute=False)
    return folder


def test_links_lead_somewhere(site: Path) -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}
    anchors = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in pages.items()}
    assert len(pages) >= 25
    for name, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            if target.startswith(("http://", "https://")):
                continue
            file, _, anchor = target.partition("#")
            assert (site / (file or name)).is_file(), f"{name}: {target}"
            if anchor and (file or name).endswith(".html"):
                assert anchor in anchors[file or name], f"{name}: {target}"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(?:https?:)?//', text), path.name


def test_the_search_knows_every_page(site: Path) -> None:
    text = (site / "index.js").read_text(encoding="utf-8").removeprefix("const INDEX = ").removesuffix(";\n")
    index = {page: words for page, _, words in json.loads(text)}
    assert index.keys() == {path.name for path in site.glob("*.html")}
    assert "skip-till-any" in index["cheat-sheet.html"]
    assert "why_not" in index["reference.html"]


@pytest.mark.parametrize("page", RUN)
def test_python_prints_what_is_shown(page: str) -> None:
    names: dict[str, Any] = {}
    blocks = PYTHON.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"docs/{page}.md", "exec"), names)
        assert printed.getvalue() == shown


def test_the_cheat_sheet_is_in_the_language() -> None:
    text = (ROOT / "docs" / "cheat-sheet.md").read_text(encoding="utf-8")
    (query,) = QUERY.findall(text)
    assert trellis.query(query).explain()
    tables = {section: text[text.index(f"## {section}") :] for section in ("Patterns", "Conditions")}
    for pattern in re.findall(r"^\| `([^`]+)` \|", tables["Patterns"][: tables["Patterns"].index("Types are")], re.M):
        assert trellis.query(f"PATTERN {pattern}").explain(), pattern
    for clause in re.findall(r"^\| `((?:SELECT|REPORT|HAVING|WITHIN) [^`]+)` \|", text, re.MULTILINE):
        assert trellis.query(f"PATTERN Stock+ s[] {clause}").explain(), clause


def test_figures_have_commands_that_there_are() -> None:
    from benchmarks.suite import benchmarks

    known = benchmarks()
    for page in ("papers", "performance"):
        named = re.findall(r"`trellis bench (\w+)`", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
        assert named
        assert set(named) <= known.keys()


MEASURED = re.compile(
    r"\d (ms|µs|ns|s|CPU s|(CPU )?seconds)\b(?! of)|\d+ times (as (fast|long|quick|slow)|faster|slower|quicker)"
    r"|\d M? ?(million )?(events|rows|trends)( of \w+ events)? (a|per) (CPU )?second"
)


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.stem != "papers"))
def test_no_page_has_measurements_typed_by_hand(page: str) -> None:
    """Measurements come from the results file, or from the command that is named; papers.md quotes those of papers."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- figures:.*?<!-- end of figures -->|```.*?```|^ {4}.*?$|`[^`]*`", "", text, flags=re.S | re.M)
    assert [line for line in text.splitlines() if MEASURED.search(line)] == []


def test_figures_are_those_of_the_results_file() -> None:
    """No figure of the documents is typed by hand: they are written from the file that `make bench` writes."""
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    results = json.loads(figures.FILE.read_text(encoding="utf-8"))
    for name, text in figures.written(results).items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"run scripts/figures.py: {name}"
    assert len(figures.chosen(results)) >= 5
    assert f"| {figures.times(figures.chosen(results)[0].ratio)} |" in figures.summary(results)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")))
def test_notebooks_run_and_show_pictures(name: str) -> None:
    page = builder().notebook_page(name, execute=True)
    assert 'class="figure"' in page.body
    assert page.body.count("<pre>") + page.body.count('class="shown"') > 2


def test_notebooks_are_clean() -> None:
    paths = list((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    assert {path.stem for path in paths} == builder().NOTEBOOKS.keys()
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(not cell.get("outputs") for cell in cells), f"{path.name} has outputs: the site makes them"
        for cell in cells:
            if cell["cell_type"] == "code":
                compile("".join(cell["source"]), path.name, "exec")
