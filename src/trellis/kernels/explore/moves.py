"""How matches of a shape go on: found once for a shape and a variable, and taken for every event after that.

The shape of a match so far is all that its moves depend on but the values of its registers: its branches, the variables
that have events, which registers hold something, and how many events are counted. A move says which terms an event must
meet, which of them are known then, the shape that it leads to with the registers that are still needed, and whether the
match may end there. Patterns with NOT or UNTIL have none, there every step looks at the events in between; nor those
whose steps have policies of their own, or with greedy variables, or with repeated groups of which something is asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, clear, keep
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    END,
    EVENT,
    FAILS,
    HOLDS,
    NO_ONE,
    NO_ROOM,
    SLOTS,
    TIES,
    TROUBLE,
    VARIABLE,
    holds,
    is_decided,
    taken_by,
)
from trellis.kernels.explore.progress import insert_branch, remember, remember_plainly, shorten
from trellis.kernels.explore.terms import (
    MOST_TERMS,
    UNRESOLVED,
    asked_terms,
    holds_plainly,
    is_plain,
    note_other,
    open_of,
    sides_of,
    takes_event,
)
from trellis.kernels.expression.program import MISFIT, TRUE, is_comparison
from trellis.kernels.jit import njit

NEVER = -3  # a term that is known does not hold, whatever the event
UNKNOWN, QUICK, NOWHERE, SLOW = range(4)
"""Kinds of moves: not looked at yet; as this page says; there is none; every event is looked at anew."""
(
    M_KIND, M_BRANCHES, M_BOUND, M_TIES, M_SHAPE, M_LIVE, M_WHOLE, M_ASKED, M_KNOWN, M_LAST, M_FIXED, M_PLAIN, M_LEAN,
    M_TERMS,
) = range(14)  # fmt: skip
"""Numbers of a move: its kind; what the match is then, which registers are needed then, as bits, and whether it may end
there; how many terms an event must meet, how many are known with it, and how many are asked of a match that ends;
whether it does not depend on the event what comes of it, whether there are no sets and all terms compare columns, and
whether besides all that is asked compares the event with others. The terms follow, with room for all of them three
times; then what each compares that is asked, see `sides_of`."""


class Moves(NamedTuple):
    """The shapes that were met, as lists (see `lists`), and their moves.

    Attributes
    ----------
    values, ends, table, at, used
        The shapes.
    rows
        int64 (shapes * variables * 2, numbers): the moves, by whether the event has the time of the last one.
    coming
        The variables that may come next in each shape, as bits.
    shape, resolved, made
        Room for a shape that is being made, for terms that are resolved, and for the move of each variable.
    """

    values: np.ndarray  # int64 (shapes * numbers,)
    ends: np.ndarray  # int64 (shapes,)
    table: np.ndarray  # int32 (4 * shapes,)
    at: np.ndarray  # int64 (shapes,)
    used: np.ndarray  # int64 (1,)
    rows: np.ndarray
    coming: np.ndarray  # int64 (shapes,)
    shape: np.ndarray  # int64 (numbers,)
    resolved: np.ndarray  # int64 (1, 3 * MOST_TERMS)
    made: np.ndarray  # int64 (variables,)


def make_moves(shapes: int, width: int, variables: int, terms: int) -> Moves:
    """Return room for some shapes, a power of two, of matches of some numbers."""
    return Moves(
        np.empty(shapes * width, np.int64), np.zeros(shapes, np.int64), np.zeros(4 * shapes, np.int32),
        np.empty(shapes, np.int64), np.zeros(1, np.int64),
        np.zeros((shapes * variables * 2, M_TERMS + 7 * terms), np.int64), np.empty(shapes, np.int64),
        np.empty(width, np.int64), np.empty((1, 3 * MOST_TERMS), np.int64), np.empty(variables, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def refresh(tables, lists, moves):
    """Forget lists, and moves with them, if they fill much of their room."""
    used = lists.used[0]
    if not used or 2 * used >= lists.ends.shape[0] or 2 * lists.ends[used - 1] >= lists.values.shape[0]:
        renew(tables, lists, moves)


@njit(cache=True, nogil=True, _nrt=False)
def renew(tables, lists, moves):
    """Forget lists, and moves with them."""
    clear(lists)
    for i in range(moves.used[0] * tables[t.VARIABLES] * 2):
        moves.rows[i, M_KIND] = UNKNOWN
    clear(moves)


@njit(cache=True, nogil=True, _nrt=False)
def has_moves(tables):
    """Return whether matches of a shape share their moves."""
    asks = tables[t.GROUPS] and tables[t.TERMS]
    return not tables[t.NOTS] and not tables[t.GREEDY] and tables[t.STEPS] == 1 and not asks


@njit(cache=True, nogil=True, _nrt=False)
def begins_anew(tables, variable):
    """Return whether a letter begins an iteration of which something is asked: see `begin_iteration`."""
    return t.at(tables, t.L_GROUPS, variable) != 0 and not has_moves(tables)


@njit(cache=True, nogil=True, _nrt=False)
def shape_of(tables, lists, moves, row):
    """Return the number of a match's shape, or `FULL`."""
    shape = moves.shape
    for i in range(SLOTS):
        shape[i] = 0
    shape[VARIABLE] = 1 if row[VARIABLE] < 0 else 0
    shape[BRANCHES], shape[BOUND], shape[TIES] = row[BRANCHES], row[BOUND], row[TIES]
    for i in range(SLOTS, row.shape[0]):
        shape[i] = t.NONE if row[i] == t.NONE else 0
    for r in range(t.at(tables, t.R_BEGINS, tables[t.VARIABLES])):
        kind, slot = t.at(tables, t.R_KIND, r), SLOTS + t.at(tables, t.R_SLOT, r)
        if kind == t.COUNT:
            shape[slot] = row[slot]
        elif kind >= t.TALLY:  # of sums any number is a value, so that it does not tell whether they are needed
            shape[slot] = 0
    known = moves.used[0]
    number = keep(moves, shape, row.shape[0])
    if number == known:
        moves.coming[number] = coming_of(tables, lists, row)
    return number


