"""Loads the named algorithms, each when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trellis.plan.papers import ABI, CET, NAMED

if TYPE_CHECKING:
    from trellis.papers.contract import Algorithm, AlgorithmInput

__all__ = ["ABI", "CET", "NAMED", "explain_input", "load"]


def load(name: str) -> Algorithm:
    """Return a named algorithm itself."""
    algorithm: Algorithm = _module(name).extract
    return algorithm


def explain_input(name: str, given: AlgorithmInput) -> dict[str, Any]:
    """Return the facts that a named algorithm knows of its input before it works."""
    tell = getattr(_module(name), "explain", None)
    return {} if tell is None else tell(given)


def _module(name: str) -> Any:
    return import_module(f"trellis.papers.{NAMED[name].module}")
