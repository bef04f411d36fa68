"""The scalar functions of the language: what each takes, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trellis.language.schema import BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Type, decimal

NUMBER, TEXT, MOMENT = "a number", "a string", "a time"
MOST_PLACES = 15  # that ROUND takes, in either direction


@dataclass(frozen=True)
class ScalarFunction:
    """A function of values of one event or of several.

    Attributes
    ----------
    takes
        What each of its arguments is, in words; the ones after `required` may be left out.
    required
        How many arguments it needs.
    gives
        The type of its value, from that of the first argument.
    """

    takes: tuple[str, ...]
    required: int
    gives: Callable[[Type], Type]

    @property
    def most(self) -> int:
        """How many arguments it takes at most."""
        return len(self.takes)


def _same(type_: Type) -> Type:
    return type_


def _whole(type_: Type) -> Type:
    return decimal(0) if type_.kind is Kind.DECIMAL else type_


def _always(type_: Type) -> Callable[[Type], Type]:
    return lambda _: type_


SCALARS: dict[str, ScalarFunction] = {
    "ABS": ScalarFunction((NUMBER,), 1, _same),
    "ROUND": ScalarFunction((NUMBER, NUMBER), 1, _same),
    "FLOOR": ScalarFunction((NUMBER,), 1, _whole),
    "CEIL": ScalarFunction((NUMBER,), 1, _whole),
    **{name: ScalarFunction((NUMBER,), 1, _always(DOUBLE)) for name in ("SQRT", "LN", "EXP")},
    **{name: ScalarFunction((TEXT,), 1, _always(STRING)) for name in ("LOWER", "UPPER")},
    "SUBSTR": ScalarFunction((TEXT, NUMBER, NUMBER), 2, _always(STRING)),
    "CHAR_LENGTH": ScalarFunction((TEXT,), 1, _always(INTEGER)),
    **{
        name: ScalarFunction((MOMENT,), 1, _always(INTEGER))
        for name in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAY_OF_WEEK")
    },
}
"""The functions by their names; COALESCE, CASE and CAST are written and typed in ways of their own."""

CAST_TYPES: dict[str, Type] = {
    **dict.fromkeys(("INTEGER", "INT", "BIGINT", "LONG"), INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL"), DOUBLE),
    **dict.fromkeys(("STRING", "VARCHAR", "TEXT"), STRING),
    "BOOLEAN": BOOLEAN,
    "TIMESTAMP": TIMESTAMP,
}
"""The types that CAST names."""

CASTS: dict[Kind, tuple[Kind, ...]] = {
    Kind.INTEGER: (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.STRING),
    Kind.DOUBLE: (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.STRING),
    Kind.STRING: (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.STRING, Kind.TIMESTAMP, Kind.DATE),
    Kind.BOOLEAN: (Kind.BOOLEAN, Kind.INTEGER, Kind.STRING),
    Kind.TIMESTAMP: (Kind.TIMESTAMP, Kind.DATE, Kind.STRING),
}
"""For the kind that CAST gives, the kinds that it takes."""


def fits(kind: Kind, wanted: str) -> bool:
    """Return whether a value of a kind is what a function takes."""
    if kind is Kind.UNKNOWN:
        return True
    if wanted == NUMBER:
        return kind in (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL)
    return kind is Kind.STRING if wanted == TEXT else kind in (Kind.TIMESTAMP, Kind.DATE)
