"""Files of events, read into a Spark DataFrame with the types that `trellis.io.read` gives a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession

from trellis.engines.spark.session.raised import SPARK_ERRORS
from trellis.engines.spark.sources.columnar import read_columnar
from trellis.engines.spark.sources.csv_files import read_csv
from trellis.engines.spark.sources.json_lines import read_json
from trellis.engines.spark.sources.loading import FileJob, explained, first_line, with_key_times
from trellis.engines.spark.sources.text_kinds import with_times
from trellis.errors import DataError
from trellis.events.times import java_pattern_to_regex
from trellis.io import read as local
from trellis.io.formats import format_of
from trellis.io.sources import Paths, Source, expand


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
        return with_times(FileJob(spark, [], frozenset(), time, time_format), frame)
    sources = [source.separated_by(delimiter) for source in expand(named, input_format)]
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


def _read_here(job: FileJob) -> DataFrame:
    """Read in this process what Spark has no reader for."""
    table = local.read_table(
        [source.path for source in job.sources], input_format=job.format, time=job.time, time_format=job.time_format
    )
    return job.spark.createDataFrame(table)


_READERS: dict[str, Callable[[FileJob], DataFrame]] = {
    "parquet": read_columnar,
    "orc": read_columnar,
    "csv": read_csv,
    "tsv": read_csv,
    "json": read_json,
    "xes": _read_here,
    "text": _read_here,
}