@njit(cache=True, nogil=True, _nrt=False)
def coming_of(tables, lists, row):
    """Return the variables that may come next, as bits."""
    coming = np.int64(0)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        coming |= t.at(tables, t.A_NEXT, lists.values[b])
    return coming


# --- Moves ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def resolve_known(
    tables, columns, programs, lists, scratch, moves, move, row, variable, resolved, place, number
):  # fmt: skip
    """Write the terms that are known by a move behind `number` others, as `resolve` does; return how many there are.

    Those that do not depend on the event are asked at once: `NEVER` if one does not hold. It is `UNRESOLVED` if one of
    the others does not compare the event that is taken with one that is remembered.
    """
    code, rows, terms = programs.code, moves.rows, tables[t.TERMS]
    for i in range(rows[move, M_KNOWN]):
        term, here = rows[move, M_TERMS + terms + i], place + 3 * number
        p, first, news = code[term], t.at(tables, t.T_BEGINS, term), 0
        for r in range(first, t.at(tables, t.T_BEGINS, term + 1)):
            news |= takes_event(tables, row, variable, t.at(tables, t.T_SLOT, r))
        if news == 0:
            answer = holds(tables, columns, programs, lists, scratch, term, row, NO_ONE, NO_ONE)
            if answer != TRUE:
                return UNRESOLVED if answer == MISFIT else NEVER
            continue
        if number == MOST_TERMS or not is_plain(tables, code, term, 0):
            return UNRESOLVED
        news = 0
        for side in range(2):
            r = first + code[p + 3 + 2 * side]
            slot = t.at(tables, t.T_SLOT, r)
            is_new = takes_event(tables, row, variable, slot)
            if is_new < 0 or t.at(tables, t.T_KIND, r) >= t.OF_WHOLE:
                return UNRESOLVED
            if is_new:
                news += 1
            else:
                note_other(programs, p, side, row[SLOTS + slot], resolved, here)
        if news != 1:
            return UNRESOLVED
        number += 1
    return number


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def move_of(tables, columns, programs, lists, scratch, moves, shape, row, variable, same, event, due, after):
    """Return the move of a match by a variable, which is found if it is not known; or `NO_ROOM`.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves
        What the exploration goes by, and works in.
    shape, row
        The number of the match's shape, and the match.
    variable, same, event
        The variable that takes an event, whether that has the time of the last one, and some such event.
    due, after
        Room for terms, and for a match.
    """
    move = (shape * tables[t.VARIABLES] + variable) * 2 + same
    if moves.rows[move, M_KIND] == UNKNOWN:
        kind = find_move(tables, columns, programs, lists, scratch, moves, move, row, variable, same, event, due, after)
        if kind < 0:
            return NO_ROOM
    return move


