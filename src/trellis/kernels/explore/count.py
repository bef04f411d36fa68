"""Numbers of matches without their graph: they are carried forward by what their rest depends on.

A class is all matches so far with the same rest: a row as in `matches`, without the last event unless a NOT asks for
its time. Where neither a register of the variable nor a NOT depends on the event that a class takes, the class that it
leads to is found once. Only for skip-till-any, and patterns without AND. Numbers are exact, in limbs of 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.graph import begin_row
from trellis.kernels.explore.lists import FULL, hashed
from trellis.kernels.explore.matches import (
    BOUND,
    END,
    EVENT,
    FAILS,
    HOLDS,
    SLOTS,
    TIES,
    TROUBLE,
    VARIABLE,
    is_complete,
    step,
)
from trellis.kernels.explore.moves import (
    CODE,
    M_FIXED,
    M_KIND,
    M_SHAPE,
    MOST_TERMS,
    NOWHERE,
    OPERATOR,
    OWN,
    SLOW,
    UNRESOLVED,
    asked_terms,
    coming_of,
    ends_here,
    make_move,
    meets,
    move_of,
    open_of,
    passes,
    refresh,
    resolve,
    shape_of,
    terms_of,
)
from trellis.kernels.jit import njit

NO_CLASSES, NO_LIMBS = -7, -8  # what there is no room for
UNKNOWN, CHANGING, STUCK = 0, -1, -2  # what is known of the class that a class leads to
NOT_YET = -1  # terms that are not resolved yet


class Classes(NamedTuple):
    """Room for classes.

    Attributes
    ----------
    rows, shapes
        The numbers of each class, and that of its shape, or -1; see `moves`.
    counts, fresh, amount
        uint64 (classes, limbs): how many matches each has, and how many more since the time of the last event; and how
        many the class has that takes an event.
    next, pools
        The variables that may come next, as bits; and for each class and variable the class, plus one, that takes its
        events together with others that differ in what the variable overwrites.
    leads, whole
        For each class and variable the class that it leads to, plus one, or what is known of it; and whether the
        matches that go there are whole ones.
    memo
        For each move the class, plus one, that it led to last.
    terms, resolved
        For each class and variable how many terms are resolved (-1: not known, -2: they are not), and each as the row
        of its codes, the comparison, and the code to compare with.
    table, at
        An open-addressing hash of the classes, plus one, and the place of each in it.
    live, is_live, touched, is_touched, taken
        The classes that events can still join, and those with fresh matches; and the last event, plus one, that each
        class was let take.
    sizes
        How many classes, live ones, and touched ones there are, the most classes that a group had, and how many limbs
        are in use.
    """

    rows: np.ndarray
    shapes: np.ndarray
    counts: np.ndarray
    fresh: np.ndarray
    amount: np.ndarray
    next: np.ndarray
    pools: np.ndarray
    leads: np.ndarray
    whole: np.ndarray
    memo: np.ndarray
    terms: np.ndarray
    resolved: np.ndarray
    table: np.ndarray
    at: np.ndarray
    live: np.ndarray
    is_live: np.ndarray
    touched: np.ndarray
    is_touched: np.ndarray
    taken: np.ndarray
    sizes: np.ndarray


ALL, LIVE, TOUCHED, MOST, LIMBS, POOLS = range(6)


def make_classes(classes: int, width: int, variables: int, limbs: int, moves: int) -> Classes:
    """Return room for classes, a power of two, whose matches make some moves."""
    return Classes(
        np.empty((classes, width), np.int64), np.empty(classes, np.int32), np.zeros((classes, limbs), np.uint64),
        np.zeros((classes, limbs), np.uint64), np.zeros(limbs, np.uint64), np.empty(classes, np.int64),
        np.zeros((classes, variables), np.int32), np.zeros((classes, variables), np.int32),
        np.zeros((classes, variables), np.bool_), np.zeros(moves, np.int32),
        np.full((classes, variables), NOT_YET, np.int8), np.empty((classes, variables, MOST_TERMS, 3), np.int64),
        np.zeros(2 * classes, np.int32), np.empty(classes, np.int64), np.empty(classes, np.int32),
        np.zeros(classes, np.bool_), np.empty(classes, np.int32), np.zeros(classes, np.bool_),
        np.zeros(classes, np.int64), np.zeros(6, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _is_row(rows, number, row):
    """Return whether a class has the numbers of a row."""
    same = True
    for i in range(row.shape[0]):
        same &= rows[number, i] == row[i]
    return same


@njit(cache=True, nogil=True)
def _class(tables, lists, classes, row, shape):
    """Return the class of a row, which is made if there is none; `NO_CLASSES` where there is no room."""
    rows, table = classes.rows, classes.table
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(row, 0, row.shape[0]) & mask
    while True:
        found = np.int64(table[place]) - 1
        if found < 0:
            break
        if _is_row(rows, found, row):
            return found
        place = (place + np.uint64(1)) & mask
    number = classes.sizes[ALL]
    if number >= rows.shape[0]:
        return np.int64(NO_CLASSES)
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    for k in range(classes.counts.shape[1]):
        classes.counts[number, k] = classes.fresh[number, k] = 0
    classes.next[number] = coming_of(tables, lists, row)
    classes.shapes[number] = shape
    classes.is_live[number] = classes.is_touched[number] = False
    classes.taken[number] = 0
    for v in range(tables[t.VARIABLES]):
        classes.leads[number, v] = UNKNOWN
        classes.pools[number, v] = 0
        classes.terms[number, v] = NOT_YET
    table[place] = number + 1
    classes.at[number] = np.int64(place)
    classes.sizes[ALL] = number + 1
    return number


# --- Numbers of matches -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add(classes, total, number, other):
    """Add limbs to those of a row; return whether they fit."""
    used = classes.sizes[LIMBS]
    carry = np.uint64(0)
    for i in range(used):
        some = other[i] + carry
        carry = np.uint64(1) if some < carry else np.uint64(0)
        some += total[number, i]
        if some < total[number, i]:
            carry = np.uint64(1)
        total[number, i] = some
    if carry:
        if used == total.shape[1]:
            return False
        total[number, used] = carry
        classes.sizes[LIMBS] = used + 1
    return True


@njit(cache=True, nogil=True)
def _give(classes, one, event):
    """Add the amount to a class; return whether it fits.

    It becomes fresh where the class may still take an event of this time; `event` is 0 if there are several such.
    """
    if event and (classes.taken[one] == event or not classes.is_live[one]):
        if not classes.is_live[one]:
            _enliven(classes, one)
        return _add(classes, classes.counts, one, classes.amount)
    if not classes.is_touched[one]:
        classes.is_touched[one] = True
        classes.touched[classes.sizes[TOUCHED]] = one
        classes.sizes[TOUCHED] += 1
    return _add(classes, classes.fresh, one, classes.amount)


@njit(cache=True, nogil=True)
def _enliven(classes, one):
    """Let later events join a class."""
    classes.is_live[one] = True
    if classes.next[one]:
        classes.live[classes.sizes[LIVE]] = one
        classes.sizes[LIVE] += 1


@njit(cache=True, nogil=True)
def _give_all(classes, one, event):
    """Add the amount to a class, and to the classes that stand for it; return whether it fits."""
    fits = _give(classes, one, event)
    if classes.sizes[POOLS]:
        for v in range(classes.pools.shape[1]):
            if classes.pools[one, v]:
                fits &= _give(classes, np.int64(classes.pools[one, v]) - 1, event)
    return fits


@njit(cache=True, nogil=True)
def _settle(classes):
    """Make fresh matches ones that later events can join; return whether they fit."""
    for i in range(classes.sizes[TOUCHED]):
        one = np.int64(classes.touched[i])
        if not _add(classes, classes.counts, one, classes.fresh[one]):
            return False
        for k in range(classes.sizes[LIMBS]):
            classes.fresh[one, k] = 0
        classes.is_touched[one] = False
        if not classes.is_live[one]:
            _enliven(classes, one)
    classes.sizes[TOUCHED] = 0
    return True


# --- Classes that take events -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pool(tables, lists, moves, classes, one, variable, row):
    """Find the class that takes a variable's events for a class and others; return `NO_CLASSES` for no room.

    They differ in the last event of the variable, which the next one overwrites, and no term asks for it then.
    """
    if tables[t.NOTS] or not classes.rows[one, BOUND] & (1 << variable):
        return 0
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    found = False
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind, slot = t.at(tables, t.R_KIND, r), SLOTS + t.at(tables, t.R_SLOT, r)
        if row[slot] == t.NONE:
            continue
        if kind == t.PAIRS:
            return 0
        if kind == t.LAST:
            row[slot] = t.NONE
            found = True
    if not found:
        return 0
    for term in range(tables[t.TERMS]):
        if t.at(tables, t.T_PAIRED, term) & (1 << variable):
            return 0
    row[VARIABLE] = variable + 1
    pool = _class(tables, lists, classes, row, shape_of(tables, lists, moves, row))
    if pool >= 0:
        classes.next[pool] = 1 << variable
        classes.next[one] &= ~(1 << variable)
        classes.pools[one, variable] = pool + 1
        classes.sizes[POOLS] = 1
    return pool


@njit(cache=True, nogil=True)
def _find_class(tables, lists, moves, classes, fresh, shape):
    """Return the class of a match, with those that stand for it; or what there is no room for."""
    known = classes.sizes[ALL]
    target = _class(tables, lists, classes, fresh, shape)
    if target >= known:
        for v in range(tables[t.VARIABLES]):
            if classes.next[target] & (1 << v) and _pool(tables, lists, moves, classes, target, v, fresh) == NO_CLASSES:
                return np.int64(NO_CLASSES)
    return target


@njit(cache=True, nogil=True)
def _take(
    tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, alone, totals,
    group, lo, hi,
):  # fmt: skip
    """Let the matches of a class take an event; return 0, or what went wrong."""
    number = np.int64(classes.terms[one, variable])
    for i in range(number):
        own, operator = classes.resolved[one, variable, i, OWN], classes.resolved[one, variable, i, OPERATOR]
        if not passes(programs, own, operator, classes.resolved[one, variable, i, CODE], event):
            return 0
    lead = np.int64(classes.leads[one, variable])
    if lead == STUCK:
        return 0
    if lead > 0 and number >= 0:
        fits = _give_all(classes, lead - 1, alone)
        if classes.whole[one, variable]:
            fits &= _add(classes, totals, group, classes.amount)
        return 0 if fits else NO_LIMBS
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    shape, move = np.int64(classes.shapes[one]), np.int64(-1)
    if shape >= 0:
        move = move_of(tables, columns, programs, lists, scratch, moves, shape, row, variable, 0, event, due, fresh)
        if move < 0:
            return move
        kind = moves.rows[move, M_KIND]
        if kind == NOWHERE:
            classes.leads[one, variable] = STUCK
            return 0
        if kind == SLOW:
            move = np.int64(-1)
    open_ = np.int64(0)
    if move < 0:
        open_ = open_of(tables, lists, scratch, row)
    if number < 0:
        asks = terms_of(moves, move, due) if move >= 0 else asked_terms(tables, scratch, row, variable, due)
        if number == NOT_YET:
            resolved = resolve(tables, programs, row, variable, due, asks, classes.resolved[one, variable])
            classes.terms[one, variable] = resolved
        answer = meets(tables, columns, programs, lists, scratch, row, variable, event, due, asks)
        if answer <= FAILS:
            return answer
    if move < 0:
        answer = step(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, fresh)
        if answer <= FAILS:
            return answer
        whole = is_complete(tables, columns, programs, lists, scratch, fresh, lo, hi)
        shape = np.int64(FULL) if tables[t.NOTS] else shape_of(tables, lists, moves, fresh)
    else:
        answer = make_move(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, fresh)
        if answer <= FAILS:
            return answer
        whole = ends_here(tables, columns, programs, lists, scratch, moves, move, fresh)
        shape = moves.rows[move, M_SHAPE]
    if whole == TROUBLE:
        return TROUBLE
    if whole == HOLDS and not _add(classes, totals, group, classes.amount):
        return NO_LIMBS
    fresh[EVENT] = columns[t.SAME_ROW, event] if tables[t.NOTS] else t.NONE
    fresh[VARIABLE], fresh[TIES] = 0, 0
    target = np.int64(classes.memo[move]) - 1 if move >= 0 else np.int64(-1)
    if target < 0 or not _is_row(classes.rows, target, fresh):
        target = _find_class(tables, lists, moves, classes, fresh, shape)
        if target < 0:
            return target
        if move >= 0:
            classes.memo[move] = target + 1
    if move >= 0 and lead == UNKNOWN:
        fixed = moves.rows[move, M_FIXED] and classes.terms[one, variable] != UNRESOLVED
        classes.leads[one, variable] = target + 1 if fixed else CHANGING
        classes.whole[one, variable] = whole == HOLDS
    return 0 if _give_all(classes, target, alone) else NO_LIMBS


@njit(cache=True, nogil=True)
def _forget_classes(classes, moves):
    """Empty the classes."""
    for i in range(classes.sizes[ALL]):
        classes.table[classes.at[i]] = 0
    for i in range(moves.used[0] * classes.pools.shape[1] * 2):
        classes.memo[i] = 0
    classes.sizes[MOST] = max(classes.sizes[MOST], classes.sizes[ALL])
    classes.sizes[ALL] = classes.sizes[LIVE] = classes.sizes[TOUCHED] = classes.sizes[POOLS] = 0


@njit(cache=True, nogil=True)
def _leave_out(classes, event):
    """Leave out the classes whose span has passed."""
    kept = 0
    for i in range(classes.sizes[LIVE]):
        one = classes.live[i]
        if classes.rows[one, END] > event or classes.rows[one, VARIABLE] == t.NONE:
            classes.live[kept] = one
            kept += 1
    classes.sizes[LIVE] = kept


@njit(cache=True, nogil=True)
def _take_all(
    tables, columns, programs, lists, scratch, moves, classes, start, row, fresh, due, event, alone, chosen, totals,
    group, lo, hi,
):  # fmt: skip
    """Let all classes take an event, the youngest first: they were mostly made by the others."""
    usable = np.int64(0)
    for variable in range(tables[t.VARIABLES]):
        upto = tables[t.E_UPTO] + variable
        if columns[upto, event] != columns[upto, event + 1]:
            usable |= 1 << variable
    for i in range(classes.sizes[LIVE] - 1 if usable else -1, -1, -1):
        one = np.int64(classes.live[i])
        some = classes.next[one] & usable
        if not some or (one == start and chosen.shape[0] and not chosen[event]):
            continue
        for k in range(classes.sizes[LIMBS]):
            classes.amount[k] = classes.counts[one, k]
        classes.taken[one] = alone
        for variable in range(tables[t.VARIABLES]):
            if some & (1 << variable):
                status = _take(
                    tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event,
                    alone, totals, group, lo, hi,
                )  # fmt: skip
                if status < 0:
                    return status
    return 0


@njit(cache=True, nogil=True)
def _count_group(
    tables, columns, programs, lists, scratch, moves, classes, row, fresh, due, lo, hi, chosen, totals, group
):
    """Add the number of whole matches of a group; return 0, or what went wrong."""
    refresh(tables, lists, moves)
    begin_row(lists, scratch, row, hi)
    shape = np.int64(FULL) if tables[t.NOTS] else shape_of(tables, lists, moves, row)
    start = _class(tables, lists, classes, row, shape)
    classes.counts[start, 0] = 1
    classes.sizes[LIMBS] = 1
    classes.amount[:] = 0
    _enliven(classes, start)
    event = lo
    while event < hi:
        end = min(hi, columns[t.LATER_ROW, event])
        if tables[t.SPAN]:
            _leave_out(classes, event)
        for e in range(event, end):
            status = _take_all(
                tables, columns, programs, lists, scratch, moves, classes, start, row, fresh, due, e,
                e + 1 if end == event + 1 else 0, chosen, totals, group, lo, hi,
            )  # fmt: skip
            if status < 0:
                return status
        if not _settle(classes):
            return NO_LIMBS
        event = end
    return 0


@njit(cache=True, nogil=True)
def count_groups(
    tables, columns, programs, lists, scratch, moves, classes, row, fresh, due, groups_lo, groups_hi, first, last,
    chosen, totals,
):  # fmt: skip
    """Write the numbers of whole matches of the groups from `first` to `last`; return a status, and the group it is of.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, classes
        What the exploration goes by, and works in.
    row, fresh, due
        Room for two matches so far, and for the terms that are asked.
    groups_lo, groups_hi, first, last
        The events of the groups, and which of them.
    chosen
        The events at which matches may begin; empty for all.
    totals
        uint64 (groups, limbs): 0 for the groups to be counted.
    """
    for group in range(first, last):
        status = _count_group(
            tables, columns, programs, lists, scratch, moves, classes, row, fresh, due, groups_lo[group],
            groups_hi[group], chosen, totals, group,
        )  # fmt: skip
        _forget_classes(classes, moves)
        if status < 0:
            for k in range(totals.shape[1]):
                totals[group, k] = 0
            return status, group
    return 0, last
