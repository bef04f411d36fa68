"""Event files, read into one Arrow table: `read_table`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa

from trellis.errors import DataError
from trellis.events.columns.arrow import Chunked
from trellis.events.times import java_pattern_to_regex, parse_times, warn_of_zones, with_parsed_times
from trellis.io.columnar import read_orc, read_parquet
from trellis.io.csv_files import read_csv
from trellis.io.failures import check_columns
from trellis.io.infer import infer_column, infer_most, infer_times
from trellis.io.json_lines import read_json
from trellis.io.partitions import as_key, key_types, with_keys
from trellis.io.sources import Paths, Source, expand
from trellis.io.words import numbered, read_words
from trellis.io.xes import read_xes
from trellis.language.schema import TIME_NAMES

__all__ = ["Source", "expand", "parse_times", "read_table"]

_READERS: dict[str, Callable[[Source, Sequence[str] | None], pa.Table]] = {
    "parquet": read_parquet,
    "orc": read_orc,
    "csv": read_csv,
    "tsv": read_csv,
    "json": lambda source, _: read_json(source),
    "xes": read_xes,
    "text": read_words,
}


def read_table(
    paths: Paths,
    *,
    input_format: str | None = None,
    text_columns: Iterable[str] = (),
    time_format: str | None = None,
    time: str | None = None,
    columns: Iterable[str] | None = None,
    delimiter: str | None = None,
) -> pa.Table:
    """Read files of events into one table.

    Parquet and ORC bring their types. The columns of CSV are text at first and then get a type by
    `trellis.io.infer.infer_column`; in JSON only text that tells times does (`infer_times`). Both look at the
    values of all files together. Without any row the columns of CSV are of type null, which goes with every condition,
    and JSON has none.

    Parameters
    ----------
    paths
        Files, directories or globs, as `expand` takes them.
    input_format
        The format of all files; without one, their extensions tell.
    text_columns
        Columns that stay text in CSV, and become text in JSON.
    time_format
        The pattern of the text in the column `time`; see `parse_times`.
    time
        The column of times. If it is text, it becomes timestamps (in CSV perhaps numbers), with NULL for what
        does not fit: always with a `time_format`, otherwise if more than half of its values fit.
    columns
        The columns to keep, in this order; all where None.
    delimiter
        What stands between the fields of CSV; without one, the header tells (`trellis.io.csv_files.delimiter_of`).

    Returns
    -------
    pyarrow.Table
        The rows of all files, one after the other. The order of columns is that of the first file.

    Raises
    ------
    DataError
        If a file is missing or cannot be read, or the files do not fit together.
    UsageError
        If an option is wrong.
    """
    if time_format is not None:
        java_pattern_to_regex(time_format)
    sources = [source.separated_by(delimiter) for source in expand(paths, input_format)]
    wanted = None if columns is None else list(dict.fromkeys(columns))
    table = concat(sources, [_read(source, wanted) for source in sources], wanted)
    if sources[0].format == "text":
        return numbered(table)
    texts = frozenset(text_columns)
    return _typed(_typed_keys(table, sources, texts), sources[0].format, texts, time, time_format)


def _read(source: Source, wanted: Sequence[str] | None) -> pa.Table:
    """Read a file, with the columns that its folders say."""
    keys = source.keys
    here = wanted if wanted is None else [name for name in wanted if name not in keys]
    return with_keys(_READERS[source.format](source, here), keys)


def _typed_keys(table: pa.Table, sources: Sequence[Source], texts: frozenset[str]) -> pa.Table:
    """Give the columns that folders say the type that all their values have, in whatever format the files are."""
    for name, kind in key_types(source.keys for source in sources).items():
        if name in table.column_names and name not in texts:
            place = table.column_names.index(name)
            table = table.set_column(place, name, as_key(table.column(place), kind))
    return table


def concat(sources: Sequence[Source], tables: Sequence[pa.Table], wanted: Sequence[str] | None) -> pa.Table:
    """Return the tables of several files as one, or say which file does not fit."""
    if sources[0].format == "json":
        names = list(dict.fromkeys(name for table in tables for name in table.column_names))
        if not names:  # and no objects, so that nothing is known of columns
            return pa.table({name: pa.nulls(0) for name in wanted or ()})
        check_columns(sources[0].path, names, wanted)
    else:
        names = tables[0].column_names
        tables = [table.rename_columns(common_names(names, table.column_names)) for table in tables]
        for source, table in zip(sources, tables, strict=True):
            _check_same_names(sources[0], names, source, table.column_names)
    table = _stack(sources, tables)
    return table.select(names if wanted is None else wanted).replace_schema_metadata(None)


def common_names(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the names of a file's columns as the first file spells them, where they differ in case alone."""
    spelt = {name.casefold(): name for name in names}
    if len(spelt) < len(names) or len({name.casefold() for name in others}) < len(others):
        return list(others)  # case tells columns apart
    return [spelt.get(name.casefold(), name) for name in others]


