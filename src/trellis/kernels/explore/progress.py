"""How matches go on: what they remember of an event that they take, what is asked then, and when they are complete."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep, keep_with
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    DEAD,
    END,
    EVENT,
    FAILS,
    FOUND,
    GUARD,
    HOLDS,
    NO_ONE,
    NO_ROOM,
    OPENS,
    SLOTS,
    TIES,
    TRACKED,
    TROUBLE,
    VARIABLE,
    holds,
    is_asked_after,
    is_decidable,
    is_decided,
    is_filled,
    is_noted,
    low_time,
    taken_by,
)
from trellis.kernels.explore.nodes import is_in_reach, note
from trellis.kernels.explore.running import is_simple, run_simply, running
from trellis.kernels.explore.waits import SETTLED, has_witnesses, still_waiting, wait_for
from trellis.kernels.expression.program import FALSE, MISFIT, TRUE, compares, is_comparison
from trellis.kernels.jit import njit


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
        elif kind in (t.SUM, t.EXACT_SUM):
            scratch.decided[tables[t.TERMS]] = 0
            row[at] = running(tables, columns, lists, scratch, r, row[at], is_bound, event)
            if kind == t.EXACT_SUM and row[at] == FULL:
                return NO_ROOM
            if kind == t.SUM and scratch.decided[tables[t.TERMS]] < 0:
                return TROUBLE
        elif kind == t.MET and not is_comparison(programs.code, t.at(tables, t.R_NTH, r)):
            answer = holds(
                tables, columns, programs, lists, scratch, t.at(tables, t.R_NTH, r), row, variable, event
            )  # fmt: skip
            if answer == MISFIT:
                return TROUBLE
            note_met(tables, row, r, own, is_bound, answer == TRUE)
    remember_plainly(
        tables, columns, programs.code, programs.ints, programs.there, row, variable, event, bound, taken
    )  # fmt: skip
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def note_met(tables, row, register, own, is_bound, is_met):
    """Note in a `register` whether an event, by which it is `own`, has met its term: `is_met`.

    What only this term has needed is forgotten. `is_bound`: whether the variable has events before.
    """
    at = SLOTS + t.at(tables, t.R_SLOT, register)
    if not is_bound:
        row[at] = t.NONE
    if is_met and row[at] == t.NONE:
        row[at] = own
        forgotten = t.at(tables, t.R_LAST, register)
        for slot in range(row.shape[0] - SLOTS if forgotten else 0):
            if forgotten & (1 << slot) and row[SLOTS + slot] != t.NONE:
                row[SLOTS + slot] = 0  # any event: the shape of matches stays


@njit(cache=True, nogil=True, _nrt=False)
def is_met_by(tables, code, ints, there, register, row, event):
    """Return whether an event meets the term of a `register`, which compares two columns: `ints`, if `there`."""
    term, view = t.at(tables, t.R_NTH, register), t.at(tables, t.R_VIEW, register)
    p, first = code[term], t.at(tables, t.T_BEGINS, term)
    left, right = first + code[p + 3], first + code[p + 5]
    e = event if t.at(tables, t.T_VARIABLE, left) == view else row[SLOTS + t.at(tables, t.T_SLOT, left)]
    f = event if t.at(tables, t.T_VARIABLE, right) == view else row[SLOTS + t.at(tables, t.T_SLOT, right)]
    if e < 0 or f < 0 or not there[code[p + 2], e] or not there[code[p + 4], f]:
        return False
    return compares(code[p + 1], ints[code[p + 2], e], ints[code[p + 4], f])


@njit(cache=True, nogil=True, _nrt=False)
def remember_plainly(tables, columns, code, ints, there, row, variable, event, bound, taken):
    """Change the registers of a letter that takes an event, but for sets and sums that are checked; see `remember`.

    `code`, `ints` and `there` are those of the programs.
    """
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind, at = t.at(tables, t.R_KIND, r), SLOTS + t.at(tables, t.R_SLOT, r)
        own, view = columns[tables[t.R_ALIKE] + r, event], 1 << t.at(tables, t.R_VIEW, r)
        is_bound = bound & view != 0
        if not taken & view and kind != t.LENGTH:
            continue
        if is_simple(kind):
            row[at] = run_simply(tables, columns, r, kind, row[at], is_bound, event)
        elif kind == t.LAST:
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
        elif kind == t.MET:
            if is_comparison(code, t.at(tables, t.R_NTH, r)):
                note_met(tables, row, r, own, is_bound, is_met_by(tables, code, ints, there, r, row, event))
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
            if not absent & (1 << t.at(tables, t.T_ROOT, term)):
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
def step(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, allowed, greedy, after):
    """Write the match `after` a match takes an event; return `HOLDS`, `FAILS`, or what went wrong.

    `allowed` are the steps, as bits, whose policies allow it; `greedy` says that what `scratch.barred` has is heeded.
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
            if not allowed & (1 << t.at(tables, t.A_STEP, k)) or (greedy and _is_barred(tables, scratch.barred, k)):
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
def _is_barred(tables, barred, transition):
    """Return whether a greedy variable that a transition leaves, or that waits, could take what it may not."""
    asked = 3 * transition
    return (
        t.at(tables, t.A_LEFT, asked + t.LEAVES) & barred[t.LEAVES]
        | t.at(tables, t.A_LEFT, asked + t.WAITS) & barred[t.WAITS]
        | t.at(tables, t.A_LEFT, asked + t.WAITS_IN_TIE) & barred[t.WAITS_IN_TIE]
    ) != 0


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
    size, guards, begun = np.int64(0), scratch.guards, t.at(tables, t.L_GROUPS, after[VARIABLE])
    begin = lists.ends[pending - 1] if pending else 0
    new = t.at(tables, t.A_GUARD_BEGINS, transition)
    for i in range((lists.ends[pending] - begin) // GUARD + t.at(tables, t.A_GUARD_BEGINS, transition + 1) - new):
        at = begin + GUARD * i
        if at < lists.ends[pending]:  # one that waits, of an iteration that is over or not
            guard, low, high = lists.values[at], lists.values[at + 1], lists.values[at + 2]
            closing = True
        else:
            guard = t.at(tables, t.A_GUARDS, new + i - (lists.ends[pending] - begin) // GUARD)
            closing = t.at(tables, t.A_GUARD_CLOSING, guard) != 0
            low = low_time(tables, columns, guard, scratch.before if closing else row)
            high = columns[t.SAME_ROW, after[EVENT]]
            until = t.at(tables, t.A_GUARD_UNTIL, guard)
            if row[EVENT] <= TRACKED and until != t.FIRST_EVENT:
                if is_noted(tables, guard, TRACKED - row[EVENT]):
                    return DEAD
                continue
            if until:
                low, high = after[EVENT] if until == t.FIRST_EVENT else row[EVENT] + 1, after[EVENT] + 1
        closing = closing and begun & t.at(tables, t.A_GUARD_GROUPS, guard) != 0
        told = low >= 0 and t.at(tables, t.A_GUARD_NODES, guard) & t.TOLD
        if closing and (told or (low == NO_ONE and (tables[t.SPAN] or tables[t.EDGED] & t.IN_GAP))):
            # how far it reaches depends on where the match ends, or the gap begins; or it is compared with others
            first = columns[t.LATER_ROW, low] if low >= 0 else lo
            noted = note(
                tables, columns, programs, lists, scratch, guard, scratch.before, first, high, low < 0, False,
                np.int64(0),
            )  # fmt: skip
            if noted < 0:
                return noted
            if noted == 0:
                continue
            number = keep(lists, scratch.nodes, noted)
            if number == FULL:
                return NO_ROOM
            low = high = FOUND - number
        if has_witnesses(low, high):
            number = still_waiting(tables, columns, programs, lists, scratch, low, high, after, open_)
            if number < 0:
                return number
            if number != SETTLED:
                size = _wait(guards, size, guard, FOUND - number, high)
                if size < 0:
                    return size
            continue
        if low < NO_ONE:
            if is_in_reach(tables, columns, lists, FOUND - low, after[EVENT]):
                size = _wait(guards, size, guard, low, high)
                if size < 0:
                    return size
            continue
        if closing:
            answer = is_filled(tables, columns, programs, lists, scratch, guard, low, high, scratch.before, lo, hi)
            if answer != FALSE:
                return TROUBLE if answer == MISFIT else DEAD
            continue
        if not t.at(tables, t.A_GUARD_UNTIL, guard) and not is_decidable(tables, guard, low, after, open_):
            status, low, high = wait_for(
                tables, columns, programs, lists, scratch, guard, low, high, after, open_, lo, hi
            )  # fmt: skip
            if status < 0:
                return status
            if status != SETTLED:
                size = _wait(guards, size, guard, low, high)
                if size < 0:
                    return size
            continue
        answer = is_filled(tables, columns, programs, lists, scratch, guard, low, high, after, lo, hi)
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else DEAD
    number = keep(lists, guards, size)
    return NO_ROOM if number == FULL else number


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _wait(guards, size, guard, low, high):
    """Add an undecided NOT to others; return the new size, or `NO_ROOM`."""
    if size + GUARD > guards.shape[0]:
        return np.int64(NO_ROOM)
    guards[size], guards[size + 1], guards[size + 2] = guard, low, high
    return np.int64(size + GUARD)


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
    """Return whether no guard of a way to end is filled; in a gap those at the edges are not looked at."""
    begin, in_gap = lists.ends[pending - 1] if pending else 0, tables[t.EDGED] & t.IN_GAP
    for i in range(begin, lists.ends[pending], GUARD):
        if in_gap and (lists.values[i + 1] < 0 or t.at(tables, t.A_GUARD_NODES, lists.values[i]) & t.TOLD):
            continue
        answer = is_filled(
            tables, columns, programs, lists, scratch, lists.values[i], lists.values[i + 1], lists.values[i + 2], row,
            lo, hi,
        )  # fmt: skip
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else FAILS
    if in_gap:
        return HOLDS
    for i in range(t.at(tables, t.A_WAY_GUARD_BEGINS, way), t.at(tables, t.A_WAY_GUARD_BEGINS, way + 1)):
        guard = t.at(tables, t.A_WAY_GUARDS, i)
        answer = is_filled(
            tables, columns, programs, lists, scratch, guard, low_time(tables, columns, guard, row), NO_ONE, row, lo, hi
        )
        if answer != FALSE:
            return TROUBLE if answer == MISFIT else FAILS
    return HOLDS
