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
def sum_floats(ends, values, valid):
    """Return sums of float64 values a row, exact and rounded once, and which rows have any value."""
    sums = np.zeros(ends.shape[0], np.float64)
    counts = np.zeros(ends.shape[0], np.int64)
    partials = np.zeros(1100, np.float64)
    begin = 0
    for row in range(ends.shape[0]):
        n = 0
        special = 0.0
        for i in range(begin, ends[row]):
            if not valid[i]:
                continue
            counts[row] += 1
            x = values[i]
            if np.isinf(x):
                special += x
                continue
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
            n = kept + 1
        sums[row] = special if special != 0.0 else _rounded_sum(partials, n)
        begin = ends[row]
    return sums, counts


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
