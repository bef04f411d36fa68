"""Joining the stored partial trends of graphlets to trends, depth first, from the last graphlet of a window backwards.

Graphlets are ranges of events that follow one another. The partial trends that end at an event are rows of one pool;
one is joined with those that end at a predecessor, in an earlier graphlet, of the event that it begins with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.jit import njit
from trellis.kernels.list.wide import SPARE, copy_wide

CURSOR, DEPTH, DEEPEST, TOTAL, STATE = range(5)
FRESH = -1


class JoinWalk(NamedTuple):
    """The state of a walk over stored trends.

    Attributes
    ----------
    state : int64 (STATE,)
        The next event that may end a trend, how many rows are joined, the longest trend, and the events joined.
    at, rows, places : int64 (graphlets + 1,)
        At which events, at which of their rows, and at which predecessor of its first event.
    tail : int32 (deepest + SPARE,)
        Ends with the current trend as far as it is joined.
    """

    state: np.ndarray
    at: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    tail: np.ndarray


class StoredTrends(NamedTuple):
    """The partial trends of all graphlets: see `trellis.kernels.papers.cet.grow.keep_exits`.

    `values` is int32 (room + SPARE,), `ends` int64 (rows,), the others int64 (events,); `graphlet_of` is where the
    graphlet of each event begins.
    """

    values: np.ndarray  # int32 (room + SPARE,)
    ends: np.ndarray  # int64 (rows,)
    begins: np.ndarray  # int64 (events,)
    laters: np.ndarray  # int64 (events,)
    stops: np.ndarray  # int64 (events,)
    graphlet_of: np.ndarray  # int64 (events,)


@njit(cache=True, nogil=True)
def join(walk, lo, hi, graph, stored, values, value_ends):
    """Write trends until a buffer is full or none is left; return rows, values and whether none is left.

    Parameters
    ----------
    walk : JoinWalk
        Where the walk stands.
    lo, hi : int
        The window.
    graph, stored : TwoWayGraph, StoredTrends
        What is joined.
    values, value_ends : int32 (room + SPARE,), int32 (rows,)
        What is written to.
    """
    state, at, rows, places, tail = walk.state, walk.at, walk.rows, walk.places, walk.tail
    ok = graph.usable
    offsets, successors, before_offsets, before = graph.offsets, graph.successors, graph.before_offsets, graph.before
    graphlet_of, begins, laters, stops = stored.graphlet_of, stored.begins, stored.laters, stored.stops
    pool, ends = stored.values, stored.ends
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
