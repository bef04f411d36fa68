"""Aggregates over the events of single trends: one value a row of a list."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

LARGE, SMALL = 2.0**700, 2.0**-700  # between them products and what they leave over are exact in doubles
LOWEST, HIGHEST = -(2**63), 2**63 - 1
NEAR = 2.0**-48  # how near a tie is taken for one


@njit(cache=True, nogil=True)
def sum_integers(ends, values, valid):
    """Return the sums of int64 values per row, which rows have any, and the first row that overflows (or -1)."""
    sums = np.zeros(ends.shape[0], np.int64)
    found = np.zeros(ends.shape[0], np.bool_)
    begin = 0
    for row in range(ends.shape[0]):
        total = np.int64(0)
        for i in range(begin, ends[row]):
            if valid[i]:
                # Asked before adding: compiled code may take it that signed numbers never wrap.
                if total > HIGHEST - values[i] if values[i] > 0 else total < LOWEST - values[i]:
                    return sums, found, row
                total += values[i]
                found[row] = True
        sums[row] = total
        begin = ends[row]
    return sums, found, -1


@njit(cache=True, nogil=True)
def _rounded_sum(partials, n):
    """Round the exact sum of non-overlapping partials, smallest first, once: half to even."""
    if n == 0:
        return 0.0
    high = partials[n - 1]
    n -= 1
    low = 0.0
    while n > 0:
        x = high
        y = partials[n - 1]
        n -= 1
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high


@njit(cache=True, nogil=True)
def _add_exactly(partials, n, x):
    """Add a number to non-overlapping partials (Shewchuk's way); return how many there are now."""
    kept = 0
    for j in range(n):
        y = partials[j]
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            partials[kept] = low
            kept += 1
        x = high
    partials[kept] = x
    return kept + 1


@njit(cache=True, nogil=True)
def _subtract_product(partials, n, x, count):
    """Take x * count off the sum of partials, exactly: a count has few bits, so both parts of x times it are exact."""
    split = x * 134217729.0
    high = split - (split - x)
    n = _add_exactly(partials, n, -high * count)
    return _add_exactly(partials, n, -(x - high) * count)


@njit(cache=True, nogil=True)
def _mean(partials, n, count):
    """Divide the exact sum of partials by a count; tell too whether the result is surely rounded once.

    A double quotient is corrected by what it leaves over; what the correction leaves over matters next to a tie only.
    """
    quotient = _rounded_sum(partials, n) / count
    if count == 1 or quotient == 0.0:
        return quotient, True
    n = _subtract_product(partials, n, quotient, count)
    correction = _rounded_sum(partials, n) / count
    mean = quotient + correction
    n = _subtract_product(partials, n, correction, count)
    if _rounded_sum(partials, n) == 0.0:
        return mean, True
    rest = correction - (mean - quotient)
    return mean, mean + rest * (1.0 + NEAR) == mean + rest * (1.0 - NEAR)


@njit(cache=True, nogil=True)
def fold_floats(ends, values, valid, mean):
    """Return the sums (or means) of float64 values per row, rounded once, and how many values each row has.

    The last array tells which rows are beyond doubles: very large or small values, and means next to a tie.
    """
    results = np.zeros(ends.shape[0], np.float64)
    counts = np.zeros(ends.shape[0], np.int64)
    hard = np.zeros(ends.shape[0], np.bool_)
    partials = np.zeros(1100, np.float64)
    begin = 0
    for row in range(ends.shape[0]):
        n = 0
        special = 0.0
        extreme = False
        for i in range(begin, ends[row]):
            if valid[i]:
                counts[row] += 1
                size = abs(values[i])
                if np.isinf(size):
                    special += values[i]
                elif size > LARGE or 0.0 < size < SMALL:
                    extreme = True
                elif not extreme:
                    n = _add_exactly(partials, n, values[i])
        if special != 0.0:
            results[row] = special
        elif extreme:
            hard[row] = True
        elif mean and counts[row] > 0:
            results[row], sure = _mean(partials, n, counts[row])
            hard[row] = not sure
        else:
            results[row] = _rounded_sum(partials, n)
        begin = ends[row]
    return results, counts, hard


@njit(cache=True, nogil=True)
def extreme_places(ends, codes, largest):
    """Return for each row the place of the smallest (or largest) code that is not negative, or -1."""
    places = np.full(ends.shape[0], -1, np.int64)
    begin = 0
    for row in range(ends.shape[0]):
        for i in range(begin, ends[row]):
            if codes[i] >= 0 and (
                places[row] < 0 or (codes[i] > codes[places[row]] if largest else codes[i] < codes[places[row]])
            ):
                places[row] = i
        begin = ends[row]
    return places
