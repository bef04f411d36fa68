"""Directories partitioned as Hive and Spark do it: the folders `COLUMN=VALUE` say columns that are in no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from trellis.events.columns.arrow import pc
from trellis.io.infer import infer_column

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The value of NULL in the name of a folder."""

_DAY = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"


def keys_between(root: Path, path: Path) -> dict[str, str | None]:
    """Return the columns that the folders between a directory and a file in it say, with their values as text."""
    folders = path.parent.parts[len(root.parts) :]
    split = [folder.partition("=") for folder in folders]
    return {unquote(name): _value(value) for name, equals, value in split if equals and name}


def _value(text: str) -> str | None:
    return None if text == NO_VALUE else unquote(text)


def with_keys(table: pa.Table, keys: Mapping[str, str | None]) -> pa.Table:
    """Return the rows of a file with the columns that its folders say, as text; they win over those in the file."""
    for name, value in keys.items():
        column = pa.repeat(pa.scalar(value, pa.string()), table.num_rows)
        if name in table.column_names:
            table = table.drop_columns(name)
        table = table.append_column(name, column)
    return table


def key_types(files: Iterable[Mapping[str, str | None]]) -> dict[str, pa.DataType]:
    """Return the types of the columns that folders say: dates where all values are days, else as in CSV."""
    values: dict[str, list[str | None]] = {}
    for keys in files:
        for name, value in keys.items():
            values.setdefault(name, []).append(value)
    return {name: _typed(pa.chunked_array([texts], pa.string())).type for name, texts in values.items()}


def as_key(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column that folders say in its type."""
    return _typed(column).cast(kind)


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    typed = infer_column(column)
    days = pc.all(pc.match_substring_regex(column, _DAY)).as_py()
    return typed.cast(pa.date32()) if pa.types.is_timestamp(typed.type) and days else typed
