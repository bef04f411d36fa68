"""The graph of all matches so far of one group: each is a vertex, and leads to those with one more event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, hashed, keep
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    END,
    EVENT,
    FAILS,
    HOLDS,
    SLOTS,
    TIES,
    TROUBLE,
    VARIABLE,
    is_complete,
    step,
)
from trellis.kernels.explore.moves import (
    M_KIND,
    M_SHAPE,
    NOWHERE,
    QUICK,
    SLOW,
    asked_terms,
    coming_of,
    ends_here,
    make_move,
    meets,
    move_of,
    open_of,
    passes_all,
    refresh,
    resolve,
    shape_of,
    terms_of,
)
from trellis.kernels.jit import njit

NO_VERTICES, NO_EDGES = -4, -5  # what there is no room for


class MatchGraph(NamedTuple):
    """Room for the matches so far of a group.

    Attributes
    ----------
    rows
        The numbers of each vertex; see `trellis.kernels.explore.matches`.
    first, last, edges
        The edges that leave each vertex.
    complete, shapes
        Whether it is a whole match, and the number of its shape, or -1; see `moves`.
    table, at, link
        An open-addressing hash of the vertices, plus one, and the place of each in it; the next vertex of the same
        event and variable.
    heads, tails
        The first and last vertex of each event and variable, plus one.
    starts
        The vertices that begin a match.
    sizes
        How many vertices, edges and starts there are.
    """

    rows: np.ndarray
    first: np.ndarray
    last: np.ndarray
    edges: np.ndarray
    complete: np.ndarray
    shapes: np.ndarray
    table: np.ndarray
    at: np.ndarray
    link: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


VERTICES, EDGES, STARTS = range(3)


def make_graph(vertices: int, edges: int, width: int, places: int) -> MatchGraph:
    """Return room for vertices, a power of two, of some numbers each; for edges; for events times variables."""
    return MatchGraph(
        np.empty((vertices, width), np.int64), np.empty(vertices, np.int64), np.empty(vertices, np.int64),
        np.empty(edges, np.int32), np.empty(vertices, np.bool_), np.empty(vertices, np.int32),
        np.zeros(2 * vertices, np.int32), np.empty(vertices, np.int64), np.empty(vertices, np.int32),
        np.zeros(places, np.int32), np.zeros(places, np.int32), np.empty(vertices, np.int32), np.zeros(3, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def forget_graph(graph, lo, hi, variables):
    """Empty a graph."""
    for v in range(graph.sizes[VERTICES]):
        graph.table[graph.at[v]] = 0
    for i in range((hi - lo) * variables):
        graph.heads[i] = 0
        graph.tails[i] = 0
    graph.sizes[:] = 0


@njit(cache=True, nogil=True, _nrt=False)
def _vertex(tables, columns, programs, lists, scratch, moves, graph, move, row, lo, hi):
    """Return the vertex of a match, which is made if there is none; or what went wrong."""
    table, rows = graph.table, graph.rows
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(row, 0, row.shape[0]) & mask
    while True:
        found = np.int64(table[place]) - 1
        if found < 0:
            break
        same = True
        for i in range(row.shape[0]):
            if rows[found, i] != row[i]:
                same = False
                break
        if same:
            return found
        place = (place + np.uint64(1)) & mask
    number = graph.sizes[VERTICES]
    if number >= rows.shape[0]:
        return NO_VERTICES
    if move >= 0:
        complete = ends_here(tables, columns, programs, lists, scratch, moves, move, row)
        graph.shapes[number] = moves.rows[move, M_SHAPE]
    else:
        complete = is_complete(tables, columns, programs, lists, scratch, row, lo, hi)
        graph.shapes[number] = FULL if tables[t.NOTS] else shape_of(tables, lists, moves, row)
    if complete == TROUBLE:
        return TROUBLE
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    graph.complete[number] = complete == HOLDS
    table[place] = number + 1
    graph.at[number] = np.int64(place)
    graph.link[number] = 0
    graph.first[number] = graph.last[number] = 0
    variables = tables[t.VARIABLES]
    home = (row[EVENT] - lo) * variables + row[VARIABLE]
    if graph.heads[home] == 0:
        graph.heads[home] = number + 1
    else:
        graph.link[graph.tails[home] - 1] = number + 1
    graph.tails[home] = number + 1
    graph.sizes[VERTICES] = number + 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def candidates(tables, columns, row, variable, due, number, begin, end):
    """Return where in the tables the events from `begin` to `end` stand that a variable may take.

    Where a term equates them with an event that is remembered these are the ones with its value.
    """
    base = tables[t.E_USABLE] + t.at(tables, t.E_BEGINS, variable)
    lowest = base + columns[tables[t.E_UPTO] + variable, begin]
    highest = base + columns[tables[t.E_UPTO] + variable, end]
    for i in range(number):
        k = t.at(tables, t.B_OF_TERM, due[i] * tables[t.VARIABLES] + variable)
        if k < 0:
            continue
        r = t.at(tables, t.B_REFERENCE, k)
        slot = t.at(tables, t.T_LAST, r) if t.at(tables, t.T_KIND, r) == t.OF_EARLIER else t.at(tables, t.T_SLOT, r)
        other = row[SLOTS + slot]
        bucket = columns[tables[t.B_BUCKET] + k, other] if other >= 0 else -1
        if bucket < 0:
            return 0, 0
        first = tables[t.B_EVENTS]
        low, high = first + t.at(tables, t.B_BEGINS, bucket), first + t.at(tables, t.B_BEGINS, bucket + 1)
        low = first_at_least(tables, low, high, begin)
        high = first_at_least(tables, low, high, end)
        if high - low < highest - lowest:
            lowest, highest = low, high
    return lowest, highest


@njit(cache=True, nogil=True, _nrt=False)
def _go_on(tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, lo, hi):
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong."""
    coming = moves.coming[shape] if shape >= 0 else coming_of(tables, lists, row)
    last = row[EVENT]
    begin, end, policy = lo, hi, np.int64(t.ANY)
    if last >= 0:
        begin, end, policy = last + 1, min(hi, row[END]), tables[t.POLICY]
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
            number = _due_terms(
                tables, columns, programs, lists, scratch, moves, shape, row, variable, begin, due, fresh
            )
            if number < 0:
                return number
            if number and policy != t.ANY and turn == 0:
                continue
            coming &= ~(1 << variable)
            status, best = _reach(
                tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, variable, due, number,
                fresh, begin, end, best, policy, lo, hi,
            )  # fmt: skip
            if status < 0:
                return status
    if policy != t.ANY:
        for variable in range(variables):
            if fresh[variable, EVENT] == best:
                answer = _connect(
                    tables, columns, programs, lists, scratch, moves, graph, vertex, variable, fresh, lo, hi
                )
                if answer < 0:
                    return answer
    return 0


