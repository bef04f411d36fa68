"""NOTs that wait for events of a variable that goes on: which forbidden events may still bar a match, and no others.

`SEQ(A a, NOT(B n), C+ c[])` with `n.x < c.x` forbids what is less than every `c`. With each `c` fewer events are
forbidden; so once there are none, nothing is left of the NOT. Of the others a match keeps those alone that bar it as
long as any does: its *witnesses*, here the `n` with the least value. Then neither the gap nor the least `c` must be
remembered, and matches with the same witnesses have the same rest. Before the first event of a span later witnesses
bar longer, as the span reaches less far back the later the match ends.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import (
    BOUND,
    DEAD,
    EVENT,
    FOUND,
    GUARD,
    NO_ONE,
    NO_ROOM,
    SLOTS,
    TROUBLE,
    VARIABLE,
    meets,
)
from trellis.kernels.expression.program import (
    AT_MOST,
    DIFFERENT,
    EQUAL,
    FALSE,
    LESS,
    MISFIT,
    compares,
    is_comparison,
)
from trellis.kernels.jit import njit

SETTLED, WAITS = 0, 1
LEAST, GREATEST, EQUALS, ANY = 1, -1, 0, 2  # which witnesses bar longest, by their codes
NO_TERM = -1
SEVERAL, LATER_KNOWN = -2, -3  # more terms than one may still fail; something is asked that is known later


@njit(cache=True, nogil=True, _nrt=False)
def _waiting_term(tables, code, guard, row, open_):
    """Return the one term of a NOT that later events may fail; `NO_TERM`, `SEVERAL` or `LATER_KNOWN`."""
    found = np.int64(NO_TERM)
    begin, end = t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)
    if end > begin + 1:
        found = np.int64(SEVERAL)
    for a in range(begin, end):
        absent = t.at(tables, t.A_ABSENTS, a)
        if absent - tables[t.VARIABLES] >= tables[t.ALONE]:
            return np.int64(LATER_KNOWN)
        for term in range(tables[t.TERMS]):
            if t.at(tables, t.T_ABSENT, term) != absent:
                continue
            unbound = t.at(tables, t.T_VARIABLES, term) & open_ & ~row[BOUND]
            moving = unbound != 0
            for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
                kind, bit = t.at(tables, t.T_KIND, r), 1 << t.at(tables, t.T_VARIABLE, r)
                if kind == t.OF_ABSENT or not open_ & bit or (kind == t.OF_FIRST and row[BOUND] & bit):
                    continue
                if kind != t.OF_EACH and kind != t.OF_FIRST:
                    return np.int64(LATER_KNOWN)
                moving = True
            if not moving:
                continue
            loops = t.at(tables, t.T_LOOP_BEGINS, term + 1) > t.at(tables, t.T_LOOP_BEGINS, term)
            plain = not unbound and not loops and is_comparison(code, term) and code[code[term] + 1] != DIFFERENT
            found = np.int64(term if plain and found == NO_TERM and _is_of_two(tables, code, term) else SEVERAL)
    return found


@njit(cache=True, nogil=True, _nrt=False)
def _is_of_two(tables, code, term):
    """Return whether a comparison is one of a forbidden event and of each event of a variable."""
    first, p = t.at(tables, t.T_BEGINS, term), code[term]
    left, right = t.at(tables, t.T_KIND, first + code[p + 3]), t.at(tables, t.T_KIND, first + code[p + 5])
    return (left == t.OF_ABSENT and right == t.OF_EACH) or (left == t.OF_EACH and right == t.OF_ABSENT)


@njit(cache=True, nogil=True, _nrt=False)
def _sides(tables, code, term):
    """Return the column of the forbidden event, that of the other, the comparison, and which witnesses bar longest."""
    first, p = t.at(tables, t.T_BEGINS, term), code[term]
    op, own, other = code[p + 1], code[p + 2], code[p + 4]
    is_left = t.at(tables, t.T_KIND, first + code[p + 3]) == t.OF_ABSENT
    if not is_left:
        own, other = other, own
    which = np.int64(EQUALS)
    if op != EQUAL:
        which = np.int64(LEAST if (op in (LESS, AT_MOST)) == is_left else GREATEST)
    return own, other, op, which, is_left


@njit(cache=True, nogil=True, _nrt=False)
def _has_conflict(tables, term, row):
    """Return whether a term is false of whatever is forbidden, since events have different values."""
    if t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]:
        return False
    for r in range(t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1)):
        if t.at(tables, t.T_KIND, r) == t.OF_EACH and row[SLOTS + t.at(tables, t.T_SLOT, r)] == t.CONFLICT:
            return True
    return False


@njit(cache=True, nogil=True, _nrt=False)
def wait_for(tables, columns, programs, lists, scratch, guard, low, high, row, open_, lo, hi):
    """Return how much is left of a NOT that cannot be decided when an event is taken.

    Parameters
    ----------
    tables, columns, programs, lists, scratch
        What the exploration goes by, and works in.
    guard, low, high
        The NOT, and the times between which it forbids: see `GUARD`.
    row, open_
        The match with the event, and the variables that may take more, as bits.
    lo, hi
        The group.

    Returns
    -------
    status
        `WAITS`, `SETTLED` if nothing is left, `DEAD` if it bars whatever comes, or what went wrong.
    low, high
        The times again, or witnesses: `FOUND` less their list, and how these bar.
    """
    if tables[t.GROUPS] or tables[t.EDGED] or low < NO_ONE or t.at(tables, t.A_GUARD_NODES, guard):
        return np.int64(WAITS), low, high
    code = programs.code
    term = _waiting_term(tables, code, guard, row, open_)
    if term == LATER_KNOWN:
        return np.int64(WAITS), low, high
    if term >= 0 and _has_conflict(tables, term, row):
        return np.int64(SETTLED), low, high
    reaches, is_one = low < 0 and tables[t.SPAN] != 0, term != SEVERAL
    first, last = columns[t.LATER_ROW, low] if low >= 0 else lo, high if high >= 0 else hi
    if reaches:
        first = first_at_least(columns[t.UNTIL_ROW], 0, row[EVENT], row[EVENT] + 1)
    if first >= last:
        return np.int64(SETTLED), low, high
    own, which = np.int64(-1), np.int64(ANY)
    if term >= 0:
        own, _, _, which, _ = _sides(tables, code, term)
    size, best, soonest, latest = 0, np.int64(0), NO_ONE, NO_ONE
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        absent = t.at(tables, t.A_ABSENTS, a)
        base, upto = t.at(tables, t.E_BEGINS, absent), tables[t.E_UPTO] + absent
        begin, end = base + columns[upto, first], base + columns[upto, last]
        for i in range(begin, end):
            event = t.at(tables, t.E_USABLE, begin + end - 1 - i if reaches else i)
            answer = meets(tables, columns, programs, lists, scratch, guard, absent, event, row)
            if answer == MISFIT:
                return np.int64(TROUBLE), low, high
            if answer == FALSE:
                continue
            soonest = event if soonest < 0 else min(soonest, event)
            latest = max(latest, event)
            if not is_one:
                continue
            value = programs.ints[own, event] * which if term >= 0 else np.int64(0)
            if size == 0 or value < best:
                best = value
                if not reaches:
                    size = 0
                if size == scratch.members.shape[0]:
                    return np.int64(NO_ROOM), low, high
                scratch.members[size] = event
                size += 1
            if which in (EQUALS, ANY):  # this one bars as long as any
                break
    if latest < 0:
        return np.int64(SETTLED), low, high
    if not is_one:
        earlier = columns[t.SAME_ROW, soonest] - 1
        if low >= 0 or (not reaches and earlier >= lo):
            low = columns[t.SAME_ROW, earlier]
        return np.int64(WAITS), low, columns[t.LATER_ROW, latest]
    if term == NO_TERM and not reaches:
        return np.int64(DEAD), low, high
    number = keep(lists, scratch.members, size)
    if number == FULL:
        return np.int64(NO_ROOM), low, high
    return np.int64(WAITS), np.int64(FOUND - number), np.int64(2 * (term + 1) + reaches)


@njit(cache=True, nogil=True, _nrt=False)
def has_witnesses(low, high):
    """Return whether the two numbers of an undecided NOT tell of witnesses."""
    return low < NO_ONE and high >= 0


@njit(cache=True, nogil=True, _nrt=False)
def still_waiting(tables, columns, programs, lists, scratch, low, high, row, open_):
    """Return the list of the witnesses that are left of `low` and `high` when another event is taken.

    It is `SETTLED` where there are none, `DEAD` where they bar whatever comes, or `NO_ROOM`; `row` is the match with
    the event, and `open_` are the variables that may take more, as bits.
    """
    term, reaches, code = (high >> 1) - 1, high & 1, programs.code
    begin, end, size = lists.ends[FOUND - low - 1], lists.ends[FOUND - low], 0
    own = other = op = np.int64(0)
    is_asked, is_left = False, False
    if term >= 0:
        own, other, op, _, is_left = _sides(tables, code, term)
        is_asked = t.at(tables, t.T_VARIABLES, term) & t.at(tables, t.L_VIEWS, row[VARIABLE]) != 0
    ints, there, event = programs.ints, programs.there, row[EVENT]
    if end - begin > scratch.members.shape[0]:
        return np.int64(NO_ROOM)
    for i in range(begin, end):
        one = lists.values[i]
        if reaches and columns[t.UNTIL_ROW, one] <= event:
            continue
        if is_asked:
            if not there[other, event]:
                continue
            x, y = ints[own, one], ints[other, event]
            if not (compares(op, x, y) if is_left else compares(op, y, x)):
                continue
        scratch.members[size] = one
        size += 1
    if size == 0:
        return np.int64(SETTLED)
    if not reaches and not t.at(tables, t.T_VARIABLES, term) & open_:
        return np.int64(DEAD)
    number = keep(lists, scratch.members, size)
    return np.int64(NO_ROOM) if number == FULL else np.int64(number)


@njit(cache=True, nogil=True, _nrt=False)
def waits_as_easily(tables, columns, programs, lists, one, other):
    """Return whether what is left of the NOTs of a match bars it no more than another; both are lists of branches."""
    begin, end = lists.ends[one - 1] if one else 0, lists.ends[one]
    for b in range(lists.ends[other - 1] if other else 0, lists.ends[other], 2):
        found = False
        for a in range(begin, end, 2):
            if lists.values[a] == lists.values[b]:
                found |= _bars_less(tables, columns, programs, lists, lists.values[a + 1], lists.values[b + 1])
        if not found:
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _bars_less(tables, columns, programs, lists, one, other):
    """Return whether some undecided NOTs bar no more than others, by their lists."""
    for i in range(lists.ends[one - 1] if one else 0, lists.ends[one], GUARD):
        found = False
        for k in range(lists.ends[other - 1] if other else 0, lists.ends[other], GUARD):
            if lists.values[i] != lists.values[k]:
                continue
            low, high = lists.values[i + 1], lists.values[i + 2]
            if low == lists.values[k + 1] and high == lists.values[k + 2]:
                found = True
            elif has_witnesses(low, high) and has_witnesses(lists.values[k + 1], lists.values[k + 2]):
                found |= high == lists.values[k + 2] and _outlast(
                    tables, columns, programs, lists, FOUND - lists.values[k + 1], FOUND - low, high
                )
        if not found:
            return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _outlast(tables, columns, programs, lists, some, others, how):
    """Return whether for each of some `others` there is a witness that bars at least as long; see `still_waiting`."""
    term, reaches = (how >> 1) - 1, how & 1
    own, which = np.int64(0), np.int64(ANY)
    if term >= 0:
        own, _, _, which, _ = _sides(tables, programs.code, term)
    for i in range(lists.ends[others - 1], lists.ends[others]):
        found, event = False, lists.values[i]
        for k in range(lists.ends[some - 1], lists.ends[some]):
            one = lists.values[k]
            lasts = not reaches or columns[t.UNTIL_ROW, one] >= columns[t.UNTIL_ROW, event]
            if which == EQUALS:
                lasts &= programs.ints[own, one] == programs.ints[own, event]
            elif which != ANY:
                lasts &= programs.ints[own, one] * which <= programs.ints[own, event] * which
            found |= lasts
        if not found:
            return False
    return True
