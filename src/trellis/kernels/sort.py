"""Sorting by integers digit by digit."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

DIGIT, DIGITS = 11, 6  # bits of a digit, and digits of a key
DIGIT_MASK, SIGN = np.uint64((1 << DIGIT) - 1), np.uint64(1 << 63)


@njit(cache=True, nogil=True)
def radix_order(keys):
    """Return the places of int64 keys in rising order, equal ones in the order of their places: int32 (keys,)."""
    n = keys.shape[0]
    counts = np.zeros((DIGITS, 1 << DIGIT), np.int32)
    for i in range(n):
        key = np.uint64(keys[i]) ^ SIGN
        for digit in range(DIGITS):
            counts[digit, (key >> np.uint64(DIGIT * digit)) & DIGIT_MASK] += 1
    order, other = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    for digit in range(DIGITS):
        shift = np.uint64(DIGIT * digit)
        if n and counts[digit, ((np.uint64(keys[0]) ^ SIGN) >> shift) & DIGIT_MASK] == n:
            continue  # the same for all
        before = 0
        for value in range(1 << DIGIT):
            before, counts[digit, value] = before + counts[digit, value], before
        for i in range(n):
            place = order[i]
            own = ((np.uint64(keys[place]) ^ SIGN) >> shift) & DIGIT_MASK
            other[counts[digit, own]] = place
            counts[digit, own] += 1
        order, other = other, order
    return order
