"""Events: rows made comparable, with their identity and their order (time, event id)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)

Row = Mapping[str, Any]
Rows = Sequence[Row]
Schema = Mapping[str, str]


class OracleError(Exception):
    """The query or the data is not something the oracle gives a meaning to."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One row. Events are compared by identity: two equal rows are two events."""

    time: Any  # microseconds since the epoch for timestamps and dates, else the number itself
    id: Any
    type: str | None  # None also where the input has no types
    table: str
    raw: dict[str, Any]  # values as given, datetimes aware; with the pseudo-attribute `time`
    values: dict[str, Any]  # as conditions see them: NaN is None, times are microseconds
    order: int  # position in (time, tie-breakers, event id) among all events
    tick: Any = None  # what "before" compares: the time with its tie-breakers


@dataclass(frozen=True, slots=True)
class Input:
    """The whole input: its events in the order (time, event id) and what is known of the columns."""

    events: tuple[Event, ...]
    kinds: dict[str, dict[str, str]]  # table -> column -> kind, see `kind_of_name`
    scales: dict[str, dict[str, int]]  # table -> decimal column -> digits after the point
    time_kind: str  # "time" for timestamps and dates, else "int", "float" or "decimal"
    typed: bool  # whether events have types

    def tables_of(self, type_name: str | None) -> list[str]:
        """Give the tables whose events may have this type (None: any)."""
        if type_name is not None and type_name in self.kinds:
            return [type_name]
        return list(self.kinds)


def to_micros(value: dt.datetime | dt.date) -> int:
    """Microseconds since the epoch; a date is midnight UTC, a datetime without zone is UTC."""
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return (aware(value) - EPOCH) // MICROSECOND


def from_micros(micros: int) -> dt.datetime:
    """Turn microseconds since the epoch back into a datetime in UTC."""
    return EPOCH + micros * MICROSECOND


def aware(value: dt.datetime) -> dt.datetime:
    """Give the same instant in UTC."""
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def is_nan(value: Any) -> bool:
    """Tell whether `value` is a float or decimal that is not a number."""
    return isinstance(value, (float, Decimal)) and math.isnan(value)


def order_key(value: Any) -> tuple:
    """Make any two values of a column comparable: NULL first, NaN last, -0.0 = 0.0, arrays by element.

    Python orders strings by code point, which is the order of their UTF-8 bytes.
    """
    if value is None:
        return (0,)
    if is_nan(value):
        return (2,)
    if isinstance(value, (list, tuple)):
        return (1, tuple(order_key(item) for item in value))
    if isinstance(value, dt.date):
        return (1, to_micros(value))
    return (1, value)


def same_key(value: Any) -> Any:
    """Give a key that is equal for values of one partition: NaN equals NaN, -0.0 equals 0.0."""
    return "NaN" if is_nan(value) else (value,)


# --- Kinds of columns -------------------------------------------------------------------------------------

_NAMES = {
    "int": ("int8", "int16", "int32", "int64", "int", "long", "bigint", "smallint", "tinyint"),
    "float": ("float", "float32", "float64", "double"),
    "string": ("string", "str", "large_string"),
    "bool": ("bool", "boolean"),
    "null": ("null",),
}


def kind_of_name(name: str) -> str:
    """Turn a declared type (`int64`, `decimal(10,2)`, `timestamp`, ...) into a kind."""
    word = name.lower().split("(")[0].split("[")[0].strip()
    if word.startswith("decimal"):
        return "decimal"
    if word.startswith(("timestamp", "date")):
        return "time"
    for kind, names in _NAMES.items():
        if word in names:
            return kind
    raise OracleError(f"unknown column type {name!r}")


def kind_of_values(values: Sequence[Any]) -> str:
    """Infer the kind of a column from its values; integers beside floats are floats."""
    kinds = {_kind_of_value(value) for value in values if value is not None}
    if kinds == {"int", "float"}:
        return "float"
    if kinds == {"int", "decimal"}:
        return "decimal"
    if len(kinds) > 1:
        raise OracleError(f"a column holds values of different kinds: {sorted(kinds)}")
    return kinds.pop() if kinds else "null"


def _kind_of_value(value: Any) -> str:
    for cls, kind in ((bool, "bool"), (int, "int"), (float, "float"), (Decimal, "decimal"), (str, "string")):
        if isinstance(value, cls):
            return kind
    if isinstance(value, dt.date):
        return "time"
    raise OracleError(f"no kind of value is known for {value!r}")


