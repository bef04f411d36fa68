"""Things derived from a query once and held by it, since services ask one query of many small sets of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

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
Given = ParamSpec("Given")
MOST = 256  # things that an owner holds: a service may ask each of its queries for the best 3, 4, 5, ...


def once(make: Callable[Concatenate[Owner, Given], Made]) -> Callable[Concatenate[Owner, Given], Made]:
    """Return a function that makes something of its owner, and of what else it is given, and then holds on to it."""

    @wraps(make)
    def made_once(owner: Owner, /, *given: Given.args, **named: Given.kwargs) -> Made:
        key: Any = (make, *given, *named.items()) if given or named else make
        try:
            found: Made = owner.made[key]
        except KeyError:
            found = make(owner, *given, **named)
            if len(owner.made) >= MOST:
                owner.made.clear()
            owner.made[key] = found
        return found

    return made_once
