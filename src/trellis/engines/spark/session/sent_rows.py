"""Rows that go to the cluster and come from there: Spark's driver holds them no longer than it takes to pass them on.

A frame that is made of local rows holds these in the driver's heap for as long as Spark remembers its plan, which is
longer than the frame is used. A broadcast is freed when one says so, and a task makes the rows of it. The partitions
that `toLocalIterator` has fetched stay there until it ends; jobs that belong to no query leave nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.masters import is_connect
from trellis.engines.spark.session.settled import settled
from trellis.events.table_bytes import packed, unpacked


@dataclass(frozen=True)
class UnpackRows:
    """Makes rows of a broadcast."""

    sent: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take one row, which says that this task is the one."""
        with in_task():
            for batch in batches:
                for _ in range(batch.num_rows):
                    yield from unpacked(self.sent.value).to_batches()


def fetched_rows(frame: DataFrame) -> Iterator[Any]:
    """Yield the rows of a frame, of which one partition at a time comes here."""
    if is_connect(frame.sparkSession):
        yield from frame.toLocalIterator()
        return
    rows = frame.rdd
    for part in range(rows.getNumPartitions()):
        yield from frame.sparkSession.sparkContext.runJob(rows, iter, [part])


def sent_rows(session: SparkSession, table: pa.Table) -> DataFrame:
    """Have the cluster keep the rows of a table, whose types Spark has, and return them as a frame."""
    if is_connect(session) or not table.num_rows:  # a client sends rows to the server, and holds none
        return settled(session.createDataFrame(table))
    sent = session.sparkContext.broadcast(packed(table, compressed=False))
    try:
        one = session.range(0, 1, 1, 1)
        return settled(one.mapInArrow(UnpackRows(sent), from_arrow_schema(table.schema)))
    finally:
        with suppress(OSError):
            sent.destroy()
