"""The attribute index as rows of Spark: what the joins work on, whoever has built it.

One row per event, with all columns of the split and besides

    event    its number; within a group numbers rise with (time, id)
    vertex   the attribute vertex with a from-edge to it, or NULL
    to       its to-edges, as ranges `[first, last)` of attribute vertices
    later    the least number of an event of a later time
    nearest  a number below the group's `until` if, and only if, some event of the group may follow
    starts   the groups in which a trend may start here: `group`, `window`, `until` and `first_end`

A trend of a group goes on with events below `until`, and ends at an event from `first_end` on that none may follow.
Vertices are the index's own where it has one; where the conditions, or the report, need edges, every event is a vertex.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.batch.operate import make_slice
from trellis.engines.spark.batch.sink import task_number
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import whole_groups
from trellis.engines.spark.split.split import Split, group_keys
from trellis.events.slice import Ints
from trellis.kernels.count import passes, shapes
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import AttributeIndex, Parts
from trellis.operators.trends.operator import TrendOperator
from trellis.operators.trends.tasks import TrendTasks
from trellis.plan.plan import Plan

EVENT, VERTEX, TO, LATER, NEAREST, STARTS = "event", "vertex", "to", "later", "nearest", "starts"
FIRST, LAST = "first", "last"
GROUP, WINDOW, UNTIL, FIRST_END = "group", "window", "until", "first_end"
ROOM = 40  # bits for the numbers of one task

_RANGE = pa.struct([pa.field(name, pa.int64()) for name in (FIRST, LAST)])
_START = pa.struct([pa.field(name, pa.int64()) for name in (GROUP, WINDOW, UNTIL, FIRST_END)])


def index_type(rows: DataFrame) -> t.StructType:
    """Return the type of indexed rows, made of the rows of a split."""
    number = pa.int64()
    added = {EVENT: number, VERTEX: number, TO: pa.list_(_RANGE), LATER: number, NEAREST: number}
    index = from_arrow_schema(pa.schema(added | {STARTS: pa.list_(_START)}))
    return t.StructType([*rows.schema.fields, *index.fields])


def index_in_kernels(rows: Split) -> DataFrame:
    """Return the rows of a split with the index that the kernels build of each group."""
    return rows.grouped().mapInArrow(KernelIndex(rows.plan, rows.length), index_type(rows.rows))


@dataclass(frozen=True)
class KernelIndex:
    """Adds the index to the rows of a task, in the order (group, time, id); `length` as in `Work`."""

    plan: Plan
    length: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task and give those that can be in a trend, once for each part of the index."""
        base = task_number() << ROOM
        used = NextNumbers(base, base, base)
        with in_task():
            for table in whole_groups(batches, group_keys(self.plan.bound)):
                graph = graph_of(TrendOperator(self.plan, make_slice(self.plan, table, self.length)))
                yield from graph.rows(table, used).to_batches()
                used = used.after(graph)


@dataclass(frozen=True)
class NextNumbers:
    """The first numbers that are free for events, vertices and groups."""

    events: int
    vertices: int
    groups: int

    def after(self, graph: IndexGraph) -> NextNumbers:
        """Return the numbers that are free after those of a graph."""
        return NextNumbers(self.events + len(graph), self.vertices + graph.width, self.groups + graph.groups)


@dataclass(frozen=True)
class IndexGraph:
    """Events, vertices and edges of a slice, in flat arrays, each numbered from 0.

    Attributes
    ----------
    position
        For each event its position in the slice; one that is in several parts of an index is there as often.
    vertex
        The vertex of each event, or -1.
    first, last, ends
        Ranges of vertices, and for each event where its ranges end.
    later, nearest
        As in the rows.
    usable
        Whether the event can be in a trend.
    starts
        Events at which a trend may start, in rising order, with the group, its window, `until` and `first_end`.
    width, groups
        The numbers of vertices and of groups.
    """

    position: Ints
    vertex: Ints
    first: Ints
    last: Ints
    ends: Ints
    later: Ints
    nearest: Ints
    usable: np.ndarray
    starts: tuple[Ints, Ints, Ints, Ints, Ints]
    width: int
    groups: int

    def __len__(self) -> int:
        return len(self.position)

    def rows(self, table: pa.Table, used: NextNumbers) -> pa.Table:
        """Return the rows of the events, from the table that the slice was made of."""
        event, group, window, until, first_end = self.starts
        ranges = [pa.array(numbers + used.vertices) for numbers in (self.first, self.last)]
        groups = [group + used.groups, window, until + used.events, first_end + used.events]
        added = {
            EVENT: pa.array(np.arange(len(self)) + used.events),
            VERTEX: pa.array(self.vertex + used.vertices, mask=self.vertex < 0),
            TO: _lists(self.ends, pa.StructArray.from_arrays(ranges, fields=list(_RANGE))),
            LATER: pa.array(self.later + used.events),
            NEAREST: pa.array(self.nearest + used.events),
            STARTS: _lists(
                np.searchsorted(event, np.arange(len(self)), side="right"),
                pa.StructArray.from_arrays(list(map(pa.array, groups)), fields=list(_START)),
            ),
        }
        found = table.take(pa.array(self.position))
        for name, column in added.items():
            found = found.append_column(name, column)
        return found.filter(pa.array(self.usable))


