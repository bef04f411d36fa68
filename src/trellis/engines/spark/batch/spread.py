"""Large groups in lazy frames: their events go through Spark's own shuffle to all tasks, each with a range of ranks.

A task lists the groups that have few results. A group with many is packed, with all events that it is listed from, once
for each range of its ranks; Spark sends these to other tasks, which list a range each. Nothing is collected, and no two
machines need a directory that both see. Whether a group is large is decided by its own number of results, so that every
task that looks at it decides the same, whatever else it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.batch.operate import Work, for_spark, make_slice
from trellis.engines.spark.batch.ranges import TaskSettings
from trellis.engines.spark.batch.sink import task_number
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.session import cores
from trellis.engines.spark.split.rows import whole_groups
from trellis.events.table_bytes import packed, unpacked
from trellis.limits import refuse_listing
from trellis.make import make_operator
from trellis.operators.batch import RankRange
from trellis.operators.contract import ListRequest, QueryOperator
from trellis.properties import cached_property
from trellis.results.arrange import possible_ranges
from trellis.results.rows import RowMaker

PIECE = 1 << 24  # bytes of events in a row; Spark's values end at two billion
LEAST = 100_000  # results of a range at least, if there are as many: what is sent must be worth it
PACKED = pa.schema(
    [
        ("range", pa.int64()), ("slice", pa.string()), ("part", pa.int64()), ("group", pa.int64()),
        ("begin", pa.int64()), ("end", pa.int64()), ("events", pa.binary()),
    ]
)  # fmt: skip


def spread(work: Work, grouped: DataFrame, schema: pa.Schema, tasks: TaskSettings) -> DataFrame:
    """Return a lazy frame of all results, large groups listed by all tasks.

    Parameters
    ----------
    work
        The work, `list`.
    grouped
        The rows of groups, together and sorted.
    schema
        The schema of results inside Spark.
    tasks
        From how many results on a group is large, and how many a range has at most.
    """
    number = cores(grouped.sparkSession)
    listed = grouped.mapInArrow(ListSmall(work, tasks.at_once), from_arrow_schema(schema))
    packed = grouped.mapInArrow(PackLarge(work, tasks.at_once, tasks.rows, number), from_arrow_schema(PACKED))
    sent = packed.repartitionById(number, f.col("range").cast("int")).sortWithinPartitions("range", "slice", "part")
    return listed.union(sent.mapInArrow(ListPacked(work), from_arrow_schema(schema)))


@dataclass(frozen=True)
class _GroupRanges:
    """The ranks of the groups of an operator that are in the result, by whether there are many."""

    work: Work
    operator: QueryOperator
    at_once: int

    @cached_property
    def ranges(self) -> list[RankRange]:
        """The ranges of all groups; a group with too many results is refused."""
        bound = self.work.plan.bound
        for count in self.operator.counts:
            refuse_listing(bound, [count], self.work.max_trends)
        return list(possible_ranges(bound, self.operator.counts))

    @property
    def small(self) -> list[RankRange]:
        """Those of groups that are listed at once."""
        return [one for one in self.ranges if one[2] - one[1] <= self.at_once]

    @property
    def large(self) -> list[RankRange]:
        """Those of groups that several tasks list."""
        return [one for one in self.ranges if one[2] - one[1] > self.at_once]


@dataclass(frozen=True)
class ListSmall:
    """Lists the groups of a task that have few results."""

    work: Work
    at_once: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task, in the order (group, time, id), and give results."""
        with in_task():
            for operator in self.work.operators(batches):
                yield from _listed(self.work, operator, _GroupRanges(self.work, operator, self.at_once).small)


@dataclass(frozen=True)
class PackLarge:
    """Packs the events of groups that have many results, once for each range of their ranks."""

    work: Work
    at_once: int
    rows: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task, in the order (group, time, id), and give those of `PACKED`."""
        with in_task():
            work, task = self.work, task_number()
            number = task  # so that tasks with few ranges do not all begin at the same one
            for table in whole_groups(batches, work.boundary, work.memory):
                operator = make_operator(work.plan, make_slice(work.plan, table, work.length))
                for group, first, last in _GroupRanges(work, operator, self.at_once).large:
                    for begin, end in self._cut(last - first, table.num_rows):
                        yield from _packed(table, number, f"{task}-{number}", (group, first + begin, first + end))
                        number += 1

    def _cut(self, results: int, events: int) -> list[tuple[int, int]]:
        """Return even ranges: as many for each task, but none that lists less than it is sent."""
        least = max(events, min(LEAST, self.at_once), 1)
        number = min(self.tasks * -(-results // (self.tasks * self.rows)), -(-results // least))
        return [(results * i // number, results * (i + 1) // number) for i in range(number)]


def _packed(table: pa.Table, number: int, name: str, ranks: RankRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range: some of the events in each."""
    rows = max(1, PIECE * table.num_rows // max(1, table.nbytes))
    for part, begin in enumerate(range(0, table.num_rows, rows)):
        events = packed(table.slice(begin, rows), compressed=False)
        row = dict(zip(PACKED.names, (number, name, part, *ranks, events), strict=True))
        yield pa.RecordBatch.from_pylist([row], schema=PACKED)


@dataclass(frozen=True)
class ListPacked:
    """Lists ranges of the results of groups that were packed."""

    work: Work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of `PACKED` of some ranges, in the order (range, slice, part), and give results."""
        with in_task():
            for table, ranks in _ranges_in(batches):
                plan = self.work.plan
                yield from _listed(self.work, make_operator(plan, make_slice(plan, table, self.work.length)), [ranks])


def _ranges_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, RankRange]]:
    """Yield the events and the ranks of each range."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for _, parts in groupby(rows, lambda row: (row["range"], row["slice"])):
        tables = []
        for row in parts:
            tables.append(unpacked(row["events"]))
            ranks = row["group"], row["begin"], row["end"]
        yield pa.concat_tables(tables).combine_chunks(), ranks


def _listed(work: Work, operator: QueryOperator, ranges: Sequence[RankRange]) -> Iterator[pa.RecordBatch]:
    maker = RowMaker(work.plan, operator.events)
    yield from map(for_spark, operator.list(ListRequest(ranges, maker.batch)))
