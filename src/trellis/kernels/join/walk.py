"""The matches of joins in the order of their ranks.

A walk goes over events, not over variables: at each depth it has all ways to bind the events so far, so that results
come by events first, and those of the same events by their variables. Ways that differ only in the arm of an OR are one
class, of which one result comes. Where events tell variables apart there is one way at each depth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.join.block import lean
from trellis.kernels.join.lists import NONE, ONE, begin_lists, narrow

MOST_RESULTS = 1 << 62  # of a rank range, or to be skipped


class JoinLevels(NamedTuple):
    """The state of a walk: levels of nodes, each a way to bind the events up to a depth.

    Attributes
    ----------
    cursor, taken
        int64 (nodes, slots): the next candidate of each slot as a place of the pool; the event of each that has one.
    remaining, arm, same
        uint64, int64, int64 (nodes,): the slots that wait, the arm, and the class.
    bound
        int64 (nodes,): the variable that took the last event.
    parent
        int64 (nodes,): the node before.
    base, emit, used, event
        int64 (depths + 1,): the first node of each depth, the next one that may be a result, where its part of the
        pool begins, and its event.
    state
        int64 (3,): the depth, -1 when all is done; 1 after there was no room for another node; 1 where only the first
        result of each first event is wanted.
    """

    cursor: np.ndarray
    taken: np.ndarray
    remaining: np.ndarray
    arm: np.ndarray
    same: np.ndarray
    bound: np.ndarray
    parent: np.ndarray
    base: np.ndarray
    emit: np.ndarray
    used: np.ndarray
    event: np.ndarray
    state: np.ndarray


class Arms(NamedTuple):
    """The arms of a pattern.

    Attributes
    ----------
    masks, slots
        uint64 (arms,): the slots of each; int64 (arms, variables): the slot of each variable, -1 without.
    before
        uint64 (slots,): the slots whose events must be earlier.
    starts
        bool (events,) or empty: the events at which results may begin; empty for all.
    """

    masks: np.ndarray
    slots: np.ndarray
    before: np.ndarray
    starts: np.ndarray


class MatchRoom(NamedTuple):
    """Room for results: int32 (values,) events and int8 variables, one result after another, int32 (rows,) ends."""

    positions: np.ndarray  # int32 (values,)
    variables: np.ndarray  # int8 (values,)
    ends: np.ndarray  # int32 (rows,)


class JoinRanges(NamedTuple):
    """Ranks that are wanted, int64 (ranges,) each.

    Attributes
    ----------
    lo, hi
        The events of the group.
    event, skip
        The event at which the first result begins, or one before it, and how many results from there on are skipped.
    size, written
        How many results are wanted, and how many were written by the last call.
    """

    lo: np.ndarray  # int64 (ranges,)
    hi: np.ndarray  # int64 (ranges,)
    event: np.ndarray  # int64 (ranges,)
    skip: np.ndarray  # int64 (ranges,)
    size: np.ndarray  # int64 (ranges,)
    written: np.ndarray  # int64 (ranges,)


@lean
def _begin_walk(tables, programs, lists, levels, arms, lo, hi, from_event):
    """Begin a walk over the events `[lo, hi)` of a group, at results whose first event is not before `from_event`."""
    node, slots, size = 0, tables.begin.shape[0] - 1, tables.events.shape[0]
    levels.base[0] = levels.emit[0] = 0
    levels.state[0] = 0
    for arm in range(arms.masks.shape[0]):
        free = begin_lists(tables, programs, lists, node, arms.masks[arm], lo, hi, (lo, hi), size)
        if free < 0:
            continue
        size = free
        levels.remaining[node], levels.arm[node], levels.same[node] = arms.masks[arm], arm, 0
        levels.parent[node] = levels.bound[node] = -1
        for s in range(slots):
            if arms.masks[arm] & (ONE << np.uint64(s)):
                first, last = lists.low[node, s], lists.high[node, s]
                levels.cursor[node, s] = first_at_least_in(lists.pool, tables.events, first, last, from_event)
        node += 1
    levels.base[1], levels.used[1] = node, size
    levels.emit[0] = node


@lean
def _next_event(tables, lists, levels, arms, begin, end, none):
    """Return the first event with which a node of a level may go on; `none` without one."""
    events, pool = tables.events, lists.pool
    found = none
    for n in range(begin, end):
        for s in range(tables.begin.shape[0] - 1):
            bit = ONE << np.uint64(s)
            if levels.remaining[n] & bit == NONE or arms.before[s] & levels.remaining[n] != NONE:
                continue
            if levels.cursor[n, s] < lists.high[n, s]:
                found = min(found, events[pool[levels.cursor[n, s]]])
    return found


@lean
def _child(tables, programs, lists, levels, arms, n, s, node, variable, same, hi, edges, used):
    """Make the node that comes of binding the next candidate of a slot; return where the pool is free, or -1."""
    bit = ONE << np.uint64(s)
    cand = lists.pool[levels.cursor[n, s]]
    event = tables.events[cand]
    remaining = levels.remaining[n] & ~bit
    bound = arms.masks[levels.arm[n]] & ~remaining
    for v in range(tables.begin.shape[0] - 1):
        levels.taken[node, v] = levels.taken[n, v]
        if bound & (ONE << np.uint64(v)) and v != s:
            lists.chosen[v] = levels.taken[n, v]
    levels.taken[node, s] = event
    free = narrow(tables, programs, lists, n, node, s, cand, bound, remaining, event + 1, hi, edges, used)
    if free < 0:
        return free
    for v in range(tables.begin.shape[0] - 1):
        levels.cursor[node, v] = lists.low[node, v]
    levels.remaining[node], levels.arm[node], levels.same[node] = remaining, levels.arm[n], same
    levels.bound[node], levels.parent[node] = variable, n
    return free


@lean
def _level(tables, programs, lists, levels, arms, depth, event, hi, edges):
    """Make the nodes of the next depth: all ways to bind an event; return whether there are any."""
    begin, end = levels.base[depth], levels.base[depth + 1]
    node, used, same = end, levels.used[depth + 1], -1
    n = begin
    while n < end:
        behind = n
        while behind < end and levels.same[behind] == levels.same[n]:
            behind += 1
        for variable in range(arms.slots.shape[1]):
            is_new = True
            for i in range(n, behind):
                s = arms.slots[levels.arm[i], variable]
                if s < 0 or levels.remaining[i] & (ONE << np.uint64(s)) == NONE:
                    continue
                if arms.before[s] & levels.remaining[i] != NONE or levels.cursor[i, s] >= lists.high[i, s]:
                    continue
                if tables.events[lists.pool[levels.cursor[i, s]]] != event:
                    continue
                room = 0
                for v in range(tables.begin.shape[0] - 1):
                    if levels.remaining[i] & (ONE << np.uint64(v)):
                        room += lists.high[i, v] - lists.low[i, v]
                if node + 1 >= levels.remaining.shape[0] or used + room > lists.pool.shape[0]:
                    levels.state[1] = 1
                    return False
                free = _child(
                    tables, programs, lists, levels, arms, i, s, node, variable, same + is_new, hi, edges, used
                )
                levels.cursor[i, s] += 1
                if free >= 0:
                    used = free
                    node += 1
                    same += is_new
                    is_new = False
        n = behind
    if node == end:
        return False
    levels.emit[depth + 1] = end
    levels.base[depth + 2], levels.used[depth + 2] = node, used
    levels.event[depth + 1] = event
    return True


@lean
def _is_result(levels, node, base):
    """Return whether a node has all its slots, and is the first of its class that has."""
    if levels.remaining[node] != NONE:
        return False
    other = node - 1
    while other >= base and levels.same[other] == levels.same[node]:
        if levels.remaining[other] == NONE:
            return False
        other -= 1
    return True


@lean
def _write(levels, node, depth, room, at):
    """Write the events and variables that lead to a node, before a place of the room."""
    for d in range(depth, 0, -1):
        room.positions[at - 1 - (depth - d)] = levels.event[d]
        room.variables[at - 1 - (depth - d)] = levels.bound[node]
        node = levels.parent[node]


@lean
def list_matches(tables, programs, lists, levels, arms, ranges, begin, begun, room):
    """Write the next results of rank ranges until there is no room for another, or a number or node too many.

    Return how many were written, and the range that is to be gone on with, whose walk is `begun`. It is `begin` the
    next time.
    """
    rows = at = np.int64(0)
    for which in range(begin, ranges.lo.shape[0]):
        lo, hi, before = ranges.lo[which], ranges.hi[which], rows
        if not begun:
            _begin_walk(tables, programs, lists, levels, arms, lo, hi, ranges.event[which])
        most = min(room.ends.shape[0], rows + ranges.size[which])
        rows, at, ranges.skip[which] = _next_matches(
            tables, programs, lists, levels, arms, lo, hi, ranges.skip[which], room, rows, at, most
        )
        ranges.written[which] = rows - before
        ranges.size[which] -= rows - before
        begun = False
        if lists.state[0] or levels.state[1] or (ranges.size[which] > 0 and levels.state[0] >= 0):
            return rows, which
    return rows, ranges.lo.shape[0]


@lean
def _next_matches(tables, programs, lists, levels, arms, lo, hi, skip, room, rows, at, most):
    """Write the next results of a group, without the first `skip`, until there are `most` or no room for another.

    Return how many were written, with those before, where they end, and what is still to skip; `levels.state[0]` is -1
    when there are no more.
    """
    depth, edges = levels.state[0], (lo, hi)
    values, deepest = room.positions.shape[0], levels.event.shape[0] - 2
    while depth >= 0:
        if rows == most or at + deepest > values or levels.state[1]:
            break
        begin, end = levels.base[depth], levels.base[depth + 1]
        if levels.emit[depth] < end:
            node = levels.emit[depth]
            levels.emit[depth] += 1
            if _is_result(levels, node, begin):
                if skip > 0:
                    skip -= 1
                else:
                    at += depth
                    _write(levels, node, depth, room, at)
                    room.ends[rows] = at
                    rows += 1
                    if levels.state[2]:
                        depth = 0
            continue
        until = hi
        if depth > 0 and tables.span[0]:
            until = min(hi, tables.until[levels.event[1]])
        waiting = levels.remaining[begin]
        if depth > 0 and end == begin + 1 and waiting & (waiting - ONE) == NONE and waiting != NONE:
            s = 0
            while waiting & (ONE << np.uint64(s)) == NONE:
                s += 1
            variable = -1
            for v in range(arms.slots.shape[1]):
                if arms.slots[levels.arm[begin], v] == s:
                    variable = v
            first, last = levels.cursor[begin, s], lists.high[begin, s]
            passed = min(skip, last - first)
            skip -= passed
            first += passed
            length = depth + 1
            number = min(last - first, most - rows, (values - at) // length)
            if levels.state[2]:
                number = min(number, 1)
            for i in range(number):
                at += length
                room.positions[at - 1] = tables.events[lists.pool[first + i]]
                room.variables[at - 1] = variable
                room.ends[rows] = at
                rows += 1
            node = begin
            for d in range(depth, 0, -1):
                event, own = levels.event[d], levels.bound[node]
                place = at - number * length + d - 1
                for _ in range(number):
                    room.positions[place] = event
                    room.variables[place] = own
                    place += length
                node = levels.parent[node]
            levels.cursor[begin, s] = first + number
            if levels.state[2] and number:
                depth = 0
            elif first + number == last:
                depth -= 1
            continue
        event = _next_event(tables, lists, levels, arms, begin, end, until)
        if event >= until:
            depth -= 1
            continue
        if depth == 0:
            if tables.span[0]:
                until = min(hi, tables.until[event])
            if arms.starts.shape[0] and not arms.starts[event]:
                _pass_over(tables, lists, levels, begin, end, event)
                continue
        if _level(tables, programs, lists, levels, arms, depth, event, until, edges):
            depth += 1
    levels.state[0] = depth
    return rows, at, skip


@lean
def _pass_over(tables, lists, levels, begin, end, event):
    """Leave out an event at which no result may begin."""
    for n in range(begin, end):
        for s in range(tables.begin.shape[0] - 1):
            at = levels.cursor[n, s]
            if levels.remaining[n] & (ONE << np.uint64(s)) and at < lists.high[n, s]:
                levels.cursor[n, s] = at + (tables.events[lists.pool[at]] == event)
