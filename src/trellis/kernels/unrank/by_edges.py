"""Unranking by edges: how many paths go on from each event, and the path with a given rank.

Numbers of paths are little-endian limbs of 32 bits in 64-bit words, so that a sum over all successors never overflows
before its carries are taken. With as many limbs as the total needs they are exact.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import grown
from trellis.kernels.count.paths import may_end, may_start
from trellis.kernels.jit import njit

LIMB = 32
ENDLESS = 1 << 62  # a longest length of this or more is none
MASK = np.uint64(2**32 - 1)


@njit(cache=True, nogil=True)
def _carry(number):
    for i in range(number.shape[0] - 1):
        number[i + 1] += number[i] >> np.uint64(LIMB)
        number[i] &= MASK


@njit(cache=True, nogil=True)
def suffix_counts(graph, task, limbs):
    """Return for each event of a task the number of paths from it to an end: uint64 (events, limbs)."""
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors, nearest_end = graph.offsets, graph.successors, graph.nearest_end
    counts = np.zeros((hi - lo, limbs), np.uint64)
    for x in range(hi - 1, lo - 1, -1):
        if nearest_end[x] >= hi:
            continue
        here = counts[x - lo]
        if may_end(x, hi, first_end, every, offsets, successors):
            here[0] = np.uint64(1)
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            for j in range(limbs):
                here[j] += counts[successors[i] - lo, j]
        _carry(here)
    return counts


@njit(cache=True, nogil=True)
def layered_counts(graph, task, limbs, lengths):
    """Return for each length up to `lengths` and event of a task the number of paths of that many events.

    Returns
    -------
    uint64 (lengths, events, limbs)
    """
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors, nearest_end = graph.offsets, graph.successors, graph.nearest_end
    counts = np.zeros((lengths, hi - lo, limbs), np.uint64)
    for length in range(lengths):
        for x in range(hi - 1, lo - 1, -1):
            if nearest_end[x] >= hi:
                continue
            here = counts[length, x - lo]
            if length == 0:
                if may_end(x, hi, first_end, every, offsets, successors):
                    here[0] = np.uint64(1)
                continue
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi:
                    break
                for j in range(limbs):
                    here[j] += counts[length - 1, successors[i] - lo, j]
            _carry(here)
    return counts


@njit(cache=True, nogil=True)
def _take(rank, number):
    """Subtract `number` from `rank` in place and return True if it is not larger; else leave it and return False."""
    for i in range(rank.shape[0] - 1, -1, -1):
        if rank[i] > number[i]:
            break
        if rank[i] < number[i]:
            return False
    borrow = np.uint64(0)
    for i in range(rank.shape[0]):
        taken = number[i] + borrow
        borrow = np.uint64(1) if rank[i] < taken else np.uint64(0)
        rank[i] = (rank[i] + (borrow << np.uint64(LIMB))) - taken
    return True


@njit(cache=True, nogil=True)
def _completions(out, here, before, counts, layers, least, most):
    """Write into `out` how many paths go on from an event, with `before` events behind, to an allowed length."""
    if layers.shape[0] == 0:
        out[:] = counts[here]
    elif most >= ENDLESS:
        out[:] = counts[here]
        for length in range(1, min(least - before - 1, layers.shape[0]) + 1):
            _take(out, layers[length - 1, here])
    else:
        out[:] = np.uint64(0)
        for length in range(max(1, least - before), min(most - before, layers.shape[0]) + 1):
            out += layers[length - 1, here]
        _carry(out)


@njit(cache=True, nogil=True)
def _unrank(rank, graph, task, counts, layers, least, most, number, path):
    """Write the path with a rank into `path` and return its length, or 0 if the rank is too high; `rank` is used up."""
    lo, hi, first_end, single, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.single, graph.every
    offsets, successors, latest, nearest_end = graph.offsets, graph.successors, graph.latest, graph.nearest_end
    x = -1
    for start in range(lo, lo + 1 if single else hi):
        if may_start(start, lo, hi, single, every, nearest_end, latest):
            _completions(number, start - lo, 0, counts, layers, least, most)
            if not _take(rank, number):
                x = start
                break
    if x < 0:
        return 0
    depth = 0
    while True:
        path[depth] = x
        depth += 1
        if least <= depth <= most and may_end(x, hi, first_end, every, offsets, successors):
            number[:] = np.uint64(0)
            number[0] = np.uint64(1)
            if not _take(rank, number):
                return depth
        i = offsets[x]
        while True:
            _completions(number, successors[i] - lo, depth, counts, layers, least, most)
            if not _take(rank, number):
                break
            i += 1
        x = int(successors[i])


@njit(cache=True, nogil=True)
def unrank(ranks, graph, task, counts, layers, least, most):
    """Return the paths with given ranks, one after another, and where each ends; a path that there is not is empty.

    Parameters
    ----------
    ranks : uint64 (ranks, limbs)
        The ranks, in any order.
    graph, task : TaskGraph, int
        What the paths lie in.
    counts : uint64 (events, limbs)
        See `suffix_counts`.
    layers : uint64 (lengths, events, limbs)
        See `layered_counts`; empty where all lengths are allowed.
    least, most : int
        The lengths that are allowed.

    Returns
    -------
    events, ends : int32 (values,), int64 (ranks,)
    """
    events = np.empty(16 * ranks.shape[0], np.int32)
    path_ends = np.empty(ranks.shape[0], np.int64)
    rank, number = np.empty(ranks.shape[1], np.uint64), np.empty(ranks.shape[1], np.uint64)
    path = np.empty(graph.hi[task] - graph.lo[task], np.int32)
    used = 0
    for i in range(ranks.shape[0]):
        for j in range(rank.shape[0]):
            rank[j] = ranks[i, j]
        length = _unrank(rank, graph, task, counts, layers, least, most, number, path)
        if used + length > events.shape[0]:
            events = grown(events, used, 2 * (used + length))
        for j in range(length):
            events[used + j] = path[j]
        used += length
        path_ends[i] = used
    return events[:used].copy(), path_ends
