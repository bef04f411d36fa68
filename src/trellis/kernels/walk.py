"""Listing the paths of the event graph in rank order, a bounded number at a time.

The walk is depth first and can be left and taken up again anywhere: its whole state is two small arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.kernels.paths import _ends, _starts

# Places in the state.
TASK, CURSOR, DEPTH, FRESH, READY, RANK, GROUP, ROWS, VALUES = range(9)
STATE_SIZE = 9
FAR = np.uint64(63)  # this bit of a set of lengths stands for 64 and more


@njit(cache=True, nogil=True)
def _lengths_left(lo, hi, first_end, every, offsets, successors, ok, left, longest):
    """For each event of a task: the set of lengths of paths from it to an end, as bits, and the greatest of them."""
    far = np.uint64(1) << FAR
    for x in range(hi - 1, lo - 1, -1):
        bits, high = np.uint64(0), np.int64(0)
        if ok[x]:
            if _ends(x, hi, first_end, every, offsets, successors):
                bits, high = np.uint64(1), np.int64(1)
            for i in range(offsets[x], offsets[x + 1]):
                y = successors[i]
                if y >= hi:
                    break
                bits |= (left[y] << np.uint64(1)) | (left[y] & far)
                if longest[y] > 0:
                    high = max(high, longest[y] + 1)
        left[x], longest[x] = bits, high


@njit(cache=True, nogil=True)
def _can_be(before, bits, high, least, most):
    """Whether `before` events and some more, as many as `bits` and `high` allow, make an allowed length."""
    if before + high < least:
        return False
    low, top = max(1, least - before), most - before
    if top < 1:
        return False
    if top >= 64 and high >= low and (bits >> FAR) & np.uint64(1):
        return True
    for j in range(low, min(top, 63) + 1):  # noqa: SIM110 (Numba has no any())
        if (bits >> np.uint64(j - 1)) & np.uint64(1):
            return True
    return False


@njit(cache=True, nogil=True)
def walk(
    state, nodes, places, lo, hi, first_end, group, single, every, offsets, successors, latest, ok,
    least, most, pruned, left, longest, limit, values, ends, ranks, groups,
):  # fmt: skip
    """Write the next paths until a buffer is full or all are written.

    `values` gets the events of the paths one after another, `ends` where each path ends in it, `ranks` and `groups` the
    path's rank and group. At most `limit` paths of a group are written. `state[ROWS]` and `state[VALUES]` tell how
    many of each; the walk is over when no path was written.
    """
    tasks = lo.shape[0]
    rows = used = np.int64(0)
    while state[TASK] < tasks:
        task = state[TASK]
        if not state[READY]:
            if group[task] != state[GROUP]:
                state[GROUP], state[RANK] = group[task], 0
            if pruned:
                _lengths_left(lo[task], hi[task], first_end[task], every, offsets, successors, ok, left, longest)
            state[READY], state[CURSOR], state[DEPTH] = 1, lo[task], 0
        if state[DEPTH] == 0:
            x = state[CURSOR]
            stop = lo[task] + 1 if single else hi[task]
            while x < stop:
                if _starts(x, lo[task], single, every, ok, latest) and (
                    not pruned or _can_be(0, left[x], longest[x], least, most)
                ):
                    break
                x += 1
            if x >= stop or state[RANK] >= limit:
                state[TASK] += 1
                state[READY] = 0
                continue
            state[CURSOR] = x + 1
            nodes[0], places[0] = x, offsets[x]
            state[DEPTH], state[FRESH] = 1, 1
        depth = state[DEPTH]
        x = nodes[depth - 1]
        if state[FRESH]:
            if least <= depth <= most and _ends(x, hi[task], first_end[task], every, offsets, successors):
                if rows >= ends.shape[0] or used + depth > values.shape[0]:
                    break
                for d in range(depth):
                    values[used + d] = nodes[d]
                used += depth
                ends[rows], ranks[rows], groups[rows] = used, state[RANK], group[task]
                rows += 1
                state[RANK] += 1
                if state[RANK] >= limit:
                    state[DEPTH] = 0
                    state[CURSOR] = hi[task]
                    continue
            state[FRESH] = 0
        i = places[depth - 1]
        stop = offsets[x + 1]
        while i < stop and successors[i] < hi[task]:
            y = successors[i]
            if not pruned or _can_be(depth, left[y], longest[y], least, most):
                break
            i += 1
        if i >= stop or successors[i] >= hi[task]:
            state[DEPTH] -= 1
            continue
        places[depth - 1] = i + 1
        nodes[depth], places[depth] = successors[i], offsets[successors[i]]
        state[DEPTH], state[FRESH] = depth + 1, 1
    state[ROWS], state[VALUES] = rows, used
