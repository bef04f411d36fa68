"""A pass over events that three inequalities relate: divide and conquer over time, and again over one of the values.

It is the pass of `trellis.kernels.count.shapes.Pairs` with one more comparison. Where the events before a time gather
from those behind it, all of them stand in one list by the second value; that list is halved in turn, and within it the
events of the first half are taken up by the third value, falling, into a Fenwick tree over the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels.count.algebra import add, gather, settle, step
from trellis.kernels.count.pairs import CROSS, FEW, MERGE, SERVE, merge_runs, order_of_task, part_runs
from trellis.kernels.count.passes import one_pass
from trellis.kernels.jit import njit

RUN = 32  # events of a list whose pairs are simply tried


class Triples(NamedTuple):
    """As `Tails`; besides `above[y] > below[x]` and `third_above[y] > third_below[x]`.

    The events of each part of the index are sorted by the first two of these, falling.
    """

    place: np.ndarray
    first: np.ndarray
    last: np.ndarray
    own: np.ndarray
    own_end: np.ndarray
    above: np.ndarray
    below: np.ndarray
    by_above: np.ndarray
    by_below: np.ndarray
    third_above: np.ndarray
    third_below: np.ndarray


@overload(one_pass)
def _one_pass(algebra, shape, events, tasks, t, extra, source, values):
    if not isinstance(shape, types.BaseNamedTuple) or shape.instance_class is not Triples:
        return None
    return lambda algebra, shape, events, tasks, t, extra, source, values: _pass_triples(
        algebra, shape, events, tasks, t, extra, source, values
    )


@njit(cache=True, nogil=True)
def _pass_triples(algebra, shape, events, tasks, t, extra, source, values):
    """Divide the events at a time, as for `Pairs`."""
    lo, later, above, below = tasks.lo[t], events.later, shape.above, shape.below
    n = tasks.hi[t] - lo
    by_above, by_below = order_of_task(shape.by_above, tasks, t), order_of_task(shape.by_below, tasks, t)
    gathered, tree = np.full(n, algebra.zero), np.full(tasks.width[t], algebra.zero)
    spare, items = np.empty(n, np.int32), np.empty(n, np.int32)
    stack = np.empty((256, 4), np.int64)
    stack[0] = (SERVE, 0, 0, n)
    depth = 1
    while depth > 0:
        depth -= 1
        what, a, middle, b = stack[depth]
        if what == MERGE:
            merge_runs(by_above, above, lo, spare, a, middle, b)
            merge_runs(by_below, below, lo, spare, a, middle, b)
        elif what == CROSS:
            _listed(shape, lo, by_above, by_below, a, middle, b, items)
            _cross(algebra, shape, tasks, t, source, gathered, tree, middle, items[: b - a], spare)
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
def _serve_few(algebra, shape, events, tasks, t, extra, source, values, gathered, a, b):
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, usable, later, more = events.nearest, events.usable, events.later, extra.shape[0] > 0
    place, first, last, above, below = shape.place, shape.first, shape.last, shape.above, shape.below
    third_above, third_below = shape.third_above, shape.third_below
    for x in range(b - 1, a - 1, -1):
        if not usable[lo + x]:
            values[x] = algebra.zero
            continue
        value = gathered[x]
        begin, end = first[lo + x + offset], last[lo + x + offset]
        for y in range(later[lo + x] - lo, b):
            larger = above[lo + y] > below[lo + x] and third_above[lo + y] > third_below[lo + x]
            if larger and begin <= place[lo + y + offset] < end:
                value = add(algebra, value, source[y])
        if more:
            values[x] = add(algebra, extra[x], value)
        else:
            values[x] = step(algebra, value, every or (nearest[lo + x] >= hi and lo + x >= first_end))


@njit(cache=True, nogil=True)
def _listed(shape, lo, by_above, by_below, a, middle, b, items):
    """List the events of both parts by the second value: each behind `middle` before those that it is above."""
    above, below = shape.above, shape.below
    i, j = a, middle
    for k in range(b - a):
        if j < b and (i == middle or above[lo + by_above[j]] > below[lo + by_below[i]]):
            items[k] = by_above[j]
            j += 1
        else:
            items[k] = by_below[i]
            i += 1


@njit(cache=True, nogil=True)
def _cross(algebra, shape, tasks, t, source, gathered, tree, middle, items, spare):
    """Let the events before `middle` gather from those behind it that stand before them in the list.

    Runs of the list are joined two by two; a run is sorted by the third value, falling.
    """
    lo, offset, size = tasks.lo[t], tasks.offset[t], items.shape[0]
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    third_above, third_below = shape.third_above, shape.third_below
    for start in range(0, size, RUN):
        for q in range(start, min(size, start + RUN)):
            x = items[q]
            if x < middle:
                begin, end = first[lo + x + offset], last[lo + x + offset]
                for p in range(start, q):
                    y = items[p]
                    larger = y >= middle and third_above[lo + y] > third_below[lo + x]
                    if larger and begin <= place[lo + y + offset] < end:
                        gathered[x] = add(algebra, gathered[x], source[y])
        for q in range(start + 1, min(size, start + RUN)):
            item = items[q]
            code = third_above[lo + item] if item >= middle else third_below[lo + item]
            p = q - 1
            while p >= start:
                other = items[p]
                if (third_above[lo + other] if other >= middle else third_below[lo + other]) >= code:
                    break
                items[p + 1] = other
                p -= 1
            items[p + 1] = item
    width = RUN
    while width < size:
        for start in range(0, size - width, 2 * width):
            half, behind = start + width, min(size, start + 2 * width)
            p = start
            for q in range(half, behind):
                x = items[q]
                if x >= middle:
                    continue
                while p < half and (items[p] < middle or third_above[lo + items[p]] > third_below[lo + x]):
                    y = items[p]
                    v = lo + y + offset
                    if y >= middle and place[v] >= 0:
                        end = np.int64(own_end[v])
                        room, k = end - own[v], end - place[v]
                        while k <= room:
                            tree[end - k] = add(algebra, tree[end - k], source[y])
                            k += k & -k
                    p += 1
                end = np.int64(last[lo + x + offset])
                k = end - first[lo + x + offset]
                value = algebra.zero
                while k > 0:
                    value = gather(algebra, value, tree[end - k])
                    k &= k - 1
                gathered[x] = add(algebra, gathered[x], settle(algebra, value))
            for i in range(start, p):
                v = lo + items[i] + offset
                if items[i] >= middle and place[v] >= 0:
                    end = np.int64(own_end[v])
                    room, k = end - own[v], end - place[v]
                    while k <= room:
                        tree[end - k] = algebra.zero
                        k += k & -k
            i, j = start, half
            for k in range(start, behind):
                one = other = np.int64(0)
                if i < half:
                    one = third_above[lo + items[i]] if items[i] >= middle else third_below[lo + items[i]]
                if j < behind:
                    other = third_above[lo + items[j]] if items[j] >= middle else third_below[lo + items[j]]
                if j == behind or (i < half and one >= other):
                    spare[k] = items[i]
                    i += 1
                else:
                    spare[k] = items[j]
                    j += 1
            for k in range(start, behind):
                items[k] = spare[k]
        width *= 2
