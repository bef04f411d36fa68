"""Rows of frames, and of this process, written by a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.batch.scan import Scan
from trellis.engines.spark.batch.sink import REPORT, Sink, WriteRows, WrittenFile, reports_in
from trellis.engines.spark.split.rows import output_names


def reports_of(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], read: Scan | None = None
) -> list[Any]:
    """Return the reports of the tasks that work on a frame; `read` is the read of events that it is made of."""
    answers = frame.mapInArrow(task, from_arrow_schema(REPORT))
    return reports_in(answers.toArrow() if read is None else read.collect(answers))


def written(frame: DataFrame, sink: Sink, read: Scan | None = None) -> list[WrittenFile]:
    """Have the tasks write the rows of a frame."""
    plain = frame.toDF(*output_names(len(frame.columns)))  # dots and backticks in names mean something to Spark
    return [WrittenFile(**about) for about in reports_of(plain, WriteRows(sink), read)]


def written_here(rows: pa.Table, sink: Sink) -> list[WrittenFile]:
    """Write rows of this process."""
    columns = [column.cast(field.type) for column, field in zip(rows.columns, sink.schema, strict=True)]
    return list(sink.write(pa.Table.from_arrays(columns, schema=sink.schema).to_batches(), 0))
