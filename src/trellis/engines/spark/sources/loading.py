"""Loading files on Spark: the files of a job, the columns that their folders say, and errors in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from trellis.engines.spark.session.jvm import exit_code
from trellis.engines.spark.session.raised import SPARK_ERRORS
from trellis.engines.spark.sources.schema import parse_times
from trellis.errors import DataError
from trellis.io import read as local
from trellis.io.partitions import key_types, with_keys
from trellis.io.sources import Source
from trellis.properties import cached_property

EXPLAINABLE = 2 << 30
"""Bytes of files that the local reader looks through to say what is wrong with them."""


@dataclass(frozen=True)
class FileJob:
    """The files to read, and the options of reading."""

    spark: SparkSession
    sources: list[Source]
    text_columns: frozenset[str]
    time: str | None
    time_format: str | None
    commas: bool = True

    @property
    def format(self) -> str:
        """The format of all files."""
        return self.sources[0].format

    @cached_property
    def key_types(self) -> dict[str, t.DataType]:
        """The types of the columns that folders say, as `trellis.io.read` gives them."""
        found = key_types(source.keys for source in self.sources)
        return {n: t.StringType() if n in self.text_columns else from_arrow_type(kind) for n, kind in found.items()}


def spark_path(path: Path | str) -> str:
    """Return a path as Spark wants it: absolute, and no glob."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", os.path.abspath(path))


def load(
    job: FileJob, reader: Callable[[], DataFrameReader], sources: Sequence[Source], schema: t.StructType | None
) -> DataFrame:
    """Load files by readers that are alike, with the columns that folders say behind those of the files.

    Spark is told the directory that is partitioned, so that it can pass over the folders that a query has no use for.
    """
    by_root: dict[Path | None, list[Source]] = {}
    for source in sources:
        by_root.setdefault(source.root, []).append(source)
    frames: list[DataFrame] = []
    for root, group in by_root.items():
        files, names = [spark_path(source.path) for source in group], list(group[0].keys)
        if root is None:
            frames.append((reader() if schema is None else reader().schema(schema)).load(files))
            continue
        inside = [field for field in schema or reader().load(files).schema if field.name not in names]
        fields = t.StructType([*inside, *(t.StructField(name, _read_as(job.key_types[name])) for name in names)])
        based = reader().schema(fields).option("basePath", "file://" + os.path.abspath(root))
        frames.append(based.load(files))
    return reduce(DataFrame.unionByName, frames)


def _read_as(kind: t.DataType) -> t.DataType:
    """Return the type in which Spark reads a column that folders say: it would read times in the session's zone."""
    return t.StringType() if isinstance(kind, t.TimestampType | t.TimestampNTZType) else kind


def with_key_times(job: FileJob, frame: DataFrame) -> DataFrame:
    """Make times of the texts of times that folders say."""
    for name, kind in job.key_types.items():
        if isinstance(kind, t.TimestampType | t.TimestampNTZType):
            naive = isinstance(kind, t.TimestampNTZType)
            frame = frame.withColumn(name, parse_times(column_of(name), naive=naive))
    return frame


def column_of(name: str) -> Column:
    """Return a column by its name, whatever signs are in it."""
    return f.col(quoted(name))


def quoted(name: str) -> str:
    """Return the name of a column as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep pyspark from printing an exception with its whole trace before it is raised; the caller tells it."""
    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    loggers = [PySparkLogger.getLogger(name) for name in names]  # a plain one of that name would break pyspark's
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


@contextmanager
def explained(job: FileJob) -> Iterator[None]:
    """Turn errors of Spark into one sentence."""
    try:
        with unlogged():
            yield
    except SPARK_ERRORS as error:
        if exit_code(error) is not None:
            raise  # nothing is wrong with the files
        raise explanation(job, first_line(error)) from None


def explanation(job: FileJob, otherwise: str, hint: str | None = None) -> DataError:
    """Return the local reader's error; where it finds nothing wrong, or all is too large, one of ours."""
    if sum(s.path.stat().st_size for s in job.sources) <= EXPLAINABLE:
        try:
            local.read_table([s.path for s in job.sources], input_format=job.format)
        except DataError as error:
            return error
    return DataError(f"{job.sources[0].path} cannot be read as {job.format} on Spark: {otherwise.rstrip('.')}.", hint)


def first_line(error: Exception) -> str:
    """Return the message of an exception of Spark's, in one line."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    line = next((x for x in lines if "Exception: " in x), lines[0])
    line = re.sub(r"^.*?Exception: ", "", line)
    line = re.sub(r"^(\[[\w.]+\]\s*)+|\s*SQLSTATE: \w+.*$", "", line)
    return line[:300].rstrip(".")


def check_together(job: FileJob, schemas: Sequence[pa.Schema]) -> None:
    """Refuse files whose columns do not fit together, with the words of the local engine."""
    tables = [with_keys(schema.empty_table(), source.keys) for schema, source in zip(schemas, job.sources, strict=True)]
    local.concat(job.sources, tables, None)
