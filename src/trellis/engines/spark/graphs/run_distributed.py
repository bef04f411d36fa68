"""Runs a job whose graphs are kept as data frames: events come to the driver in order, the graphs stay on the cluster.

The driver runs the operators' own code and holds no more than some events, changes and results at a time. What these do
to graphs and ask of them are jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from trellis.engines.spark.batch.operate import for_spark
from trellis.engines.spark.graphs.distributed import DistributedGraph
from trellis.engines.spark.graphs.offered import refuse_unoffered
from trellis.engines.spark.session.sent_rows import fetched_rows, sent_rows
from trellis.engines.spark.split.rows import column_name, output_names
from trellis.errors import UsageError
from trellis.events.table_bytes import packed, unpacked
from trellis.graphs.instance import Instance, failed
from trellis.graphs.job import Job, Row

ROWS_AT_ONCE, SAMPLE = 50_000, 100
BYTES_AT_ONCE = 8 << 20  # of a piece of the events, one of which comes to the driver at a time
PACKED = 1 << 20  # bytes of a packed batch: Spark makes several copies of it on its way


def unmerged(job: Job, events: DataFrame) -> list[DataFrame]:
    """Return the results before they are merged, in frames with the columns of `Job.inner`.

    Raises
    ------
    UsageError
        If the operator asks its graph for something that a graph on the cluster does not offer.
    """
    refuse_unoffered(job.fresh(), job.name)
    session = events.sparkSession
    unchecked: set[DistributedGraph] = set()
    instance = Instance(job, graphs=lambda directed: DistributedGraph(session, directed, unchecked=unchecked))
    frames: list[DataFrame] = []
    rows: list[Row] = []
    for table in in_order(job, events):
        job.shape.refuse_unusable(table)
        for row in instance.take(job.shape.events(table)):
            rows.append(row)
            if len(rows) >= ROWS_AT_ONCE:
                frames.append(_sent(job, rows, session))
                rows = []
    rows += instance.end(instance.last)
    for graph in list(unchecked):
        try:
            graph.settle()
        except UsageError as problem:
            raise failed(problem, f"the operator {job.name}", None, "") from problem
    return [*frames, _sent(job, rows, session)]


def in_order(job: Job, events: DataFrame) -> Iterator[pa.Table]:
    """Yield events in the order of time and id, a batch at a time."""
    names = list(events.columns)
    inner = events.toDF(*map(column_name, range(len(names))))
    assert job.shape.event_id is not None
    order = [column_name(names.index(name)) for name in (job.shape.time, job.shape.event_id)]
    sample = inner.limit(SAMPLE).toArrow()
    at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * max(1, sample.num_rows) // max(1, sample.nbytes)))
    pieces = -(-inner.count() // at_once) or 1
    ranged = inner.repartitionByRange(pieces, *order).sortWithinPartitions(*order)
    for row in fetched_rows(ranged.mapInArrow(_pack, "batch binary")):
        yield unpacked(bytes(row["batch"])).rename_columns(names)


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = max(1, batch.num_rows * PACKED // max(PACKED, batch.nbytes))
        for begin in range(0, batch.num_rows, rows):
            blob = packed(pa.Table.from_batches([batch.slice(begin, rows)]), compressed=False)
            yield pa.RecordBatch.from_arrays([pa.array([blob], pa.binary())], names=["batch"])


def _sent(job: Job, rows: list[Row], session: SparkSession) -> DataFrame:
    """Have the cluster keep results."""
    table = job.inner_table(rows).rename_columns(output_names(len(job.inner)))
    batches = [for_spark(batch) for batch in table.combine_chunks().to_batches()]
    return sent_rows(session, pa.Table.from_batches(batches, None if batches else table.schema))


def one_frame(frames: list[DataFrame]) -> DataFrame:
    """Return frames as one."""
    return reduce(DataFrame.union, frames)
