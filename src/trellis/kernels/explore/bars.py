"""Classes that forbidden events bar: what NOT and UNTIL forbid is noted as events come, and no gap is looked at again.

A class is *tracked* where all that the guards of its next steps ask for is known: their variables have events and take
no more. Then it keeps no last event, but `TRACKED` less the bits of what was forbidden since; matches that differ in
their last events alone are one class. An event that a guard forbids moves the matches of a class to the barred one.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.classes import (
    GUARDED,
    IS_LIVE,
    IS_TOUCHED,
    LEAD,
    LIMBS,
    LIVE,
    LIVING,
    NOT_YET,
    NUMBER,
    RESOLVED,
    TOUCHED,
    TOUCHING,
    UNKNOWN,
    UNTILED,
    WAY,
    add,
    enliven,
    make_class,
)
from trellis.kernels.explore.lists import FULL
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    EVENT,
    NO_ONE,
    SLOTS,
    TRACKED,
    TROUBLE,
    VARIABLE,
    holds,
    is_filled,
)
from trellis.kernels.explore.terms import MOST_TERMS, UNRESOLVED, is_plain, note_other, passes_all
from trellis.kernels.expression.program import MISFIT, TRUE
from trellis.kernels.jit import njit

UNTRACKED = -1


@njit(cache=True, nogil=True, _nrt=False)
def kept_event(tables, columns, lists, row, event, lo):
    """Return the event that a class keeps of a match for the NOTs and UNTILs of steps that may come next.

    It is `NONE` where there are none. Else it is the last event that one of them forbids, if there is any, and not the
    event itself: matches between which nothing forbidden lies have the same rest.
    """
    if not tables[t.NOTS]:
        return np.int64(t.NONE)
    same = columns[t.SAME_ROW, event]
    if tables[t.GROUPS] or tables[t.EDGED]:
        return same
    kept = np.int64(t.NONE)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state = lists.values[b]
        first, last = t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)
        for i in range(t.at(tables, t.A_GUARD_BEGINS, first), t.at(tables, t.A_GUARD_BEGINS, last)):
            guard = t.at(tables, t.A_GUARDS, i)
            behind = same + 1 if t.at(tables, t.A_GUARD_UNTIL, guard) else columns[t.LATER_ROW, same]
            kept = max(kept, lo)
            for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
                absent = t.at(tables, t.A_ABSENTS, a)
                place = columns[tables[t.E_UPTO] + absent, behind]
                if place > columns[tables[t.E_UPTO] + absent, lo]:
                    kept = max(kept, t.at(tables, t.E_USABLE, t.at(tables, t.E_BEGINS, absent) + place - 1))
    return min(kept, same)


@njit(cache=True, nogil=True, _nrt=False)
def _waits(tables, term, bound, open_, lasting):
    """Return whether a term names a variable that has no event, or `lasting` one that may take more.

    A count is known, where its variable has no event, once that takes none.
    """
    own = t.at(tables, t.T_VARIABLES, term)
    asked = own
    for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
        if t.at(tables, t.T_KIND, r) != t.OF_ABSENT:
            asked |= 1 << t.at(tables, t.T_VARIABLE, r)
    return own & ~bound != 0 or asked & open_ & ~bound != 0 or (lasting and asked & open_ != 0)


@njit(cache=True, nogil=True, _nrt=False)
def is_barred(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi):
    """Return whether a class never takes an event of a variable again: what is forbidden lies behind its last event."""
    if tables[t.EDGED]:  # what is forbidden now may be none in a longer gap
        return False
    begin, bound = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0, row[BOUND]
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state = lists.values[b]
        for k in range(t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)):
            if t.at(tables, t.A_VARIABLE, k) != variable:
                continue
            barred = False
            for i in range(t.at(tables, t.A_GUARD_BEGINS, k), t.at(tables, t.A_GUARD_BEGINS, k + 1)):
                guard = t.at(tables, t.A_GUARDS, i)
                until, known = t.at(tables, t.A_GUARD_UNTIL, guard), row[EVENT] >= 0
                if until == t.FIRST_EVENT or not (until or t.at(tables, t.A_GUARD_AFTER, guard)):
                    continue
                for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
                    for term in range(tables[t.TERMS]):
                        if t.at(tables, t.T_ROOT, term) == t.at(tables, t.A_ABSENTS, a):
                            known &= not _waits(tables, term, bound, open_, True)
                if known:
                    low = row[EVENT] + 1 if until else columns[t.SAME_ROW, row[EVENT]]
                    high = event + 1 if until else columns[t.SAME_ROW, event]
                    barred |= (
                        is_filled(tables, columns, programs, lists, scratch, guard, low, high, row, lo, hi) == TRUE
                    )
            if not barred:
                return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def guards_of(tables, lists, row, open_):
    """Return the bits of events that NOTs of the next steps forbid, and UNTILs; `UNTRACKED` where not all is known."""
    nots, untils = np.int64(0), np.int64(0)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state = lists.values[b]
        first, last = t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)
        for i in range(t.at(tables, t.A_GUARD_BEGINS, first), t.at(tables, t.A_GUARD_BEGINS, last)):
            guard = t.at(tables, t.A_GUARDS, i)
            until = t.at(tables, t.A_GUARD_UNTIL, guard)
            if until == t.FIRST_EVENT:
                continue
            if not until and not t.at(tables, t.A_GUARD_AFTER, guard):
                return np.int64(UNTRACKED), np.int64(UNTRACKED)
            for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
                absent = t.at(tables, t.A_ABSENTS, a)
                if absent - tables[t.VARIABLES] >= tables[t.ALONE]:
                    return np.int64(UNTRACKED), np.int64(UNTRACKED)
                for term in range(tables[t.TERMS]):
                    if t.at(tables, t.T_ABSENT, term) == absent and _waits(tables, term, row[BOUND], open_, until != 0):
                        return np.int64(UNTRACKED), np.int64(UNTRACKED)
                if until:
                    untils |= 1 << (absent - tables[t.VARIABLES])
                else:
                    nots |= 1 << (absent - tables[t.VARIABLES])
    return nots, untils


@njit(cache=True, nogil=True, _nrt=False)
def _resolve_absent(tables, programs, row, absent, resolved, place):
    """Write the terms of what is forbidden as comparisons of an event's code with a number; see `terms.resolve`."""
    code, number = programs.code, np.int64(0)
    for term in range(tables[t.TERMS]):
        if t.at(tables, t.T_ABSENT, term) != absent:
            continue
        if number == MOST_TERMS or not is_plain(tables, code, term, 0):
            return np.int64(UNRESOLVED)
        p, first, news = code[term], t.at(tables, t.T_BEGINS, term), 0
        for side in range(2):
            r = first + code[p + 3 + 2 * side]
            if t.at(tables, t.T_KIND, r) == t.OF_ABSENT:
                news += 1
            else:
                other = row[SLOTS + t.at(tables, t.T_SLOT, r)]
                note_other(programs, p, side, other, resolved, place + 3 * number)
        if news != 1:
            return np.int64(UNRESOLVED)
        number += 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def _forbids(tables, columns, programs, lists, scratch, classes, one, absent, event):
    """Return whether an event is one that a class forbids: 1 or 0, or `TROUBLE`."""
    way = absent * WAY
    if classes.ways[one, way + NUMBER] == NOT_YET:
        classes.ways[one, way + NUMBER] = _resolve_absent(
            tables, programs, classes.rows[one], absent, classes.ways[one], way + RESOLVED
        )
    number = classes.ways[one, way + NUMBER]
    if number != UNRESOLVED:
        return 1 if passes_all(programs.ints, programs.there, classes.ways, one, way + RESOLVED, number, event) else 0
    for term in range(tables[t.TERMS]):
        if t.at(tables, t.T_ABSENT, term) == absent:
            answer = holds(tables, columns, programs, lists, scratch, term, classes.rows[one], NO_ONE, event)
            if answer == MISFIT:
                return TROUBLE
            if answer != TRUE:
                return 0
    return 1


