"""Matches so far: what they are, what terms ask of them, and what NOTs forbid them.

A match so far is a row of numbers: its last event, the variable that took it, its branches (a list of states, each with
its undecided NOTs), the views that have events, the variables whose last event has the time of the last one, the first
event that is too late for it, the views that an iteration which begins now opens, and from `SLOTS` on its registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.running import running
from trellis.kernels.expression.program import FALSE, MISFIT, TRUE, is_true
from trellis.kernels.jit import njit

EVENT, VARIABLE, BRANCHES, BOUND, TIES, END, OPENS, SLOTS = range(8)
FAILS, HOLDS = 0, 1
NO_ROOM, TROUBLE, DEAD = -1, -2, -3  # lists are full; numbers leave 64 bits; a branch ends here
SPENT = -11  # all steps that may be made are made
NO_ONE = np.int64(-1)  # no event, no variable
TRACKED = -16  # in place of the last event, less the bits of what was forbidden since; see `bars`
FOUND = -2  # minus an event, or a list of nodes, of what a NOT forbids whose gap is not known; or a list of witnesses
MISFITS = 1
NODE, OF, BEGIN, END_EVENT, SIZE, BACK = 5, 0, 1, 2, 3, 4  # numbers of a node of a forbidden match
GUARD = 3  # numbers of an undecided NOT: the guard, and the times between which it forbids, or what it forbids
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
    nexts, firsts, barred
        The event that each step selects, the first that each greedy variable could take, and those that could take
        what they may not, as bits for each kind of what transitions ask of them.
    before, begun
        A match before an iteration begins, and as it is then.
    nodes, parts
        Nodes of what a NOT forbids, and the parts of a tuple, that are being made.
    left
        How many steps may still be made; see `SPENT`.
    """

    events: np.ndarray  # int64 (references + 1,)
    whole: np.ndarray  # int64 (longest program,)
    real: np.ndarray  # float64 (longest program,)
    there: np.ndarray  # bool (longest program,)
    branches: np.ndarray  # int64 (room,)
    guards: np.ndarray  # int64 (room,)
    members: np.ndarray  # int64 (room,)
    counters: np.ndarray  # int64 (loops, 4)
    decided: np.ndarray  # int64 (terms + 1,)
    nexts: np.ndarray  # int64 (steps,)
    firsts: np.ndarray  # int64 (variables,)
    barred: np.ndarray  # int64 (3,)
    before: np.ndarray  # int64 (numbers,)
    begun: np.ndarray  # int64 (numbers,)
    nodes: np.ndarray  # int64 (room,)
    parts: np.ndarray  # int64 (room,)
    left: np.ndarray  # int64 (1,)


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
    own = t.at(tables, t.T_VARIABLES, term) & views
    return (
        t.at(tables, t.T_LATE, term) == t.TWICE and t.at(tables, t.T_MOVING, term) & views != 0 and own & (own - 1) != 0
    )


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
    for k in range(t.at(tables, t.T_LOOP_BEGINS, term), t.at(tables, t.T_LOOP_BEGINS, term + 1)):
        if t.at(tables, t.T_LOOP_KIND, k) == t.OVER_FORBIDDEN:
            first, last = members_of(tables, lists, term, k, row, event)
            if first == last:
                return TRUE  # it names nothing of what is forbidden
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
        first, last = members_of(tables, lists, term, k, row, event)
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
def members_of(tables, lists, term, loop, row, event):
    """Return where the members of a set that a term goes over begin and end; `event` is what a NOT forbids."""
    if t.at(tables, t.T_LOOP_KIND, loop) == t.OVER_FORBIDDEN:
        own = t.at(tables, t.C_OF_TERM, term) + event
        return t.at(tables, t.C_BEGINS, own), t.at(tables, t.C_BEGINS, own + 1)
    number = row[SLOTS + t.at(tables, t.T_LOOP_SLOT, loop)]
    first = lists.ends[number - 1] if number > 0 else np.int64(0)
    return first, lists.ends[number] if number > 0 else first


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
def is_decidable(tables, guard, low, row, open_):
    """Return whether it is known what a guard forbids."""
    if low < 0:
        return False
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        for term in range(tables[t.TERMS]):
            if t.at(tables, t.T_ROOT, term) != t.at(tables, t.A_ABSENTS, a):
                continue
            if t.at(tables, t.T_TOLD, term) >= 0:
                return False
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
def is_filled(tables, columns, programs, lists, scratch, guard, low, high, row, lo, hi):
    """Return whether an event that a guard forbids lies between `low` and `high` (-1: to the edges).

    With `low` below -1 it is known what is forbidden; it counts where the match did not end too late for it. Witnesses
    are no more than those that do.
    """
    if low < NO_ONE and high >= 0:
        return TRUE
    if tables[t.SPAN]:  # it may reach behind the first event, where matches that begin with it are looked at alone
        lo = np.int64(0)
    if low < NO_ONE:
        begin, end = lists.ends[FOUND - low - 1], lists.ends[FOUND - low]
        first, node, width = (
            first_at_least(columns[t.UNTIL_ROW], lo, hi, row[EVENT] + 1),
            np.int64(0),
            NODE + tables[t.TOLDS],
        )
        while begin + node * width < end:
            answer = forbids(
                tables, columns, programs, lists, scratch, guard, lists.values, begin, width, node, first,
                tables[t.EVENTS], row,
            )  # fmt: skip
            if answer != FALSE:
                return answer
            node += lists.values[begin + node * width + SIZE]
        return FALSE
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
                if t.at(tables, t.C_ENDS, match) >= last:
                    continue
            answer = _is_forbidden(tables, columns, programs, lists, scratch, guard, var, i, first, last, row)
            if answer != FALSE:
                return answer
    return FALSE


