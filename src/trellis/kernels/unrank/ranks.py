"""The ranks of paths that were found in any order, from the numbers of paths behind every edge of a window."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least, saturating_sum
from trellis.kernels.jit import njit

ASTRAY = -2  # of what is not a path of the graph


@njit(cache=True, nogil=True)
def paths_before(lo, hi, offsets, successors, starts, ends):
    """Return how many paths of a window come before those from a start on, and before those over an edge.

    Parameters
    ----------
    lo, hi
        The window: its first event, and the one after its last.
    starts, ends
        Where paths may start and end, from the first event of the window on.

    Returns
    -------
    heads
        For each event of the window the paths that start earlier.
    before
        For each edge of the events of the window the paths that leave its source earlier; where the source may be an
        end, the path that ends there is one of them.
    """
    counts = np.zeros(hi - lo, np.uint64)
    base = offsets[lo]
    before = np.empty(offsets[hi] - base, np.uint64)
    one = np.uint64(1)
    for x in range(hi - 1, lo - 1, -1):
        total = one if ends[x - lo] else np.uint64(0)
        for i in range(offsets[x], offsets[x + 1]):
            before[i - base] = total
            if successors[i] < hi:
                total = saturating_sum(total, counts[successors[i] - lo])
        counts[x - lo] = total
    heads = np.empty(hi - lo, np.uint64)
    total = np.uint64(0)
    for x in range(hi - lo):
        heads[x] = total
        if starts[x]:
            total = saturating_sum(total, counts[x])
    return heads, before


@njit(cache=True, nogil=True)
def _edge(x, y, offsets, successors):
    """Return the place of the edge from x to y, or -1."""
    place = first_at_least(successors, offsets[x], offsets[x + 1], y)
    return place if place < offsets[x + 1] and successors[place] == y else -1


@njit(cache=True, nogil=True)
def ranks_of_paths(lo, hi, positions, path_ends, offsets, successors, starts, ends, heads, before):
    """Return the rank of each path in its window; -1 where it does not fit, `ASTRAY` where a path is not complete."""
    ranks = np.empty(path_ends.shape[0], np.int64)
    base = offsets[lo]
    begin = 0
    for p in range(path_ends.shape[0]):
        x = np.int64(positions[begin])
        last = np.int64(positions[path_ends[p] - 1])
        rank, fits = np.uint64(0), x >= lo and last < hi and starts[x - lo] and ends[last - lo]
        if fits:
            rank = heads[x - lo]
            for i in range(begin + 1, path_ends[p]):
                edge = _edge(x, positions[i], offsets, successors)
                if edge < 0:
                    fits = False
                    break
                rank = saturating_sum(rank, before[edge - base])
                x = np.int64(positions[i])
        if not fits:
            ranks[p] = ASTRAY
        else:
            ranks[p] = np.int64(rank) if rank < np.uint64(1 << 63) else -1
        begin = path_ends[p]
    return ranks
