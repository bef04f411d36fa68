"""Matches so far that are made when they are asked for: what follows one, and whether anything comes of it.

What follows a match is looked for among some events at a time, and its edges lie on a stack: those of a match that is
left are dropped. The matches themselves stay, with what is known of them, so that a dead end is entered once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.graph import ALL_LETTERS, leave
from trellis.kernels.explore.lists import Lists
from trellis.kernels.explore.matches import BRANCHES, END, EVENT, VARIABLE, Scratch
from trellis.kernels.explore.moves import Moves, coming_of
from trellis.kernels.explore.plain import NOT_LEAN, go_on_plainly
from trellis.kernels.explore.vertices import EDGES, NO_EDGES, STARTS, MatchGraph
from trellis.kernels.expression.program import Programs
from trellis.kernels.jit import njit

NO_STEPS, NO_LEVELS = -9, -10  # more was looked at than may be; more events follow one another than there is room for
ROOT = -1  # the match that has no event yet
REACHES, REACHES_NOT, IS_FOLLOWED, IS_NOT_FOLLOWED, IS_PRECEDED, IS_DEAD = (1 << i for i in range(6))
"""Bits that tell what is known of a vertex: whether it leads to a whole match, whether something that is later than its
event does that follows it, whether something comes before it that is earlier, whether it is among the dead ends."""
EVENTS, FACTOR = 8, 4  # events that are looked at first, and how many times as many afterwards
STEP = 16  # events that are looked at in the time in which a match is turned to
VERTEX, FIRST, NEXT, LAST = range(
    4
)  # numbers of a vertex on the way: its first edge, the next, and that behind the last
STEPS, LO, HI, FEWEST = range(4)
"""Numbers of a walk: the steps that are left, the events of the group, and whether a match that can be completed can be
so without another event of a variable that may take any number more; see `trellis.plan.fewest`."""
BY_LETTER = 1 << 40  # more than there are events


class Explorer(NamedTuple):
    """An exploration with the room that it works in; see the page of this package. `root` is the match of no event."""

    tables: np.ndarray  # int64 (numbers,)
    columns: np.ndarray  # int64 (rows, events + 1)
    programs: Programs
    lists: Lists
    scratch: Scratch
    moves: Moves
    graph: MatchGraph
    due: np.ndarray  # int64 (terms + 1,)
    fresh: np.ndarray  # int64 (variables, numbers of a match)
    row: np.ndarray  # int64 (numbers of a match,)
    root: np.ndarray  # int64 (numbers of a match + 1,), its shape the last


class Known(NamedTuple):
    """The knowledge of vertices: whether anything comes of them.

    Attributes
    ----------
    bits
        What is known of each, as bits.
    done
        The event up to which it was looked for those that a vertex comes before.
    way
        The vertices that lead to the one that is looked at.
    numbers
        The steps that are left, the events of the group, and whether few events tell; see `FEWEST`.
    """

    bits: np.ndarray  # uint8 (vertices,)
    done: np.ndarray  # int32 (vertices,)
    way: np.ndarray  # int64 (levels, 4)
    numbers: np.ndarray  # int64 (4,)


def make_known(vertices: int, levels: int) -> Known:
    """Return room for what is known of vertices, of matches with so many events at most."""
    return Known(
        np.zeros(vertices, np.uint8), np.zeros(vertices, np.int32), np.empty((levels, 4), np.int64),
        np.zeros(4, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def is_whole(tables, event):
    """Return whether what follows a match that ends with an event (-1: the root) is found at once, not bit by bit."""
    return tables[t.GREEDY] != 0 or tables[t.STEPS] > 1 or (event >= 0 and t.at(tables, t.A_POLICIES, 0) != t.ANY)


@njit(cache=True, nogil=True, _nrt=False)
def limit_of(own, vertex, hi):
    """Return the event up to which others may follow a vertex; 0 if none may."""
    if vertex == ROOT:
        return hi
    rows = own.graph.rows
    if not coming_of(own.tables, own.lists, rows[vertex]):
        return np.int64(0)
    return min(hi, rows[vertex, END])


@njit(cache=True, nogil=True, _nrt=False)
def expand(own, known, vertex, begin, end, letters):
    """Add the edges of a vertex, or of the root, to events from `begin` to `end`; return 0, or what went wrong.

    Only events that some letters read are looked at.
    """
    graph, row, lo, hi = own.graph, own.row, known.numbers[LO], known.numbers[HI]
    known.numbers[STEPS] -= max(end - begin, 0) + STEP
    if known.numbers[STEPS] < 0:
        return np.int64(NO_STEPS)
    width = row.shape[0]
    shape = own.root[width]
    for i in range(width):
        row[i] = own.root[i] if vertex == ROOT else graph.rows[vertex, i]
    if vertex != ROOT:
        shape = np.int64(graph.shapes[vertex])
    first, status = graph.sizes[EDGES], np.int64(NOT_LEAN)
    if shape >= 0:
        status = go_on_plainly(
            own.tables, own.columns, own.programs, own.lists, own.scratch, own.moves, graph, vertex, shape, row,
            own.due, own.fresh, begin, end, letters, lo, hi,
        )  # fmt: skip
    if status == NOT_LEAN:
        status = leave(
            own.tables, own.columns, own.programs, own.lists, own.scratch, own.moves, graph, vertex, shape, row,
            own.due, own.fresh, begin, end, letters, lo, hi,
        )  # fmt: skip
    if status < 0:
        return np.int64(status)
    if vertex == ROOT:
        if first + graph.sizes[STARTS] > graph.edges.shape[0]:
            return np.int64(NO_EDGES)
        for i in range(graph.sizes[STARTS]):
            graph.edges[first + i] = graph.starts[i]
        graph.sizes[EDGES] = first + graph.sizes[STARTS]
        graph.sizes[STARTS] = 0
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def sort_edges(graph, begin, weight):
    """Bring the edges from one on into the order of their events; by `BY_LETTER`, those of later letters first."""
    edges, rows, end = graph.edges, graph.rows, graph.sizes[EDGES]
    gap = end - begin
    while gap > 1:
        gap = 1 if gap < 5 else (gap * 5) // 11
        for i in range(begin + gap, end):
            edge = edges[i]
            key, j = rows[edge, EVENT] - weight * rows[edge, VARIABLE], i
            while j >= begin + gap and rows[edges[j - gap], EVENT] - weight * rows[edges[j - gap], VARIABLE] > key:
                edges[j] = edges[j - gap]
                j -= gap
            edges[j] = edge


@njit(cache=True, nogil=True, _nrt=False)
def _is_later(own, vertex, target):
    """Return whether a target's event has another time than that of a vertex."""
    same, rows = own.columns[t.SAME_ROW], own.graph.rows
    return same[rows[vertex, EVENT]] != same[rows[target, EVENT]]


