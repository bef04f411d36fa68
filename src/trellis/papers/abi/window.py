"""A window made ready for anchors: its ABI graph, where trends start and end, which vertices are anchors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.events.partitions import later_times
from trellis.kernels.papers.abi import edges as edge_kernel
from trellis.kernels.papers.abi import join as join_kernel
from trellis.language.syntax import Report
from trellis.papers.abi.graph import PARALLEL, AbiGraph, Values, build
from trellis.papers.contract import REFERENCE, AlgorithmInput
from trellis.properties import cached_property

Flags = NDArray[np.bool_]
FIRST_TRIED, FACTOR = 16, 4  # anchors that are tried where none are asked for, and how many times more the next time
ENOUGH = 1 << 26  # bytes of sub-sequences that are well spent where there is no limit


def pre_filtered(given: AlgorithmInput, abi: AbiGraph, exact: bool, task: int) -> tuple[Flags, Flags]:
    """Return where trends of a window may start and end: by Algorithm 3 where the ABI graph tells all, else by edges.

    Under REPORT any every event may be both.
    """
    if given.tasks.every or not exact:
        return given.may_start(task), given.may_end(task)
    lo, hi = int(given.tasks.lo[task]), int(given.tasks.hi[task])
    times = given.events.ticks[lo:hi]
    ticks = np.cumsum(np.concatenate([[False], times[1:] != times[:-1]])).astype(np.int64)
    return edge_kernel.pre_filter(ticks, abi.vertex, abi.first, abi.last, abi.offsets, abi.held, lo, abi.vertices)


@dataclass
class AbiWindow:
    """One task of an input, and how it is cut at anchors."""

    given: AlgorithmInput
    values: Values
    task: int

    def __post_init__(self) -> None:
        tasks, settings = self.given.tasks, self.given.settings
        self.lo, self.hi = int(tasks.lo[self.task]), int(tasks.hi[self.task])
        construction = PARALLEL if settings.construction == "auto" else settings.construction
        bounds = self.given.bounds
        self.abi = build(self.values, self.lo, self.hi, self.hi, construction, settings.threads, bounds=bounds)
        self.starts, self.ends = pre_filtered(self.given, self.abi, self.values.exact, self.task)

    @property
    def exact(self) -> bool:
        """Whether an event with a to-edge to an anchor may be followed by every later event of the anchor."""
        return self.values.exact and self.given.plan.bound.report is not Report.MAXIMAL

    @cached_property
    def later(self) -> Ints:
        """For each event the first later one of the window."""
        here = self.given.events.ticks[self.lo : self.hi]
        return self.lo + later_times(here, np.array([0, len(here)]))

    @cached_property
    def passable(self) -> Flags:
        """The events at which a sub-sequence may begin if they are anchored: something may lead to them."""
        graph = self.given.graph
        return (self.abi.vertex >= 0) & (graph.latest[self.lo : self.hi] >= self.lo)

    @cached_property
    def _candidates(self) -> Ints:
        """The vertices that can be anchors with effect."""
        return np.unique(self.abi.vertex[self.passable])

    def anchors(self, number: int) -> Ints:
        """Return so many anchors, or all that have an effect: vertices at even distances."""
        some = self._candidates
        if number >= len(some):
            return some
        return some[((np.arange(number) + 0.5) * len(some) / number).astype(np.int64)]

    def cut(self) -> Cut:
        """Return the window cut at as many anchors as are asked for.

        Else at the fewest tried whose sub-sequences take no more than the memory limit, or than `ENOUGH`.
        """
        settings = self.given.settings
        if settings.anchors is not None:
            return Cut(self, self.anchors(settings.anchors))
        number = FIRST_TRIED
        while True:
            cut = Cut(self, self.anchors(number))
            if number >= len(self._candidates) or cut.nbytes <= (settings.memory_limit or ENOUGH):
                return cut
            number *= FACTOR


class Cut:
    """A window cut at anchors: what there is between them."""

    def __init__(self, window: AbiWindow, anchors: Ints) -> None:
        self.window, self.anchors = window, anchors
        graph = window.given.graph
        is_anchor = np.zeros(window.abi.vertices + 1, np.bool_)
        is_anchor[anchors] = True
        self.anchored: Flags = window.passable & is_anchor[window.abi.vertex]
        self.numbers = join_kernel.measure(
            window.lo, window.hi, graph.offsets, graph.successors, self.anchored, window.ends
        )

    @cached_property
    def heads(self) -> NDArray[np.int32]:
        """Where sub-sequences begin: the starts, then the events of each anchor, by time."""
        held = np.flatnonzero(self.anchored)
        held = held[np.argsort(self.window.abi.vertex[held], kind="stable")]
        return (self.window.lo + np.concatenate([np.flatnonzero(self.window.starts), held])).astype(np.int32)

    @cached_property
    def anchor_heads(self) -> Ints:
        """Where the heads of each anchor begin, and at last where all heads end."""
        first = np.count_nonzero(self.window.starts)
        own = self.window.abi.vertex[self.heads[first:] - self.window.lo]
        return first + np.concatenate([np.searchsorted(own, self.anchors), [len(own)]])

    def _begins(self, row: int) -> Ints:
        """Return where what the heads have of a kind begins, and at last where it ends."""
        sizes = self.numbers[row][self.heads - self.window.lo]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def sub_begins(self) -> Ints:
        """Where the sub-sequences of each head begin."""
        return self._begins(1)

    @cached_property
    def value_begins(self) -> Ints:
        """Where the events of the sub-sequences of each head begin."""
        return self._begins(2)

    @property
    def nbytes(self) -> float:
        """The bytes that the sub-sequences refer to events with."""
        return REFERENCE * float(self.numbers[2][self.heads - self.window.lo].sum())

    @property
    def trends(self) -> tuple[float, float]:
        """The number of trends of the window, and of the events that they name."""
        starts = np.flatnonzero(self.window.starts)
        return float(self.numbers[3][starts].sum()), float(self.numbers[4][starts].sum())
