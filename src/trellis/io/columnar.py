"""Parquet and ORC: files that bring their types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from trellis.io.failures import reading
from trellis.io.sources import Source


def read_parquet(source: Source, columns: Sequence[str] | None) -> pa.Table:
    """Read a Parquet file as it is; of `columns` those that it has."""
    with reading(source.path, "Parquet"), pq.ParquetFile(source.path) as file:
        return file.read(columns=_present(columns, file.schema_arrow.names))


def read_orc(source: Source, columns: Sequence[str] | None) -> pa.Table:
    """Read an ORC file; its timestamps, always in nanoseconds, become microseconds where none is finer."""
    with reading(source.path, "ORC"):
        file = orc.ORCFile(source.path)
        table = file.read(columns=_present(columns, file.schema.names))
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, _to_micros(table.column(i)))
    return table


def _present(columns: Sequence[str] | None, names: Sequence[str]) -> list[str] | None:
    return None if columns is None else [c for c in columns if c in names]


def _to_micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.timestamp("us", tz=column.type.tz))
    except pa.ArrowInvalid:
        return column
