"""Hash tables of 64-bit keys, each row of one array an entry: open addressing, linear probing.

A table of ids has rows (key, value), one of pairs rows (key, key, value). The number of rows is a power of two, and
some are always free: who fills a table sees to that with `refill` and `refill_pairs`.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

# Arrays are not counted here: no such function makes or keeps one, and counting took a third of the time of a query.
lean = njit(cache=True, nogil=True, _nrt=False)
FREE = np.int64(-(2**63))  # the value of a row that holds nothing
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT, _ONE = np.uint64(29), np.uint64(1)  # places have no sign, so that they cannot count from the end


@lean
def _place(a, b, rows):
    h = np.uint64(a) * _A
    h = (h ^ (h >> _SHIFT) ^ np.uint64(b)) * _B
    return (h ^ (h >> _SHIFT)) & np.uint64(rows - 1)


@lean
def find(table, key):
    """Return the value of a key, or `FREE`."""
    last = np.uint64(table.shape[0] - 1)
    i = _place(key, 0, table.shape[0])
    while table[i, 1] != FREE and table[i, 0] != key:
        i = (i + _ONE) & last
    return table[i, 1]


@lean
def put(table, key, value):
    """Set the value of a key; return 1 if the key is new."""
    last = np.uint64(table.shape[0] - 1)
    i = _place(key, 0, table.shape[0])
    while table[i, 1] != FREE and table[i, 0] != key:
        i = (i + _ONE) & last
    new = 1 if table[i, 1] == FREE else 0
    table[i, 0] = key
    table[i, 1] = value
    return new


@lean
def _row_of_pair(table, a, b):
    last = np.uint64(table.shape[0] - 1)
    i = _place(a, b, table.shape[0])
    while table[i, 2] != FREE and (table[i, 0] != a or table[i, 1] != b):
        i = (i + _ONE) & last
    return i


@lean
def find_pair(table, a, b):
    """Return the value of a pair, or `FREE`."""
    return table[_row_of_pair(table, a, b), 2]


@lean
def put_pair(table, a, b, value):
    """Set the value of a pair."""
    i = _row_of_pair(table, a, b)
    table[i, 0] = a
    table[i, 1] = b
    table[i, 2] = value


@lean
def drop_pair(table, a, b):
    """Take a pair out; those that it had pushed on move back."""
    last = np.uint64(table.shape[0] - 1)
    hole = _row_of_pair(table, a, b)
    if table[hole, 2] == FREE:
        return
    i = hole
    while True:
        i = (i + _ONE) & last
        if table[i, 2] == FREE:
            break
        home = _place(table[i, 0], table[i, 1], table.shape[0])
        if ((i - home) & last) >= ((i - hole) & last):
            for column in range(3):
                table[hole, column] = table[i, column]
            hole = i
    table[hole, 2] = FREE


@lean
def refill(old, new):
    """Put all entries of a table of ids into an empty one."""
    for i in range(new.shape[0]):
        new[i, 1] = FREE
    for i in range(old.shape[0]):
        if old[i, 1] != FREE:
            put(new, old[i, 0], old[i, 1])


@lean
def refill_pairs(old, new):
    """Put all entries of a table of pairs into an empty one."""
    for i in range(new.shape[0]):
        new[i, 2] = FREE
    for i in range(old.shape[0]):
        if old[i, 2] != FREE:
            put_pair(new, old[i, 0], old[i, 1], old[i, 2])


@lean
def copy_bytes(source, begin, size, target, at):
    """Copy bytes from one array to another; return where they end there."""
    a, b = np.uint64(at), np.uint64(begin)
    for i in range(np.uint64(size)):
        target[a + i] = source[b + i]
    return at + size
