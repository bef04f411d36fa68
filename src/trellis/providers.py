"""Engines for rooms that must not import one: the top of the package provides them, the rooms below ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_providers: dict[str, Callable[[], Any]] = {}


def provide(name: str, provider: Callable[[], Any]) -> None:
    """Say who gives an engine; it is asked when the engine is needed, so that nothing is imported before."""
    _providers[name] = provider


def provided(name: str) -> Any:
    """Return an engine that the top of the package provides."""
    return _providers[name]()
