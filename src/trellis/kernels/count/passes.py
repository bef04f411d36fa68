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
from trellis.kernels.event_graph.edges import EdgeLists
from trellis.kernels.jit import njit

FEW = 24  # events whose pairs are simply tried
SERVE, CROSS, MERGE = range(3)  # what divide and conquer has to do
ABREAST = 8  # tasks that go through the events together; written out, so that they become wide loads and stores
SETTLE = 32  # values that are gathered before they are settled

_NO_WEIGHTS = np.empty((0, 0), np.uint64)


class EventNeighbours(NamedTuple):
    """Of each event the first of a later time, its first successor and last predecessor, and whether it is usable."""

    later: np.ndarray
    nearest: np.ndarray
    latest: np.ndarray
    usable: np.ndarray


class PassTasks(NamedTuple):
    """Ranges of events, and the part of the index that serves each: the events from `part` to `part_end`.

    `offset` is added to an event to find it in the index; the part has `width` vertices. Where tasks are `single`,
    `starts` has for each event the task that begins there, or -1; else it is empty.
    """

    lo: np.ndarray
    hi: np.ndarray
    first_end: np.ndarray
    part: np.ndarray
    part_end: np.ndarray
    offset: np.ndarray
    width: np.ndarray
    starts: np.ndarray
    single: bool
    every: bool


class Tails(NamedTuple):
    """Vertices of events, first vertex and end of their successors, and begin and end of the events' own segments."""

    place: np.ndarray
    first: np.ndarray
    last: np.ndarray
    own: np.ndarray
    own_end: np.ndarray

    @classmethod
    def of_keys(cls, place: np.ndarray, key: np.ndarray) -> Tails:
        """Return the shape in which the one vertex `key` (-1: none) holds all successors of an event."""
        one = np.int32(1)
        return cls(place, np.maximum(key, np.int32(0)), key + one, place, place + one)


class Ranges(NamedTuple):
    """Vertices of events, and ranges of vertices of their successors: in each row of `first` and `last` one of each.

    `reach` is empty, or has for each event the first one that is too late to follow it, which never falls.
    """

    place: np.ndarray
    first: np.ndarray
    last: np.ndarray
    reach: np.ndarray