@njit(cache=True, nogil=True, _nrt=False)
def find_move(tables, columns, programs, lists, scratch, moves, move, row, variable, same, event, due, after):
    """Write a move that is not known yet; return its kind, or `NO_ROOM`. See `move_of`."""
    kind = _find(tables, columns, programs, lists, scratch, moves, move, row, variable, same, event, due, after)
    if kind >= 0:
        moves.rows[move, M_KIND] = kind
    return kind


@njit(cache=True, nogil=True, _nrt=False)
def _find(tables, columns, programs, lists, scratch, moves, move, row, variable, same, event, due, after):
    """Write a move; return its kind, or `NO_ROOM`."""
    rows = moves.rows
    open_of(tables, lists, scratch, row)
    rows[move, M_ASKED] = asked_terms(tables, scratch, row, variable, due)
    for i in range(rows[move, M_ASKED]):
        rows[move, M_TERMS + i] = due[i]
    rows[move, M_LEAN] = _note_sides(tables, programs.code, rows, move, row, variable)
    for i in range(row.shape[0]):
        after[i] = row[i]
    after[BOUND] = 0 if tables[t.GROUPS] else row[BOUND] | (1 << variable)
    _note_registers(tables, columns, programs, after, variable, event, row[BOUND])
    size, rows[move, M_KNOWN] = np.int64(0), -1
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        state = lists.values[b]
        for k in range(t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)):
            if t.at(tables, t.A_VARIABLE, k) != variable or (same and t.at(tables, t.A_AFTER, k) & row[TIES]):
                continue
            if not _note_known(tables, scratch, rows, move, after, variable, k):
                rows[move, M_LEAN] = 0
                return SLOW  # branches ask different things, or one asks of the events so far
            if size + 2 > scratch.branches.shape[0]:
                return NO_ROOM
            size = insert_branch(scratch.branches, size, t.at(tables, t.A_TARGET, k), 0)
    if size == 0:
        return NOWHERE
    after[BRANCHES] = keep(lists, scratch.branches, size)
    if after[BRANCHES] == FULL:
        return NO_ROOM
    ties = (row[TIES] if same else 0) | (1 << t.at(tables, t.L_BASE, variable))
    live = shorten(tables, columns, programs, lists, scratch, after, size, ties)
    after[VARIABLE] = variable
    rows[move, M_BRANCHES], rows[move, M_BOUND], rows[move, M_TIES] = after[BRANCHES], after[BOUND], after[TIES]
    rows[move, M_LIVE] = live
    rows[move, M_SHAPE] = shape_of(tables, lists, moves, after)
    _note_last(tables, lists, rows, move, after)
    fixed = not (row[VARIABLE] < 0 and tables[t.SPAN])
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind, slot = t.at(tables, t.R_KIND, r), t.at(tables, t.R_SLOT, r)
        if kind >= t.TALLY:  # how many there are depends on no event
            fixed &= kind in (t.TALLY, t.LENGTH) or not live & (1 << slot)
        else:  # the shape tells a count
            fixed &= kind == t.COUNT or after[SLOTS + slot] == t.NONE
    rows[move, M_FIXED] = fixed
    rows[move, M_PLAIN] = _is_all_plain(tables, programs.code, rows, move, variable)
    rows[move, M_LEAN] &= rows[move, M_PLAIN] and rows[move, M_SHAPE] != FULL
    return SLOW if rows[move, M_SHAPE] == FULL else QUICK


@njit(cache=True, nogil=True, _nrt=False)
def _note_sides(tables, code, rows, move, row, variable):
    """Note what is asked of an event as comparisons with events that are remembered; return whether that is all."""
    takes, terms = taken_by(tables, row, variable), tables[t.TERMS]
    for i in range(rows[move, M_ASKED]):
        here = M_TERMS + 3 * terms + 4 * i
        own, operator, slot, column = sides_of(tables, code, rows[move, M_TERMS + i], row, takes)
        if i >= MOST_TERMS or operator == UNRESOLVED:
            return 0
        rows[move, here], rows[move, here + 1], rows[move, here + 2], rows[move, here + 3] = own, operator, slot, column
    return 1


