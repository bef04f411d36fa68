"""Timestamps as text: ISO 8601 and `yyyy/MM/dd HH:mm[:ss]`, to microseconds since the epoch and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(
    r"(\d{4})([-/])(\d\d)\2(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})0*)?)?\s*(Z|[+-]\d\d:?\d\d)?)?"
)


def parse_timestamp(text: str) -> int | None:
    """Return microseconds since the epoch (UTC where the text has no zone), or None if it is no timestamp."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    micros = (moment - EPOCH) // timedelta(microseconds=1) + int((fraction or "0").ljust(6, "0"))
    if zone and zone != "Z":
        sign = 1 if zone[0] == "+" else -1
        micros -= sign * (int(zone[1:3]) * 60 + int(zone[-2:])) * 60_000_000
    return micros


def format_timestamp(micros: int) -> str:
    """Return `yyyy-MM-dd HH:mm:ss[.ffffff]` in UTC."""
    moment = EPOCH + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{moment.microsecond:06d}" if moment.microsecond else "")
