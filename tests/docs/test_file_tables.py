"""The files that pages name in their tables exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\|.*\| (`(?:src|benchmarks)/[^|]+) \|$", re.MULTILINE)
TABLES = {page.name: rows for page in sorted((ROOT / "docs").glob("*.md")) if (rows := ROW.findall(page.read_text()))}


def test_pages_have_tables_of_files() -> None:
    assert {"debs2016.md", "graphs.md", "history.md", "spark.md", "streams.md"} <= TABLES.keys()


@pytest.mark.parametrize("page", TABLES)
def test_files_in_tables_exist(page: str) -> None:
    """A name without a folder is a file beside the one before it."""
    for row in TABLES[page]:
        folder = ROOT
        for name in re.findall(r"`([^`]+)`", row):
            folder = (ROOT / name).parent if "/" in name else folder
            assert (folder / Path(name).name).exists(), f"docs/{page}: {name}"


def test_rooms_in_the_readme_are_those_that_there_are() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("| room | holds |") : text.index("Single modules stand")]
    named = re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)
    source = ROOT / "src" / "trellis"
    assert sorted(named) == sorted(path.parent.name for path in source.glob("*/__init__.py"))
    modules = re.findall(r"`([a-z]+)`", text[text.index("Single modules stand") : text.index("`tests/oracle`")])
    assert sorted(modules) == sorted(path.stem for path in source.glob("*.py") if not path.stem.startswith("__"))


def test_layers_in_contributing_are_those_of_the_test() -> None:
    from tests.test_architecture import LAYERS, SOURCE

    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = text[text.index("from the ground up:") : text.index("The test counts imports")]
    rooms = [room for room in LAYERS if room != "__main__"]
    there = [room for room in rooms if (SOURCE / room).is_dir() or (SOURCE / f"{room}.py").is_file()]
    assert re.findall(r"`([a-z]+)`", listed) == there
