"""Numbers and sizes that users give, checked before anything is done with them."""

from __future__ import annotations

import re
from decimal import Decimal
from operator import index
from typing import Any

from trellis.errors import UsageError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_BYTES = 1 << 62


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


def size_in_bytes(size: int | str, name: str) -> int:
    """Return a size such as `2G`, `512MB`, `1.5 GiB` or `1048576`: K, M, G and T are powers of 1,024.

    Parameters
    ----------
    size
        What a user gave.
    name
        What it is called in messages.

    Raises
    ------
    UsageError
        If it is none, or not positive.
    """
    how = "Write a positive number of bytes, such as 512MB or 2G."
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise UsageError(f"{name} {size!r} is not a size", how)
    written = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(size), re.IGNORECASE | re.ASCII)
    if written is None:
        raise UsageError(f"{name} `{size}` is not a size", how)
    found = int(Decimal(written[1]) * UNITS[written[2].upper()])
    if found <= 0:
        raise UsageError(f"{name} `{size}` is not positive", how)
    if found > MOST_BYTES:
        raise UsageError(f"{name} `{size}` is larger than any memory", how)
    return found
