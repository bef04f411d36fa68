"""Joining the stored partial trends of graphlets to trends, depth first, from the last graphlet of a window backwards.

Graphlets are stretches of events that follow one another. The partial trends that end at an event are rows of one pool;
one is joined with those that end at a predecessor, in an earlier graphlet, of the event that it begins with.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CURSOR, DEPTH, DEEPEST, STATE = range(4)
FRESH = -1


@njit(cache=True, nogil=True, inline="always")
def _length(ends, row):
    return ends[row] - (ends[row - 1] if row else 0)


@njit(cache=True, nogil=True)
def join(
    state, at, rows, places, lo, hi, ok, offsets, successors, before_offsets, before, graphlet_of, begins, stops,
    pool, ends, values, value_ends,
):  # fmt: skip
    """Write trends until a buffer is full or none is left; return rows, values and whether none is left.

    `state`, `at`, `rows` and `places` say where the walk stands: at which events, at which of their rows, and at which
    predecessor of its first event. `graphlet_of` is where the graphlet of each event begins.
    """
    cursor, depth, deepest = state[CURSOR], state[DEPTH], state[DEEPEST]
    row = used = np.int64(0)
    total = np.int64(0)  # events on the current trend
    for d in range(depth - 1):
        total += _length(ends, rows[d])
    if depth and places[depth - 1] != FRESH:
        total += _length(ends, rows[depth - 1])
    over = False
    while True:
        if depth == 0:
            while cursor < hi and not (
                ok[cursor] and (offsets[cursor] == offsets[cursor + 1] or successors[offsets[cursor]] >= hi)
            ):
                cursor += 1
            if cursor >= hi:
                over = True
                break
            at[0], rows[0], places[0] = cursor, begins[cursor], FRESH
            cursor += 1
            depth = 1
            continue
        d = depth - 1
        r = rows[d]
        if r >= stops[at[d]]:
            depth -= 1
            continue
        start = ends[r - 1] if r else np.int64(0)
        first = np.int64(pool[start])
        if places[d] == FRESH:
            length = ends[r] - start
            i = before_offsets[first]
            if i == before_offsets[first + 1] or before[i] < lo:
                whole = total + length
                if row >= value_ends.shape[0] or used + whole > values.shape[0]:
                    break
                deepest = max(deepest, whole)
                for e in range(d, -1, -1):
                    for j in range(ends[rows[e]] - _length(ends, rows[e]), ends[rows[e]]):
                        values[used] = pool[j]
                        used += 1
                value_ends[row] = used
                row += 1
                rows[d] += 1
                continue
            total += length
            deepest = max(deepest, total)
            while i < before_offsets[first + 1] and before[i] >= graphlet_of[first]:
                i += 1  # those have rows of their own in the same graphlet
            places[d] = i
        i = places[d]
        if i >= before_offsets[first + 1] or before[i] < lo:
            total -= ends[r] - start
            rows[d] += 1
            places[d] = FRESH
            continue
        places[d] = i + 1
        x = np.int64(before[i])
        at[depth], rows[depth], places[depth] = x, begins[x], FRESH
        depth += 1
    state[CURSOR], state[DEPTH], state[DEEPEST] = cursor, depth, deepest
    return row, used, over
