"""Numbers of matches without their graph: they are carried forward by what their rest depends on.

A class is all matches so far with the same rest: a row as in `matches`, without the last event; if a NOT of the next
step asks for its time, with what was forbidden since (see `bars`), or one behind which as much is forbidden. Where
neither a register of the variable nor a NOT depends on the event that a class takes, the class that it leads to is
found once. Only for skip-till-any, and patterns without AND. `ends` says which matches count. Numbers are exact, in
limbs of 64 bits.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.bars import UNTRACKED, bar, guards_of, is_barred, is_steady, kept_event, leads_alike
from trellis.kernels.explore.classes import (
    ALL,
    ASKED,
    BESIDE,
    BEST,
    CHANGING,
    FAILED,
    GUARDED,
    HELD,
    KEYS,
    KNOWN,
    LEAD,
    LIMBS,
    LIVE,
    LIVING,
    MOST,
    NEXT,
    NO_CLASSES,
    NO_LIMBS,
    NOT_YET,
    NOTES,
    NUMBER,
    POOL,
    POOLS,
    RESOLVED,
    SHAPE,
    STUCK,
    TAKEN,
    TARGET,
    TOUCHED,
    UNKNOWN,
    UNMADE,
    UNTILED,
    WAY,
    WHOLE,
    enliven,
    forget_last,
    give,
    give_pools,
    known_class,
    leave_out,
    make_class,
    settle,
)
from trellis.kernels.explore.ends import count_ends
from trellis.kernels.explore.graph import begin_row
from trellis.kernels.explore.iterations import begin_iteration
from trellis.kernels.explore.keys import forget_keys, wait, waiting
from trellis.kernels.explore.lists import FULL, is_row
from trellis.kernels.explore.matches import (
    BOUND,
    END,
    EVENT,
    FAILS,
    HOLDS,
    SLOTS,
    SPENT,
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
    refresh,
    resolve_known,
    shape_of,
    terms_of,
)
from trellis.kernels.explore.progress import is_complete, is_result, open_views, step
from trellis.kernels.explore.starts import NONE_YET, NOT_ALIKE, go_on_from, has_none, is_as_easy, let_give, note_longer
from trellis.kernels.explore.terms import UNRESOLVED, asked_terms, meets, open_of, passes_all, resolve
from trellis.kernels.jit import njit

# --- Classes that take events -----------------------------------------------------------------------------------


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
def _find_class(tables, lists, moves, classes, fresh, shape):
    """Return the class of a match, with those that stand for it; or what there is no room for."""
    known = classes.sizes[ALL]
    target = make_class(tables, lists, classes, fresh, shape)
    if target >= known:
        for v in range(tables[t.VARIABLES]):
            if (
                classes.states[target, NEXT] & (1 << v)
                and _pool(tables, lists, moves, classes, target, v, fresh) == NO_CLASSES
            ):
                return np.int64(NO_CLASSES)
    return target


@njit(cache=True, nogil=True, _nrt=False)
def _take(
    tables, columns, programs, lists, scratch, moves, classes, starts, one, row, fresh, due, variable, event, alone,
    totals, group, lo, hi,
):  # fmt: skip
    """Let the matches of a class take an event that meets the terms that are resolved; return 0, or what went wrong."""
    way = variable * WAY
    number, lead = classes.ways[one, way + NUMBER], classes.ways[one, way + LEAD]
    for i in range(row.shape[0]):
        row[i] = classes.rows[one, i]
    if begins_anew(tables, variable):
        answer = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
        if answer <= FAILS:
            return answer
        for i in range(row.shape[0]):
            row[i] = scratch.begun[i]
    shape, move = classes.states[one, SHAPE], np.int64(-1)
    if shape >= 0:
        move = move_of(tables, columns, programs, lists, scratch, moves, shape, row, variable, 0, event, due, fresh)
        if move < 0:
            return move
        kind = moves.rows[move, M_KIND]
        if kind == NOWHERE:
            classes.ways[one, way + LEAD] = STUCK
            return 0
        if kind == SLOW:
            move = np.int64(-1)
    open_ = open_of(tables, lists, scratch, row) if move < 0 else np.int64(0)
    if number < 0:
        asks = terms_of(moves, move, due) if move >= 0 else asked_terms(tables, scratch, row, variable, due)
        if number == NOT_YET:
            number = resolve(tables, programs, row, variable, due, asks, classes.ways[one], way + RESOLVED)
            if number != UNRESOLVED and move >= 0:
                all_terms = resolve_known(
                    tables, columns, programs, lists, scratch, moves, move, row, variable, classes.ways[one],
                    way + RESOLVED, number,
                )  # fmt: skip
                if all_terms == NEVER:
                    classes.ways[one, way + LEAD] = STUCK
                    return 0
                classes.ways[one, way + KNOWN] = all_terms != UNRESOLVED
                number = number if all_terms == UNRESOLVED else all_terms
            classes.ways[one, way + NUMBER] = number
        answer = meets(tables, columns, programs, lists, scratch, row, variable, event, due, asks)
        if answer <= FAILS:
            return answer
    if move < 0:
        answer = step(
            tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, t.EVERY_STEP, False, fresh
        )
        if answer <= FAILS:
            forbids = answer == FAILS and tables[t.NOTS] and not tables[t.GROUPS]
            if forbids and row[EVENT] <= TRACKED:
                if is_steady(tables, lists, row, variable):
                    classes.ways[one, way + LEAD] = STUCK
            elif forbids and is_barred(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi):
                classes.ways[one, way + LEAD] = STUCK
            return answer
        whole = is_complete(tables, columns, programs, lists, scratch, fresh, lo, hi)
        shape = shape_of(tables, lists, moves, fresh) if has_moves(tables) else np.int64(FULL)
    else:
        answer = make_move(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, fresh)
        if answer <= FAILS:
            return answer
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
    target = _find_class(tables, lists, moves, classes, fresh, shape)
    if target < 0:
        return target
    if nots != UNTRACKED:
        classes.states[target, GUARDED], classes.states[target, UNTILED] = nots, untils
        if move < 0 and lead == UNKNOWN and number >= 0 and is_steady(tables, lists, row, variable):
            alike = leads_alike(tables, lists, fresh, variable)
            classes.ways[one, way + LEAD] = target + 1 if alike else CHANGING
            classes.ways[one, way + WHOLE] = whole == HOLDS
    if move >= 0 and lead == UNKNOWN:
        fixed = moves.rows[move, M_FIXED] and number != UNRESOLVED and classes.ways[one, way + KNOWN]
        classes.ways[one, way + LEAD] = target + 1 if fixed else CHANGING
        classes.ways[one, way + WHOLE] = whole == HOLDS
    if move >= 0:
        classes.memo[move] = target + 1
    classes.sizes[TARGET] = target
    if classes.sizes[ASKED]:
        return 0
    answer = go_on_from(
        classes, starts, one, target, whole == HOLDS, variable, event, columns[t.SAME_ROW, event], totals, group, lo
    )
    if answer < 0:
        return answer
    fits = give(classes.counts, classes.fresh, classes.amount, classes.states, classes.sizes, target, alone)
    return 0 if fits and give_pools(classes, target, alone) else NO_LIMBS


@njit(cache=True, nogil=True, _nrt=False)
def _forget_classes(classes, moves):
    """Empty the classes."""
    for i in range(classes.sizes[ALL]):
        classes.table[classes.at[i]] = 0
    forget_keys(classes)
    for i in range(min(moves.used[0] * classes.ways.shape[1] // WAY * 2, classes.memo.shape[0])):
        classes.memo[i] = 0
    classes.sizes[MOST] = max(classes.sizes[MOST], classes.sizes[ALL])
    classes.sizes[ALL] = classes.sizes[LIVE] = classes.sizes[TOUCHED] = classes.sizes[POOLS] = 0
    classes.sizes[NOTES] = classes.sizes[HELD] = 0


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
def _leads_to(
    tables, columns, programs, lists, scratch, moves, classes, starts, one, row, fresh, due, variable, event, totals,
    group, lo, hi,
):  # fmt: skip
    """Return the class that a class leads to with an event, which is not taken; a negative number if there is none."""
    way, target, status = variable * WAY, np.int64(UNMADE), np.int64(0)
    number, lead = classes.ways[one, way + NUMBER], classes.ways[one, way + LEAD]
    if lead == STUCK or not passes_all(programs.ints, programs.there, classes.ways, one, way + RESOLVED, number, event):
        return status, np.int64(FAILED)
    if number >= 0 and lead > 0:
        target = lead - 1
    elif number >= 0 and lead == CHANGING:
        target = _quickly(
            tables, columns, programs.code, programs.ints, programs.there, moves.rows, classes, one, fresh, variable,
            event, hi,
        )  # fmt: skip
    if target == UNMADE:
        classes.sizes[TARGET], classes.sizes[ASKED] = FAILED, 1
        status = _take(
            tables, columns, programs, lists, scratch, moves, classes, starts, one, row, fresh, due, variable, event,
            0, totals, group, lo, hi,
        )  # fmt: skip
        classes.sizes[ASKED] = 0
        target = classes.sizes[TARGET]
    return np.int64(status), target


@njit(cache=True, nogil=True, _nrt=False)
def _take_all(
    tables, columns, programs, lists, scratch, moves, classes, starts, start, row, fresh, due, event, alone, chosen,
    totals, group, lo, hi,
):  # fmt: skip
    """Let all classes take an event, after those that wait for it the youngest first: others mostly made them."""
    usable = np.int64(0)
    for variable in range(tables[t.VARIABLES]):
        upto = tables[t.E_UPTO] + variable
        if columns[upto, event] != columns[upto, event + 1]:
            usable |= 1 << variable
    states, ways, sizes, ints, there = classes.states, classes.ways, classes.sizes, programs.ints, programs.there
    letter, begun, same, other = starts.letter, np.int64(FAILED), False, False
    if letter >= 0 and usable & (1 << letter) and event > lo:
        status, begun = _leads_to(
            tables, columns, programs, lists, scratch, moves, classes, starts, start, row, fresh, due, letter, event,
            totals, group, lo, hi,
        )  # fmt: skip
        if status < 0:
            return status
    live, waits, key, keys = sizes[LIVE] if usable else 0, np.int64(-1), 0, sizes[KEYS] if usable else 0
    while waits >= 0 or key < keys or live:
        is_live, made = waits < 0 and key == keys, False
        if is_live:
            live -= 1
            one = states[live, LIVING]
        elif waits < 0:
            waits = waiting(classes, ints, there, key, event)
            key += 1
            continue
        else:
            one, waits = waits, states[waits, BESIDE] - 1
            if classes.rows[one, END] <= event:
                continue
        some = states[one, NEXT] & usable
        scratch.left[0] -= 1
        if not some or (one == start and ((chosen.shape[0] and not chosen[event]) or (starts.alone and event != lo))):
            continue
        if has_none(classes, one):  # what it had is barred now
            continue
        states[one, TAKEN] = alone
        for variable in range(tables[t.VARIABLES]):
            if not some & (1 << variable):
                continue
            way = variable * WAY
            number, lead = ways[one, way + NUMBER], ways[one, way + LEAD]
            if lead == STUCK or not passes_all(ints, there, ways, one, way + RESOLVED, number, event):
                continue
            target = lead - 1
            if number < 0 or lead == UNKNOWN:
                target = np.int64(UNMADE)
            elif lead == CHANGING:
                target = _quickly(
                    tables, columns, programs.code, ints, there, moves.rows, classes, one, fresh, variable, event, hi
                )
            if target == FAILED:
                continue
            let_give(classes, starts, one, start, variable, event)
            is_given = target == UNMADE
            if is_given:
                sizes[TARGET] = FAILED
                status = _take(
                    tables, columns, programs, lists, scratch, moves, classes, starts, one, row, fresh, due, variable,
                    event, alone, totals, group, lo, hi,
                )  # fmt: skip
                if status < 0:
                    return status
                made, target = True, sizes[TARGET]
            if begun >= 0 and variable == letter and one != start and target >= 0:
                as_easy = same or target == begun or is_as_easy(classes.rows, columns, starts, begun, target)
                same, other = as_easy, not as_easy
            if is_given:
                continue
            fits = give(classes.counts, classes.fresh, classes.amount, states, sizes, target, alone)
            if sizes[POOLS]:
                fits &= give_pools(classes, target, alone)
            if not fits:
                return NO_LIMBS
            status = go_on_from(
                classes, starts, one, target, ways[one, way + WHOLE] != 0, variable, event, columns[t.SAME_ROW, event],
                totals, group, lo,
            )  # fmt: skip
            if status < 0:
                return status
        if made and is_live and not tables[t.NOTS] and wait(classes, one, tables[t.VARIABLES]):
            sizes[LIVE] -= 1
            states[live, LIVING] = states[sizes[LIVE], LIVING]
    if scratch.left[0] < 0:
        return SPENT
    return note_longer(starts, same, other, event, hi)


@njit(cache=True, nogil=True, _nrt=False)
def _count_group(
    tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, lo, hi, chosen, totals, group
):
    """Add the number of whole matches of a group; return 0, or what went wrong."""
    if starts.alone and starts.others[lo] > starts.covers[lo]:
        return np.int64(NOT_ALIKE)
    refresh(tables, lists, moves)
    begin_row(lists, scratch, row, hi)
    shape = shape_of(tables, lists, moves, row) if has_moves(tables) else np.int64(FULL)
    start = make_class(tables, lists, classes, row, shape)
    classes.counts[start, 0] = NONE_YET if classes.sizes[BEST] else 1
    classes.sizes[LIMBS] = 1
    classes.amount[:] = 0
    enliven(classes.states, classes.sizes, start)
    event = lo
    while event < hi:
        end = min(hi, columns[t.LATER_ROW, event])
        if tables[t.SPAN]:
            leave_out(classes, event)
        for e in range(event, end):
            if tables[t.ALONE]:
                status = bar(tables, columns, programs, lists, scratch, classes, row, e, UNTILED)
                if status < 0:
                    return status
            status = _take_all(
                tables, columns, programs, lists, scratch, moves, classes, starts, start, row, fresh, due, e,
                e + 1 if end == event + 1 and not tables[t.ALONE] else 0, chosen, totals, group, lo, hi,
            )  # fmt: skip
            if status < 0:
                return status
        for e in range(event, end if tables[t.ALONE] else event):
            status = bar(tables, columns, programs, lists, scratch, classes, row, e, GUARDED)
            if status < 0:
                return status
        if not settle(classes):
            return NO_LIMBS
        event = end
    return 0 if count_ends(classes, totals, group) else NO_LIMBS


@njit(cache=True, nogil=True, branching=True)
def count_groups(
    tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, groups_lo, groups_hi, first,
    last, chosen, totals,
):  # fmt: skip
    """Write the numbers of whole matches of the groups from `first` to `last`; return a status, and the group it is of.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due
        What the exploration goes by, and works in; see `CountedStarts`.
    groups_lo, groups_hi, first, last
        The events of the groups, and which of them.
    chosen
        The events at which matches may begin; empty for all.
    totals
        uint64 (groups, limbs): 0 for the groups to be counted.
    """
    for group in range(first, last):
        status = _count_group(
            tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, groups_lo[group],
            groups_hi[group], chosen, totals, group,
        )  # fmt: skip
        _forget_classes(classes, moves)
        if status < 0:
            for k in range(totals.shape[1]):
                totals[group, k] = 0
            return status, group
    return 0, last
