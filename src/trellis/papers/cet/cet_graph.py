"""The event graph in both directions, as the CET algorithms traverse it, and buffers that kernels fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Ints
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import walk as kernel
from trellis.kernels.list.wide import SPARE
from trellis.kernels.papers.cet.graph import TwoWayGraph, longest_paths, predecessors
from trellis.operators.batch import PathBatch
from trellis.operators.trends.tasks import NO_BOUND
from trellis.papers.contract import REFERENCE, AlgorithmInput, Bounds
from trellis.properties import cached_property

Places = NDArray[np.int32]


@dataclass(frozen=True)
class CetGraph:
    """The event graph of an input: successors the earliest first, predecessors the latest first."""

    offsets: Ints
    successors: Places
    before_offsets: Ints
    before: Places
    ok: NDArray[np.bool_]
    lo: Ints
    hi: Ints

    @property
    def after(self) -> tuple[Ints, Places]:
        """Offsets and successors."""
        return self.offsets, self.successors

    @property
    def behind(self) -> tuple[Ints, Places]:
        """Offsets and predecessors."""
        return self.before_offsets, self.before

    @property
    def both(self) -> TwoWayGraph:
        """The graph in both directions, as kernels take it."""
        return TwoWayGraph(*self.after, *self.behind, self.ok)

    @cached_property
    def extents(self) -> tuple[Ints, Ints]:
        """For each task the number of events on its longest trend, and its edges."""
        longest, edges = longest_paths(self.lo, self.hi, self.ok, *self.after)
        return longest, edges


def cet_graph_of(given: AlgorithmInput) -> CetGraph:
    """Return the graph of an input in both directions."""
    graph, tasks = given.graph, given.tasks
    offsets, before = predecessors(graph.offsets, graph.successors)
    return CetGraph(graph.offsets, graph.successors, offsets, before, given.events.usable, tasks.lo, tasks.hi)


class Buffer:
    """Room for a batch of trends; what was given away is not written again."""

    def __init__(self, longest: int, bounds: Bounds) -> None:
        """Make room for at least one trend of so many events."""
        self._size, self._rows = max(bounds.batch_values, longest), bounds.batch_rows
        self._renew()

    def _renew(self) -> None:
        self.values, self.offsets = np.empty(self._size + SPARE, np.int32), np.empty(self._rows + SPARE, np.int32)
        self.ends = self.offsets[1:]

    def batch(self, task: int, rows: int, used: int) -> PathBatch:
        """Return the trends that were written."""
        values, ends = self.values[:used], self.ends[:rows]
        if 2 * used < self._size:
            return PathBatch.of_task(values.copy(), ends.copy(), task)
        self._renew()
        return PathBatch.of_task(values, ends, task)


def check_size(given: AlgorithmInput, references: float) -> None:
    """Refuse to store partial trends that name more events than a process should hold, or the limit allows."""
    limit = given.settings.memory_limit
    most = given.bounds.references if limit is None else limit // REFERENCE
    if references > most:
        told = f"{references:,.0f}" if references < 1e15 else f"{references:.1e}"
        size = f"{references * REFERENCE:,.0f}" if references < 1e15 else f"{references * REFERENCE:.1e}"
        raise TrellisError(
            f"the algorithm `{given.meter.algorithm}` would store partial trends of {told} events, {size} bytes, in "
            f"one window: more than the {'bound' if limit is None else 'memory limit'} of {most * REFERENCE:,}",
            "Use h-cet with a memory limit, m-cet, or leave the algorithm out.",
        )


def walk_trends(
    given: AlgorithmInput, cet: CetGraph, task: int, buffer: Buffer, backwards: bool
) -> Iterator[PathBatch]:
    """Yield the trends of a window, found forwards over successors or backwards over predecessors."""
    first, last = given.may_start(task), given.may_end(task)
    marks = kernel.WalkMarks(last, first, True) if backwards else kernel.WalkMarks(first, last, False)
    edges = cet.behind if backwards else cet.after
    nearest_end = np.where(cet.ok, np.arange(len(cet.ok)), NO_BOUND)
    graph = TaskGraph(cet.lo, cet.hi, cet.lo, False, False, *edges, given.graph.latest, nearest_end)
    state, ranges = kernel.walk_of_task(task, int(cet.extents[0][task]))
    while not state.state[kernel.RANGE]:
        rows = kernel.WalkRows(buffer.values, buffer.offsets, None)
        kernel.fill(state, ranges, graph, None, None, marks, rows)
        number, used = state.state[kernel.ROWS : kernel.VALUES + 1].tolist()
        if number:
            yield buffer.batch(task, number, used)
