"""Iterations of repeated groups: a match as it is when one begins, and what is remembered of all that are over."""

from __future__ import annotations

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL
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
    holds,
    is_decided,
)
from trellis.kernels.explore.nodes import gather
from trellis.kernels.explore.progress import open_views
from trellis.kernels.expression.program import MISFIT, TRUE
from trellis.kernels.jit import njit


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
            known = gather(tables, columns, lists, scratch, term, slot, row, begun[SLOTS + slot], NO_ONE)
            if known == FULL:
                return NO_ROOM
            begun[SLOTS + slot] = known
    return HOLDS
