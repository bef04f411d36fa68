"""Tests give thresholds (`Sizes`, parameters) and patch none: every number of a module may change its place or name.

Nor do they patch private functions and attributes of Trellis, but for a few that nothing public stands for.
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


# Private things that tests patch: what a machine has, how long it waits, and a way that events would have to be very
# many to be gone.
PRIVATE = {
    "DirectEdges._choose", "DirectEdges._returns_pay", "SkippingOperator._by_ranks", "Counter._most_wrapping_bits",
    "session._java_homes", "results._usable_threads", "jit._waited", "shortcuts._KNOWN",
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
def test_little_that_is_private_is_patched(path: Path) -> None:
    names = {name for _, name in patched(path.read_text(encoding="utf-8")) if name.startswith("trellis.")}
    private = {".".join(name.split(".")[-2:]) for name in names if name.rpartition(".")[2].startswith("_")}
    assert private - PRIVATE == set()


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
