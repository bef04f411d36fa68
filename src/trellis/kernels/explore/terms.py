"""The terms that an event must meet, and those of them that come to comparing its code with a number."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.matches import (
    BOUND,
    FAILS,
    HOLDS,
    SLOTS,
    TROUBLE,
    holds,
    is_asked_after,
    is_decided,
    open_views,
    taken_by,
)
from trellis.kernels.expression.program import COMPARE_COLUMNS, FIELDS, MISFIT, TRUE, compares
from trellis.kernels.jit import njit

MOST_TERMS = 4  # of a match and a variable, that are resolved
OWN, OPERATOR, CODE = range(3)
UNRESOLVED = -2


@njit(cache=True, nogil=True, _nrt=False)
def asked_terms(tables, scratch, row, variable, due):
    """Write the terms that an event must meet to be taken by a variable; return how many."""
    bound, views, size = row[BOUND], taken_by(tables, row, variable), np.int64(0)
    for term in range(tables[t.TERMS]):
        own = t.at(tables, t.T_VARIABLES, term)
        bit = own & views
        if t.at(tables, t.T_ABSENT, term) >= 0 or not bit or (own & ~bit) & ~bound or not scratch.decided[term]:
            continue
        if is_asked_after(tables, term, views):
            continue
        if bound & bit:
            if not t.at(tables, t.T_MOVING, term) & bit:
                continue
        elif t.at(tables, t.T_PAIRED, term) & bit:
            continue
        due[size] = term
        size += 1
    return size


@njit(cache=True, nogil=True, _nrt=False)
def meets(tables, columns, programs, lists, scratch, row, variable, event, due, number):
    """Return whether an event meets the terms that are asked: `HOLDS`, `FAILS` or `TROUBLE`."""
    for i in range(number):
        answer = holds(tables, columns, programs, lists, scratch, due[i], row, variable, event)
        if answer != TRUE:
            return TROUBLE if answer == MISFIT else FAILS
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False)
def open_of(tables, lists, scratch, row):
    """Return the variables that may take events, as bits, and note which terms are decided."""
    open_ = open_views(tables, lists, row)
    for term in range(tables[t.TERMS]):
        scratch.decided[term] = is_decided(tables, term, open_, row[BOUND], row)
    return open_


@njit(cache=True, nogil=True, _nrt=False)
def resolve(tables, programs, row, variable, due, number, resolved, place):
    """Write terms as comparisons of an event's code with a number; return how many, or `UNRESOLVED`.

    They are written from a place of `resolved` on, as three numbers each: the row of codes, the comparison, the code.
    """
    code = programs.code
    if number > MOST_TERMS:
        return UNRESOLVED
    takes = taken_by(tables, row, variable)
    for i in range(number):
        term, here = due[i], place + 3 * i
        p = code[term]
        first = t.at(tables, t.T_BEGINS, term)
        if not is_plain(tables, code, term):
            return UNRESOLVED
        news = 0
        for side in range(2):
            r = first + code[p + 3 + 2 * side]
            kind = t.at(tables, t.T_KIND, r)
            if kind == t.OF_UPTO:
                return UNRESOLVED  # it depends on the event, too
            bit = 1 << t.at(tables, t.T_VARIABLE, r)
            if takes & bit and (kind in (t.OF_EACH, t.OF_LATER) or (kind == t.OF_FIRST and not row[BOUND] & bit)):
                news += 1
                continue
            slot = t.at(tables, t.T_LAST if kind == t.OF_EARLIER else t.T_SLOT, r)
            note_other(programs, p, side, row[SLOTS + slot], resolved, here)
        if news != 1:
            return UNRESOLVED
    return number


@njit(cache=True, nogil=True, _nrt=False)
def note_other(programs, p, side, other, resolved, here):
    """Write a comparison, one side of which is an event that is remembered, and the other one that is taken."""
    code = programs.code
    column = code[p + 2 + 2 * side]
    if other < 0 or not programs.there[column, other]:
        resolved[here + OWN] = -1
    else:
        resolved[here + OWN] = code[p + 4 - 2 * side]
        resolved[here + OPERATOR] = code[p + 1] if side == 1 else code[p + 1] + 6
        resolved[here + CODE] = programs.ints[column, other]


@njit(cache=True, nogil=True, _nrt=False)
def takes_event(tables, row, variable, slot):
    """Return whether a slot holds the event that a variable takes next: 1 or 0; -1 if that depends on the event."""
    is_bound = row[BOUND] & (1 << variable) != 0
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        if t.at(tables, t.R_SLOT, r) != slot:
            continue
        kind = t.at(tables, t.R_KIND, r)
        if kind == t.LAST or (kind == t.FIRST and not is_bound):
            return 1
        if kind == t.NTH:
            count = row[SLOTS + t.at(tables, t.R_LAST, r)]
            after = 1 if not is_bound else count + 1 if count != t.NONE else count
            return 1 if row[SLOTS + slot] == t.NONE and after == t.at(tables, t.R_NTH, r) else 0
        return 0 if kind == t.FIRST else -1
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def is_plain(tables, code, term):
    """Return whether a term compares two columns, of one event each."""
    p = code[term]
    loops = t.at(tables, t.T_LOOP_BEGINS, term + 1) - t.at(tables, t.T_LOOP_BEGINS, term)
    return code[term + 1] == p + FIELDS and code[p] == COMPARE_COLUMNS and loops == 0


@njit(cache=True, nogil=True, _nrt=False)
def holds_plainly(tables, code, ints, there, term, row):
    """Return whether a term that compares columns is true for what a match remembers."""
    p, first = code[term], t.at(tables, t.T_BEGINS, term)
    e = row[SLOTS + t.at(tables, t.T_SLOT, first + code[p + 3])]
    f = row[SLOTS + t.at(tables, t.T_SLOT, first + code[p + 5])]
    if e < 0 or f < 0 or not there[code[p + 2], e] or not there[code[p + 4], f]:
        return False
    return compares(code[p + 1], ints[code[p + 2], e], ints[code[p + 4], f])


@njit(cache=True, nogil=True, _nrt=False)
def passes_all(ints, there, resolved, one, place, number, event):
    """Return whether an event meets terms that are resolved, from a place of a row on; `resolve` writes them."""
    for i in range(place, place + 3 * number, 3):
        own, operator, code = resolved[one, i + OWN], resolved[one, i + OPERATOR], resolved[one, i + CODE]
        if own < 0 or not there[own, event]:
            return False
        x = ints[own, event]
        if not (compares(operator - 6, code, x) if operator >= 6 else compares(operator, x, code)):
            return False
    return True
