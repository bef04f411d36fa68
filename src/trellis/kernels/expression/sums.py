"""Exact sums of doubles, rounded once: expansions of doubles that do not overlap (Shewchuk; Python's `fsum`).

The doubles of an expansion are held as the bits of integers, in rising order of their size. A single NaN stands for the
sum of both infinities; two of them for one that leaves what a double can hold on the way.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.jit import njit

MOST_PARTS = 2200  # of an expansion and what is added to it: a double has bits of 2,098 sizes
SMALLEST, LARGEST = 1e-280, 1e300  # between these products of doubles are exact in two of them


@register_jitable
def as_real(bits):
    """Return the double that bits stand for."""
    return np.int64(bits).view(np.float64)


@register_jitable
def as_bits(value):
    """Return the bits of a double."""
    return np.float64(value).view(np.int64)


@njit(cache=True, nogil=True, _nrt=False)
def grow_sum(parts, size, value):
    """Add a double to an expansion of `size` doubles, in place; return the new size."""
    if not np.isfinite(value) or (size and not np.isfinite(as_real(parts[0]))):
        known = as_real(parts[0]) if size else 0.0
        if size < 2 or not np.isnan(known):
            parts[0] = as_bits(value if np.isfinite(known) else known if np.isfinite(value) else known + value)
            size = 1
        return size
    left, x = 0, value
    for i in range(size):
        y = as_real(parts[i])
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            parts[left] = as_bits(low)
            left += 1
        x = high
    if np.isinf(x):
        parts[0] = parts[1] = as_bits(np.nan)
        return 2
    parts[left] = as_bits(x)
    return left + 1


@njit(cache=True, nogil=True, _nrt=False)
def leaves_doubles(values, begin, end):
    """Return whether an expansion has left what doubles can hold."""
    return end - begin > 1 and np.isnan(as_real(values[begin]))


@njit(cache=True, nogil=True, _nrt=False)
def rounded_sum(values, begin, end):
    """Return the sum of an expansion, rounded once."""
    if end == begin:
        return 0.0
    high, low, n = as_real(values[end - 1]), 0.0, end - 1
    while n > begin:
        x, y = high, as_real(values[n - 1])
        n -= 1
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    if n > begin:
        below = as_real(values[n - 1])
        if (low < 0.0 and below < 0.0) or (low > 0.0 and below > 0.0):
            y = low * 2.0
            x = high + y
            if y == x - high:
                high = x
    return high


@register_jitable
def _add_product(parts, size, x, y):
    """Add a product to an expansion, exactly; return its size."""
    product = x * y
    big = 134217729.0 * x
    x_high = big - (big - x)
    big = 134217729.0 * y
    y_high = big - (big - y)
    x_low, y_low = x - x_high, y - y_high
    lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return grow_sum(parts, grow_sum(parts, size, product), lost)


@njit(cache=True, nogil=True, _nrt=False)
def _sign_beside(values, begin, end, number, x, y, parts):
    """Return the sign of an expansion's sum less `number` times the middle between two doubles, exactly.

    `parts` is room for an expansion.
    """
    size = 0
    for i in range(begin, end):
        size = grow_sum(parts, size, 2.0 * as_real(values[i]))
    size = _add_product(parts, size, -number, x)
    size = _add_product(parts, size, -number, y)
    return np.sign(rounded_sum(parts, 0, size))


@njit(cache=True, nogil=True, _nrt=False)
def rounded_mean(values, begin, end, number, room, first):
    """Return the sum of an expansion by a number of values, rounded once; NaN where doubles do not tell.

    Of `room` the numbers from `first` on are free; `MOST_PARTS` are enough.
    """
    parts = room[first:]
    total = rounded_sum(values, begin, end)
    found = total / number
    if total == 0.0 or np.isinf(total) or np.isnan(total):
        return found
    if not SMALLEST < abs(found) < LARGEST or abs(total) > LARGEST or end - begin + 8 > parts.shape[0]:
        return np.nan
    while True:
        above = np.nextafter(found, np.inf)
        sign = _sign_beside(values, begin, end, np.float64(number), found, above, parts)
        if sign > 0 or (sign == 0 and as_bits(found) & 1):
            found = above
            continue
        below = np.nextafter(found, -np.inf)
        sign = _sign_beside(values, begin, end, np.float64(number), found, below, parts)
        if sign < 0 or (sign == 0 and as_bits(found) & 1):
            found = below
            continue
        return found