@njit(cache=True, nogil=True, _nrt=False)
def _barred(tables, lists, classes, one, absent, row):
    """Return the class to which matches go when something forbidden comes, or `NO_CLASSES`."""
    lead = classes.ways[one, absent * WAY + LEAD]
    if lead != UNKNOWN:
        return lead - 1
    bit = 1 << (absent - tables[t.VARIABLES])
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    row[EVENT] -= bit
    target = make_class(tables, lists, classes, row, np.int64(FULL))
    if target >= 0:
        classes.states[target, GUARDED] = classes.states[one, GUARDED] & ~bit
        classes.states[target, UNTILED] = classes.states[one, UNTILED] & ~bit
        classes.ways[one, absent * WAY + LEAD] = target + 1
    return target


@njit(cache=True, nogil=True, _nrt=False)
def _is_empty(counts, one, limbs):
    """Return whether a class has no matches."""
    some = np.uint64(0)
    for k in range(limbs):
        some |= counts[one, k]
    return some == 0


@njit(cache=True, nogil=True, _nrt=False)
def bar(tables, columns, programs, lists, scratch, classes, row, event, field):
    """Move the matches that an event bars: by a NOT those before its time, by an UNTIL all; return 0, or what is wrong.

    `field` is `GUARDED` for NOTs, `UNTILED` for UNTILs. What went wrong is `TROUBLE`, `NO_CLASSES` or `NO_LIMBS`.
    """
    states, sizes = classes.states, classes.sizes
    for absent in range(tables[t.VARIABLES], tables[t.VARIABLES] + tables[t.ALONE]):
        upto, bit = tables[t.E_UPTO] + absent, 1 << (absent - tables[t.VARIABLES])
        if columns[upto, event] == columns[upto, event + 1]:
            continue
        for turn in range(2 if field == UNTILED else 1):
            counts = classes.fresh if turn else classes.counts
            for i in range(sizes[TOUCHED] if turn else sizes[LIVE]):
                one = states[i, TOUCHING] if turn else states[i, LIVING]
                if not states[one, field] & bit or _is_empty(counts, one, sizes[LIMBS]):
                    continue
                forbids = _forbids(tables, columns, programs, lists, scratch, classes, one, absent, event)
                if forbids < 0:
                    return np.int64(TROUBLE)
                if not forbids:
                    continue
                target = _barred(tables, lists, classes, one, absent, row)
                if target < 0:
                    return target
                if turn and not states[target, IS_TOUCHED]:
                    states[target, IS_TOUCHED] = 1
                    states[sizes[TOUCHED], TOUCHING] = target
                    sizes[TOUCHED] += 1
                elif not turn and not states[target, IS_LIVE]:
                    enliven(states, sizes, target)
                add(counts, target, counts[one], sizes)  # no more than there were
                for k in range(sizes[LIMBS]):
                    counts[one, k] = 0
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def bar_one(tables, columns, programs, lists, scratch, classes, one, absent, row, event):
    """Return the class to which the matches of a class go when an event that may be forbidden comes, or what is wrong.

    That is the class itself, where a NOT of the variable `absent` does not forbid it.
    """
    if not classes.states[one, GUARDED] & (1 << (absent - tables[t.VARIABLES])):
        return np.int64(one)
    forbids = _forbids(tables, columns, programs, lists, scratch, classes, one, absent, event)
    if forbids <= 0:
        return np.int64(TROUBLE) if forbids < 0 else np.int64(one)
    return _barred(tables, lists, classes, one, absent, row)


