"""A Kleene query as a set of fixed sequences, one for each length that a trend can have, as the CET paper ran Flink."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trellis.kernels.papers.abi.breadth import count_longer
from trellis.kernels.papers.cet.graph import longest_paths
from trellis.kernels.papers.cet.levels import direct_flags, lengthen
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph
from trellis.papers.abi.bfs import batches_of_length
from trellis.papers.cet.baseline import compatible
from trellis.papers.cet.cet_graph import Places, cet_graph_of, check_size
from trellis.papers.contract import REFERENCE, AlgorithmInput

Flags = NDArray[np.bool_]


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows: of the matches of each sequence those that are complete.

    The sequences know nothing of one another: each is matched from its first event on, and its partial matches are held
    to the end of the window.
    """
    cet, graph = cet_graph_of(given), compatible(given)
    is_direct = direct_flags(graph.offsets, graph.successors, *cet.after)
    longest, _ = longest_paths(cet.lo, cet.hi, cet.ok, graph.offsets, graph.successors)
    for task in range(len(given.tasks)):
        lo, starts, ends = int(cet.lo[task]), given.may_start(task), given.may_end(task)
        window = _Window(given, graph, is_direct, lo, int(cet.hi[task]), starts)
        for length in range(1, int(longest[task]) + 1):
            rows, whole = window.matches(length)
            yield from batches_of_length(given.bounds, task, rows[whole & ends[rows[:, -1] - lo]])
        given.meter.release(REFERENCE * window.held)


class _Window:
    """The sequences of one window; `held` is how many events their partial matches name."""

    def __init__(
        self, given: AlgorithmInput, graph: EventGraph, is_direct: Flags, lo: int, hi: int, starts: Flags
    ) -> None:  # fmt: skip
        self.given, self.graph, self.is_direct, self.hi = given, graph, is_direct, hi
        self.events = np.flatnonzero(given.events.usable[lo:hi]) + lo
        self.starts = starts[self.events - lo]
        self.held = 0
        self._matches: list[Places] = []

    def matches(self, length: int) -> tuple[Places, Flags]:
        """Return all sequences of so many events, and which begin as a result does."""
        rows, whole = self.events.astype(np.int32)[:, None], self.starts
        self._hold(rows)
        edges = self.graph.offsets, self.graph.successors
        for _ in range(length - 1):
            number = count_longer(rows, self.hi, *edges)
            check_size(self.given, self.held + number * (rows.shape[1] + 1))
            longer, still = np.empty((number, rows.shape[1] + 1), np.int32), np.empty(number, np.bool_)
            lengthen(rows, whole, self.hi, *edges, self.is_direct, longer, still)
            rows, whole = longer, still
            self._hold(rows)
        return rows, whole

    def _hold(self, rows: Places) -> None:
        self.given.meter.hold(REFERENCE * rows.size)
        self.held += rows.size
        self._matches.append(rows)
