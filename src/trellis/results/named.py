"""Windows and partitions by what users call them: moments as text or times of any kind, NULL and NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from trellis.errors import UsageError
from trellis.language.bound import BoundQuery
from trellis.language.schema import Kind, Type
from trellis.language.times import EPOCH, MICROS_PER_DAY, parse_timestamp

ANY = ...
"""Stands for a partition that was not named; None is the one of NULL."""

_NAN = "NaN"
_NOTHING = object()  # equals no value


def lead_rows(lead: pa.Table) -> list[dict[str, Any]]:
    """Return the rows that tell windows and partitions; moments and dates, however far, as numbers."""
    columns = [_numbers(column).to_pylist() for column in lead.columns]
    return [dict(zip(lead.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_duration(column.type) else column


def named_group(bound: BoundQuery, rows: Sequence[Mapping[str, Any]], window: Any, partition: Any) -> int:
    """Return which of the rows of `lead_rows` is the one that was named.

    Parameters
    ----------
    bound
        The query.
    rows
        The windows and partitions that have a result.
    window
        The start of a window; None for any.
    partition
        The values of the partition's attributes, one alone, several in a tuple, or by name; `ANY` for any.

    Raises
    ------
    UsageError
        If none or several of them fit.
    """
    assert bound.schema is not None
    names = [name for name, _ in bound.partition]
    if isinstance(partition, Mapping):
        partition = tuple(partition.get(n) for n in names)
    given = partition if isinstance(partition, tuple) else (partition,)
    if partition is not ANY and len(given) != len(names):
        has = "no partition" if not names else f"a partition of {len(names)}: {', '.join(names)}"
        raise UsageError(f"{len(given)} values of a partition are named, and the query has {has}")
    start = None if window is None else _key(window, _bound_type(bound.schema.time_type))
    wanted = [_key(value, type_) for value, (_, type_) in zip(given, bound.partition, strict=False)]
    found = [
        i
        for i, row in enumerate(rows)
        if (start is None or row.get("window_start") == start)
        and (partition is ANY or [_row_key(row[n]) for n in names] == wanted)
    ]
    if len(found) == 1:
        return found[0]
    what = f"{len(found):,} windows and partitions fit" if found else "no window and partition with a result fits"
    raise UsageError(
        f"{what}; a rank belongs to one",
        "Name it with window= (its start) and partition= (its values; None is NULL).",
    )


def _bound_type(time: Type) -> Type:
    """Return the type of the bounds of windows."""
    return Type(Kind.TIMESTAMP) if time.temporal else time


def _row_key(value: Any) -> Any:
    return _NAN if isinstance(value, float) and value != value else value


def _key(value: Any, type_: Type) -> Any:
    """Return a value as `lead_rows` has it; what no value of the type equals where it is none."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if type(value).__module__ == "numpy":
        value = value.astype("datetime64[us]").item() if value.dtype.kind == "M" else value.item()
    if type_.temporal:
        micros = _micros(value)
        if micros is None or type_.kind is not Kind.DATE:
            return _NOTHING if micros is None else micros
        return _NOTHING if micros % MICROS_PER_DAY else micros // MICROS_PER_DAY
    if type_.numeric and isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return _NOTHING
        value = float(value) if type_.kind is Kind.DOUBLE else value
    return _row_key(value)


def _micros(value: Any) -> int | None:
    """Return a moment in microseconds; text and times without a zone are in UTC."""
    if isinstance(value, str):
        return parse_timestamp(value)
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False) if type(value).__name__ == "Timestamp" else value.to_pydatetime()
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    return None