@njit(cache=True, nogil=True, _nrt=False)
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
                tables, columns, programs, lists, scratch, moves, shape, row, variable, event, lo, hi, due, fresh
            )
        if answer < 0:
            return answer, best
        if answer == FAILS:
            fresh[variable, EVENT] = -1
            continue
        if policy != t.ANY:
            return 0, event
        answer = _connect(tables, columns, programs, lists, scratch, moves, graph, vertex, variable, fresh, lo, hi)
        if answer < 0:
            return answer, best
    return 0, best


@njit(cache=True, nogil=True, _nrt=False)
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


@njit(cache=True, nogil=True, _nrt=False)
def _move(tables, columns, programs, lists, scratch, moves, shape, row, variable, event, lo, hi, due, fresh):
    """Write the match after another takes an event; return `HOLDS`, `FAILS`, or what went wrong."""
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
            return make_move(
                tables, columns, programs, lists, scratch, moves, move, row, variable, event, hi, fresh[variable]
            )
    open_ = open_of(tables, lists, scratch, row)
    return step(tables, columns, programs, lists, scratch, row, open_, variable, event, lo, hi, fresh[variable])


@njit(cache=True, nogil=True, _nrt=False)
def _connect(tables, columns, programs, lists, scratch, moves, graph, vertex, variable, fresh, lo, hi):
    """Add an edge to the vertex of a match, or make it a start; return 0, or what went wrong."""
    move, row = moves.made[variable], fresh[variable]
    target = _vertex(tables, columns, programs, lists, scratch, moves, graph, move, row, lo, hi)
    if target < 0:
        return target
    if vertex < 0:
        graph.starts[graph.sizes[STARTS]] = target
        graph.sizes[STARTS] += 1
        return 0
    if graph.sizes[EDGES] >= graph.edges.shape[0]:
        return NO_EDGES
    graph.edges[graph.sizes[EDGES]] = target
    graph.sizes[EDGES] += 1
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def begin_row(lists, scratch, row, hi):
    """Write the match that has no event yet."""
    for i in range(row.shape[0]):
        row[i] = t.NONE
    row[BOUND], row[TIES], row[END] = 0, 0, hi
    scratch.branches[0], scratch.branches[1] = 0, 0
    row[BRANCHES] = keep(lists, scratch.branches, 2)


@njit(cache=True, nogil=True, _nrt=False)
def explore(tables, columns, programs, lists, scratch, moves, graph, due, row, fresh, lo, hi):
    """Fill a graph with the matches so far of the events from `lo` to `hi`; return 0, or what there is no room for."""
    variables = tables[t.VARIABLES]
    refresh(tables, lists, moves)
    begin_row(lists, scratch, row, hi)
    shape = np.int64(FULL) if tables[t.NOTS] else shape_of(tables, lists, moves, row)
    answer = _go_on(
        tables, columns, programs, lists, scratch, moves, graph, np.int64(-1), shape, row, due, fresh, lo, hi
    )
    if answer < 0:
        return answer
    for home in range((hi - lo) * variables):
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            graph.first[vertex] = graph.sizes[EDGES]
            for i in range(row.shape[0]):
                row[i] = graph.rows[vertex, i]
            shape = np.int64(graph.shapes[vertex])
            answer = _go_on(
                tables, columns, programs, lists, scratch, moves, graph, vertex, shape, row, due, fresh, lo, hi
            )
            if answer < 0:
                return answer
            graph.last[vertex] = graph.sizes[EDGES]
            vertex = np.int64(graph.link[vertex]) - 1
    return 0
