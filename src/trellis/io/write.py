"""Tables, written to one file: all of it or nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from trellis.errors import UsageError
from trellis.io.arrow import Array, Chunked, pc, pcsv
from trellis.io.failures import writing
from trellis.io.formats import READ_ONLY, FileFormat, format_of, known_extensions
from trellis.io.outputs import PLACE, OutputTarget, claimed
from trellis.io.spreadsheets import guard_name, guard_text, is_text

_ROWS = 64 * 1024
_ESCAPES = [("\\", "\\\\"), ('"', '\\"')] + [(chr(c), f"\\u{c:04x}") for c in range(32)]
_UNITS = ("s", "ms", "us", "ns")


def write_table(table: pa.Table, path: PLACE, *, overwrite: bool = False) -> Path:
    """Write a table to a file whose extension tells the format.

    In CSV and JSON, times are ISO 8601, in UTC with a `Z` where they have a zone; a nested value is one JSON
    field in CSV, and a text that a spreadsheet would take for a formula is guarded. In JSON, NaN and the
    infinities are written as Python and Spark read them: `NaN`, `Infinity`.

    Parameters
    ----------
    table
        What to write.
    path
        Where: `.parquet`, `.csv`, `.tsv`, `.json`, `.jsonl`, `.ndjson` or `.orc`; text also with `.gz`
        behind. It appears under this name when it is complete.
    overwrite
        Whether a file of this name may be replaced.

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    UsageError
        If the extension is unknown, the folder is missing, or the file exists.
    DataError
        If it cannot be written: no space, no permission, a type that the format lacks.
    """
    target = Path(path)
    with claimed_file(path, overwrite) as output, output.replacing() as temporary:
        file_format = _format(target)
        with writing(target), _open(temporary, file_format) as stream:
            _WRITERS[file_format.name](table, stream, file_format)
    return target


@contextmanager
def claimed_file(path: PLACE, overwrite: bool) -> Iterator[OutputTarget]:
    """Claim a file for `write_table`, before there is a table; see `trellis.io.outputs.claimed`.

    Raises
    ------
    UsageError
        If it cannot be written there.
    """
    if not isinstance(path, OutputTarget):
        _check_target(Path(path), overwrite)
    with claimed(path, overwrite=overwrite, is_file=True) as output:
        yield output


def _format(target: Path) -> FileFormat:
    file_format = format_of(target.name)
    if file_format is None or file_format.name in READ_ONLY:
        what = f"The format of {target} cannot be told from its name."
        raise UsageError(what, f"Known extensions: {known_extensions(writing=True)}.")
    return file_format


def _check_target(target: Path, overwrite: bool) -> None:
    _format(target)
    if target.is_dir():
        raise UsageError(f"{target} is a directory.", "Name a file in it.")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already.", "Allow to replace it with --overwrite, or choose another name.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist.", "Make it first, or choose another one.")


def _write_parquet(table: pa.Table, stream: Any, _: FileFormat) -> None:
    pq.write_table(table, stream)


def _write_orc(table: pa.Table, stream: Any, _: FileFormat) -> None:
    orc.write_table(table, stream)


def _write_csv(table: pa.Table, stream: Any, file_format: FileFormat) -> None:
    options = pcsv.WriteOptions(delimiter="\t" if file_format.name == "tsv" else ",")
    pcsv.write_csv(_flat(_with_iso_times(_guarded(table))), stream, options)


def _write_json(table: pa.Table, stream: Any, _: FileFormat) -> None:
    for batch in _with_iso_times(table).to_batches(max_chunksize=_ROWS):
        stream.write("".join(f"{line}\n" for line in _json_lines(batch).to_pylist()).encode())


_WRITERS: dict[str, Callable[[pa.Table, Any, FileFormat], None]] = {
    "parquet": _write_parquet,
    "orc": _write_orc,
    "csv": _write_csv,
    "tsv": _write_csv,
    "json": _write_json,
}


@contextmanager
def _open(path: Path, file_format: FileFormat) -> Iterator[BinaryIO | gzip.GzipFile]:
    # pyarrow gets the open file, not its name: given a name, it would delete what it cannot write.
    with open(path, "wb") as file:
        if not file_format.gzip:
            yield file
            return
        # Neither name nor time inside, so that the same table gives the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed


def _with_iso_times(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, iso_times(table.column(i)))
    return table


def iso_times(column: Chunked) -> Chunked:
    """Write timestamps as ISO 8601 text, with as many digits for the fraction as the column needs."""
    zone = column.type.tz
    unit: Any
    for unit in _UNITS[: _UNITS.index(column.type.unit) + 1]:
        try:
            column = column.cast(pa.timestamp(unit, tz=None if zone is None else "UTC"))
            break
        except pa.ArrowInvalid:
            continue
    return pc.strftime(column, format="%Y-%m-%dT%H:%M:%S" + ("" if zone is None else "Z"))


def _guarded(table: pa.Table) -> pa.Table:
    """Return a table whose texts a spreadsheet shows as they are."""
    columns = [guard_text(column) if is_text(column.type) else column for column in table.columns]
    return pa.table(columns, names=[guard_name(name) for name in table.column_names])


def _flat(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            table = table.set_column(i, field.name, _nested_to_json(table.column(i)))
    return table


def _nested_to_json(column: Chunked | Array) -> Array:
    values = (None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in column.to_pylist())
    return pa.array(values, pa.string())


def _json_lines(batch: pa.RecordBatch) -> Array:
    fields = []
    for i, name in enumerate(batch.schema.names):
        key = ("{" if i == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":"
        fields.append(pc.binary_join_element_wise(key, _json_values(batch.column(i)), ""))
    if not fields:
        return pa.array(["{}"] * batch.num_rows)
    return pc.binary_join_element_wise(*fields, "}", "")


def _json_values(column: Array) -> Array:
    kind = column.type
    if pa.types.is_nested(kind):
        text = _nested_to_json(column)
    elif pa.types.is_floating(kind):
        text = _json_floats(column)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        text = column.cast(pa.string())
    else:
        text = pc.binary_join_element_wise('"', _escaped(column.cast(pa.string())), '"', "")
    return pc.fill_null(text, "null")


def _json_floats(column: Array) -> Array:
    text = column.cast(pa.string())
    text = pc.if_else(pc.is_nan(column), "NaN", text)
    return pc.replace_substring_regex(text, r"\A(-?)inf\z", r"\1Infinity")


def _escaped(text: Array) -> Array:
    if pc.any(pc.match_substring_regex(text, r'[\\"\x00-\x1f]')).as_py():
        for character, escape in _ESCAPES:
            text = pc.replace_substring(text, character, escape)
    return text
