"""Numbers of matches without their graph: they are carried forward by what their rest depends on.

A class is all matches so far with the same rest: a row as in `matches`, without the last event unless a NOT asks for
its time. Where neither a register of the variable nor a NOT depends on the event that a class takes, the class that it
leads to is found once. Only for skip-till-any, and patterns without AND. Numbers are exact, in limbs of 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.graph import asked_terms, begin_row, meets, open_of
from trellis.kernels.explore.lists import clear, hashed
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    END,
    EVENT,
    FAILS,
    HOLDS,
    SLOTS,
    TIES,
    TROUBLE,
    VARIABLE,
    begin_iteration,
    is_complete,
    is_result,
    step,
)
from trellis.kernels.expression.program import COMPARE_COLUMNS, FIELDS, compares
from trellis.kernels.jit import njit

NO_CLASSES, NO_LIMBS = -7, -8  # what there is no room for
UNKNOWN, CHANGING, NOWHERE = 0, -1, -2  # what is known of the class that a class leads to
QUICK = 4  # terms of a class and variable that are resolved
OWN, OPERATOR, CODE = range(3)


class Classes(NamedTuple):
    """Room for classes.

    Attributes
    ----------
    rows
        The numbers of each class.
    counts, fresh
        uint64 (classes, limbs): how many matches each has, and how many more since the time of the last event.
    next, pools
        The variables that may come next, as bits; and for each class and variable the class, plus one, that takes its
        events together with others that differ in what the variable overwrites.
    leads, whole
        For each class and variable the class that it leads to, plus one, or what is known of it; and whether the
        matches that go there are whole ones.
    terms, quick
        For each class and variable how many terms are resolved (-1: not known, -2: they are not), and each as the row
        of its codes, the comparison, and the code to compare with.
    table, at
        An open-addressing hash of the classes, plus one, and the place of each in it.
    live, touched
        The classes that events can still join, and those with fresh matches.
    sizes
        How many classes, live ones, and touched ones there are, and the most classes that a group had.
    """

    rows: np.ndarray
    counts: np.ndarray
    fresh: np.ndarray
    next: np.ndarray
    pools: np.ndarray
    leads: np.ndarray
    whole: np.ndarray
    terms: np.ndarray
    quick: np.ndarray
    table: np.ndarray
    at: np.ndarray
    live: np.ndarray
    touched: np.ndarray
    sizes: np.ndarray


ALL, LIVE, TOUCHED, MOST = range(4)


def make_classes(classes: int, width: int, variables: int, limbs: int) -> Classes:
    """Return room for classes, a power of two."""
    return Classes(
        np.empty((classes, width), np.int64), np.zeros((classes, limbs), np.uint64),
        np.zeros((classes, limbs), np.uint64), np.empty(classes, np.int64), np.zeros((classes, variables), np.int32),
        np.zeros((classes, variables), np.int32), np.zeros((classes, variables), np.bool_),
        np.full((classes, variables), -1, np.int8), np.empty((classes, variables, QUICK, 3), np.int64),
        np.zeros(2 * classes, np.int32), np.empty(classes, np.int64), np.empty(classes, np.int32),
        np.empty(classes, np.int32), np.zeros(4, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _class(tables, lists, classes, row):
    """Return the class of a row, which is made if there is none; `NO_CLASSES` where there is no room."""
    rows, table = classes.rows, classes.table
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(row, 0, row.shape[0]) & mask
    while True:
        found = np.int64(table[place]) - 1
        if found < 0:
            break
        same = True
        for i in range(row.shape[0]):
            if rows[found, i] != row[i]:
                same = False
                break
        if same:
            return found
        place = (place + np.uint64(1)) & mask
    number = classes.sizes[ALL]
    if number >= rows.shape[0]:
        return np.int64(NO_CLASSES)
    coming = np.int64(0)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        coming |= t.at(tables, t.A_NEXT, lists.values[b])
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    for k in range(classes.counts.shape[1]):
        classes.counts[number, k] = classes.fresh[number, k] = 0
    classes.next[number] = coming
    for v in range(tables[t.VARIABLES]):
        classes.leads[number, v] = UNKNOWN
        classes.pools[number, v] = 0
        classes.terms[number, v] = -1
    table[place] = number + 1
    classes.at[number] = np.int64(place)
    classes.sizes[ALL] = number + 1
    return number


@njit(cache=True, nogil=True)
def _add(total, other):
    """Add numbers of limbs; return whether they fit."""
    carry = np.uint64(0)
    for i in range(total.shape[0]):
        some = other[i] + carry
        carry = np.uint64(1) if some < carry else np.uint64(0)
        total[i] += some
        if total[i] < some:
            carry = np.uint64(1)
    return carry == 0


@njit(cache=True, nogil=True)
def _resolve(tables, programs, classes, one, variable, row, due, number):
    """Note the terms of a class and variable as comparisons with a number, where they all are such."""
    code = programs.code
    if number > QUICK:
        classes.terms[one, variable] = -2
        return
    for i in range(number):
        term = due[i]
        p = code[term]
        first = t.at(tables, t.T_BEGINS, term)
        simple = (
            code[term + 1] == p + FIELDS
            and code[p] == COMPARE_COLUMNS
            and t.at(tables, t.T_LOOP_BEGINS, term) == t.at(tables, t.T_LOOP_BEGINS, term + 1)
        )
        if not simple:
            classes.terms[one, variable] = -2
            return
        news = 0
        for side in range(2):
            r = first + code[p + 3 + 2 * side]
            kind = t.at(tables, t.T_KIND, r)
            if kind == t.OF_UPTO:
                news = 3  # it depends on the event, too
            takes = t.at(tables, t.L_VIEWS, variable) & (1 << t.at(tables, t.T_VARIABLE, r))
            if takes and kind in (t.OF_EACH, t.OF_LATER):
                news += 1
                continue
            other = row[SLOTS + t.at(tables, t.T_LAST if kind == t.OF_EARLIER else t.T_SLOT, r)]
            column = code[p + 2 + 2 * side]
            if other < 0 or not programs.there[column, other]:
                classes.quick[one, variable, i, OWN] = -1
            else:
                classes.quick[one, variable, i, OWN] = code[p + 4 - 2 * side]
                classes.quick[one, variable, i, OPERATOR] = code[p + 1] if side == 1 else code[p + 1] + 6
                classes.quick[one, variable, i, CODE] = programs.ints[column, other]
        if news != 1:
            classes.terms[one, variable] = -2
            return
    classes.terms[one, variable] = number


@njit(cache=True, nogil=True)
def _passes(programs, quick, number, event):
    """Return whether an event meets terms that are resolved."""
    for i in range(number):
        column = quick[i, OWN]
        if column < 0 or not programs.there[column, event]:
            return False
        op, x, y = quick[i, OPERATOR], programs.ints[column, event], quick[i, CODE]
        if op >= 6:
            op -= 6
            x, y = y, x
        if not compares(op, x, y):
            return False
    return True


@njit(cache=True, nogil=True)
def _is_fixed(tables, scratch, row, variable):
    """Return whether it does not depend on the event that a variable takes whether a class may take it."""
    if tables[t.NOTS] or tables[t.GROUPS] or (row[VARIABLE] == t.NONE and tables[t.SPAN]):
        return False
    bit = t.at(tables, t.L_VIEWS, variable)
    for term in range(tables[t.TERMS]):
        own = t.at(tables, t.T_VARIABLES, term)
        if not scratch.decided[term] and own & bit and not own & ~(row[BOUND] | bit):
            return False
    return True


@njit(cache=True, nogil=True)
def _is_forgotten(tables, after, variable):
    """Return whether no register of a variable is kept."""
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        if after[SLOTS + t.at(tables, t.R_SLOT, r)] != t.NONE:
            return False
    return True


@njit(cache=True, nogil=True)
def _pool(tables, lists, classes, one, variable, row):
    """Find the class that takes a variable's events for a class and others; return `NO_CLASSES` for no room.

    They differ in the last event of the variable, which the next one overwrites, and no term asks for it then.
    """
    if tables[t.NOTS] or tables[t.GROUPS] or not classes.rows[one, BOUND] & (1 << variable):
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
    pool = _class(tables, lists, classes, row)
    if pool >= 0:
        classes.next[pool] = 1 << variable
        classes.next[one] &= ~(1 << variable)
        classes.pools[one, variable] = pool + 1
    return pool


@njit(cache=True, nogil=True)
def _touch(classes, one, counts):
    """Add fresh matches to a class, and to the classes that stand for it; return whether they fit."""
    fits = _add_fresh(classes, one, counts)
    for v in range(classes.pools.shape[1]):
        if classes.pools[one, v]:
            fits &= _add_fresh(classes, np.int64(classes.pools[one, v]) - 1, counts)
    return fits


@njit(cache=True, nogil=True)
def _add_fresh(classes, one, counts):
    """Add fresh matches to a class; return whether they fit."""
    new = True
    for k in range(classes.fresh.shape[1]):
        new &= classes.fresh[one, k] == 0
    if new:
        classes.touched[classes.sizes[TOUCHED]] = one
        classes.sizes[TOUCHED] += 1
    return _add(classes.fresh[one], counts)


@njit(cache=True, nogil=True)
def _settle(classes):
    """Make fresh matches ones that later events can join."""
    for i in range(classes.sizes[TOUCHED]):
        one = classes.touched[i]
        new = True
        for k in range(classes.counts.shape[1]):
            new &= classes.counts[one, k] == 0
        if not _add(classes.counts[one], classes.fresh[one]):
            return False
        for k in range(classes.counts.shape[1]):
            classes.fresh[one, k] = 0
        if new and classes.next[one]:
            classes.live[classes.sizes[LIVE]] = one
            classes.sizes[LIVE] += 1
    classes.sizes[TOUCHED] = 0
    return True


@njit(cache=True, nogil=True)
def _take(tables, columns, programs, lists, scratch, classes, one, row, fresh, due, variable, event, total, lo, hi):
    """Let the matches of a class take an event; return 0, or what went wrong."""
    number = np.int64(classes.terms[one, variable])
    if number >= 0:
        if not _passes(programs, classes.quick[one, variable], number, event):
            return 0
        lead = np.int64(classes.leads[one, variable])
        if lead == NOWHERE:
            return 0
        if lead > 0:
            fits = _touch(classes, lead - 1, classes.counts[one])
            if classes.whole[one, variable]:
                fits &= _add(total, classes.counts[one])
            return 0 if fits else NO_LIMBS
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    if t.at(tables, t.L_GROUPS, variable):
        answer = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
        if answer <= FAILS:
            return answer
        for i in range(row.shape[0]):
            row[i] = scratch.begun[i]
    _, open_ = open_of(tables, columns, programs, lists, scratch, row)
    asks = asked_terms(tables, scratch, row, variable, due)
    answer = HOLDS
    if number < 0:
        if number == -1:
            _resolve(tables, programs, classes, one, variable, row, due, asks)
        answer = meets(tables, columns, programs, lists, scratch, row, variable, event, due, asks)
    if answer == HOLDS:
        answer = step(
            tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, t.EVERY_STEP, 0, fresh
        )
        if answer == FAILS and _is_fixed(tables, scratch, row, variable):
            classes.leads[one, variable] = NOWHERE
    if answer <= FAILS:
        return answer
    whole = is_complete(tables, columns, programs, lists, scratch, fresh, lo, hi)
    if whole == HOLDS:
        whole = is_result(tables, columns, programs, lists, scratch, fresh)
    if whole == TROUBLE:
        return TROUBLE
    if whole == HOLDS and not _add(total, classes.counts[one]):
        return NO_LIMBS
    fresh[EVENT] = columns[t.SAME_ROW, event] if tables[t.NOTS] else t.NONE
    fresh[VARIABLE], fresh[TIES] = 0, 0
    known = classes.sizes[ALL]
    target = _class(tables, lists, classes, fresh)
    if target < 0:
        return target
    if classes.sizes[ALL] > known:
        for v in range(tables[t.VARIABLES]):
            if classes.next[target] & (1 << v) and _pool(tables, lists, classes, target, v, fresh) == NO_CLASSES:
                return NO_CLASSES
    if classes.terms[one, variable] >= 0 and classes.leads[one, variable] == UNKNOWN:
        fixed = _is_fixed(tables, scratch, row, variable) and _is_forgotten(tables, classes.rows[target], variable)
        classes.leads[one, variable] = target + 1 if fixed else CHANGING
        classes.whole[one, variable] = whole == HOLDS
    return 0 if _touch(classes, target, classes.counts[one]) else NO_LIMBS


@njit(cache=True, nogil=True)
def _forget_classes(classes):
    """Empty the classes."""
    for i in range(classes.sizes[ALL]):
        classes.table[classes.at[i]] = 0
    classes.sizes[MOST] = max(classes.sizes[MOST], classes.sizes[ALL])
    for k in range(MOST):
        classes.sizes[k] = 0


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
def _count_group(tables, columns, programs, lists, scratch, classes, row, fresh, due, lo, hi, chosen, total):
    """Add the number of whole matches of a group; return 0, or what went wrong."""
    clear(lists)
    begin_row(lists, scratch, row, hi)
    start = _class(tables, lists, classes, row)
    classes.counts[start, 0] = 1
    classes.live[0] = start
    classes.sizes[LIVE] = 1
    event = lo
    while event < hi:
        end = min(hi, columns[t.LATER_ROW, event])
        if tables[t.SPAN]:
            _leave_out(classes, event)
        for e in range(event, end):
            for variable in range(tables[t.VARIABLES]):
                upto = tables[t.E_UPTO] + variable
                if columns[upto, e] == columns[upto, e + 1]:
                    continue
                for i in range(classes.sizes[LIVE]):
                    one = np.int64(classes.live[i])
                    if not classes.next[one] & (1 << variable):
                        continue
                    if one == start and chosen.shape[0] and not chosen[e]:
                        continue
                    status = _take(
                        tables, columns, programs, lists, scratch, classes, one, row, fresh, due, variable, e, total,
                        lo, hi,
                    )  # fmt: skip
                    if status < 0:
                        return status
        if not _settle(classes):
            return NO_LIMBS
        event = end
    return 0


@njit(cache=True, nogil=True)
def count_groups(
    tables, columns, programs, lists, scratch, classes, row, fresh, due, groups_lo, groups_hi, first, last, chosen,
    totals,
):  # fmt: skip
    """Write the numbers of whole matches of the groups from `first` to `last`; return a status, and the group it is of.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, classes
        What the exploration goes by, and works in.
    row, fresh, asked
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
            tables, columns, programs, lists, scratch, classes, row, fresh, due, groups_lo[group], groups_hi[group],
            chosen, totals[group],
        )  # fmt: skip
        _forget_classes(classes)
        if status < 0:
            for k in range(totals.shape[1]):
                totals[group, k] = 0
            return status, group
    return 0, last
