"""Counting the paths of the event graph: how many, of which length, with which weights.

A task is a range `[lo, hi)` of events whose paths are counted together: a window, or all that begins at one event
within its span (`single`). A path of a task starts at an event without predecessor in it (at `lo` if single; anywhere
if `every`), and ends at an event without successor in it that is not before `first_end` (anywhere if `every`).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _ends(x, hi, first_end, every, offsets, successors):
    if every:
        return True
    if offsets[x] < offsets[x + 1] and successors[offsets[x]] < hi:
        return False
    return x >= first_end


@njit(cache=True, nogil=True, inline="always")
def _starts(x, lo, single, every, ok, latest):
    if not ok[x]:
        return False
    if single:
        return x == lo
    return every or latest[x] < lo


@njit(cache=True, nogil=True)
def count_float(lo, hi, first_end, single, every, offsets, successors, latest, ok, scratch):
    """Return the number of paths of each task as a float: exact below 2**53, inf where it is too large."""
    totals = np.zeros(lo.shape[0], np.float64)
    for task in range(lo.shape[0]):
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            if not ok[x]:
                scratch[x] = 0.0
                continue
            total = 1.0 if _ends(x, hi[task], first_end[task], every, offsets, successors) else 0.0
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                total += scratch[successors[i]]
            scratch[x] = total
        for x in range(lo[task], lo[task] + 1 if single else hi[task]):
            if _starts(x, lo[task], single, every, ok, latest):
                totals[task] += scratch[x]
    return totals


@njit(cache=True, nogil=True)
def _add_logs(a, b):
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    high, low = (a, b) if a > b else (b, a)
    return high + np.log2(1.0 + np.exp2(low - high))


@njit(cache=True, nogil=True)
def count_log2(lo, hi, first_end, single, every, offsets, successors, latest, ok, scratch):
    """Return the binary logarithm of the number of paths of each task, for numbers of any size."""
    totals = np.full(lo.shape[0], -np.inf, np.float64)
    for task in range(lo.shape[0]):
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            if not ok[x]:
                scratch[x] = -np.inf
                continue
            total = 0.0 if _ends(x, hi[task], first_end[task], every, offsets, successors) else -np.inf
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                total = _add_logs(total, scratch[successors[i]])
            scratch[x] = total
        for x in range(lo[task], lo[task] + 1 if single else hi[task]):
            if _starts(x, lo[task], single, every, ok, latest):
                totals[task] = _add_logs(totals[task], scratch[x])
    return totals


@njit(cache=True, nogil=True)
def count_modulo(prime, lo, hi, first_end, single, every, offsets, successors, latest, ok, weights, scratch):
    """Return, modulo a prime below 2**31, the number of paths of each task and the sums of weights on them.

    Row 0 of the result is the number; row 1 + j the sum over all paths of the weights `weights[j]` of their events.
    """
    kinds = weights.shape[0]
    totals = np.zeros((1 + kinds, lo.shape[0]), np.uint64)
    for task in range(lo.shape[0]):
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            if not ok[x]:
                scratch[:, x] = np.uint64(0)
                continue
            end = _ends(x, hi[task], first_end[task], every, offsets, successors)
            scratch[0, x] = np.uint64(1) if end else np.uint64(0)
            for j in range(kinds):
                scratch[1 + j, x] = np.uint64(0)
            for i in range(offsets[x], offsets[x + 1]):
                y = successors[i]
                if y >= hi[task]:
                    break
                for j in range(1 + kinds):
                    scratch[j, x] += scratch[j, y]
            scratch[0, x] %= prime
            for j in range(kinds):
                scratch[1 + j, x] = (scratch[1 + j, x] + weights[j, x] * scratch[0, x]) % prime
        for x in range(lo[task], lo[task] + 1 if single else hi[task]):
            if _starts(x, lo[task], single, every, ok, latest):
                for j in range(1 + kinds):
                    totals[j, task] = (totals[j, task] + scratch[j, x]) % prime
    return totals


@njit(cache=True, nogil=True)
def lengths_float(longest, lo, hi, first_end, single, every, offsets, successors, latest, ok, totals):
    """Add to `totals[length - 1]` the number of paths of each length up to `longest`, over all tasks, as floats."""
    for task in range(lo.shape[0]):
        size = hi[task] - lo[task]
        before = np.zeros(size, np.float64)
        now = np.zeros(size, np.float64)
        for length in range(1, min(longest, size) + 1):
            for x in range(hi[task] - 1, lo[task] - 1, -1):
                total = 0.0
                if ok[x]:
                    if length == 1:
                        total = 1.0 if _ends(x, hi[task], first_end[task], every, offsets, successors) else 0.0
                    else:
                        for i in range(offsets[x], offsets[x + 1]):
                            if successors[i] >= hi[task]:
                                break
                            total += before[successors[i] - lo[task]]
                now[x - lo[task]] = total
            any_path = False
            for x in range(lo[task], hi[task]):
                any_path = any_path or now[x - lo[task]] > 0.0
                if _starts(x, lo[task], single, every, ok, latest):
                    totals[task, length - 1] += now[x - lo[task]]
            if not any_path:
                break
            before, now = now, before


@njit(cache=True, nogil=True)
def lengths_modulo(
    prime, shortest, longest, lo, hi, first_end, single, every, offsets, successors, latest, ok, weights
):
    """Return what `count_modulo` does, over the paths of length `shortest` to `longest` only."""
    kinds = weights.shape[0]
    totals = np.zeros((1 + kinds, lo.shape[0]), np.uint64)
    for task in range(lo.shape[0]):
        size = hi[task] - lo[task]
        before = np.zeros((1 + kinds, size), np.uint64)
        now = np.zeros((1 + kinds, size), np.uint64)
        had = np.zeros(size, np.bool_)  # a residue of 0 does not tell that there is no path
        has = np.zeros(size, np.bool_)
        for length in range(1, min(longest, size) + 1):
            for x in range(hi[task] - 1, lo[task] - 1, -1):
                here = x - lo[task]
                now[:, here] = np.uint64(0)
                has[here] = False
                if not ok[x]:
                    continue
                if length == 1:
                    if _ends(x, hi[task], first_end[task], every, offsets, successors):
                        now[0, here] = np.uint64(1)
                        has[here] = True
                else:
                    for i in range(offsets[x], offsets[x + 1]):
                        y = successors[i]
                        if y >= hi[task]:
                            break
                        if had[y - lo[task]]:
                            has[here] = True
                            for j in range(1 + kinds):
                                now[j, here] += before[j, y - lo[task]]
                now[0, here] %= prime
                for j in range(kinds):
                    now[1 + j, here] = (now[1 + j, here] + weights[j, x] * now[0, here]) % prime
                if length >= shortest and _starts(x, lo[task], single, every, ok, latest):
                    for j in range(1 + kinds):
                        totals[j, task] = (totals[j, task] + now[j, here]) % prime
            if not has.any():
                break
            before, now = now, before
            had, has = has, had
    return totals


@njit(cache=True, nogil=True)
def length_range(lo, hi, first_end, single, every, offsets, successors, latest, ok):
    """Return the lengths of the shortest and the longest path of each task (0 where there is none)."""
    shortest = np.zeros(lo.shape[0], np.int64)
    longest = np.zeros(lo.shape[0], np.int64)
    for task in range(lo.shape[0]):
        size = hi[task] - lo[task]
        low = np.zeros(size, np.int64)
        high = np.zeros(size, np.int64)
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            here = x - lo[task]
            if not ok[x]:
                continue
            if _ends(x, hi[task], first_end[task], every, offsets, successors):
                low[here] = high[here] = 1
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                there = successors[i] - lo[task]
                if high[there] > 0:
                    high[here] = max(high[here], high[there] + 1)
                    if low[here] == 0 or low[there] + 1 < low[here]:
                        low[here] = low[there] + 1
            if high[here] > 0 and _starts(x, lo[task], single, every, ok, latest):
                longest[task] = max(longest[task], high[here])
                if shortest[task] == 0 or low[here] < shortest[task]:
                    shortest[task] = low[here]
    return shortest, longest


@njit(cache=True, nogil=True)
def members(shortest, longest, lo, hi, first_end, single, every, offsets, successors, latest, ok, found):
    """Set `found` for the events of each task that lie on a path of length `shortest` to `longest`.

    `reached[x, j]`: x can be the event number j + 1 of a path; `left[x, j]`: j + 1 events, x included, can follow to an
    end. Lengths beyond what the bounds tell apart are kept in the last place.
    """
    for task in range(lo.shape[0]):
        size = hi[task] - lo[task]
        places = min(size, max(1, shortest if longest > size else longest))
        reached = np.zeros((size, places), np.bool_)
        left = np.zeros((size, places), np.bool_)
        for x in range(lo[task], hi[task]):
            if _starts(x, lo[task], single, every, ok, latest):
                reached[x - lo[task], 0] = True
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                for j in range(places):
                    if reached[x - lo[task], j]:
                        if j + 1 < places:
                            reached[successors[i] - lo[task], j + 1] = True
                        elif longest > size:
                            reached[successors[i] - lo[task], j] = True
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            if not ok[x]:
                continue
            if _ends(x, hi[task], first_end[task], every, offsets, successors):
                left[x - lo[task], 0] = True
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                for j in range(places):
                    if left[successors[i] - lo[task], j]:
                        if j + 1 < places:
                            left[x - lo[task], j + 1] = True
                        elif longest > size:
                            left[x - lo[task], j] = True
        for here in range(size):
            for j in range(places):
                if reached[here, j]:
                    for k in range(places):
                        if left[here, k] and shortest <= j + k + 1 <= longest:
                            found[lo[task] + here] = True
