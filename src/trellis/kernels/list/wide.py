"""Copies of eight values at a time, which may run over their end: buffers have `SPARE` values to spare there.

Two habits turn these steps into wide stores of the machine: indices are unsigned, and all eight values are read before
the first is written.
"""

from __future__ import annotations

from numba import uintp

from trellis.kernels.jit import njit

SPARE = 64  # values at the end of buffers and arrays that a wide copy may read or write in vain
ZERO, ONE, EIGHT, SIXTEEN = uintp(0), uintp(1), uintp(8), uintp(16)


@njit(cache=True, nogil=True)
def read_eight(array, i):
    """Return eight values from a place on."""
    return (
        array[i], array[i + uintp(1)], array[i + uintp(2)], array[i + uintp(3)],
        array[i + uintp(4)], array[i + uintp(5)], array[i + uintp(6)], array[i + uintp(7)],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def put_eight(array, i, eight):
    """Write eight values from a place on."""
    array[i], array[i + uintp(1)], array[i + uintp(2)], array[i + uintp(3)] = eight[0], eight[1], eight[2], eight[3]
    array[i + uintp(4)], array[i + uintp(5)] = eight[4], eight[5]
    array[i + uintp(6)], array[i + uintp(7)] = eight[6], eight[7]


@njit(cache=True, nogil=True)
def copy_wide(target, to, source, begin, length):
    """Copy `length` values; up to seven more are read and written."""
    i, at, stop = uintp(begin), uintp(to), uintp(begin + length)
    while i < stop:
        put_eight(target, at, read_eight(source, i))
        i, at = i + EIGHT, at + EIGHT


@njit(cache=True, nogil=True)
def fill_wide(target, to, length, value):
    """Write one value `length` times; up to seven times more."""
    at, stop = uintp(to), uintp(to + length)
    while at < stop:
        put_eight(target, at, (value, value, value, value, value, value, value, value))
        at += EIGHT


@njit(inline="always")
def copy_raised(target, to, source, begin, length, by):
    """Copy `length` values, each raised by a number; up to seven more are read and written."""
    i, at, stop = uintp(begin), uintp(to), uintp(begin + length)
    while i < stop:
        a, b, c, d, e, f, g, h = read_eight(source, i)
        put_eight(target, at, (a + by, b + by, c + by, d + by, e + by, f + by, g + by, h + by))
        i, at = i + EIGHT, at + EIGHT
