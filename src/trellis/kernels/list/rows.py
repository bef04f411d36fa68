"""Rows of a batch: a prefix and the suffixes of a block behind it, whole or only as far as they differ.

A row is the events of one path. The prefix stands in `nodes[:depth]`; the suffixes of a block are
`block[at:]`, one after another, row `j` of all blocks with `lengths[j]` values. Values are written from `values[used]`
on, and `offsets[row + 1]` becomes the end of row `row`. All arrays have `SPARE` values to spare at the end.
"""

from __future__ import annotations

import numpy as np
from numba import uintp

from trellis.kernels.jit import njit
from trellis.kernels.list.wide import EIGHT, ONE, SIXTEEN, ZERO, copy_raised, copy_wide, put_eight, read_eight


@njit(inline="always")
def _short_rows(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write rows of a prefix of up to 24 events and suffixes of up to 16, `wide` the longest of them."""
    w, s, j, o, d = uintp(used), uintp(at), uintp(first), uintp(row), uintp(depth)
    stop, wider, second, third = j + uintp(number), wide > 8, depth > 8, depth > 16
    while j < stop:
        put_eight(values, w, read_eight(nodes, ZERO))
        if second:
            put_eight(values, w + EIGHT, read_eight(nodes, EIGHT))
        if third:
            put_eight(values, w + SIXTEEN, read_eight(nodes, SIXTEEN))
        w += d
        put_eight(values, w, read_eight(block, s))
        if wider:
            put_eight(values, w + EIGHT, read_eight(block, s + EIGHT))
        length = uintp(lengths[j])
        w, s, j, o = w + length, s + length, j + ONE, o + ONE
        offsets[o] = w
    return np.int64(w)


@njit(cache=True, nogil=True)
def _rows_of_any_length(values, used, offsets, row, nodes, depth, block, at, lengths, first, number):
    for j in range(first, first + number):
        copy_wide(values, used, nodes, 0, depth)
        length = lengths[j]
        copy_wide(values, used + depth, block, at, length)
        at += length
        used += depth + length
        row += 1
        offsets[row] = used
    return used


@njit(inline="always")
def write_rows(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write `number` rows of a block behind a prefix; return how many values there are then."""
    if wide <= 16 and depth <= 24:
        return _short_rows(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number)
    return _rows_of_any_length(values, used, offsets, row, nodes, depth, block, at, lengths, first, number)


@njit(inline="always")
def write_compactly(
    values, used, offsets, shared, row, nodes, depth, turn, block, at, ends, block_shared, first, begin, number
):
    """Write what is new in `number` rows of a block behind a prefix, from row `begin` of the block on.

    The row before shares `turn` events of the prefix; none where `begin` is not 0.
    """
    known, before = depth, np.int64(0)  # events of the first row that are in `nodes`, values of the rows before it
    if begin:
        for j in range(first, first + begin):  # each row upon the one before it
            copy_wide(nodes, depth + block_shared[j], block, at + before, ends[j] - before)
            before = np.int64(ends[j])
        known = depth + block_shared[first + begin]
    copy_wide(values, used, nodes, turn, known - turn)
    used += known - turn
    after = np.int64(ends[first + begin + number - 1])
    copy_wide(values, used, block, at + before, after - before)
    copy_raised(shared, row, block_shared, first + begin, number, depth)
    shared[row] = turn
    copy_raised(offsets, row + 1, ends, first + begin, number, used - before)
    return used + after - before


@njit(cache=True, nogil=True)
def fitting(used, room, each, lengths, first, number):
    """Return how many rows of a block fit, which take their lengths and `each` more."""
    for k in range(number):
        used += each + lengths[first + k]
        if used > room:
            return k
    return number


@njit(cache=True, nogil=True)
def fitting_compactly(used, room, ends, first, begin, number):
    """Return how many rows fit, of which only what is new is written; `used` counts the head of the first already."""
    before = ends[first + begin - 1] if begin else 0
    for k in range(number):
        if used + ends[first + begin + k] - before > room:
            return k
    return number


@njit(cache=True, nogil=True)
def expanded_places(shared, offsets):
    """Return where whole rows begin and end, and where their values are, given what each row shares with the last.

    The values of row r that are new are those from `offsets[r]` to `offsets[r + 1]`. Where a row shares more than the
    last one has, there are no places.
    """
    rows = shared.shape[0]
    whole = np.zeros(rows + 1, np.int64)
    length = np.int64(0)
    for row in range(rows):
        if shared[row] > length or shared[row] < 0:
            whole[rows] = 1
            return whole, np.empty(0, np.int64)
        length = shared[row] + np.int64(offsets[row + 1] - offsets[row])
        whole[row + 1] = whole[row] + length
    places = np.empty(whole[rows], np.int64)
    for row in range(rows):
        at = whole[row]
        for k in range(shared[row]):
            places[at + k] = places[whole[row - 1] + k]
        for k in range(whole[row + 1] - at - shared[row]):
            places[at + shared[row] + k] = offsets[row] + k
    return whole, places
