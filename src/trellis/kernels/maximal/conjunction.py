"""Direct successors under several inequalities at once, all but one of them transitive: a scan for each event.

One event in between is enough for a detour, so what can follow `x` is direct unless it can also follow something
earlier that follows `x`. Of those only the ones that no other undercuts in every `below` are kept: the front. With two
inequalities the front is a staircase, rising in the first and falling in the second, and a binary search asks it.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least_in, grown
from trellis.kernels.jit import njit
from trellis.kernels.maximal.bisection import NO_CEILING

CHUNK = 512  # events that are looked at together


@njit(cache=True, nogil=True)
def _follows(x, y, above, below):
    follows = True
    for j in range(above.shape[0]):
        follows &= above[j, y] > below[j, x]
    return follows


@njit(cache=True, nogil=True)
def _beyond(front, size, y, above, below, lowest):
    """Whether `y` may follow something in the front; `lowest` is the first row of `below`."""
    if above.shape[0] == 2:
        under = first_at_least_in(front, lowest, 0, size, above[0, y])
        return under > 0 and below[1, front[under - 1]] < above[1, y]
    i = 0
    while i < size and not _follows(front[i], y, above, below):
        i += 1
    return i < size


@njit(cache=True, nogil=True)
def _undercuts(y, other, below):
    undercuts = True
    for j in range(below.shape[0]):
        undercuts &= below[j, y] <= below[j, other]
    return undercuts


@njit(cache=True, nogil=True)
def _put(front, size, y, below, lowest):
    """Put `y` into the front unless something undercuts it; take out what it undercuts. Return the new size."""
    if below.shape[0] == 2:
        at = first_at_least_in(front, lowest, 0, size, lowest[y])
        if at > 0 and below[1, front[at - 1]] <= below[1, y]:
            return size
        if at < size and _undercuts(front[at], y, below):
            return size
        end = at
        while end < size and below[1, front[end]] >= below[1, y]:
            end += 1
        if end == at:
            for i in range(size, at, -1):
                front[i] = front[i - 1]
        else:
            for i in range(end, size):
                front[at + 1 + i - end] = front[i]
        front[at] = y
        return size + 1 - (end - at)
    kept = 0
    for i in range(size):
        if _undercuts(front[i], y, below):
            return size
    for i in range(size):
        if not _undercuts(y, front[i], below):
            front[kept] = front[i]
            kept += 1
    front[kept] = y
    return kept + 1


@njit(cache=True, nogil=True)
def scanned_edges(partitions, after, limit, above, below, transitive, degrees, cap):
    """Return the direct edges as successors, those of each event in time order; `degrees` becomes their numbers.

    Parameters
    ----------
    partitions
        Where the key partitions begin, between which there are no edges.
    after, limit
        For each event the first one later, and the first one that it may not be followed by.
    above, below
        A row an inequality.
    transitive
        Whether all are transitive: then only direct successors need be in the front.
    cap
        How many edges are too many: the scan ends when there are more.
    """
    longest = 1
    for x in range(limit.shape[0]):
        longest = max(longest, limit[x] - x)
    front, waiting = np.empty(longest + 1, np.int64), np.empty(longest, np.int64)
    successors = np.empty(1 << 16, np.int32)
    found = 0
    for partition in range(partitions.shape[0] - 1):
        for x in range(partitions[partition], partitions[partition + 1]):
            last = min(limit[x], partitions[partition + 1])
            if found + last - x > successors.shape[0]:
                successors = grown(successors, found, 2 * successors.shape[0] + last - x)
            degrees[x] = _scan(x, last, after, above, below, transitive, front, waiting, successors[found:])
            found += degrees[x]
            if found > cap:
                return successors[:found]
    return successors[:found]


@njit(cache=True, nogil=True)
def _mark(begin, end, x, above, below, front, size, marks):
    """Mark which events from `begin` to `end` may follow `x`, but none of some of the front.

    The loops have no branches, so that many steps of them run at once.
    """
    if above.shape[0] == 2:
        _mark_by_two(begin, end, x, above, below, front, size, marks)
        return
    for i in range(end - begin):
        marks[i] = 1
    for j in range(above.shape[0]):
        codes, bound = above[j, begin:end], below[j, x]
        for i in range(end - begin):
            marks[i] &= codes[i] > bound


@njit(cache=True, nogil=True)
def _mark_by_two(begin, end, x, above, below, front, size, marks):
    a, b = above[0, begin:end], above[1, begin:end]
    low, low2 = below[0, x], below[1, x]
    bounds = np.full((4, 2), NO_CEILING, np.int32)
    for k in range(min(size, 4)):
        pivot = front[k * size // min(size, 4)]
        bounds[k, 0], bounds[k, 1] = below[0, pivot], below[1, pivot]
    p, q, r, s = bounds[0, 0], bounds[1, 0], bounds[2, 0], bounds[3, 0]
    p2, q2, r2, s2 = bounds[0, 1], bounds[1, 1], bounds[2, 1], bounds[3, 1]
    for i in range(end - begin):
        left, right = a[i], b[i]
        marks[i] = (
            (left > low) & (right > low2)
            & ((left <= p) | (right <= p2)) & ((left <= q) | (right <= q2))
            & ((left <= r) | (right <= r2)) & ((left <= s) | (right <= s2))
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _scan(x, last, after, above, below, transitive, front, waiting, successors):
    """Write the direct successors of an event; return how many."""
    marks = np.zeros(CHUNK, np.uint8)
    eights, lowest = marks.view(np.uint64), below[0]
    size = held = found = 0
    for begin in range(after[x], last, CHUNK):
        end = min(begin + CHUNK, last)
        marks[end - begin :] = 0
        _mark(begin, end, x, above, below, front, size if transitive else 0, marks)
        for eight in range(eights.shape[0]):
            if eights[eight] == 0:
                continue
            for y in range(begin + 8 * eight, begin + 8 * eight + 8):
                if not marks[y - begin]:
                    continue
                if held and after[waiting[0]] != after[y]:
                    for i in range(held):
                        size = _put(front, size, waiting[i], below, lowest)
                    held = 0
                direct = not _beyond(front, size, y, above, below, lowest)
                if direct:
                    successors[found] = y
                    found += 1
                if direct or not transitive:
                    waiting[held] = y
                    held += 1
    return found
