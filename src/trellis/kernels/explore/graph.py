"""The graph of all matches so far of one group: each is a vertex, and leads to those with one more event."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.iterations import begin_iteration
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import BOUND, BRANCHES, END, EVENT, FAILS, HOLDS, OPENS, SPENT, TIES
from trellis.kernels.explore.moves import (
    M_ASKED,
    M_KIND,
    M_KNOWN,
    M_PLAIN,
    NOWHERE,
    QUICK,
    SLOW,
    begins_anew,
    coming_of,
    has_moves,
    make_move,
    make_plainly,
    move_of,
    refresh,
    shape_of,
    terms_of,
)
from trellis.kernels.explore.plain import NOT_LEAN, go_on_plainly
from trellis.kernels.explore.progress import step
from trellis.kernels.explore.steps import go_on_by_steps
from trellis.kernels.explore.terms import asked_terms, meets, open_of, passes_all, resolve
from trellis.kernels.explore.vertices import BEGUN, EDGES, HOME, STARTS, VERTEX, candidates, connect
from trellis.kernels.jit import njit

ALL_LETTERS = -1
LOOKED_AT = 16  # events that are looked at in the time in which an edge is made, about


@njit(cache=True, nogil=True, _nrt=False)
def leave(
    tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, begin, end, letters, lo, hi
):  # fmt: skip
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong.

    Only events from `begin` to `end` are looked at, and some letters, as bits; but all where steps have policies of
    their own or variables are greedy.
    """
    if tables[t.GREEDY] or tables[t.STEPS] > 1:
        return go_on_by_steps(tables, columns, programs, lists, scratch, moves, graph, vertex, row, due, fresh, lo, hi)
    return _go_on(
        tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, begin, end, letters,
        lo, hi,
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def _go_on(
    tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, begin, end, letters, lo, hi
):  # fmt: skip
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong.

    One policy holds for all steps here. Only events from `begin` to `end` are looked at, and some letters, as bits.
    """
    coming = moves.coming[shape] if shape >= 0 else coming_of(tables, lists, row)
    coming &= letters
    last = row[EVENT]
    policy = np.int64(t.ANY)
    if last >= 0:
        begin, end, policy = max(begin, last + 1), min(end, row[END]), t.at(tables, t.A_POLICIES, 0)
        if policy == t.CONTIGUOUS:
            end = min(end, last + 2)
    best = end
    variables = tables[t.VARIABLES]
    for variable in range(variables):
        fresh[variable, EVENT] = -1
        upto = tables[t.E_UPTO] + variable
        if begin >= end or columns[upto, begin] == columns[upto, end]:
            coming &= ~(1 << variable)
    for turn in range(2 if policy != t.ANY else 1):  # what nothing is asked of comes first, and bounds the others
        for variable in range(variables):
            if not coming & (1 << variable):
                continue
            if turn == 0 and policy != t.ANY and shape >= 0 and _asks(tables, moves.rows, shape, variable):
                continue
            own = row
            if begins_anew(tables, variable):
                status = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
                if status < 0:
                    return np.int64(status)
                if status == FAILS:
                    coming &= ~(1 << variable)
                    continue
                own = scratch.begun
            number = _due_terms(
                tables, columns, programs, lists, scratch, moves, shape, own, variable, begin, due, fresh
            )
            if number < 0:
                return number
            if number and policy != t.ANY and turn == 0:
                continue
            coming &= ~(1 << variable)
            status, best = _reach(
                tables, columns, programs, lists, scratch, moves, graph, vertex, shape, own, variable, due, number,
                fresh, begin, end, best, policy, lo, hi,
            )  # fmt: skip
            if status < 0:
                return status
    if policy != t.ANY:
        for variable in range(variables):
            if fresh[variable, EVENT] == best:
                move = moves.made[variable]
                if move >= 0 and not moves.rows[move, M_KNOWN]:
                    answer = _make(
                        tables, columns, programs, lists, scratch, moves, move, row, variable, best, hi, fresh[variable]
                    )
                    if answer < 0:
                        return answer
                answer = connect(
                    tables, columns, programs, lists, scratch, moves, graph, vertex, moves.made[variable],
                    fresh[variable], lo, hi,
                )  # fmt: skip
                if answer < 0:
                    return answer
    return 0


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _reach(
    tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, variable, due, number, fresh, begin,
    end, best, policy, lo, hi,
):  # fmt: skip
    """Add the edges of a vertex to events that a variable takes, or find the first up to `best`; return 0 and that.

    In place of 0 it may be what went wrong.
    """
    lowest, highest = candidates(tables, columns, row, variable, due, number, begin, end)
    resolved = resolve(tables, programs, row, variable, due, number, moves.resolved[0], 0)
    for i in range(lowest, highest):
        event = tables[i]
        if event > best:
            break
        if resolved >= 0:
            passes = passes_all(programs.ints, programs.there, moves.resolved, 0, 0, resolved, event)
            answer = HOLDS if passes else FAILS
        else:
            answer = meets(tables, columns, programs, lists, scratch, row, variable, event, due, number)
        if answer == HOLDS:
            answer = _move(
                tables,
                columns,
                programs,
                lists,
                scratch,
                moves,
                shape,
                row,
                variable,
                event,
                policy,
                lo,
                hi,
                due,
                fresh,
            )
        if answer < 0:
            return answer, best
        if answer == FAILS:
            fresh[variable, EVENT] = -1
            continue
        if policy != t.ANY:
            return 0, event
        answer = connect(
            tables, columns, programs, lists, scratch, moves, graph, vertex, moves.made[variable], fresh[variable],
            lo, hi,
        )  # fmt: skip
        if answer < 0:
            return answer, best
    return 0, best


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _due_terms(tables, columns, programs, lists, scratch, moves, shape, row, variable, begin, due, fresh):
    """Write the terms that an event must meet to be taken by a variable; return how many, or `NO_ROOM`."""
    if shape >= 0:
        usable = tables[t.E_USABLE] + t.at(tables, t.E_BEGINS, variable) + columns[tables[t.E_UPTO] + variable, begin]
        move = move_of(
            tables, columns, programs, lists, scratch, moves, shape, row, variable, 0, tables[usable], due,
            fresh[variable],
        )  # fmt: skip
        fresh[variable, EVENT] = -1
        if move < 0 or moves.rows[move, M_KIND] != SLOW:
            return terms_of(moves, move, due) if move >= 0 else move
    open_of(tables, lists, scratch, row)
    return asked_terms(tables, scratch, row, variable, due)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _asks(tables, rows, shape, variable):
    """Return whether it is known that an event must meet terms to be taken by a variable."""
    move = (shape * tables[t.VARIABLES] + variable) * 2
    return rows[move, M_KIND] == QUICK and rows[move, M_ASKED] > 0


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _make(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, after):
    """Write the match after a known move; return `HOLDS`, `FAILS`, or what went wrong."""
    if moves.rows[move, M_PLAIN]:
        made = make_plainly(
            tables, columns, programs.code, programs.ints, programs.there, moves.rows, move, row, variable, event, hi,
            after,
        )  # fmt: skip
        return HOLDS if made else FAILS
    return make_move(tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, after)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _move(tables, columns, programs, lists, scratch, moves, shape, row, variable, event, policy, lo, hi, due, fresh):
    """Write the match after another takes an event; return `HOLDS`, `FAILS`, or what went wrong.

    Where only the first event counts, a match that is sure to be one is written when it is known that it is the first.
    """
    moves.made[variable] = -1
    if shape >= 0:
        same = 1 if row[EVENT] >= 0 and columns[t.SAME_ROW, event] == columns[t.SAME_ROW, row[EVENT]] else 0
        move = move_of(
            tables, columns, programs, lists, scratch, moves, shape, row, variable, same, event, due, fresh[variable]
        )
        if move < 0:
            return move
        kind = moves.rows[move, M_KIND]
        if kind == NOWHERE:
            return np.int64(FAILS)
        if kind == QUICK:
            moves.made[variable] = move
            if policy != t.ANY and not moves.rows[move, M_KNOWN]:
                fresh[variable, EVENT] = event
                return np.int64(HOLDS)
            return _make(
                tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, fresh[variable]
            )
    open_ = open_of(tables, lists, scratch, row)
    return step(
        tables,
        columns,
        programs,
        lists,
        scratch,
        row,
        open_,
        variable,
        event,
        lo,
        hi,
        t.EVERY_STEP,
        False,
        fresh[variable],
    )


@njit(cache=True, nogil=True, _nrt=False)
def begin_row(lists, scratch, row, hi):
    """Write the match that has no event yet."""
    for i in range(row.shape[0]):
        row[i] = t.NONE
    row[BOUND], row[TIES], row[END], row[OPENS] = 0, 0, hi, 0
    scratch.branches[0], scratch.branches[1] = 0, 0
    row[BRANCHES] = keep(lists, scratch.branches, 2)


@njit(cache=True, nogil=True, _nrt=False)
def explore(tables, columns, programs, lists, scratch, moves, graph, due, row, fresh, alone, lo, hi):
    """Fill a graph with the matches so far of the events from `lo` to `hi`; return 0, or what there is no room for.

    These are all that begin there, or `alone` those that begin with the first of these events.
    With more room it goes on where it stopped: at the vertex whose edges did not fit, which are made again. The
    vertices that they led to stay: the same will be found.
    """
    variables, sizes = tables[t.VARIABLES], graph.sizes
    if sizes[BEGUN]:
        sizes[EDGES] = graph.first[sizes[VERTEX] - 1] if sizes[VERTEX] else 0
    else:
        refresh(tables, lists, moves)
        sizes[BEGUN] = 1
    vertex, home = sizes[VERTEX] - 1, sizes[HOME] - 1  # first the starts
    if vertex < 0:
        sizes[STARTS] = 0
        begin_row(lists, scratch, row, hi)
        shape = shape_of(tables, lists, moves, row) if has_moves(tables) else np.int64(FULL)
    else:
        shape = _read(graph, vertex, row)
    while True:
        answer, end = np.int64(NOT_LEAN), lo + 1 if alone and vertex < 0 else hi
        if shape >= 0:
            answer = go_on_plainly(
                tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, lo, end,
                ALL_LETTERS, lo, hi,
            )  # fmt: skip
        if answer == NOT_LEAN:
            answer = leave(
                tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, lo, end,
                ALL_LETTERS, lo, hi,
            )  # fmt: skip
        if answer < 0:
            return answer
        if vertex >= 0:
            edges = sizes[EDGES] - graph.first[vertex]
            scratch.left[0] -= 1 + edges + max(0, min(hi, row[END]) - row[EVENT]) // LOOKED_AT
            if scratch.left[0] < 0:
                return np.int64(SPENT)
            graph.last[vertex] = sizes[EDGES]
            vertex = np.int64(graph.link[vertex]) - 1
        while vertex < 0:
            home += 1
            if home >= (hi - lo) * variables:
                return 0
            vertex = np.int64(graph.heads[home]) - 1
        graph.first[vertex] = sizes[EDGES]
        sizes[HOME], sizes[VERTEX] = home + 1, vertex + 1
        shape = _read(graph, vertex, row)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _read(graph, vertex, row):
    """Write the row of a vertex; return its shape."""
    for i in range(row.shape[0]):
        row[i] = graph.rows[vertex, i]
    return np.int64(graph.shapes[vertex])
