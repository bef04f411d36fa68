"""Helpers that many kernels share: the binary search, the number of set bits, sums that saturate, arrays that grow.

Places are unsigned inside: an index that cannot be negative needs no test whether it counts from the end of an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from trellis.kernels.jit import njit

FULL = np.uint64(2**64 - 1)  # a saturated number: this many or more
ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def first_at_least(values, begin, end, bound):
    """Return the first place from `begin` to before `end` whose value is at least `bound`, or `end`; values rise."""
    low, high = np.uint64(begin), np.uint64(end)
    while low < high:
        middle = (low + high) >> ONE
        if values[middle] < bound:
            low = middle + ONE
        else:
            high = middle
    return np.int64(low)


@njit(cache=True, nogil=True)
def first_at_least_in(order, values, begin, end, bound):
    """Return the first place of an order with `values[order[place]] >= bound`, or `end`; these values rise."""
    low, high = np.uint64(begin), np.uint64(end)
    while low < high:
        middle = (low + high) >> ONE
        if values[order[middle]] < bound:
            low = middle + ONE
        else:
            high = middle
    return np.int64(low)


# Functions of numbers alone are compiled with whoever calls them, whether that counts references or not.


@register_jitable
def ones(word):
    """Return how many bits of a 64-bit word are set; LLVM makes one instruction of it."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@register_jitable
def lowest_bit(word):
    """Return the place of the lowest bit that is set in a 64-bit word other than 0."""
    return ones((word & (~word + ONE)) - ONE)


@register_jitable
def saturating_sum(a, b):
    """Return the sum of two unsigned 64-bit numbers, at most `FULL`."""
    total = a + b
    return FULL if total < b else total


def enlarged(values: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """Return an array of a size that begins with the rows of another that are used: for Python, which knows slices."""
    larger = np.empty((size, *values.shape[1:]), values.dtype)
    larger[:used] = values[:used]
    return larger


@njit(cache=True, nogil=True)
def grown(values, used, size):
    """Return an array of a size that begins with the values of another that are used."""
    larger = np.empty(size, values.dtype)
    for i in range(used):  # a slice on the left takes Numba seconds to compile
        larger[i] = values[i]
    return larger
