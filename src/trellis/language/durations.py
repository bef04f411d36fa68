"""Units of time, and the duration that a number and a unit make."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from trellis.errors import nearest

LONGEST = 2**63 - 1  # microseconds; some 292,000 years
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
_UNEVEN = ("mo", "month", "months", "quarter", "quarters", "y", "yr", "yrs", "year", "years")
_AFTER_NUMBERS = (
    "AND", "OR", "WHERE", "HAVING", "SELECT", "REPORT", "WITHIN", "SLIDE", "RETURN", "AGGREGATE", "GROUP", "ORDER",
    "LIMIT", "OFFSET",
)  # fmt: skip


def to_micros(amount: Decimal | int, unit: str) -> int | None:
    """Return the duration in microseconds, or None where it is finer than a microsecond."""
    micros = Fraction(amount) * MICROS[UNITS[unit.lower()]]
    return micros.numerator if micros.denominator == 1 else None


def no_unit(word: str) -> tuple[str, str]:
    """Explain why a word after a number is not a unit; return the mistake, and what to write instead."""
    if word.upper() in _AFTER_NUMBERS:
        return f"`{word}` cannot stand here", "Each clause comes once, WHERE before WITHIN before RETURN."
    what = f"`{word}` is not a unit of time"
    if word.lower() in _UNEVEN:
        return what, "Months and years have no fixed length; write days or weeks."
    near = nearest(word, [*_AFTER_NUMBERS, *UNITS])
    return what, f"Did you mean `{near}`?" if near else "Units are ms, s, min, h, day and week."


def to_text(micros: int) -> str:
    """Return a duration as people write it, in the largest unit that divides it: `10 min`."""
    for unit in reversed(MICROS):
        if micros % MICROS[unit] == 0 and micros:
            return f"{micros // MICROS[unit]} {unit}"
    return "0 s"