def _check_same_names(first: Source, names: Collection[str], other: Source, others: Collection[str]) -> None:
    hint = (
        "All files of one table must have the same columns: add it, or give a data frame that you have read yourself."
    )
    for name in names:
        if name not in others:
            raise DataError(f"{other.path} has no column `{name}`, which {first.path} has.", hint)
    for name in others:
        if name not in names:
            raise DataError(f"{first.path} has no column `{name}`, which {other.path} has.", hint)


def _stack(sources: Sequence[Source], tables: Sequence[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _clash(sources, tables, error) from None


def _clash(sources: Sequence[Source], tables: Sequence[pa.Table], error: Exception) -> DataError:
    hint = "Write the column with one type in all files."
    first_seen: dict[str, tuple[Source, pa.DataType]] = {}
    for source, table in zip(sources, tables, strict=True):
        for field in table.schema:
            first, kind = first_seen.setdefault(field.name, (source, field.type))
            if not _fit(kind, field.type):
                what = f"Column `{field.name}` is {kind} in {first.path} and {field.type} in {source.path}."
                return DataError(what, hint)
    return DataError(f"The files from {sources[0].path} on do not fit together: {error}.", hint)


def _fit(one: pa.DataType, other: pa.DataType) -> bool:
    try:
        pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def _typed(
    table: pa.Table, file_format: str, text_columns: frozenset[str], time: str | None, time_format: str | None
) -> pa.Table:
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        text = column
        if name == time:
            column = _time_column(column, file_format, time_format)
            table = with_parsed_times(table, name, column)
        elif file_format in ("csv", "tsv"):
            column = infer_column(column) if name not in text_columns and _is_text(column.type) else column
        elif file_format == "json":
            column = _json_column(column, name in text_columns)
        if name != time:
            table = table.set_column(i, name, column)
        is_time = name == time if time is not None else name in TIME_NAMES
        if is_time and time_format is None and _is_text(text.type):
            warn_of_zones(text, column, name)
    return table


def _time_column(column: Chunked, file_format: str, time_format: str | None) -> Chunked:
    is_text = _is_text(column.type)
    if time_format is not None and (is_text or pa.types.is_integer(column.type)):
        return pa.chunked_array([parse_times(column.cast(pa.string()), time_format)])
    if not is_text:
        return column
    column = column.cast(pa.string())
    if file_format not in ("csv", "tsv"):
        return infer_most(column, numbers=False)
    typed = infer_column(column)
    return infer_most(column, numbers=True) if pa.types.is_string(typed.type) else typed


def _json_column(column: Chunked, as_text: bool) -> Chunked:
    if pa.types.is_null(column.type) and not len(column):
        return column
    if pa.types.is_null(column.type) or (as_text and not pa.types.is_nested(column.type)):
        return column.cast(pa.string())
    return infer_times(column) if _is_text(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
