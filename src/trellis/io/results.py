"""Results as files in a directory that appears wholly or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from trellis.errors import DataError, UsageError, did_you_mean
from trellis.io.json_text import json_lines, json_values, time_text
from trellis.io.outputs import PLACE, claimed
from trellis.io.spreadsheets import guard_name, guard_text, is_text

FORMATS = ("parquet", "csv", "json")
ROW_GROUP = 1 << 25


def check_format(format: str, raw_csv: bool = False) -> None:
    """Refuse an unknown format, and the plain form of CSV for another one."""
    if format not in FORMATS:
        raise UsageError(
            f"there is no output format `{format}`", did_you_mean(format, FORMATS, f"Formats are {', '.join(FORMATS)}.")
        )
    if raw_csv and format != "csv":
        raise UsageError(f"raw CSV was asked for, and the format is {format}", "Leave it out, or write csv.")


def write_results(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: PLACE, format: str = "parquet",
    overwrite: bool = False, inputs: Iterable[PLACE] = (), raw_csv: bool = False,
) -> None:  # fmt: skip
    """Write record batches as one file in a directory, wholly or not at all; see `trellis.io.outputs`."""
    check_format(format, raw_csv)
    with claimed(path, overwrite=overwrite, inputs=inputs) as output, output.replacing() as directory:
        try:
            write_file(batches, schema, directory / f"part-00000.{format}", format, raw_csv)
        except pa.ArrowException as problem:
            raise DataError(f"the output `{output.path}` cannot be written: {problem}") from None


def write_file(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path, format: str, raw_csv: bool = False
) -> None:
    """Write record batches as one file; `raw_csv`: in CSV without guards against formulas."""
    writers: dict[str, Callable[[Iterable[pa.RecordBatch], pa.Schema, Path], None]] = {
        "parquet": _write_parquet,
        "csv": partial(_write_csv, guarded=not raw_csv),
        "json": _write_json,
    }
    writers[format](batches, schema, file)


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path) -> None:
    """Write row groups of about `ROW_GROUP` bytes.

    Texts come again and again, so that a dictionary of them pays; numbers are quicker without one, and so are lists
    without statistics. Ranks rise by one.
    """
    paths = _parquet_paths(schema)
    texts = [name for name, field in zip(paths, schema, strict=True) if not _is_number(field.type)]
    single = [field.name for field in schema if not pa.types.is_list(field.type)]
    rising = {"rank": "DELTA_BINARY_PACKED"} if schema.names.count("rank") == 1 and "rank" not in texts else None
    with pq.ParquetWriter(
        file, schema, use_dictionary=texts or False, write_statistics=single or False, column_encoding=rising
    ) as writer:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(b.nbytes for b in held) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(held, schema))
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))


def _is_number(type_: pa.DataType) -> bool:
    value = type_.value_type if pa.types.is_list(type_) else type_
    return pa.types.is_integer(value) or pa.types.is_timestamp(value)


def _parquet_paths(schema: pa.Schema) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    return [f"{f.name}.list.element" if pa.types.is_list(f.type) else f.name for f in schema]


def _write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path, guarded: bool) -> None:
    name = guard_name if guarded else str
    flat = pa.schema([pa.field(name(f.name), pa.string() if _becomes_text(f.type) else f.type) for f in schema])
    guards = [guarded and is_text(f.type) and not _is_exact_number(schema, f.name) for f in schema]
    with csv.CSVWriter(file, flat) as writer:
        for batch in batches:
            columns = [_as_text(c) if _becomes_text(c.type) else c for c in batch.columns]
            columns = [guard_text(c) if guard else c for c, guard in zip(columns, guards, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))


def _is_exact_number(schema: pa.Schema, name: str) -> bool:
    """Whether a column has the digits of a number that another column may have rounded, as `sum_text` of `sum`."""
    number = name.removesuffix("_text")
    return number != name and schema.names.count(number) == 1 and not is_text(schema.field(number).type)


def _becomes_text(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_timestamp(type_) or pa.types.is_duration(type_)


def _as_text(column: pa.Array) -> pa.Array:
    """Arrays become JSON, timestamps ISO 8601."""
    if pa.types.is_timestamp(column.type):
        return time_text(column)
    return pc.if_else(pc.is_valid(column), json_values(column), pa.scalar(None, pa.string()))


def _write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path) -> None:
    with file.open("wb") as out:
        for batch in batches:
            if batch.num_rows:
                out.write(_one_text(json_lines(batch)))


def _one_text(lines: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, "\n")[0].as_buffer().to_pybytes() + b"\n"
