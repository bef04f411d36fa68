"""The vertices of a graph of matches so far, and how they are found, made and connected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import enlarged, first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, hashed, is_row, place_rows, table_size
from trellis.kernels.explore.matches import EVENT, FAILS, HOLDS, SLOTS, TROUBLE, VARIABLE
from trellis.kernels.explore.moves import M_SHAPE, ends_here, has_moves, shape_of
from trellis.kernels.explore.progress import is_complete, is_result
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
    complete, wanted, shapes
        Whether it is a whole match, and one that meets HAVING; the number of its shape, or -1, see `moves`.
    table, at, link
        An open-addressing hash of the vertices, plus one, but for the first of each event and variable; the place of
        each in it, or -1; the next vertex of the same event and variable.
    heads, tails
        The first and last vertex of each event and variable, plus one.
    starts
        The vertices that begin a match.
    sizes
        How many vertices, edges and starts there are; then how far the exploration has come, see `explore`: whether
        it has begun, the place in `heads` and the vertex, plus one, whose edges come next.
    """

    rows: np.ndarray  # int64 (room, numbers)
    first: np.ndarray  # int64 (room,)
    last: np.ndarray  # int64 (room,)
    edges: np.ndarray  # int32 (room,)
    complete: np.ndarray  # bool (room,)
    wanted: np.ndarray  # bool (room,)
    shapes: np.ndarray  # int32 (room,)
    table: np.ndarray  # int32 (power of two,)
    at: np.ndarray  # int64 (room,)
    link: np.ndarray  # int32 (room,)
    heads: np.ndarray  # int32 (events * variables,)
    tails: np.ndarray  # int32 (events * variables,)
    starts: np.ndarray  # int32 (room,)
    sizes: np.ndarray  # int64 (6,)


VERTICES, EDGES, STARTS, BEGUN, HOME, VERTEX = range(6)


def make_graph(vertices: int, edges: int, width: int, places: int) -> MatchGraph:
    """Return room for vertices of some numbers each, for edges, and for events times variables."""
    return MatchGraph(
        np.empty((vertices, width), np.int64), np.empty(vertices, np.int64), np.empty(vertices, np.int64),
        np.empty(edges, np.int32), np.empty(vertices, np.bool_), np.empty(vertices, np.bool_),
        np.empty(vertices, np.int32),
        np.zeros(table_size(vertices), np.int32), np.empty(vertices, np.int64), np.empty(vertices, np.int32),
        np.zeros(places, np.int32), np.zeros(places, np.int32), np.empty(vertices, np.int32), np.zeros(6, np.int64),
    )  # fmt: skip


def grow_graph(graph: MatchGraph, vertices: int, edges: int) -> MatchGraph:
    """Return the same graph with more room: the exploration goes on from where it stands."""
    used, sizes = int(graph.sizes[VERTICES]), graph.sizes
    if edges > len(graph.edges):
        graph = graph._replace(edges=enlarged(graph.edges, int(sizes[EDGES]), edges))
    if vertices > len(graph.rows):
        of_vertices = ("rows", "first", "last", "complete", "wanted", "shapes", "at", "link")
        more = {name: enlarged(getattr(graph, name), used, vertices) for name in of_vertices}
        more["starts"] = enlarged(graph.starts, int(sizes[STARTS]), vertices)
        graph = graph._replace(**more, table=np.zeros(table_size(vertices), np.int32))
        place_rows(graph.rows, used, graph.table, graph.at)
    return graph


@njit(cache=True, nogil=True, _nrt=False)
def forget_graph(graph, lo, hi, variables):
    """Empty a graph."""
    for v in range(graph.sizes[VERTICES]):
        if graph.at[v] >= 0:
            graph.table[graph.at[v]] = 0
    for i in range((hi - lo) * variables):
        graph.heads[i] = 0
        graph.tails[i] = 0
    graph.sizes[:] = 0


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


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _vertex(tables, columns, programs, lists, scratch, moves, graph, move, row, lo, hi):
    """Return the vertex of a match, which is made if there is none; or what went wrong."""
    table, rows = graph.table, graph.rows
    home = (row[EVENT] - lo) * tables[t.VARIABLES] + row[VARIABLE]
    first = np.int64(graph.heads[home]) - 1
    place = np.int64(-1)
    if first >= 0:  # the first vertex of an event and variable is not in the table: mostly it is the only one
        if is_row(rows, first, row):
            return first
        mask = np.uint64(table.shape[0] - 1)
        slot = hashed(row, 0, row.shape[0]) & mask
        while table[slot]:
            if is_row(rows, np.int64(table[slot]) - 1, row):
                return np.int64(table[slot]) - 1
            slot = (slot + np.uint64(1)) & mask
        place = np.int64(slot)
    number = graph.sizes[VERTICES]
    if number >= rows.shape[0]:
        return NO_VERTICES
    if move >= 0:
        complete = ends_here(tables, columns, programs, lists, scratch, moves, move, row)
        graph.shapes[number] = moves.rows[move, M_SHAPE]
    else:
        complete = is_complete(tables, columns, programs, lists, scratch, row, lo, hi)
        graph.shapes[number] = shape_of(tables, lists, moves, row) if has_moves(tables) else FULL
    wanted = is_result(tables, columns, programs, lists, scratch, row) if complete == HOLDS else FAILS
    if complete == TROUBLE or wanted == TROUBLE:
        return TROUBLE
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    graph.complete[number], graph.wanted[number] = complete == HOLDS, wanted == HOLDS
    graph.at[number] = place
    graph.link[number] = 0
    graph.first[number] = graph.last[number] = 0
    if first < 0:
        graph.heads[home] = number + 1
    else:
        table[place] = number + 1
        graph.link[graph.tails[home] - 1] = number + 1
    graph.tails[home] = number + 1
    graph.sizes[VERTICES] = number + 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def connect(tables, columns, programs, lists, scratch, moves, graph, vertex, move, row, lo, hi):
    """Add an edge to the vertex of a match, or make it a start; return 0, or what went wrong.

    `move` is the one that led there, or -1.
    """
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
