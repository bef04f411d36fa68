"""JSON lines on Spark."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.sources.loading import FileJob, column_of, explanation, load, spark_path
from trellis.engines.spark.sources.schema import TIMES, convert_text, looks_like_time, parse_times, text_type
from trellis.engines.spark.sources.text_kinds import TextKinds, survey

CORRUPT = "_trellis_corrupt"
_MIXED = 64  # beside `Looks`: a value that is no text, where others are
_ONE_A_LINE = "Write one JSON object a line."


def read_json(job: FileJob) -> DataFrame:
    """Return the rows of files with a JSON object a line, with types found by a look at all of them."""
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
    reader = job.spark.read.options(mode="PERMISSIVE", allowSingleQuotes=False, columnNameOfCorruptRecord=CORRUPT)
    inferred = reader.json([spark_path(source.path) for source in job.sources]).schema
    fields = [field for field in inferred if field.name != CORRUPT]
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


def _json_survey(job: FileJob, texts: Sequence[str]) -> dict[str, TextKinds]:
    """Look through the lines: whether each is an object, and what the values look like that Spark takes for text."""
    line = f.col("value")
    lines = job.spark.read.text([spark_path(source.path) for source in job.sources]).where(f.length(f.trim(line)) > 0)
    parsed = lines.withColumn("object", f.try_parse_json(f.concat(f.lit("["), line, f.lit("]"))))
    whole = f.col("object")
    bad = (
        whole.isNull()
        | ~f.ltrim(line).startswith("{")
        | f.try_variant_get(whole, "$[1]", "variant").isNotNull()
        | ~f.is_valid_utf8(line)
    )
    kinds = [_json_looks(whole, name).alias(name) for name in texts if _variant_path(name)]
    found, first = survey(parsed.select(*kinds, f.when(bad, line).alias(CORRUPT)), job.time)
    if first[CORRUPT] is not None:
        raise explanation(job, f"this line is no JSON object: {first[CORRUPT][:100]!r}", _ONE_A_LINE)
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


def _json_column(job: FileJob, field: t.StructField, kinds: TextKinds | None) -> Column:
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


def _json_time(job: FileJob, column: Column, kind: t.DataType, kinds: TextKinds | None) -> Column:
    if job.time_format is not None and isinstance(kind, t.StringType | t.IntegralType | t.DecimalType):
        return parse_times(column.cast("string"), job.time_format)
    target = None if kinds is None else kinds.majority()
    if target in TIMES:
        return convert_text(column, target)
    return column.cast("string") if isinstance(kind, t.DecimalType) else column