def _scale(name: str | None, values: Sequence[Any]) -> int:
    if name is not None and "," in name:
        return int(name.split(",")[1].strip(" )"))
    return max((-int(v.as_tuple().exponent) for v in values if isinstance(v, Decimal) and v.is_finite()), default=0)


def condition_value(value: Any, kind: str) -> Any:
    """Turn a column's value into what conditions compute with."""
    if value is None or is_nan(value):
        return None
    if kind == "time":
        return to_micros(value)
    if kind == "float":
        return float(value)
    if kind == "decimal":
        return Decimal(value)
    return value


# --- Reading ----------------------------------------------------------------------------------------------


def read(
    tables: Rows | Mapping[str, Rows],
    *,
    time: str | tuple[str, ...],
    type: str | None,
    event_id: str | None,
    schema: Schema | Mapping[str, Schema] | None,
) -> Input:
    """Read one table, or several by type name, into events sorted by (time, tie-breakers, event id)."""
    time, *ties = (time,) if isinstance(time, str) else time
    several = isinstance(tables, Mapping)
    if several and type is not None:
        raise OracleError("types come either from a column or from several tables")
    named: Mapping[str, Rows] = tables if several else {"": tables}  # type: ignore[dict-item,assignment]
    schemas: Mapping[str, Schema] = (schema or {}) if several else {"": schema or {}}  # type: ignore[assignment]

    kinds: dict[str, dict[str, str]] = {}
    scales: dict[str, dict[str, int]] = {}
    found: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    for name, rows in named.items():
        declared = schemas.get(name, {})
        columns = _names(rows, declared)
        kinds[name], scales[name] = _columns(columns, declared, rows)
        for row in rows:
            raw = {c: aware(row[c]) if isinstance(row[c], dt.datetime) else row[c] for c in columns}
            found.append((name, raw, {c: condition_value(raw[c], kinds[name][c]) for c in columns}))

    def identity(entry: tuple[str, dict[str, Any], dict[str, Any]]) -> tuple:
        name, raw, values = entry
        return (tick(values, raw), name, [order_key(raw[c]) for c in raw if c not in (time, *ties)])

    def tick(values: dict[str, Any], raw: dict[str, Any]) -> tuple:
        return (values[time], *(order_key(raw[c]) for c in ties))

    found.sort(key=identity)
    ids = [raw[event_id] if event_id is not None else i for i, (_, raw, _) in enumerate(found)]
    order = sorted(range(len(found)), key=lambda i: (tick(found[i][2], found[i][1]), order_key(ids[i])))
    time_kind = _time_kind([kinds[name].get(time, "null") for name in kinds])
    for name in kinds:
        kinds[name].setdefault("time", time_kind)

    events = []
    for position, i in enumerate(order):
        name, raw, values = found[i]
        moment = values[time]
        raw.setdefault("time", from_micros(moment) if time_kind == "time" else moment)
        values.setdefault("time", moment)
        kind = name if several else raw[type] if type is not None else None
        events.append(Event(moment, ids[i], kind, name, raw, values, position, tick(values, raw)))
    return Input(tuple(events), kinds, scales, time_kind, several or type is not None)


def _names(rows: Rows, declared: Schema) -> list[str]:
    """Give the columns in schema order; a schema that leaves columns out says nothing of the order."""
    present = list(rows[0]) if rows else []
    if set(present) <= set(declared):
        return [name for name in declared if not rows or name in present]
    return present


def _columns(columns: list[str], declared: Schema, rows: Rows) -> tuple[dict[str, str], dict[str, int]]:
    kinds, scales = {}, {}
    for column in columns:
        values = [row[column] for row in rows]
        name = declared.get(column)
        kinds[column] = kind_of_name(name) if name is not None else kind_of_values(values)
        if kinds[column] == "decimal":
            scales[column] = _scale(name, values)
    return kinds, scales


def _time_kind(kinds: list[str]) -> str:
    known = {kind for kind in kinds if kind != "null"}
    if "time" in known and len(known) > 1:
        raise OracleError("the time is a timestamp in one table and a number in another")
    for kind in ("time", "decimal", "float", "int"):
        if kind in known:
            return kind
    return "int"
