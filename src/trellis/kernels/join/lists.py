"""Lists of candidates, and how they are narrowed when a slot takes an event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least, first_at_least_in
from trellis.kernels.join.block import BLOCK, BlockScratch, lean, run_block

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
    program_slots, program_ease, program_eases
        uint64, int64, bool (programs,), (programs, events), (programs,): of the programs of NOTs the slots that they
        read, and by which numbers of the forbidden events they are more easily true, and whether they are.
    ease, eases
        int64 (h, candidates), bool (h, slots): for what is asked of several slots, of which it is true more easily for
        the candidates with lesser numbers, whatever the other slots have; whether it is so for a slot.
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
    program_slots: np.ndarray
    program_ease: np.ndarray
    program_eases: np.ndarray
    ease: np.ndarray
    eases: np.ndarray


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
    block
        Scratch of programs.
    met
        bool (`BLOCK`,): which events of a block a NOT forbids.
    state
        int64 (1,): 1 after a number has left 64 bits.
    """

    low: np.ndarray
    high: np.ndarray
    pool: np.ndarray  # int64 (room,)
    chosen: np.ndarray
    block: BlockScratch
    met: np.ndarray
    state: np.ndarray


@lean
def holds(tables, c, end, slot, a, b):
    """Return whether the conditions from `c` to `end` hold for a candidate of `slot` and one of the other."""
    for i in range(c, end):
        one, other = tables.codes[i, a], tables.codes[i, b]
        kind = tables.kinds[i]
        if kind == GREATER and tables.first[i] != slot:
            one, other = other, one
        met = one == other if kind == EQUAL else other > one if kind == GREATER else one != other
        if not met:
            return False
    return True


@lean
def _keep_coded(codes, kind, is_first, own, pool, first, last, to):
    """Keep of a list, from `to` on, the candidates whose codes go with one; return where it ends."""
    for i in range(first, last):
        b = pool[i]
        code = codes[b]
        if kind != GREATER:
            met = (code == own) == (kind == EQUAL)
        elif is_first:
            met = code > own
        else:
            met = code < own
        pool[to] = b
        to += met
    return to


@lean
def keep_pairs(tables, slot, cand, v, c, pool, first, last, own, used):
    """Leave of the list of a slot what the conditions from `c` on allow beside a candidate of another slot.

    From `own` on the pool is this node's. Return the list and where the pool is free.
    """
    events, event = tables.events, tables.events[cand]
    if tables.distinct[slot, v]:
        to = begins = used if first < own or last != used else first
        for i in range(first, last):
            b = pool[i]
            pool[to] = b
            to += events[b] != event
        first, last, used = begins, to, to
    for i in range(c, tables.pairs[slot, v, 1]):
        begins = used if first < own or last != used else first
        to = _keep_coded(
            tables.codes[i], tables.kinds[i], tables.first[i] == slot, tables.codes[i, cand], pool, first, last, begins
        )
        first, last, used = begins, to, to
    return first, last, used


# --- What is asked of several slots -----------------------------------------------------------------------------------


@lean
def _any_forbidden(programs, lists, forbidden, slots, begin, end, i, high):
    """Return whether a forbidden event from place `i` on, before `high`, meets all programs of a NOT."""
    chosen, block, met = lists.chosen, lists.block, lists.met
    while i < forbidden.shape[0] and forbidden[i] < high:
        size = 0
        while size < BLOCK and i < forbidden.shape[0] and forbidden[i] < high:
            block.events[size] = forbidden[i]
            met[size] = True
            size += 1
            i += 1
        for program in range(begin, end):
            row = run_block(programs, program, chosen, slots, size, block)
            if row < 0:
                lists.state[0] = 1
                return True
            for k in range(size):
                at = k * block.stride[row]
                met[k] &= block.there[row, at] and block.whole[row, at] == 1
        for k in range(size):
            if met[k]:
                return True
    return False


@lean
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
    i = first_at_least(tables.gap_forbidden, tables.gap_begins[g], tables.gap_begins[g + 1], low)
    forbidden = tables.gap_forbidden[: tables.gap_begins[g + 1]]
    return not _any_forbidden(programs, lists, forbidden, slots, begin, end, i, high)


@lean
def _eased_program(tables, g, slot):
    """Return the one program of a NOT that reads a slot, if the easiest forbidden event tells of all; else -1.

    The slot may be one end of the gap, or none. At the edges of a span it decides more.
    """
    bit, found = ONE << np.uint64(slot), np.int64(-1)
    after, before = tables.gap_after[g], tables.gap_before[g]
    if (after & bit and after != bit) or (before & bit and before != bit) or after & before:
        return np.int64(-1)
    if tables.span[0] and (after == NONE or before == NONE):
        return np.int64(-1)
    for program in range(tables.gap_programs[g, 0], tables.gap_programs[g, 1]):
        if tables.program_slots[program] & bit:
            if found >= 0 or not tables.program_eases[program]:
                return np.int64(-1)
            found = np.int64(program)
    return found


@lean
def _meets(tables, programs, lists, program, event):
    """Return whether an event that a NOT may forbid meets a program."""
    block = lists.block
    block.events[0] = event
    row = run_block(programs, program, lists.chosen, tables.begin.shape[0] - 1, 1, block)
    if row < 0:
        lists.state[0] = 1
        return True
    return block.there[row, 0] and block.whole[row, 0] == 1


