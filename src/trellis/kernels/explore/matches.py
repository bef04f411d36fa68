"""Matches so far: what they go on with, what they remember, and when they are complete.

A match so far is a row of numbers: its last event, the variable that took it, its branches (a list of states, each with
its undecided NOTs), the views that have events, the variables whose last event has the time of the last one, the first
event that is too late for it, the views that an iteration which begins now opens, and from `SLOTS` on its registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep, keep_with
from trellis.kernels.explore.running import running
from trellis.kernels.expression.program import FALSE, MISFIT, TRUE, is_true
from trellis.kernels.jit import njit

EVENT, VARIABLE, BRANCHES, BOUND, TIES, END, OPENS, SLOTS = range(8)
FAILS, HOLDS = 0, 1
NO_ROOM, TROUBLE, DEAD = -1, -2, -3  # lists are full; numbers leave 64 bits; a branch ends here
NO_ONE = np.int64(-1)  # no event, no variable
TRACKED = -16  # in place of the last event, less the bits of what was forbidden since; see `bars`
FOUND = -2  # minus an event: the first time of a NOT whose events are known
MISFITS = 1
GUARD = 3  # numbers of an undecided NOT: the guard, and the times between which it forbids
LOOPS = 8


class Scratch(NamedTuple):
    """Room to work in.

    Attributes
    ----------
    events, whole, real, there
        The events of all references, and the values of a program.
    branches, guards, members
        Lists that are being made.
    counters
        Where loops over sets stand.
    decided
        The terms that wait for no event any more; behind them, the term whose numbers leave 64 bits.
    nexts, firsts
        The event that each step selects, and the first that each greedy variable could take.
    before, begun
        A match before an iteration begins, and as it is then.
    """

    events: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    there: np.ndarray
    branches: np.ndarray
    guards: np.ndarray
    members: np.ndarray
    counters: np.ndarray
    decided: np.ndarray
    nexts: np.ndarray
    firsts: np.ndarray
    before: np.ndarray
    begun: np.ndarray


# --- Terms ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def is_decided(tables, term, open_, bound, row):
    """Return whether the events that a term waits for are known."""
    if t.at(tables, t.T_LATE, term) != t.LATE:
        return True
    for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
        kind = t.at(tables, t.T_KIND, r)
        bit = 1 << t.at(tables, t.T_VARIABLE, r)
        if kind == t.OF_WHOLE and open_ & bit:
            return False
        if kind not in (t.OF_LAST, t.OF_NTH):
            continue
        if not bound & bit:
            return False
        if open_ & bit:
            if kind == t.OF_LAST:
                return False
            count = row[SLOTS + t.at(tables, t.T_COUNT, r)]
            if count != t.NONE and count < t.at(
                tables, t.T_NTH, r
            ):  # a counter that nobody needs any more has told enough
                return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def is_asked_after(tables, term, views):
    """Return whether a term is asked when an event is remembered: two of the views that take it are compared."""
    own = t.at(tables, t.T_MOVING, term) & views
    return t.at(tables, t.T_LATE, term) == t.TWICE and own & (own - 1) != 0


@njit(cache=True, nogil=True, _nrt=False)
def taken_by(tables, row, variable):
    """Return the views of a match that take the event of a letter, as bits."""
    if variable < 0:
        return np.int64(0)
    views = t.at(tables, t.L_VIEWS, variable)
    for k in range(t.at(tables, t.L_ONLY_BEGINS, variable), t.at(tables, t.L_ONLY_BEGINS, variable + 1)):
        iteration = max(row[SLOTS + t.at(tables, t.L_ONLY_SLOT, k)], 0) + t.at(tables, t.L_ONLY_BEGUN, k)
        if iteration != t.at(tables, t.L_ONLY_NUMBER, k):
            views &= ~(1 << t.at(tables, t.L_ONLY_VIEW, k))
    return views


@njit(cache=True, nogil=True, _nrt=False)
def fill(tables, columns, lists, scratch, term, row, newest, event, chosen):
    """Write the events that a term names; `event` is taken by `newest`, or looked at by a NOT; False for none."""
    takes = taken_by(tables, row, newest)
    for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
        kind, bit = t.at(tables, t.T_KIND, r), 1 << t.at(tables, t.T_VARIABLE, r)
        is_new = not row[BOUND] & bit
        if kind == t.OF_ABSENT or (
            takes & bit and (kind in (t.OF_EACH, t.OF_LATER) or (is_new and kind == t.OF_FIRST))
        ):
            chosen[r] = event
        else:
            slot = t.at(tables, t.T_LAST, r) if kind == t.OF_EARLIER and takes & bit else t.at(tables, t.T_SLOT, r)
            chosen[r] = row[SLOTS + slot]
            if kind >= t.OF_WHOLE:
                if kind == t.OF_UPTO and takes & bit:
                    chosen[r] = running(
                        tables, columns, lists, scratch, t.at(tables, t.T_REGISTER, r), chosen[r], not is_new, event
                    )
            elif chosen[r] == t.CONFLICT:
                return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def holds(tables, columns, programs, lists, scratch, term, row, newest, event):
    """Return whether a term is true for all that a row remembers, with an event that `newest` takes if it is not -1."""
    chosen = scratch.events
    scratch.decided[tables[t.TERMS]] = 0
    if not fill(tables, columns, lists, scratch, term, row, newest, event, chosen):
        return FALSE
    if scratch.decided[tables[t.TERMS]] < 0:
        return MISFIT
    begin, end = t.at(tables, t.T_LOOP_BEGINS, term), t.at(tables, t.T_LOOP_BEGINS, term + 1)
    at, counters = t.at(tables, t.T_BEGINS, term), scratch.counters
    takes = taken_by(tables, row, newest)
    loops = 0
    for k in range(begin, end):
        if takes & (1 << t.at(tables, t.T_LOOP_VARIABLE, k)) and t.at(tables, t.T_LOOP_KIND, k) <= t.OVER_PAIRS:
            continue
        if t.at(tables, t.T_LOOP_KIND, k) == t.OVER_FORBIDDEN:
            own = t.at(tables, t.C_OF_TERM, term) + event
            first, last = t.at(tables, t.C_BEGINS, own), t.at(tables, t.C_BEGINS, own + 1)
        else:
            number = row[SLOTS + t.at(tables, t.T_LOOP_SLOT, k)]
            first, last = lists.ends[number - 1] if number > 0 else 0, lists.ends[max(number, 0)]
            if number < 0:
                last = first
        if first == last:
            return TRUE  # no events, or none that are consecutive
        counters[loops, 0], counters[loops, 1], counters[loops, 2], counters[loops, 3] = first, first, last, k
        loops += 1
    while True:
        for i in range(loops):
            choose(tables, lists, term, counters[i, 3], counters[i, 0], chosen)
        answer = is_true(programs, term, chosen, at, scratch.whole, scratch.real, scratch.there)
        if answer != TRUE:
            if answer == MISFIT:
                scratch.decided[tables[t.TERMS]] = term
            return answer
        i = loops - 1
        while i >= 0:
            counters[i, 0] += 1
            if counters[i, 0] < counters[i, 2]:
                break
            counters[i, 0] = counters[i, 1]
            i -= 1
        if i < 0:
            return TRUE


@njit(cache=True, nogil=True, _nrt=False)
def choose(tables, lists, term, loop, place, chosen):
    """Write one member of a set as the events that a loop is over."""
    kind, var, begin = (
        t.at(tables, t.T_LOOP_KIND, loop),
        t.at(tables, t.T_LOOP_VARIABLE, loop),
        t.at(tables, t.T_BEGINS, term),
    )
    member = np.int64(0) if kind == t.OVER_FORBIDDEN else lists.values[place]
    for r in range(begin, t.at(tables, t.T_BEGINS, term + 1)):
        named = t.at(tables, t.T_KIND, r)
        if kind == t.OVER_FORBIDDEN:
            if named == t.OF_ABSENT:
                size = t.at(tables, t.T_BEGINS, term + 1) - begin
                chosen[r] = t.at(tables, t.C_TUPLES, t.at(tables, t.C_FIRST, term) + place * size + r - begin)
        elif t.at(tables, t.T_VARIABLE, r) == var:
            if kind == t.OVER_TUPLES:
                if named == t.OF_TUPLE:
                    chosen[r] = lists.values[lists.ends[member - 1] + t.at(tables, t.T_NTH, r)]
            elif kind == t.OVER_PAIRS:
                if named == t.OF_EARLIER:
                    chosen[r] = member // tables[t.EVENTS]
                elif named == t.OF_LATER:
                    chosen[r] = member % tables[t.EVENTS]
            elif named == t.OF_EACH:
                chosen[r] = member


# --- NOT --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _is_decidable(tables, guard, low, row, open_):
    """Return whether it is known what a guard forbids."""
    if low < 0:
        return False
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        for term in range(tables[t.TERMS]):
            if t.at(tables, t.T_ABSENT, term) != t.at(tables, t.A_ABSENTS, a):
                continue
            for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
                if t.at(tables, t.T_KIND, r) == t.OF_ABSENT or not open_ & (1 << t.at(tables, t.T_VARIABLE, r)):
                    continue
                if not row[BOUND] & (1 << t.at(tables, t.T_VARIABLE, r)):
                    return False
                if t.at(tables, t.T_KIND, r) == t.OF_NTH:
                    count = row[SLOTS + t.at(tables, t.T_COUNT, r)]
                    if count != t.NONE and count < t.at(tables, t.T_NTH, r):
                        return False
                elif t.at(tables, t.T_KIND, r) != t.OF_FIRST:
                    return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _is_filled(tables, columns, programs, lists, scratch, guard, low, high, row, lo, hi):
    """Return whether an event that a guard forbids lies between its times (from -1 on: to the edges).

    Below -1 the last such event before the match is known; it counts unless the match has ended too late for it.
    """
    if low < NO_ONE:
        return TRUE if columns[t.UNTIL_ROW, FOUND - low] > row[EVENT] else FALSE
    if t.at(tables, t.A_GUARD_UNTIL, guard):
        return _is_found(tables, columns, programs, lists, scratch, guard, low, high, row)
    first = columns[t.LATER_ROW, low] if low >= 0 else lo
    last = high if high >= 0 else hi
    if tables[t.SPAN]:
        if high < 0:
            last = min(last, row[END])
        if low < 0:
            first = max(first, first_at_least(columns[t.UNTIL_ROW], lo, hi, row[EVENT] + 1))
    if first >= last:
        return FALSE
    return _is_found(tables, columns, programs, lists, scratch, guard, first, last, row)


@njit(cache=True, nogil=True, _nrt=False)
def _is_found(tables, columns, programs, lists, scratch, guard, first, last, row):
    """Return whether one of the events from `first` to `last` is one that a guard forbids."""
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        var = t.at(tables, t.A_ABSENTS, a)
        base = t.at(tables, t.E_BEGINS, var)
        begin, end = base + columns[tables[t.E_UPTO] + var, first], base + columns[tables[t.E_UPTO] + var, last]
        for i in range(begin, end):
            match = i - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
            if match >= 0:  # the whole of a pattern is forbidden
                if t.at(tables, t.C_SOONEST, match) >= last:  # what begins here or later ends behind
                    break
                if t.at(tables, t.C_ENDS, match) >= last or t.at(tables, t.C_HIGHS, match) < last:
                    continue
                if t.at(tables, t.C_LOWS, match) >= first:
                    continue
            answer = _is_forbidden(tables, columns, programs, lists, scratch, guard, var, i, row)
            if answer != FALSE:
                return answer
    return FALSE


@njit(cache=True, nogil=True, _nrt=False)
def _is_noted(tables, guard, noted):
    """Return whether something that a guard forbids was noted since the last event."""
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        if noted & (1 << (t.at(tables, t.A_ABSENTS, a) - tables[t.VARIABLES])):
            return True
    return False


@njit(cache=True, nogil=True, _nrt=False)
def _is_forbidden(tables, columns, programs, lists, scratch, guard, var, place, row):
    """Return whether a guard forbids an event of a variable, by its place in the list of those."""
    for term in range(tables[t.TERMS]):
        if t.at(tables, t.T_ABSENT, term) != var:
            continue
        if t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]:
            if t.at(tables, t.A_GUARD_UNTIL, guard):  # it cannot be met; a NOT's condition is not asked then
                return FALSE
        else:
            whole = var - tables[t.VARIABLES] >= tables[t.ALONE]
            event = place - t.at(tables, t.E_BEGINS, var) if whole else t.at(tables, t.E_USABLE, place)
            answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, event)
            if answer != TRUE:
                return answer
    return TRUE


@njit(cache=True, nogil=True, _nrt=False)
def _last_forbidden(tables, columns, programs, lists, scratch, guard, first, last, row):
    """Return `FOUND` minus the last event that a guard forbids from `first` to `last`; `NO_ONE`, or `FOUND + 1`.

    That is where numbers leave 64 bits.
    """
    latest = NO_ONE
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        var = t.at(tables, t.A_ABSENTS, a)
        base = t.at(tables, t.E_BEGINS, var)
        begin, end = base + columns[tables[t.E_UPTO] + var, first], base + columns[tables[t.E_UPTO] + var, last]
        for i in range(end - 1, begin - 1, -1):
            match = i - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
            if match >= 0 and (t.at(tables, t.C_ENDS, match) >= last or t.at(tables, t.C_HIGHS, match) < last):
                continue
            answer = _is_forbidden(tables, columns, programs, lists, scratch, guard, var, i, row)
            if answer == MISFIT:
                return np.int64(MISFITS)
            if answer == TRUE:
                latest = max(latest, t.at(tables, t.E_USABLE, i))
                break
    return FOUND - latest if latest >= 0 else NO_ONE


@njit(cache=True, nogil=True, _nrt=False)
def _low(tables, columns, guard, row):
    """Return the time behind which a guard begins, as the first event that has it; -1 for the edge."""
    after = t.at(tables, t.A_GUARD_AFTER, guard)
    if not after or row[EVENT] < 0:
        return NO_ONE
    if t.at(tables, t.R_TIME_SLOT, 0) < 0:
        return columns[t.SAME_ROW, row[EVENT]]
    low = NO_ONE
    for var in range(tables[t.BASES]):
        if after & (1 << var):
            low = max(low, row[SLOTS + t.at(tables, t.R_TIME_SLOT, var)])
    return low


# --- Going on ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def remember(tables, columns, programs, lists, scratch, row, variable, event, bound, taken):
    """Change the registers of a letter that takes an event; return `HOLDS`, or what went wrong.

    `bound` are the views that have events before, `taken` those that take it.
    """
    size, time_slot = tables[t.EVENTS], t.at(tables, t.R_TIME_SLOT, t.at(tables, t.L_BASE, variable))
    if time_slot >= 0:
        row[SLOTS + time_slot] = columns[t.SAME_ROW, event]
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind, at = t.at(tables, t.R_KIND, r), SLOTS + t.at(tables, t.R_SLOT, r)
        own, view = columns[tables[t.R_ALIKE] + r, event], 1 << t.at(tables, t.R_VIEW, r)
        is_bound = bound & view != 0
        if not taken & view and kind != t.LENGTH:
            continue
        if kind == t.PAIRS and not is_bound:
            row[at] = 0
        elif kind == t.PAIRS and row[at] != t.NONE:  # before the last event changes
            before = columns[tables[t.R_ALIKE] + r, row[SLOTS + t.at(tables, t.R_LAST, r)]]
            row[at] = keep_with(lists, row[at], before * size + own, scratch.members)
            if row[at] == FULL:
                return NO_ROOM
        elif kind == t.SET and (not is_bound or row[at] != t.NONE):
            row[at] = keep_with(lists, row[at] if is_bound else 0, own, scratch.members)
            if row[at] == FULL:
                return NO_ROOM
        elif kind >= t.TALLY:
            scratch.decided[tables[t.TERMS]] = 0
            row[at] = running(tables, columns, lists, scratch, r, row[at], is_bound, event)
            if kind == t.EXACT_SUM and row[at] == FULL:
                return NO_ROOM
            if kind == t.SUM and scratch.decided[tables[t.TERMS]] < 0:
                return TROUBLE
    remember_plainly(tables, columns, row, variable, event, bound, taken)
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False)
def remember_plainly(tables, columns, row, variable, event, bound, taken):
    """Change the registers of a letter that takes an event, but for sets and those that run along; see `remember`."""
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind, at = t.at(tables, t.R_KIND, r), SLOTS + t.at(tables, t.R_SLOT, r)
        own, view = columns[tables[t.R_ALIKE] + r, event], 1 << t.at(tables, t.R_VIEW, r)
        is_bound = bound & view != 0
        if not taken & view:
            continue
        if kind == t.LAST:
            row[at] = own
        elif kind == t.COUNT:
            if not is_bound:
                row[at] = 1
            elif row[at] != t.NONE and row[at] < t.at(tables, t.R_NTH, r):
                row[at] += 1
        elif kind == t.NTH:
            count = row[SLOTS + t.at(tables, t.R_LAST, r)]  # counted before
            if count == t.at(tables, t.R_NTH, r) and row[at] == t.NONE:
                row[at] = own
        elif kind in (t.SET, t.PAIRS) or kind >= t.TALLY:
            continue
        elif not is_bound:
            missing = kind == t.SAME and columns[tables[t.R_CODES] + r, event] < 0
            row[at] = t.CONFLICT if missing else own
        elif row[at] >= 0:
            if kind == t.SAME:
                if row[at] != own:
                    row[at] = t.CONFLICT
            elif kind == t.EXTREME and columns[tables[t.R_CODES] + r, own] > columns[tables[t.R_CODES] + r, row[at]]:
                row[at] = own


@njit(cache=True, nogil=True, _nrt=False)
def _forget(tables, row, open_, absent, loops):
    """Clear what no term that can still be asked needs, so that matches with the same rest are one; return the rest.

    Those are the slots whose registers are needed, as bits.
    """
    bound = row[BOUND]
    live = np.uint64(0)
    kept = open_
    for term in range(tables[t.TERMS]):
        own = t.at(tables, t.T_VARIABLES, term)
        if loops:  # what a term is asked with in another iteration
            for n in range(t.at(tables, t.T_NEED_BEGINS, term), t.at(tables, t.T_NEED_BEGINS, term + 1)):
                if t.at(tables, t.T_NEED_GROUPS, n) & loops:
                    live |= np.uint64(1) << np.uint64(t.at(tables, t.T_NEED_SLOT, n))
                    kept |= 1 << t.at(tables, t.T_NEED_VARIABLE, n)
        if own & ~(bound | open_):
            continue
        of_not = t.at(tables, t.T_ABSENT, term) >= 0
        waits, movers = False, 0
        if t.at(tables, t.T_RESULT, term):
            waits = True
        elif of_not:
            if not absent & (1 << t.at(tables, t.T_ABSENT, term)):
                continue
        else:
            movers = own & open_ & (~bound | t.at(tables, t.T_MOVING, term))
            waits = not is_decided(tables, term, open_, bound, row)
            if not movers and not waits:
                continue
        kept |= own
        for n in range(t.at(tables, t.T_NEED_BEGINS, term), t.at(tables, t.T_NEED_BEGINS, term + 1)):
            bit = 1 << t.at(tables, t.T_NEED_VARIABLE, n)
            kind = t.at(tables, t.T_NEED_KIND, n)
            if kind == t.WHILE_OPEN:
                needed = open_ & bit != 0
            elif kind == t.WHILE_OTHERS:
                needed = of_not or waits or movers & ~bit != 0
            else:
                needed = kind != t.WHILE_LOOPS
            if needed:
                live |= np.uint64(1) << np.uint64(t.at(tables, t.T_NEED_SLOT, n))
    for slot in range(row.shape[0] - SLOTS):
        if not live & (np.uint64(1) << np.uint64(slot)):
            row[SLOTS + slot] = t.NONE
    row[BOUND] = bound & kept
    return live


@njit(cache=True, nogil=True, _nrt=False)
def open_views(tables, lists, row):
    """Return the views that may take events, as bits."""
    open_ = row[OPENS]
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        open_ |= t.at(tables, t.A_OPEN, lists.values[b])
    return open_


@njit(cache=True, nogil=True, _nrt=False)
def step(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, allowed, barred, after):
    """Write the match `after` a match takes an event; return `HOLDS`, `FAILS`, or what went wrong.

    `allowed` are the steps, as bits, whose policies allow it; `barred` the greedy variables that it may not leave.
    """
    last, bit, taken = row[EVENT], 1 << t.at(tables, t.L_BASE, variable), taken_by(tables, row, variable)
    same = last >= 0 and columns[t.SAME_ROW, event] == columns[t.SAME_ROW, last]
    for i in range(row.shape[0]):
        after[i] = row[i]
    after[EVENT], after[VARIABLE], after[BOUND], after[OPENS] = event, variable, row[BOUND] | taken, 0
    if row[VARIABLE] < 0:
        after[END] = min(columns[t.UNTIL_ROW, event], hi) if tables[t.SPAN] else hi
    status = remember(tables, columns, programs, lists, scratch, after, variable, event, row[BOUND], taken)
    if status < 0:
        return status
    size = np.int64(0)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state, pending = lists.values[b], lists.values[b + 1]
        for k in range(t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)):
            if t.at(tables, t.A_VARIABLE, k) != variable or (same and t.at(tables, t.A_AFTER, k) & row[TIES]):
                continue
            if not allowed & (1 << t.at(tables, t.A_STEP, k)) or t.at(tables, t.A_LEFT, k) & barred:
                continue
            left = _check(tables, columns, programs, lists, scratch, row, after, k, pending, lo, hi)
            if left == DEAD:
                continue
            if left < 0:
                return left
            if size + 2 > scratch.branches.shape[0]:
                return NO_ROOM
            size = insert_branch(scratch.branches, size, t.at(tables, t.A_TARGET, k), left)
    if size == 0:
        return FAILS
    after[BRANCHES] = keep(lists, scratch.branches, size)
    if after[BRANCHES] == FULL:
        return NO_ROOM
    shorten(tables, columns, programs, lists, scratch, after, size, (row[TIES] if same else 0) | bit)
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False)
def shorten(tables, columns, programs, lists, scratch, after, size, ties):
    """Leave of a match what its rest depends on; return the slots of the registers that are needed, as bits."""
    open_ = timed = guard_timed = absent = loops = np.int64(0)
    for b in range(0, size, 2):
        state, pending = scratch.branches[b], scratch.branches[b + 1]
        open_ |= t.at(tables, t.A_OPEN, state)
        loops |= t.at(tables, t.A_LOOPS, state)
        timed |= t.at(tables, t.A_TIMED, state)
        guard_timed |= t.at(tables, t.A_GUARD_TIMED, state)
        absent |= t.at(tables, t.A_ABSENT, state)
        begin = lists.ends[pending - 1] if pending else 0
        for i in range(begin, lists.ends[pending], GUARD):
            guard = lists.values[i]
            if lists.values[i + 1] < NO_ONE:
                continue
            for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
                absent |= 1 << t.at(tables, t.A_ABSENTS, a)
    times = tables[t.BASES] if t.at(tables, t.R_TIME_SLOT, 0) >= 0 else 0
    for var in range(times):
        scratch.counters[var, 0] = after[SLOTS + t.at(tables, t.R_TIME_SLOT, var)]
    live = _forget(tables, after, open_, absent, loops)
    for var in range(times):  # they lie behind the registers, and stay while a guard asks for them
        if guard_timed & (1 << var):
            after[SLOTS + t.at(tables, t.R_TIME_SLOT, var)] = scratch.counters[var, 0]
    after[TIES] = ties & timed
    return np.int64(live)


@njit(cache=True, nogil=True, _nrt=False)
def insert_branch(pairs, size, state, pending):
    """Insert a branch into a sorted list of them, unless it is there; return the new size."""
    at = 0
    while at < size and (pairs[at] < state or (pairs[at] == state and pairs[at + 1] < pending)):
        at += 2
    if at < size and pairs[at] == state and pairs[at + 1] == pending:
        return size
    for i in range(size - 1, at - 1, -1):
        pairs[i + 2] = pairs[i]
    pairs[at], pairs[at + 1] = state, pending
    return size + 2


@njit(cache=True, nogil=True, _nrt=False)
def _check(tables, columns, programs, lists, scratch, row, after, transition, pending, lo, hi):
    """Test what a transition decides; return the list of NOTs that are still undecided.

    It is `DEAD` where something does not hold.
    """
    open_, bound = t.at(tables, t.A_OPEN, t.at(tables, t.A_TARGET, transition)), after[BOUND]
    views = taken_by(tables, row, after[VARIABLE]) if tables[t.GROUPS] else np.int64(0)
    for term in range(tables[t.TERMS]):
        if not t.at(tables, t.T_LATE, term):
            continue
        if is_asked_after(tables, term, views):
            if not t.at(tables, t.T_VARIABLES, term) & ~bound:
                answer = holds(tables, columns, programs, lists, scratch, term, after, NO_ONE, NO_ONE)
                if answer != TRUE:
                    return TROUBLE if answer == MISFIT else DEAD
        elif (
            t.at(tables, t.T_LATE, term) == t.LATE
            and t.at(tables, t.T_ABSENT, term) < 0
            and not t.at(tables, t.T_VARIABLES, term) & ~bound
            and not scratch.decided[term]
            and is_decided(tables, term, open_, bound, after)
        ):
            variable = after[VARIABLE]
            own = t.at(tables, t.T_SO_FAR, term) & taken_by(tables, row, variable)
            if own:  # it is asked of this event and those before
                if not row[BOUND] & own and t.at(tables, t.T_PAIRED, term) & own:
                    continue
                answer = holds(tables, columns, programs, lists, scratch, term, row, variable, after[EVENT])
            else:
                answer = holds(tables, columns, programs, lists, scratch, term, after, NO_ONE, NO_ONE)
            if answer != TRUE:
                return TROUBLE if answer == MISFIT else DEAD
    size, guards, begun = 0, scratch.guards, t.at(tables, t.L_GROUPS, after[VARIABLE])
    begin = lists.ends[pending - 1] if pending else 0
    new = t.at(tables, t.A_GUARD_BEGINS, transition)
    for i in range((lists.ends[pending] - begin) // GUARD + t.at(tables, t.A_GUARD_BEGINS, transition + 1) - new):
        at = begin + GUARD * i
        if at < lists.ends[pending]:  # one that waits, of an iteration that is over or not
            guard, low, high = lists.values[at], lists.values[at + 1], lists.values[at + 2]
            closing = begun & t.at(tables, t.A_GUARD_GROUPS, guard) != 0
        else:
            guard = t.at(tables, t.A_GUARDS, new + i - (lists.ends[pending] - begin) // GUARD)
            closing = t.at(tables, t.A_GUARD_CLOSING, guard) != 0
            low = _low(tables, columns, guard, scratch.before if closing else row)
            high = columns[t.SAME_ROW, after[EVENT]]
            until = t.at(tables, t.A_GUARD_UNTIL, guard)
            if row[EVENT] <= TRACKED and until != t.FIRST_EVENT:
                if _is_noted(tables, guard, TRACKED - row[EVENT]):
                    return DEAD
                continue
            if until:
                low, high = after[EVENT] if until == t.FIRST_EVENT else row[EVENT] + 1, after[EVENT] + 1
        if low == NO_ONE and closing and tables[t.SPAN]:  # how far it reaches depends on where the match ends
            low = _last_forbidden(tables, columns, programs, lists, scratch, guard, lo, high, scratch.before)
            if low == MISFITS:
                return TROUBLE
            high = low
            if low == NO_ONE:
                continue
        if low < NO_ONE:
            if columns[t.UNTIL_ROW, FOUND - low] > after[EVENT]:
                if size + GUARD > guards.shape[0]:
                    return NO_ROOM
                guards[size], guards[size + 1], guards[size + 2] = guard, low, high
                size += GUARD
            continue
        if closing:
            answer = _is_filled(tables, columns, programs, lists, scratch, guard, low, high, scratch.before, lo, hi)
            if answer != FALSE:
                return TROUBLE if answer == MISFIT else DEAD
            continue
        if not t.at(tables, t.A_GUARD_UNTIL, guard) and not _is_decidable(tables, guard, low, after, open_):
            if size + GUARD > guards.shape[0]:
                return NO_ROOM
            guards[size], guards[size + 1], guards[size + 2] = guard, low, high
            size += GUARD
            continue
        answer = _is_filled(tables, columns, programs, lists, scratch, guard, low, high, after, lo, hi)
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else DEAD
    number = keep(lists, guards, size)
    return NO_ROOM if number == FULL else number


@njit(cache=True, nogil=True, _nrt=False)
def is_complete(tables, columns, programs, lists, scratch, row, lo, hi):
    """Return whether a match, taken as it is, matches the whole pattern: `HOLDS`, `FAILS` or `TROUBLE`."""
    begin, end = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0, lists.ends[row[BRANCHES]]
    open_, ways = open_views(tables, lists, row), 0
    for b in range(begin, end, 2):
        state = lists.values[b]
        ways += t.at(tables, t.A_WAY_BEGINS, state + 1) - t.at(tables, t.A_WAY_BEGINS, state)
    if ways == 0:
        return FAILS
    for term in range(tables[t.TERMS]):
        if (
            t.at(tables, t.T_LATE, term)
            and t.at(tables, t.T_ABSENT, term) < 0
            and not t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]
            and not is_decided(tables, term, open_, row[BOUND], row)
        ):
            answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, NO_ONE)
            if answer != TRUE:
                return TROUBLE if answer == MISFIT else FAILS
    for b in range(begin, end, 2):
        state, pending = lists.values[b], lists.values[b + 1]
        for way in range(t.at(tables, t.A_WAY_BEGINS, state), t.at(tables, t.A_WAY_BEGINS, state + 1)):
            answer = _ends(tables, columns, programs, lists, scratch, row, pending, way, lo, hi)
            if answer != FAILS:
                return answer
    return FAILS


@njit(cache=True, nogil=True, _nrt=False)
def is_result(tables, columns, programs, lists, scratch, row):
    """Return whether a whole match meets HAVING: `HOLDS`, `FAILS` or `TROUBLE`."""
    if tables[t.RESULTS]:
        for term in range(tables[t.TERMS]):
            if t.at(tables, t.T_RESULT, term):
                answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, NO_ONE)
                if answer != TRUE:
                    return TROUBLE if answer == MISFIT else FAILS
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False)
def _ends(tables, columns, programs, lists, scratch, row, pending, way, lo, hi):
    """Return whether no guard of a way to end is filled."""
    begin = lists.ends[pending - 1] if pending else 0
    for i in range(begin, lists.ends[pending], GUARD):
        answer = _is_filled(
            tables,
            columns,
            programs,
            lists,
            scratch,
            lists.values[i],
            lists.values[i + 1],
            lists.values[i + 2],
            row,
            lo,
            hi,
        )
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else FAILS
    for i in range(t.at(tables, t.A_WAY_GUARD_BEGINS, way), t.at(tables, t.A_WAY_GUARD_BEGINS, way + 1)):
        guard = t.at(tables, t.A_WAY_GUARDS, i)
        answer = _is_filled(
            tables, columns, programs, lists, scratch, guard, _low(tables, columns, guard, row), NO_ONE, row, lo, hi
        )
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else FAILS
    return HOLDS