@njit(cache=True, nogil=True, _nrt=False)
def _new_letters(own, vertex):
    """Return the letters, as bits, that a vertex may take next but for those that lead back to the same states."""
    tables, lists, letters = own.tables, own.lists, np.int64(0)
    branches = own.graph.rows[vertex, BRANCHES]
    begin = lists.ends[branches - 1] if branches else 0
    for b in range(begin, lists.ends[branches], 2):
        state = lists.values[b]
        for k in range(t.at(tables, t.A_BEGINS, state), t.at(tables, t.A_BEGINS, state + 1)):
            if t.at(tables, t.A_TARGET, k) != state:
                letters |= 1 << t.at(tables, t.A_VARIABLE, k)
    return letters


@njit(cache=True, nogil=True, _nrt=False)
def _look(own, known, vertex, later, letters):
    """Add the edges of a vertex until one leads to what is known to reach a whole match; return whether one does.

    With `later` only edges to another time count; always only those of some letters. What went wrong is below 0.
    """
    graph, hi = own.graph, known.numbers[HI]
    limit, begin = limit_of(own, vertex, hi), graph.rows[vertex, EVENT] + 1
    size = hi if is_whole(own.tables, begin) else np.int64(EVENTS)
    while begin < limit:
        end, first = min(begin + size, limit), graph.sizes[EDGES]
        status = expand(own, known, vertex, begin, end, letters)
        if status < 0:
            return status
        for i in range(first, graph.sizes[EDGES]):
            target = graph.edges[i]
            leads = graph.complete[target] or known.bits[target] & REACHES
            if leads and not (later and not _is_later(own, vertex, target)):
                return np.int64(1)
        begin, size = end, size * FACTOR
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def reaches(own, known, vertex):
    """Return whether a vertex is a whole match or leads to one, 1 or 0; or what went wrong."""
    graph, bits, way, edges = own.graph, known.bits, known.way, own.graph.edges
    if bits[vertex] & (REACHES | REACHES_NOT):
        return np.int64(1 if bits[vertex] & REACHES else 0)
    base, depth, answer, next_one = graph.sizes[EDGES], -1, np.int64(0), np.int64(vertex)
    while True:
        if next_one >= 0:
            depth += 1
            if depth >= way.shape[0]:
                return np.int64(NO_LEVELS)
            way[depth, VERTEX], way[depth, FIRST] = next_one, graph.sizes[EDGES]
            answer = np.int64(1)
            if not graph.complete[next_one]:
                letters = _new_letters(own, next_one) if known.numbers[FEWEST] else np.int64(ALL_LETTERS)
                answer = _look(own, known, next_one, False, letters)
            if answer:
                break
            sort_edges(graph, way[depth, FIRST], BY_LETTER)
            way[depth, NEXT], way[depth, LAST] = way[depth, FIRST], graph.sizes[EDGES]
        next_one = np.int64(-1)
        while way[depth, NEXT] < way[depth, LAST] and next_one < 0:
            target = np.int64(edges[way[depth, NEXT]])
            way[depth, NEXT] += 1
            if not bits[target] & REACHES_NOT:
                next_one = target
        if next_one < 0:
            bits[way[depth, VERTEX]] |= REACHES_NOT
            graph.sizes[EDGES] = way[depth, FIRST]
            depth -= 1
            if depth < 0:
                break
    if answer < 0:
        return answer
    for i in range(depth + 1):
        bits[way[i, VERTEX]] |= REACHES
    graph.sizes[EDGES] = base
    return answer


