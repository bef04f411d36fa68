"""The pass over two conditions: divide and conquer over time, for the shape `Pairs`.

`gathered` and `values` have a number for each event of a task, `by_above` and `by_below` its events, int32; all are
counted from the first event of the task. It takes n log^2 n steps.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.algebra import add, gather, settle, step
from trellis.kernels.jit import njit

FEW = 24  # events whose pairs are simply tried
SERVE, CROSS, MERGE = range(3)  # what divide and conquer has to do
SETTLE = 32  # values that are gathered before they are settled


@njit(cache=True, nogil=True)
def pass_pairs(algebra, shape, events, tasks, t, extra, source, values):
    """Divide the events at a time, serve the later half, let the earlier gather from it, and serve that.

    Between `a` and `b`, `by_above` and `by_below` hold the events `[a, b)` in falling order, before and after these are
    served. What is still to be done is a stack, because Numba cannot keep a recursive function in its cache.
    """
    lo, later, above, below = tasks.lo[t], events.later, shape.above, shape.below
    n = tasks.hi[t] - lo
    by_above, by_below = order_of_task(shape.by_above, tasks, t), order_of_task(shape.by_below, tasks, t)
    gathered, tree = np.full(n, algebra.zero), np.full(tasks.width[t], algebra.zero)
    heads = np.full(tasks.width[t] if shape.either else 0, algebra.zero)
    spare = np.empty(n, np.int32)
    stack = np.empty((256, 4), np.int64)  # a group of equal times can make one half large, but only every other time
    stack[0] = (SERVE, 0, 0, n)
    depth = 1
    while depth > 0:
        depth -= 1
        what, a, middle, b = stack[depth]
        if what == MERGE:
            merge_runs(by_above, above, lo, spare, a, middle, b)
            merge_runs(by_below, below, lo, spare, a, middle, b)
        elif what == CROSS:
            if shape.either:
                _cross_either(algebra, shape, tasks, t, source, gathered, tree, heads, by_above, by_below, a, middle, b)
            else:
                _cross(algebra, shape, tasks, t, source, gathered, tree, by_above, by_below, a, middle, b)
        elif later[lo + a] - lo >= b or b - a <= FEW:
            _serve_few(algebra, shape, events, tasks, t, extra, source, values, gathered, a, b)
        else:
            middle = (a + b) // 2
            while middle > a and later[lo + middle - 1] == later[lo + middle]:
                middle -= 1
            if middle == a:
                middle = later[lo + a] - lo
            part_runs(by_above, spare, a, middle, b)
            part_runs(by_below, spare, a, middle, b)
            stack[depth] = (MERGE, a, middle, b)
            stack[depth + 1] = (SERVE, a, 0, middle)
            stack[depth + 2] = (CROSS, a, middle, b)
            stack[depth + 3] = (SERVE, middle, 0, b)
            depth += 4


@njit(cache=True, nogil=True)
def order_of_task(order, tasks, t):
    """Return the events of a task, counted from its first, in the order of its part of the index."""
    lo, hi = tasks.lo[t], tasks.hi[t]
    found = np.empty(hi - lo, np.int32)
    used = 0
    for v in range(tasks.part[t] + tasks.offset[t], tasks.part_end[t] + tasks.offset[t]):
        if lo <= order[v] < hi:
            found[used] = order[v] - lo
            used += 1
    return found


@njit(cache=True, nogil=True)
def _serve_few(algebra, shape, events, tasks, t, extra, source, values, gathered, a, b):
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, usable, later, more = events.nearest, events.usable, events.later, extra.shape[0] > 0
    place, first, last, above, below = shape.place, shape.first, shape.last, shape.above, shape.below
    either = shape.either
    for x in range(b - 1, a - 1, -1):
        if not usable[lo + x]:
            values[x] = algebra.zero
            continue
        value = gathered[x]
        begin, end, least = first[lo + x + offset], last[lo + x + offset], below[lo + x]
        segment = shape.begin[lo + x + offset] if either else begin
        for y in range(later[lo + x] - lo, b):
            at = place[lo + y + offset]
            if segment <= at < end and (above[lo + y] > least or (either and at >= begin)):
                value = add(algebra, value, source[y])
        if more:
            values[x] = add(algebra, extra[x], value)
        else:
            values[x] = step(algebra, value, every or (nearest[lo + x] >= hi and lo + x >= first_end))


@njit(cache=True, nogil=True)
def _cross(algebra, shape, tasks, t, source, gathered, tree, by_above, by_below, a, middle, b):
    """Let the events before `middle` gather from those behind it."""
    lo, offset = tasks.lo[t], tasks.offset[t]
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    above, below = shape.above, shape.below
    j = middle
    for i in range(a, middle):
        x = by_below[i]
        while j < b and above[lo + by_above[j]] > below[lo + x]:
            v = lo + by_above[j] + offset
            if place[v] >= 0:
                end = np.int64(own_end[v])
                size, k = end - own[v], end - place[v]
                value = source[by_above[j]]
                while k <= size:
                    tree[end - k] = add(algebra, tree[end - k], value)
                    k += k & -k
            j += 1
        end = np.int64(last[lo + x + offset])
        k = end - first[lo + x + offset]
        value = algebra.zero
        while k > 0:
            value = gather(algebra, value, tree[end - k])
            k &= k - 1
        gathered[x] = add(algebra, gathered[x], settle(algebra, value))
    for i in range(middle, j):
        v = lo + by_above[i] + offset
        if place[v] >= 0:
            end = np.int64(own_end[v])
            size, k = end - own[v], end - place[v]
            while k <= size:
                tree[end - k] = algebra.zero
                k += k & -k


@njit(cache=True, nogil=True)
def _cross_either(algebra, shape, tasks, t, source, gathered, tree, heads, by_above, by_below, a, middle, b):
    """As `_cross`, where one condition is enough: all that are in the tail, and those before it that are above.

    The tails are sums in `tree`, which holds all events; `heads` adds from the begin of a segment instead.
    """
    lo, offset = tasks.lo[t], tasks.offset[t]
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    above, below, begins = shape.above, shape.below, shape.begin
    for i in range(middle, b):
        v = lo + by_above[i] + offset
        if place[v] >= 0:
            end = np.int64(own_end[v])
            size, k = end - own[v], end - place[v]
            value = source[by_above[i]]
            while k <= size:
                tree[end - k] = add(algebra, tree[end - k], value)
                k += k & -k
    j = middle
    for i in range(a, middle):
        x = by_below[i]
        while j < b and above[lo + by_above[j]] > below[lo + x]:
            v = lo + by_above[j] + offset
            if place[v] >= 0:
                start = np.int64(own[v])
                size, k = own_end[v] - start, place[v] - start + 1
                value = source[by_above[j]]
                while k <= size:
                    heads[start + k - 1] = add(algebra, heads[start + k - 1], value)
                    k += k & -k
            j += 1
        start, end = np.int64(begins[lo + x + offset]), np.int64(last[lo + x + offset])
        value = algebra.zero
        k = end - first[lo + x + offset]
        while k > 0:
            value = gather(algebra, value, tree[end - k])
            k &= k - 1
        value = settle(algebra, value)
        k = first[lo + x + offset] - start if start < end else 0
        while k > 0:
            value = gather(algebra, value, heads[start + k - 1])
            k &= k - 1
        gathered[x] = add(algebra, gathered[x], settle(algebra, value))
    for i in range(middle, b):
        v = lo + by_above[i] + offset
        if place[v] >= 0:
            end = np.int64(own_end[v])
            size, k = end - own[v], end - place[v]
            while k <= size:
                tree[end - k] = algebra.zero
                k += k & -k
            start = np.int64(own[v])
            k = place[v] - start + 1
            while k <= size:
                heads[start + k - 1] = algebra.zero
                k += k & -k


@njit(cache=True, nogil=True)
def part_runs(order, spare, a, middle, b):
    """Put the events before `middle` first, without changing the order otherwise."""
    kept = a
    moved = 0
    for i in range(a, b):
        if order[i] < middle:
            order[kept] = order[i]
            kept += 1
        else:
            spare[moved] = order[i]
            moved += 1
    order[middle:b] = spare[:moved]


@njit(cache=True, nogil=True)
def merge_runs(order, codes, lo, spare, a, middle, b):
    """Merge the runs `[a, middle)` and `[middle, b)` of an order, which fall in the codes of their events.

    Events are counted from `lo`; `spare`, int32, has room for the first run.
    """
    spare[: middle - a] = order[a:middle]
    i, j, k = 0, middle, a
    while i < middle - a and j < b:
        if codes[lo + spare[i]] >= codes[lo + order[j]]:
            order[k] = spare[i]
            i += 1
        else:
            order[k] = order[j]
            j += 1
        k += 1
    order[k : k + middle - a - i] = spare[i : middle - a]
