"""CSV files on Spark."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.sources.loading import (
    EXPLAINABLE,
    FileJob,
    check_together,
    column_of,
    explanation,
    load,
    spark_path,
)
from trellis.engines.spark.sources.schema import Looks, convert_text, looks, parse_times, text_type
from trellis.engines.spark.sources.text_kinds import TextKinds, survey
from trellis.errors import DataError
from trellis.io import read as local
from trellis.io.csv_files import delimiter_of
from trellis.io.failures import reading
from trellis.io.sources import Source, open_source
from trellis.io.spreadsheets import GUARD, GUARDED, unguard_name

CORRUPT = "_trellis_corrupt"
_FIELD = "_trellis_field"
_EMPTY = "\x00trellis-empty\x00"  # what a quoted empty field is at first, to tell it from NULL


def read_csv(job: FileJob) -> DataFrame:
    """Return the rows of CSV files, with types found by a look at all of their text."""
    headers = [_header(source) for source in job.sources]
    headers = [local.common_names(headers[0], header) for header in headers]
    check_together(job, [pa.schema([(name, pa.string()) for name in header]) for header in headers])
    multi_line, commas = _needs_multi_line(job), job.commas and delimiter_of(job.sources[0]) != ","
    checked = _csv_frame(job, headers, multi_line, checked=True)
    kinds = [looks(_csv_text(name), commas).alias(name) for name in headers[0] if _is_inferred(job, name)]
    some_field = column_of(headers[0][0]).alias(_FIELD)  # Spark refuses to read nothing but what is corrupt
    found, first = survey(checked.select(*kinds, CORRUPT, some_field), job.time)
    if first[CORRUPT] is not None:
        raise explanation(job, f"this row has too few or too many fields: {first[CORRUPT]!r}")
    frame = _csv_frame(job, headers, multi_line, checked=False)
    if not any(kinds.seen for kinds in found.values()) and frame.isEmpty():  # nothing is known of the columns
        return frame.select(*(f.lit(None).alias(name) for name in frame.columns))
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
    lines = job.spark.read.text([spark_path(source.path) for source in job.sources])
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
    schema = t.StructType([t.StructField(n, t.StringType()) for n in (*names, *([CORRUPT] if checked else []))])
    options: dict[str, Any] = {
        "header": True, "sep": delimiter, "multiLine": multi_line, "escape": '"',
        "encoding": "UTF-8", "emptyValue": _EMPTY, "nullValue": "", "enforceSchema": True,
        "columnPruning": not checked, "mode": "PERMISSIVE" if checked else "FAILFAST",
        "columnNameOfCorruptRecord": CORRUPT,
    }  # fmt: skip
    return load(job, lambda: job.spark.read.format("csv").options(**options), sources, schema)


def _csv_text(name: str) -> Column:
    return unguarded(f.replace(column_of(name), f.lit(_EMPTY), f.lit("")))


def unguarded(text: Column) -> Column:
    """Take guards against formulas away from a text of CSV; see `trellis.io.spreadsheets`."""
    return f.when(text.startswith(GUARD), f.regexp_replace(text, GUARDED, "$1")).otherwise(text)


def _csv_column(job: FileJob, name: str, kinds: TextKinds | None, commas: bool) -> Column:
    text = _csv_text(name)
    if name == job.time and job.time_format is not None:
        return parse_times(text, job.time_format)
    if kinds is None:
        return text
    target = text_type(kinds.seen)
    target = (kinds.majority() or target) if name == job.time and target == "string" else target
    return convert_text(text, target, commas and bool(kinds.seen & Looks.COMMA))