def _lists(ends: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), values)


def graph_of(operator: TrendOperator) -> IndexGraph:
    """Return the graph of an operator: its attribute index or, where it has none that is made of ranges, its edges."""
    index = operator.index
    if index is not None and not isinstance(index.shape, shapes.Pairs):
        return _of_index(operator, index)
    return _of_edges(operator, operator.graph)


def _of_index(operator: TrendOperator, index: AttributeIndex) -> IndexGraph:
    parts, shape = index.parts, index.shape
    sizes = parts.end - parts.begin
    offset = np.repeat(parts.offset, sizes)
    position = np.arange(len(offset)) - offset
    base = np.repeat(np.cumsum(parts.width) - parts.width, sizes)
    if isinstance(shape, shapes.Ranges):
        found = list(zip(shape.first, shape.last, strict=True))
    else:
        assert isinstance(shape, shapes.Tails)
        found = [(shape.first, shape.last)]
    first, last = (np.stack(side, axis=1) + base[:, None] for side in zip(*found, strict=True))
    return IndexGraph(
        position,
        np.where(shape.place < 0, -1, shape.place + base),
        first[first < last],
        last[first < last],
        np.cumsum((first < last).sum(axis=1)),
        index.events.later[position] + offset,
        index.events.nearest[position] + offset,
        operator.events.usable[position],
        _starts(operator, index.events.latest, parts),
        int(parts.width.sum()),
        len(operator.events.groups),
    )


def _of_edges(operator: TrendOperator, graph: EventGraph) -> IndexGraph:
    """Every event is a vertex; successors that follow one another are one range."""
    n = len(operator.events)
    targets = graph.successors.astype(np.int64)
    begins = np.ones(len(targets), np.bool_)
    begins[1:] = np.diff(targets) != 1
    begins[graph.offsets[:-1][np.diff(graph.offsets) > 0]] = True
    ranges = np.concatenate([np.flatnonzero(begins), [len(targets)]])
    every = np.arange(n)
    return IndexGraph(
        every,
        every,
        targets[ranges[:-1]],
        targets[ranges[1:] - 1] + 1,
        np.searchsorted(ranges[:-1], graph.offsets[1:]),
        every,
        passes.first_successors(graph.offsets, graph.successors),
        operator.events.usable,
        _starts(operator, graph.latest, None),
        n,
        len(operator.events.groups),
    )


def _starts(operator: TrendOperator, latest: Ints, parts: Parts | None) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the events at which a trend may start; see `Graph`."""
    tasks, groups = operator.tasks, operator.events.groups
    task, event = _possible_starts(tasks)
    fits = operator.events.usable[event]
    if not tasks.single and not tasks.every:
        fits &= latest[event] < tasks.lo[task]
    task, event = task[fits], event[fits]
    offset = np.zeros(len(task), np.int64) if parts is None else parts.offset[parts.of_task[tasks.number[task]]]
    order = np.argsort(event + offset, kind="stable")
    task, event, offset = task[order], event[order], offset[order]
    group = tasks.group[task]
    return (
        event + offset, group, groups.number[group], tasks.hi[task] + offset, tasks.first_end[task] + offset
    )  # fmt: skip


def _possible_starts(tasks: TrendTasks) -> tuple[Ints, Ints]:
    """Return pairs of a task and an event of it: the first one where all trends of the task start there."""
    sizes = np.ones(len(tasks), np.int64) if tasks.single else tasks.hi - tasks.lo
    task = np.repeat(np.arange(len(tasks)), sizes)
    return task, np.arange(len(task)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + tasks.lo[task]
