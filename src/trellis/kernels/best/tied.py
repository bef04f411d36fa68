"""Paths that are equally good, and ranks of paths, by the attribute index: scans that skip blocks, without edges."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import grown, saturating_sum
from trellis.kernels.best.nodes import copy, order_of, take_off
from trellis.kernels.best.search import END, NOWHERE
from trellis.kernels.jit import njit

SHIFT = 8  # events of a block, as a power of two
NOTHING = -(1 << 63)  # in place of a value that there is not
TOO_LONG = -1  # in place of a number of paths
LARGEST = np.uint64(2**63 - 1)


@njit(cache=True, nogil=True)
def tied_paths(window, each, best, kinds, signs, starts, most, steps):
    """List, in the order of ranks, the paths from each start that are the best from there: `most` of them.

    Parameters
    ----------
    window, each, kinds, signs
        As for `best_suffixes`.
    best : int64 (events, words + 1)
        What it returned.
    starts : int64 (starts,)
        Events, in rising order.
    most : int
        How many paths are wanted.
    steps : int
        How many events may be looked at.

    Returns
    -------
    events, ends : int32 (values,), int64 (paths,)
        The paths one after another, and where each ends.
    found : int
        How many there are; `TOO_LONG` if more events would have to be looked at.
    """
    later, place, firsts, lasts = window.later, window.place, window.firsts, window.lasts
    n, width, sign = place.shape[0], kinds.shape[0], signs[0]
    tops = np.full((n >> SHIFT) + 1, NOTHING, np.int64)  # the best first word of each block
    for z in range(n):
        if best[z, width] != NOWHERE:
            tops[z >> SHIFT] = max(tops[z >> SHIFT], sign * best[z, 0])
    wanted = np.empty((1, width), np.int64)
    nodes, places = np.empty(n, np.int32), np.empty(n, np.int32)
    events, ends = np.empty(1024, np.int32), np.empty(most, np.int64)
    used, found = 0, 0
    for start in starts:
        if best[start, width] == NOWHERE:
            continue
        depth, x, arrived = 0, np.int64(start), True
        while True:
            if arrived:
                nodes[depth], places[depth] = x, later[x]
                depth += 1
                if best[x, width] == END:
                    if used + depth > events.shape[0]:
                        events = grown(events, used, 2 * (used + depth))
                    for d in range(depth):
                        events[used + d] = nodes[d]
                    used += depth
                    ends[found] = used
                    found += 1
                    if found == most:
                        return events[:used].copy(), ends, found
            x, y = np.int64(nodes[depth - 1]), np.int64(places[depth - 1])
            copy(wanted, 0, best, x, width)
            take_off(wanted, 0, each, x, kinds)
            arrived = False
            while y < n:
                if (y & ((1 << SHIFT) - 1)) == 0 and tops[y >> SHIFT] < sign * wanted[0, 0]:
                    y += 1 << SHIFT
                    steps -= 1
                    continue
                steps -= 1
                if best[y, width] != NOWHERE and order_of(best, y, wanted, 0, signs) == 0:
                    for r in range(len(firsts)):
                        if firsts[r][x] <= place[y] < lasts[r][x]:
                            arrived = True
                    if arrived:
                        break
                y += 1
            if steps < 0:
                return events[:used].copy(), ends, TOO_LONG
            places[depth - 1] = min(y + 1, n)
            if arrived:
                x = y
            else:
                depth -= 1
                if depth == 0:
                    break
    return events[:used].copy(), ends, found


@njit(cache=True, nogil=True)
def ranks_by_index(window, counts, events, ends):
    """Return the ranks of paths of a window, -1 where one does not fit 63 bits.

    Parameters
    ----------
    window
        As for `best_suffixes`.
    counts : uint64 (events,)
        The number of paths from each event on, as `suffix_counts` returns them.
    events, ends : int32 (values,), int64 (paths,)
        The paths, in the order of their ranks.
    """
    later, place, firsts, lasts = window.later, window.place, window.firsts, window.lasts
    starts, path_ends, every, usable = window.starts, window.ends, window.every, window.usable
    ranks = np.empty(ends.shape[0], np.int64)
    ahead = np.zeros(place.shape[0] + 1, np.uint64)  # of the path at hand: what comes before its first events
    previous = 0
    for p in range(ends.shape[0]):
        begin, shared = ends[p - 1] if p > 0 else 0, 0
        if p > 0:
            while previous + shared < begin and events[previous + shared] == events[begin + shared]:
                shared += 1
        for d in range(shared, ends[p] - begin):
            x, same = np.int64(events[begin + d]), p > 0 and d == shared and previous + d < begin
            # What differs from the path before goes on from where that one stood.
            total, y = ahead[d], np.int64(0)
            if same:
                y = np.int64(events[previous + d])
                total = ahead[d + 1]
            if d == 0:
                for z in range(y, x):
                    if starts[z]:
                        total = saturating_sum(total, counts[z])
            else:
                last = np.int64(events[begin + d - 1])
                if not same:
                    y = later[last]
                    if every or path_ends[last]:
                        total = saturating_sum(total, np.uint64(1))
                for z in range(y, x):
                    for r in range(len(firsts)):
                        if usable[z] and firsts[r][last] <= place[z] < lasts[r][last]:
                            total = saturating_sum(total, counts[z])
            ahead[d + 1] = total
        total = ahead[ends[p] - begin]
        ranks[p] = np.int64(total) if total <= LARGEST else -1
        previous = begin
    return ranks
