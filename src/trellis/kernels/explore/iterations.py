"""Iterations of repeated groups: a match as it is when one begins, and what is remembered of all that are over."""

from __future__ import annotations

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep, keep_with
from trellis.kernels.explore.matches import (
    BOUND,
    FAILS,
    HOLDS,
    NO_ONE,
    NO_ROOM,
    OPENS,
    SLOTS,
    TROUBLE,
    VARIABLE,
    choose,
    fill,
    holds,
    is_decided,
)
from trellis.kernels.explore.progress import open_views
from trellis.kernels.expression.program import MISFIT, TRUE
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def gather(tables, columns, lists, scratch, term, slot, row, known):
    """Return a list of tuples with those that a match adds to it; `known` is its number, or -1; `FULL` without room.

    A tuple has, for each reference of a term that is gathered to a slot, the event or number that it names. Where the
    term goes over sets, there is one for each choice of members. It is a list itself, and stands in the other by its
    number.
    """
    begin, size = t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1) - t.at(tables, t.T_BEGINS, term)
    chosen, counters, loops = scratch.events, scratch.counters, 0
    fill(tables, columns, lists, scratch, term, row, NO_ONE, NO_ONE, chosen)
    found = max(known, 0)
    for k in range(t.at(tables, t.T_LOOP_BEGINS, term), t.at(tables, t.T_LOOP_BEGINS, term + 1)):
        number = row[SLOTS + t.at(tables, t.T_LOOP_SLOT, k)]
        if not t.at(tables, t.T_LOOP_GATHERED, k) & (1 << slot):
            continue
        first = lists.ends[number - 1] if number > 0 else 0
        if number <= 0 or lists.ends[number] == first:
            return found
        counters[loops, 0], counters[loops, 1], counters[loops, 2], counters[loops, 3] = (
            first, first, lists.ends[number], k,
        )  # fmt: skip
        loops += 1
    while True:
        for i in range(loops):
            choose(tables, lists, term, counters[i, 3], counters[i, 0], chosen)
        if size > scratch.branches.shape[0]:
            return FULL
        for r in range(size):
            scratch.branches[r] = chosen[begin + r] if t.at(tables, t.T_GATHERED, begin + r) & (1 << slot) else 0
        one = keep(lists, scratch.branches, size)
        if one == FULL:
            return FULL
        found = keep_with(lists, found, one, scratch.members)
        i = loops - 1
        while i >= 0 and found != FULL:
            counters[i, 0] += 1
            if counters[i, 0] < counters[i, 2]:
                break
            counters[i, 0] = counters[i, 1]
            i -= 1
        if i < 0 or found == FULL:
            return found


@njit(cache=True, nogil=True, _nrt=False)
def begin_iteration(tables, columns, programs, lists, scratch, row, variable):
    """Write a match as it is when a letter begins an iteration; return `HOLDS`, `FAILS`, or what went wrong.

    It is written to `scratch.begun`, and as it was before to `scratch.before`. What waited for the end of the iteration
    before, and for nothing else, is asked.
    """
    before, begun, groups = scratch.before, scratch.begun, t.at(tables, t.L_GROUPS, variable)
    open_ = open_views(tables, lists, row)
    others = open_ & ~t.at(tables, t.L_EMPTIES, variable)
    for term in range(tables[t.TERMS] if row[VARIABLE] >= 0 else 0):
        if (
            t.at(tables, t.T_CLOSES, term) & groups
            and t.at(tables, t.T_ABSENT, term) < 0
            and not t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]
            and not is_decided(tables, term, open_, row[BOUND], row)
            and is_decided(tables, term, others, row[BOUND], row)
        ):
            answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, NO_ONE)
            if answer != TRUE:
                return TROUBLE if answer == MISFIT else FAILS
    clears = t.at(tables, t.L_CLEARS, variable)
    for i in range(row.shape[0]):
        before[i] = begun[i] = row[i]
    for slot in range(row.shape[0] - SLOTS):
        if clears & (1 << slot):
            begun[SLOTS + slot] = t.NONE
    for k in range(t.at(tables, t.L_COPY_BEGINS, variable), t.at(tables, t.L_COPY_BEGINS, variable + 1)):
        begun[SLOTS + t.at(tables, t.L_COPY_TO, k)] = row[SLOTS + t.at(tables, t.L_COPY_FROM, k)]
    begun[OPENS] = t.at(tables, t.L_OPENS, variable)
    begun[BOUND] = row[BOUND] & ~t.at(tables, t.L_EMPTIES, variable)
    for k in range(t.at(tables, t.L_LINK_BEGINS, variable), t.at(tables, t.L_LINK_BEGINS, variable + 1)):
        if row[BOUND] & (1 << t.at(tables, t.L_LINK_FROM, k)):
            begun[BOUND] |= 1 << t.at(tables, t.L_LINK_TO, k)
    for k in range(t.at(tables, t.L_GATHER_BEGINS, variable), t.at(tables, t.L_GATHER_BEGINS, variable + 1)):
        if not t.at(tables, t.L_GATHER_VIEWS, k) & ~row[BOUND]:
            slot, term = t.at(tables, t.L_GATHER_SLOT, k), t.at(tables, t.L_GATHER_TERM, k)
            known = gather(tables, columns, lists, scratch, term, slot, row, begun[SLOTS + slot])
            if known == FULL:
                return NO_ROOM
            begun[SLOTS + slot] = known
    return HOLDS
