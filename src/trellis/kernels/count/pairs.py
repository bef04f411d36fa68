"""The pass over two conditions: divide and conquer over time, for the shape `Pairs` and others that divide like it.

`gathered` and `values` have a number for each event of a task, `by_above` and `by_below` its events, int32; all are
counted from the first event of the task. It takes n log^2 n steps.

A `tree` has a Fenwick tree for each segment, of `size` vertices: it adds from the end of the segment (`at` is the end,
`way` -1), or from its begin (`at` is the vertex before it, `way` 1); `k` is how far from there.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels.count.algebra import add, gather, settle, step
from trellis.kernels.count.shapes import Pairs
from trellis.kernels.jit import njit

FEW = 24  # events whose pairs are simply tried
SERVE, CROSS, MERGE = range(3)  # what divide and conquer has to do
SETTLE = 32  # values that are gathered before they are settled


def room_of(algebra, shape, width, n):
    """Return the room that `cross` needs for a task of `n` events with `width` vertices."""
    raise NotImplementedError


def cross(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b):
    """Let the events before `middle` gather from those behind it.

    `tree` is zero before and after; `room` is that of `room_of`, and `spare` of `n` events.
    """
    raise NotImplementedError


def may_follow(shape, x, y, v, at):
    """Return whether event y, of vertex `at`, may follow x, which stands at `v` in the index, but for their times."""
    raise NotImplementedError


@njit(cache=True, nogil=True)
def pass_divided(algebra, shape, events, tasks, t, extra, source, values):
    """Divide the events at a time, serve the later half, let the earlier gather from it, and serve that.

    Between `a` and `b`, `by_above` and `by_below` hold the events `[a, b)` in falling order, before and after these are
    served. What is still to be done is a stack, because Numba cannot keep a recursive function in its cache.
    """
    lo, later, above, below = tasks.lo[t], events.later, shape.above, shape.below
    n = tasks.hi[t] - lo
    by_above, by_below = order_of_task(shape.by_above, tasks, t), order_of_task(shape.by_below, tasks, t)
    gathered, tree = np.full(n, algebra.zero), np.full(tasks.width[t], algebra.zero)
    spare, room = np.empty(n, np.int32), room_of(algebra, shape, tasks.width[t], n)
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
            cross(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b)
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


@njit(cache=True, nogil=True, _nrt=False)
def _serve_few(algebra, shape, events, tasks, t, extra, source, values, gathered, a, b):
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, usable, later, more = events.nearest, events.usable, events.later, extra.shape[0] > 0
    for x in range(b - 1, a - 1, -1):
        if not usable[lo + x]:
            values[x] = algebra.zero
            continue
        value = gathered[x]
        for y in range(later[lo + x] - lo, b):
            if may_follow(shape, lo + x, lo + y, lo + x + offset, shape.place[lo + y + offset]):
                value = add(algebra, value, source[y])
        if more:
            values[x] = add(algebra, extra[x], value)
        else:
            values[x] = step(algebra, value, every or (nearest[lo + x] >= hi and lo + x >= first_end))


@njit(cache=True, nogil=True, _nrt=False)
def enter(algebra, tree, at, way, size, k, value):
    """Add a value to the Fenwick tree of a segment of `size` vertices."""
    while k <= size:
        tree[at + way * k] = add(algebra, tree[at + way * k], value)
        k += k & -k


@njit(cache=True, nogil=True, _nrt=False)
def clear(algebra, tree, at, way, size, k):
    """Make zero again what `enter` has changed."""
    while k <= size:
        tree[at + way * k] = algebra.zero
        k += k & -k


@njit(cache=True, nogil=True, _nrt=False)
def gather_up_to(algebra, value, tree, at, way, k):
    """Gather the values up to `k`."""
    while k > 0:
        value = gather(algebra, value, tree[at + way * k])
        k &= k - 1
    return value


@njit(cache=True, nogil=True, _nrt=False)
def _cross_pairs(algebra, shape, tasks, t, source, gathered, tree, heads, by_above, by_below, a, middle, b):
    """Take up the events behind `middle` by falling `above`.

    Where one condition is enough, all in the tail count, and those before it that are above: `tree` holds all events,
    and `heads` those above, from the begin of a segment.
    """
    lo, offset, either = tasks.lo[t], tasks.offset[t], shape.either
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    above, below, begins = shape.above, shape.below, shape.begin
    for i in range(middle, b if either else middle):
        v = lo + by_above[i] + offset
        if place[v] >= 0:
            end = np.int64(own_end[v])
            enter(algebra, tree, end, -1, end - own[v], end - place[v], source[by_above[i]])
    j = middle
    for i in range(a, middle):
        x = by_below[i]
        while j < b and above[lo + by_above[j]] > below[lo + x]:
            v = lo + by_above[j] + offset
            if place[v] >= 0:
                start, end, value = np.int64(own[v]), np.int64(own_end[v]), source[by_above[j]]
                if either:
                    enter(algebra, heads, start - 1, 1, end - start, place[v] - start + 1, value)
                else:
                    enter(algebra, tree, end, -1, end - start, end - place[v], value)
            j += 1
        v = lo + x + offset
        start, end = np.int64(begins[v]), np.int64(last[v])
        value = settle(algebra, gather_up_to(algebra, algebra.zero, tree, end, -1, end - first[v]))
        if either and start < end:
            value = settle(algebra, gather_up_to(algebra, value, heads, start - 1, 1, first[v] - start))
        gathered[x] = add(algebra, gathered[x], value)
    for i in range(middle, b if either else j):
        v = lo + by_above[i] + offset
        if place[v] >= 0:
            start, end = np.int64(own[v]), np.int64(own_end[v])
            clear(algebra, tree, end, -1, end - start, end - place[v])
            if either:
                clear(algebra, heads, start - 1, 1, end - start, place[v] - start + 1)


@overload(room_of)
def _room_of_pairs(algebra, shape, width, n):
    if not is_shape(shape, Pairs):
        return None
    return lambda algebra, shape, width, n: np.full(width if shape.either else 0, algebra.zero)


@overload(cross)
def _cross(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b):
    if not is_shape(shape, Pairs):
        return None

    def crossed(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b):
        _cross_pairs(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, a, middle, b)

    return crossed


@overload(may_follow)
def _may_follow(shape, x, y, v, at):
    if not is_shape(shape, Pairs):
        return None

    def follows(shape, x, y, v, at):
        inside = (shape.begin[v] if shape.either else shape.first[v]) <= at < shape.last[v]
        return inside and (shape.above[y] > shape.below[x] or (shape.either and at >= shape.first[v]))

    return follows


def is_shape(shape, kind):
    """Return whether a type of Numba's is that of a shape."""
    return isinstance(shape, types.BaseNamedTuple) and shape.instance_class is kind


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
