"""Things derived from a query once and held by it, since services ask one query of many small sets of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

Made = TypeVar("Made")


class MadeOnce(dict[Any, Any]):
    """Things derived from a query or plan, by the functions that made them; pickled, it is empty."""

    def __reduce__(self) -> tuple[type[MadeOnce], tuple[()]]:
        return MadeOnce, ()


class Lasting(Protocol):
    """A bound query, a condition or a plan: it never changes, so what is derived from it alone stays true."""

    @property
    def made(self) -> MadeOnce:
        """The things derived from it so far."""


Owner = TypeVar("Owner", bound=Lasting)


def once(make: Callable[[Owner], Made]) -> Callable[[Owner], Made]:
    """Return a function that makes something of its owner at the first call, and gives the same at every later one."""

    @wraps(make)
    def made_once(owner: Owner) -> Made:
        try:
            found: Made = owner.made[make]
        except KeyError:
            found = owner.made[make] = make(owner)
        return found

    return made_once
