"""A directory that keeps growing, as a streaming data frame of events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from trellis.engines.spark.session.raised import SPARK_ERRORS
from trellis.engines.spark.sources.csv_files import unguarded
from trellis.engines.spark.sources.frames import EventFrame
from trellis.engines.spark.sources.loading import spark_path
from trellis.engines.spark.sources.read import read
from trellis.engines.spark.sources.schema import parse_times
from trellis.errors import DataError, UsageError
from trellis.events.times import has_zone, java_pattern_to_regex
from trellis.io.sources import expand
from trellis.language.schema import choose_time

FORMATS = ("parquet", "orc", "json", "csv", "tsv")
FILE_AGE = "100000d"  # Spark passes over files that are older than the newest by more than this, in silence


def read_stream(
    session: SparkSession, directory: str, *, schema: str | None = None, input_format: str | None = None,
    text_columns: Iterable[str] = (), time: str | None = None, time_format: str | None = None,
    files_a_batch: int | None = None, known: Mapping[str, str] | None = None,
) -> DataFrame:  # fmt: skip
    """Return the files of a directory, those to come too, as a streaming data frame.

    Parameters
    ----------
    session
        The session.
    directory
        The directory, and those in it; or one elsewhere, such as `s3a://bucket/events/`, with a schema.
    schema
        Names and types as Spark writes them, `ts TIMESTAMP, price DOUBLE`; without it the files that are there tell.
    input_format
        The format of the files; without it those that are there tell.
    text_columns
        Columns that are text, where only values tell types.
    time, time_format
        The column of times, and the pattern of its text.
    files_a_batch
        At most so many files make a batch.
    known
        The types that the columns had when the stream began, by its checkpoint. Text of times keeps its type: where
        the first files had no zone, those of later ones are converted to UTC.
    """
    kind = _kind(directory, input_format)
    if schema is not None:
        declared = _declared(schema)
    else:
        declared = _inferred(session, directory, input_format, text_columns, time)
        declared = declared if kind in ("parquet", "orc") else _as_known(declared, known or {})
    chosen = choose_time([fld.name for fld in declared.fields], time)
    naive = {x.name: x.dataType == t.TimestampNTZType() for x in declared if _told_by_text(x, kind, chosen)}
    fields = [t.StructField(x.name, t.StringType() if x.name in naive else x.dataType) for x in declared]
    reader = session.readStream.schema(t.StructType(fields)).option("maxFileAge", FILE_AGE)
    if kind in ("csv", "tsv"):
        reader = reader.option("header", True).option("sep", "\t" if kind == "tsv" else ",").option("escape", '"')
        reader = reader.option("enforceSchema", False)  # else columns are told by their places, whatever headers say
    if files_a_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_a_batch)
    if "://" not in directory and not _has_partitions(directory):
        reader = reader.option("recursiveFileLookup", True)  # what lies deeper would be passed over, too
    path = directory if "://" in directory else spark_path(directory)
    frame = reader.format("csv" if kind == "tsv" else kind).load(path)
    if time_format is not None and isinstance(_type(declared, chosen), t.StringType):
        type_ = (known or {}).get(chosen, "")
        naive[chosen] = type_ != "timestamp" and not has_zone(java_pattern_to_regex(time_format))
    guarded = {fld.name for fld in fields if kind in ("csv", "tsv") and isinstance(fld.dataType, t.StringType)}
    if not naive and not guarded:
        return frame
    events = EventFrame(frame)
    columns = [unguarded(events.column(n)) if n in guarded else events.column(n) for n in events.types]
    for name, without in naive.items():
        place = list(events.types).index(name)
        columns[place] = parse_times(columns[place], time_format if name == chosen else None, naive=without)
    return events.frame.select(*columns).toDF(*frame.columns)


def _type(schema: t.StructType, name: str) -> t.DataType | None:
    return next((fld.dataType for fld in schema.fields if fld.name == name), None)


def _kind(directory: str, input_format: str | None) -> str:
    """Return the format of the files of a directory."""
    if "://" not in directory and not Path(directory).is_dir():
        what = "is no directory" if Path(directory).exists() else "is not there"
        raise DataError(f"{directory} {what}", "Name the directory that the events arrive in; it may be empty.")
    if input_format is not None:
        if input_format.lower() not in FORMATS:
            raise UsageError(f"there is no format `{input_format}`", f"Formats are {', '.join(FORMATS)}.")
        return input_format.lower()
    if "://" in directory or not _has_files(directory):
        return "parquet"
    return expand([directory], None)[0].format


def _has_files(directory: str) -> bool:
    return any(not name.startswith((".", "_")) for name in os.listdir(directory))


def _has_partitions(directory: str) -> bool:
    """Return whether there are directories such as `day=1`, from whose names Spark takes a column."""
    return any("=" in entry.name and entry.is_dir() for entry in os.scandir(directory))


def _declared(schema: str) -> t.StructType:
    try:
        found = t.DataType.fromDDL(schema)
    except SPARK_ERRORS as error:
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"--schema cannot be read: {first}", "Write it as in `ts TIMESTAMP, price DOUBLE`.") from None
    if not isinstance(found, t.StructType):
        raise UsageError(f"--schema is one type, {schema}", "Write it as in `ts TIMESTAMP, price DOUBLE`.")
    return found


def _inferred(
    session: SparkSession, directory: str, input_format: str | None, text_columns: Iterable[str], time: str | None
) -> t.StructType:
    """Return the schema of the files that are there."""
    if "://" in directory or not _has_files(directory):
        raise UsageError(
            f"the columns of the events are not known: {directory} has no files that tell them",
            "Give them with --schema 'ts TIMESTAMP, id BIGINT, price DOUBLE'.",
        )
    tables = partial(read, session, directory, input_format=input_format, text_columns=text_columns, commas=False)
    frame = tables(time=time)
    if time is None:
        chosen = choose_time(frame.columns, None)
        if chosen in frame.columns and isinstance(frame.schema[chosen].dataType, t.StringType):
            frame = tables(time=chosen)
    return frame.schema


def _told_by_text(field: t.StructField, kind: str, time: str) -> bool:
    """Return whether the times of a column are read from text here, and not by Spark, whose rules are others."""
    if kind in ("csv", "tsv") and field.name == time and field.dataType == t.TimestampType():
        return True
    return kind in ("csv", "tsv", "json") and field.dataType == t.TimestampNTZType()


def _as_known(schema: t.StructType, known: Mapping[str, str]) -> t.StructType:
    """Return the columns of text with times as they were when the stream began: with a zone, or without."""
    times = {kind.simpleString(): kind for kind in (t.TimestampNTZType(), t.TimestampType())}
    before = {x.name: times.get(known.get(x.name, ""), x.dataType) for x in schema if x.dataType in times.values()}
    return t.StructType([t.StructField(x.name, before.get(x.name, x.dataType)) for x in schema])