@njit(cache=True, nogil=True, _nrt=False)
def _note_registers(tables, columns, programs, after, variable, event, bound):
    """Change the registers of a variable as far as the shape tells of them: sets only hold something then."""
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        if t.at(tables, t.R_KIND, r) in (t.SET, t.PAIRS) and not bound & (1 << variable):
            after[SLOTS + t.at(tables, t.R_SLOT, r)] = 0
    views = t.at(tables, t.L_VIEWS, variable)
    remember_plainly(
        tables, columns, programs.code, programs.ints, programs.there, after, variable, event, bound, views
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def _note_known(tables, scratch, rows, move, after, variable, transition):
    """Note the terms that waited for an event and are known by a transition; False if another one knows others.

    It is so as well if one speaks of the events of the variable so far.
    """
    terms, bound = tables[t.TERMS], after[BOUND]
    open_ = t.at(tables, t.A_OPEN, t.at(tables, t.A_TARGET, transition))
    is_first, number = rows[move, M_KNOWN] < 0, 0
    for term in range(terms):
        if (
            t.at(tables, t.T_LATE, term)
            and not t.at(tables, t.T_VARIABLES, term) & ~bound
            and not scratch.decided[term]
            and is_decided(tables, term, open_, bound, after)
        ):
            if t.at(tables, t.T_SO_FAR, term) & (1 << variable):
                return False
            if is_first:
                rows[move, M_TERMS + terms + number] = term
            elif number >= rows[move, M_KNOWN] or rows[move, M_TERMS + terms + number] != term:
                return False
            number += 1
    if is_first:
        rows[move, M_KNOWN] = number
    return number == rows[move, M_KNOWN]


@njit(cache=True, nogil=True, _nrt=False)
def _note_last(tables, lists, rows, move, after):
    """Note whether a match may end after a move, and the terms that are asked then."""
    terms, open_, number = tables[t.TERMS], np.int64(0), 0
    rows[move, M_WHOLE] = 0
    begin = lists.ends[after[BRANCHES] - 1] if after[BRANCHES] else 0
    for b in range(begin, lists.ends[after[BRANCHES]], 2):
        state = lists.values[b]
        open_ |= t.at(tables, t.A_OPEN, state)
        if t.at(tables, t.A_WAY_BEGINS, state + 1) > t.at(tables, t.A_WAY_BEGINS, state):
            rows[move, M_WHOLE] = 1
    for term in range(terms if rows[move, M_WHOLE] else 0):
        if (
            t.at(tables, t.T_LATE, term)
            and not t.at(tables, t.T_VARIABLES, term) & ~after[BOUND]
            and not is_decided(tables, term, open_, after[BOUND], after)
        ):
            rows[move, M_TERMS + 2 * terms + number] = term
            number += 1
    rows[move, M_LAST] = number


@njit(cache=True, nogil=True, _nrt=False)
def _is_all_plain(tables, code, rows, move, variable):
    """Return whether a move changes no set and no sum that is needed, and its terms compare columns."""
    plain, terms, live = tables[t.RESULTS] == 0, tables[t.TERMS], rows[move, M_LIVE]
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        kind = t.at(tables, t.R_KIND, r)
        is_needed = live & (1 << t.at(tables, t.R_SLOT, r)) != 0
        if is_needed:
            plain &= kind not in (t.SET, t.PAIRS, t.SUM, t.EXACT_SUM)
        if kind == t.MET:  # the terms of the move may ask for it, if nothing behind does
            plain &= is_comparison(code, t.at(tables, t.R_NTH, r))
    for i in range(rows[move, M_KNOWN]):
        plain &= is_plain(tables, code, rows[move, M_TERMS + terms + i], 0)
    for i in range(rows[move, M_LAST]):
        plain &= is_plain(tables, code, rows[move, M_TERMS + 2 * terms + i], 0)
    return plain


@njit(cache=True, nogil=True, _nrt=False)
def make_plainly(tables, columns, code, ints, there, rows, move, row, variable, event, hi, after):
    """Do what `make_move` does, by a move that is plain; return whether its terms hold.

    Parameters
    ----------
    tables, columns
        What the exploration goes by.
    code, ints, there
        Those of the programs.
    rows, move
        The moves, and the number of one.
    row, variable, event
        The match, the variable and the event that it takes.
    hi, after
        The end of the group, and room for the match.
    """
    for i in range(after.shape[0]):
        after[i] = row[i]
    if after[VARIABLE] < 0:
        after[END] = min(columns[t.UNTIL_ROW, event], hi) if tables[t.SPAN] else hi
    after[EVENT], after[VARIABLE] = event, variable
    views = t.at(tables, t.L_VIEWS, variable)
    remember_plainly(tables, columns, code, ints, there, after, variable, event, after[BOUND], views)
    first = M_TERMS + tables[t.TERMS]
    for i in range(first, first + rows[move, M_KNOWN]):
        if not holds_plainly(tables, code, ints, there, rows[move, i], after):
            return False
    live = rows[move, M_LIVE]
    for slot in range(after.shape[0] - SLOTS):
        if not live & (1 << slot):
            after[SLOTS + slot] = t.NONE
    after[BRANCHES], after[BOUND], after[TIES] = rows[move, M_BRANCHES], rows[move, M_BOUND], rows[move, M_TIES]
    return True


@njit(cache=True, nogil=True, _nrt=False)
def ends_plainly(tables, code, ints, there, rows, move, row):
    """Do what `ends_here` does, by a move that is plain: return 1 or 0."""
    first = M_TERMS + 2 * tables[t.TERMS]
    for i in range(first, first + rows[move, M_LAST]):
        if not holds_plainly(tables, code, ints, there, rows[move, i], row):
            return np.int64(0)
    return rows[move, M_WHOLE]


@njit(cache=True, nogil=True, _nrt=False)
def terms_of(moves, move, due):
    """Write the terms that an event must meet for a move; return how many."""
    number = moves.rows[move, M_ASKED]
    for i in range(number):
        due[i] = moves.rows[move, M_TERMS + i]
    return number


@njit(cache=True, nogil=True, _nrt=False)
def make_move(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, after):
    """Write the match `after` a match takes an event that meets the terms; return `HOLDS`, or what went wrong.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves
        What the exploration goes by, and works in.
    move, row, variable, event
        The number of the move, the match, the variable and the event that it takes.
    hi, after
        The end of the group, and room for the match.
    """
    rows = moves.rows
    for i in range(row.shape[0]):
        after[i] = row[i]
    after[EVENT], after[VARIABLE], after[BOUND] = event, variable, row[BOUND] | (1 << variable)
    if row[VARIABLE] < 0:
        after[END] = min(columns[t.UNTIL_ROW, event], hi) if tables[t.SPAN] else hi
    status = remember(
        tables, columns, programs, lists, scratch, after, variable, event, row[BOUND],
        t.at(tables, t.L_VIEWS, variable),
    )  # fmt: skip
    if status < 0:
        return status
    first = M_TERMS + tables[t.TERMS]
    for i in range(first, first + rows[move, M_KNOWN]):
        answer = holds(tables, columns, programs, lists, scratch, rows[move, i], after, NO_ONE, NO_ONE)
        if answer != TRUE:
            return TROUBLE if answer == MISFIT else FAILS
    live = rows[move, M_LIVE]
    for slot in range(row.shape[0] - SLOTS):
        if not live & (1 << slot):
            after[SLOTS + slot] = t.NONE
    after[BRANCHES], after[BOUND], after[TIES] = rows[move, M_BRANCHES], rows[move, M_BOUND], rows[move, M_TIES]
    return HOLDS


@njit(cache=True, nogil=True, _nrt=False)
def ends_here(tables, columns, programs, lists, scratch, moves, move, row):
    """Return whether a match may end after a move: `HOLDS`, `FAILS` or `TROUBLE`."""
    rows = moves.rows
    if not rows[move, M_WHOLE]:
        return FAILS
    first = M_TERMS + 2 * tables[t.TERMS]
    for i in range(first, first + rows[move, M_LAST]):
        answer = holds(tables, columns, programs, lists, scratch, rows[move, i], row, NO_ONE, NO_ONE)
        if answer != TRUE:
            return TROUBLE if answer == MISFIT else FAILS
    return HOLDS
