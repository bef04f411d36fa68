"""The events of a history: the order of their positions, their times as numbers, and their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.archive.store import Manifest, names_file
from trellis.errors import DataError, UsageError, did_you_mean
from trellis.events.columns.ordering import sort_indices
from trellis.events.columns.types import from_arrow, normalise
from trellis.io.durable import kept_file
from trellis.language.schema import Kind, Schema, Table

GROUP = 1024  # rows of a row group, about

Progress = Callable[[str], None]


def check_columns(names: list[str], **roles: str | None) -> None:
    """Refuse events that lack a column with a role."""
    for role, name in roles.items():
        if name is not None and name not in names:
            hint = did_you_mean(name, names, f"Columns are {', '.join(names)}.")
            raise UsageError(f"the events have no column `{name}` ({role})", hint)


def schema_of(
    schema: pa.Schema, time: str, type: str, event_id: str | None, tie_breakers: Sequence[str] = ()
) -> Schema:
    """Return the schema of the events as queries see it; refuse times that are text."""
    columns = {field.name: from_arrow(field.type) for field in schema}
    if columns[time].kind is Kind.STRING:
        raise UsageError(
            f"the time column `{time}` is text",
            "Say how it is written with --time-format, or make it timestamps first.",
        )
    return Schema((Table(None, columns),), time, type, event_id, tuple(tie_breakers))


def check_key(schema: pa.Schema, key: str | None) -> None:
    """Refuse keys that are not told apart by how they are written: 0.0 and -0.0 are equal."""
    if key is not None and from_arrow(schema.field(key).type).kind in (Kind.DOUBLE, Kind.OTHER):
        raise UsageError(f"the key `{key}` is {schema.field(key).type}", "A key is text or a whole number.")


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return events with the columns and types of a history."""
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            raise DataError(f"the column `{field.name}` is missing")
        column = table[field.name]
        if column.type != field.type:
            if not pa.types.is_null(column.type) and from_arrow(column.type) != from_arrow(field.type):
                raise DataError(f"the column `{field.name}` is {column.type}, and the archive has it as {field.type}")
            try:
                column = column.cast(field.type)
            except pa.ArrowException as problem:
                raise DataError(f"the column `{field.name}` does not fit: {problem}") from None
        columns.append(column)
    return pa.table(columns, schema=schema)


def in_order(table: pa.Table, time: str, event_id: str | None, tie_breakers: Sequence[str] = ()) -> pa.Table:
    """Return events in the order of their positions: by time, what breaks ties, then by id or by all columns."""
    for name in (time, event_id, *tie_breakers):
        if name is not None and table[name].null_count:
            raise DataError(f"{table[name].null_count:,} events have no `{name}`", "Leave them out.")
    _check_finite(table[time], time)
    others = [event_id] if event_id is not None else [n for n in table.column_names if n != time]
    kinds = {name: from_arrow(table[name].type) for name in [time, *tie_breakers, *others]}
    for name, kind in kinds.items():
        if kind.kind is Kind.OTHER:
            raise UsageError(
                f"events without an id are ordered by all columns, and `{name}` has no order", "Name an id."
            )
    if not table.num_rows or _is_ordered(numbers(table[time])):
        return table.combine_chunks()
    columns = [normalise(table[name], kind) for name, kind in kinds.items()]
    return table.take(pa.array(sort_indices(columns))).combine_chunks()


def _check_finite(column: pa.ChunkedArray, time: str) -> None:
    if from_arrow(column.type).kind is Kind.DOUBLE:
        bad = int((~np.isfinite(numbers(column))).sum())
        if bad:
            raise DataError(f"{bad:,} events have a `{time}` that is NaN or infinite", "Leave them out.")


def _is_ordered(times: NDArray[Any]) -> bool:
    """Return whether each event is later than the one before: nothing is to be sorted."""
    return bool((times[1:] > times[:-1]).all())


def numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return times as numbers: microseconds of moments."""
    kind = from_arrow(column.type)
    array = normalise(column, kind)
    if kind.kind is Kind.DOUBLE:
        return array.to_numpy(zero_copy_only=False)
    if kind.kind is Kind.DECIMAL:
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False)


def write_names(table: pa.Table, path: Path, time: str, type: str) -> None:
    """Write times and coded names of events beside their file, as they lie in memory: nothing is decoded later."""
    names = table[type].cast(pa.string()).combine_chunks().dictionary_encode()
    narrow = pa.table({time: table[time].combine_chunks(), type: names})
    with kept_file(path.with_name(names_file(path.name))) as file, pa.ipc.new_file(file, narrow.schema) as writer:
        writer.write_table(narrow)


def write_events(table: pa.Table, path: Path, first: int, manifest: Manifest, progress: Progress | None = None) -> None:
    """Write events from a position on, in row groups that end where leaves end, and their names beside them."""
    capacity = manifest.capacity
    write_names(table, path, manifest.time, manifest.type)
    rows = max(1, GROUP // capacity) * capacity
    with kept_file(path) as file, pq.ParquetWriter(file, table.schema, write_page_checksum=True) as writer:
        at = 0
        while at < table.num_rows:
            size = rows - (first + at) % rows
            writer.write_table(table.slice(at, size), row_group_size=size)
            at += size
            if progress is not None and at // rows % 256 == 0:
                progress(f"writing {min(at, table.num_rows):,} of {table.num_rows:,} events")
