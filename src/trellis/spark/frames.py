"""Events as Spark data frames, from whatever they come in, with the types and times that the local engine sees."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.errors import UsageError
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.tables import as_tables, check_names, refuse_type_column
from trellis.language.schema import TIMESTAMP, TYPE, Kind, choose_time
from trellis.results.rows import arrow_type, present
from trellis.spark.compile import time_column
from trellis.spark.read import read
from trellis.spark.schema import parse_times
from trellis.spark.session import get_session
from trellis.spark.ship import ship

Frames = dict[str | None, DataFrame]


class Events:
    """A frame of events whose columns are told by place: their names never get into Spark's expressions.

    Attributes
    ----------
    frame
        The rows, with columns that have names of their own.
    types
        The types of the columns by the names that they have for the user.
    """

    def __init__(self, frame: DataFrame) -> None:
        self.types = {fld.name: fld.dataType for fld in frame.schema.fields}
        self._places = {name: f"e{i}" for i, name in enumerate(frame.columns)}
        self.frame = frame.toDF(*self._places.values())

    def column(self, name: str) -> Column:
        """Return a column by its name for the user."""
        return f.col(self._places[name])

    def where(self, condition: Column) -> Events:
        """Return the events that meet a condition."""
        other = copy(self)
        other.frame = self.frame.where(condition)
        return other


def read_frames(data: Any, spark: SparkSession | None, time: str | None) -> tuple[Frames, str]:
    """Return events as data frames, by type where several are given, and the name of the time column.

    The workers of their session are sent Trellis where they may not have it.

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
    first = next(iter(frames.values()))
    ship(first.sparkSession)
    chosen = choose_time(first.columns, time)
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
    return _changed(frame, lambda name, _: name == time, lambda column: parse_times(column.cast(t.StringType())))


def _changed(
    frame: DataFrame, concerns: Callable[[str, t.DataType], bool], change: Callable[[Column], Column]
) -> DataFrame:
    """Return a frame with some columns changed, told by place: names may differ only in case."""
    events = Events(frame)
    columns = [
        change(events.column(name)) if concerns(name, type_) else events.column(name)
        for name, type_ in events.types.items()
    ]
    return events.frame.select(*columns).toDF(*frame.columns)


def union(frames: Frames) -> DataFrame:
    """Return all frames as one; a column that a frame does not have is NULL there, `TYPE` tells the frame."""
    if None in frames:
        return frames[None]
    names = list(dict.fromkeys(n for _, frame in _in_order(frames) for n in frame.columns))
    refuse_type_column(names)
    whole: DataFrame | None = None
    for type_, frame in _in_order(frames):
        events = Events(_in_utc(frame))
        columns = [events.column(n) if n in events.types else f.lit(None) for n in names]
        part = events.frame.select(*(c.alias(f"e{i}") for i, c in enumerate(columns)), f.lit(type_).alias("type"))
        whole = part if whole is None else whole.union(part)
    assert whole is not None
    return whole.toDF(*names, TYPE)


def _in_order(frames: Frames) -> list[tuple[str | None, DataFrame]]:
    return sorted(frames.items(), key=lambda item: str(item[0]).encode())


def _in_utc(frame: DataFrame) -> DataFrame:
    """Make timestamps of those without a zone, so that Spark does not do it in the zone of the session."""
    if not any(isinstance(fld.dataType, t.TimestampNTZType) for fld in frame.schema.fields):
        return frame
    return _changed(
        frame,
        lambda _, type_: isinstance(type_, t.TimestampNTZType),
        lambda column: f.timestamp_micros(time_column(column, TIMESTAMP)),
    )
