"""Finds the benchmarks of this folder, runs them, and writes what they found."""

from __future__ import annotations

import ast
import importlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import listening, reading
from benchmarks.report import Report, Row, machine
from benchmarks.results import is_loaded, load
from benchmarks.results import write as write_results
from trellis.io.claims import replace_files

__all__ = [
    "SHORT",
    "benchmarks",
    "files_of",
    "has_large",
    "is_loaded",
    "load",
    "machine",
    "measure",
    "write",
    "write_results",
]

FOLDER = Path(__file__).parent
SHORT = ("limits", "peers", "tuning", "features", "law")  # some ten minutes together


def benchmarks() -> dict[str, str]:
    """Return the benchmarks by name with the first line of what they say of themselves; nothing is imported."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def has_large(name: str) -> bool:
    """Return whether a benchmark has larger sizes: its `run` takes `large`. Nothing is imported."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (run,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run")
    return any(argument.arg == "large" for argument in run.args.args)


def measure(
    name: str, quick: bool, step: Callable[[str], None], large: bool = False, row: Callable[[Row], None] | None = None
) -> Report:
    """Run a benchmark; `step` is told what it does, and `row` each row of its tables as soon as that is known."""
    step("loading")
    module = importlib.import_module(f"benchmarks.{name}")
    options = {"large": True} if large else {}
    with listening(step), reading(row or (lambda _: None)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties in streams that are drawn
        return Report(name, benchmarks()[name], module.run(quick, **options), quick)


def write(report: Report, folder: Path) -> list[Path]:
    """Write a report as JSON, as Markdown and as a page with plots; files of an earlier run are replaced."""
    from benchmarks.plot import page

    texts = {
        "json": json.dumps(report.data(), indent=2, ensure_ascii=False) + "\n",
        "md": report.markdown(),
        "html": page(report),
    }
    files = dict(zip(files_of(report.name), texts.values(), strict=True))
    replace_files(folder, files)
    return [folder / name for name in files]


def files_of(name: str) -> list[str]:
    """Return the names of the files that `write` writes of a benchmark."""
    return [f"{name}.{extension}" for extension in ("json", "md", "html")]
