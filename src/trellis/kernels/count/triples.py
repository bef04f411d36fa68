"""A pass over events that three inequalities relate: divide and conquer over time, and again over one of the values.

It is the pass of `trellis.kernels.count.shapes.Pairs` with one more comparison. Where the events before a time gather
from those behind it, all of them stand in one list by the second value; that list is halved in turn, and within it the
events of the first half are taken up by the third value, falling, into a Fenwick tree over the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from trellis.kernels.count.algebra import add, settle
from trellis.kernels.count.pairs import clear, cross, enter, gather_up_to, is_shape, may_follow, pass_divided, room_of
from trellis.kernels.count.passes import one_pass
from trellis.kernels.jit import njit

RUN = 32  # events of a list whose pairs are simply tried


class Triples(NamedTuple):
    """As `Tails`; besides `above[y] > below[x]` and `third_above[y] > third_below[x]`.

    The events of each part of the index are sorted by the first two of these, falling.
    """

    place: np.ndarray  # int32 (places,)
    first: np.ndarray  # int32 (places,)
    last: np.ndarray  # int32 (places,)
    own: np.ndarray  # int32 (places,)
    own_end: np.ndarray  # int32 (places,)
    above: np.ndarray  # int64 (places,)
    below: np.ndarray  # int64 (places,)
    by_above: np.ndarray  # int32 (places,)
    by_below: np.ndarray  # int32 (places,)
    third_above: np.ndarray  # int64 (places,)
    third_below: np.ndarray  # int64 (places,)


@overload(one_pass)
def _one_pass(algebra, shape, events, tasks, t, extra, source, values):
    if not is_shape(shape, Triples):
        return None
    return lambda algebra, shape, events, tasks, t, extra, source, values: pass_divided(
        algebra, shape, events, tasks, t, extra, source, values
    )


@overload(room_of)
def _room_of(algebra, shape, width, n):
    return (lambda algebra, shape, width, n: np.empty(n, np.int32)) if is_shape(shape, Triples) else None


@overload(may_follow)
def _may_follow(shape, x, y, v, at):
    if not is_shape(shape, Triples):
        return None

    def follows(shape, x, y, v, at):
        larger = shape.above[y] > shape.below[x] and shape.third_above[y] > shape.third_below[x]
        return larger and shape.first[v] <= at < shape.last[v]

    return follows


@overload(cross)
def _cross(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b):
    if not is_shape(shape, Triples):
        return None

    def crossed(algebra, shape, tasks, t, source, gathered, tree, room, by_above, by_below, spare, a, middle, b):
        _listed(shape, tasks.lo[t], by_above, by_below, a, middle, b, room)
        _cross_listed(algebra, shape, tasks, t, source, gathered, tree, middle, room[: b - a], spare)

    return crossed


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


@njit(cache=True, nogil=True, _nrt=False)
def _cross_listed(algebra, shape, tasks, t, source, gathered, tree, middle, items, spare):
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
                        enter(algebra, tree, end, -1, end - own[v], end - place[v], source[y])
                    p += 1
                end = np.int64(last[lo + x + offset])
                value = gather_up_to(algebra, algebra.zero, tree, end, -1, end - first[lo + x + offset])
                gathered[x] = add(algebra, gathered[x], settle(algebra, value))
            for i in range(start, p):
                v = lo + items[i] + offset
                if items[i] >= middle and place[v] >= 0:
                    end = np.int64(own_end[v])
                    clear(algebra, tree, end, -1, end - own[v], end - place[v])
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
