"""The graph of all matches so far of one group: each is a vertex, and leads to those with one more event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import clear, hashed, keep
from trellis.kernels.explore.matches import (
    BOUND,
    BRANCHES,
    END,
    EVENT,
    FAILS,
    HOLDS,
    OPENS,
    SLOTS,
    TIES,
    TROUBLE,
    VARIABLE,
    begin_iteration,
    holds,
    is_complete,
    is_decided,
    is_result,
    open_views,
    step,
    taken_by,
)
from trellis.kernels.expression.program import MISFIT, TRUE
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
    complete, wanted
        Whether it is a whole match, and one that meets HAVING.
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
    wanted: np.ndarray
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
        np.empty(edges, np.int32), np.empty(vertices, np.bool_), np.empty(vertices, np.bool_),
        np.zeros(2 * vertices, np.int32),
        np.empty(vertices, np.int64), np.empty(vertices, np.int32), np.zeros(places, np.int32),
        np.zeros(places, np.int32), np.empty(vertices, np.int32), np.zeros(3, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def forget_graph(graph, lo, hi, variables):
    """Empty a graph."""
    for v in range(graph.sizes[VERTICES]):
        graph.table[graph.at[v]] = 0
    for i in range((hi - lo) * variables):
        graph.heads[i] = 0
        graph.tails[i] = 0
    graph.sizes[:] = 0


@njit(cache=True, nogil=True)
def _vertex(tables, columns, programs, lists, scratch, graph, row, lo, hi):
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
    complete = is_complete(tables, columns, programs, lists, scratch, row, lo, hi)
    wanted = is_result(tables, columns, programs, lists, scratch, row) if complete == HOLDS else FAILS
    if complete == TROUBLE or wanted == TROUBLE:
        return TROUBLE
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    graph.complete[number], graph.wanted[number] = complete == HOLDS, wanted == HOLDS
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


@njit(cache=True, nogil=True)
def asked_terms(tables, scratch, row, variable, due):
    """Write the terms that an event must meet to be taken by a variable; return how many."""
    bound, views, size = row[BOUND], taken_by(tables, row, variable), np.int64(0)
    for term in range(tables[t.TERMS]):
        own = t.at(tables, t.T_VARIABLES, term)
        bit = own & views
        if t.at(tables, t.T_ABSENT, term) >= 0 or not bit or (own & ~bit) & ~bound or not scratch.decided[term]:
            continue
        if bound & bit:
            if not t.at(tables, t.T_MOVING, term) & bit:
                continue
        elif t.at(tables, t.T_PAIRED, term) & bit:
            continue
        due[size] = term
        size += 1
    return size


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def meets(tables, columns, programs, lists, scratch, row, variable, event, due, number):
    """Return whether an event meets the terms that are asked: `HOLDS`, `FAILS` or `TROUBLE`."""
    for i in range(number):
        answer = holds(tables, columns, programs, lists, scratch, due[i], row, variable, event)
        if answer != TRUE:
            return TROUBLE if answer == MISFIT else FAILS
    return HOLDS


@njit(cache=True, nogil=True)
def open_of(tables, columns, programs, lists, scratch, row):
    """Return the variables that may come next and those that may take events, and note which terms are decided."""
    coming, open_ = np.int64(0), open_views(tables, lists, row)
    begin = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(begin, lists.ends[row[BRANCHES]], 2):
        coming |= t.at(tables, t.A_NEXT, lists.values[b])
    for term in range(tables[t.TERMS]):
        scratch.decided[term] = is_decided(tables, term, open_, row[BOUND], row)
    return coming, open_


@njit(cache=True, nogil=True)
def joined_by(tables, columns, programs, lists, scratch, row, variable):
    """Return `HOLDS`, `FAILS` or `TROUBLE`, and the match that an event of a letter joins; note its decided terms.

    It is the match itself, or, where the letter begins an iteration, what of it counts then.
    """
    if not t.at(tables, t.L_GROUPS, variable):
        return HOLDS, row
    status = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
    if status == HOLDS:
        open_of(tables, columns, programs, lists, scratch, scratch.begun)
    return status, scratch.begun


@njit(cache=True, nogil=True)
def _first(tables, columns, programs, lists, scratch, row, open_, variables, step_number, due, fresh, lo, hi):
    """Return the first event that a step can take for one of some variables, or -1; below that, what went wrong.

    For `contiguous` only the very next event can be it.
    """
    begin, end = row[EVENT] + 1, min(hi, row[END])
    if t.at(tables, t.A_POLICIES, step_number) == t.CONTIGUOUS:
        end = min(end, begin + 1)
    best = end
    for variable in range(tables[t.VARIABLES]):
        if begin >= best or not variables & (1 << variable):
            continue
        status, own = joined_by(tables, columns, programs, lists, scratch, row, variable)
        if status == TROUBLE:
            return TROUBLE - 1
        number = asked_terms(tables, scratch, own, variable, due)
        lowest, highest = candidates(tables, columns, own, variable, due, number, begin, best)
        for i in range(lowest, highest if status == HOLDS else lowest):
            event = tables[i]
            answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
            if answer == HOLDS:
                answer = step(
                    tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi,
                    1 << step_number, 0, fresh[variable],
                )  # fmt: skip
            if answer < 0:
                return answer - 1
            if answer == HOLDS:
                best = event
                break
        if t.at(tables, t.L_GROUPS, variable):
            open_of(tables, columns, programs, lists, scratch, row)
    return best if best < end else -1


@njit(cache=True, nogil=True)
def _barred(tables, columns, programs, lists, scratch, row, open_, coming, due, fresh, lo, hi, event, firsts):
    """Return the greedy variables that could take an event, or an earlier one; below 0, what went wrong."""
    barred = np.int64(0)
    for variable in range(tables[t.VARIABLES]):
        bit = 1 << variable
        if not tables[t.GREEDY] & coming & bit or firsts[variable] < 0:
            continue
        if columns[t.SAME_ROW, firsts[variable]] < columns[t.SAME_ROW, event] or firsts[variable] == event:
            barred |= bit
        elif firsts[variable] < event:  # at the same time as the first: it may be taken, too
            upto = tables[t.E_UPTO] + variable
            if columns[upto, event] == columns[upto, event + 1]:
                continue
            answer, own = joined_by(tables, columns, programs, lists, scratch, row, variable)
            if answer == HOLDS:
                number = asked_terms(tables, scratch, own, variable, due)
                answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
            if answer == HOLDS:
                answer = step(
                    tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi, t.EVERY_STEP, 0,
                    fresh[variable],
                )  # fmt: skip
            if t.at(tables, t.L_GROUPS, variable):
                open_of(tables, columns, programs, lists, scratch, row)
            if answer < 0:
                return answer
            if answer == HOLDS:
                barred |= bit
    return barred


@njit(cache=True, nogil=True)
def _go_on(tables, columns, programs, lists, scratch, graph, vertex, row, due, fresh, lo, hi):
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong."""
    coming, open_ = open_of(tables, columns, programs, lists, scratch, row)
    variables, last = tables[t.VARIABLES], row[EVENT]
    begin, end = last + 1 if last >= 0 else lo, min(hi, row[END]) if last >= 0 else hi
    if begin >= end:
        return 0
    steps, free = np.int64(0), np.int64(0)  # those that may come next, and of them those that may skip any event
    nexts, firsts = scratch.nexts, scratch.firsts
    first = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(first, lists.ends[row[BRANCHES]], 2):
        steps |= t.at(tables, t.A_STEPS, lists.values[b])
    for number in range(tables[t.STEPS]):
        nexts[number] = -1
        if not steps & (1 << number):
            continue
        if last < 0 or t.at(tables, t.A_POLICIES, number) == t.ANY:
            free |= 1 << number
            continue
        own = coming & t.at(tables, t.A_STEP_VARIABLES, number)
        nexts[number] = _first(tables, columns, programs, lists, scratch, row, open_, own, number, due, fresh, lo, hi)
        if nexts[number] < -1:
            return nexts[number] + 1
    greedy = tables[t.GREEDY] & coming if last >= 0 else np.int64(0)
    for variable in range(variables if greedy else 0):
        firsts[variable] = -1
        for number in range(tables[t.STEPS]):
            own = greedy & (1 << variable) & t.at(tables, t.A_STEP_VARIABLES, number)
            if own and steps & (1 << number):
                event = _first(tables, columns, programs, lists, scratch, row, open_, own, number, due, fresh, lo, hi)
                if event < -1:
                    return event + 1
                if event >= 0 and (firsts[variable] < 0 or event < firsts[variable]):
                    firsts[variable] = event
    for variable in range(variables):
        if not coming & (1 << variable):
            continue
        status, own = joined_by(tables, columns, programs, lists, scratch, row, variable)
        if status == TROUBLE:
            return TROUBLE
        if status == FAILS:
            open_of(tables, columns, programs, lists, scratch, row)
            continue
        number = asked_terms(tables, scratch, own, variable, due)
        lowest, highest = np.int64(0), np.int64(tables[t.STEPS])
        anywhere = False
        for k in range(tables[t.STEPS]):
            anywhere |= free & (1 << k) != 0 and t.at(tables, t.A_STEP_VARIABLES, k) & (1 << variable) != 0
        if anywhere:
            lowest, highest = candidates(tables, columns, own, variable, due, number, begin, end)
        for i in range(lowest, highest):
            event = tables[i] if anywhere else nexts[i]
            allowed, known = free, False
            for k in range(tables[t.STEPS]):
                if event >= 0 and nexts[k] == event:
                    allowed |= 1 << k
                    known |= not anywhere and k < i
            if event < 0 or known:
                continue
            upto = tables[t.E_UPTO] + variable
            if columns[upto, event] == columns[upto, event + 1]:
                continue
            barred = np.int64(0)
            if greedy:
                barred = _barred(
                    tables, columns, programs, lists, scratch, row, open_, greedy, due, fresh, lo, hi, event, firsts
                )
                if barred < 0:
                    return barred
                _, own = joined_by(tables, columns, programs, lists, scratch, row, variable)
                number = asked_terms(tables, scratch, own, variable, due)
            answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
            if answer == HOLDS:
                answer = step(
                    tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi, allowed, barred,
                    fresh[variable],
                )  # fmt: skip
            if answer == HOLDS:
                answer = _connect(tables, columns, programs, lists, scratch, graph, vertex, fresh[variable], lo, hi)
            if answer < 0:
                return answer
        if t.at(tables, t.L_GROUPS, variable):
            open_of(tables, columns, programs, lists, scratch, row)
    return 0


