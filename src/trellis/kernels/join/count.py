"""Counting the matches of a join: some slots are bound one after another, what is left are sums over a forest.

Where the constraints between the slots that are left make no cycle, a slot tells its neighbour for each of its
candidates how many ways there are on its side, and no two slots of different branches are ever looked at together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.join.block import lean, run_block
from trellis.kernels.join.lists import (
    DIFFERENT,
    EQUAL,
    GREATER,
    NO_END,
    NONE,
    ONE,
    begin_lists,
    give_event,
    holds,
    keep_due,
    keep_pairs,
    narrow,
)
from trellis.kernels.join.placed import CODE, SCAN, clear, is_placed, put_in_order, sort

FEW = 24  # candidates that are gone through one by one
MOST = 1 << 62  # greater numbers, without a modulus, are taken for it
_MOST, _TOO_GREAT = np.uint64(MOST), np.float64(MOST)


class JoinShape(NamedTuple):
    """How a join is counted.

    Attributes
    ----------
    mask
        uint64 (1,): its slots.
    cut
        int64: the slots that are bound, in this order.
    edges
        int64 (e, 5): in this order, a slot, the one that it passes its sums to, how, the order that is asked (1: the
        first is the earlier), and the condition.
    roots
        int64: the slots at which sums end.
    """

    mask: np.ndarray
    cut: np.ndarray  # int64 (bound slots,)
    edges: np.ndarray
    roots: np.ndarray  # int64 (roots,)


class JoinTasks(NamedTuple):
    """Where to count: events in `[lo, hi)`, the edges of the window, and candidates that the first slots have.

    `lo`, `hi`, `from_`, `to` are int64 (tasks,), `fixed` int64 (tasks, slots that are given).
    """

    lo: np.ndarray  # int64 (tasks,)
    hi: np.ndarray  # int64 (tasks,)
    from_: np.ndarray  # int64 (tasks,)
    to: np.ndarray  # int64 (tasks,)
    fixed: np.ndarray  # int64 (tasks, given slots)


class Bindings(NamedTuple):
    """Scratch of counting: a row for each slot that is bound, and one more.

    Attributes
    ----------
    at, stop, used
        int64: the place of the candidate in its list, where this ends, and where the pool is free.
    weight
        uint64: the product of the values so far.
    bound, remaining
        uint64: the slots that have an event, and that wait.
    due
        int64 (h,): what is asked of the two slots at hand.
    """

    at: np.ndarray  # int64 (bound slots + 1,)
    stop: np.ndarray  # int64 (bound slots + 1,)
    used: np.ndarray  # int64 (bound slots + 1,)
    weight: np.ndarray  # uint64 (bound slots + 1,)
    bound: np.ndarray  # uint64 (bound slots + 1,)
    remaining: np.ndarray  # uint64 (bound slots + 1,)
    due: np.ndarray  # int64 (h,)


class Sums(NamedTuple):
    """Numbers modulo a prime, or up to `MOST`.

    Attributes
    ----------
    values, numbers
        uint64 (candidates,): what each candidate counts, and scratch.
    cells
        uint64, scratch, one longer than there are codes; zero.
    unit
        uint64 (3,): zero, one, and scratch in which a signed number becomes one of these.
    modulus
        uint64 (1,): a prime of 31 bits, or 0.
    plain
        bool (1,): whether all values are 1.
    clip
        bool (1,): whether sums above 1 become 1.
    peak
        float64 (1,): the greatest sum that was met, without a modulus.
    """

    values: np.ndarray
    numbers: np.ndarray
    cells: np.ndarray  # uint64 (codes + 1,)
    unit: np.ndarray
    modulus: np.ndarray
    plain: np.ndarray
    clip: np.ndarray
    peak: np.ndarray


@lean
def _plus(modulus, a, b):
    total = a + b
    if modulus > 0:
        return total - modulus if total >= modulus else total
    return min(total, _MOST)


@lean
def _minus(modulus, a, b):
    if modulus > 0:
        return a - b if a >= b else a + (modulus - b)
    return a - b


@lean
def _times(modulus, a, b):
    if modulus > 0:
        return a * b % modulus
    return a * b if np.float64(a) * np.float64(b) < _TOO_GREAT else _MOST


@lean
def _met(sums, total):
    """Remember how large sums get."""
    if sums.modulus[0] == 0 and np.float64(total) > sums.peak[0]:
        sums.peak[0] = total


# --- Sums by code --------------------------------------------------------------------------------------------------


@lean
def _cell_of(size, kind, mirrored, code):
    if kind == GREATER:
        return size - 1 - code if mirrored else code + 1
    return code


@lean
def _add(cells, modulus, kind, cell, number):
    if kind != GREATER:
        cells[cell] = _plus(modulus, cells[cell], number)
        return
    while cell < cells.shape[0]:
        cells[cell] = _plus(modulus, cells[cell], number)
        cell += cell & -cell


@lean
def _clear(cells, zero, kind, cell):
    if kind != GREATER:
        cells[cell] = zero
        return
    while cell < cells.shape[0]:
        cells[cell] = zero
        cell += cell & -cell


@lean
def _sum_below(cells, modulus, zero, cell):
    total = zero
    while cell > 0:
        total = _plus(modulus, total, cells[cell])
        cell -= cell & -cell
    return total


# --- Sums that a slot passes on ------------------------------------------------------------------------------------


@lean
def _own(tables, lists, sums, node, w, u, a):
    """Return the number that was added for the event of a candidate of `u` itself, where it may not be in `w` too."""
    events, zero = tables.events, sums.unit[0]
    low, high = lists.low[node, w], lists.high[node, w]
    i = first_at_least_in(lists.pool, events, low, high, events[a])
    if i == high or events[lists.pool[i]] != events[a]:
        return zero
    c, end = tables.pairs[u, w, 0], tables.pairs[u, w, 1]
    return sums.numbers[lists.pool[i]] if holds(tables, c, end, u, a, lists.pool[i]) else zero


@lean
def _take(numbers, unit, modulus, clip, a, number):
    """Multiply what is known of a candidate by what a slot passes on."""
    if clip and number > 1:
        number = unit[1]
    numbers[a] = _times(modulus, numbers[a], number)


@lean
def _pass_sorted(tables, lists, sums, node, edge):
    """Pass on sums between slots that time and at most one condition join: one sweep over both lists."""
    w, u, how, order, c = edge[0], edge[1], edge[2], edge[3], edge[4]
    events, pool, numbers = tables.events, lists.pool, sums.numbers
    low, high, begin, end = lists.low[node, w], lists.high[node, w], lists.low[node, u], lists.high[node, u]
    kind = tables.kinds[c] if how == CODE else DIFFERENT
    mirrored = how == CODE and tables.first[c] == u  # `w` must be greater: counted from the greatest
    running = zero = sums.unit[0]
    cells, modulus, size = sums.cells, sums.modulus[0], sums.cells.shape[0]
    codes = tables.codes[c] if how == CODE else tables.events
    distinct = order == 0 and tables.distinct[u, w]
    added = 0
    forward = order >= 0
    for step in range(end - begin):
        a = pool[begin + step] if forward else pool[end - 1 - step]
        while added < high - low:
            b = pool[low + added] if forward else pool[high - 1 - added]
            if order > 0 and events[b] >= tables.begins[events[a]]:
                break
            if order < 0 and events[b] < tables.later[events[a]]:
                break
            running = _plus(modulus, running, numbers[b])
            if how == CODE:
                _add(cells, modulus, kind, _cell_of(size, kind, mirrored, codes[b]), numbers[b])
            added += 1
        number = running
        if how == CODE:
            cell = _cell_of(size, kind, mirrored, codes[a])
            if kind == GREATER:
                number = _sum_below(cells, modulus, zero, cell - 1)
            elif kind == EQUAL:
                number = cells[cell]
            else:
                number = _minus(modulus, running, cells[cell])
        if distinct:
            number = _minus(modulus, number, _own(tables, lists, sums, node, w, u, a))
        _take(numbers, sums.unit, modulus, sums.clip[0], a, number)
    _met(sums, running)
    if how == CODE:
        for i in range(added):
            b = pool[low + i] if forward else pool[high - 1 - i]
            _clear(cells, zero, kind, _cell_of(size, kind, mirrored, codes[b]))


@lean
def _pass_placed(tables, lists, sums, placed, node, e, edge):
    """Pass on sums by place: one pass over the candidates in order, and a look at it for each of the others."""
    w, u, modulus = edge[0], edge[1], sums.modulus[0]
    running, order, place = placed.running, placed.order[e], placed.place[e]
    distinct = edge[3] == 0 and tables.distinct[u, w]
    total = sums.unit[0]
    running[0] = total
    for k in range(placed.size[e]):
        total = _plus(modulus, total, sums.numbers[order[k]])
        running[k + 1] = total
    for i in range(lists.low[node, u], lists.high[node, u]):
        a = lists.pool[i]
        number = running[place[a]]
        if distinct:
            number = _minus(modulus, number, _own(tables, lists, sums, node, w, u, a))
        _take(sums.numbers, sums.unit, modulus, sums.clip[0], a, number)
    _met(sums, total)


@lean
def _is_by_ease(tables, lists, node, edge, h):
    """Return whether two slots are joined by one condition alone that some candidates of either meet more easily."""
    w, u, order = edge[0], edge[1], edge[3]
    if not tables.eases[h, w] or not tables.eases[h, u] or tables.distinct[u, w]:
        return False
    if tables.pairs[u, w, 0] < tables.pairs[u, w, 1]:
        return False
    if order == 0 or lists.low[node, w] == lists.high[node, w] or lists.low[node, u] == lists.high[node, u]:
        return True
    earlier, later = (w, u) if order > 0 else (u, w)
    last = tables.events[lists.pool[lists.high[node, earlier] - 1]]
    return last < tables.begins[tables.events[lists.pool[lists.low[node, later]]]]


@lean
def _pass_by_ease(tables, programs, lists, sums, placed, h, node, edge, used):
    """Pass on sums between such slots: what the next candidate goes with is the first of what the one before did."""
    w, u, pool, events, block = edge[0], edge[1], lists.pool, tables.events, lists.block
    left, right = lists.high[node, w] - lists.low[node, w], lists.high[node, u] - lists.low[node, u]
    modulus, numbers, total = sums.modulus[0], sums.numbers, sums.unit[0]
    given, taking = pool[used : used + left], pool[used + left : used + left + right]
    for i in range(left):
        given[i] = pool[lists.low[node, w] + i]
        total = _plus(modulus, total, numbers[given[i]])
    _met(sums, total)
    for i in range(right):
        taking[i] = pool[lists.low[node, u] + i]
    sort(given, placed.spare, left, tables.ease[h])
    sort(taking, placed.spare, right, tables.ease[h])
    for i in range(right):
        lists.chosen[u] = events[taking[i]]
        while left > 0:
            block.events[0] = events[given[left - 1]]
            row = run_block(programs, tables.at[h], lists.chosen, w, 1, block)
            if row < 0:
                lists.state[0] = 1
                return
            if block.there[row, 0] and block.whole[row, 0] == 1:
                break
            left -= 1
            total = _minus(modulus, total, numbers[given[left]])
        _take(numbers, sums.unit, modulus, sums.clip[0], taking[i], total)


@lean
def _pass_pairs(tables, programs, lists, sums, placed, due, node, edge, bound, edges, used):
    """Pass on sums between slots of which every pair of candidates is asked."""
    w, u, order = edge[0], edge[1], edge[3]
    events, pool, numbers = tables.events, lists.pool, sums.numbers
    low, high = lists.low[node, w], lists.high[node, w]
    both = (ONE << np.uint64(u)) | (ONE << np.uint64(w))
    number_asked = 0
    for h in range(tables.masks.shape[0]):
        if tables.masks[h] & both == both and tables.masks[h] & ~(bound | both) == NONE:
            due[number_asked] = h
            number_asked += 1
    if number_asked == 1 and _is_by_ease(tables, lists, node, edge, due[0]):
        _pass_by_ease(tables, programs, lists, sums, placed, due[0], node, edge, used)
        return
    total = sums.unit[0]
    for i in range(low, high):
        total = _plus(sums.modulus[0], total, numbers[pool[i]])
    _met(sums, total)
    for i in range(lists.low[node, u], lists.high[node, u]):
        a = pool[i]
        event = events[a]
        lists.chosen[u] = event
        first, last, free = low, high, used
        if order > 0:
            last = first_at_least_in(pool, events, low, high, tables.begins[event])
        elif order < 0:
            first = first_at_least_in(pool, events, low, high, tables.later[event])
        c = tables.pairs[u, w, 0]
        first, last, free = keep_pairs(tables, u, a, w, c, pool, first, last, used, free)
        for k in range(number_asked):
            first, last, free = keep_due(tables, programs, lists, due[k], w, first, last, edges, used, free)
        number = sums.unit[0]
        for j in range(first, last):
            number = _plus(sums.modulus[0], number, numbers[pool[j]])
        _take(sums.numbers, sums.unit, sums.modulus[0], sums.clip[0], a, number)


@lean
def _forest(tables, programs, lists, sums, placed, due, shape, node, bound, edges, used, target):
    """Return how many matches the lists of a node have; at the slot `target` the numbers are left as they come."""
    pool, numbers = lists.pool, sums.numbers
    one = sums.unit[1]
    for i in range(shape.edges.shape[0]):
        w = shape.edges[i, 0]
        if is_placed(lists, node, shape.edges[i], placed.size[i]):
            clear(lists, numbers, w, sums.unit[0])
        for j in range(lists.low[node, w], lists.high[node, w]):
            numbers[pool[j]] = sums.values[pool[j]]
    for r in shape.roots:
        if shape.edges.shape[0] or not sums.plain[0] or r == target:
            for j in range(lists.low[node, r], lists.high[node, r]):
                numbers[pool[j]] = sums.values[pool[j]]
    for i in range(shape.edges.shape[0]):
        edge = shape.edges[i]
        w = edge[0]
        if edge[2] == SCAN or (edge[2] == CODE and lists.high[node, w] - lists.low[node, w] < FEW):
            _pass_pairs(tables, programs, lists, sums, placed, due, node, edge, bound, edges, used)
        elif is_placed(lists, node, edge, placed.size[i]):
            _pass_placed(tables, lists, sums, placed, node, i, edge)
        else:
            _pass_sorted(tables, lists, sums, node, edge)
    total = one
    for r in shape.roots:
        own = sums.unit[0]
        if shape.edges.shape[0] == 0 and sums.plain[0]:
            sums.unit[2] = lists.high[node, r] - lists.low[node, r]
            own = sums.unit[2]
            if sums.modulus[0] > 0:
                own %= sums.modulus[0]
        else:
            for j in range(lists.low[node, r], lists.high[node, r]):
                own = _plus(sums.modulus[0], own, numbers[pool[j]])
        _met(sums, own)
        if sums.clip[0] and own > 1:
            own = one
        if r != target:
            total = _times(sums.modulus[0], total, own)
    return total


@lean
def count_join(tables, programs, lists, shape, tasks, sums, placed, bindings, target, codes, best, totals):
    """Add up the number of matches of each task; with a `target`, note in `best` its least code on a match of each.

    Parameters
    ----------
    tables, programs, lists, shape, tasks, sums, placed, bindings
        See the named tuples and the page of this package. Lists have a node for each slot that is bound, and one more.
    target : int
        A slot, a root or one that is bound; -1 for none.
    codes, best : int64 (candidates,), (tasks,)
        A code for each candidate of the target, and the least one so far, for each task.
    totals : uint64 (tasks,)
        Zero; gets the numbers.
    """
    number = shape.cut.shape[0]
    given, size = tasks.fixed.shape[1], tables.events.shape[0]
    at, stop, used, weight = bindings.at, bindings.stop, bindings.used, bindings.weight
    bounds, remaining = bindings.bound, bindings.remaining
    weight[0] = sums.unit[1]
    bounds[0] = NONE
    remaining[0] = shape.mask[0]
    rest = shape.mask[0]  # what is not given
    is_cut = False
    for d in range(number):
        bit = ONE << np.uint64(shape.cut[d])
        bounds[d + 1], remaining[d + 1] = bounds[d] | bit, remaining[d] & ~bit
        is_cut |= shape.cut[d] == target
        if d < given:
            rest &= ~bit
    for t in range(tasks.lo.shape[0]):
        edges = tasks.from_[t], tasks.to[t]
        used[0] = size
        for d in range(given):
            if used[0] >= 0:
                used[0] = give_event(
                    tables, programs, lists, 0, shape.cut[d], tasks.fixed[t, d], edges, used[0]
                )  # fmt: skip
        if used[0] >= 0:
            used[0] = begin_lists(tables, programs, lists, 0, rest, tasks.lo[t], tasks.hi[t], edges, used[0])
        if used[0] < 0:
            continue
        placed.size[:] = 0
        if number > given:
            put_in_order(tables, lists, shape.edges, placed)
        depth, entering = 0, True
        while depth >= 0:
            if depth == number:
                found = _forest(
                    tables,
                    programs,
                    lists,
                    sums,
                    placed,
                    bindings.due,
                    shape,
                    depth,
                    bounds[depth],
                    edges,
                    used[depth],
                    target,
                )
                found = _times(sums.modulus[0], found, weight[depth])
                totals[t] = _plus(sums.modulus[0], totals[t], found)
                if target >= 0 and found > 0:
                    if is_cut:
                        for d in range(number):
                            if shape.cut[d] == target:
                                best[t] = min(best[t], codes[lists.pool[at[d]]])
                    else:
                        for i in range(lists.low[depth, target], lists.high[depth, target]):
                            if sums.numbers[lists.pool[i]] > 0:
                                best[t] = min(best[t], codes[lists.pool[i]])
                depth, entering = depth - 1, False
                continue
            s = shape.cut[depth]
            if not entering:
                at[depth] += 1
            else:
                at[depth], stop[depth] = lists.low[depth, s], lists.high[depth, s]
            entering = False
            if at[depth] >= stop[depth]:
                depth -= 1
                continue
            cand = lists.pool[at[depth]]
            used[depth + 1] = narrow(
                tables, programs, lists, depth, depth + 1, s, cand, bounds[depth + 1], remaining[depth + 1],
                np.int64(0), NO_END, edges, used[depth],
            )  # fmt: skip
            if used[depth + 1] >= 0:
                weight[depth + 1] = _times(sums.modulus[0], weight[depth], sums.values[cand])
                depth, entering = depth + 1, True
        _met(sums, totals[t])
