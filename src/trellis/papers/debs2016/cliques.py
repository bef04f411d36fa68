"""The largest clique of a graph that changes, edge by edge, and that of a large graph, by several workers."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from trellis.errors import UsageError
from trellis.kernels.graph.cliques import (
    connect,
    core_order,
    disconnect,
    peel,
    search,
    search_as_published,
    search_behind,
)

Bits = npt.NDArray[np.uint64]


class LargestClique:
    """The size of the largest clique of a graph whose vertices and edges come and go.

    An edge that comes can make it larger by one, and then the new clique holds both ends: only their common neighbours
    are searched. An edge that goes can make it smaller by one: then a clique of the old size is looked for.

    Parameters
    ----------
    as_published
        Search by the GraphCEP paper's Algorithm 1, which has weaker bounds.
    """

    def __init__(self, as_published: bool = False) -> None:
        self.size = 0
        self.steps = np.zeros(1, np.int64)
        self._as_published = as_published
        self._places: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._rows: Bits = np.zeros((64, 1), np.uint64)

    def add_vertex(self, vertex: Hashable) -> None:
        """Add a vertex, if it is not there."""
        if vertex in self._places:
            return
        if not self._free:
            used, words = self._rows.shape
            if len(self._places) == used:
                wider = np.zeros((2 * used, 2 * words), np.uint64)
                wider[:used, :words] = self._rows
                self._rows = wider
        self._places[vertex] = self._free.pop() if self._free else len(self._places)
        self.size = max(self.size, 1)

    def add(self, a: Hashable, b: Hashable) -> int:
        """Make two vertices neighbours, who may be new; return the size of the largest clique.

        Raises
        ------
        UsageError
            If they are the same.
        """
        if a == b:
            raise UsageError(f"{a!r} cannot be its own neighbour", "Name two vertices.")
        self.add_vertex(a)
        self.add_vertex(b)
        i, j = self._places[a], self._places[b]
        common = self._rows[i] & self._rows[j]
        connect(self._rows, i, j)
        if self._has(common, self.size - 1):
            self.size += 1
        return self.size

    def remove(self, a: Hashable, b: Hashable) -> int:
        """Make two neighbours strangers, if they were neighbours; return the size of the largest clique."""
        if a in self._places and b in self._places:
            i, j = self._places[a], self._places[b]
            common = self._rows[i] & self._rows[j]
            disconnect(self._rows, i, j)
            if self._has(common, self.size - 2) and not self._has(self._everyone(), self.size):
                self.size -= 1
        return self.size

    def remove_vertex(self, vertex: Hashable) -> int:
        """Take a vertex out, if it is there; return the size of the largest clique."""
        place = self._places.pop(vertex, None)
        if place is not None:
            for other in self._places.values():
                disconnect(self._rows, place, other)
            self._free.append(place)
            if not self._has(self._everyone(), self.size):
                self.size -= 1
        return self.size

    def _everyone(self) -> Bits:
        found = np.zeros(self._rows.shape[1], np.uint64)
        for place in self._places.values():
            found[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        return found

    def _has(self, chosen: Bits, size: int) -> bool:
        """Whether a set holds a clique of a size."""
        if size < 1:
            return True
        if self._as_published:
            return bool(search_as_published(self._rows, chosen, size - 1, size, self.steps) >= size)
        if peel(self._rows, chosen, size - 1) < size:
            return False
        return bool(search(self._rows, chosen, size - 1, size, 0, np.zeros(1, np.int64), self.steps) >= size)


def largest_clique(edges: npt.ArrayLike, workers: int = 1) -> int:
    """Return the size of the largest clique of a large, sparse graph.

    Parameters
    ----------
    edges
        Pairs of vertices, numbers or texts; direction, repetition and loops do not matter.
    workers
        How many threads share the work; each takes some of the vertices, and all know the largest clique so far.

    Raises
    ------
    UsageError
        If there is no worker.
    """
    if workers < 1:
        raise UsageError(f"workers is {workers}", "Take at least one.")
    given = np.asarray(edges)
    if not given.size:
        return 0
    ids, places = np.unique(given, return_inverse=True)
    pairs, number = places.reshape(-1, 2), len(ids)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    begins = np.searchsorted(both[:, 0], np.arange(number + 1))
    neighbours = np.ascontiguousarray(both[:, 1])
    order = core_order(begins, neighbours)
    shared = np.zeros(1, np.int64)

    def work(worker: int) -> None:
        search_behind(begins, neighbours, order, worker, workers, shared, np.zeros(1, np.int64))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    return int(shared[0])