@lean
def _keep_free(tables, programs, lists, g, eased, slot, first, last, edges, to):
    """Leave of a list what no forbidden event lies beside, from `to` on; return where it ends.

    The gap grows from one candidate to the next, and what is easiest among the forbidden events in it is remembered.
    """
    pool, events, chosen, forbidden = lists.pool, tables.events, lists.chosen, tables.gap_forbidden
    begin, end, easiest = tables.gap_begins[g], tables.gap_begins[g + 1], np.int64(-1)
    bit = ONE << np.uint64(slot)
    forward, ends = tables.gap_after[g] != bit, tables.gap_before[g] == bit
    low, high = edges
    for s in range(tables.begin.shape[0] - 1):
        if s != slot and tables.gap_after[g] & (ONE << np.uint64(s)):
            low = max(low, tables.later[chosen[s]])
        if s != slot and tables.gap_before[g] & (ONE << np.uint64(s)):
            high = min(high, tables.begins[chosen[s]])
    i = first_at_least(forbidden, begin, end, low if forward else high) - (0 if forward else 1)
    size = last - first
    kept = 0
    for k in range(size):
        b = pool[first + k if forward else last - 1 - k]
        chosen[slot] = events[b]
        while begin <= i < end:
            n = forbidden[i]
            if forward:
                outside = n >= high or (ends and n >= tables.begins[events[b]])
            else:
                outside = n < max(low, tables.later[events[b]])
            if outside:
                break
            i += 1 if forward else -1
            if easiest >= 0 and tables.program_ease[eased, n] >= tables.program_ease[eased, easiest]:
                continue
            met = True
            for program in range(tables.gap_programs[g, 0], tables.gap_programs[g, 1]):
                met = met and (program == eased or _meets(tables, programs, lists, program, n))
            if met:
                easiest = n
        if easiest < 0 or not _meets(tables, programs, lists, eased, easiest):
            pool[to + (kept if forward else size - 1 - kept)] = b
            kept += 1
    if not forward:
        for k in range(kept):
            pool[to + k] = pool[to + size - kept + k]
    return to + kept


@lean
def keep_due(tables, programs, lists, h, slot, first, last, edges, own, used):
    """Leave of the list of a slot what something holds for that is asked of it and of slots that have events.

    From `own` on the pool is this node's. Return the list and where the pool is free.
    """
    pool, events, chosen, block = lists.pool, tables.events, lists.chosen, lists.block
    begins = used if first < own or last != used else first
    to = begins
    if tables.asks[h] == GAP:
        eased = _eased_program(tables, tables.at[h], slot)
        if eased >= 0:
            begins = used
            to = _keep_free(tables, programs, lists, tables.at[h], eased, slot, first, last, edges, begins)
            return begins, to, to
        for i in range(first, last):
            b = pool[i]
            chosen[slot] = events[b]
            pool[to] = b
            to += _gap_is_free(tables, programs, lists, tables.at[h], tables.masks[h], edges)
        return begins, to, to
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        for k in range(size):
            block.events[k] = events[pool[start + k]]
        row = run_block(programs, tables.at[h], chosen, slot, size, block)
        if row < 0:
            lists.state[0] = 1
            return begins, begins, begins
        for k in range(size):
            at = k * block.stride[row]
            pool[to] = pool[start + k]
            to += block.there[row, at] and block.whole[row, at] == 1
    return begins, to, to


@lean
def _keep_decided(tables, programs, lists, slot, bound, first, last, edges, own, used, last_bound):
    """Leave of a list what meets all that is decided by its slot now; return the list and where the pool is free."""
    bit = ONE << np.uint64(slot)
    for h in range(tables.masks.shape[0]):
        mask = tables.masks[h]
        if mask & bit == NONE or mask & ~(bound | bit) != NONE:
            continue
        if last_bound >= 0 and mask & (ONE << np.uint64(last_bound)) == NONE:
            continue  # decided before
        first, last, used = keep_due(tables, programs, lists, h, slot, first, last, edges, own, used)
    return first, last, used


@lean
def begin_lists(tables, programs, lists, node, mask, lo, hi, edges, used):
    """Make the lists of slots before any takes an event; return where the pool is free, or -1 if a list is empty."""
    own = used
    for s in range(tables.begin.shape[0] - 1):
        bit = ONE << np.uint64(s)
        if mask & bit == NONE:
            continue
        begin, end = tables.begin[s], tables.begin[s + 1]
        first = first_at_least(tables.events, begin, end, lo)
        last = first_at_least(tables.events, first, end, hi)
        first, last, used = _keep_decided(tables, programs, lists, s, NONE, first, last, edges, own, used, -1)
        if first == last:
            return -1
        lists.low[node, s], lists.high[node, s] = first, last
    return used


@lean
def give_event(tables, programs, lists, node, slot, cand, edges, used):
    """Make the list of a slot that is given its event; return where the pool is free, or -1 if it may not take that."""
    first, last, free = _keep_decided(tables, programs, lists, slot, NONE, cand, cand + 1, edges, used, used, -1)
    lists.low[node, slot], lists.high[node, slot] = first, last
    return free if first < last else -1


@lean
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
                pool[used] = b
                used += 1
            first, last = begins, used
            first, last, used = keep_pairs(tables, slot, cand, v, c + 1, pool, first, last, own, used)
        elif c < end or tables.distinct[slot, v]:
            first, last, used = keep_pairs(tables, slot, cand, v, c, pool, first, last, own, used)
        if tables.masks.shape[0]:
            first, last, used = _keep_decided(tables, programs, lists, v, bound, first, last, edges, own, used, slot)
        if first == last:
            return -1
        low[node, v], high[node, v] = first, last
    return used
