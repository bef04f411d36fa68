"""Numbers that users give, checked before anything is done with them."""

from __future__ import annotations

from operator import index
from typing import Any

from trellis.errors import UsageError


def whole_number(value: Any, name: str, least: int | None = 0, most: int | None = None) -> int:
    """Return a whole number that a user gave.

    Parameters
    ----------
    value
        What was given: an int, or one of NumPy's.
    name
        What it is called.
    least, most
        Its bounds; None for none.

    Raises
    ------
    UsageError
        If it is none, or beyond its bounds.
    """
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    bounds = "" if least is None else f" from {least:,} on" if most is None else f" from {least:,} to {most:,}"
    if number is None:
        raise UsageError(f"{name} is {value!r}", f"Give a whole number{bounds}.")
    if (least is not None and number < least) or (most is not None and number > most):
        raise UsageError(f"{name} is {number:,}", f"Give a whole number{bounds}.")
    return number
