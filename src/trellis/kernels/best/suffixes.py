"""Best suffixes and numbers of suffixes by the attribute index: one backward pass each, without edges.

Vertices stand in the leaves of a binary tree whose inner nodes hold the best, or the sum, of what is below; a range of
vertices is then a few nodes. Nothing is ever taken out or subtracted, so that any values and any ranges will do. Where
the successors of an event are all vertices of a segment from one on, a Fenwick tree from its end takes half the time.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import saturating_sum
from trellis.kernels.best.nodes import copy, join, order_of
from trellis.kernels.best.search import END, NOWHERE
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def best_suffixes(window, each, last, kinds, signs):
    """Return for each event the value of the best path from it to an end, and the event that comes next on it.

    Parameters
    ----------
    window : trellis.kernels.unrank.by_index.IndexWindow
        The events of a task.
    each, last : int64 (events, words)
        What an event adds to the value of a path, and what it adds besides as the last one.
    kinds, signs : int64 (words,)
        `HIGH` or `LOW`, and 1 where more is better, -1 where less is; see `trellis.kernels.best.nodes`.

    Returns
    -------
    int64 (events, words + 1)
        The value, and the next event: `END` where the path ends, `NOWHERE` where there is none. Among equal values a
        path that ends comes first, then the one whose next event is the earliest.
    """
    vertices, later, place, firsts, lasts = window.vertices, window.later, window.place, window.firsts, window.lasts
    ends, every, usable = window.ends, window.every, window.usable
    own, own_end, tails = window.own, window.own_end, window.own.shape[0] > 0
    n, width = place.shape[0], kinds.shape[0]
    best = np.empty((n, width + 1), np.int64)
    # The best of what is below each node of the tree, and the event that it begins with; the last row is for a path
    # that ends at once.
    values = np.zeros((2 * vertices + 2, width + 1), np.int64)
    values[:, width] = NOWHERE
    ending = 2 * vertices + 1
    x = n - 1
    while x >= 0:
        begin = x
        while begin > 0 and later[begin - 1] == later[x]:
            begin -= 1
        for y in range(begin, x + 1):
            at = np.int64(-1)
            if usable[y]:
                if every or ends[y]:
                    copy(values, ending, last, y, width)
                    values[ending, width] = END
                    at = np.int64(ending)
                if tails:
                    end = np.int64(lasts[0][y])
                    i = end - firsts[0][y]
                    while i > 0:
                        at = _better(values, end - i, at, signs)
                        i &= i - 1
                for r in range(0 if tails else len(firsts)):
                    i, j = firsts[r][y] + vertices, lasts[r][y] + vertices
                    while i < j:
                        if i & 1:
                            at = _better(values, np.int64(i), at, signs)
                            i += 1
                        if j & 1:
                            j -= 1
                            at = _better(values, np.int64(j), at, signs)
                        i, j = i >> 1, j >> 1
            best[y, width] = NOWHERE
            if at >= 0:
                copy(best, y, values, at, width + 1)
                join(best, y, each, y, kinds)
        for y in range(begin, x + 1):
            if best[y, width] != NOWHERE and place[y] >= 0:
                end = np.int64(own_end[y]) if tails else np.int64(0)
                size, i = end - own[y] if tails else np.int64(0), end - place[y]
                while i <= size and tails:
                    if not _offer(values, end - i, best, y, signs):
                        break
                    i += i & -i
                i = 0 if tails else np.int64(place[y]) + vertices
                while i > 0:
                    if not _offer(values, i, best, y, signs):
                        break  # nor is it better further up
                    i >>= 1
        x = begin - 1
    return best


@njit(cache=True, nogil=True, inline="always")
def _better(values, i, at, signs):
    """Return which of two rows, -1 for none, is better: of equal ones the one that ends, or has the earlier event."""
    width = signs.shape[0]
    if values[i, width] == NOWHERE:
        return at
    if at < 0:
        return i
    order = order_of(values, i, values, at, signs)
    return i if order > 0 or (order == 0 and values[i, width] < values[at, width]) else at


@njit(cache=True, nogil=True, inline="always")
def _offer(values, i, best, y, signs):
    """Put the best path from an event into a row, if it is better than what is there; return whether it is."""
    width = signs.shape[0]
    if values[i, width] != NOWHERE:
        order = order_of(best, y, values, i, signs)
        if order < 0 or (order == 0 and y >= values[i, width]):
            return False
    copy(values, i, best, y, width)
    values[i, width] = y
    return True


@njit(cache=True, nogil=True)
def suffix_counts(window):
    """Return for each event the number of paths from it to an end, at most 2**64 - 1: uint64 (events,)."""
    vertices, later, place, firsts, lasts = window.vertices, window.later, window.place, window.firsts, window.lasts
    ends, every, usable = window.ends, window.every, window.usable
    own, own_end, tails = window.own, window.own_end, window.own.shape[0] > 0
    n = place.shape[0]
    counts, sums = np.zeros(n, np.uint64), np.zeros(2 * vertices + 2, np.uint64)
    x = n - 1
    while x >= 0:
        begin = x
        while begin > 0 and later[begin - 1] == later[x]:
            begin -= 1
        for y in range(begin, x + 1):
            if not usable[y]:
                continue
            total = np.uint64(1) if every or ends[y] else np.uint64(0)
            if tails:
                end = np.int64(lasts[0][y])
                i = end - firsts[0][y]
                while i > 0:
                    total = saturating_sum(total, sums[end - i])
                    i &= i - 1
            for r in range(0 if tails else len(firsts)):
                i, j = firsts[r][y] + vertices, lasts[r][y] + vertices
                while i < j:
                    if i & 1:
                        total = saturating_sum(total, sums[i])
                        i += 1
                    if j & 1:
                        j -= 1
                        total = saturating_sum(total, sums[j])
                    i, j = i >> 1, j >> 1
            counts[y] = total
        for y in range(begin, x + 1):
            if usable[y] and place[y] >= 0:
                end = np.int64(own_end[y]) if tails else np.int64(0)
                size, i = end - own[y] if tails else np.int64(0), end - place[y]
                while i <= size and tails:
                    sums[end - i] = saturating_sum(sums[end - i], counts[y])
                    i += i & -i
                i = 0 if tails else np.int64(place[y]) + vertices
                while i > 0:
                    sums[i] = saturating_sum(sums[i], counts[y])
                    i >>= 1
        x = begin - 1
    return counts
