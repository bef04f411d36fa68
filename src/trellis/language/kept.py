"""What is made of a query once, and kept with it: a service asks one query of many small sets of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

Made = TypeVar("Made")


class Kept(dict[Any, Any]):
    """What was made of its owner, by the function that made it; an owner that is sent elsewhere begins without."""

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()


class Keeper(Protocol):
    """A bound query or a plan: it never changes, so what is made of it alone stays true."""

    @property
    def kept(self) -> Kept:
        """What was made of it."""


Owner = TypeVar("Owner", bound=Keeper)


def once(make: Callable[[Owner], Made]) -> Callable[[Owner], Made]:
    """Return a function that makes something of its owner at the first call, and gives the same at every later one."""

    @wraps(make)
    def kept(owner: Owner) -> Made:
        try:
            made: Made = owner.kept[make]
        except KeyError:
            made = owner.kept[make] = make(owner)
        return made

    return kept
