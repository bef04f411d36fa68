"""The matches of a pattern that a NOT forbids, with what conditions compare with events outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least, grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.iterations import gather
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    EVENT,
    FAILS,
    FOUND,
    GUARD,
    HOLDS,
    MISFITS,
    NO_ONE,
    NO_ROOM,
    SLOTS,
    TROUBLE,
    first_forbidden,
    is_filled,
    last_forbidden,
    low_time,
)
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
    starts: np.ndarray


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
        int64 (room, 4 + terms): the first and last event, behind which event the gap around them must begin and beyond
        which it must not reach, and how many tuples each term tells; int64: these tuples; how many there are of both.

    Returns
    -------
    status
        0, or what there was no room for: nothing is noted of the group then.
    rows, tuples, size, used
        Those with the matches of the group; in larger arrays if they need them.
    """
    stated, lo, hi = forbids.stated, groups_lo[group], groups_hi[group]
    whole_size, whole_used = size, used
    key = np.empty(4 + stated.shape[0], np.int64)
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
                    status = _find_gap(tables, columns, programs, lists, scratch, one, pending, way, lo, hi, key)
                    if status == HOLDS:
                        status = _note(tables, columns, lists, scratch, one, stated, key)
                    if status < 0:
                        return status, rows, tuples, whole_size, whole_used
                    if status != HOLDS:
                        continue
                    if size == rows.shape[0]:
                        rows = _grown_rows(rows)
                    rows[size, 0], rows[size, 1] = key[1], one[EVENT]
                    rows[size, 2], rows[size, 3] = key[2], key[3]
                    for i in range(stated.shape[0]):
                        number = key[4 + i]
                        low, high = lists.ends[number - 1] if number else 0, lists.ends[number]
                        rows[size, 4 + i] = high - low
                        for k in range(low, high):
                            member = lists.values[k]
                            for v in range(lists.ends[member - 1], lists.ends[member]):
                                if used == tuples.shape[0]:
                                    tuples = grown(tuples, used, 2 * used)
                                tuples[used] = lists.values[v]
                                used += 1
                    size += 1
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


@njit(cache=True, nogil=True, _nrt=False)
def _find_gap(tables, columns, programs, lists, scratch, row, pending, way, lo, hi, key):
    """Write behind which event the gap around a match must begin, and beyond which it must not reach.

    Return `HOLDS`, `FAILS` where there is no such gap, or `TROUBLE`. `key` has the first event.
    """
    begin = columns[t.SAME_ROW, key[1]]
    furthest = first_at_least(columns[t.UNTIL_ROW], lo, hi, row[EVENT] + 1)
    low, high = NO_ONE, np.int64(tables[t.EVENTS])
    start = lists.ends[pending - 1] if pending else 0
    for i in range(start, lists.ends[pending], GUARD):
        guard, known = lists.values[i], lists.values[i + 1]
        if known >= 0:
            answer = is_filled(
                tables, columns, programs, lists, scratch, guard, known, lists.values[i + 2], row, lo, hi
            )
            if answer != FALSE:
                return np.int64(TROUBLE if answer == MISFIT else FAILS)
            continue
        if known == NO_ONE:
            known = last_forbidden(tables, columns, programs, lists, scratch, guard, furthest, lists.values[i + 2], row)
        if known == MISFITS:
            return np.int64(TROUBLE)
        low = max(low, FOUND - known if known < NO_ONE else NO_ONE)
    for i in range(t.at(tables, t.A_WAY_GUARD_BEGINS, way), t.at(tables, t.A_WAY_GUARD_BEGINS, way + 1)):
        guard = t.at(tables, t.A_WAY_GUARDS, i)
        after = low_time(tables, columns, guard, row)
        first = columns[t.LATER_ROW, after] if after >= 0 else begin
        known = first_forbidden(
            tables, columns, programs, lists, scratch, guard, first, columns[t.UNTIL_ROW, key[1]], row
        )
        if known < 0:
            return np.int64(TROUBLE)
        high = min(high, known)
        if after < 0:
            known = last_forbidden(tables, columns, programs, lists, scratch, guard, furthest, begin, row)
            if known == MISFITS:
                return np.int64(TROUBLE)
            low = max(low, FOUND - known if known < NO_ONE else NO_ONE)
    key[2], key[3] = low, high
    return np.int64(HOLDS if low < begin and high >= columns[t.LATER_ROW, row[EVENT]] else FAILS)


@njit(cache=True, nogil=True, _nrt=False)
def _note(tables, columns, lists, scratch, row, stated, key):
    """Write what a match tells, as a list with a mark; return `HOLDS` if it is to be noted, `FAILS`, or `NO_ROOM`."""
    key[0] = MARK
    for i in range(stated.shape[0]):
        known = row[SLOTS + stated[i, 1]] if stated[i, 1] >= 0 else np.int64(0)
        if not stated[i, 2] & ~row[BOUND]:
            known = gather(tables, columns, lists, scratch, stated[i, 0], max(stated[i, 1], 0), row, known)
            if known == FULL:
                return np.int64(NO_ROOM)
        key[4 + i] = max(known, 0)
    before = lists.used[0]
    number = keep(lists, key, 4 + stated.shape[0])
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
