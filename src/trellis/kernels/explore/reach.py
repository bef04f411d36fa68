"""Which vertices of a graph come before others, and which can be reached, as bits: each row as far as it has any.

In short spans vertices reach but those around them, so that the rows of many vertices are short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.jit import njit


class BitRows(NamedTuple):
    """A row of bits for each vertex: those from the word `begin[v]` on are `words[offsets[v] : offsets[v + 1]]`."""

    begin: np.ndarray  # int64 (vertices,)
    offsets: np.ndarray  # int64 (vertices + 1,)
    words: np.ndarray  # uint64 (words,)


@njit(cache=True, nogil=True)
def no_bits():
    """Return rows of no vertex."""
    return BitRows(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint64))


@njit(cache=True, nogil=True)
def bit_bounds(offsets, targets):
    """Return for each vertex the words of the first and last one before it, and of those that it reaches.

    Targets come behind their vertex. Where there are none the last word is before the first.
    """
    size = offsets.shape[0] - 1
    bounds = np.empty((4, size), np.int64)
    bounds[0], bounds[1], bounds[2], bounds[3] = size, -1, size, -1
    for v in range(size - 1, -1, -1):
        for i in range(offsets[v], offsets[v + 1]):
            w = targets[i]
            bounds[0, w], bounds[1, w] = min(bounds[0, w], v >> 6), max(bounds[1, w], v >> 6)
            bounds[2, v] = min(bounds[2, v], np.int64(w) >> 6)
            bounds[3, v] = max(bounds[3, v], np.int64(w) >> 6, bounds[3, w])
    return bounds


@njit(cache=True, nogil=True)
def bit_words(bounds):
    """Return how many words the rows take."""
    total = np.int64(0)
    for side in range(0, 4, 2):
        for v in range(bounds.shape[1]):
            total += max(0, bounds[side + 1, v] - bounds[side, v] + 1)
    return total


@njit(cache=True, nogil=True)
def bit_rows(first, last):
    """Return rows of unset bits, by the first and the last word of each."""
    size = first.shape[0]
    offsets = np.zeros(size + 1, np.int64)
    for v in range(size):
        offsets[v + 1] = offsets[v] + max(0, last[v] - first[v] + 1)
    return BitRows(first, offsets, np.zeros(offsets[size], np.uint64))


@njit(cache=True, nogil=True)
def set_bits(offsets, targets, before, beyond):
    """Set which vertices come directly before each, and which can be reached from it."""
    for v in range(offsets.shape[0] - 2, -1, -1):
        own = beyond.offsets[v] - beyond.begin[v]
        for i in range(offsets[v], offsets[v + 1]):
            w = np.int64(targets[i])
            before.words[before.offsets[w] + (v >> 6) - before.begin[w]] |= np.uint64(1) << np.uint64(v & 63)
            beyond.words[own + (w >> 6)] |= np.uint64(1) << np.uint64(w & 63)
            begin = beyond.offsets[w]
            for k in range(beyond.offsets[w + 1] - begin):
                beyond.words[own + beyond.begin[w] + k] |= beyond.words[begin + k]


@njit(cache=True, nogil=True)
def meets_any(rows, vertex, near):
    """Return whether a row has a bit that is set among `near`, words of all vertices."""
    begin = rows.begin[vertex]
    for k in range(rows.offsets[vertex + 1] - rows.offsets[vertex]):
        if rows.words[rows.offsets[vertex] + k] & near[begin + k]:
            return True
    return False


@njit(cache=True, nogil=True)
def add_bits(rows, vertex, near, filled):
    """Set the bits of a row among `near`; `filled` are the first word that may have any, and the one behind."""
    begin, number = rows.begin[vertex], rows.offsets[vertex + 1] - rows.offsets[vertex]
    for k in range(number):
        near[begin + k] |= rows.words[rows.offsets[vertex] + k]
    if number:
        filled[0], filled[1] = min(filled[0], begin), max(filled[1], begin + number)
