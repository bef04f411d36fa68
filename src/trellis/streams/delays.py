"""Durations as people write them for watermarks."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from math import ceil

from trellis.errors import UsageError
from trellis.language.durations import to_micros
from trellis.language.schema import Kind, Type

DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def delay_of(text: str | int | float, time: Type, what: str = "watermark") -> int:
    """Return a duration as milliseconds, or, where times are plain numbers, in their unit; rounded up."""
    match = DURATION.fullmatch(str(text))
    hint = "Write a number and a unit, such as `10 minutes`." if time.temporal else "Write a number: times are numbers."
    if match is None or bool(match[2]) != time.temporal:
        raise UsageError(f"the {what} `{text}` is not a duration for times of this kind", hint)
    try:
        if not time.temporal:
            return ceil(Decimal(match[1]))
        micros = to_micros(Decimal(match[1]), match[2])
    except (KeyError, InvalidOperation):
        raise UsageError(f"the {what} `{text}` has no unit of time", hint) from None
    if micros is None:
        raise UsageError(f"the {what} `{text}` is finer than a microsecond", hint)
    return -(-micros // 1000)


def check_delay(text: str, what: str) -> None:
    """Refuse a text that is not a duration for times of any kind."""
    match = DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"the {what} `{text}` is not a duration", "Write a number and a unit, such as `10 minutes`.")
    delay_of(text, Type(Kind.TIMESTAMP if match[2] else Kind.DOUBLE), what)
