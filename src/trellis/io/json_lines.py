"""JSON lines: one object a line; nested values stay nested, text stays text."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.json

from trellis.errors import DataError
from trellis.events.columns.arrow import Chunked, pc
from trellis.io.failures import reading, reason
from trellis.io.sources import Source, open_source

pjson: Any = pyarrow.json
_BLOCK = 16 << 20
_LARGEST = 2.0**63
_LARGEST_DECIMAL = 1e38
_ONE_PER_LINE = "Write one JSON object per line."


def read_json(source: Source) -> pa.Table:
    """Read a file of JSON lines.

    A key that an object lacks is NULL there. Whole numbers are int64, or text where one does not fit and none
    has a fraction; other numbers are float64.

    Returns
    -------
    pyarrow.Table
        One row an object; no columns if the file is empty.

    Raises
    ------
    DataError
        If a line is not a JSON object, is not UTF-8, or a key has values of different types.
    """
    with reading(source.path, "JSON lines"):
        return _read_or_explain(source)


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
    """Read once to see the types, and again if pyarrow made times of text or doubles of long integers."""
    table = _read(source, [])
    texts = [pa.field(f.name, _with_text(f.type)) for f in table.schema]
    texts = [field for field in texts if field.type != table.schema.field(field.name).type]
    wide = [f.name for f in table.schema if _is_wide(table.column(f.name)) and _all_whole(source, f.name)]
    if not texts and not wide:
        return table
    decimals = [pa.field(name, pa.decimal128(38, 0)) for name in wide]
    again = _read(source, texts + decimals).select(table.column_names)
    return again.cast(pa.schema([pa.field(f.name, pa.string()) if f.name in wide else f for f in again.schema]))


def _read(source: Source, fields: Sequence[Any]) -> pa.Table:
    options = pjson.ParseOptions(explicit_schema=pa.schema(fields) if fields else None)
    with open_source(source) as stream:
        table: pa.Table = pjson.read_json(stream, pjson.ReadOptions(block_size=_BLOCK), options)
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


def _is_wide(column: Chunked) -> bool:
    """Tell whether doubles may stand for integers that do not fit 64 bits."""
    if not pa.types.is_float64(column.type):
        return False
    finite = column.filter(pc.is_finite(column))
    whole = pc.all(pc.equal(finite, pc.trunc(finite))).as_py()
    return bool(whole) and _LARGEST <= (pc.max(pc.abs(finite)).as_py() or 0.0) < _LARGEST_DECIMAL


def _all_whole(source: Source, name: str) -> bool:
    """Tell whether all numbers of a key are written without a point or exponent; slow, and seldom needed."""
    try:
        return not any(isinstance(json.loads(line).get(name), float) for _, line in _lines(source))
    except ValueError:
        return False


def _explain(source: Source, error: pa.ArrowInvalid) -> DataError:
    changed = re.search(r"Column\(/(.+?)\) changed from (\w+) to (\w+)", str(error))
    if changed is not None:
        name, one, other = changed.groups()
        what = f"{source.path}: `{name}` has values of different types, {one} and {other}."
        return DataError(what, "Write its values in one type.")
    twice = re.search(r"Column\(/(.+?)\) was specified twice", str(error))
    if twice is not None:
        return DataError(f"{source.path}: `{twice.group(1)}` comes twice in one object.", "Rename one of them.")
    if "straddl" in str(error):
        return DataError(f"{source.path} holds a line longer than {_BLOCK >> 20} MB.", _ONE_PER_LINE)
    number = next((number for number, line in _lines(source) if not _is_object(line)), None)
    if number is not None:
        return DataError(f"{source.path}, line {number}: this is not a JSON object.", _ONE_PER_LINE)
    said = re.sub(r" in row \d+", "", reason(error))
    return DataError(f"{source.path} cannot be read as JSON lines: {said.rstrip('.')}.", _ONE_PER_LINE)


def _lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Give the lines that are not empty, with their numbers (pyarrow counts anew in each block)."""
    with gzip.open(source.path) if source.gzip else open(source.path, "rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield number, text


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
