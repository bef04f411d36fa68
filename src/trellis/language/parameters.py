"""Values given for parameters at run time, as literals of the language."""

from __future__ import annotations

import math
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
class ParameterValue:
    """A parameter's value as a literal, and its text where it was given as text."""

    literal: s.Literal | s.Negative | s.Literals
    text: str | None
    shown: str


def read_parameters(values: Mapping[str, Any] | None) -> dict[str, ParameterValue]:
    """Return the literals that the values stand for.

    Text is read as a literal where it is one (`90`, `90 s`, `true`, `[1, 2]`) and otherwise stands for itself. Python
    numbers, booleans, timedeltas, dates and datetimes are taken as they are, and so are lists of them and of strings.
    """
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(
            f"parameters are a dictionary of values by name, not a {type(values).__name__}",
            "Write params={'name': value}.",
        )
    return {name: _read(name, value) for name, value in (values or {}).items()}


def _read(name: str, value: Any) -> ParameterValue:
    if isinstance(value, str):
        text = str(value)
        return ParameterValue(parse_literal(text) or s.String(text), text, text)
    items = _items(value)
    if items is not None:
        return ParameterValue(s.Literals(tuple(_item(name, item) for item in items)), None, str(items))
    return ParameterValue(_literal(name, value), None, str(value))


def _items(value: Any) -> list[Any] | None:
    """Return the items of a list, a set or an array; None of anything else."""
    if isinstance(value, list | tuple | set | frozenset | range):
        return list(value)
    return value.ravel().tolist() if getattr(value, "shape", None) and hasattr(value, "ravel") else None


def _item(name: str, value: Any) -> s.Literal | s.Negative:
    return s.String(str(value)) if isinstance(value, str) else _literal(name, value)


def _literal(name: str, value: Any) -> s.Literal | s.Negative:
    match _plain(value):
        case bool() as truth:
            return s.Boolean(truth)
        case int() as number:
            if not -(2**63) <= number < 2**63:
                raise UsageError(f"the parameter `{name}` does not fit 64 bits", "Give it as a float.")
            return _signed(number < 0, s.Integer(abs(number)))
        case float() | Decimal() as number:
            exact = Decimal(repr(number)) if isinstance(number, float) else number
            if not math.isfinite(exact) or math.isinf(float(exact)):
                raise UsageError(f"the parameter `{name}` is {value}; a finite number is expected")
            return _signed(exact < 0, s.Real(exact.copy_abs()))
        case timedelta() as duration:
            return _signed(duration < timedelta(0), s.Duration(abs(duration) // timedelta(microseconds=1)))
        case datetime() as moment if moment == moment:
            aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            return s.Timestamp((aware - EPOCH) // timedelta(microseconds=1))
        case date() as day if day == day:
            return _literal(name, datetime(day.year, day.month, day.day, tzinfo=UTC))
    raise UsageError(
        f"the parameter `{name}` cannot be {_shown(value)}",
        "Parameters are numbers, strings, booleans, durations (timedelta), times (datetime), and lists of these.",
    )


def _signed(negative: bool, literal: s.Literal) -> s.Literal | s.Negative:
    return s.Negative(literal) if negative else literal


def _plain(value: Any) -> Any:
    """Return the Python value of a NumPy scalar, times in microseconds; anything else as it is."""
    dtype: Any = getattr(value, "dtype", None)
    if dtype is None or value.shape:
        return value
    if dtype.kind in "mM":
        moment = value.astype(f"{dtype.kind}8[us]").item()
        return moment if isinstance(moment, datetime | timedelta) else None
    return value.item()


def _shown(value: Any) -> str:
    return str(value) if value is None or value != value else f"a {type(value).__name__}"
