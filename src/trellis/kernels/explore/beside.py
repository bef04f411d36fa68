"""Numbers of matches that nothing can be put before: each is counted beside the longer ones that read the same.

With events put before its first, a match is another match so far, which reads what it reads. Those whose rest is no
easier than another's are left out (see `easier`); where one is as easy as the match itself, something can be put before
whatever comes of it. A *pair* is all matches of one class with the same classes beside them. A whole match counts where
none beside it is whole, and nothing can be put after it (see `ends`).
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.bars import bar_one
from trellis.kernels.explore.classes import (
    ALL,
    FAILED,
    IS_LIVE,
    IS_TOUCHED,
    LIMBS,
    LIVE,
    LIVING,
    MOST,
    NEXT,
    NO_LIMBS,
    NO_PAIRS,
    PLACE,
    TOO_MANY_BESIDE,
    TOUCHED,
    WAY,
    WHOLE,
    add,
    enliven,
    give,
    known_class,
    make_class,
    settle,
)
from trellis.kernels.explore.easier import is_as_easy, keep_easiest
from trellis.kernels.explore.ends import is_followed
from trellis.kernels.explore.graph import begin_row
from trellis.kernels.explore.keys import forget_classes
from trellis.kernels.explore.lead import follow
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import END, NO_ROOM, SPENT
from trellis.kernels.explore.moves import has_moves, refresh, shape_of
from trellis.kernels.jit import njit

PASSED = -5  # one beside a match goes on as easily: it is no result, whatever comes
OWN, BESIDE = range(2)  # numbers of a pair: the class, and the list of those beside it


@njit(cache=True, nogil=True, _nrt=False)
def _pair_of(pairs, own, beside):
    """Return the pair of a class and a list of others, which is made if there is none; or `NO_PAIRS`."""
    rows, table, states, sizes = pairs.rows, pairs.table, pairs.states, pairs.sizes
    couple = pairs.stack[0, :2]
    couple[OWN], couple[BESIDE] = own, beside
    place = known_class(rows, table, couple)
    if place >= 0:
        return place
    place += table.shape[0]
    number = sizes[ALL]
    if number >= rows.shape[0]:
        return np.int64(NO_PAIRS)
    rows[number, OWN], rows[number, BESIDE] = own, beside
    for k in range(pairs.counts.shape[1]):
        pairs.counts[number, k] = pairs.fresh[number, k] = 0
    states[number, NEXT], states[number, IS_LIVE], states[number, IS_TOUCHED] = 1, 0, 0
    table[place] = number + 1
    pairs.at[number] = place
    sizes[ALL] = number + 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def _go_on_beside(
    tables, columns, programs, lists, scratch, moves, classes, ease, own, values, begin, end, row, fresh, due, variable,
    event, lo, hi, members,
):  # fmt: skip
    """Write the classes that some lead to with an event that leads the match beside them to a class.

    Returns
    -------
    number, whole
        How many, `PASSED`, or what went wrong; and whether one of them is whole.
    """
    number, whole = 0, False
    for i in range(begin, end):
        one = values[i]
        if tables[t.SPAN] and classes.rows[one, END] <= event:
            continue
        if not classes.states[one, NEXT] & (1 << variable):
            continue
        target = follow(
            tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo, hi,
            False,
        )  # fmt: skip
        if target == FAILED:
            continue
        if target < 0:
            return target, whole
        if is_as_easy(tables, columns, programs, lists, ease, classes.rows, target, own):
            return np.int64(PASSED), True
        whole |= classes.ways[one, variable * WAY + WHOLE] != 0
        number = keep_easiest(tables, columns, programs, lists, ease, classes.rows, members, number, target)
        if number < 0:
            return np.int64(TOO_MANY_BESIDE), whole
    return np.int64(number), whole


@njit(cache=True, nogil=True, _nrt=False)
def _list_of(lists, members, number):
    """Return the list of some classes."""
    for i in range(1, number):
        one, k = members[i], i
        while k and members[k - 1] > one:
            members[k] = members[k - 1]
            k -= 1
        members[k] = one
    found = keep(lists, members, number)
    return np.int64(NO_ROOM) if found == FULL else np.int64(found)


@njit(cache=True, nogil=True, _nrt=False)
def _take(
    tables, columns, programs, lists, scratch, moves, classes, pairs, ease, own, values, begin, end, row, fresh, due,
    variable, event, lo, hi, members, every, totals, group,
):  # fmt: skip
    """Let the amount of matches of a class, with some beside them, take an event; return 0, or what went wrong."""
    target = follow(
        tables, columns, programs, lists, scratch, moves, classes, own, row, fresh, due, variable, event, lo, hi, False
    )
    if target < 0:
        return np.int64(0) if target == FAILED else target
    is_whole = classes.ways[own, variable * WAY + WHOLE] != 0
    number, passed = _go_on_beside(
        tables, columns, programs, lists, scratch, moves, classes, ease, target, values, begin, end, row, fresh, due,
        variable, event, lo, hi, members,
    )  # fmt: skip
    if number < 0:
        return np.int64(0) if number == PASSED else number
    goes_on = classes.states[target, NEXT] != 0
    if is_whole and not every:
        followed = is_followed(
            tables, columns, programs, lists, scratch, moves, classes, target, row, fresh, due,
            columns[t.SAME_ROW, event], lo, hi, False,
        )  # fmt: skip
        if followed < 0:
            return followed
        goes_on = followed != 0
    if is_whole and not passed and (every or not goes_on) and not add(totals, group, pairs.amount, pairs.sizes):
        return np.int64(NO_LIMBS)
    if not goes_on:
        return np.int64(0)
    beside = _list_of(lists, members, number)
    if beside < 0:
        return beside
    pair = _pair_of(pairs, target, beside)
    if pair < 0:
        return pair
    fits = give(pairs.counts, pairs.fresh, pairs.amount, pairs.states, pairs.sizes, pair, 0)
    return np.int64(0) if fits else np.int64(NO_LIMBS)


@njit(cache=True, nogil=True, _nrt=False)
def _forget_pairs(pairs):
    """Empty the pairs."""
    sizes = pairs.sizes
    for i in range(sizes[ALL]):
        pairs.table[pairs.at[i]] = 0
    sizes[MOST] = max(sizes[MOST], sizes[ALL])
    sizes[ALL] = sizes[LIVE] = sizes[TOUCHED] = 0


@njit(cache=True, nogil=True, _nrt=False)
def _bar(tables, columns, programs, lists, scratch, classes, pairs, ease, row, event, members, before):
    """Move pairs, and those `before` matches that begin, where a NOT forbids an event to them; return a status.

    Returns
    -------
    number
        How many are `before` then, or what went wrong.
    """
    for absent in range(tables[t.VARIABLES], tables[t.VARIABLES] + tables[t.ALONE]):
        upto = tables[t.E_UPTO] + absent
        if columns[upto, event] == columns[upto, event + 1]:
            continue
        number = 0
        for i in range(before[0]):
            one = bar_one(tables, columns, programs, lists, scratch, classes, before[i + 1], absent, row, event)
            if one < 0:
                return one
            number = keep_easiest(tables, columns, programs, lists, ease, classes.rows, members, number, one)
        before[0] = number
        for i in range(number):
            before[i + 1] = members[i]
        states, sizes = pairs.states, pairs.sizes
        live = sizes[LIVE]
        for i in range(live):
            pair = states[i, LIVING]
            own, beside = pairs.rows[pair, OWN], pairs.rows[pair, BESIDE]
            target = bar_one(tables, columns, programs, lists, scratch, classes, own, absent, row, event)
            if target < 0:
                return target
            begin, number, changed, passed = lists.ends[beside - 1] if beside else 0, 0, target != own, False
            for k in range(begin, lists.ends[beside]):
                one = bar_one(
                    tables, columns, programs, lists, scratch, classes, lists.values[k], absent, row, event
                )  # fmt: skip
                if one < 0:
                    return one
                changed |= one != lists.values[k]
                passed |= is_as_easy(tables, columns, programs, lists, ease, classes.rows, one, target)
                number = keep_easiest(tables, columns, programs, lists, ease, classes.rows, members, number, one)
            if not changed:
                continue
            if not passed:
                kept = _list_of(lists, members, number)
                if kept < 0:
                    return kept
                other = _pair_of(pairs, target, kept)
                if other < 0:
                    return other
                for k in range(sizes[LIMBS]):
                    pairs.amount[k] = pairs.counts[pair, k]
                if not states[other, IS_LIVE]:
                    enliven(states, sizes, other)
                if not add(pairs.counts, other, pairs.amount, sizes):
                    return np.int64(NO_LIMBS)
            for k in range(sizes[LIMBS]):
                pairs.counts[pair, k] = 0
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def _forget_others(pairs):
    """Give the room of pairs that events can no longer join to others."""
    rows, table, states, sizes, counts = pairs.rows, pairs.table, pairs.states, pairs.sizes, pairs.counts
    couple, left = pairs.stack[0, :2], 0
    for i in range(sizes[ALL]):
        table[pairs.at[i]] = 0
    for i in range(sizes[ALL]):
        if not states[i, IS_LIVE]:
            continue
        couple[OWN], couple[BESIDE] = rows[i, OWN], rows[i, BESIDE]
        place = known_class(rows, table, couple) + table.shape[0]
        rows[left, OWN], rows[left, BESIDE] = couple[OWN], couple[BESIDE]
        for k in range(sizes[LIMBS]):
            counts[left, k] = counts[i, k]
        states[left, NEXT], states[left, IS_LIVE], states[left, IS_TOUCHED], states[left, LIVING] = 1, 1, 0, left
        table[place] = left + 1
        pairs.at[left] = place
        left += 1
    sizes[MOST] = max(sizes[MOST], sizes[ALL])
    sizes[ALL] = sizes[LIVE] = left


@njit(cache=True, nogil=True, _nrt=False)
def _leave_out(tables, classes, pairs, before, event):
    """Leave out pairs, and those `before` matches that begin, whose span has passed, and pairs without matches."""
    rows, states, sizes = classes.rows, pairs.states, pairs.sizes
    left = 0
    for i in range(sizes[LIVE]):
        pair = states[i, LIVING]
        some = np.uint64(0)
        for k in range(sizes[LIMBS]):
            some |= pairs.counts[pair, k]
        if some and rows[pairs.rows[pair, OWN], END] > event:
            states[left, LIVING] = pair
            left += 1
        else:
            states[pair, IS_LIVE] = 0
            for k in range(sizes[LIMBS]):
                pairs.counts[pair, k] = 0
    sizes[LIVE] = left
    if 2 * sizes[ALL] > pairs.rows.shape[0] and sizes[ALL] > 2 * left:
        _forget_others(pairs)
    left = 0
    for i in range(1, before[0] + 1):
        if rows[before[i], END] > event:
            left += 1
            before[left] = before[i]
    before[0] = left


@njit(cache=True, nogil=True, _nrt=False)
def _add_before(
    tables, columns, programs, lists, scratch, moves, classes, ease, start, before, newer, row, fresh, due, usable,
    event, lo, hi,
):  # fmt: skip
    """Add to the `newer` ones what may be put before matches that begin later, and ends with an event."""
    firsts = classes.states[start, NEXT]
    for i in range(before[0] + 1):
        one = before[i] if i else start
        for variable in range(tables[t.VARIABLES]):
            if not classes.states[one, NEXT] & usable & (1 << variable):
                continue
            target = follow(
                tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, variable, event, lo,
                hi, False,
            )  # fmt: skip
            if target == FAILED or (target >= 0 and not classes.states[target, NEXT] & firsts):
                continue
            if target < 0:
                return target
            number = keep_easiest(tables, columns, programs, lists, ease, classes.rows, newer[1:], newer[0], target)
            if number < 0:
                return np.int64(TOO_MANY_BESIDE)
            newer[0] = number
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def _count_group(
    tables, columns, programs, lists, scratch, moves, classes, pairs, ease, row, fresh, due, lo, hi, chosen, totals,
    group, every, before, newer, members,
):  # fmt: skip
    """Add the number of results of a group; return 0, or what went wrong."""
    refresh(tables, lists, moves)
    begin_row(lists, scratch, row, hi)
    shape = shape_of(tables, lists, moves, row) if has_moves(tables) else np.int64(FULL)
    start = make_class(tables, lists, classes, row, shape)
    states, sizes = pairs.states, pairs.sizes
    sizes[LIMBS], before[0], newer[0] = 1, 0, 0
    pairs.amount[:] = 0
    time = lo
    while time < hi:
        end = min(hi, columns[t.LATER_ROW, time])
        if tables[t.SPAN] or tables[t.ALONE]:
            _leave_out(tables, classes, pairs, before, time)
        for event in range(time, end):
            classes.sizes[PLACE] = event
            usable = np.int64(0)
            for variable in range(tables[t.VARIABLES]):
                upto = tables[t.E_UPTO] + variable
                if columns[upto, event] != columns[upto, event + 1]:
                    usable |= 1 << variable
            if not usable:
                continue
            live = sizes[LIVE]
            for i in range(live):
                pair = states[i, LIVING]
                own, beside = pairs.rows[pair, OWN], pairs.rows[pair, BESIDE]
                scratch.left[0] -= 1
                if not classes.states[own, NEXT] & usable:
                    continue
                for k in range(sizes[LIMBS]):
                    pairs.amount[k] = pairs.counts[pair, k]
                for variable in range(tables[t.VARIABLES]):
                    if classes.states[own, NEXT] & usable & (1 << variable):
                        status = _take(
                            tables, columns, programs, lists, scratch, moves, classes, pairs, ease, own, lists.values,
                            lists.ends[beside - 1] if beside else 0, lists.ends[beside], row, fresh, due, variable,
                            event, lo, hi, members, every, totals, group,
                        )  # fmt: skip
                        if status < 0:
                            return status
            if chosen.shape[0] == 0 or chosen[event]:
                for k in range(sizes[LIMBS]):
                    pairs.amount[k] = 0
                pairs.amount[0] = 1
                for variable in range(tables[t.VARIABLES]):
                    if classes.states[start, NEXT] & usable & (1 << variable):
                        status = _take(
                            tables, columns, programs, lists, scratch, moves, classes, pairs, ease, start, before, 1,
                            before[0] + 1, row, fresh, due, variable, event, lo, hi, members, every, totals, group,
                        )  # fmt: skip
                        if status < 0:
                            return status
            status = _add_before(
                tables, columns, programs, lists, scratch, moves, classes, ease, start, before, newer, row, fresh, due,
                usable, event, lo, hi,
            )  # fmt: skip
            if status < 0:
                return status
            if scratch.left[0] < 0:
                return np.int64(SPENT)
        for event in range(time, end if tables[t.ALONE] else time):
            status = _bar(
                tables, columns, programs, lists, scratch, classes, pairs, ease, row, event, members, before
            )  # fmt: skip
            if status < 0:
                return status
        if not settle(pairs):
            return np.int64(NO_LIMBS)
        for i in range(1, newer[0] + 1):
            number = keep_easiest(tables, columns, programs, lists, ease, classes.rows, before[1:], before[0], newer[i])
            if number < 0:
                return np.int64(TOO_MANY_BESIDE)
            before[0] = number
        newer[0] = 0
        time = end
    return np.int64(0)


@njit(cache=True, nogil=True, branching=True)
def count_beside(
    tables, columns, programs, lists, scratch, moves, classes, pairs, ease, row, fresh, due, groups_lo, groups_hi,
    first, last, chosen, totals, every, before, newer, members,
):  # fmt: skip
    """Write the numbers of results of the groups from `first` to `last`; return a status, and the group it is of.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, classes, row, fresh, due
        What the exploration goes by, and works in.
    pairs, ease
        Room for pairs, as `Classes` with rows of two numbers; and which matches go on more easily: see `easier`.
    groups_lo, groups_hi, first, last
        The events of the groups, and which of them.
    chosen
        The events at which matches may begin; empty for all.
    totals
        uint64 (groups, limbs): 0 for the groups to be counted.
    every
        Whether nothing can be put after a match.
    before, newer, members
        int64: room for classes; the first of `before` and `newer` says how many there are.
    """
    for group in range(first, last):
        status = _count_group(
            tables, columns, programs, lists, scratch, moves, classes, pairs, ease, row, fresh, due, groups_lo[group],
            groups_hi[group], chosen, totals, group, every, before, newer, members,
        )  # fmt: skip
        forget_classes(classes, moves)
        _forget_pairs(pairs)
        if status < 0:
            for k in range(totals.shape[1]):
                totals[group, k] = 0
            return status, group
    return 0, last
