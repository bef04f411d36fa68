"""Event tables: rows with a time, an optional type, an optional id, and attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from trellis.errors import DataError, UsageError
from trellis.events.columns.types import from_arrow
from trellis.events.source import is_pandas_frame
from trellis.events.times import parse_times, warn_of_zones, with_parsed_times
from trellis.language.schema import TYPE, UNKNOWN, Kind, Schema, Table, Type, choose_time

if TYPE_CHECKING:
    import pandas

Tables = dict[str | None, pa.Table]


def as_tables(data: Any) -> Tables:
    """Return events as Arrow tables, by type where several are given.

    Parameters
    ----------
    data
        An Arrow table or record batch, a pandas or polars frame, or a dictionary of such by event type.
    """
    if isinstance(data, Mapping):
        if not data:
            raise UsageError("no table of events was given")
        return {str(name): _as_table(table) for name, table in data.items()}
    return {None: _as_table(data)}


def with_columns_named(tables: Tables, names: Iterable[str]) -> Tables:
    """Return tables, of which those without columns and rows, as of an empty file, have some of unknown type."""
    empty = pa.table({name: pa.nulls(0) for name in names})
    return {name: table if table.num_columns or table.num_rows else empty for name, table in tables.items()}


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        table = data.read_all()
    elif is_pandas_frame(data):
        table = _from_pandas(data)
    elif type(data).__module__.startswith("polars") and type(data).__name__ in ("DataFrame", "LazyFrame"):
        table = data.lazy().collect().to_arrow()
    elif hasattr(data, "__arrow_c_stream__") and not hasattr(data, "dtype"):
        table = pa.table(data)
    else:
        raise UsageError(
            f"events cannot be read from an object of the type {type(data).__name__}",
            "Give a Spark, pandas or polars DataFrame, an Arrow table, a path, or a dictionary of these by type; "
            "rows of Python become a table by pandas.DataFrame(rows).",
        )
    check_names(table.column_names)
    return _without_views(table)


def _without_views(table: pa.Table) -> pa.Table:
    """Lay views of strings, and runs of equal values, out flat: Arrow cannot sort or take them."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(i, field.name, table[field.name].cast(pa.large_string()))
        elif pa.types.is_run_end_encoded(field.type):
            chunks = [pc.run_end_decode(chunk) for chunk in table[field.name].chunks]
            table = table.set_column(i, field.name, pa.chunked_array(chunks, field.type.value_type))
    return table


def with_fields(tables: Tables) -> Tables:
    """Return tables with the fields of structs as columns, at any depth: `address.city` for a field of `address`."""
    return {name: _with_fields(table) for name, table in tables.items()}


def _with_fields(table: pa.Table) -> pa.Table:
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    check_names(table.column_names)
    return table


def check_names(names: Sequence[str]) -> None:
    """Refuse events with two columns of one name."""
    repeated = sorted(n for n, times in Counter(names).items() if times > 1)
    if repeated:
        raise DataError(f"the events have two columns called `{repeated[0]}`", "Rename one of them.")


def _from_pandas(frame: pandas.DataFrame) -> pa.Table:
    check_names([str(name) for name in frame.columns])
    _check_zones(frame)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError):
        raise _unreadable(frame) from None


def _unreadable(frame: pandas.DataFrame) -> DataError:
    """Return the error for a frame with a column that Arrow cannot take: the first such column, and what it holds."""
    for i, name in enumerate(frame.columns):
        values = frame.iloc[:, i]
        try:
            pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError):
            kinds = sorted({type(value).__name__ for value in values if value is not None})
            what = f"the column `{name}` of the pandas frame cannot be read: its values are of the type "
            if kinds == ["int"]:
                return DataError(f"{what}int, and some need more than 64 bits", "Make them text or decimal.Decimal.")
            return DataError(what + " and ".join(kinds), "Give them one type that Arrow has.")
    return DataError("the pandas frame cannot be read as an Arrow table")


