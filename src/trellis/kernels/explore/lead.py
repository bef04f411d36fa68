"""The class that a class of matches so far leads to with one more event, and whether its matches are whole then."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.bars import UNTRACKED, extremes_apart, guards_of, is_barred, is_steady, kept_event
from trellis.kernels.explore.classes import (
    ALL,
    CHANGING,
    EXTREMES,
    FAILED,
    GUARDED,
    KNOWN,
    LEAD,
    LEARNT,
    NEXT,
    NO_CLASSES,
    NOT_YET,
    NUMBER,
    POOL,
    POOLS,
    RESOLVED,
    SHAPE,
    STUCK,
    UNKNOWN,
    UNMADE,
    UNTILED,
    WAY,
    WHOLE,
    forget_last,
    known_class,
    make_class,
)
from trellis.kernels.explore.iterations import begin_iteration
from trellis.kernels.explore.lists import FULL, is_row
from trellis.kernels.explore.matches import (
    BOUND,
    EVENT,
    FAILS,
    HOLDS,
    SLOTS,
    TRACKED,
    TROUBLE,
    VARIABLE,
)
from trellis.kernels.explore.moves import (
    M_FIXED,
    M_KIND,
    M_PLAIN,
    M_SHAPE,
    NEVER,
    NOWHERE,
    SLOW,
    begins_anew,
    ends_here,
    ends_plainly,
    has_moves,
    make_move,
    make_plainly,
    move_of,
    resolve_known,
    shape_of,
    terms_of,
)
from trellis.kernels.explore.progress import is_complete, is_result, open_views, step
from trellis.kernels.explore.terms import UNRESOLVED, asked_terms, meets, open_of, passes_all, resolve, written_of
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def _pool(tables, lists, moves, classes, one, variable, row):
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
    pool = make_class(tables, lists, classes, row, shape_of(tables, lists, moves, row))
    if pool >= 0:
        classes.states[pool, NEXT] = 1 << variable
        classes.states[one, NEXT] &= ~(1 << variable)
        classes.ways[one, variable * WAY + POOL] = pool + 1
        classes.sizes[POOLS] = 1
    return pool


@njit(cache=True, nogil=True, _nrt=False)
def _find_class(tables, lists, moves, classes, fresh, shape, pooled):
    """Return the class of a match, with those that stand for it if they are pooled; or what there is no room for."""
    known = classes.sizes[ALL]
    target = make_class(tables, lists, classes, fresh, shape)
    if pooled and target >= known:
        for v in range(tables[t.VARIABLES]):
            if (
                classes.states[target, NEXT] & (1 << v)
                and _pool(tables, lists, moves, classes, target, v, fresh) == NO_CLASSES
            ):
                return np.int64(NO_CLASSES)
    return target


@njit(cache=True, nogil=True, _nrt=False)
def _lead(
    tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo, hi, pooled
):
    """Find out the class that a class leads to with an event that meets the terms that are resolved; see `follow`."""
    way = variable * WAY
    number, lead = classes.ways[one, way + NUMBER], classes.ways[one, way + LEAD]
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    if begins_anew(tables, variable):
        answer = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
        if answer <= FAILS:
            return _failed(answer)
        for i in range(row.shape[0]):
            row[i] = scratch.begun[i]
    shape, move = classes.states[one, SHAPE], np.int64(-1)
    if shape >= 0:
        move = move_of(tables, columns, programs, lists, scratch, moves, shape, row, variable, 0, event, due, fresh)
        if move < 0:
            return move
        kind = moves.rows[move, M_KIND]
        if kind == NOWHERE:
            _stick(classes, one, way)
            return np.int64(FAILED)
        if kind == SLOW:
            move = np.int64(-1)
    open_ = open_of(tables, lists, scratch, row) if move < 0 else np.int64(0)
    if number < 0:
        asks = terms_of(moves, move, due) if move >= 0 else asked_terms(tables, scratch, row, variable, due)
        if number == NOT_YET:
            number = resolve(tables, programs, row, variable, due, asks, classes.ways[one], way + RESOLVED)
            if number >= 0 and move >= 0:
                all_terms = resolve_known(
                    tables, columns, programs, lists, scratch, moves, move, row, variable, classes.ways[one],
                    way + RESOLVED, number,
                )  # fmt: skip
                if all_terms == NEVER:
                    _stick(classes, one, way)
                    return np.int64(FAILED)
                classes.ways[one, way + KNOWN] = all_terms != UNRESOLVED
                number = number if all_terms == UNRESOLVED else all_terms
            classes.ways[one, way + NUMBER], classes.states[one, LEARNT] = number, 1
        answer = meets(tables, columns, programs, lists, scratch, row, variable, event, due, asks)
        if answer <= FAILS:
            return _failed(answer)
    if move < 0:
        answer = step(
            tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, t.EVERY_STEP, False, fresh
        )
        if answer <= FAILS:
            forbids = answer == FAILS and tables[t.NOTS] and not tables[t.GROUPS]
            if forbids and row[EVENT] <= TRACKED:
                if is_steady(tables, lists, row, variable):
                    _stick(classes, one, way)
            elif forbids and is_barred(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi):
                _stick(classes, one, way)
            return _failed(answer)
        whole = is_complete(tables, columns, programs, lists, scratch, fresh, lo, hi)
        shape = shape_of(tables, lists, moves, fresh) if has_moves(tables) else np.int64(FULL)
    else:
        answer = make_move(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, fresh)
        if answer <= FAILS:
            return _failed(answer)
        whole = ends_here(tables, columns, programs, lists, scratch, moves, move, fresh)
        shape = moves.rows[move, M_SHAPE]
    if whole == HOLDS:
        whole = is_result(tables, columns, programs, lists, scratch, fresh)
    if whole == TROUBLE:
        return TROUBLE
    nots, untils = np.int64(UNTRACKED), np.int64(0)
    if tables[t.NOTS] and not tables[t.GROUPS]:
        nots, untils = guards_of(tables, lists, fresh, open_views(tables, lists, fresh))
    if nots == UNTRACKED:
        fresh[EVENT] = kept_event(tables, columns, lists, fresh, event, lo)
    else:
        fresh[EVENT] = TRACKED if nots | untils else t.NONE
    forget_last(tables, fresh, variable)
    target = _find_class(tables, lists, moves, classes, fresh, shape, pooled)
    if target < 0:
        return target
    classes.ways[one, way + WHOLE] = whole == HOLDS
    if nots != UNTRACKED:
        classes.states[target, GUARDED], classes.states[target, UNTILED] = nots, untils
        if move < 0 and lead == UNKNOWN and number >= 0 and is_steady(tables, lists, row, variable):
            apart = extremes_apart(tables, lists, fresh, variable)
            alike = EXTREMES - target if apart == 1 else np.int64(CHANGING)
            classes.ways[one, way + LEAD] = target + 1 if apart == 0 else alike
    if move >= 0 and lead == UNKNOWN:
        fixed = moves.rows[move, M_FIXED] and number >= 0 and classes.ways[one, way + KNOWN]
        classes.ways[one, way + LEAD] = target + 1 if fixed else CHANGING
    if move >= 0:
        classes.memo[move] = target + 1
    return target


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _stick(classes, one, way):
    """Note that a class takes no event of a variable."""
    classes.ways[one, way + LEAD], classes.states[one, LEARNT] = STUCK, 1


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _failed(answer):
    """Return `FAILED` for a match that fails, or what went wrong."""
    return np.int64(FAILED if answer == FAILS else answer)


@njit(cache=True, nogil=True, _nrt=False)
def _quickly(tables, columns, code, ints, there, moves, classes, one, fresh, variable, event, hi):
    """Return the class that a class leads to by a plain move, `NOWHERE`, or `UNKNOWN` if it must be found out.

    Where it is a class, `WHOLE` of the variable tells whether the match is whole.
    """
    shape = classes.states[one, SHAPE]
    move = (shape * tables[t.VARIABLES] + variable) * 2
    if shape < 0 or not moves[move, M_PLAIN]:
        return np.int64(UNMADE)
    target = np.int64(classes.memo[move]) - 1
    if target < 0:
        return np.int64(UNMADE)
    if not make_plainly(tables, columns, code, ints, there, moves, move, classes.rows[one], variable, event, hi, fresh):
        return np.int64(FAILED)
    classes.ways[one, variable * WAY + WHOLE] = ends_plainly(tables, code, ints, there, moves, move, fresh)
    fresh[EVENT] = t.NONE
    forget_last(tables, fresh, variable)
    if not is_row(classes.rows, target, fresh):
        target = known_class(classes.rows, classes.table, fresh)
        if target < 0:
            return np.int64(UNMADE)
        classes.memo[move] = target + 1
    return target


@njit(cache=True, nogil=True, _nrt=False)
def _with_extreme(tables, columns, classes, one, target, fresh, variable, event):
    """Return the class that a class leads to with an event, where the extreme value alone tells it from a `target`."""
    for r in range(t.at(tables, t.R_BEGINS, variable), t.at(tables, t.R_BEGINS, variable + 1)):
        at = SLOTS + t.at(tables, t.R_SLOT, r)
        if t.at(tables, t.R_KIND, r) != t.EXTREME or classes.rows[target, at] < 0:
            continue
        own = columns[tables[t.R_ALIKE] + r, event]
        if classes.rows[one, BOUND] & (1 << t.at(tables, t.R_VIEW, r)):
            known, codes = classes.rows[one, at], tables[t.R_CODES] + r
            if known < 0:
                return np.int64(UNMADE)
            own = own if columns[codes, own] > columns[codes, known] else known
        if classes.rows[target, at] == own:
            return np.int64(target)
        for i in range(fresh.shape[0]):
            fresh[i] = classes.rows[target, i]
        fresh[at] = own
        found = known_class(classes.rows, classes.table, fresh)
        return np.int64(found if found >= 0 else UNMADE)
    return np.int64(UNMADE)


@njit(cache=True, nogil=True, _nrt=False)
def follow(
    tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo, hi, pooled
):
    """Return the class that a class leads to with an event; `FAILED` if it cannot take it, or what went wrong.

    Where it is a class, `WHOLE` of the variable tells whether the match is whole.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, classes
        What the exploration goes by, and works in.
    one, variable, event
        The class, and the variable that takes the event.
    row, fresh, due
        Room for matches and terms.
    lo, hi
        The group.
    pooled
        Whether classes that differ in what an event overwrites take it together; see `POOL`.
    """
    ways, ints, there, way = classes.ways, programs.ints, programs.there, variable * WAY
    number, lead = ways[one, way + NUMBER], ways[one, way + LEAD]
    if lead == STUCK or not passes_all(ints, there, ways, one, way + RESOLVED, written_of(number), event):
        return np.int64(FAILED)
    target = lead - 1
    if number < 0 or lead == UNKNOWN:
        target = np.int64(UNMADE)
    elif lead == CHANGING:
        target = _quickly(
            tables, columns, programs.code, ints, there, moves.rows, classes, one, fresh, variable, event, hi
        )
    elif lead <= EXTREMES:
        target = _with_extreme(tables, columns, classes, one, EXTREMES - lead, fresh, variable, event)
    if target != UNMADE:
        return target
    return _lead(
        tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo, hi, pooled
    )
