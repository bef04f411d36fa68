"""Parquet and ORC: files that bring their types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trellis.io.arrow import Chunked
from trellis.io.failures import check_columns, reading
from trellis.io.sources import Source


def read_parquet(source: Source, columns: Sequence[str] | None) -> pa.Table:
    """Read a Parquet file as it is; of its columns those given, or all."""
    import pyarrow.parquet as pq  # late, as below: most files are of one format, and each brings a lot along

    with reading(source.path, "Parquet"), pq.ParquetFile(source.path) as file:
        check_columns(source.path, file.schema_arrow.names, columns)
        return file.read(columns=None if columns is None else list(columns))


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
