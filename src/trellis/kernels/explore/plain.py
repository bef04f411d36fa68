"""The next events of a match whose moves are plain: they are found and joined without a look at anything but numbers.

A move is lean if it is plain, see `moves`, and an event must meet only comparisons of its codes with those of events
that are remembered. Nothing is called for it that takes all the tables, and so it costs a tenth of what others do.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import hashed, is_row
from trellis.kernels.explore.matches import END, EVENT, NO_ROOM
from trellis.kernels.explore.moves import (
    M_ASKED,
    M_KIND,
    M_KNOWN,
    M_LEAN,
    M_SHAPE,
    M_TERMS,
    NOWHERE,
    UNKNOWN,
    ends_plainly,
    find_move,
    make_plainly,
)
from trellis.kernels.explore.terms import note, passes_all
from trellis.kernels.explore.vertices import EDGES, NO_EDGES, NO_VERTICES, STARTS, VERTICES, candidates
from trellis.kernels.jit import njit

NOT_LEAN = 1


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def go_on_plainly(
    tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, begin, end, letters, lo, hi
):  # fmt: skip
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong.

    It is `NOT_LEAN` where a move is not lean: then no edge was added. Only events from `begin` to `end` are looked at,
    and some letters, as bits.
    """
    rows, ints, there, code = moves.rows, programs.ints, programs.there, programs.code
    coming, variables, last = moves.coming[shape] & letters, tables[t.VARIABLES], row[EVENT]
    policy = np.int64(t.ANY)
    if last >= 0:
        begin, end, policy = max(begin, last + 1), min(end, row[END]), t.at(tables, t.A_POLICIES, 0)
        if policy == t.CONTIGUOUS:
            end = min(end, last + 2)
    for variable in range(variables):
        moves.made[variable] = -1
    edges, starts, best, status = graph.sizes[EDGES], graph.sizes[STARTS], end, np.int64(0)
    for turn in range(2 if begin < end else 0):  # what asks for nothing comes first, and bounds the others
        for variable in range(variables):
            if not coming & (1 << variable):
                continue
            upto = tables[t.E_UPTO] + variable
            lowest, highest = columns[upto, begin], columns[upto, end]
            if lowest == highest:
                coming &= ~(1 << variable)
                continue
            base = tables[t.E_USABLE] + t.at(tables, t.E_BEGINS, variable)
            plain = (shape * variables + variable) * 2
            if rows[plain, M_KIND] == UNKNOWN:
                found = find_move(
                    tables, columns, programs, lists, scratch, moves, plain, row, variable, 0, tables[base + lowest],
                    due, fresh[variable],
                )  # fmt: skip
                if found < 0:
                    status = np.int64(NO_ROOM)
                    break
            number = rows[plain, M_ASKED]
            if turn == 0 and number and policy != t.ANY:
                continue
            coming &= ~(1 << variable)
            if not rows[plain, M_LEAN]:
                status = np.int64(NOT_LEAN)
                break
            lowest, highest = base + lowest, base + highest
            if number:
                if highest - lowest > 2:
                    for i in range(number):
                        due[i] = rows[plain, M_TERMS + i]
                    lowest, highest = candidates(tables, columns, row, variable, due, number, begin, end)
                _resolve(tables, ints, there, rows, plain, row, number, moves.resolved[0])
            for i in range(lowest, highest):
                event = tables[i]
                if event > best:
                    break
                if number and not passes_all(ints, there, moves.resolved, 0, 0, number, event):
                    continue
                move = plain
                if last >= 0 and columns[t.SAME_ROW, event] == columns[t.SAME_ROW, last]:
                    move = plain + 1
                    if rows[move, M_KIND] == UNKNOWN:
                        found = find_move(
                            tables, columns, programs, lists, scratch, moves, move, row, variable, 1, event, due,
                            fresh[variable],
                        )  # fmt: skip
                        if found < 0:
                            status = np.int64(NO_ROOM)
                            break
                    if not rows[move, M_LEAN]:
                        status = np.int64(NOT_LEAN)
                        break
                if rows[move, M_KIND] == NOWHERE:
                    continue
                if policy != t.ANY and not rows[move, M_KNOWN]:
                    fresh[variable, EVENT], moves.made[variable], best = event, move, event
                    break
                after = fresh[variable]
                if not make_plainly(tables, columns, code, ints, there, rows, move, row, variable, event, hi, after):
                    continue
                if policy != t.ANY:
                    moves.made[variable], best = move, event
                    break
                status = join_plainly(tables, code, ints, there, rows, graph, vertex, move, after, variable, event, lo)
                if status < 0:
                    break
            if status:
                break
        if status or not coming:
            break
    if status:
        graph.sizes[EDGES], graph.sizes[STARTS] = edges, starts
        return status
    if policy != t.ANY and best < end:
        for variable in range(variables):
            move, after = moves.made[variable], fresh[variable]
            if move < 0 or after[EVENT] != best:
                continue
            if not rows[move, M_KNOWN]:
                make_plainly(tables, columns, code, ints, there, rows, move, row, variable, best, hi, after)
            status = join_plainly(tables, code, ints, there, rows, graph, vertex, move, after, variable, best, lo)
            if status < 0:
                return status
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _resolve(tables, ints, there, rows, move, row, number, resolved):
    """Write what a move asks as comparisons of an event's code with a number; see `passes_all`."""
    here = M_TERMS + 3 * tables[t.TERMS]
    for i in range(0, 3 * number, 3):
        own, operator, slot, column = rows[move, here], rows[move, here + 1], rows[move, here + 2], rows[move, here + 3]
        note(ints, there, own, operator, slot, column, row, resolved, i)
        here += 4


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def join_plainly(tables, code, ints, there, rows, graph, vertex, move, row, variable, event, lo):
    """Add an edge to the vertex of a match, which is made if there is none, or make it a start; return 0 or no room."""
    table, known = graph.table, graph.rows
    home = (event - lo) * tables[t.VARIABLES] + variable
    first = np.int64(graph.heads[home]) - 1
    target, place = np.int64(-1), np.int64(-1)
    if first >= 0:
        if is_row(known, first, row):
            target = first
        else:
            mask = np.uint64(table.shape[0] - 1)
            slot = hashed(row, 0, row.shape[0]) & mask
            while table[slot] and target < 0:
                if is_row(known, np.int64(table[slot]) - 1, row):
                    target = np.int64(table[slot]) - 1
                slot = (slot + np.uint64(1)) & mask
            place = np.int64(slot)
    if target < 0:
        target = graph.sizes[VERTICES]
        if target >= known.shape[0]:
            return np.int64(NO_VERTICES)
        for i in range(row.shape[0]):
            known[target, i] = row[i]
        whole = ends_plainly(tables, code, ints, there, rows, move, row) != 0
        graph.complete[target], graph.wanted[target], graph.shapes[target] = whole, whole, rows[move, M_SHAPE]
        graph.at[target], graph.link[target] = place, 0
        graph.first[target] = graph.last[target] = 0
        if first < 0:
            graph.heads[home] = target + 1
        else:
            table[place] = target + 1
            graph.link[graph.tails[home] - 1] = target + 1
        graph.tails[home] = target + 1
        graph.sizes[VERTICES] = target + 1
    if vertex < 0:
        graph.starts[graph.sizes[STARTS]] = target
        graph.sizes[STARTS] += 1
        return np.int64(0)
    if graph.sizes[EDGES] >= graph.edges.shape[0]:
        return np.int64(NO_EDGES)
    graph.edges[graph.sizes[EDGES]] = target
    graph.sizes[EDGES] += 1
    return np.int64(0)
