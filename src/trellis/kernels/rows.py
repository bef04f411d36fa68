"""Aggregates over the events of single trends: one value a row of a list."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sum_integers(ends, values, valid):
    """Return sums of int64 values a row, which rows have any, and the first row that overflows (or -1)."""
    sums = np.zeros(ends.shape[0], np.int64)
    found = np.zeros(ends.shape[0], np.bool_)
    begin = 0
    for row in range(ends.shape[0]):
        total = np.int64(0)
        for i in range(begin, ends[row]):
            if valid[i]:
                new = total + values[i]
                if (values[i] > 0 and new < total) or (values[i] < 0 and new > total):
                    return sums, found, row
                total = new
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
def _mean(partials, n, count):
    """Divide the exact sum of partials by a count: a double quotient, corrected by what it leaves over."""
    total = _rounded_sum(partials, n)
    quotient = total / count
    if count == 1 or not np.isfinite(quotient) or quotient == 0.0:
        return quotient
    split = quotient * 134217729.0
    if not np.isfinite(split):
        return quotient
    high = split - (split - quotient)
    low = quotient - high
    # quotient * count is the exact sum of these two, since a count has few bits
    n = _add_exactly(partials, n, -high * count)
    n = _add_exactly(partials, n, -low * count)
    return quotient + _rounded_sum(partials, n) / count


@njit(cache=True, nogil=True)
def fold_floats(ends, values, valid, mean):
    """Return sums (or means) of float64 values a row, rounded once, and how many values each row has."""
    results = np.zeros(ends.shape[0], np.float64)
    counts = np.zeros(ends.shape[0], np.int64)
    partials = np.zeros(1100, np.float64)
    begin = 0
    for row in range(ends.shape[0]):
        n = 0
        special = 0.0
        for i in range(begin, ends[row]):
            if valid[i]:
                counts[row] += 1
                if np.isinf(values[i]):
                    special += values[i]
                else:
                    n = _add_exactly(partials, n, values[i])
        if special != 0.0:
            results[row] = special
        elif mean and counts[row] > 0:
            results[row] = _mean(partials, n, counts[row])
        else:
            results[row] = _rounded_sum(partials, n)
        begin = ends[row]
    return results, counts


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