def _check_zones(frame: pandas.DataFrame) -> None:
    """Refuse columns in which some times have a zone and some have none: these would be taken for other moments."""
    for name in frame.columns:
        column = frame[name]
        if column.dtype != object or not isinstance(column.iloc[0] if len(column) else None, datetime):
            continue
        if len({value.tzinfo is None for value in column if isinstance(value, datetime) and value == value}) > 1:
            raise DataError(
                f"the column `{name}` has times with a zone and times without one",
                f"Give all of them a zone: frame[{name!r}] = pandas.to_datetime(frame[{name!r}], utc=True).",
            )


def with_readable_times(tables: Tables, time: str | None) -> tuple[Tables, str]:
    """Return the tables with a text time column read as timestamps, and the name of the time column."""
    chosen = choose_time(next(iter(tables.values())).column_names, time)
    result: Tables = {}
    for name, table in tables.items():
        if chosen in table.column_names and from_arrow(table.schema.field(chosen).type).kind is Kind.STRING:
            times = parse_times(table[chosen])
            warn_of_zones(table[chosen], times, chosen)
            table = with_parsed_times(table, chosen, times)
        result[name] = table
    return result, chosen


def schema_of(
    tables: Tables, time: str, type: str | None, event_id: str | None, tie_breakers: tuple[str, ...] = ()
) -> Schema:
    """Return the schema of tables, for the binder."""
    described = tuple(Table(name, {f.name: from_arrow(f.type) for f in table.schema}) for name, table in tables.items())
    if described[0].type is not None and type is not None:
        raise UsageError("types come from several tables and from a column", "Leave out one of the two.")
    return with_common_types(Schema(described, time, type, event_id, tie_breakers))


def with_common_types(schema: Schema) -> Schema:
    """Return a schema whose tables agree on the types of their columns; refuse columns that have two.

    A value must not change because another table is there: a large integer is no double, and has no digits behind
    its point. A column that is all NULL in one table has the type that it has in others.
    """
    seen: dict[str, Type] = {}
    for name, type_ in ((n, t) for table in schema.tables for n, t in table.columns.items()):
        before = seen.get(name, UNKNOWN)
        if before.kind is Kind.UNKNOWN or (before.naive and type_ == before and not type_.naive):
            seen[name] = type_
        elif type_.kind is not Kind.UNKNOWN and (before != type_ or _other_name(before) != _other_name(type_)):
            raise DataError(
                f"the tables do not fit together: `{name}` is {_described(before)} and {_described(type_)}",
                "Cast one of them, or rename one of the two columns.",
            )
    tables = tuple(Table(table.type, {n: seen[n] for n in table.columns}) for table in schema.tables)
    return schema if len(tables) == 1 else replace(schema, tables=tables)


def _other_name(type_: Type) -> str:
    return type_.name if type_.kind is Kind.OTHER else ""


def _described(type_: Type) -> str:
    digits = "1 digit" if type_.scale == 1 else f"{type_.scale} digits"
    return f"a decimal with {digits} behind the point" if type_.kind is Kind.DECIMAL else type_.described()


def refuse_type_column(names: Iterable[str]) -> None:
    """Refuse a column whose name the union of several tables needs."""
    if TYPE in names:
        raise UsageError(f"a column of several tables is called `{TYPE}`, as Trellis calls their type", "Rename it.")


def union(tables: Tables) -> pa.Table:
    """Return all tables as one; a column that a table does not have is NULL there, `TYPE` tells the table."""
    if None in tables:
        return tables[None]
    refuse_type_column([name for table in tables.values() for name in table.column_names])
    named = [
        _plain(table).append_column(TYPE, pa.repeat(pa.scalar(name, pa.string()), table.num_rows))
        for name, table in sorted(tables.items(), key=lambda item: str(item[0]).encode())
    ]
    try:
        return pa.concat_tables(named, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as problem:
        raise DataError(f"the tables do not fit together: {problem}") from None


def _plain(table: pa.Table) -> pa.Table:
    """Give timestamps the zone UTC and lay dictionaries out flat, so that tables with and without them fit together."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp(field.type.unit, "UTC")))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
        elif pa.types.is_run_end_encoded(field.type):
            table = table.set_column(i, field.name, pc.run_end_decode(table.column(i)))
    return table
