"""Best suffixes and numbers of suffixes by the attribute index: one backward pass each, without edges.

Vertices stand in the leaves of a binary tree whose inner nodes hold the best, or the sum, of what is below; a range of
vertices is then a few nodes. Nothing is ever taken out or subtracted, so that any values and any ranges will do. Where
the successors of an event are all vertices of a segment from one on, a Fenwick tree from its end takes half the time.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import saturating_sum
from trellis.kernels.best.search import END, NOWHERE
from trellis.kernels.jit import njit

NOTHING = -(1 << 63)  # in place of a value that there is not


@njit(cache=True, nogil=True)
def best_suffixes(window, each, last, sign):
    """Return for each event the value of the best path from it to an end, and the event that comes next on it.

    Parameters
    ----------
    window : trellis.kernels.unrank.by_index.IndexWindow
        The events of a task.
    each, last : int64 (events,)
        What an event adds to the value of a path, and what it adds besides as the last one.
    sign : int
        1 where more is better, -1 where less is.

    Returns
    -------
    int64 (events, 2)
        The value, and the next event: `END` where the path ends, `NOWHERE` where there is none. Among equal values a
        path that ends comes first, then the one whose next event is the earliest.
    """
    vertices, later, place, firsts, lasts = window.vertices, window.later, window.place, window.firsts, window.lasts
    ends, every, usable = window.ends, window.every, window.usable
    own, own_end, tails = window.own, window.own_end, window.own.shape[0] > 0
    n = place.shape[0]
    best = np.empty((n, 2), np.int64)
    values, events = np.full(2 * vertices + 2, NOTHING, np.int64), np.zeros(2 * vertices + 2, np.int32)
    x = n - 1
    while x >= 0:
        begin = x
        while begin > 0 and later[begin - 1] == later[x]:
            begin -= 1
        for y in range(begin, x + 1):
            value, follow = np.int64(NOTHING), np.int64(NOWHERE)
            if usable[y]:
                if every or ends[y]:
                    value, follow = sign * last[y], np.int64(END)
                if tails:
                    end = np.int64(lasts[0][y])
                    i = end - firsts[0][y]
                    while i > 0:
                        value, follow = _better(value, follow, values[end - i], events[end - i])
                        i &= i - 1
                for r in range(0 if tails else len(firsts)):
                    i, j = firsts[r][y] + vertices, lasts[r][y] + vertices
                    while i < j:
                        if i & 1:
                            value, follow = _better(value, follow, values[i], events[i])
                            i += 1
                        if j & 1:
                            j -= 1
                            value, follow = _better(value, follow, values[j], events[j])
                        i, j = i >> 1, j >> 1
            if follow != NOWHERE:
                value += sign * each[y]
            best[y, 0], best[y, 1] = value, follow
        for y in range(begin, x + 1):
            if best[y, 1] != NOWHERE and place[y] >= 0:
                end = np.int64(own_end[y]) if tails else np.int64(0)
                size, i = end - own[y] if tails else np.int64(0), end - place[y]
                while i <= size and tails:
                    value, follow = _better(values[end - i], np.int64(events[end - i]), best[y, 0], y)
                    if value == values[end - i] and follow == events[end - i]:
                        break
                    values[end - i], events[end - i] = value, follow
                    i += i & -i
                i = 0 if tails else np.int64(place[y]) + vertices
                while i > 0:
                    value, follow = _better(values[i], np.int64(events[i]), best[y, 0], y)
                    if value == values[i] and follow == events[i]:
                        break  # nor is it better further up
                    values[i], events[i] = value, follow
                    i >>= 1
        x = begin - 1
    for y in range(n):
        if best[y, 1] != NOWHERE:
            best[y, 0] *= sign
    return best


@njit(cache=True, nogil=True)
def _better(value, follow, other, event):
    """Return the better of two values with the events that they go on to: of equal ones END, or the earlier event."""
    if other != NOTHING and (other > value or (other == value and event < follow)):
        return other, np.int64(event)
    return value, follow


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
