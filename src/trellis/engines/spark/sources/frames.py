"""Events as Spark data frames, from whatever they come in, with the types and times that the local engine sees."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.options import RunOptions
from trellis.engines.spark.session.raised import SPARK_ERRORS
from trellis.engines.spark.session.session import get_session
from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.sources.read import read
from trellis.engines.spark.sources.schema import (
    WITHOUT_ZONE,
    from_spark,
    looks_like_time,
    parse_times,
    time_type,
    timestamp_micros,
)
from trellis.engines.spark.sources.text_kinds import survey
from trellis.errors import UsageError
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.source import EventSource, is_spark_frame, paths_of
from trellis.events.tables import as_tables, check_names, refuse_type_column, with_common_types
from trellis.language.schema import TIMESTAMP, TYPE, Kind, Schema, Table, choose_time
from trellis.results.rows import arrow_type
from trellis.results.taken import present

Frames = dict[str | None, DataFrame]


class EventFrame:
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

    def watched(self, observation: Any, metrics: list[Column]) -> EventFrame:
        """Return the events with metrics that Spark observes while they are read, whatever is done with them."""
        other = copy(self)
        other.frame = self.frame.observe(observation, *metrics)
        return other

    def where(self, condition: Column) -> EventFrame:
        """Return the events that meet a condition."""
        other = copy(self)
        other.frame = self.frame.where(condition)
        return other


def give_accessor(accessor: Callable[[DataFrame], Any]) -> None:
    """Give all data frames, those of Spark Connect too, the attribute `trellis`."""
    DataFrame.trellis = property(accessor)  # type: ignore[attr-defined]


def input_files(events: EventFrame) -> list[str]:
    """Return the files that a frame of events is read from, as addresses; none where Spark does not know them."""
    with suppress(*SPARK_ERRORS):
        return list(events.frame.inputFiles())
    return []


def _frame(data: Any, spark: SparkSession | None, time: str | None) -> DataFrame:
    if is_spark_frame(data):
        check_names(data.columns)
        return data
    paths = paths_of(data)
    if paths is not None:
        return read(spark or get_session(), paths, time=time)
    return frame_of(as_tables(data)[None], spark)


def frame_of(table: pa.Table, spark: SparkSession | None = None) -> DataFrame:
    """Return an Arrow table as a data frame of a session: the one given, the active one, or a new local one."""
    rows = _for_spark(table)
    return (spark or get_session()).createDataFrame(rows, from_arrow_schema(rows.schema))


def _with_fields(frame: DataFrame) -> DataFrame:
    """Return a frame with the fields of structs as columns, at any depth: `address.city` for a field of `address`."""
    if not any(isinstance(field.dataType, t.StructType) for field in frame.schema.fields):
        return frame
    events = EventFrame(frame)
    columns = [one for name, type_ in events.types.items() for one in _fields(name, type_, events.column(name))]
    names = [name for name, _ in columns]
    check_names(names)
    return events.frame.select(*(column.alias(f"e{i}") for i, (_, column) in enumerate(columns))).toDF(*names)


def _fields(name: str, type_: t.DataType, column: Column) -> list[tuple[str, Column]]:
    if not isinstance(type_, t.StructType):
        return [(name, column)]
    inner = [(f"{name}.{field.name}", field.dataType, column.getField(field.name)) for field in type_.fields]
    return [one for field in inner for one in _fields(*field)]


_KNOWN_TO_SPARK = (
    pa.types.is_signed_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean, pa.types.is_string,
    pa.types.is_large_string, pa.types.is_date32, pa.types.is_decimal128, pa.types.is_null,
)  # fmt: skip


def _for_spark(table: pa.Table) -> pa.Table:
    """Give columns types that Spark has; times with a zone are in UTC, and none is finer than microseconds."""
    for i, field in enumerate(table.schema):
        kind = from_arrow(field.type)
        if kind.kind is not Kind.OTHER and not any(known(field.type) for known in _KNOWN_TO_SPARK):
            table = table.set_column(i, field.name, present(normalise(table[field.name], kind), arrow_type(kind)))
    return table.replace_schema_metadata(None)


def _with_readable_times(frame: DataFrame, time: str, naive_text: bool) -> DataFrame:
    if time not in frame.columns or not isinstance(frame.schema[time].dataType, t.StringType):
        return frame
    naive = naive_text if frame.isStreaming else _tells_no_zone(frame, time)
    return _changed(
        frame, lambda name, _: name == time, lambda column: parse_times(column.cast(t.StringType()), naive=naive)
    )


def _tells_no_zone(frame: DataFrame, time: str) -> bool:
    """Return whether no text of the time column has a zone, which is the one question that only the rows answer."""
    kinds = EventFrame(frame)
    text = kinds.column(time).cast(t.StringType())
    found, _ = survey(kinds.frame.select(looks_like_time(text).alias(time)), time)
    return time_type(found[time].seen) == WITHOUT_ZONE


def _changed(
    frame: DataFrame, concerns: Callable[[str, t.DataType], bool], change: Callable[[Column], Column]
) -> DataFrame:
    """Return a frame with some columns changed, told by place: names may differ only in case."""
    events = EventFrame(frame)
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
        events = EventFrame(_in_utc(frame))
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
        lambda column: f.timestamp_micros(timestamp_micros(column, TIMESTAMP)),
    )


def described_events(
    source: EventSource, spark: SparkSession | None, options: RunOptions, fields: bool = False, naive_text: bool = True
) -> tuple[DataFrame, Schema]:
    """Return events as one frame, and what is known of their columns.

    The workers of their session are sent Trellis where they may not have it.

    Parameters
    ----------
    source
        The events as they were given.
    spark
        The session for what is no Spark frame yet.
    options
        The options of the run: the columns of time, type and id. Text in the time column becomes timestamps.
    fields
        Whether the fields of structs become columns: see `trellis.events.tables.with_fields`.
    naive_text
        Whether text in the time column of a stream becomes timestamps without a zone: its rows are still to come.
    """
    frames = {name: _frame(table, spark, options.time) for name, table in source.tables.items()}
    frames = {name: _with_fields(frame) for name, frame in frames.items()} if fields else frames
    first = next(iter(frames.values()))
    ship(first.sparkSession)
    time = choose_time(first.columns, options.time)
    frames = {name: _with_readable_times(frame, time, naive_text) for name, frame in frames.items()}
    tables = tuple(
        Table(name, {fld.name: from_spark(fld.dataType) for fld in frame.schema.fields})
        for name, frame in frames.items()
    )
    if tables[0].type is not None and options.type is not None:
        raise UsageError("types come from several tables and from a column", "Leave out one of the two.")
    schema = with_common_types(Schema(tables, time, options.type, options.event_id, options.tie_breakers))
    events = union(frames)
    if tables[0].type is not None:  # decimals may have got wider
        common = {fld.name: from_spark(fld.dataType) for fld in events.schema.fields}
        schema = replace(
            schema,
            tables=tuple(
                Table(tb.type, {n: replace(common[n], naive=type_.naive) for n, type_ in tb.columns.items()})
                for tb in schema.tables
            ),
        )
    return events, schema
