"""Aggregates of values, computed exactly; floats are rounded once, at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .events import is_nan
from .values import EXACT


def present(values: Sequence[Any]) -> list[Any]:
    """Leave NULL and NaN out."""
    return [value for value in values if value is not None and not is_nan(value)]


def rounded(value: Fraction) -> float:
    """Round once to a double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def total(values: Sequence[Any]) -> Any:
    """SUM: exact, floats rounded once; NULL for nothing, and for infinities of both signs."""
    kept = present(values)
    if not kept:
        return None
    if isinstance(kept[0], float):
        endless = infinite(kept)
        return rounded(sum(map(Fraction, kept), Fraction())) if endless is FINITE else endless
    if isinstance(kept[0], Decimal):
        result = Decimal(0)
        for value in kept:
            result = EXACT.add(result, value)
        return result
    return sum(kept)


def average(values: Sequence[Any]) -> float | None:
    """AVG: the exact quotient, rounded once."""
    kept = present(values)
    if not kept:
        return None
    endless = infinite(kept)
    return rounded(sum(map(Fraction, kept), Fraction()) / len(kept)) if endless is FINITE else endless


FINITE = object()


def infinite(values: Sequence[Any]) -> Any:
    """Give the infinity that a sum of the values is, None for both signs, FINITE where there is none."""
    found = {value for value in values if isinstance(value, float) and math.isinf(value)}
    if not found:
        return FINITE
    return found.pop() if len(found) == 1 else None


def smallest(values: Sequence[Any]) -> Any:
    """MIN."""
    return min(present(values), default=None)


def largest(values: Sequence[Any]) -> Any:
    """MAX."""
    return max(present(values), default=None)