@njit(cache=True, nogil=True, _nrt=False)
def is_noted(tables, guard, noted):
    """Return whether something that a guard forbids was noted since the last event."""
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        if noted & (1 << (t.at(tables, t.A_ABSENTS, a) - tables[t.VARIABLES])):
            return True
    return False


@njit(cache=True, nogil=True, _nrt=False)
def _is_forbidden(tables, columns, programs, lists, scratch, guard, var, place, first, last, row):
    """Return whether a guard forbids, in a gap from `first` to `last`, what has a place in the list of a variable."""
    match = place - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
    if match < 0:
        event = t.at(tables, t.E_USABLE, place)
        return meets(tables, columns, programs, lists, scratch, guard, var, event, row)
    root = t.at(tables, t.C_ROOT, match)
    if root < 0:
        return TRUE
    at = tables[t.C_NODES] + NODE * root
    if tables[at + SIZE] == 1:
        return meets(tables, columns, programs, lists, scratch, guard, tables[at + OF], root, row)
    return forbids(
        tables, columns, programs, lists, scratch, guard, tables, tables[t.C_NODES], NODE, root, first, last, row
    )


@njit(cache=True, nogil=True, _nrt=False)
def meets(tables, columns, programs, lists, scratch, guard, var, event, row):
    """Return whether an event, or a node by its number, meets the conditions of the variable `var` (-1: it has none).

    It is one of what `guard` forbids: a NOT or an UNTIL.
    """
    for term in range(tables[t.TERMS] if var >= 0 else 0):
        if t.at(tables, t.T_ABSENT, term) != var or t.at(tables, t.T_TOLD, term) >= 0:
            continue
        if t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]:
            if t.at(tables, t.A_GUARD_UNTIL, guard):  # it cannot be met; a NOT's condition is not asked then
                return FALSE
        else:
            answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, event)
            if answer != TRUE:
                return answer
    return TRUE


@njit(cache=True, nogil=True, _nrt=False)
def forbids(tables, columns, programs, lists, scratch, guard, values, base, width, root, first, last, row):
    """Return whether the match at the root of a tree is one in the gap from `first` to `last`.

    It is if it lies in it, its conditions hold, and none of those below it, which NOTs inside of it forbid, is one. The
    nodes of what `guard` forbids begin at the place `base` of `values`, and each has `width` numbers: see `NODE`, and
    `trellis.kernels.explore.tables`.
    """
    node = root
    while True:
        at, answer = base + node * width, FALSE
        if values[at + BEGIN] >= first and values[at + END_EVENT] < last:
            below, answer = node + 1, TRUE
            while answer == TRUE and below < node + values[at + SIZE]:  # those of which nothing is asked come first
                one = base + below * width
                in_gap = values[one + BEGIN] >= first and values[one + END_EVENT] < last
                if in_gap and values[one + OF] < 0 and values[one + SIZE] == 1:
                    answer = FALSE
                below += values[one + SIZE]
            if answer == TRUE:
                answer = meets(tables, columns, programs, lists, scratch, guard, values[at + OF], node, row)
        if answer == MISFIT:
            return answer
        if answer == TRUE and values[at + SIZE] > 1:
            node += 1
            continue
        while node != root:
            at = base + node * width
            above = node - values[at + BACK]
            following = node + values[at + SIZE]
            if answer != TRUE and following < above + values[base + above * width + SIZE]:
                node = following
                break
            answer, node = FALSE if answer == TRUE else TRUE, above
        else:
            return answer


@njit(cache=True, nogil=True, _nrt=False)
def last_forbidden(tables, columns, programs, lists, scratch, guard, first, last, row):
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
            if match >= 0 and t.at(tables, t.C_ENDS, match) >= last:
                continue
            answer = _is_forbidden(tables, columns, programs, lists, scratch, guard, var, i, first, last, row)
            if answer == MISFIT:
                return np.int64(MISFITS)
            if answer == TRUE:
                latest = max(latest, t.at(tables, t.E_USABLE, i))
                break
    return FOUND - latest if latest >= 0 else NO_ONE


@njit(cache=True, nogil=True, _nrt=False)
def first_forbidden(tables, columns, programs, lists, scratch, guard, first, last, row):
    """Return the event from `first` to `last` at which something that a guard forbids ends first; else all events.

    It is -1 where numbers leave 64 bits.
    """
    soonest = np.int64(tables[t.EVENTS])
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        var = t.at(tables, t.A_ABSENTS, a)
        base = t.at(tables, t.E_BEGINS, var)
        begin, end = base + columns[tables[t.E_UPTO] + var, first], base + columns[tables[t.E_UPTO] + var, last]
        for i in range(begin, end):
            match = i - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
            event = t.at(tables, t.C_ENDS, match) if match >= 0 else t.at(tables, t.E_USABLE, i)
            if event >= min(soonest, last):
                if match < 0 or t.at(tables, t.C_SOONEST, match) >= min(soonest, last):
                    break
                continue
            answer = _is_forbidden(tables, columns, programs, lists, scratch, guard, var, i, first, last, row)
            if answer == MISFIT:
                return NO_ONE
            if answer == TRUE:
                soonest = event
    return soonest


@njit(cache=True, nogil=True, _nrt=False)
def low_time(tables, columns, guard, row):
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
