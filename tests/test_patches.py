"""Tests give thresholds (`Sizes`, parameters) and patch none: every number of a module may change its place or name.

Nor do they read, import or patch what is private of Trellis: they ask public questions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
FILES = [path for path in sorted(TESTS.rglob("*.py")) if "setattr(" in path.read_text(encoding="utf-8")]

# Names of others that begin with an underscore, which tests have to use; nothing of Trellis is among them but methods
# that IPython calls by such names.
NOT_OURS = {
    "_replace",  # of a named tuple: public
    "_repr_html_", "_render_traceback_",  # by which IPython asks
    "_exit",  # of os: a process that dies
    "_jvm", "_jsc", "_jdf", "_gateway", "_python_includes",  # by which alone Spark's metrics and plans are reached
    "_rec_list_vars",  # of Numba: left as it was
    "_get_local_constants",  # of Hypothesis: a seed repeats all
}  # fmt: skip


def patched_numbers(text: str) -> Iterator[str]:
    """Yield the numbers of modules of Trellis that a file patches, by name, and what is patched without a name."""
    for place, name in patched(text):
        target, _, attribute = name.rpartition(".")
        if not attribute:
            yield place
        elif target.startswith("trellis.") and _is_number(target, attribute):
            yield name


def patched(text: str) -> Iterator[tuple[str, str]]:
    """Yield each patch of a file, with the full name of what is patched; without one where that is not told."""
    tree = ast.parse(text)
    modules = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 0
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "setattr":
            continue
        given = [one.value if isinstance(one, ast.Constant) else one for one in node.args]
        if isinstance(given[0], str):
            target, _, name = given[0].rpartition(".")
        else:
            target = modules.get(ast.unparse(node.args[0]), "")
            name = given[1] if isinstance(given[1], str) else ""
        yield ast.unparse(node), f"{target}.{name}" if name else ""


def _is_number(target: str, name: str) -> bool:
    try:
        value: Any = getattr(import_module(target), name)
    except ModuleNotFoundError:  # a class of a module
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_number_is_patched(path: Path) -> None:
    assert list(patched_numbers(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_nothing_private_is_patched(path: Path) -> None:
    names = {name for _, name in patched(path.read_text(encoding="utf-8")) if name.startswith("trellis.")}
    assert {name for name in names if _is_private(name.rpartition(".")[2])} == set()


def private_names(text: str) -> Iterator[str]:
    """Yield the private names of others that a file reads, writes or imports: not those of `self`, nor of others."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and _is_private(node.attr) and node.attr not in NOT_OURS:
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trellis"):
            yield from (alias.name for alias in node.names if _is_private(alias.name))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_public_questions_are_asked(path: Path) -> None:
    assert list(private_names(path.read_text(encoding="utf-8"))) == []


def test_private_names_are_seen() -> None:
    text = """
from trellis.io.outputs import _checked
class Test:
    def test(self, results, row):
        assert self._own and results._plan and row._replace(x=1)
        results.operator._known = None
"""
    assert sorted(private_names(text)) == ["_checked", "results._plan", "results.operator._known"]


def test_the_guard_itself() -> None:
    text = """
from trellis import limits
from trellis.kernels import jit as compiler
def test(monkeypatch):
    monkeypatch.setattr(limits, "DEFAULT_MAX_TRENDS", 1)
    monkeypatch.setattr("trellis.limits.DEFAULT_MAX_TRENDS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "PATIENCE", 1)
        for name in ("PATIENCE",):
            patch.setattr(compiler, name, 1)
    monkeypatch.setattr(limits, "refuse_rows", None)
"""
    found = ["trellis.limits.DEFAULT_MAX_TRENDS"] * 2 + ["trellis.kernels.jit.PATIENCE"]
    assert list(patched_numbers(text)) == [*found, "patch.setattr(compiler, name, 1)"]
