"""Operators over graphs in Spark's Python workers: events to their instances, instances over events, results merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.engines.spark.batch.operate import PLACE, for_spark
from trellis.engines.spark.session.failures import in_task
from trellis.errors import DataError
from trellis.graphs.instance import Instance
from trellis.graphs.job import Job, Row
from trellis.graphs.plain import from_bytes
from trellis.graphs.run import destinations

INSTANCE, FIRST, LAST = "instance", "first", "last"
ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class EventRoutes:
    """Which events, by their rows, go to which instances; of the copies of an event one is the `first`."""

    rows: np.ndarray
    instances: np.ndarray
    first: np.ndarray


def routed(job: Job, events: pa.Table, instances: int) -> EventRoutes:
    """Return where events go, which come in any order."""
    order = np.argsort(job.shape.times(events).to_numpy(), kind="stable")
    rows: list[int] = []
    places: list[int] = []
    first: list[bool] = []
    previous = now = None
    for row, event in zip(order.tolist(), job.shape.events(events.take(pa.array(order))), strict=True):
        if event.time != now:  # of one time, which is first is told by ids
            previous, now = now, event.time
        targets = destinations(job, event, previous, instances)
        rows += [row] * len(targets)
        places += targets
        first += [True] + [False] * (len(targets) - 1)
    return EventRoutes(np.array(rows, np.int64), np.array(places, np.int64), np.array(first, np.bool_))


@dataclass(frozen=True)
class Route:
    """Gives each event the instances that it goes to, as a row for each; `names` are the columns that the user has."""

    job: Job
    names: tuple[str, ...]
    numbers: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take events."""
        with in_task():
            for batch in batches:
                inner = pa.Table.from_batches([batch])
                events = inner.rename_columns(list(self.names))
                self.job.shape.refuse_unusable(events)
                found = routed(self.job, events, len(self.numbers))
                copies = inner.take(pa.array(found.rows))
                numbers = np.array(self.numbers, np.int32)[found.instances]
                yield from copies.append_column(INSTANCE, pa.array(numbers)).combine_chunks().to_batches()


@dataclass(frozen=True)
class InstanceRunner:
    """Runs instances over their events, which come sorted by instance, time and id.

    The column `LAST`, where there is one, has the time of the last of all events: up to it calls are made.
    """

    job: Job
    names: tuple[str, ...]
    numbers: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the events of instances, and give results."""
        with in_task():
            rows = self._rows(batches)
            while some := list(islice(rows, ROWS_AT_ONCE)):
                yield from map(for_spark, self.job.inner_table(some).to_batches())

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        instance, current, last = None, None, None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            numbers = table[INSTANCE].to_numpy()
            begins = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1)).tolist()
            if LAST in table.column_names and table.num_rows:
                last = self.job.shape.times(pa.table({self.job.shape.time: table[LAST].slice(0, 1)}))[0].as_py()
            events = table.select(range(len(self.names))).rename_columns(list(self.names))
            for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
                number = self.numbers.index(int(numbers[begin]))
                if instance is None or number != current:
                    if instance is not None:
                        yield from instance.end(last)
                    instance, current = Instance(self.job, number, len(self.numbers)), number
                yield from instance.take(self.job.shape.events(events.slice(begin, end - begin)))
        if instance is not None:
            yield from instance.end(last)


@dataclass(frozen=True)
class Merge:
    """Merges all results, which come sorted."""

    job: Job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take results in one task."""
        with in_task():
            merging = self.job.merging()
            made = merging.merged(row for batch in batches for row in inner_rows(self.job, batch))
            place = 0
            while some := list(islice(made, ROWS_AT_ONCE)):
                table = self.job.outer_table(some)
                places = pa.array(np.arange(place, place + table.num_rows))
                yield from map(for_spark, table.append_column(PLACE, places).to_batches())
                place += table.num_rows


def inner_rows(job: Job, batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Yield results as tuples, times as numbers."""
    columns = [batch.column(i) for i in range(len(job.inner))]
    if job.shape.temporal:
        columns[1] = columns[1].cast(job.shape.time_type).cast(pa.int64())
    return zip(*(column.to_pylist() for column in columns), strict=True)


class WeighEdges:
    """Gives each edge the weight that the user's function finds in its data."""

    def __init__(self, weight: Callable[[Any], float]) -> None:
        self.weight = weight

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take edges with their data."""
        with in_task():
            for batch in batches:
                found = (None if one is None else from_bytes(one) for one in batch["data"].to_pylist())
                weights = pa.array([float(self.weight(one)) for one in found], pa.float64())
                if pc.any(pc.is_nan(weights)).as_py():
                    raise DataError("the weight of an edge is NaN", "Each edge needs one.")
                yield pa.RecordBatch.from_arrays([batch["s"], batch["t"], weights], names=["s", "t", "w"])
