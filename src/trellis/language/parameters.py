"""Values given for parameters at run time, as literals of the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.parser import parse_literal
from trellis.language.times import EPOCH


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter's value as a literal, and its text where it was given as text."""

    literal: s.Literal | s.Negative
    text: str | None
    shown: str


def read_parameters(values: Mapping[str, Any] | None) -> dict[str, Given]:
    """Return the literals that the values stand for.

    Text is read as a literal where it is one (`90`, `90 s`, `true`) and otherwise stands for itself. Python numbers,
    booleans, timedeltas, dates and datetimes are taken as they are.
    """
    return {name: _read(name, value) for name, value in (values or {}).items()}


def _read(name: str, value: Any) -> Given:
    if isinstance(value, str):
        return Given(parse_literal(value) or s.String(value), value, value)
    return Given(_literal(name, value), None, str(value))


def _literal(name: str, value: Any) -> s.Literal | s.Negative:
    if hasattr(value, "item") and not isinstance(value, datetime | date):
        value = value.item()
    match value:
        case bool():
            return s.Boolean(value)
        case int():
            return s.Integer(value) if value >= 0 else s.Negative(s.Integer(-value))
        case float() | Decimal():
            number = Decimal(repr(value)) if isinstance(value, float) else value
            if not number.is_finite():
                raise UsageError(f"the parameter `{name}` is {value}; a number is expected")
            return s.Negative(s.Real(-number)) if number < 0 else s.Real(number)
        case timedelta():
            return s.Duration(value // timedelta(microseconds=1))
        case datetime():
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            return s.Timestamp((moment - EPOCH) // timedelta(microseconds=1))
        case date():
            return _literal(name, datetime(value.year, value.month, value.day, tzinfo=UTC))
    raise UsageError(
        f"the parameter `{name}` is a {type(value).__name__}",
        "Parameters are numbers, strings, booleans, durations (timedelta) and times (datetime).",
    )
