"""The scalar functions on one value, by their definition: Python's own numbers, texts and times."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def in_decimal(value: Any, places: int, rounding: str) -> Any:
    """Round the digits that are written for a number."""
    if isinstance(value, float) and math.isinf(value):
        return value
    written = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = written.quantize(Decimal(1).scaleb(-places), rounding, Context(prec=700))
    return type(value)(rounded)


def moment(micros: int) -> dt.datetime:
    """Make the time of day and calendar of microseconds, in UTC."""
    return EPOCH + dt.timedelta(microseconds=micros)


def domain(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Make errors of domain NULL."""

    def applied(value: Any) -> Any:
        try:
            return function(float(value))
        except ValueError:
            return None
        except OverflowError:
            return math.inf

    return applied


def substring(text: str, begin: int, length: int | None = None) -> str:
    """Count from 1."""
    return text[begin - 1 :] if length is None else text[begin - 1 : begin - 1 + max(length, 0)]


FUNCTIONS: dict[str, tuple[str | None, Callable[..., Any]]] = {
    "ROUND": (None, lambda x, places=0: in_decimal(x, places, ROUND_HALF_UP)),
    "FLOOR": (None, lambda x: in_decimal(x, 0, ROUND_FLOOR)),
    "CEIL": (None, lambda x: in_decimal(x, 0, ROUND_CEILING)),
    "SQRT": ("float", domain(math.sqrt)),
    "LN": ("float", domain(math.log)),
    "EXP": ("float", domain(math.exp)),
    "LOWER": ("string", str.lower),
    "UPPER": ("string", str.upper),
    "SUBSTR": ("string", substring),
    "CHAR_LENGTH": ("int", len),
    "YEAR": ("int", lambda x: moment(x).year),
    "MONTH": ("int", lambda x: moment(x).month),
    "DAY": ("int", lambda x: moment(x).day),
    "HOUR": ("int", lambda x: moment(x).hour),
    "MINUTE": ("int", lambda x: moment(x).minute),
    "SECOND": ("int", lambda x: moment(x).second),
    "DAY_OF_WEEK": ("int", lambda x: moment(x).isoweekday()),
}
"""Each function with the kind of its value, None for the kind of its argument."""

CAST_KINDS = {
    "INTEGER": "int", "INT": "int", "BIGINT": "int", "LONG": "int", "DOUBLE": "float", "FLOAT": "float",
    "REAL": "float", "STRING": "string", "VARCHAR": "string", "TEXT": "string", "BOOLEAN": "bool", "TIMESTAMP": "time",
}  # fmt: skip


def cast(value: Any, source: str, target: str) -> Any:
    """Make another kind of value; what cannot be read is NULL."""
    if target == "string":
        if source == "time":
            return moment(value).replace(tzinfo=None).isoformat(sep=" ")
        return str(value).lower() if source == "bool" else format(value, "f") if source == "decimal" else str(value)
    if target == "bool":
        return {"true": True, "false": False}.get(value.strip().lower()) if source == "string" else bool(value)
    if target == "time":
        return _time(value) if source == "string" else value
    try:
        if target == "float":
            number: Any = float(value)
            return None if math.isnan(number) else number
        number = int(value) if source in ("string", "int", "bool") else int(Decimal(value).to_integral(ROUND_DOWN))
    except (ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def _time(text: str) -> int | None:
    try:
        read = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    zoned = read if read.tzinfo else read.replace(tzinfo=dt.UTC)
    return (zoned - EPOCH) // dt.timedelta(microseconds=1)
