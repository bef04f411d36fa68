"""Listing the paths of certain lengths in rank order: a depth-first walk that enters no branch in vain.

Before the walk each event of a task gets the set of lengths that paths from it to an end have, as bits. The state of
the walk, stretches and buffers are those of `trellis.kernels.list.blocks`, except that it cannot skip: a stretch begins
with the first path of its task, or where `stand_on` has put the walk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.kernels.count.paths import _ends, _starts
from trellis.kernels.list.blocks import (
    CURSOR,
    DEPTH,
    FRESH,
    LEFT,
    READY,
    REST,
    ROWS,
    SPARE,
    STRETCH,
    TASK,
    VALUES,
    copy_wide,
)

FAR = np.uint64(63)  # this bit of a set of lengths stands for 64 and more


@njit(cache=True, nogil=True)
def _lengths_left(lo, hi, first_end, every, offsets, successors, ok, lengths, longest):
    """Set for each event of a task the set of lengths of paths from it to an end, as bits, and the greatest of them."""
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
                bits |= (lengths[y - lo] << np.uint64(1)) | (lengths[y - lo] & far)
                if longest[y - lo] > 0:
                    high = max(high, longest[y - lo] + 1)
        lengths[x - lo], longest[x - lo] = bits, high


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
def _walk(
    state, numbers, nodes, places, lo, hi, first_end, single, every, offsets, successors, latest, ok,
    least, most, lengths, longest, values, ends, shared, row, used,
):  # fmt: skip
    """Write paths of one stretch until it is over or no more fit; return rows, values and whether no more fit."""
    room, rows_room = values.shape[0] - SPARE, ends.shape[0] - SPARE
    depth, cursor, fresh = state[DEPTH], state[CURSOR], state[FRESH]
    left = min(numbers[LEFT], np.uint64(state[REST]))
    wanted, full, over = left, False, False
    stop = lo + 1 if single else hi
    turn = np.int64(0)  # how many events the next row shares with the one before
    while left > 0:
        if depth == 0:
            while cursor < stop and not _starts(cursor, lo, single, every, ok, latest):
                cursor += 1
            if cursor >= stop:
                over = True
                break
            y, turn = cursor, np.int64(0)
            cursor += 1
        else:
            x = nodes[depth - 1]
            if fresh:
                fresh = 0
                if least <= depth <= most and _ends(x, hi, first_end, every, offsets, successors):
                    begin = np.int64(0) if shared is None else turn
                    if row >= rows_room or used + depth - begin > room:
                        fresh, full = 1, True
                        break
                    copy_wide(values, used, nodes, begin, depth - begin)
                    if shared is not None:
                        shared[row] = turn
                    used += depth - begin
                    row += 1
                    ends[row] = used
                    left -= np.uint64(1)
                    turn = depth
                    continue
            i = places[depth - 1]
            if i >= offsets[x + 1] or successors[i] >= hi:
                depth -= 1
                turn = min(turn, depth)
                continue
            y = np.int64(successors[i])
            places[depth - 1] = i + 1
        if _can_be(depth, lengths[y - lo], longest[y - lo], least, most):
            nodes[depth], places[depth] = y, offsets[y]
            depth, fresh = depth + 1, 1
    written = wanted - left
    state[DEPTH], state[CURSOR], state[FRESH] = depth, cursor, fresh
    numbers[LEFT] = np.uint64(0) if over else numbers[LEFT] - written
    state[REST] -= np.int64(written)
    return row, used, full


@njit(cache=True, nogil=True)
def fill(
    state, numbers, nodes, places, tasks, size, lo, hi, first_end, single, every, offsets, successors, latest, ok,
    told, least, most, lengths, longest, values, ends, shared,
):  # fmt: skip
    """Write the next paths of `least` to `most` events until a buffer is full or `state[REST]` are written.

    What the buffers get is what `trellis.kernels.list.blocks.fill` tells.
    """
    row = used = np.int64(0)
    ends[0] = 0
    full = False
    while not full and state[STRETCH] < tasks.shape[0] and state[REST] > 0:
        task = tasks[state[STRETCH]]
        if told[TASK] != task:
            _lengths_left(lo[task], hi[task], first_end[task], every, offsets, successors, ok, lengths, longest)
            told[TASK] = task
        if not state[READY]:
            state[READY], state[CURSOR], state[DEPTH], state[FRESH] = 1, lo[task], 0, 0
            numbers[LEFT] = size[state[STRETCH]]
        row, used, full = _walk(
            state, numbers, nodes, places, lo[task], hi[task], first_end[task], single, every, offsets, successors,
            latest, ok, least, most, lengths, longest, values, ends, shared, row, used,
        )  # fmt: skip
        if numbers[LEFT] == 0:
            state[STRETCH] += 1
            state[READY] = 0
    state[ROWS], state[VALUES] = row, used
