"""Files of events, read into a Spark DataFrame with the types that `trellis.io.read` gives a table."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.sources.loading import (
    EXPLAINABLE,
    FileJob,
    column_of,
    explained,
    explanation,
    first_line,
    load,
    spark_path,
    with_key_times,
)
from trellis.engines.spark.sources.schema import (
    NUMBERS,
    Looks,
    convert_text,
    looks,
    looks_like_time,
    parse_times,
    text_type,
)
from trellis.engines.spark.split.compile import SPARK_ERRORS, raise_data_error
from trellis.errors import DataError
from trellis.events.times import java_pattern_to_regex
from trellis.io import read as local
from trellis.io.columnar import parquet_schema
from trellis.io.csv_files import delimiter_of
from trellis.io.failures import reading
from trellis.io.formats import format_of
from trellis.io.partitions import with_keys
from trellis.io.sources import Paths, Source, expand, open_source
from trellis.io.spreadsheets import GUARD, GUARDED, unguard_name
from trellis.language.schema import TIME_NAMES

_CORRUPT = "_trellis_corrupt"
_FIELD = "_trellis_field"
_EMPTY = "\x00trellis-empty\x00"  # what a quoted empty field is at first, to tell it from NULL
_NOTHING = Looks(0)
_MIXED = 64  # beside `Looks`: a value that is no text, where others are
_ONE_A_LINE = "Write one JSON object a line."
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "UCT", "Universal")
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def read(
    spark: SparkSession,
    paths: Paths,
    *,
    input_format: str | None = None,
    text_columns: Iterable[str] = (),
    time: str | None = None,
    time_format: str | None = None,
    delimiter: str | None = None,
    commas: bool = True,
) -> DataFrame:
    """Read files of events on Spark.

    Columns and types are those of `trellis.io.read.read_table`; CSV and JSON are looked through once or twice to find
    them and to find what is wrong. Only Parquet and ORC may lie elsewhere than in local files.

    Parameters
    ----------
    spark
        The session.
    paths
        Files, directories or globs; or addresses such as `s3a://bucket/events/`, which go to Spark as they are.
    input_format
        The format of all files; without one, their extensions tell.
    text_columns
        Columns that stay text in CSV, and become text in JSON.
    time
        The column of times. If it is text, it becomes timestamps (in CSV perhaps numbers), with NULL for what does
        not fit: always with a `time_format`, otherwise if more than half of its values fit.
    time_format
        The pattern of the text in the column `time`; see `trellis.events.times.parse_times`.
    delimiter
        What stands between the fields of CSV; without one, the header tells.
    commas
        Whether columns of CSV without commas between fields may be numbers with a comma for their point.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows of all files.

    Raises
    ------
    DataError
        If a file is missing or cannot be read, or the files do not fit together.
    UsageError
        If an option is wrong.
    """
    if time_format is not None:
        java_pattern_to_regex(time_format)
    named = [os.fspath(p) for p in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if named and all("://" in name for name in named):
        frame = _read_elsewhere(spark, named, input_format)
        return _with_times(FileJob(spark, [], frozenset(), time, time_format), frame)
    sources = [replace(source, delimiter=delimiter) for source in expand(named, input_format)]
    job = FileJob(spark, sources, frozenset(text_columns), time, time_format, commas)
    _check_seen_by_spark(sources)
    with explained(job):
        return with_key_times(job, _READERS[sources[0].format](job))


def _check_seen_by_spark(sources: Sequence[Source]) -> None:
    for source in sources:
        if source.path.name.startswith(("_", ".")):
            what = f"{source.path} cannot be read on Spark, which leaves out names that begin with `_` or `.`."
            raise DataError(what, "Rename it, or use the local engine.")


def _read_elsewhere(spark: SparkSession, names: list[str], input_format: str | None) -> DataFrame:
    told = format_of(names[0].rstrip("/"))
    kind = (input_format or (told.name if told else "parquet")).lower()
    if kind not in ("parquet", "orc"):
        raise DataError(f"{names[0]} is not a local file; only Parquet and ORC are read from elsewhere.")
    try:
        return spark.read.format(kind).load(names)
    except SPARK_ERRORS as error:
        raise DataError(f"{names[0]} cannot be read as {kind}: {first_line(error)}.") from None


# --- Types of text ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TextKinds:
    """The kinds of values that a column of text has."""

    seen: Looks
    present: int = 0
    times: int = 0
    numbers: int = 0
    numbers_seen: Looks = _NOTHING

    def majority(self) -> str | None:
        """The type that more than half of the values have, if they are times or numbers."""
        if 2 * self.times > self.present:
            return "timestamp"
        return text_type(self.numbers_seen) if 2 * self.numbers > self.present else None


def _survey(kinds: DataFrame, time: str | None) -> tuple[dict[str, _TextKinds], dict[str, Any]]:
    """Look through columns of `Looks` in one pass; also give the first value of each other column."""
    masks = [field.name for field in kinds.schema if isinstance(field.dataType, t.IntegerType)]
    others = [name for name in kinds.columns if name not in masks]
    totals = [f.bit_or(column_of(name)).alias(f"seen{i}") for i, name in enumerate(masks)]
    totals += [f.first(column_of(name), ignorenulls=True).alias(f"first{i}") for i, name in enumerate(others)]
    totals += _majority(column_of(time)) if time in masks else []
    row = kinds.agg(*totals).collect()[0].asDict() if totals else {}
    found = {name: _TextKinds(Looks(row[f"seen{i}"] or 0)) for i, name in enumerate(masks)}
    if time is not None and time in masks:
        found[time] = replace(
            found[time], present=row["present"], times=row["times"], numbers=row["numbers"],
            numbers_seen=Looks(row["numbers_seen"] or 0),
        )  # fmt: skip
    _warn_of_zones(found, time)
    return found, {name: row[f"first{i}"] for i, name in enumerate(others)}


def _warn_of_zones(columns: dict[str, _TextKinds], time: str | None) -> None:
    """Warn of a time column in which some texts tell a zone and some do not."""
    for name in [name for name in columns if name in (TIME_NAMES if time is None else (time,))]:
        kinds = columns[name]
        is_time = text_type(kinds.seen) == "timestamp" or kinds.majority() == "timestamp"
        if is_time and kinds.seen & Looks.ZONED and kinds.seen & Looks.UNZONED:
            warnings.warn(f"in the column `{name}` some times have a zone; the others are taken as UTC", stacklevel=2)


def _majority(kind: Column) -> list[Column]:
    is_number = kind.bitwiseAND(f.lit(int(NUMBERS))) != 0
    return [
        f.count(kind).alias("present"),
        f.count_if(kind.bitwiseAND(f.lit(int(Looks.TIME))) != 0).alias("times"),
        f.count_if(is_number).alias("numbers"),
        f.bit_or(f.when(is_number, kind)).alias("numbers_seen"),
    ]


def _with_times(job: FileJob, frame: DataFrame) -> DataFrame:
    """Make times of the text in the time column of a frame that has its types."""
    time = job.time
    if time is None or time not in frame.columns:
        return frame
    kind = frame.schema[time].dataType
    text = column_of(time).cast("string")
    if job.time_format is not None and isinstance(kind, t.StringType | t.IntegralType):
        return frame.withColumn(time, parse_times(text, job.time_format))
    if not isinstance(kind, t.StringType):
        return frame
    found, _ = _survey(frame.select(looks_like_time(text).alias(time)), time)
    return frame.withColumn(time, parse_times(text)) if found[time].majority() == "timestamp" else frame


# --- Parquet and ORC --------------------------------------------------------------------------------------------


def _read_columnar(job: FileJob) -> DataFrame:
    schemas = [_arrow_schema(source) for source in job.sources]
    _check_together(job, schemas)
    alike: dict[str, list[int]] = {}
    for i, schema in enumerate(schemas):
        alike.setdefault(str(schema.remove_metadata()), []).append(i)
    names = schemas[0].names
    parts = [_columnar_part(job, [job.sources[i] for i in group], schemas[group[0]], names) for group in alike.values()]
    return _with_times(job, reduce(DataFrame.unionByName, parts))


def _arrow_schema(source: Source) -> pa.Schema:
    if source.format == "parquet":
        return parquet_schema(source)
    with reading(source.path, "ORC"):
        return orc.ORCFile(source.path).schema


def _check_together(job: FileJob, schemas: Sequence[pa.Schema]) -> None:
    tables = [with_keys(schema.empty_table(), source.keys) for schema, source in zip(schemas, job.sources, strict=True)]
    local.concat(job.sources, tables, None)


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


# --- CSV --------------------------------------------------------------------------------------------------------


def _read_csv(job: FileJob) -> DataFrame:
    headers = [_header(source) for source in job.sources]
    headers = [local.common_names(headers[0], header) for header in headers]
    _check_together(job, [pa.schema([(name, pa.string()) for name in header]) for header in headers])
    multi_line, commas = _needs_multi_line(job), job.commas and delimiter_of(job.sources[0]) != ","
    checked = _csv_frame(job, headers, multi_line, checked=True)
    kinds = [looks(_csv_text(name), commas).alias(name) for name in headers[0] if _is_inferred(job, name)]
    some_field = column_of(headers[0][0]).alias(_FIELD)  # Spark refuses to read nothing but what is corrupt
    found, first = _survey(checked.select(*kinds, _CORRUPT, some_field), job.time)
    if first[_CORRUPT] is not None:
        raise explanation(job, f"this row has too few or too many fields: {first[_CORRUPT]!r}")
    frame = _csv_frame(job, headers, multi_line, checked=False)
    keys = job.sources[0].keys
    columns = [_csv_column(job, name, found.get(name), commas).alias(name) for name in headers[0] if name not in keys]
    return frame.select(*columns, *map(column_of, keys))


def _is_inferred(job: FileJob, name: str) -> bool:
    return job.time_format is None if name == job.time else name not in job.text_columns


def _header(source: Source) -> list[str]:
    kind = source.format.upper()
    with reading(source.path, kind), open_source(source) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="")
        try:
            names = next((r for r in csv.reader(text, delimiter=delimiter_of(source)) if r), None)
        except csv.Error as error:
            raise DataError(f"{source.path} cannot be read as {kind}: {error}.") from None
    if names is None:
        raise DataError(f"{source.path} is empty: no header.", "A CSV file begins with a line of column names.")
    named = [unguard_name(name) or f"_c{i}" for i, name in enumerate(names)]
    for name, times in Counter(named).items():
        if times > 1:
            raise DataError(f"The header of {source.path} names `{name}` {times} times.", "Rename one of them.")
    return named


def _needs_multi_line(job: FileJob) -> bool:
    """Look through the lines: whether a record may have several, so that files cannot be read in pieces.

    A line with an odd number of quotation marks begins or ends such a record. Spark would drop lines of blanks unless
    it reads whole files, and put question marks for what is no UTF-8.
    """
    text = f.col("value")
    quotes = f.length(text) - f.length(f.replace(text, f.lit('"'), f.lit("")))
    lines = job.spark.read.text([spark_path(source) for source in job.sources])
    rows = lines.groupBy(f.col("_metadata.file_path").alias("file")).agg(
        f.max((quotes % 2 == 1) | text.rlike(r"\A[\x00-\x20]+\z")).alias("odd_line"),
        f.sum(quotes).alias("quotes"),
        f.bool_and(f.is_valid_utf8(text)).alias("utf8"),
    )
    found = rows.collect()
    if not all(row["utf8"] for row in found):
        raise explanation(job, "it is not UTF-8 text", "Save the file as UTF-8.")
    if any(row["quotes"] % 2 for row in found):
        _check_quotes(job)
    return any(row["odd_line"] for row in found)


def _check_quotes(job: FileJob) -> None:
    """Let the local reader tell a quotation mark that is never closed from one in the middle of a text."""
    error = explanation(job, "a quotation mark is perhaps not closed")
    if " on Spark: " not in error.what or sum(s.path.stat().st_size for s in job.sources) > EXPLAINABLE:
        raise error


def _csv_frame(job: FileJob, headers: Sequence[list[str]], multi_line: bool, *, checked: bool) -> DataFrame:
    """Return all fields as text, and with `checked` the rows that have too few or too many fields apart."""
    alike: dict[tuple[str, ...], list[Source]] = {}  # by the delimiter and the names
    for source, header in zip(job.sources, headers, strict=True):
        alike.setdefault((delimiter_of(source), *header), []).append(source)
    frames = [_csv_part(job, form, files, multi_line, checked) for form, files in alike.items()]
    return reduce(DataFrame.unionByName, frames)


def _csv_part(
    job: FileJob, form: Sequence[str], sources: Sequence[Source], multi_line: bool, checked: bool
) -> DataFrame:
    delimiter, *names = form
    schema = t.StructType([t.StructField(n, t.StringType()) for n in (*names, *([_CORRUPT] if checked else []))])
    options: dict[str, Any] = {
        "header": True, "sep": delimiter, "multiLine": multi_line, "escape": '"',
        "encoding": "UTF-8", "emptyValue": _EMPTY, "nullValue": "", "enforceSchema": True,
        "columnPruning": not checked, "mode": "PERMISSIVE" if checked else "FAILFAST",
        "columnNameOfCorruptRecord": _CORRUPT,
    }  # fmt: skip
    return load(job, lambda: job.spark.read.format("csv").options(**options), sources, schema)


def _csv_text(name: str) -> Column:
    return unguarded(f.replace(column_of(name), f.lit(_EMPTY), f.lit("")))


def unguarded(text: Column) -> Column:
    """Take guards against formulas away from a text of CSV; see `trellis.io.spreadsheets`."""
    return f.when(text.startswith(GUARD), f.regexp_replace(text, GUARDED, "$1")).otherwise(text)


def _csv_column(job: FileJob, name: str, kinds: _TextKinds | None, commas: bool) -> Column:
    text = _csv_text(name)
    if name == job.time and job.time_format is not None:
        return parse_times(text, job.time_format)
    if kinds is None:
        return text
    target = text_type(kinds.seen)
    target = (kinds.majority() or target) if name == job.time and target == "string" else target
    return convert_text(text, target, commas and bool(kinds.seen & Looks.COMMA))


# --- JSON lines -------------------------------------------------------------------------------------------------


def _read_json(job: FileJob) -> DataFrame:
    schema = _json_schema(job)
    texts = [field.name for field in schema if isinstance(field.dataType, t.StringType)]
    found = _json_survey(job, texts)
    options: dict[str, Any] = {"mode": "FAILFAST", "allowSingleQuotes": False}
    frame = load(job, lambda: job.spark.read.format("json").options(**options), job.sources, schema)
    keys = {name: None for source in job.sources for name in source.keys}
    fields = [field for field in schema if field.name not in keys]
    columns = [_json_column(job, field, found.get(field.name)).alias(field.name) for field in fields]
    return frame.select(*columns, *map(column_of, keys))


def _json_schema(job: FileJob) -> t.StructType:
    reader = job.spark.read.options(mode="PERMISSIVE", allowSingleQuotes=False, columnNameOfCorruptRecord=_CORRUPT)
    inferred = reader.json([spark_path(source) for source in job.sources]).schema
    fields = [field for field in inferred if field.name != _CORRUPT]
    if not fields:
        raise explanation(job, "it is empty: no objects", _ONE_A_LINE)
    written = _first_keys(job)
    fields.sort(key=lambda field: written.index(field.name) if field.name in written else len(written))
    return t.StructType(fields)


def _first_keys(job: FileJob) -> list[str]:
    """Return the keys of the first object as they are written: Spark has columns by name, the local reader does not."""
    source = job.sources[0]
    with gzip.open(source.path, "rb") if source.gzip else open(source.path, "rb") as lines:
        try:
            first = json.loads(next(line for line in lines if line.strip()))
        except (ValueError, StopIteration):
            return []
    return list(first) if isinstance(first, dict) else []


def _json_survey(job: FileJob, texts: Sequence[str]) -> dict[str, _TextKinds]:
    """Look through the lines: whether each is an object, and what the values look like that Spark takes for text."""
    line = f.col("value")
    lines = job.spark.read.text([spark_path(source) for source in job.sources]).where(f.length(f.trim(line)) > 0)
    parsed = lines.withColumn("object", f.try_parse_json(f.concat(f.lit("["), line, f.lit("]"))))
    whole = f.col("object")
    bad = (
        whole.isNull()
        | ~f.ltrim(line).startswith("{")
        | f.try_variant_get(whole, "$[1]", "variant").isNotNull()
        | ~f.is_valid_utf8(line)
    )
    kinds = [_json_looks(whole, name).alias(name) for name in texts if _variant_path(name)]
    found, first = _survey(parsed.select(*kinds, f.when(bad, line).alias(_CORRUPT)), job.time)
    if first[_CORRUPT] is not None:
        raise explanation(job, f"this line is no JSON object: {first[_CORRUPT][:100]!r}", _ONE_A_LINE)
    for name, values in found.items():
        if int(values.seen) & _MIXED:
            raise explanation(job, f"`{name}` has values of different types", "Write its values in one type.")
    return found


def _variant_path(name: str) -> str | None:
    quote = next((q for q in "'\"" if q not in name), None)
    return None if quote is None else f"$[0][{quote}{name}{quote}]"


def _json_looks(whole: Column, name: str) -> Column:
    value = f.try_variant_get(whole, str(_variant_path(name)), "variant")
    text = f.try_variant_get(whole, str(_variant_path(name)), "string")
    kind = f.schema_of_variant(value)
    return f.when(kind == "STRING", looks_like_time(text)).when(kind != "VOID", f.lit(_MIXED))


def _json_column(job: FileJob, field: t.StructField, kinds: _TextKinds | None) -> Column:
    column = column_of(field.name)
    kind = field.dataType
    if field.name == job.time:
        return _json_time(job, column, kind, kinds)
    if isinstance(kind, t.DecimalType):
        return column.cast("string")
    if kinds is not None and field.name not in job.text_columns:
        return convert_text(column, text_type(kinds.seen))
    nested = isinstance(kind, t.StructType | t.ArrayType | t.MapType)
    return column.cast("string") if field.name in job.text_columns and not nested else column


def _json_time(job: FileJob, column: Column, kind: t.DataType, kinds: _TextKinds | None) -> Column:
    if job.time_format is not None and isinstance(kind, t.StringType | t.IntegralType | t.DecimalType):
        return parse_times(column.cast("string"), job.time_format)
    if kinds is not None and kinds.majority() == "timestamp":
        return parse_times(column)
    return column.cast("string") if isinstance(kind, t.DecimalType) else column


def _read_here(job: FileJob) -> DataFrame:
    """Read in this process what Spark has no reader for."""
    table = local.read_table(
        [source.path for source in job.sources], input_format=job.format, time=job.time, time_format=job.time_format
    )
    return job.spark.createDataFrame(table)


_READERS: dict[str, Callable[[FileJob], DataFrame]] = {
    "parquet": _read_columnar,
    "orc": _read_columnar,
    "csv": _read_csv,
    "tsv": _read_csv,
    "json": _read_json,
    "xes": _read_here,
    "text": _read_here,
}
