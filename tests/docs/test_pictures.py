"""The pictures of the pages: each is one of the script, small, shown, and described in words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(path.stem for path in (DOCS / "pictures").glob("*.png"))
PAGE = (DOCS / "seeing-results.md").read_text(encoding="utf-8")


def test_every_picture_is_drawn_by_the_script() -> None:
    tree = ast.parse((DOCS / "pictures" / "draw.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert len(NAMES) >= 7
    assert set(NAMES) - {"benchmark"} <= functions


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_small_shown_and_described(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.png").stat().st_size < 60_000
    found = re.search(rf"!\[([^\]]+)\]\(pictures/{name}\.png\)", PAGE)
    assert found is not None
    assert len(found[1].split()) > 5