@njit(cache=True, nogil=True, _nrt=False)
def is_steady(tables, lists, row, variable):
    """Return whether it does not depend on the event how a tracked class goes on with a variable, but for registers."""
    if tables[t.GROUPS] or tables[t.RESULTS] or row[VARIABLE] < 0 or (row[EVENT] >= 0):
        return False
    for term in range(tables[t.TERMS]):
        if t.at(tables, t.T_ABSENT, term) < 0 and t.at(tables, t.T_LATE, term):
            return False
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state, pending = lists.values[b], lists.values[b + 1]
        if lists.ends[pending] > (lists.ends[pending - 1] if pending else 0):
            return False
        for k in range(t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)):
            if t.at(tables, t.A_VARIABLE, k) != variable:
                continue
            for i in range(t.at(tables, t.A_GUARD_BEGINS, k), t.at(tables, t.A_GUARD_BEGINS, k + 1)):
                if t.at(tables, t.A_GUARD_UNTIL, t.at(tables, t.A_GUARDS, i)) == t.FIRST_EVENT:
                    return False
                if row[EVENT] > TRACKED:
                    return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def extremes_apart(tables, lists, fresh, variable):
    """Return how many registers tell the classes apart to which events of a variable lead, or -1 for none of that.

    One of these is the class of `fresh`, and they are extreme values; with none, it is the class of each event.
    """
    extremes = 0
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind = t.at(tables, t.R_KIND, r)
        if kind == t.EXTREME and fresh[SLOTS + t.at(tables, t.R_SLOT, r)] >= 0:
            extremes += 1
        elif kind >= t.TALLY or (kind != t.COUNT and fresh[SLOTS + t.at(tables, t.R_SLOT, r)] != t.NONE):
            return -1
    begin = lists.ends[fresh[BRANCHES] - 1] if fresh[BRANCHES] else 0
    for b in range(begin, lists.ends[fresh[BRANCHES]], 2):
        state, pending = lists.values[b], lists.values[b + 1]
        if lists.ends[pending] > (lists.ends[pending - 1] if pending else 0):
            return -1
        first, last = t.at(tables, t.A_WAY_BEGINS, state), t.at(tables, t.A_WAY_BEGINS, state + 1)
        if t.at(tables, t.A_WAY_GUARD_BEGINS, last) > t.at(tables, t.A_WAY_GUARD_BEGINS, first):
            return -1
    return extremes if fresh[EVENT] < 0 else -1
