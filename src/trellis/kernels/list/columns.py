"""Columns of rows: values taken by position, the length and both ends of each row, its rank and group.

Values of 64 bits are taken as words, whatever they mean, so that each kernel is compiled once. Positions and places are
unsigned: they need no test whether they count from the end of an array.
"""

from __future__ import annotations

import numpy as np
from numba import uintp

from trellis.kernels.jit import njit
from trellis.kernels.list.wide import ONE, copy_wide

NO_RANK = -1  # of a row whose rank does not fit 64 bits with a sign
RANKS = np.uint64(1 << 63)


@njit(cache=True, nogil=True)
def take_words(words, places, taken):
    """Set `taken[i]` to the word at `places[i]`."""
    for i in range(uintp(places.shape[0])):
        taken[i] = words[places[i]]


@njit(cache=True, nogil=True)
def take_ends(words, positions, offsets, lengths, firsts, lasts):
    """Set the length of each row, and the words of its first and its last event.

    Parameters
    ----------
    words : int64 (events,)
        A word for each event.
    positions : uint32
        The events of all rows, one row after another.
    offsets : uint32 (rows + 1,)
        Where each row begins in `positions`, and where the last one ends.
    lengths, firsts, lasts : int64 (rows,)
        What is filled.
    """
    begin = uintp(offsets[0])
    for row in range(uintp(lengths.shape[0])):
        end = uintp(offsets[row + ONE])
        lengths[row] = end - begin
        firsts[row] = words[positions[begin]]
        lasts[row] = words[positions[end - ONE]]
        begin = end


@njit(cache=True, nogil=True)
def take_lengths(offsets, shared, lengths):
    """Set the length of each row: what lies between its offsets, and what it shares with the row before, if anything.

    `shared` is empty where nothing is shared.
    """
    begin = uintp(offsets[0])
    for row in range(uintp(lengths.shape[0])):
        end = uintp(offsets[row + ONE])
        lengths[row] = end - begin
        begin = end
    for row in range(uintp(shared.shape[0])):
        lengths[row] += shared[row]


@njit(cache=True, nogil=True)
def take_bound(events, variables, places, taken_events, taken_variables):
    """Set the event and the variable of the vertices at places."""
    for i in range(uintp(places.shape[0])):
        place = places[i]
        taken_events[i] = events[place]
        taken_variables[i] = variables[place]


@njit(cache=True, nogil=True)
def text_ends(offsets, places, ends):
    """Set where each of the texts at places ends, one behind another, after a 0; return how many bytes they have."""
    used = np.int64(0)
    ends[0] = 0
    for i in range(uintp(places.shape[0])):
        place = uintp(places[i])
        used += offsets[place + ONE] - offsets[place]
        ends[i + ONE] = used
    return used


@njit(cache=True, nogil=True)
def take_text(texts, offsets, places, taken):
    """Copy the texts at places, one behind another; both arrays of bytes have `SPARE` values to spare at the end."""
    used = np.int64(0)
    for i in range(uintp(places.shape[0])):
        place = uintp(places[i])
        begin = offsets[place]
        length = offsets[place + ONE] - begin
        copy_wide(taken, used, texts, begin, length)
        used += length


@njit(cache=True, nogil=True)
def count_up(first, ranks):
    """Set ranks that follow one another."""
    for row in range(uintp(ranks.shape[0])):
        ranks[row] = first + np.int64(row)


@njit(cache=True, nogil=True)
def label_rows(first, run_groups, lengths, ranks, groups):
    """Set the rank and the group of the rows of some runs: `lengths[i]` rows of a group, from rank `first[i]` on."""
    row = uintp(0)
    for i in range(lengths.shape[0]):
        rank, group = first[i], run_groups[i]
        for _ in range(lengths[i]):
            ranks[row] = np.int64(rank) if rank < RANKS else np.int64(NO_RANK)
            groups[row] = group
            rank, row = rank + np.uint64(1), row + ONE
