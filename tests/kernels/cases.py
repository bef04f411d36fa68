"""Random arrays for kernels."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.kernels import naive
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.event_graph.edges import latest_predecessors


class RandomEvents(NamedTuple):
    """Events of some partitions in time order, several of them at one time."""

    times: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def is_later(self, x: int, y: int) -> bool:
        """Whether y is in the partition of x, and strictly later."""
        a, b = naive.partition_of(self.bounds, x)
        return bool(a <= y < b and self.times[y] > self.times[x])


def random_events(seed: int, n: int = 24, partitions: int = 2) -> RandomEvents:
    rng = np.random.default_rng(seed)
    bounds = np.concatenate([[0], np.sort(rng.integers(0, n + 1, partitions - 1)), [n]]).astype(np.int64)
    times = np.zeros(n, np.int64)
    for a, b in itertools.pairwise(bounds):
        times[a:b] = np.sort(rng.integers(0, n // 2 + 1, b - a))
    return RandomEvents(times, bounds)


def random_graph(seed: int, n: int = 12, share: float = 0.4) -> naive.Graph:
    rng = np.random.default_rng(seed)
    chosen = rng.random((n, n)) < share
    return [[y for y in range(x + 1, n) if chosen[x, y]] for x in range(n)]


def arrays_of(graph: naive.Graph) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Offsets and successors as kernels take them."""
    offsets, successors = naive.csr(graph)
    return np.array(offsets, np.int64), np.array(successors, np.int32)


def tasks_of(
    graph: naive.Graph, tasks: list[tuple[int, int]], single: bool = False, every: bool = False,
    first_end: list[int] | None = None,
) -> TaskGraph:  # fmt: skip
    """Tasks over a graph of usable events."""
    offsets, successors = arrays_of(graph)
    lo, hi = (np.array(side, np.int64) for side in zip(*tasks, strict=True))
    ends = lo if first_end is None else np.array(first_end, np.int64)
    latest = latest_predecessors(offsets, successors)
    return TaskGraph(lo, hi, ends, single, every, offsets, successors, latest, np.arange(len(graph)))
