"""Lists of numbers, each of which is kept once, so that equal lists have equal numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import enlarged
from trellis.kernels.expression.sums import as_real, grow_sum
from trellis.kernels.jit import njit

SEED = np.uint64(0x9E3779B97F4A7C15)
PRIME = np.uint64(0xFF51AFD7ED558CCD)
FULL = -1  # there is no room left


class Lists(NamedTuple):
    """Lists one after another.

    Attributes
    ----------
    values, ends
        The numbers, and where each list ends.
    table, at
        An open-addressing hash of the lists, plus one, and the place of each in it.
    used
        How many lists there are.
    """

    values: np.ndarray  # int64 (room,)
    ends: np.ndarray  # int64 (room,)
    table: np.ndarray  # int32 (power of two,)
    at: np.ndarray  # int64 (room,)
    used: np.ndarray  # int64 (1,)


def make_lists(lists: int, values: int) -> Lists:
    """Return room for some lists with some values together; a power of two of lists."""
    return Lists(
        np.empty(values, np.int64), np.zeros(lists, np.int64), np.zeros(4 * lists, np.int32),
        np.empty(lists, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


def table_size(entries: int) -> int:
    """Return the power of two of places in which a hash of some entries leaves half of them empty."""
    return 1 << max(2 * entries - 1, 1).bit_length()


def grow_lists(lists: Lists, numbers: int, values: int) -> Lists:
    """Return the same lists with the same numbers, with more room."""
    used = int(lists.used[0])
    more = Lists(
        enlarged(lists.values, int(lists.ends[used - 1]) if used else 0, values), enlarged(lists.ends, used, numbers),
        np.zeros(2 * table_size(numbers), np.int32), np.empty(numbers, np.int64), lists.used.copy(),
    )  # fmt: skip
    place_lists(more)
    return more


@njit(cache=True, nogil=True, _nrt=False)
def place_lists(lists):
    """Write where all lists stand in their hash, which is empty."""
    mask, begin = np.uint64(lists.table.shape[0] - 1), np.int64(0)
    for number in range(lists.used[0]):
        place = hashed(lists.values, begin, lists.ends[number]) & mask
        while lists.table[place]:
            place = (place + np.uint64(1)) & mask
        lists.table[place] = number + 1
        lists.at[number] = np.int64(place)
        begin = lists.ends[number]


@njit(cache=True, nogil=True, _nrt=False)
def place_rows(rows, used, table, at):
    """Write where rows stand in their hash, which is empty: those whose place in the one before is not negative."""
    mask = np.uint64(table.shape[0] - 1)
    for number in range(used):
        if at[number] < 0:
            continue
        place = hashed(rows[number], 0, rows.shape[1]) & mask
        while table[place]:
            place = (place + np.uint64(1)) & mask
        table[place] = number + 1
        at[number] = np.int64(place)


@njit(cache=True, nogil=True, _nrt=False)
def hashed(values, begin, end):
    """Return a hash of some numbers."""
    code = SEED
    for i in range(begin, end):
        code = (code ^ np.uint64(values[i])) * PRIME
        code ^= code >> np.uint64(29)
    return code


@njit(cache=True, nogil=True, _nrt=False)
def is_row(rows, number, row):
    """Return whether one of some rows has the numbers of a row."""
    same = True
    for i in range(row.shape[0]):
        same &= rows[number, i] == row[i]
    return same


@njit(cache=True, nogil=True, _nrt=False)
def clear(lists):
    """Forget all lists but the empty one, which is 0."""
    for i in range(lists.used[0]):
        lists.table[lists.at[i]] = 0
    lists.used[0] = 0
    keep(lists, lists.values, 0)


@njit(cache=True, nogil=True, _nrt=False)
def is_list(lists, number, values, size):
    """Return whether the list with a number has the first `size` values."""
    begin = lists.ends[number - 1] if number else 0
    if lists.ends[number] - begin != size:
        return False
    for i in range(size):  # noqa: SIM110 (Numba)
        if lists.values[begin + i] != values[i]:
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def keep(lists, values, size):
    """Return the number of the list of the first `size` values, or `FULL`."""
    ends, table, own = lists.ends, lists.table, lists.values
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(values, 0, size) & mask
    while True:
        found = np.int64(table[place]) - 1
        if found < 0:
            break
        if is_list(lists, found, values, size):
            return found
        place = (place + np.uint64(1)) & mask
    number = lists.used[0]
    begin = ends[number - 1] if number else 0
    if number >= ends.shape[0] or begin + size > own.shape[0]:
        return FULL
    for i in range(size):
        own[begin + i] = values[i]
    ends[number] = begin + size
    table[place] = number + 1
    lists.at[number] = np.int64(place)
    lists.used[0] = number + 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def keep_with(lists, number, value, scratch):
    """Return the number of a rising list with one more value; the list itself if it has it; or `FULL`."""
    begin = lists.ends[number - 1] if number else 0
    size = lists.ends[number] - begin
    if size + 1 > scratch.shape[0]:
        return FULL
    k, added = 0, False
    for i in range(begin, begin + size):
        one = lists.values[i]
        if one == value:
            return number
        if not added and one > value:
            scratch[k] = value
            k += 1
            added = True
        scratch[k] = one
        k += 1
    if not added:
        scratch[k] = value
    return keep(lists, scratch, size + 1)


@njit(cache=True, nogil=True, _nrt=False)
def with_summand(lists, number, bits, scratch):
    """Return the number of a sum of doubles, see `trellis.kernels.expression.sums`, with one more; or `FULL`."""
    begin = lists.ends[number - 1] if number else 0
    size = lists.ends[number] - begin
    if size + 2 > scratch.shape[0]:
        return FULL
    for i in range(size):
        scratch[i] = lists.values[begin + i]
    return keep(lists, scratch, grow_sum(scratch, size, as_real(bits)))
