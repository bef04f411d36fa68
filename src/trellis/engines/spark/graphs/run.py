"""Runs a job over graphs on Spark, over a data frame of events: the split is a shuffle, the merger a sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from trellis.engines.options import RunOptions
from trellis.engines.spark.batch.operate import inside_schema
from trellis.engines.spark.graphs.run_distributed import unmerged
from trellis.engines.spark.graphs.tasks import INSTANCE, LAST, InstanceRunner, Merge, Route
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.ship.by_value import send_along
from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.sources.frames import described_events
from trellis.engines.spark.split.hashing import bucket_keys
from trellis.engines.spark.split.rows import column_name, output_names
from trellis.errors import UsageError
from trellis.events.source import EventSource
from trellis.graphs.chain import NUMBER, PipelinePart, check_numbered
from trellis.graphs.job import DISTRIBUTED, LOCAL, TIME, Job
from trellis.graphs.merger import Merger
from trellis.graphs.splitter import Splitter
from trellis.language.schema import Schema


def run(
    frame: DataFrame,
    splitter: Splitter,
    operator: Any,
    merger: Merger | None = None,
    *,
    time: str | None = None,
    event_id: str | None = None,
    instances: int | None = None,
    graphs: str = LOCAL,
) -> DataFrame:
    """Split events, run an operator over them, and merge what it finds, on Spark.

    Parameters
    ----------
    frame
        Events.
    splitter, operator, merger
        As in `trellis.graphs.run`; they run here as they run there.
    time, event_id
        The columns that hold time and id. An id is needed: rows of Spark's have no order of their own.
    instances
        How many instances share the partitions; by default about two for each core. The results are the same with
        any number.
    graphs
        Where the graph of a partition is: `local`, in the Python worker of its instance; or `distributed`, as data
        frames on the cluster, while the operators' code runs in the driver, now.

    Returns
    -------
    pyspark.sql.DataFrame
        The merged results, in order.

    Raises
    ------
    UsageError
        If a column is missing, or the operator, the splitter and the merger do not fit each other.
    OperatorFailed, DataError
        When the results are asked for: what `trellis.graphs.run` raises, wrapped in an exception of Spark's.
    """
    with in_driver():
        events, schema = described_events(EventSource.of(frame), None, RunOptions(time=time, event_id=event_id))
        job = make_job(events, schema, splitter, operator, merger)
        ship(events.sparkSession)
        if graphs == DISTRIBUTED:
            if instances is not None:
                raise UsageError(
                    "instances share no partitions whose graphs are on the cluster", "Leave `instances` out."
                )
            return _merged(job, unmerged(job, events))
        return _merged(job, _unmerged(job, events, _numbers(events.sparkSession, instances)))


def run_chain(
    frame: DataFrame, parts: Sequence[PipelinePart], *, time: str | None = None, event_id: str | None = None,
    instances: int | None = None, graphs: str = LOCAL,
) -> DataFrame:  # fmt: skip
    """Run parts one after another, each over the results of the one before it; see `run`.

    Between two parts all results pass through one task, which numbers them.
    """
    first, *later = parts
    found = run(
        frame, first.splitter, first.operator, first.merger, time=time, event_id=event_id, instances=instances,
        graphs=graphs,
    )  # fmt: skip
    for part in later:
        found = run(
            _numbered(found), part.splitter, part.operator, part.merger, time=TIME, event_id=NUMBER,
            instances=instances, graphs=graphs,
        )  # fmt: skip
    return found


def _numbered(results: DataFrame) -> DataFrame:
    """Return merged results as events of the next part, as `trellis.graphs.chain.numbered` does."""
    check_numbered(results.columns)
    order = Window.orderBy(f.monotonically_increasing_id())  # the order that results have
    placed = results.withColumn(NUMBER, f.row_number().over(order).cast("long") - 1)
    until = Window.orderBy(NUMBER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return placed.withColumn(TIME, f.max(TIME).over(until))


def make_job(events: DataFrame, schema: Schema, splitter: Splitter, operator: Any, merger: Merger | None) -> Job:
    """Return a job over events on Spark."""
    if schema.event_id is None:
        raise UsageError("rows on Spark have no order of their own", "Name the column that holds the events' ids.")
    send_along(
        operator, splitter.opens, splitter.closes, splitter.broadcast, splitter.store, merger and merger.combine
    )  # fmt: skip
    return Job.over(
        to_arrow_schema(events.schema, timezone="UTC"), splitter, operator, merger, schema.time, schema.event_id
    )


def _numbers(session: SparkSession, instances: int | None) -> tuple[int, ...]:
    """Return a number for each instance; Spark spreads them over tasks by these."""
    if instances is None:
        return tuple(bucket_keys(session))
    if instances < 1:
        raise UsageError(f"{instances} instances cannot run", "At least one is needed.")
    return tuple(range(instances))


def _unmerged(job: Job, events: DataFrame, numbers: tuple[int, ...]) -> DataFrame:
    """Return the results before they are merged."""
    names = tuple(events.columns)
    inner = events.toDF(*map(column_name, range(len(names))))
    copies = inner.mapInArrow(
        Route(job, names, numbers), StructType([*inner.schema.fields, StructField(INSTANCE, IntegerType())])
    )
    assert job.shape.event_id is not None
    order = [column_name(names.index(name)) for name in (job.shape.time, job.shape.event_id)]
    if job.is_timed:  # at the price of a second look at the events
        copies = copies.crossJoin(f.broadcast(inner.agg(f.max(order[0]).alias(LAST))))
    sorted_ = copies.repartition(len(numbers), INSTANCE).sortWithinPartitions(INSTANCE, *order)
    return sorted_.mapInArrow(InstanceRunner(job, names, numbers), from_arrow_schema(inside_schema(job.inner)))


def _merged(job: Job, results: DataFrame) -> DataFrame:
    lead = output_names(5)
    if job.merger.plain:
        return results.orderBy(*lead).drop(lead[0]).toDF(*job.outer.names)
    merged = results.repartition(1).sortWithinPartitions(*lead)
    placed = pa.schema([*job.outer, ("place", pa.int64())])
    rows = merged.mapInArrow(Merge(job), from_arrow_schema(inside_schema(placed)))
    last = output_names(len(placed))[-1]
    return rows.orderBy(f.col(last)).drop(last).toDF(*job.outer.names)
