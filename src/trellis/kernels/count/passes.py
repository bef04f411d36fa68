"""One backward pass over the events of a task: each event takes up what its successors have, however these are found.

A task is a range `[lo, hi)` of events whose paths are counted together: a window, or all that begins at some events
whose spans end there (`single`). A path of a task starts at an event without predecessor in it (at those events if
single; anywhere if `every`), and ends at an event without successor in it that is not before `first_end` (anywhere if
`every`).

How successors are found is the shape of the relation:

- `EdgeLists`: they are listed.
- `Tails`: the attribute index; the successors of x are the later events of the attribute vertices from `first[x]` to
  the end of a segment. A Fenwick tree for each segment adds from its end. Of equalities, a segment is one vertex.
- `Ranges`: the attribute index; vertices `[first, last)`, several such ranges that do not overlap, and events before
  `reach[x]` only where there is a gap in time. A segment tree.
- `Pairs`: as `Tails`, and `above[y] > below[x]` besides, or instead: divide and conquer over time, a Fenwick tree for
  the rest.

Trees hold the events of later times only, so whatever is in the range that is asked for is a successor. What an
algebra (`trellis.kernels.count.algebra`) adds up is never taken away again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels.count.algebra import Modulo, add, gather, scale, settle, step
from trellis.kernels.count.pairs import pass_divided
from trellis.kernels.count.shapes import Pairs, Ranges, Tails
from trellis.kernels.event_graph.edges import EdgeLists
from trellis.kernels.jit import njit

SETTLE = 32  # values that are gathered before they are settled

_NO_WEIGHTS = np.empty((0, 0), np.uint64)


def one_pass(algebra, shape, events, tasks, t, extra, source, values):
    """Fill `values` for the events of task `t`, the first of them at 0.

    The value of an event is what its successors have in `source` (which may be `values`), and besides `extra` of the
    event; where `extra` is empty, the `step` of the algebra. An event that is not usable has the algebra's zero.
    """
    raise NotImplementedError


# Arrays are taken out of their tuples before a loop, and the loops call nothing that takes an array: Numba counts the
# references of whatever array a call is given, which would cost more than the work.


@njit(cache=True, nogil=True)
def _pass_edges(algebra, shape, events, tasks, t, extra, source, values):
    lo, hi, first_end, every = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every
    nearest, usable, more = events.nearest, events.usable, extra.shape[0] > 0
    offsets, successors = shape.offsets, shape.successors
    for x in range(hi - 1, lo - 1, -1):
        if not usable[x]:
            values[x - lo] = algebra.zero
            continue
        total = algebra.zero
        for i in range(offsets[x], offsets[x + 1]):
            y = successors[i]
            if y >= hi:
                break
            total = gather(algebra, total, source[y - lo])
            if (i & (SETTLE - 1)) == 0:
                total = settle(algebra, total)
        total = settle(algebra, total)
        if more:
            values[x - lo] = add(algebra, extra[x - lo], total)
        else:
            values[x - lo] = step(algebra, total, every or (nearest[x] >= hi and x >= first_end))


@njit(cache=True, nogil=True)
def _pass_tails(algebra, shape, events, tasks, t, extra, source, values):
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, usable, later, more = events.nearest, events.usable, events.later, extra.shape[0] > 0
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    tree = np.full(tasks.width[t], algebra.zero)
    x = hi - 1
    while x >= lo:
        begin = x
        while begin > lo and later[begin - 1] == later[x]:
            begin -= 1
        for y in range(begin, x + 1):
            value = algebra.zero
            if usable[y]:
                end = np.int64(last[y + offset])
                i = end - first[y + offset]
                while i > 0:
                    value = gather(algebra, value, tree[end - i])
                    i &= i - 1
                value = settle(algebra, value)
                if more:
                    value = add(algebra, extra[y - lo], value)
                else:
                    value = step(algebra, value, every or (nearest[y] >= hi and y >= first_end))
            values[y - lo] = value
        for y in range(begin, x + 1):
            where = np.int64(place[y + offset])
            if where >= 0:
                end = np.int64(own_end[y + offset])
                size, i = end - own[y + offset], end - where
                value = source[y - lo]
                while i <= size:
                    tree[end - i] = add(algebra, tree[end - i], value)
                    i += i & -i
        x = begin - 1


@njit(cache=True, nogil=True)
def _pass_ranges(algebra, shape, events, tasks, t, extra, source, values):
    """Go through the events block by block, so that all of a block reach to its end, and none beyond the next one.

    So nothing is ever taken out of a tree: the events of a block first gather from the next block, in rising order as
    they reach farther, then from their own.
    """
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, usable, later, more = events.nearest, events.usable, events.later, extra.shape[0] > 0
    place, first, last, ranges, reach = shape.place, shape.first, shape.last, shape.first.shape[0], shape.reach
    width, gap = tasks.width[t], shape.reach.shape[0] > 0
    tree = np.full(2 * width, algebra.zero)
    borders = np.empty(hi - lo + 1 if gap else 2, np.int64)
    blocks = 0
    borders[0] = lo
    while borders[blocks] < hi:
        at = borders[blocks]
        blocks += 1
        borders[blocks] = max(min(reach[at], hi), min(later[at], hi)) if gap else hi
    for block in range(blocks - 1, -1, -1):
        begin_block, end_block = borders[block], borders[block + 1]
        y = end_block
        for phase in range(0 if end_block < hi else 1, 2):
            # Rising through what is beyond the block, then falling through the block itself.
            x = begin_block if phase == 0 else end_block - 1
            while begin_block <= x < end_block:
                begin, behind = x, x + 1
                if phase == 0:
                    while y < min(reach[x], hi):
                        i = place[y + offset] + width
                        if i >= width:
                            value = source[y - lo]
                            while i > 0:
                                tree[i] = add(algebra, tree[i], value)
                                i >>= 1
                        y += 1
                else:
                    while begin > begin_block and later[begin - 1] == later[x]:
                        begin -= 1
                for z in range(begin, behind):
                    value = algebra.zero
                    if usable[z]:
                        if phase == 1 and end_block < hi:
                            value = values[z - lo]
                        for r in range(ranges):
                            a, b = first[r, z + offset] + width, last[r, z + offset] + width
                            total = algebra.zero
                            while a < b:
                                if a & 1:
                                    total = gather(algebra, total, tree[a])
                                    a += 1
                                if b & 1:
                                    b -= 1
                                    total = gather(algebra, total, tree[b])
                                a >>= 1
                                b >>= 1
                            value = add(algebra, value, settle(algebra, total))
                        if phase == 1:
                            if more:
                                value = add(algebra, extra[z - lo], value)
                            else:
                                value = step(algebra, value, every or (nearest[z] >= hi and z >= first_end))
                    values[z - lo] = value
                if phase == 0:
                    x += 1
                    continue
                if block > 0 or begin > begin_block:
                    for z in range(begin, behind):
                        i = place[z + offset] + width
                        if i >= width:
                            value = source[z - lo]
                            while i > 0:
                                tree[i] = add(algebra, tree[i], value)
                                i >>= 1
                x = begin - 1
            if blocks > 1:  # leave the tree as it was
                filled, filled_end = (end_block, y) if phase == 0 else (begin_block, end_block)
                for z in range(filled, filled_end):
                    i = place[z + offset] + width
                    if i >= width:
                        while i > 0 and tree[i] != algebra.zero:
                            tree[i] = algebra.zero
                            i >>= 1


_PASSES = {
    EdgeLists: _pass_edges,
    Tails: _pass_tails,
    Ranges: _pass_ranges,
    Pairs: pass_divided,
}


@overload(one_pass)
def _one_pass(algebra, shape, events, tasks, t, extra, source, values):
    if isinstance(shape, types.BaseNamedTuple) and shape.instance_class in _PASSES:
        chosen = _PASSES[shape.instance_class]
        return lambda algebra, shape, events, tasks, t, extra, source, values: chosen(
            algebra, shape, events, tasks, t, extra, source, values
        )
    return None


# --- What is asked of the passes --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _largest(tasks):
    most = 0
    for t in range(tasks.lo.shape[0]):
        most = max(most, tasks.hi[t] - tasks.lo[t])
    return most


@njit(cache=True, nogil=True)
def _total(algebra, events, tasks, t, values):
    """Join the values of the events at which a path of the task may start."""
    total = algebra.zero
    lo, single, every, usable, latest = tasks.lo[t], tasks.single, tasks.every, events.usable, events.latest
    starts = tasks.starts
    for x in range(lo, tasks.hi[t]):
        if usable[x] and (starts[x] == t if single else every or latest[x] < lo):
            total = add(algebra, total, values[x - lo])
    return total


def count(algebra, shape, events, tasks):
    """Return the value of each task: the number of its paths, or their least or greatest length."""
    if isinstance(algebra, Modulo):  # which has weights and bounds on lengths besides, and need not be compiled twice
        return weigh(algebra, shape, events, tasks, _NO_WEIGHTS)[0]
    return count_at_once(algebra, shape, events, tasks)


@njit(cache=True, nogil=True)
def count_at_once(algebra, shape, events, tasks):
    """Count as `count` does, by one pass over each task."""
    totals, values = np.full(tasks.lo.shape[0], algebra.zero), np.full(_largest(tasks), algebra.zero)
    for t in range(tasks.lo.shape[0]):
        one_pass(algebra, shape, events, tasks, t, values[:0], values, values)
        totals[t] = _total(algebra, events, tasks, t, values)
    return totals


def weigh(algebra, shape, events, tasks, weights):
    """Return the number of paths of each task and below it, one row a weight, the sums of weights of their events.

    With weights, the algebra is `Modulo` a prime below 2**31; `weights` has one row a weight and one column an event.
    """
    return add_up(algebra, shape, events, tasks, weights, LengthBounds(1, 0, False, 0, len(tasks.lo)))[0]


def weigh_lengths(algebra, shape, events, tasks, weights, shortest, longest):
    """Weigh as `weigh` does, over the paths of `shortest` to `longest` events only."""
    return add_up(algebra, shape, events, tasks, weights, LengthBounds(shortest, longest, False, 0, len(tasks.lo)))[0]


def lengths(algebra, shape, events, tasks, t, longest):
    """Return the number of paths of one task of each length from 1 to `longest`, at 0 those of length 1."""
    found = add_up(algebra, shape, events, tasks, _NO_WEIGHTS, LengthBounds(1, longest, True, t, t + 1))
    return found[:, 0, 0].copy()


class LengthBounds(NamedTuple):
    """Which lengths of paths are added up, of the tasks from `begin` to `end`: all where `longest` is 0.

    `apart` has the numbers of each length apart from the others.
    """

    shortest: int
    longest: int
    apart: bool
    begin: int
    end: int


@njit(cache=True, nogil=True)
def add_up(algebra, shape, events, tasks, weights, bounds):
    """Add up the values of tasks for `weigh`, `weigh_lengths` and `lengths`: a table by length, weight and task.

    It is one kernel with one call of the pass, which is most of what is compiled. Without bounds on lengths an event
    takes up what its successors have; with them, what these have of paths that are shorter by one.
    """
    shortest, longest, apart, begin = bounds.shortest, bounds.longest, bounds.apart, bounds.begin
    bounded, rows, largest = longest > 0 or apart, 1 + weights.shape[0], _largest(tasks)
    totals = np.full((longest if apart else 1, rows, bounds.end - begin), algebra.zero)
    now, before = np.full((rows, largest), algebra.zero), np.full((rows, largest if bounded else 0), algebra.zero)
    extra = np.full(largest, algebra.zero)
    for t in range(begin, bounds.end):
        lo, size = tasks.lo[t], tasks.hi[t] - tasks.lo[t]
        for length in range(1, (min(longest, size) if bounded else 1) + 1):
            for row in range(rows):
                if row > 0:
                    for x in range(size):
                        extra[x] = scale(algebra, weights[row - 1, lo + x], now[0, x])
                elif bounded:
                    extra[:size] = algebra.zero
                if bounded and length == 1:
                    if row == 0:
                        _only_ends(algebra, events, tasks, t, now[0])
                    else:
                        now[row, :size] = extra[:size]
                else:
                    source = before[row] if bounded else now[row]
                    one_pass(
                        algebra, shape, events, tasks, t, extra if bounded or row > 0 else extra[:0], source, now[row]
                    )
                if length >= shortest:
                    at = length - 1 if apart else 0
                    totals[at, row, t - begin] = add(
                        algebra, totals[at, row, t - begin], _total(algebra, events, tasks, t, now[row])
                    )
            before, now = (now, before) if bounded else (before, now)
    return totals


@njit(cache=True, nogil=True)
def values_of_events(algebra, shape, events, tasks, extra, values):
    """Fill `values` for the events of all tasks, one task after another; `extra` is empty or goes with them."""
    begin = 0
    for t in range(tasks.lo.shape[0]):
        end = begin + tasks.hi[t] - tasks.lo[t]
        more = extra[begin:end] if extra.shape[0] > 0 else extra
        one_pass(algebra, shape, events, tasks, t, more, values[begin:end], values[begin:end])
        begin = end


@njit(cache=True, nogil=True)
def _only_ends(algebra, events, tasks, t, values):
    lo, hi, first_end, every = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every
    nearest, usable = events.nearest, events.usable
    for x in range(lo, hi):
        may_end = usable[x] and (every or (nearest[x] >= hi and x >= first_end))
        values[x - lo] = algebra.one if may_end else algebra.zero


@njit(cache=True, nogil=True)
def nearest_successors(algebra, shape, events, tasks, nearest):
    """Lower `nearest` to the first successor of each event of the tasks; the algebra is that of the least lengths."""
    largest = _largest(tasks)
    source, found, zeros = np.empty(largest, np.int64), np.empty(largest, np.int64), np.full(largest, algebra.zero)
    for t in range(tasks.lo.shape[0]):
        lo = tasks.lo[t]
        for x in range(lo, tasks.hi[t]):
            source[x - lo] = x
        one_pass(algebra, shape, events, tasks, t, zeros, source, found)
        for x in range(lo, tasks.hi[t]):
            if found[x - lo] < nearest[x]:
                nearest[x] = found[x - lo]


@njit(cache=True, nogil=True)
def first_successors(offsets, successors):
    """Return the first of the successors of each event that are listed, or the number of events."""
    n = offsets.shape[0] - 1
    nearest = np.full(n, n, np.int64)
    for x in range(n):
        if offsets[x] < offsets[x + 1]:
            nearest[x] = successors[offsets[x]]
    return nearest
