"""Units of time, and the duration that a number and a unit make."""

from __future__ import annotations

from decimal import Decimal

MICROS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}

_SPELLINGS = {
    "us": "us microsecond microseconds",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "d day days",
    "week": "w week weeks",
}

UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}


def to_micros(amount: Decimal | int, unit: str) -> int | None:
    """Return the duration in microseconds, or None where it is finer than a microsecond."""
    micros = Decimal(amount) * MICROS[UNITS[unit.lower()]]
    return int(micros) if micros == micros.to_integral_value() else None


def to_text(micros: int) -> str:
    """Return a duration as people write it, in the largest unit that divides it: `10 min`."""
    for unit in reversed(MICROS):
        if micros % MICROS[unit] == 0 and micros:
            return f"{micros // MICROS[unit]} {unit}"
    return "0 s"
