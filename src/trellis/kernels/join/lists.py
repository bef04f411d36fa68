"""Lists of candidates, and how they are narrowed when a slot takes an event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least, first_at_least_in
from trellis.kernels.expression.program import MISFIT, TRUE, is_true
from trellis.kernels.jit import njit

EQUAL, GREATER, DIFFERENT = range(3)  # the code of the condition's second slot is ... that of its first
PROGRAM, GAP = range(2)  # what is asked of several slots together
ONE, NONE = np.uint64(1), np.uint64(0)
NO_END = np.iinfo(np.int64).max


class JoinTables(NamedTuple):
    """The candidates of all slots, and what is asked of them.

    Attributes
    ----------
    events, begin
        int64 (candidates,), (slots + 1,): the event of each candidate, those of a slot together and in order.
    later, begins, until
        int64 (events,): for each event the first of a later time, the first of its time, and the first that is too
        late for a match with it.
    order, distinct
        int8, bool (slots, slots): 1 where the first must be earlier than the second, -1 the other way round; whether
        two without order may hold the same event.
    pairs, kinds, first, codes
        int64 (slots, slots, 2): the first condition on two slots and the one behind the last, the same both ways; (c,)
        each one's kind and the slot that it names first; (c, candidates) its codes, dense, from 0.
    runs, run_begins, run_at
        int64: for an equality `c`, the candidates of one of its slots by code; those with a code begin at
        `run_begins[run_at[c, i] + code]`, of the first slot (i = 0) or the second; -1 without.
    masks, asks, at
        uint64, int64 (h,): the slots that something is asked of, what it is, and its number among its kind.
    gap_after, gap_before, gap_next, gap_forbidden, gap_begins, gap_programs
        uint64 (g,): the slots before and behind a NOT; int64 (g, events + 1): the first forbidden event from each on;
        the forbidden ones, where each NOT's begin (g + 1,), and its programs (g, 2).
    span
        bool (1,): whether `until` is the end of a span.
    """

    events: np.ndarray
    begin: np.ndarray
    later: np.ndarray
    begins: np.ndarray
    until: np.ndarray
    order: np.ndarray
    distinct: np.ndarray
    pairs: np.ndarray
    kinds: np.ndarray
    first: np.ndarray
    codes: np.ndarray
    runs: np.ndarray
    run_begins: np.ndarray
    run_at: np.ndarray
    masks: np.ndarray
    asks: np.ndarray
    at: np.ndarray
    gap_after: np.ndarray
    gap_before: np.ndarray
    gap_next: np.ndarray
    gap_forbidden: np.ndarray
    gap_begins: np.ndarray
    gap_programs: np.ndarray
    span: np.ndarray


class JoinLists(NamedTuple):
    """Lists of candidates, and scratch.

    Attributes
    ----------
    low, high
        int64 (nodes, slots): the lists, as places of `pool`.
    pool
        int64: the candidates of lists; it begins with all candidates in order.
    chosen
        int64 (slots + 1,): the event of each slot that has one; last, one that a NOT asks about.
    whole, real, there
        Scratch of programs.
    state
        int64 (1,): 1 after a number has left 64 bits.
    """

    low: np.ndarray
    high: np.ndarray
    pool: np.ndarray
    chosen: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    there: np.ndarray
    state: np.ndarray


@njit(cache=True, nogil=True)
def holds(tables, c, end, slot, a, b):
    """Return whether the conditions from `c` to `end` hold for a candidate of `slot` and one of the other."""
    codes, kinds = tables.codes, tables.kinds
    for i in range(c, end):
        one, other = codes[i, a], codes[i, b]
        kind = kinds[i]
        if kind == EQUAL:
            if one != other:
                return False
        elif kind == GREATER:
            if tables.first[i] == slot:
                if other <= one:
                    return False
            elif one <= other:
                return False
        elif one == other:
            return False
    return True


@njit(cache=True, nogil=True)
def _true(programs, lists, program):
    answer = is_true(programs, program, lists.chosen, 0, lists.whole, lists.real, lists.there)
    if answer == MISFIT:
        lists.state[0] = 1
    return answer == TRUE


@njit(cache=True, nogil=True)
def _gap_is_free(tables, programs, lists, g, mask, edges):
    """Return whether no event that a NOT forbids lies in its gap, all slots of `mask` having events."""
    chosen = lists.chosen
    slots = tables.begin.shape[0] - 1
    low, high = edges
    after, before = tables.gap_after[g], tables.gap_before[g]
    first, last = NO_END, np.int64(-1)
    for s in range(slots):
        bit = ONE << np.uint64(s)
        if mask & bit:
            first, last = min(first, chosen[s]), max(last, chosen[s])
        if after & bit:
            low = max(low, tables.later[chosen[s]])
        if before & bit:
            high = min(high, tables.begins[chosen[s]])
    if tables.span[0]:
        if after == NONE:
            low = first_at_least(tables.until, low, max(low, last), last + 1)
        if before == NONE:
            high = min(high, tables.until[first])
    if low >= high or tables.gap_next[g, low] >= high:
        return True
    begin, end = tables.gap_programs[g, 0], tables.gap_programs[g, 1]
    if begin == end:
        return False
    forbidden = tables.gap_forbidden
    behind = tables.gap_begins[g + 1]
    for i in range(first_at_least(forbidden, tables.gap_begins[g], behind, low), behind):
        if forbidden[i] >= high:
            break
        chosen[slots] = forbidden[i]
        met = True
        for program in range(begin, end):
            if not _true(programs, lists, program):
                met = False
                break
        if met:
            return False
    return True


@njit(cache=True, nogil=True)
def asked_holds(tables, programs, lists, h, edges):
    """Return whether something that is asked of several slots holds for their events."""
    if tables.asks[h] == PROGRAM:
        return _true(programs, lists, tables.at[h])
    return _gap_is_free(tables, programs, lists, tables.at[h], tables.masks[h], edges)


@njit(cache=True, nogil=True)
def _keep_asked(tables, programs, lists, slot, bound, first, last, edges, own, used, last_bound):
    """Leave of a list what meets all that is decided by its slot now; return the list and where the pool is free.

    From `own` on the pool is this node's.
    """
    bit = ONE << np.uint64(slot)
    for h in range(tables.masks.shape[0]):
        mask = tables.masks[h]
        if mask & bit == NONE or mask & ~(bound | bit) != NONE:
            continue
        if last_bound >= 0 and mask & (ONE << np.uint64(last_bound)) == NONE:
            continue  # decided before
        begins, pool = used, lists.pool
        if first >= own and last == used:
            begins = first  # the list is this node's own
        to = begins
        for i in range(first, last):
            b = pool[i]
            lists.chosen[slot] = tables.events[b]
            if asked_holds(tables, programs, lists, h, edges):
                pool[to] = b
                to += 1
        first, last, used = begins, to, to
    return first, last, used


@njit(cache=True, nogil=True)
def begin_lists(tables, programs, lists, node, mask, free, lo, hi, edges, used):
    """Make the lists of slots before any takes an event; those of `free` are bounded by the edges alone.

    Return where the pool is free, or -1 if a list is empty.
    """
    own = used
    for s in range(tables.begin.shape[0] - 1):
        bit = ONE << np.uint64(s)
        if mask & bit == NONE:
            continue
        begin, end = tables.begin[s], tables.begin[s + 1]
        first = first_at_least(tables.events, begin, end, edges[0] if free & bit else lo)
        last = first_at_least(tables.events, first, end, hi)
        first, last, used = _keep_asked(tables, programs, lists, s, NONE, first, last, edges, own, used, -1)
        if first == last:
            return -1
        lists.low[node, s], lists.high[node, s] = first, last
    return used


@njit(cache=True, nogil=True)
def narrow(tables, programs, lists, parent, node, slot, cand, bound, remaining, lo, hi, edges, used):
    """Leave of the lists of the remaining slots what may go with a candidate that a slot takes.

    Return where the pool is free again, or -1 if a list is empty.
    """
    low, high, pool, events = lists.low, lists.high, lists.pool, tables.events
    event, size, own = events[cand], events.shape[0], used
    lists.chosen[slot] = event
    for v in range(tables.begin.shape[0] - 1):
        if remaining & (ONE << np.uint64(v)) == NONE:
            continue
        first, last = low[parent, v], high[parent, v]
        start, stop = lo, hi
        order = tables.order[slot, v]
        if order > 0:
            start = max(start, tables.later[event])
        elif order < 0:
            stop = min(stop, tables.begins[event])
        c, end = tables.pairs[slot, v, 0], tables.pairs[slot, v, 1]
        if first < last and events[pool[first]] < start:
            first = first_at_least_in(pool, events, first, last, start)
        if first < last and events[pool[last - 1]] >= stop:
            last = first_at_least_in(pool, events, first, last, stop)
        side = 1 if c < end and tables.first[c] == slot else 0
        if c < end and last <= size and tables.run_at[c, side] >= 0:
            runs, place = tables.runs, tables.run_at[c, side] + tables.codes[c, cand]
            behind = tables.run_begins[place + 1]
            begins = used
            for i in range(first_at_least(runs, tables.run_begins[place], behind, first), behind):
                b = runs[i]
                if b >= last:
                    break
                if (events[b] != event or not tables.distinct[slot, v]) and holds(tables, c + 1, end, slot, cand, b):
                    pool[used] = b
                    used += 1
            first, last = begins, used
        elif c < end or tables.distinct[slot, v]:
            distinct, begins = tables.distinct[slot, v], used
            for i in range(first, last):
                b = pool[i]
                if (events[b] != event or not distinct) and holds(tables, c, end, slot, cand, b):
                    pool[used] = b
                    used += 1
            first, last = begins, used
        if tables.masks.shape[0]:
            first, last, used = _keep_asked(tables, programs, lists, v, bound, first, last, edges, own, used, slot)
        if first == last:
            return -1
        low[node, v], high[node, v] = first, last
    return used
