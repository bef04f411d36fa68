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
    taken_by,
)
from trellis.kernels.explore.progress import open_views
from trellis.kernels.expression.program import MISFIT, TRUE, compares, is_comparison
from trellis.kernels.jit import njit

MOST_TERMS = 4  # of a match and a variable, that are resolved
OWN, OPERATOR, CODE = range(3)
TURNED, ITSELF = 6, 12  # added to a comparison that has the event on its right, or on both sides
UNRESOLVED = -2  # terms of which none is resolved; less their number where some are


@njit(cache=True, nogil=True, _nrt=False)
def asked_terms(tables, scratch, row, variable, due):
    """Write the terms that an event must meet to be taken by a variable; return how many."""
    bound, views, size = row[BOUND], taken_by(tables, row, variable), np.int64(0)
    for term in range(tables[t.TERMS]):
        own = t.at(tables, t.T_VARIABLES, term)
        bit = own & views
        if t.at(tables, t.T_ABSENT, term) >= 0 or not bit or (own & ~bit) & ~bound or not scratch.decided[term]:
            continue
        if is_asked_after(tables, term, views) or t.at(tables, t.T_LATE, term) == t.NOTED:
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
    """Write terms as comparisons of an event's code with a number; return how many, or that some are not; `written_of`.

    They are written from a place of `resolved` on, as three numbers each: the row of codes, the comparison, the code or
    another row where the event is compared with itself.
    """
    takes, written = taken_by(tables, row, variable), np.int64(0)
    for i in range(number):
        own, operator, slot, column = sides_of(tables, programs.code, due[i], row, takes)
        if operator != UNRESOLVED and written < MOST_TERMS:
            note(programs.ints, programs.there, own, operator, slot, column, row, resolved, place + 3 * written)
            written += 1
    return written if written == number else UNRESOLVED - written


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def written_of(number):
    """Return how many terms `resolve` wrote; where it could not write all, the others must be asked as well."""
    return number if number >= 0 else UNRESOLVED - number


@njit(cache=True, nogil=True, _nrt=False)
def sides_of(tables, code, term, row, takes):
    """Return the two sides of a term about an event that views take: its column, how, slot and column of the other.

    The slot is -1 for the event itself. Where it compares anything else, how is `UNRESOLVED`.
    """
    own = slot = column = np.int64(-1)
    news, operator, p = 0, code[code[term] + 1], code[term]
    first = t.at(tables, t.T_BEGINS, term)
    if not is_plain(tables, code, term, takes):
        return own, np.int64(UNRESOLVED), slot, column
    for side in range(2):
        r = first + code[p + 3 + 2 * side]
        kind = t.at(tables, t.T_KIND, r)
        bit = 1 << t.at(tables, t.T_VARIABLE, r)
        if kind == t.OF_UPTO:
            return own, np.int64(UNRESOLVED), slot, column  # it depends on the event, too
        if takes & bit and (kind in (t.OF_EACH, t.OF_LATER) or (kind == t.OF_FIRST and not row[BOUND] & bit)):
            news += 1
            continue
        slot = t.at(tables, t.T_LAST if kind == t.OF_EARLIER else t.T_SLOT, r)
        column, own = code[p + 2 + 2 * side], code[p + 4 - 2 * side]
        operator = code[p + 1] if side == 1 else code[p + 1] + TURNED
    if news == 2:
        own, operator, column = code[p + 2], code[p + 1] + ITSELF, code[p + 4]
    return own, operator if news else np.int64(UNRESOLVED), slot, column


@njit(cache=True, nogil=True, _nrt=False)
def note(ints, there, own, operator, slot, column, row, resolved, here):
    """Write what `sides_of` returned (own, operator, slot, column) as a comparison with a number."""
    other = row[SLOTS + slot] if slot >= 0 else np.int64(0)
    if other < 0 or (slot >= 0 and not there[column, other]):
        resolved[here + OWN] = -1
    else:
        resolved[here + OWN], resolved[here + OPERATOR] = own, operator
        resolved[here + CODE] = ints[column, other] if slot >= 0 else column


@njit(cache=True, nogil=True, _nrt=False)
def note_other(programs, p, side, other, resolved, here):
    """Write a comparison, one side of which is an event that is remembered, and the other one that is taken."""
    code = programs.code
    column = code[p + 2 + 2 * side]
    if other < 0 or not programs.there[column, other]:
        resolved[here + OWN] = -1
    else:
        resolved[here + OWN] = code[p + 4 - 2 * side]
        resolved[here + OPERATOR] = code[p + 1] if side == 1 else code[p + 1] + TURNED
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
def is_plain(tables, code, term, takes):
    """Return whether a term compares two columns, of one event each; sets of views that take the event do not count."""
    for k in range(t.at(tables, t.T_LOOP_BEGINS, term), t.at(tables, t.T_LOOP_BEGINS, term + 1)):
        if not takes & (1 << t.at(tables, t.T_LOOP_VARIABLE, k)):
            return False
    return is_comparison(code, term)


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
        own, operator, other = resolved[one, i + OWN], resolved[one, i + OPERATOR], resolved[one, i + CODE]
        if own < 0 or not there[own, event]:
            return False
        x = ints[own, event]
        if operator >= TURNED:
            if operator >= ITSELF:
                if not there[other, event] or not compares(operator - ITSELF, x, ints[other, event]):
                    return False
            elif not compares(operator - TURNED, other, x):
                return False
        elif not compares(operator, x, other):
            return False
    return True
