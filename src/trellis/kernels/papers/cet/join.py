"""Joining the stored partial trends of graphlets to trends, depth first, from the last graphlet of a window backwards.

Graphlets are ranges of events that follow one another. The partial trends that end at an event are rows of one pool;
one is joined with those that end at a predecessor, in an earlier graphlet, of the event that it begins with.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.kernels.list.wide import SPARE, copy_wide

CURSOR, DEPTH, DEEPEST, TOTAL, STATE = range(5)
FRESH = -1


@njit(cache=True, nogil=True)
def join(
    state, at, rows, places, tail, lo, hi, ok, offsets, successors, before_offsets, before, graphlet_of, begins,
    laters, stops, pool, ends, values, value_ends,
):  # fmt: skip
    """Write trends until a buffer is full or none is left; return rows, values and whether none is left.

    `state`, `at`, `rows` and `places` say where the walk stands: at which events, at which of their rows, and at which
    predecessor of its first event; `tail` ends with the current trend as far as it is joined. `graphlet_of` is where
    the graphlet of each event begins. `tail`, `pool` and `values` have `SPARE` values to spare at the end.
    """
    cursor, depth, deepest, total = state[CURSOR], state[DEPTH], state[DEEPEST], state[TOTAL]
    row = used = np.int64(0)
    room, most = tail.shape[0] - SPARE, values.shape[0] - SPARE
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
        start = ends[r - 1] if r else np.int64(0)
        if graphlet_of[at[d]] <= lo:
            # The first graphlet: what begins with an event without predecessor is whole, and nothing else can be.
            while r < laters[at[d]]:
                length = ends[r] - start
                if row >= value_ends.shape[0] or used + length + total > most:
                    break
                copy_wide(values, used, pool, start, length)
                copy_wide(values, used + length, tail, room - total, total)
                used += length + total
                deepest = max(deepest, length + total)
                value_ends[row] = used
                row += 1
                start = ends[r]
                r += 1
            rows[d] = r
            if r < laters[at[d]]:
                break
            depth -= 1
            continue
        if r >= stops[at[d]]:
            depth -= 1
            continue
        first = np.int64(pool[start])
        if places[d] == FRESH:
            length = ends[r] - start
            i = before_offsets[first]
            if i == before_offsets[first + 1] or before[i] < lo:
                if row >= value_ends.shape[0] or used + length + total > most:
                    break
                copy_wide(values, used, pool, start, length)
                copy_wide(values, used + length, tail, room - total, total)
                used += length + total
                deepest = max(deepest, length + total)
                value_ends[row] = used
                row += 1
                rows[d] += 1
                continue
            total += length
            for j in range(length):
                tail[room - total + j] = pool[start + j]
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
    state[CURSOR], state[DEPTH], state[DEEPEST], state[TOTAL] = cursor, depth, deepest, total
    return row, used, over
