"""Columns as JSON text, whole columns at a time: one form of values for JSON files, arrays in CSV and `--json`."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = {chr(i): json.dumps(chr(i))[1:-1] for i in range(32)}
_ESCAPES = {"\\": "\\\\", '"': '\\"', **_CONTROL}


def json_values(column: pa.Array) -> pa.Array:
    """Return every value of a column as JSON; NULL is `null`.

    Times are ISO 8601 in UTC with microseconds, dates too, decimals are numbers, NaN and infinities strings, durations
    whole microseconds.
    """
    if pa.types.is_list(column.type):
        return _lists(column)
    return pc.fill_null(_scalars(column), "null")


def _scalars(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _quoted(_escaped(column.cast(pa.string())))
    if pa.types.is_timestamp(type_):
        return _quoted(time_text(column))
    if pa.types.is_date(type_):
        return _quoted(column.cast(pa.string()))
    if pa.types.is_duration(type_):
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_floating(type_):
        text = column.cast(pa.string())
        return pc.if_else(pc.is_finite(column), text, _quoted(_spelled(column)))
    return column.cast(pa.string())


def time_text(column: pa.Array) -> pa.Array:
    """Return timestamps as `2024-01-31T09:30:00.000000Z`; without the `Z` where they have no zone.

    Those in seconds have no fraction.
    """
    zone = "Z" if column.type.tz is not None else ""
    unit: Any = "s" if column.type.unit == "s" else "us"
    return pc.strftime(column.cast(pa.timestamp(unit)), format=f"%Y-%m-%dT%H:%M:%S{zone}")


def _spelled(column: pa.Array) -> pa.Array:
    endless = pc.if_else(pc.greater(column, 0), "Infinity", "-Infinity")
    return pc.if_else(pc.is_nan(column), "NaN", endless)


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _escaped(text: pa.Array) -> pa.Array:
    for sign, escape in _ESCAPES.items():
        text = pc.replace_substring(text, sign, escape)
    return text


def _lists(column: pa.Array) -> pa.Array:
    values = json_values(column.flatten())
    sizes = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(sizes.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends]) if len(column) else pa.array([0], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, values), ",")
    text = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(pc.is_valid(column), text, "null")


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return every row as one JSON object."""
    if not batch.num_columns:
        return pa.array(["{}"] * batch.num_rows)
    parts: list[pa.Array | str] = []
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [("{" if i == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":", json_values(column)]
    return pc.binary_join_element_wise(*parts, "}", "")