@njit(cache=True, nogil=True)
def _connect(tables, columns, programs, lists, scratch, graph, vertex, row, lo, hi):
    """Add an edge to the vertex of a match, or make it a start; return 0, or what went wrong."""
    target = _vertex(tables, columns, programs, lists, scratch, graph, row, lo, hi)
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


@njit(cache=True, nogil=True)
def begin_row(lists, scratch, row, hi):
    """Write the match that has no event yet."""
    for i in range(row.shape[0]):
        row[i] = t.NONE
    row[BOUND], row[TIES], row[END], row[OPENS] = 0, 0, hi, 0
    scratch.branches[0], scratch.branches[1] = 0, 0
    row[BRANCHES] = keep(lists, scratch.branches, 2)


@njit(cache=True, nogil=True)
def explore(tables, columns, programs, lists, scratch, graph, due, fresh, lo, hi):
    """Fill a graph with the matches so far of the events from `lo` to `hi`; return 0, or what there is no room for."""
    variables = tables[t.VARIABLES]
    clear(lists)
    row = np.empty(graph.rows.shape[1], np.int64)
    begin_row(lists, scratch, row, hi)
    answer = _go_on(tables, columns, programs, lists, scratch, graph, np.int64(-1), row, due, fresh, lo, hi)
    if answer < 0:
        return answer
    for home in range((hi - lo) * variables):
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            graph.first[vertex] = graph.sizes[EDGES]
            for i in range(row.shape[0]):
                row[i] = graph.rows[vertex, i]
            answer = _go_on(tables, columns, programs, lists, scratch, graph, vertex, row, due, fresh, lo, hi)
            if answer < 0:
                return answer
            graph.last[vertex] = graph.sizes[EDGES]
            vertex = np.int64(graph.link[vertex]) - 1
    return 0
