"""Results as files in a directory that appears wholly or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.orc as orc
import pyarrow.parquet as pq

from trellis.errors import DataError, UsageError, did_you_mean
from trellis.io.claims import claimed
from trellis.io.json_text import json_lines, json_values, time_text
from trellis.io.outputs import PLACE
from trellis.io.spreadsheets import guard_name, guard_text, is_text

FORMATS = ("parquet", "orc", "csv", "json")
ROW_GROUP = 1 << 25


def check_format(format: str, raw_csv: bool = False) -> None:
    """Refuse an unknown format, and the plain form of CSV for another one."""
    if format not in FORMATS:
        raise UsageError(
            f"there is no output format `{format}`", did_you_mean(format, FORMATS, f"Formats are {', '.join(FORMATS)}.")
        )
    if raw_csv and format != "csv":
        raise UsageError(f"raw CSV was asked for, and the format is {format}", "Leave it out, or write csv.")


def write_parts(
    parts: Sequence[Iterable[pa.RecordBatch]], schema: pa.Schema, path: PLACE, format: str = "parquet",
    overwrite: bool = False, inputs: Iterable[PLACE] = (), raw_csv: bool = False,
) -> None:  # fmt: skip
    """Write record batches into a directory, a file for each part, wholly or not at all; see `trellis.io.outputs`."""
    check_format(format, raw_csv)
    with claimed(path, overwrite=overwrite, inputs=inputs) as output, output.replacing() as directory:
        files = [directory / f"part-{i:05}.{format}" for i in range(len(parts))]
        try:
            _write_together(
                [partial(write_file, schema=schema, file=f, format=format, raw_csv=raw_csv) for f in files], parts
            )
        except pa.ArrowException as problem:
            raise DataError(f"the output `{output.path}` cannot be written: {problem}") from None


def _write_together(
    writers: Sequence[Callable[[Iterable[pa.RecordBatch]], None]], parts: Sequence[Iterable[pa.RecordBatch]]
) -> None:
    """Write each part by its writer, the first one on this thread; where one fails, the others stop at a batch."""
    failed = Event()

    def write(writer: Callable[[Iterable[pa.RecordBatch]], None], part: Iterable[pa.RecordBatch]) -> None:
        try:
            writer(takewhile(lambda _: not failed.is_set(), part))
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(max(1, len(parts) - 1)) as pool:
        others = [pool.submit(write, *one) for one in zip(writers[1:], parts[1:], strict=True)]
        write(writers[0], parts[0])
        for other in others:
            other.result()


def write_file(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path | Any, format: str, raw_csv: bool = False
) -> None:
    """Write record batches as one file, which may be open; `raw_csv`: in CSV without guards against formulas."""
    writers: dict[str, Callable[[Iterable[pa.RecordBatch], pa.Schema, Path | Any], None]] = {
        "parquet": _write_parquet,
        "orc": _write_orc,
        "csv": partial(_write_csv, guarded=not raw_csv),
        "tsv": partial(_write_csv, guarded=not raw_csv, delimiter="\t"),
        "json": _write_json,
    }
    writers[format](batches, schema, file)


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path | Any) -> None:
    """Write row groups of about `ROW_GROUP` bytes.

    Texts come again and again, so that a dictionary of them pays. Numbers are near those before them: their differences
    are quicker to write than a dictionary or the numbers themselves, and smaller. Lists are quicker without statistics.
    """
    paths = _parquet_paths(schema)
    numbers = [name for name, field in zip(paths, schema, strict=True) if _is_number(field.type)]
    others = [name for name in paths if name not in numbers]
    single = [field.name for field in schema if not pa.types.is_list(field.type)]
    differences = {name: "DELTA_BINARY_PACKED" for name in numbers if paths.count(name) == 1}
    with pq.ParquetWriter(
        file, schema, use_dictionary=others or False, write_statistics=single or False,
        column_encoding=differences or None,
    ) as writer:  # fmt: skip
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(held, schema))
                held, size = [], 0
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))


def _is_number(type_: pa.DataType) -> bool:
    value = type_.value_type if pa.types.is_list(type_) else type_
    return pa.types.is_integer(value) or pa.types.is_timestamp(value)


def _parquet_paths(schema: pa.Schema) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    return [f"{f.name}.list.element" if pa.types.is_list(f.type) else f.name for f in schema]


def _write_csv(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path | Any, guarded: bool, delimiter: str = ","
) -> None:
    name = guard_name if guarded else str
    flat = pa.schema([pa.field(name(f.name), pa.string() if _becomes_text(f.type) else f.type) for f in schema])
    guards = [guarded and is_text(f.type) and not _is_exact_number(schema, f.name) for f in schema]
    with csv.CSVWriter(file, flat, write_options=csv.WriteOptions(delimiter=delimiter)) as writer:
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


def _write_orc(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path | Any) -> None:
    with file.open("wb") if isinstance(file, Path) else nullcontext(file) as out, orc.ORCWriter(out) as writer:
        wrote = False
        for batch in batches:
            writer.write(pa.Table.from_batches([batch], schema))
            wrote = True
        if not wrote:
            writer.write(schema.empty_table())


def _write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Path | Any) -> None:
    with file.open("wb") if isinstance(file, Path) else nullcontext(file) as out:
        for batch in batches:
            if batch.num_rows:
                out.write(_one_text(json_lines(batch)))


def _one_text(lines: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(whole, "\n")[0].as_buffer().to_pybytes() + b"\n"
