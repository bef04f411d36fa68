"""The trend operator: counts, aggregates and lists the trends of a slice; it never knows which engine runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.kernels import walk as kernel
from trellis.plan.plan import Plan
from trellis.trends.address import Addresses, place
from trellis.trends.aggregate import Numbers, aggregate
from trellis.trends.count import Counter, IndexedCounter
from trellis.trends.graph import EventGraph, build_graph
from trellis.trends.index import build_index
from trellis.trends.slice import Slice
from trellis.trends.tasks import NO_BOUND, Tasks, length_bounds, make_tasks

BATCH_VALUES = 1 << 18
BATCH_BYTES = 1 << 26  # of the texts of a column, if those of all events come out equally often
MOST_BYTES = (1 << 31) - 1  # of the texts of a column of a batch, whichever events come out: Arrow's limit


@dataclass(frozen=True)
class Walked:
    """Some trends in rank order: the positions of their events one after another, and where each trend ends.

    A rank that does not fit 64 bits is -1.
    """

    positions: NDArray[np.int32]
    ends: NDArray[np.int32]
    ranks: NDArray[np.int64]
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)


class TrendOperator:
    """What can be asked of the trends of one slice."""

    def __init__(self, plan: Plan, events: Slice) -> None:
        self.plan, self.events = plan, events

    @cached_property
    def graph(self) -> EventGraph:
        """The event graph."""
        return build_graph(self.plan, self.events)

    @cached_property
    def tasks(self) -> Tasks:
        """What is counted and walked together."""
        return make_tasks(self.plan, self.events, lambda: self.graph)

    @cached_property
    def counter(self) -> Counter:
        """Counts without listing."""
        least, most = length_bounds(self.plan.bound.having)
        index = build_index(self.plan, self.events) if (least, most) == (1, NO_BOUND) else None
        if index is not None:
            return IndexedCounter(self.events, lambda: self.graph, self.tasks, index)
        return Counter(self.events, lambda: self.graph, self.tasks, least, most)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of trends of each group."""
        return self.counter.counts()

    def aggregate(self) -> list[Numbers]:
        """Return what AGGREGATE says of each group."""
        return aggregate(self.plan, self.counter)

    def at(self, group: int, ranks: Sequence[int]) -> Walked:
        """Return the trends of a group with given ranks, without those before them."""
        tasks = self.tasks.of_groups(np.array([group]))
        sizes = self.counter.of_tasks(tasks) if tasks.single else [self.counts[group]]
        found: dict[int, Addresses] = {}
        paths = []
        for rank in ranks:
            task, inner = place(sizes, rank)
            if task not in found:
                bits, having = sizes[task].bit_length(), self.plan.bound.having
                found[task] = Addresses(self.events, self.graph, tasks, task, bits, having)
            paths.append(found[task].trend(inner))
        ends = np.cumsum([len(p) for p in paths], dtype=np.int64).astype(np.int32)
        positions = np.concatenate([*paths, np.empty(0, np.int64)]).astype(np.int32)
        shown = np.array([r if r < 1 << 63 else -1 for r in ranks], np.int64)
        return Walked(positions, ends, shown, np.full(len(paths), group, np.int64))

    def walk(self, limit: int | None = None) -> Iterator[Walked]:
        """Yield all trends in the order (group, rank), or the first `limit` of each group, in bounded batches."""
        tasks, graph, events = self.tasks, self.graph, self.events
        if not len(tasks.lo):
            return
        deepest = int((tasks.hi - tasks.lo).max()) + 1
        least, most = length_bounds(self.plan.bound.having)
        pruned = least > 1 or most < NO_BOUND or (tasks.single and not tasks.every)
        state = np.zeros(kernel.STATE_SIZE, np.int64)
        state[kernel.GROUP] = -1
        nodes, places = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64)
        left = np.zeros(len(events) if pruned else 0, np.uint64)
        longest = np.zeros(len(events) if pruned else 0, np.int64)
        size = max(_batch_values(events), deepest)
        while True:
            values, ends = np.empty(size, np.int32), np.empty(size, np.int32)
            ranks, groups = np.empty(size, np.int64), np.empty(size, np.int64)
            kernel.walk(
                state, nodes, places, tasks.lo, tasks.hi, tasks.first_end, tasks.group, tasks.single, tasks.every,
                graph.offsets, graph.successors, graph.latest, events.usable, least, most, pruned, left, longest,
                NO_BOUND if limit is None else limit, values, ends, ranks, groups,
            )  # fmt: skip
            rows, used = int(state[kernel.ROWS]), int(state[kernel.VALUES])
            if not rows:
                return
            yield Walked(values[:used], ends[:rows], ranks[:rows], groups[:rows])


def _batch_values(events: Slice) -> int:
    """Return how many events a batch may name: fewer where texts are long."""
    most = BATCH_VALUES
    for column in [*events.columns.values(), events.ids]:
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            widths = pc.binary_length(column)
            widest, total = pc.max(widths).as_py() or 0, pc.sum(widths).as_py() or 0
            most = min(most, BATCH_BYTES * len(column) // max(total, 1), MOST_BYTES // max(widest, 1))
    return most
