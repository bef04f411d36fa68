"""The matches of a pattern that a NOT forbids, with what conditions compare with events outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least, grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import (
    BACK,
    BEGIN,
    BOUND,
    BRANCHES,
    DEAD,
    END_EVENT,
    EVENT,
    FAILS,
    FOUND,
    GUARD,
    HOLDS,
    NO_ONE,
    NO_ROOM,
    NODE,
    OF,
    SIZE,
    SLOTS,
    TROUBLE,
    is_filled,
    low_time,
)
from trellis.kernels.explore.nodes import gather, note
from trellis.kernels.expression.program import FALSE, MISFIT
from trellis.kernels.jit import njit

MARK = -7  # the first of lists that tell of a match


class ForbiddenTerms(NamedTuple):
    """Terms that are told of the matches that a NOT forbids.

    Attributes
    ----------
    stated
        int64 (terms, 3): terms, the slots of what they have gathered or -1, and the views that they name.
    starts
        int64: the slots of first events of variables; a match begins with the first of these.
    """

    stated: np.ndarray
    starts: np.ndarray  # int64 (slots,)


NO_TERMS = ForbiddenTerms(np.empty((0, 3), np.int64), np.empty(0, np.int64))


@njit(cache=True, nogil=True)
def note_matches(
    tables, columns, programs, lists, scratch, graph, groups_lo, groups_hi, group, forbids, rows, tuples, size, used
):
    """Note the matches of a group that was explored.

    Of those that begin with the same event, lie in the same gaps and tell the same, the one that ends first counts.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, graph
        What the exploration went by, and found.
    groups_lo, groups_hi, group
        The groups, by their first and then by their last events, and which.
    forbids : ForbiddenTerms
        What is noted of a match.
    rows, tuples, size, used
        int64 (room, `NODE` + terms): the nodes of their trees, each with how many tuples each term tells, those of
        matches first; int64: these tuples; how many there are of both.

    Returns
    -------
    status
        0, or what there was no room for: nothing is noted of the group then.
    rows, tuples, size, used
        Those with the matches of the group; in larger arrays if they need them.
    """
    stated, lo, hi = forbids.stated, groups_lo[group], groups_hi[group]
    whole_size, whole_used, nodes, terms = size, used, scratch.nodes, stated.shape[0]
    key, width = np.empty(3 + terms, np.int64), NODE + tables[t.TOLDS]
    for home in range((hi - lo) * tables[t.VARIABLES]):
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            one, here = graph.rows[vertex], graph.complete[vertex]
            if here:
                key[1] = _first_event(one, forbids.starts)
                # of windows that hold it the first decides, which reaches back furthest
                here = group == 0 or one[EVENT] >= groups_hi[group - 1] or key[1] < groups_lo[group - 1]
            begin = lists.ends[one[BRANCHES] - 1] if here and one[BRANCHES] else 0
            for b in range(begin, lists.ends[one[BRANCHES]] if here else 0, 2):
                state, pending = lists.values[b], lists.values[b + 1]
                for way in range(t.at(tables, t.A_WAY_BEGINS, state), t.at(tables, t.A_WAY_BEGINS, state + 1)):
                    below = _note_below(tables, columns, programs, lists, scratch, one, pending, way, lo, hi, key[1])
                    status = _note(tables, columns, lists, scratch, one, stated, below, key) if below >= 0 else below
                    if status in (DEAD, FAILS):
                        continue
                    if status < 0:
                        return status, rows, tuples, whole_size, whole_used
                    number = below // width
                    while size + number >= rows.shape[0]:
                        rows = _grown_rows(rows)
                    for k in range(number + 1):
                        rows[size + k, NODE:] = 0
                    rows[size, OF], rows[size, BEGIN], rows[size, END_EVENT] = NO_ONE, key[1], one[EVENT]
                    rows[size, SIZE], rows[size, BACK] = number + 1, 0
                    for i in range(terms):
                        rows[size, NODE + i], tuples, used = _add_tuples(lists, key[3 + i], tuples, used)
                    for k in range(number):
                        for i in range(NODE):
                            rows[size + 1 + k, i] = nodes[k * width + i]
                        if not nodes[k * width + BACK]:
                            rows[size + 1 + k, BACK] = k + 1
                        for i in range(width - NODE):
                            rows[size + 1 + k, NODE + terms + i], tuples, used = _add_tuples(
                                lists, nodes[k * width + NODE + i], tuples, used
                            )
                    size += number + 1
            vertex = np.int64(graph.link[vertex]) - 1
    return np.int64(0), rows, tuples, size, used


@njit(cache=True, nogil=True, _nrt=False)
def _first_event(row, starts):
    """Return the first event of a match."""
    begin = NO_ONE
    for i in range(starts.shape[0]):
        event = row[SLOTS + starts[i]]
        if event >= 0 and (begin < 0 or event < begin):
            begin = event
    return begin


@njit(cache=True, nogil=True)
def _add_tuples(lists, number, tuples, used):
    """Add the tuples of a list; return how many there are, and all of them."""
    low, high = lists.ends[number - 1] if number else 0, lists.ends[number]
    for k in range(low, high):
        member = lists.values[k]
        for v in range(lists.ends[member - 1], lists.ends[member]):
            if used == tuples.shape[0]:
                tuples = grown(tuples, used, 2 * used)
            tuples[used] = lists.values[v]
            used += 1
    return high - low, tuples, used


@njit(cache=True, nogil=True, _nrt=False)
def _note_below(tables, columns, programs, lists, scratch, row, pending, way, lo, hi, first):
    """Write to `scratch.nodes` what NOTs inside of a match forbid, by its first event; return the size.

    It is `DEAD` where one of them forbids the match in any case, or `NO_ROOM` or `TROUBLE`.
    """
    begin, until = columns[t.SAME_ROW, first], columns[t.UNTIL_ROW, first]
    furthest = first_at_least(columns[t.UNTIL_ROW], lo, hi, row[EVENT] + 1)
    size = np.int64(0)
    for i in range(lists.ends[pending - 1] if pending else 0, lists.ends[pending], GUARD):
        guard, known, high = lists.values[i], lists.values[i + 1], lists.values[i + 2]
        if known < NO_ONE:
            low = lists.ends[FOUND - known - 1]
            more = lists.ends[FOUND - known] - low
            if size + more > scratch.nodes.shape[0]:
                return np.int64(NO_ROOM)
            for k in range(more):
                scratch.nodes[size + k] = lists.values[low + k]
            size += more
            continue
        if known >= 0 and not t.at(tables, t.A_GUARD_NODES, guard) & t.TOLD:
            answer = is_filled(tables, columns, programs, lists, scratch, guard, known, high, row, lo, hi)
            if answer != FALSE:
                return np.int64(TROUBLE if answer == MISFIT else DEAD)
            continue
        low = columns[t.LATER_ROW, known] if known >= 0 else furthest
        size = note(tables, columns, programs, lists, scratch, guard, row, low, high, known < 0, False, size)
        if size < 0:
            return size
    for i in range(t.at(tables, t.A_WAY_GUARD_BEGINS, way), t.at(tables, t.A_WAY_GUARD_BEGINS, way + 1)):
        guard = t.at(tables, t.A_WAY_GUARDS, i)
        after = low_time(tables, columns, guard, row)
        whole = after < 0 and t.at(tables, t.A_GUARD_NODES, guard) != 0
        low = columns[t.LATER_ROW, after] if after >= 0 else furthest if whole else begin
        size = note(tables, columns, programs, lists, scratch, guard, row, low, until, whole, True, size)
        if size >= 0 and after < 0 and not whole:  # single events lie before the match, or not
            size = note(tables, columns, programs, lists, scratch, guard, row, furthest, begin, True, False, size)
        if size < 0:
            return size
    return size


@njit(cache=True, nogil=True, _nrt=False)
def _note(tables, columns, lists, scratch, row, stated, below, key):
    """Write what a match tells, as a list with a mark; return `HOLDS` if it is to be noted, `FAILS`, or `NO_ROOM`."""
    key[0], key[2] = MARK, keep(lists, scratch.nodes, below)
    if key[2] == FULL:
        return np.int64(NO_ROOM)
    for i in range(stated.shape[0]):
        known = row[SLOTS + stated[i, 1]] if stated[i, 1] >= 0 else np.int64(0)
        if not stated[i, 2] & ~row[BOUND]:
            known = gather(tables, columns, lists, scratch, stated[i, 0], max(stated[i, 1], 0), row, known, NO_ONE)
            if known == FULL:
                return np.int64(NO_ROOM)
        key[3 + i] = max(known, 0)
    before = lists.used[0]
    number = keep(lists, key, 3 + stated.shape[0])
    if number == FULL:
        return np.int64(NO_ROOM)
    return np.int64(HOLDS if number == before else FAILS)


@njit(cache=True, nogil=True)
def _grown_rows(rows):
    """Return rows with twice the room."""
    more = np.empty((2 * rows.shape[0], rows.shape[1]), np.int64)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            more[i, k] = rows[i, k]
    return more
