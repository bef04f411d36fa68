"""CSV, read as text: an empty field is NULL, a quoted empty one an empty string."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from trellis.errors import DataError
from trellis.events.columns.arrow import pc
from trellis.io.failures import check_columns, reading
from trellis.io.infer import COMMA
from trellis.io.sources import Source, open_source
from trellis.io.spreadsheets import unguard_name, unguard_text

pcsv: Any = pyarrow.csv  # its stubs do not know the newest options
_BLOCK = 16 << 20
_HEADER = 1 << 16  # bytes in which a header ends
_DELIMITERS = (";", "\t", "|")
_NUMBER = r"\A-?(0|[1-9][0-9]*)(,[0-9]+)?\z"
_ROWS_COUNTED = "The header is row 1; empty lines are not counted."


def read_csv(source: Source, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a CSV or TSV file with a header; every column is text.

    A column without a name is called `_c0`, `_c1`, ... after its position, as on Spark. Guards against formulas are
    taken away; see `trellis.io.spreadsheets`.

    Returns
    -------
    pyarrow.Table
        All columns are strings.

    Raises
    ------
    DataError
        If it is empty, is no UTF-8, a row has too few or too many fields, or a name comes twice in the
        header.
    """
    kind = source.format.upper()
    try:
        with reading(source.path, kind):
            table = _named(_read_or_explain(source))
    except DataError as error:
        raise _long_row(source) if "straddl" in error.what else error from None
    names = table.column_names
    _check_unique(source, names)
    _check_quotes(source, table)
    check_columns(source.path, names, columns)
    table = table if columns is None else table.select(list(columns))
    texts = [unguard_text(column) for column in table.columns]
    if delimiter_of(source) != ",":
        texts = [_with_points(column) for column in texts]
    return pa.table(texts, names=table.column_names)


def delimiter_of(source: Source) -> str:
    """Return the sign between the fields of a file: as the user says, a tab in TSV, and in CSV as the header tells.

    A header without a comma, but with semicolons, tabs or bars, has these between its names.
    """
    if source.delimiter is not None:
        return source.delimiter
    if source.format == "tsv":
        return "\t"
    with open_source(source) as stream:
        header = re.sub(rb'"[^"]*"', b"", stream.read(_HEADER).split(b"\n", 1)[0])
    if b"," in header:
        return ","
    most = max(_DELIMITERS, key=lambda sign: header.count(sign.encode()))
    return most if most.encode() in header else ","


def _with_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers with a point where all values of a column are numbers and some have a comma for it."""
    values = column.drop_null()
    if not pc.any(pc.match_substring_regex(values, COMMA)).as_py():
        return column
    if not pc.all(pc.match_substring_regex(values, _NUMBER)).as_py():
        return column
    return pc.replace_substring(column, ",", ".")


def _read_or_explain(source: Source) -> pa.Table:
    try:
        return _read(source, open_source(source))
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return _header_only(source)
        if re.search(r"Expected \d+ columns, got \d+", str(error)):
            raise _uneven_row(source) from None
        raise


def _read(source: Source, stream: Any, **parse: object) -> pa.Table:
    # A handler of invalid rows gets their numbers only without threads.
    table: pa.Table = pcsv.read_csv(
        stream,
        read_options=pcsv.ReadOptions(block_size=_BLOCK, use_threads="invalid_row_handler" not in parse),
        parse_options=pcsv.ParseOptions(delimiter=delimiter_of(source), newlines_in_values=True, **parse),
        convert_options=pcsv.ConvertOptions(
            default_column_type=pa.string(),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    return table


def _named(table: pa.Table) -> pa.Table:
    return table.rename_columns([unguard_name(name) or f"_c{i}" for i, name in enumerate(table.column_names)])


def _header_only(source: Source) -> pa.Table:
    """Read a file that pyarrow calls empty: it is, or it is one line without an end."""
    with open_source(source) as stream:
        content = stream.read().removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
    if not content.strip():
        raise DataError(f"{source.path} is empty: no header.", "A CSV file begins with a line of column names.")
    return _read(source, pa.BufferReader(content + b"\n"))


def _uneven_row(source: Source) -> DataError:
    rows: list[pcsv.InvalidRow] = []

    def keep(row: pcsv.InvalidRow) -> str:
        rows.append(row)
        return "skip"

    _read(source, open_source(source), invalid_row_handler=keep)
    row = rows[0]
    fields = "1 field" if row.actual_columns == 1 else f"{row.actual_columns} fields"
    what = f"{source.path}, row {row.number}: it has {fields}, but the header has {row.expected_columns}."
    return DataError(what, _ROWS_COUNTED)


def _long_row(source: Source) -> DataError:
    what = f"{source.path} holds a row longer than {_BLOCK >> 20} MB."
    return DataError(what, "Perhaps a quotation mark is opened and never closed.")


def _check_quotes(source: Source, table: pa.Table) -> None:
    """Refuse a quotation mark that is never closed: it would swallow rows without a word."""
    broken = [pc.index(pc.match_substring(column, "\n"), True).as_py() for column in table.columns]
    rows = [row for row in broken if row >= 0]
    if rows and _count_quotes(source) % 2:
        what = f"{source.path} holds a quotation mark that is not closed, perhaps in row {min(rows) + 2}."
        raise DataError(what, _ROWS_COUNTED)


def _count_quotes(source: Source) -> int:
    with open_source(source) as stream:
        return sum(block.count(b'"') for block in iter(lambda: stream.read(_BLOCK), b""))


def _check_unique(source: Source, names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise DataError(f"The header of {source.path} names `{name}` {times} times.", "Rename one of them.")
