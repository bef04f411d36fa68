"""Trees of matches that a NOT forbids, noted while the gap, or something that they are compared with, is not known.

The root of a tree is a match of what the NOT forbids; below each node are the matches that NOTs inside of it forbid.
See `trellis.kernels.explore.matches.forbids`.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, keep, keep_with
from trellis.kernels.explore.matches import (
    BACK,
    BEGIN,
    BOUND,
    DEAD,
    END_EVENT,
    FOUND,
    MISFITS,
    NO_ONE,
    NO_ROOM,
    NODE,
    OF,
    SIZE,
    TROUBLE,
    choose,
    fill,
    first_forbidden,
    last_forbidden,
    meets,
    members_of,
)
from trellis.kernels.expression.program import FALSE, MISFIT
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def gather(tables, columns, lists, scratch, term, slot, row, known, event):
    """Return a list of tuples with those that a match adds to it; `known` is its number, or -1; `FULL` without room.

    A tuple has, for each reference of a term that is gathered to a slot, the event or number that it names. Where the
    term goes over sets, there is one for each choice of members. It is a list itself, and stands in the other by its
    number. `event` is what a NOT forbids, where the term is of such: an event, or the number of a node.
    """
    begin, size = t.at(tables, t.T_BEGINS, term), t.at(tables, t.T_BEGINS, term + 1) - t.at(tables, t.T_BEGINS, term)
    chosen, counters, loops = scratch.events, scratch.counters, 0
    fill(tables, columns, lists, scratch, term, row, NO_ONE, event, chosen)
    found = max(known, 0)
    for k in range(t.at(tables, t.T_LOOP_BEGINS, term), t.at(tables, t.T_LOOP_BEGINS, term + 1)):
        if not t.at(tables, t.T_LOOP_GATHERED, k) & (1 << slot):
            continue
        first, last = members_of(tables, lists, term, k, row, event)
        if first == last:
            return found
        counters[loops, 0], counters[loops, 1], counters[loops, 2], counters[loops, 3] = first, first, last, k
        loops += 1
    while True:
        for i in range(loops):
            choose(tables, lists, term, counters[i, 3], counters[i, 0], chosen)
        if size > scratch.parts.shape[0]:
            return FULL
        for r in range(size):
            scratch.parts[r] = chosen[begin + r] if t.at(tables, t.T_GATHERED, begin + r) & (1 << slot) else 0
        one = keep(lists, scratch.parts, size)
        if one == FULL:
            return FULL
        found = keep_with(lists, found, one, scratch.members)
        i = loops - 1
        while i >= 0 and found != FULL:
            counters[i, 0] += 1
            if counters[i, 0] < counters[i, 2]:
                break
            counters[i, 0] = counters[i, 1]
            i -= 1
        if i < 0 or found == FULL:
            return found


@njit(cache=True, nogil=True, _nrt=False)
def note(tables, columns, programs, lists, scratch, guard, row, first, last, open_low, open_high, size):
    """Add to `scratch.nodes` what a guard forbids of the events from `first` to `last`; return the new size.

    The gap may begin later where it is open at its low side (`open_low`), and end sooner where it is at its high side
    (`open_high`); of what is compared with nothing outside, the last or the first decides then. It is `DEAD` where
    something is forbidden in any case, `NO_ROOM` or `TROUBLE`.
    """
    if open_low != open_high and not t.at(tables, t.A_GUARD_NODES, guard) & t.DEEP:
        if open_low:
            found = last_forbidden(tables, columns, programs, lists, scratch, guard, first, last, row)
            if found == MISFITS:
                return np.int64(TROUBLE)
            if found == NO_ONE:
                return size
            return _add(tables, scratch.nodes, size, NO_ONE, FOUND - found, NO_ONE, 0)
        found = first_forbidden(tables, columns, programs, lists, scratch, guard, first, last, row)
        if found < 0:
            return np.int64(TROUBLE)
        if found == tables[t.EVENTS]:
            return size
        return _add(tables, scratch.nodes, size, NO_ONE, np.int64(tables[t.EVENTS]), found, 0)
    for a in range(t.at(tables, t.A_ABSENT_BEGINS, guard), t.at(tables, t.A_ABSENT_BEGINS, guard + 1)):
        var = t.at(tables, t.A_ABSENTS, a)
        base = t.at(tables, t.E_BEGINS, var)
        for i in range(base + columns[tables[t.E_UPTO] + var, first], base + columns[tables[t.E_UPTO] + var, last]):
            match = i - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
            if match >= 0 and t.at(tables, t.C_SOONEST, match) >= last:
                break
            size = _note_tree(
                tables, columns, programs, lists, scratch, guard, row, first, last, open_low, open_high, size, var, i
            )
            if size < 0:
                return size
    return size


@njit(cache=True, nogil=True, _nrt=False)
def _add(tables, nodes, size, of, begin, end, back):
    """Add a node; return the new size, or `NO_ROOM`."""
    width = NODE + tables[t.TOLDS]
    if size + width > nodes.shape[0]:
        return np.int64(NO_ROOM)
    for k in range(NODE, width):
        nodes[size + k] = 0
    nodes[size + OF], nodes[size + BEGIN], nodes[size + END_EVENT] = of, begin, end
    nodes[size + SIZE], nodes[size + BACK] = 1, back
    return size + width


@njit(cache=True, nogil=True, _nrt=False)
def _note_tree(
    tables, columns, programs, lists, scratch, guard, row, first, last, open_low, open_high, size, var, place
):
    """Add a tree, if its root may be in a gap: see `note`; the root is at a place in the list of a variable of NOT."""
    match = place - t.at(tables, t.E_BEGINS, tables[t.VARIABLES] + tables[t.ALONE])
    root = t.at(tables, t.C_ROOT, match) if match >= 0 else NO_ONE
    events, width, nodes, base = np.int64(tables[t.EVENTS]), NODE + tables[t.TOLDS], scratch.nodes, tables[t.C_NODES]
    of, begin = np.int64(var if match < 0 else NO_ONE), t.at(tables, t.E_USABLE, place)
    end, node, told, span = t.at(tables, t.C_ENDS, match) if match >= 0 else begin, root, False, np.int64(1)
    over, top = root + (tables[base + NODE * root + SIZE] if root >= 0 else 1), size
    while node < over:
        at = base + NODE * node
        if root >= 0:
            of, begin, end, span = tables[at + OF], tables[at + BEGIN], tables[at + END_EVENT], tables[at + SIZE]
        number = node if root >= 0 else begin
        answer = np.int64(FALSE)
        if begin >= first and end < last:
            answer = meets(tables, columns, programs, lists, scratch, guard, of, number, row)
        if answer == MISFIT:
            return np.int64(TROUBLE)
        if answer == FALSE:
            node += span
            continue
        back = np.int64(0)
        if size > top:  # sizes are the numbers of nodes as long as the tree is made
            above = size - width
            while nodes[above + SIZE] != node - tables[at + BACK]:
                above -= width * nodes[above + BACK]
            back = (size - above) // width
        here, size = size, _add(
            tables, nodes, size, of if tables[t.TOLDS] else NO_ONE, begin if open_low else events,
            end if open_high else NO_ONE, back,
        )  # fmt: skip
        if size < 0:
            return size
        nodes[here + SIZE] = node
        for term in range(tables[t.TERMS] if tables[t.TOLDS] else 0):
            of_node = t.at(tables, t.T_ABSENT, term) == of and not t.at(tables, t.T_VARIABLES, term) & ~row[BOUND]
            if of_node and t.at(tables, t.T_TOLD, term) >= 0:
                known = gather(tables, columns, lists, scratch, term, 0, row, NO_ONE, number)
                if known == FULL:
                    return np.int64(NO_ROOM)
                nodes[here + NODE + t.at(tables, t.T_TOLD, term)] = known
                told = told or (here == top and known > 0)
        node += 1
    for at in range(top, size, width):
        nodes[at + SIZE] = 1
    for at in range(size - width, top, -width):
        nodes[at - width * nodes[at + BACK] + SIZE] += nodes[at + SIZE]
    return np.int64(DEAD) if size == top + width and not (told or open_low or open_high) else size


@njit(cache=True, nogil=True, _nrt=False)
def is_in_reach(tables, columns, lists, number, event):
    """Return whether one of the trees of a list may be in a gap, if a match ends with an event."""
    width = NODE + tables[t.TOLDS]
    at = lists.ends[number - 1]
    while at < lists.ends[number]:
        begin = lists.values[at + BEGIN]
        if begin == tables[t.EVENTS] or columns[t.UNTIL_ROW, begin] > event:
            return True
        at += width * lists.values[at + SIZE]
    return False
