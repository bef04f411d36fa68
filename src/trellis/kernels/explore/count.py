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
from trellis.kernels.explore.bars import bar
from trellis.kernels.explore.classes import (
    BESIDE,
    BEST,
    FAILED,
    GUARDED,
    KEYS,
    LEARNT,
    LIMBS,
    LIVE,
    LIVING,
    NEXT,
    NO_LIMBS,
    PLACE,
    POOLS,
    TAKEN,
    UNTILED,
    WAY,
    WHOLE,
    add,
    enliven,
    give,
    give_pools,
    leave_out,
    make_class,
    settle,
    take_amount,
)
from trellis.kernels.explore.easier import is_as_easy
from trellis.kernels.explore.ends import is_followed
from trellis.kernels.explore.graph import begin_row
from trellis.kernels.explore.keys import forget_classes, wait, waiting
from trellis.kernels.explore.lead import follow
from trellis.kernels.explore.lists import FULL
from trellis.kernels.explore.matches import END, SPENT
from trellis.kernels.explore.moves import has_moves, refresh, shape_of
from trellis.kernels.explore.starts import NONE_YET, NOT_ALIKE, has_none, let_give, note_longer, note_value
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def _take_all(
    tables, columns, programs, lists, scratch, moves, classes, starts, start, row, fresh, due, event, alone, chosen,
    totals, group, lo, hi, every,
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
        begun = follow(
            tables, columns, programs, lists, scratch, moves, classes, start, row, fresh, due, letter, event, lo, hi,
            True,
        )  # fmt: skip
        if begun < 0 and begun != FAILED:
            return begun
    counts = not starts.alone or event >= starts.covers[lo]
    live, waits, key, keys = sizes[LIVE] if usable else 0, np.int64(-1), 0, sizes[KEYS] if usable else 0
    while waits >= 0 or key < keys or live:
        is_live = waits < 0 and key == keys
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
        if tables[t.ALONE] and has_none(classes, one):  # what it had is barred now
            continue
        states[one, TAKEN], has_given = alone, False
        for variable in range(tables[t.VARIABLES]):
            if not some & (1 << variable):
                continue
            way = variable * WAY
            target = follow(
                tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo,
                hi, True,
            )  # fmt: skip
            if target == FAILED:
                continue
            if target < 0:
                return target
            if begun >= 0 and variable == letter and one != start:
                same = same or is_as_easy(tables, columns, programs, lists, starts.ease, classes.rows, target, begun)
                other = not same
            if not has_given:
                take_amount(classes, one)
                has_given = True
            let_give(classes, starts, one, start, variable, event)
            if ways[one, way + WHOLE] and counts and sizes[BEST]:
                note_value(classes, starts, variable, event, totals, group)
            elif ways[one, way + WHOLE] and counts:
                goes_on = np.int64(0)
                if not every:
                    goes_on = is_followed(
                        tables, columns, programs, lists, scratch, moves, classes, target, row, fresh, due,
                        columns[t.SAME_ROW, event], lo, hi, True,
                    )  # fmt: skip
                    if goes_on < 0:
                        return goes_on
                if not goes_on and not add(totals, group, classes.amount, sizes):
                    return NO_LIMBS
            fits = give(classes.counts, classes.fresh, classes.amount, states, sizes, target, alone)
            if sizes[POOLS]:
                fits &= give_pools(classes, target, alone)
            if not fits:
                return NO_LIMBS
        if is_live and states[one, LEARNT] and not tables[t.NOTS] and wait(classes, one, tables[t.VARIABLES]):
            sizes[LIVE] -= 1
            states[live, LIVING] = states[sizes[LIVE], LIVING]
    if scratch.left[0] < 0:
        return SPENT
    return note_longer(starts, same, other, event, hi)


@njit(cache=True, nogil=True, _nrt=False)
def _count_group(
    tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, lo, hi, chosen, totals, group,
    every,
):  # fmt: skip
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
            classes.sizes[PLACE] = e
            if tables[t.ALONE]:
                status = bar(tables, columns, programs, lists, scratch, classes, row, e, UNTILED)
                if status < 0:
                    return status
            status = _take_all(
                tables, columns, programs, lists, scratch, moves, classes, starts, start, row, fresh, due, e,
                e + 1 if end == event + 1 and not tables[t.ALONE] else 0, chosen, totals, group, lo, hi, every,
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
    return 0


@njit(cache=True, nogil=True, branching=True)
def count_groups(
    tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, groups_lo, groups_hi, first,
    last, chosen, totals, every,
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
    every
        Whether all whole matches count, or those alone that nothing can be put after.
    """
    for group in range(first, last):
        status = _count_group(
            tables, columns, programs, lists, scratch, moves, classes, starts, row, fresh, due, groups_lo[group],
            groups_hi[group], chosen, totals, group, every,
        )  # fmt: skip
        forget_classes(classes, moves)
        if status < 0:
            for k in range(totals.shape[1]):
                totals[group, k] = 0
            return status, group
    return 0, last
