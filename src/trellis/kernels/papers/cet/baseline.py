"""The CET paper's Algorithm 1: all trends so far are kept, and each new event is held against every one of them."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

REFERENCES, STEPS = 1, 2  # which bound was passed


@njit(cache=True, nogil=True)
def _contains(values, a, a_end, b, b_end):
    """Whether the events from `b` on are all among those from `a` on; both rise."""
    while b < b_end and a < a_end:
        if values[a] == values[b]:
            b += 1
        a += 1
    return b == b_end


@njit(cache=True, nogil=True)
def _without_incomplete(values, ends, rows, fresh, steps):
    """Leave out new trends that others contain, in place; return rows, values and steps taken.

    Trends of before end with other events, and were not contained in one another, so only new ones can be.
    """
    keep = np.ones(rows, np.bool_)
    new = np.flatnonzero(fresh[:rows])
    for m in new:
        start = ends[m - 1] if m else 0
        for other in new:
            if other == m or not keep[other]:
                continue
            begin = ends[other - 1] if other else 0
            steps += ends[other] - begin
            if _contains(values, begin, ends[other], start, ends[m]):
                keep[m] = False
                break
    row = used = start = 0
    for r in range(rows):
        stop = ends[r]
        if keep[r]:
            for j in range(start, stop):
                values[used] = values[j]
                used += 1
            ends[row] = used
            row += 1
        start = stop
    return row, used, steps


@njit(cache=True, nogil=True)
def baseline(lo, hi, ok, before_offsets, before, most, most_steps):
    """Return the maximal trends of a window, where they end, the most events stored at once, and a bound passed or 0.

    `before` are all predecessors of every event. At most `most` events are stored, those of the trends before and after
    an event together.
    """
    values, ends = np.empty(0, np.int32), np.empty(0, np.int64)
    rows = used = peak = steps = np.int64(0)
    may_precede = np.zeros(hi - lo, np.bool_)
    for e in range(lo, hi):
        if not ok[e]:
            continue
        for i in range(before_offsets[e], before_offsets[e + 1]):
            if before[i] >= lo:
                may_precede[before[i] - lo] = True
        new_values, new_ends = np.empty(2 * used + rows + 1, np.int32), np.empty(2 * rows + 1, np.int64)
        fresh = np.zeros(2 * rows + 1, np.bool_)
        row = write = np.int64(0)
        alone = rows == 0
        start = np.int64(0)
        for r in range(rows):
            stop = ends[r]
            prefix = stop
            while prefix > start and not may_precede[values[prefix - 1] - lo]:
                prefix -= 1
            if prefix < stop:  # cases 1 and 3: the trend stays
                for j in range(start, stop):
                    new_values[write] = values[j]
                    write += 1
                new_ends[row] = write
                row += 1
            alone |= prefix == start
            if prefix > start:  # cases 2 and 3: the trend, or the longest prefix that the event may follow, goes on
                for j in range(start, prefix):
                    new_values[write] = values[j]
                    write += 1
                new_values[write] = e
                write += 1
                fresh[row] = True
                new_ends[row] = write
                row += 1
            steps += stop - start
            start = stop
        if alone:
            new_values[write] = e
            write += 1
            fresh[row] = True
            new_ends[row] = write
            row += 1
        if used + write > most:
            return values, ends, peak, REFERENCES
        peak = max(peak, used + write)
        rows, used, steps = _without_incomplete(new_values, new_ends, row, fresh, steps)
        values, ends = new_values, new_ends
        if steps > most_steps:
            return values, ends, peak, STEPS
        for i in range(before_offsets[e], before_offsets[e + 1]):
            if before[i] >= lo:
                may_precede[before[i] - lo] = False
    return values[:used], ends[:rows], peak, 0
