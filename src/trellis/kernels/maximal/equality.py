"""Direct successors where the key of the later event must equal the other key of the earlier one (`src = prev.dest`).

An event leads from its `key_next` to its `key_prev`. What follows `x` are the later events that lead away from `v =
key_prev[x]`; one of them is a detour's end, and not direct, as soon as a path that left `v` after `x` is back at `v`.
So the direct successors of `x` are those up to the time of the earliest return, and that is found for all keys at once
by going backwards in time: `arrival[u, column]` is when a path that leaves `u` later than now can be at the key of the
column, at the earliest. An event lowers the row of its `key_next` to that of its `key_prev`, column by column.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

COLUMNS = 64


@njit(cache=True, nogil=True)
def _number_keys(begin, end, keys, local, count):
    for x in range(begin, end):
        if keys[x] >= 0 and local[keys[x]] < 0:
            local[keys[x]] = count
            count += 1
    return count


@njit(cache=True, nogil=True)
def _forget_keys(begin, end, keys, local):
    for x in range(begin, end):
        if keys[x] >= 0:
            local[keys[x]] = -1


@njit(cache=True, nogil=True)
def steps(rows, key_prev, local):
    """Return how many columns `returns` would lower in all; `local` is -1 for every key."""
    total = 0
    for row in range(rows.shape[0]):
        begin, owned, end = rows[row, 0], rows[row, 1], rows[row, 2]
        columns = _number_keys(begin, owned, key_prev, local, 0)
        _forget_keys(begin, owned, key_prev, local)
        total += (end - begin) * columns
    return total


@njit(cache=True, nogil=True)
def returns(rows, first, after, key_next, key_prev, local):
    """Return for each event the first one later than the earliest return to its `key_prev`, or the end of its tile.

    Parameters
    ----------
    rows
        Tiles, as `trellis.kernels.maximal.inequality.tiles` gives them.
    first, after
        For each event the first one of its time and the first one later.
    key_next, key_prev
        The keys, from 0; -1 where an event cannot follow, or be followed.
    local
        For each key -1.
    """
    back = np.empty(key_next.shape[0], np.int64)
    widest = most = 0
    for x in range(key_next.shape[0]):
        widest = max(widest, after[x] - first[x])
    for row in range(rows.shape[0]):
        most = max(most, rows[row, 2] - rows[row, 0])
    arrival = np.empty((2 * most, COLUMNS), np.int32)
    waiting = np.empty((min(widest, most), COLUMNS), np.int32)
    for row in range(rows.shape[0]):
        begin, owned, end = rows[row, 0], rows[row, 1], rows[row, 2]
        back[begin:owned] = end
        asked = _number_keys(begin, owned, key_prev, local, 0)
        keys = _number_keys(begin, end, key_prev, local, _number_keys(begin, end, key_next, local, asked))
        for column in range(0, asked, COLUMNS):
            arrival[:keys] = end
            _sweep(begin, owned, end, column, first, after, key_next, key_prev, local, arrival, waiting, back)
        _forget_keys(begin, end, key_prev, local)
        _forget_keys(begin, end, key_next, local)
    return back


@njit(cache=True, nogil=True)
def _sweep(begin, owned, end, column, first, after, key_next, key_prev, local, arrival, waiting, back):
    """Go backwards through a tile with the keys numbered from `column` on as columns."""
    x = end - 1
    while x >= begin:
        earliest = max(begin, first[x])
        for y in range(earliest, min(x + 1, owned)):
            if key_prev[y] >= 0:
                own = local[key_prev[y]] - column
                if 0 <= own < COLUMNS:
                    back[y] = min(back[y], arrival[local[key_prev[y]], own])
        for y in range(earliest, x + 1):
            if key_next[y] >= 0 and key_prev[y] >= 0:
                own = local[key_prev[y]]
                for j in range(COLUMNS):
                    waiting[y - earliest, j] = arrival[own, j]
                if 0 <= own - column < COLUMNS:
                    waiting[y - earliest, own - column] = min(after[y], end)
        for y in range(earliest, x + 1):
            if key_next[y] >= 0 and key_prev[y] >= 0:
                own = local[key_next[y]]
                for j in range(COLUMNS):
                    arrival[own, j] = min(arrival[own, j], waiting[y - earliest, j])
        x = earliest - 1


@njit(cache=True, nogil=True)
def runs(after, back, limit, key_prev, key_runs, by_key):
    """Return where the direct successors of each event begin and end in `by_key`.

    The events with key `k` that can follow are `by_key[key_runs[k]:key_runs[k + 1]]`.
    """
    n = after.shape[0]
    begins, ends = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for x in range(n):
        key = key_prev[x]
        if key >= 0:
            begins[x] = first_at_least(by_key, key_runs[key], key_runs[key + 1], after[x])
            ends[x] = first_at_least(by_key, begins[x], key_runs[key + 1], min(back[x], limit[x]))
    return begins, ends


@njit(cache=True, nogil=True)
def write_runs(begins, ends, by_key, successors):
    """Write the runs of `by_key` one after another."""
    place = 0
    for x in range(begins.shape[0]):
        for i in range(begins[x], ends[x]):
            successors[place] = by_key[i]
            place += 1
