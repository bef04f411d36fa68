"""T-CET: all partial trends of a range of events, breadth first, each event extending those of its predecessors.

A partial trend goes from an *entry* of the range, an event without predecessor in it, to an event of it. It is kept
for good at an *exit*, an event without successor in the range. In an open range events with a predecessor before it
are entries too, and those with a successor behind it exits, so that it can be joined with others.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

HUGE = 1e300  # larger numbers of trends are not told apart


@njit(cache=True, nogil=True, inline="always")
def is_entry(x, u, is_open, ok, before_offsets, before):
    """Whether trends of the range that begins at `u` may begin with an event; predecessors are the latest first."""
    if not ok[x]:
        return False
    a, b = before_offsets[x], before_offsets[x + 1]
    return a == b or before[a] < u or (is_open and before[b - 1] < u)


@njit(cache=True, nogil=True, inline="always")
def is_exit(x, v, is_open, ok, offsets, successors):
    """Whether trends of the range that ends before `v` may end with an event; successors are the earliest first."""
    if not ok[x]:
        return False
    a, b = offsets[x], offsets[x + 1]
    return a == b or successors[a] >= v or (is_open and successors[b - 1] >= v)


@njit(cache=True, nogil=True)
def sizes(u, v, is_open, graph):
    """Return how many partial trends there are, how many events they name, and the same of those kept."""
    ok = graph.usable
    offsets, successors, before_offsets, before = graph.offsets, graph.successors, graph.before_offsets, graph.before
    number, named = np.zeros(v - u), np.zeros(v - u)
    all_rows = all_named = kept_rows = kept_named = 0.0
    for x in range(u, v):
        if is_entry(x, u, is_open, ok, before_offsets, before):
            number[x - u] = named[x - u] = 1.0
        for i in range(before_offsets[x], before_offsets[x + 1]):
            p = before[i]
            if p < u:
                break
            number[x - u] = min(number[x - u] + number[p - u], HUGE)
            named[x - u] = min(named[x - u] + named[p - u] + number[p - u], HUGE)
        all_rows += number[x - u]
        all_named += named[x - u]
        if is_exit(x, v, is_open, ok, offsets, successors):
            kept_rows += number[x - u]
            kept_named += named[x - u]
    return all_rows, all_named, kept_rows, kept_named


@njit(cache=True, nogil=True)
def grow(u, v, is_open, graph, values, ends, used, row, first_row, later_row):
    """Write the partial trends of each event from row `row` and value `used` on, after one another.

    Row `r` ends at `ends[r]` and begins where the row before it ends, the first at `used`; those of event x are
    `first_row[x - u]` to before `first_row[x - u + 1]`. From `later_row[x - u]` on they begin with an event that has a
    predecessor in the range, and is an entry only because it has another one before it.
    """
    before_offsets, before, ok = graph.before_offsets, graph.before, graph.usable
    begin, base = used, row
    for x in range(u, v):
        first_row[x - u] = row
        entry = is_entry(x, u, is_open, ok, before_offsets, before)
        inner = before_offsets[x] < before_offsets[x + 1] and before[before_offsets[x]] >= u
        for later in range(2):
            if later:
                later_row[x - u] = row
            if entry and inner == (later == 1):
                values[used] = x
                used += 1
                ends[row] = used
                row += 1
            for i in range(before_offsets[x], before_offsets[x + 1]):
                p = np.int64(before[i]) - u
                if p < 0:
                    break
                first, stop = (later_row[p], first_row[p + 1]) if later else (first_row[p], later_row[p])
                for r in range(first, stop):
                    start = ends[r - 1] if r > base else begin
                    for j in range(start, ends[r]):
                        values[used] = values[j]
                        used += 1
                    values[used] = x
                    used += 1
                    ends[row] = used
                    row += 1
    first_row[v - u] = row


@njit(cache=True, nogil=True)
def keep_exits(u, v, is_open, graph, values, ends, used, row, first_row, later_row, begins, laters, stops):
    """Move the rows of exits together, in place; tell where those of each event begin and stop in `begins`, `stops`.

    `laters` is between them as `later_row` in `grow`; `used` and `row` are where that began. Returns the first free
    value and the first free row.
    """
    offsets, successors, ok = graph.offsets, graph.successors, graph.usable
    start = used
    for x in range(u, v):
        begins[x] = row
        laters[x] = row + later_row[x - u] - first_row[x - u]
        if is_exit(x, v, is_open, ok, offsets, successors):
            for r in range(first_row[x - u], first_row[x - u + 1]):
                stop = ends[r]
                # rows only move to the front, so what is read here has not been written over
                for j in range(start, stop):
                    values[used] = values[j]
                    used += 1
                start = stop
                ends[row] = used
                row += 1
        else:
            last = first_row[x - u + 1]
            if last > first_row[x - u]:
                start = ends[last - 1]
        stops[x] = row
    return used, row
