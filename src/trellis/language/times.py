"""Timestamps as text: ISO 8601 and `yyyy/MM/dd HH:mm[:ss]`, to microseconds since the epoch and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS_PER_DAY = 86_400_000_000
_FORM = re.compile(
    r"(\d{4})([-/])(\d\d)\2(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})0*)?)?\s*(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)


def parse_timestamp(text: str) -> int | None:
    """Return microseconds since the epoch (UTC where the text has no zone), or None if it is not a timestamp."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int((fraction or "").ljust(6, "0"))
    try:
        local = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros, UTC
        )
        moment = local - _offset(zone)
    except (ValueError, OverflowError):
        return None
    return (moment - EPOCH) // timedelta(microseconds=1)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 18 or minutes > 59:
        raise ValueError(zone)
    return timedelta(hours=hours, minutes=minutes) * (1 if zone[0] == "+" else -1)


def format_timestamp(micros: int) -> str:
    """Return `yyyy-MM-dd HH:mm:ss[.ffffff]` in UTC."""
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(sep=" ")