class Pairs(NamedTuple):
    """As `Tails`; besides `above[y] > below[x]`. The events of each part of the index are sorted by both, falling.

    `begin` is where the segment of the successors begins. If `either`, one of both conditions is enough in it.
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
    begin: np.ndarray
    either: bool


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


@njit(cache=True, nogil=True)
def _pass_pairs(algebra, shape, events, tasks, t, extra, source, values):
    """Divide the events at a time, serve the later half, let the earlier gather from it, and serve that.

    Between `a` and `b`, `by_above` and `by_below` hold the events `[a, b)` in falling order, before and after these are
    served. What is still to be done is a stack, because Numba cannot keep a recursive function in its cache.
    """
    lo, later, above, below = tasks.lo[t], events.later, shape.above, shape.below
    n = tasks.hi[t] - lo
    by_above, by_below = _of_task(shape.by_above, tasks, t), _of_task(shape.by_below, tasks, t)
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
            _merge(by_above, above, lo, spare, a, middle, b)
            _merge(by_below, below, lo, spare, a, middle, b)
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
            _part(by_above, spare, a, middle, b)
            _part(by_below, spare, a, middle, b)
            stack[depth] = (MERGE, a, middle, b)
            stack[depth + 1] = (SERVE, a, 0, middle)
            stack[depth + 2] = (CROSS, a, middle, b)
            stack[depth + 3] = (SERVE, middle, 0, b)
            depth += 4


@njit(cache=True, nogil=True)
def _of_task(order, tasks, t):
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
def _part(order, spare, a, middle, b):
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
def _merge(order, codes, lo, spare, a, middle, b):
    """Merge two runs that fall in their codes."""
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


_PASSES = {
    EdgeLists: _pass_edges,
    Tails: _pass_tails,
    Ranges: _pass_ranges,
    Pairs: _pass_pairs,
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
def count_abreast(algebra, shape, events, tasks):
    """Count as `count` does, for tasks of the shape `Tails`, `ABREAST` tasks of one part at a time.

    The tasks of a part follow one another with rising `lo` and `hi`; each node of the tree is a row of columns, one for
    each task.
    """
    totals = np.full(tasks.lo.shape[0], algebra.zero)
    width = tasks.width.max() if tasks.width.shape[0] else 0
    tree = np.empty((width, ABREAST), totals.dtype)
    t = 0
    while t < tasks.lo.shape[0]:
        behind = t + 1
        most = min(tasks.lo.shape[0], t + ABREAST)
        # Parts can begin at the same event, and can have the same offset, but not both.
        while behind < most and tasks.part[behind] == tasks.part[t] and tasks.offset[behind] == tasks.offset[t]:
            behind += 1
        tree[: tasks.width[t]] = algebra.zero
        _pass_abreast(algebra, shape, events, tasks, t, behind, tree, totals)
        t = behind
    return totals


@njit(cache=True, nogil=True)
def _pass_abreast(algebra, shape, events, tasks, t, behind, tree, totals):
    offset, columns, every, single, starts = tasks.offset[t], behind - t, tasks.every, tasks.single, tasks.starts
    los, his, first_ends = tasks.lo[t:behind], tasks.hi[t:behind], tasks.first_end[t:behind]
    nearest, latest, usable, later = events.nearest, events.latest, events.usable, events.later
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    lo, x = tasks.lo[t], tasks.hi[behind - 1] - 1
    inner_lo, inner_hi = tasks.lo[behind - 1], tasks.hi[t]
    row = np.full(ABREAST, algebra.zero)
    rows = np.full((16, ABREAST), algebra.zero)
    while x >= lo:
        begin = x
        while begin > lo and later[begin - 1] == later[x]:
            begin -= 1
        if x - begin >= rows.shape[0]:
            rows = np.full((x - begin + 1, ABREAST), algebra.zero)
        for y in range(begin, x + 1):
            v = y + offset
            end = np.int64(last[v])
            r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = algebra.zero
            i = end - first[v]
            while i > 0:
                node = np.uintp(end - i)
                r0 = gather(algebra, r0, tree[node, 0])
                r1 = gather(algebra, r1, tree[node, 1])
                r2 = gather(algebra, r2, tree[node, 2])
                r3 = gather(algebra, r3, tree[node, 3])
                r4 = gather(algebra, r4, tree[node, 4])
                r5 = gather(algebra, r5, tree[node, 5])
                r6 = gather(algebra, r6, tree[node, 6])
                r7 = gather(algebra, r7, tree[node, 7])
                i &= i - 1
            at = y - begin
            inside = columns == ABREAST and inner_lo <= y and nearest[y] < inner_hi and not every
            if inside and (not t <= starts[y] < behind if single else latest[y] >= inner_lo):
                # In the range of every column, where none of them starts or ends.
                rows[at, 0] = settle(algebra, r0)
                rows[at, 1] = settle(algebra, r1)
                rows[at, 2] = settle(algebra, r2)
                rows[at, 3] = settle(algebra, r3)
                rows[at, 4] = settle(algebra, r4)
                rows[at, 5] = settle(algebra, r5)
                rows[at, 6] = settle(algebra, r6)
                rows[at, 7] = settle(algebra, r7)
                continue
            row[0] = r0
            row[1] = r1
            row[2] = r2
            row[3] = r3
            row[4] = r4
            row[5] = r5
            row[6] = r6
            row[7] = r7
            for z in range(columns):
                value = algebra.zero
                if usable[y] and los[z] <= y < his[z]:
                    may_end = every or (nearest[y] >= his[z] and y >= first_ends[z])
                    value = step(algebra, settle(algebra, row[z]), may_end)
                    if starts[y] == t + z if single else every or latest[y] < los[z]:
                        totals[t + z] = add(algebra, totals[t + z], value)
                rows[at, z] = value
        for y in range(begin, x + 1):
            v = y + offset
            if place[v] >= 0:
                end = np.int64(own_end[v])
                size, i = end - own[v], end - place[v]
                at = y - begin
                r0, r1, r2, r3 = rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3]
                r4, r5, r6, r7 = rows[at, 4], rows[at, 5], rows[at, 6], rows[at, 7]
                zero = algebra.zero  # few events of a span lead to where its trends may end
                front = r0 == zero and r1 == zero and r2 == zero and r3 == zero
                if front and r4 == zero and r5 == zero and r6 == zero and r7 == zero:
                    continue
                while i <= size:
                    node = np.uintp(end - i)
                    t0 = add(algebra, tree[node, 0], r0)
                    t1 = add(algebra, tree[node, 1], r1)
                    t2 = add(algebra, tree[node, 2], r2)
                    t3 = add(algebra, tree[node, 3], r3)
                    t4 = add(algebra, tree[node, 4], r4)
                    t5 = add(algebra, tree[node, 5], r5)
                    t6 = add(algebra, tree[node, 6], r6)
                    t7 = add(algebra, tree[node, 7], r7)
                    tree[node, 0] = t0
                    tree[node, 1] = t1
                    tree[node, 2] = t2
                    tree[node, 3] = t3
                    tree[node, 4] = t4
                    tree[node, 5] = t5
                    tree[node, 6] = t6
                    tree[node, 7] = t7
                    i += i & -i
        x = begin - 1


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
