"""Depth-first walks over the event graph: M-CET goes forwards over successors, SASE backwards over its pointers.

A walk has neighbours *ahead* and *behind*, for each event the nearest first. A path begins at an event without a
neighbour behind it in the window, and is whole at one without a neighbour ahead.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.kernels.list.blocks import SPARE, copy_wide

CURSOR, DEPTH, STATE = range(3)


@njit(cache=True, nogil=True)
def predecessors(offsets, successors):
    """Return offsets and predecessors of every event, the latest first."""
    n = offsets.shape[0] - 1
    begins = np.zeros(n + 1, np.int64)
    for i in range(successors.shape[0]):
        begins[successors[i] + 1] += 1
    for x in range(n):
        begins[x + 1] += begins[x]
    found = np.empty(successors.shape[0], np.int32)
    place = begins[1:].copy()
    for x in range(n):
        for i in range(offsets[x], offsets[x + 1]):
            place[successors[i]] -= 1
            found[place[successors[i]]] = x
    return begins, found


@njit(cache=True, nogil=True)
def longest_paths(lo, hi, ok, offsets, successors):
    """Return the number of events on the longest path of each task, and the edges inside it."""
    longest, edges = np.zeros(lo.shape[0], np.int64), np.zeros(lo.shape[0], np.int64)
    most = np.int64(0)
    for task in range(lo.shape[0]):
        most = max(most, hi[task] - lo[task])
    length = np.zeros(most, np.int64)
    for task in range(lo.shape[0]):
        begin, end = lo[task], hi[task]
        for x in range(end - 1, begin - 1, -1):
            further = np.int64(0)
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= end:
                    break
                further = max(further, length[successors[i] - begin])
                edges[task] += 1
            length[x - begin] = further + 1 if ok[x] else 0
            longest[task] = max(longest[task], length[x - begin])
    return longest, edges


@njit(cache=True, nogil=True, inline="always")
def _alone(x, lo, hi, offsets, neighbours):
    """Whether the nearest neighbour of an event is outside the window, or there is none."""
    if offsets[x] == offsets[x + 1]:
        return True
    y = neighbours[offsets[x]]
    return y < lo or y >= hi


@njit(cache=True, nogil=True)
def walk(
    state, nodes, places, lo, hi, ok, ahead_offsets, ahead, behind_offsets, behind, backwards, values, ends
):  # fmt: skip
    """Write paths until a buffer is full or none is left; return rows, values and whether none is left.

    `state`, `nodes` and `places` say where the walk stands; `backwards` paths are written from their last event on.
    `nodes` and `values` have `SPARE` values to spare at the end.
    """
    depth, cursor = state[DEPTH], state[CURSOR]
    row = used = np.int64(0)
    over = False
    while True:
        if depth == 0:
            while cursor < hi and not (ok[cursor] and _alone(cursor, lo, hi, behind_offsets, behind)):
                cursor += 1
            if cursor >= hi:
                over = True
                break
            y = cursor
            cursor += 1
        else:
            x = np.int64(nodes[depth - 1])
            i = places[depth - 1]
            if _alone(x, lo, hi, ahead_offsets, ahead):
                if row >= ends.shape[0] or used + depth > values.shape[0] - SPARE:
                    break
                if backwards:
                    for j in range(depth):
                        values[used + j] = nodes[depth - 1 - j]
                else:
                    copy_wide(values, used, nodes, 0, depth)
                used += depth
                ends[row] = used
                row += 1
                depth -= 1
                continue
            if i >= ahead_offsets[x + 1] or ahead[i] < lo or ahead[i] >= hi:
                depth -= 1
                continue
            y = np.int64(ahead[i])
            places[depth - 1] = i + 1
        nodes[depth] = y
        places[depth] = ahead_offsets[y]
        depth += 1
    state[DEPTH], state[CURSOR] = depth, cursor
    return row, used, over
