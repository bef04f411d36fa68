"""JSON lines: one object a line; nested values stay nested, text stays text."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pjson

from trellis.errors import DataError
from trellis.io.failures import reading, reason
from trellis.io.sources import Source

_BLOCK = 16 << 20
_LARGEST = 2.0**63
_ONE_A_LINE = "Write one JSON object a line."


def read_json(source: Source, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file of JSON lines.

    A key that an object lacks is NULL there. Whole numbers are int64, or text where one does not fit and none has a
    fraction; other numbers are float64.

    Parameters
    ----------
    source
        The file.
    columns
        The keys to keep, of those that it has; all where None.

    Returns
    -------
    pyarrow.Table
        One row an object; no columns if the file is empty.

    Raises
    ------
    DataError
        If a line is no JSON object, is no UTF-8, or a key has values of different types.
    """
    with reading(source.path, "JSON lines"):
        table = _read_or_explain(source)
    return table if columns is None else table.select([c for c in columns if c in table.column_names])


def _read_or_explain(source: Source) -> pa.Table:
    try:
        table = _read_twice(source)
        table.validate(full=True)
        return table
    except pa.ArrowInvalid as error:
        if "Empty JSON file" in str(error):
            return pa.table({})
        if "UTF8" in str(error):
            raise
        raise _explain(source, error) from None


def _read_twice(source: Source) -> pa.Table:
    """Read once to see the types, and again if pyarrow would change text to times or long integers to doubles."""
    table = _read(source, [])
    texts = [pa.field(f.name, _with_text(f.type)) for f in table.schema]
    texts = [field for field in texts if field.type != table.schema.field(field.name).type]
    wide = [f.name for f in table.schema if _is_too_wide(table.column(f.name))]
    if wide:
        return _read_wide(source, texts, wide)
    return _read(source, texts) if texts else table


def _read(source: Source, fields: Sequence[pa.Field]) -> pa.Table:
    options = pjson.ParseOptions(explicit_schema=pa.schema(fields) if fields else None)
    with pa.input_stream(str(source.path), compression="gzip" if source.gzip else None) as stream:
        table = pjson.read_json(stream, pjson.ReadOptions(block_size=_BLOCK), options)
    return table


def _with_text(kind: pa.DataType) -> pa.DataType:
    """Return the type with text for the timestamps that pyarrow guessed, at any depth."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_text(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_text(field.type)) for field in kind.fields])
    return kind


def _is_too_wide(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_float64(column.type):
        return False
    finite = column.filter(pc.is_finite(column))
    whole = pc.all(pc.equal(finite, pc.trunc(finite))).as_py()
    return bool(whole) and (pc.max(pc.abs(finite)).as_py() or 0.0) >= _LARGEST


def _read_wide(source: Source, texts: list[pa.Field], wide: list[str]) -> pa.Table:
    decimals = [pa.field(name, pa.decimal128(38, 0)) for name in wide]
    try:
        table = _read(source, texts + decimals)
    except pa.ArrowInvalid:
        return _read(source, texts)
    for name in wide:
        i = table.column_names.index(name)
        table = table.set_column(i, name, table.column(i).cast(pa.string()))
    return table


def _explain(source: Source, error: pa.ArrowInvalid) -> DataError:
    changed = re.search(r"Column\(/(.+?)\) changed from (\w+) to (\w+)", str(error))
    if changed is not None:
        name, one, other = changed.groups()
        what = f"{source.path}: `{name}` has values of different types, {one} and {other}."
        return DataError(what, "Write its values in one type.")
    if "straddl" in str(error):
        return DataError(f"{source.path} holds a line longer than {_BLOCK >> 20} MB.", _ONE_A_LINE)
    number = _bad_line(source)
    said = re.sub(r" in row \d+", "", reason(error))
    if number is None:
        return DataError(f"{source.path} cannot be read as JSON lines: {said}.", _ONE_A_LINE)
    return DataError(f"{source.path}, line {number}: this is no JSON object ({said}).", _ONE_A_LINE)


def _bad_line(source: Source) -> int | None:
    """Return the number of the first line that is no JSON object; pyarrow counts anew in each block."""
    with gzip.open(source.path) if source.gzip else open(source.path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and not _is_object(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line):
                return number
    return None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
