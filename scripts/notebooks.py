"""Runs notebooks cell by cell in this process, and gives what each cell shows: no Jupyter is needed for that."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


@dataclass
class Cell:
    """A cell of a notebook, and, of code, what it printed and what its last line gave."""

    kind: str
    source: str
    printed: str = ""
    shown: list[Any] = field(default_factory=list)


def cells_of(path: Path) -> list[Cell]:
    """Return the cells of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [Cell(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def run(path: Path) -> list[Cell]:
    """Run a notebook in a folder of its own; return its cells with what they showed."""
    cells = cells_of(path)
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        for number, cell in enumerate(cells):
            if cell.kind == "code":
                _run(cell, names, f"{path.name}, cell {number}")
    return cells


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(cell: Cell, names: dict[str, Any], where: str) -> None:
    tree = ast.parse(cell.source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            if value is not None:
                cell.shown.append(value)
    cell.printed = out.getvalue()


def html_of(value: Any) -> str:
    """Return a value as a notebook shows it: a figure, HTML of its own, or text."""
    if hasattr(value, "to_plotly_json"):
        figure: str = value.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
        return f'<div class="figure">{figure}</div>'
    if hasattr(value, "_repr_html_"):
        return f'<div class="shown">{value._repr_html_()}</div>'
    return f"<pre>{escape(repr(value))}</pre>"
