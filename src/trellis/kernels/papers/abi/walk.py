"""The depth-first walk over the event graph of one window, in bounded batches: it goes on where it stopped."""

from __future__ import annotations

import numpy as np
from numba import njit

CURSOR, DEPTH, ENTERED, DEEPEST, STATE_SIZE = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def walk(state, nodes, places, lo, hi, stop, offsets, successors, starts, ends, values, path_ends):
    """Write the next paths from a start before `stop` on to an end, until there are no more or no more room.

    Parameters
    ----------
    state
        The next event that may be a start, how many events the path at hand has, whether its last event was told, and
        how many events a path had at most.
    nodes, places
        Room for the path at hand and for where each of its events stands among its edges.
    starts, ends
        Where paths may start and end, from the first event of the window on.
    values, path_ends
        Room for the paths, and for where each of them ends.

    Returns
    -------
    rows
        How many paths were written; where there are none, there are no more.
    """
    rows = used = 0
    cursor, depth, entered = state[CURSOR], state[DEPTH], state[ENTERED]
    while True:
        if depth == 0:
            while cursor < stop and not starts[cursor - lo]:
                cursor += 1
            if cursor >= stop:
                break
            nodes[0], places[0] = cursor, offsets[cursor]
            depth, entered = 1, 0
            cursor += 1
        x = nodes[depth - 1]
        if entered == 0:
            if ends[x - lo]:
                if rows == path_ends.shape[0] or used + depth > values.shape[0]:
                    break
                state[DEEPEST] = max(state[DEEPEST], depth)
                for i in range(depth):
                    values[used + i] = nodes[i]
                used += depth
                path_ends[rows] = used
                rows += 1
            entered = 1
        i = places[depth - 1]
        if i < offsets[x + 1] and successors[i] < hi:
            places[depth - 1] = i + 1
            y = np.int64(successors[i])
            nodes[depth], places[depth] = y, offsets[y]
            depth += 1
            entered = 0
        else:
            depth -= 1
    state[CURSOR], state[DEPTH], state[ENTERED] = cursor, depth, entered
    return rows
