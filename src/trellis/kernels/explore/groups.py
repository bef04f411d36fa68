"""The matches of some groups as graphs one after another, and the results among them as paths of one graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.forbidden import note_matches
from trellis.kernels.explore.graph import explore
from trellis.kernels.explore.matches import NODE
from trellis.kernels.explore.moves import renew
from trellis.kernels.explore.report import (
    EDGE_BYTES,
    EVERY,
    NO_MEMORY,
    UNEXTENDABLE,
    VERTEX_BYTES,
    OrderedGraph,
    every_match,
    follow,
    follow_single,
    is_single,
    ordered,
)
from trellis.kernels.explore.results import paths_of
from trellis.kernels.explore.vertices import EDGES, VERTICES, forget_graph
from trellis.kernels.jit import njit


class GroupGraphs(NamedTuple):
    """The graphs of groups one after another; see `OrderedGraph`.

    `begins` are int64 (groups + 1, 3): the first vertex, edge and start of each group; numbers in it count from there.
    """

    events: np.ndarray  # int64 (vertices,)
    variables: np.ndarray  # int64 (vertices,)
    complete: np.ndarray  # bool (vertices,)
    wanted: np.ndarray  # bool (vertices,)
    offsets: np.ndarray  # int64 (vertices + 1,)
    targets: np.ndarray  # int32 (edges,)
    group: np.ndarray  # int32 (vertices,)
    group_end: np.ndarray  # int32 (vertices,)
    starts: np.ndarray  # int32 (starts,)
    begins: np.ndarray  # int64 (groups + 1, 3)


@njit(cache=True, nogil=True, branching=True)
def explore_groups(
    tables, columns, programs, lists, scratch, moves, graph, due, fresh, groups_lo, groups_hi, first, last, covers,
    most, notes, forbids,
):  # fmt: skip
    """Return the graphs of the groups from `first` to `last`, or what a NOT that forbids them asks of their matches.

    Where there was no room for something the graph of that group stays: with more, the next call goes on with it.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, graph, due, fresh
        What the exploration goes by, and works in.
    groups_lo, groups_hi, first, last
        The groups.
    covers
        For each event the first with which matches that begin there may end: of each group only those that begin with
        its first event are explored. Empty where all are.
    most
        The bytes that the graphs may take.
    notes, forbids
        Whether matches are noted, in place of graphs, and what of them; see `ForbiddenTerms`.

    Returns
    -------
    status, group
        0, or what there was no room for, `NO_MEMORY` beyond `most`; and the group that it happened in.
    graphs
        Of the groups before it: the members of `GroupGraphs`.
    found, tuples
        Their matches; see `note_matches`.
    """
    room, edge_room, start_room, alone = 1024, 1024, 1024, covers.shape[0] > 0
    row = np.empty(graph.rows.shape[1], np.int64)
    events, taken = np.empty(room, np.int64), np.empty(room, np.int64)
    complete, wanted = np.empty(room, np.bool_), np.empty(room, np.bool_)
    group_of, group_end = np.empty(room, np.int32), np.empty(room, np.int32)
    offsets, targets, starts = np.zeros(room, np.int64), np.empty(edge_room, np.int32), np.empty(start_room, np.int32)
    begins = np.zeros((last - first + 1, 3), np.int64)
    told = NODE + forbids.stated.shape[0] + tables[t.TOLDS]
    found, tuples = np.empty((64, told), np.int64), np.empty(64, np.int64)
    vertex = edge = start = status = matches = used = 0
    group = first
    while group < last:
        lo, hi = groups_lo[group], groups_hi[group]
        status = explore(tables, columns, programs, lists, scratch, moves, graph, due, row, fresh, alone, lo, hi)
        if notes and status == 0:
            status, found, tuples, matches, used = note_matches(
                tables, columns, programs, lists, scratch, graph, groups_lo, groups_hi, group, forbids, found, tuples,
                matches, used,
            )  # fmt: skip
            if status < 0:  # what was noted is told by the lists: they begin anew
                renew(tables, lists, moves)
                forget_graph(graph, lo, hi, tables[t.VARIABLES])
        if status < 0:
            break
        if notes:
            forget_graph(graph, lo, hi, tables[t.VARIABLES])
            group += 1
            continue
        size, edges = graph.sizes[VERTICES], graph.sizes[EDGES]
        if (2 * vertex + size) * VERTEX_BYTES + (2 * edge + edges) * EDGE_BYTES > most:
            status = NO_MEMORY
            break
        one = ordered(tables, graph, lo, hi)
        for v in range(size if alone else 0):
            one.wanted[v] &= one.events[v] >= covers[lo]
        forget_graph(graph, lo, hi, tables[t.VARIABLES])
        number = one.starts.shape[0]
        if first + 1 == last:  # large graphs are alone: they are not copied
            begins[1] = (size, edges, number)
            graphs = (
                one.events, one.variables, one.complete, one.wanted, one.offsets[:size], one.targets, one.group,
                one.group_end, one.starts, begins,
            )  # fmt: skip
            return status, last, graphs, found[:matches], tuples[:used]
        if vertex + size + 1 > room:
            room = 2 * (vertex + size + 1)
            events, taken, complete = (
                grown(events, vertex, room),
                grown(taken, vertex, room),
                grown(complete, vertex, room),
            )
            group_of, group_end = grown(group_of, vertex, room), grown(group_end, vertex, room)
            offsets, wanted = grown(offsets, vertex, room), grown(wanted, vertex, room)
        if edge + edges > edge_room:
            edge_room = 2 * (edge + edges)
            targets = grown(targets, edge, edge_room)
        if start + number > start_room:
            start_room = 2 * (start + number)
            starts = grown(starts, start, start_room)
        for v in range(size):
            events[vertex + v], taken[vertex + v], complete[vertex + v] = (
                one.events[v],
                one.variables[v],
                one.complete[v],
            )
            group_of[vertex + v], group_end[vertex + v] = one.group[v], one.group_end[v]
            offsets[vertex + v], wanted[vertex + v] = one.offsets[v], one.wanted[v]
        for i in range(edges):
            targets[edge + i] = one.targets[i]
        for i in range(number):
            starts[start + i] = one.starts[i]
        vertex += size
        edge += edges
        start += number
        group += 1
        begins[group - first] = (vertex, edge, start)
    graphs = (
        events[:vertex], taken[:vertex], complete[:vertex], wanted[:vertex], offsets[:vertex], targets[:edge],
        group_of[:vertex], group_end[:vertex], starts[:start], begins[: group - first + 1],
    )  # fmt: skip
    return status, group, graphs, found[:matches], tuples[:used]


@njit(cache=True, nogil=True)
def _graph(graphs, group):
    """Return the graph of a group."""
    (v, e, s), (w, f, u) = graphs.begins[group], graphs.begins[group + 1]
    offsets = np.empty(w - v + 1, np.int64)
    for i in range(w - v):
        offsets[i] = graphs.offsets[v + i]
    offsets[w - v] = f - e
    return OrderedGraph(
        graphs.events[v:w], graphs.variables[v:w], graphs.complete[v:w], graphs.wanted[v:w], offsets,
        graphs.targets[e:f], graphs.group[v:w], graphs.group_end[v:w], graphs.starts[s:u],
    )  # fmt: skip


@njit(cache=True, nogil=True, branching=True)
def report_groups(graphs, first, mode, same, lists, members, chosen, most, left):
    """Return the results of the groups from `first` on as paths, one group after another, in `most` bytes.

    `left` are the steps that may be made; see `SPENT`.

    Returns
    -------
    status, group
        0, or what there was no room for, `NO_MEMORY` beyond `most`; and the group that it happened in.
    events, variables, offsets, targets
        The vertices of the groups before it; see `FoundPaths`.
    begins, ambiguous
        Where the vertices of each group begin, and whether its paths are not in the order of its results.
    """
    last = graphs.begins.shape[0] - 1
    events, codes = np.empty(1024, np.int64), np.empty(1024, np.int64)
    offsets, targets = np.zeros(1025, np.int64), np.empty(1024, np.int32)
    begins, ambiguous = np.zeros(last - first + 1, np.int64), np.zeros(last - first, np.bool_)
    vertex = edge = status = 0
    group = first
    while group < last:
        found = _graph(graphs, group)
        if mode == EVERY:
            product = every_match(found)
        elif mode == UNEXTENDABLE and is_single(found):
            product = follow_single(found, same)
        else:
            status, product = follow(found, mode, same, lists, members, most, left)
        if status < 0:
            break
        taken = (vertex * VERTEX_BYTES + edge * EDGE_BYTES) * 2
        taken += product.vertices.shape[0] * VERTEX_BYTES + product.targets.shape[0] * EDGE_BYTES
        fits, paths = paths_of(found, product, chosen, most - taken)
        if not fits:
            status = NO_MEMORY
            break
        if first + 1 == last:  # large graphs are alone: they are not copied
            begins[1], ambiguous[0] = paths.events.shape[0], paths.ambiguous
            return (
                status, last, paths.events, paths.variables, paths.offsets, paths.targets, begins, ambiguous
            )  # fmt: skip
        size, edges = paths.events.shape[0], paths.targets.shape[0]
        if vertex + size > events.shape[0]:
            room = 2 * (vertex + size)
            events, codes = grown(events, vertex, room), grown(codes, vertex, room)
            offsets = grown(offsets, vertex + 1, room + 1)
        if edge + edges > targets.shape[0]:
            targets = grown(targets, edge, 2 * (edge + edges))
        for v in range(size):
            events[vertex + v], codes[vertex + v] = paths.events[v], paths.variables[v]
            offsets[vertex + v + 1] = edge + paths.offsets[v + 1]
        for i in range(edges):
            targets[edge + i] = vertex + paths.targets[i]
        ambiguous[group - first] = paths.ambiguous
        vertex += size
        edge += edges
        group += 1
        begins[group - first] = vertex
    return (
        status, group, events[:vertex], codes[:vertex], offsets[: vertex + 1], targets[:edge],
        begins[: group - first + 1], ambiguous[: group - first],
    )  # fmt: skip
