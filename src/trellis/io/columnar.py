"""Parquet and ORC: files that bring their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from trellis.events.columns.arrow import Chunked
from trellis.io.failures import check_columns, reading
from trellis.io.sources import Source


def read_parquet(source: Source, columns: Sequence[str] | None) -> pa.Table:
    """Read a Parquet file as it is; of its columns those given, or all."""
    with reading(source.path, "Parquet"), _opened(source) as file:
        check_columns(source.path, file.schema_arrow.names, columns)
        table = file.read(columns=None if columns is None else list(columns))
        moments = _moments(file)
        return table.cast(_with_moments(table.schema, moments)) if moments else table


def parquet_schema(source: Source) -> pa.Schema:
    """Return the columns of a Parquet file with the types that `read_parquet` gives them."""
    with reading(source.path, "Parquet"), _opened(source) as file:
        return _with_moments(file.schema_arrow, _moments(file))


def _opened(source: Source) -> Any:
    import pyarrow.parquet as pq  # late, as below: most files are of one format, and each brings a lot along

    return pq.ParquetFile(source.path, coerce_int96_timestamp_unit="us")


def _moments(file: Any) -> set[str]:
    """Return the paths of times in Parquet's oldest type, INT96, as Spark writes them; they are moments, in UTC."""
    columns = map(file.schema.column, range(len(file.schema)))
    return {column.path for column in columns if column.physical_type == "INT96"}


def _with_moments(schema: pa.Schema, moments: set[str]) -> pa.Schema:
    return pa.schema([field.with_type(_in_utc(field, field.name, moments)) for field in schema]) if moments else schema


def _in_utc(field: pa.Field[Any], path: str, moments: set[str]) -> pa.DataType:
    if path in moments:
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(field.type):
        return pa.struct([inner.with_type(_in_utc(inner, f"{path}.{inner.name}", moments)) for inner in field.type])
    return field.type


def read_orc(source: Source, columns: Sequence[str] | None) -> pa.Table:
    """Read an ORC file; its timestamps, always in nanoseconds, become microseconds where none is finer."""
    import pyarrow.orc as orc

    with reading(source.path, "ORC"):
        file = orc.ORCFile(source.path)
        check_columns(source.path, file.schema.names, columns)
        table = file.read(columns=None if columns is None else list(columns))
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, _to_micros(table.column(i)))
    return table


def _to_micros(column: Chunked) -> Chunked:
    try:
        return column.cast(pa.timestamp("us", tz=column.type.tz))
    except pa.ArrowInvalid:
        return column
