"""Events as Spark data frames, from whatever they come in, with the types and times that the local engine sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.columns.types import from_arrow, normalise
from trellis.errors import DataError, UsageError
from trellis.events import TYPE, as_tables, check_names
from trellis.language.schema import TIMESTAMP, Kind, Type, choose_time
from trellis.spark.compile import time_column
from trellis.spark.read import read
from trellis.spark.schema import from_spark, parse_times
from trellis.spark.session import get_session
from trellis.trends.output import arrow_type, present

Frames = dict[str | None, DataFrame]


def read_frames(data: Any, spark: SparkSession | None, time: str | None) -> tuple[Frames, str]:
    """Return events as data frames, by type where several are given, and the name of the time column.

    Parameters
    ----------
    data
        A Spark, pandas or polars frame, an Arrow table, a path or several, or a dictionary of these by type.
    spark
        The session for what is no Spark frame yet.
    time
        The time column, if it is known; text in it becomes timestamps.
    """
    if isinstance(data, Mapping) and not data:
        raise UsageError("no table of events was given")
    tables = data if isinstance(data, Mapping) else {None: data}
    frames = {None if name is None else str(name): _frame(table, spark, time) for name, table in tables.items()}
    chosen = choose_time(next(iter(frames.values())).columns, time)
    return {name: _with_readable_times(frame, chosen) for name, frame in frames.items()}, chosen


def _frame(data: Any, spark: SparkSession | None, time: str | None) -> DataFrame:
    if data.__class__.__module__.startswith("pyspark."):
        check_names(data.columns)
        return data
    paths = [data] if isinstance(data, str | os.PathLike) else data
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | os.PathLike) for p in paths):
        return read(spark or get_session(), paths, time=time)
    table = _for_spark(as_tables(data)[None])
    return (spark or get_session()).createDataFrame(table)


_KNOWN_TO_SPARK = (
    pa.types.is_signed_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean, pa.types.is_string,
    pa.types.is_large_string, pa.types.is_date32, pa.types.is_decimal128, pa.types.is_null,
)  # fmt: skip


def _for_spark(table: pa.Table) -> pa.Table:
    """Give columns types that Spark has; a time gets the zone UTC, and must not be finer than microseconds."""
    for i, field in enumerate(table.schema):
        kind = from_arrow(field.type)
        if kind.kind is not Kind.OTHER and not any(known(field.type) for known in _KNOWN_TO_SPARK):
            table = table.set_column(i, field.name, present(normalise(table[field.name], kind), arrow_type(kind)))
    return table.replace_schema_metadata(None)


def _with_readable_times(frame: DataFrame, time: str) -> DataFrame:
    if time not in frame.columns or not isinstance(frame.schema[time].dataType, t.StringType):
        return frame
    return frame.withColumn(time, parse_times(f.col(_quoted(time)).cast(t.StringType())))


def union(frames: Frames) -> DataFrame:
    """Return all frames as one; a column that a frame does not have is NULL there, `TYPE` tells the frame."""
    if None in frames:
        return frames[None]
    _check_types(frames)
    named = [
        _in_utc(frame).withColumn(TYPE, f.lit(name))
        for name, frame in sorted(frames.items(), key=lambda item: str(item[0]).encode())
    ]
    whole = named[0]
    for frame in named[1:]:
        whole = whole.unionByName(frame, allowMissingColumns=True)
    return whole


def _check_types(frames: Frames) -> None:
    """Refuse columns of one name that have nothing in common: Spark would cast them, or fail while it works."""
    seen: dict[str, Type] = {}
    for field in (field for frame in frames.values() for field in frame.schema.fields):
        kind = from_spark(field.dataType)
        before = seen.setdefault(field.name, kind)
        alike = before.kind is kind.kind or (before.numeric and kind.numeric)
        if not alike and Kind.UNKNOWN not in (before.kind, kind.kind):
            raise DataError(
                f"the tables do not fit together: `{field.name}` is {before.described()} and {kind.described()}",
                "Rename one of the two columns.",
            )


def _in_utc(frame: DataFrame) -> DataFrame:
    """Make timestamps of those without a zone, so that Spark does not do it in the zone of the session."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.TimestampNTZType):
            micros = time_column(f.col(_quoted(field.name)), TIMESTAMP)
            frame = frame.withColumn(field.name, f.timestamp_micros(micros))
    return frame


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
