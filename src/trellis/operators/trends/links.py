"""The successors of events as a search finds them: listed by a graph, or by the attribute index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.best.suffixes import best_suffixes, suffix_counts
from trellis.kernels.best.tied import ranks_by_index, tied_paths
from trellis.kernels.event_graph.edges import EdgeLists
from trellis.kernels.unrank.by_index import IndexWindow
from trellis.operators.batch import NO_RANK, PathBatch
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import AttributeIndex
from trellis.operators.trends.tasks import TrendTasks
from trellis.operators.trends.unrank import window_of
from trellis.properties import cached_property

MOST_SCANS = 64  # times that equally good paths may be looked for among all events


def paths_of_tasks(events: NDArray[np.int32], ends: Ints, tasks: Ints) -> PathBatch:
    """Return paths, each with its task in place of a group; their ranks are not known."""
    return PathBatch.of_ends(events, ends, (np.full(len(tasks), NO_RANK), tasks))


@dataclass(frozen=True)
class Links:
    """The edges between events, in the form of `trellis.kernels.best.nodes`.

    Where there are too many edges to list, the `window` of the one task on the attribute index tells them.
    """

    offsets: Ints
    successors: NDArray[np.int32]
    nearest: Ints
    latest: Ints
    window: IndexWindow | None = None

    def between(self, lo: int, hi: int) -> Links:
        """Return the listed edges among the events from `lo` to `hi`, numbered from there."""
        if not lo and hi == len(self.latest):
            return self
        first, offsets = self.offsets[lo], self.offsets[lo : hi + 1]
        successors = self.successors[first : offsets[-1]] - np.int32(lo)
        return Links(offsets - first, successors, self.nearest[lo:hi] - lo, self.latest[lo:hi] - lo)

    @property
    def lazy(self) -> bool:
        """Whether successors are found when they are asked for."""
        return self.window is not None

    @property
    def arrays(self) -> EdgeLists | IndexWindow:
        """The successors as the kernels take them."""
        return EdgeLists(self.offsets, self.successors) if self.window is None else self.window

    def best_suffixes(self, lo: int, each: Ints, last: Ints, kinds: Ints, signs: Ints) -> Ints:
        """Return the best suffixes of the events from `lo` on as the kernels keep them, where edges are not listed.

        `each` and `last` tell what all events give, anywhere and at the end of a trend, in words of `kinds` that are
        compared by `signs`.
        """
        window, skip, width = self.window, lo - self._begin, len(kinds)
        assert window is not None
        here = slice(self._begin, self._begin + len(window.place))
        own = (np.ascontiguousarray(values[here]) for values in (each, last))
        best = best_suffixes(window, *own, kinds, signs)[skip:]
        best[:, width] -= np.where(best[:, width] >= 0, skip, 0)
        return best

    @cached_property
    def suffix_counts(self) -> NDArray[np.uint64]:
        """The numbers of suffixes of the events of the task, up to 2**64 - 1, where edges are not listed."""
        assert self.window is not None
        return suffix_counts(self.window)

    @property
    def total(self) -> int:
        """The number of paths of the task; from 2**64 - 1 on any that is no larger."""
        assert self.window is not None
        counts = self.suffix_counts[self.window.starts]
        return (int((counts >> np.uint64(32)).sum()) << 32) + int((counts & np.uint64(2**32 - 1)).sum())

    def tied_paths(self, starts: Ints, each: Ints, best: Ints, kinds: Ints, signs: Ints, most: int) -> PathBatch | None:
        """Return the best paths from some events, if there are so many; `best` is of all events of the one task."""
        window = self.window
        assert window is not None
        here = slice(self._begin, self._begin + len(window.place))
        steps = MOST_SCANS * len(window.place)
        events, ends, found = tied_paths(
            window, np.ascontiguousarray(each[here]), best, kinds, signs, starts - self._begin, most, steps
        )
        if found < most:
            return None
        return paths_of_tasks(events + np.int32(self._begin), ends, np.zeros(most, np.int64))

    def ranks(self, paths: PathBatch) -> Ints:
        """Return the ranks of paths, in rising order, where edges are not listed."""
        assert self.window is not None
        return ranks_by_index(self.window, self.suffix_counts, paths.positions - np.int32(self._begin), paths.ends)

    @property
    def _begin(self) -> int:
        return 0 if self.window is None else self.window.begin


def links_of(graph: EventGraph, index: AttributeIndex | None = None) -> Links:
    """Return the links of an event graph; the index tells where paths may end, if not every event may end some."""
    if graph.nearest_end is not None and index is not None:
        return Links(graph.offsets, graph.successors, index.events.nearest, index.events.latest)
    n = len(graph.latest)
    nearest = np.full(n, n, np.int64)
    some = np.flatnonzero(np.diff(graph.offsets))
    nearest[some] = graph.successors[graph.offsets[some]]
    return Links(graph.offsets, graph.successors, nearest, graph.latest)


def links_by_index(index: AttributeIndex, tasks: TrendTasks, task: int) -> Links | None:
    """Return the links of one task without a list of edges, or None where its successors are not ranges."""
    window = window_of(index, tasks, task)
    if window is not None and len(window.reach):
        return None
    none = np.zeros(0, np.int64)
    events = index.events
    return None if window is None else Links(none, none.astype(np.int32), events.nearest, events.latest, window)
