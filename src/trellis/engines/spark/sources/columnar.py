"""Parquet and ORC files on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.session.raised import raise_data_error
from trellis.engines.spark.sources.loading import FileJob, check_together, column_of, load
from trellis.engines.spark.sources.text_kinds import with_times
from trellis.errors import DataError
from trellis.io import read as local
from trellis.io.columnar import parquet_schema
from trellis.io.failures import reading
from trellis.io.sources import Source

_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "UCT", "Universal")
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def read_columnar(job: FileJob) -> DataFrame:
    """Return the rows of Parquet or ORC files, with the types that the local engine gives them."""
    schemas = [_arrow_schema(source) for source in job.sources]
    check_together(job, schemas)
    alike: dict[str, list[int]] = {}
    for i, schema in enumerate(schemas):
        alike.setdefault(str(schema.remove_metadata()), []).append(i)
    names = schemas[0].names
    parts = [_columnar_part(job, [job.sources[i] for i in group], schemas[group[0]], names) for group in alike.values()]
    return with_times(job, reduce(DataFrame.unionByName, parts))


def _arrow_schema(source: Source) -> pa.Schema:
    if source.format == "parquet":
        return parquet_schema(source)
    with reading(source.path, "ORC"):
        return orc.ORCFile(source.path).schema


def _columnar_part(job: FileJob, sources: Sequence[Source], schema: pa.Schema, names: Sequence[str]) -> DataFrame:
    if job.format == "parquet" and any(_is_nanos(field.type) for field in schema):
        job.spark.conf.set(_NANOS_AS_LONG, "true")
    if job.format == "orc" and any(pa.types.is_timestamp(field.type) and field.type.tz is None for field in schema):
        _check_zone_of_java(job)
    frame = load(job, lambda: job.spark.read.format(job.format), sources, None)
    keys = sources[0].keys
    fields = [field for field in schema if field.name not in keys]
    columns = [_converted(field) if job.format == "parquet" else column_of(field.name) for field in fields]
    spelt = local.common_names(names, [field.name for field in fields])
    return frame.select(
        *(column.alias(name) for column, name in zip(columns, spelt, strict=True)), *map(column_of, keys)
    )


def _check_zone_of_java(job: FileJob) -> None:
    """Refuse to read times without a zone from ORC where Spark would not take them for times in UTC."""
    zone = f.call_function("java_method", f.lit("java.time.ZoneId"), f.lit("systemDefault"))
    row = job.spark.range(1).select(zone).first()
    assert row is not None
    if row[0] not in _UTC:
        raise DataError(
            f"{job.sources[0].path} has times without a zone, which Spark reads from ORC in the zone of its Java, "
            f"{row[0]}, and not in UTC",
            "Put -Duser.timezone=UTC into spark.driver.extraJavaOptions and spark.executor.extraJavaOptions, or use "
            "Parquet or the local engine.",
        )


def _is_nanos(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def _converted(field: pa.Field[Any]) -> Column:
    """Return a column of Parquet in its own type where Spark takes it for an integer."""
    column = column_of(field.name)
    if _is_nanos(field.type):
        return f.when(column % 1_000 != 0, _too_fine("timestamp")).otherwise(f.timestamp_micros(_floor(column, 1_000)))
    if pa.types.is_duration(field.type):
        return _interval(column, field.type.unit)
    return column


def _too_fine(what: str) -> Column:
    return raise_data_error(f"a {what} is finer than microseconds", "Round it to microseconds first.")


def _floor(column: Column, divisor: int) -> Column:
    return ((column - f.pmod(column, f.lit(divisor))) / f.lit(divisor)).cast("bigint")


def _interval(column: Column, unit: str) -> Column:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    exact = column.cast("decimal(19,0)") / f.lit(per_second).cast("decimal(10,0)")
    seconds = t.DayTimeIntervalType(t.DayTimeIntervalType.SECOND, t.DayTimeIntervalType.SECOND)
    interval = exact.cast("decimal(19,6)").cast(seconds).cast(t.DayTimeIntervalType())
    return f.when(column % 1_000 != 0, _too_fine("duration")).otherwise(interval) if unit == "ns" else interval