@njit(cache=True, nogil=True, _nrt=False)
def is_followed(own, known, vertex):
    """Return whether something later can be put after a vertex that makes a whole match, 1 or 0; or what went wrong."""
    graph, bits = own.graph, known.bits
    if bits[vertex] & (IS_FOLLOWED | IS_NOT_FOLLOWED):
        return np.int64(1 if bits[vertex] & IS_FOLLOWED else 0)
    first = graph.sizes[EDGES]
    answer = _look(own, known, vertex, True, ALL_LETTERS)
    place = graph.sizes[EDGES]
    while place > first and answer == 0:
        place -= 1
        target = np.int64(graph.edges[place])
        if _is_later(own, vertex, target):
            answer = reaches(own, known, target)
    if answer >= 0:
        graph.sizes[EDGES] = first
        bits[vertex] |= IS_FOLLOWED if answer else IS_NOT_FOLLOWED
    return answer


@njit(cache=True, nogil=True, _nrt=False)
def find_preceded(own, known, floor, event):
    """Find all matches so far that end with an event, of those that lead to a whole match; note what precedes them.

    All that begin at it or before are there; those with events before `floor` do not come as far. Return 0, or what
    went wrong.
    """
    tables, graph, bits, done, lo = own.tables, own.graph, known.bits, known.done, known.numbers[LO]
    letters = tables[t.VARIABLES]
    for home in range((floor - lo) * letters, (event - lo) * letters):
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            begin = max(np.int64(done[vertex]), graph.rows[vertex, EVENT] + 1)
            answer = np.int64(0)
            if begin <= event:
                answer = reaches(own, known, vertex)
            if answer < 0:
                return answer
            if answer:
                end, first = event + 1, graph.sizes[EDGES]
                if is_whole(tables, event):
                    end = known.numbers[HI]
                status = expand(own, known, vertex, begin, end, ALL_LETTERS)
                if status < 0:
                    return status
                for i in range(first, graph.sizes[EDGES]):
                    if _is_later(own, vertex, graph.edges[i]):
                        bits[graph.edges[i]] |= IS_PRECEDED
                graph.sizes[EDGES], done[vertex] = first, end
            vertex = np.int64(graph.link[vertex]) - 1
    return np.int64(0)
