"""The matches that REPORT gives, as a graph of its own in which every path from a start to an end is one of them.

A longer match that would make one no result is followed beside it: with each vertex of a match go the vertices that the
longer ones have reached with the same event, bound to the same variable. Where a vertex depends on its event and
variable alone these are the vertex itself, and such matches are left out at once. REPORT does not look at iterations,
so where groups are repeated the matches with the same events and variables that are cut otherwise go beside one, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import FULL, clear, hashed, is_list, keep
from trellis.kernels.explore.matches import EVENT, NO_ROOM, SPENT, VARIABLE
from trellis.kernels.explore.reach import add_bits, bit_bounds, bit_rows, bit_words, meets_any, no_bits, set_bits
from trellis.kernels.explore.vertices import EDGES, STARTS, VERTICES
from trellis.kernels.jit import njit

EVERY, UNEXTENDABLE, MAXIMAL = range(3)
NO_BITS, NO_MEMORY = -6, -10  # there are too many vertices to tell which reach which; more bytes than allowed
VERTEX_BYTES, EDGE_BYTES = 48, 4  # of a vertex and an edge of a graph that is in order, or of results


class OrderedGraph(NamedTuple):
    """The matches so far of a group, in the order (event, letter).

    Attributes
    ----------
    events, variables, complete, wanted
        Of each vertex, the variable as a letter; whether it is a whole match, and one that meets HAVING.
    offsets, targets
        Its successors, in rising order.
    group, group_end
        The vertices with the same event and variable: the first, and the one behind the last.
    starts
        The vertices that begin a match.
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


@njit(cache=True, nogil=True)
def ordered(tables, graph, lo, hi):
    """Return a graph with its vertices in order."""
    size, variables = graph.sizes[VERTICES], tables[t.VARIABLES]
    label = np.empty(size, np.int32)
    order = np.empty(size, np.int32)
    group, group_end = np.empty(size, np.int32), np.empty(size, np.int32)
    n = begin = 0
    for home in range((hi - lo) * variables):
        letter = home % variables
        if letter == 0 or t.at(tables, t.L_BASE, letter) != t.at(tables, t.L_BASE, letter - 1):
            begin = n
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            label[vertex] = n
            order[n] = vertex
            n += 1
            vertex = np.int64(graph.link[vertex]) - 1
        for i in range(begin, n):
            group[i], group_end[i] = begin, n
    events, taken = np.empty(size, np.int64), np.empty(size, np.int64)
    complete, wanted, offsets = np.empty(size, np.bool_), np.empty(size, np.bool_), np.zeros(size + 1, np.int64)
    targets = np.empty(graph.sizes[EDGES], np.int32)
    edge = 0
    for i in range(size):
        vertex = order[i]
        events[i], taken[i] = graph.rows[vertex, EVENT], graph.rows[vertex, VARIABLE]
        complete[i], wanted[i] = graph.complete[vertex], graph.wanted[vertex]
        begin, rising = edge, True
        for k in range(graph.first[vertex], graph.last[vertex]):
            targets[edge] = label[graph.edges[k]]
            rising &= edge == begin or targets[edge - 1] < targets[edge]
            edge += 1
        if not rising:
            targets[begin:edge].sort()
        offsets[i + 1] = edge
    starts = np.empty(graph.sizes[STARTS], np.int32)
    for i in range(starts.shape[0]):
        starts[i] = label[graph.starts[i]]
    starts.sort()
    return OrderedGraph(events, taken, complete, wanted, offsets, targets, group, group_end, starts)


class Product(NamedTuple):
    """Vertices of matches together with the longer matches beside them.

    Attributes
    ----------
    vertices
        The vertex of each pair.
    offsets, targets
        The pairs that follow each.
    results
        Whether the match that ends here is a result.
    starts
        The pairs that begin a match.
    """

    vertices: np.ndarray  # int32 (pairs,)
    offsets: np.ndarray  # int64 (pairs + 1,)
    targets: np.ndarray  # int32 (edges,)
    results: np.ndarray  # bool (pairs,)
    starts: np.ndarray  # int32 (starts,)


@njit(cache=True, nogil=True)
def _futures(graph, same):
    """Return whether vertices have something before them, something behind them, and lead to a whole match.

    For unextendable matches only what has another time counts.
    """
    size = graph.events.shape[0]
    preceded, followed = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    reaching = graph.complete.copy()
    for v in range(size - 1, -1, -1):
        for i in range(graph.offsets[v], graph.offsets[v + 1]):
            w = graph.targets[i]
            reaching[v] |= reaching[w]
            if same.shape[0] == 0 or same[graph.events[v]] != same[graph.events[w]]:
                preceded[w] = True
                followed[v] |= reaching[w]
    return preceded, followed, reaching


@njit(cache=True, nogil=True)
def follow(graph, mode, same, lists, members, most, left):
    """Return the pairs of vertices and longer matches, and 0; or what there is no room for, in `most` bytes.

    What goes beside a vertex are the vertices of longer matches, and, with the number of vertices added, those of
    matches that are cut otherwise.
    """
    size = graph.events.shape[0]
    maximal = mode == MAXIMAL
    begins = np.zeros(size, np.bool_)
    for i in range(graph.starts.shape[0]):
        begins[graph.starts[i]] = True
    clear(lists)
    preceded, followed, reaching = _futures(graph, same[:0] if maximal else same)
    bad = reaching if maximal else graph.complete
    before, beyond, near, filled = no_bits(), no_bits(), np.zeros(1, np.uint64), np.zeros(2, np.int64)
    status = 0
    if maximal:
        bounds = bit_bounds(graph.offsets, graph.targets)
        left[0] -= bit_words(bounds)
        if 8 * bit_words(bounds) > most:
            status = NO_BITS
        elif left[0] < 0:
            status = SPENT
        else:
            before, beyond = bit_rows(bounds[0], bounds[1]), bit_rows(bounds[2], bounds[3])
            set_bits(graph.offsets, graph.targets, before, beyond)
            near = np.zeros((size + 63) // 64, np.uint64)
    room = max(1024, 2 * size)
    vertices, longer = np.empty(room, np.int32), np.empty(room, np.int32)
    results, offsets = np.empty(room, np.bool_), np.zeros(room + 1, np.int64)
    table = np.zeros(4 * 1024, np.int32)
    while table.shape[0] < 2 * room:
        table = np.zeros(2 * table.shape[0], np.int32)
    targets = np.empty(max(1024, graph.targets.shape[0]), np.int32)
    starts = np.empty(graph.starts.shape[0], np.int32)
    pair, number, edges, begun, next_start = np.empty(2, np.int64), 0, 0, 0, 0
    own, place_of, vertex, count, found = np.int64(-1), np.int64(0), np.int64(0), 0, np.int64(0)
    recent, cursors = np.full(size, -1, np.int32), np.empty(members.shape[0] + 1, np.int64)
    while status == 0:
        if own < 0:  # the starts come first
            if next_start == graph.starts.shape[0]:
                own = np.int64(0)
                if number == 0:
                    break
                place_of = graph.offsets[vertices[0]]
            else:
                vertex = np.int64(graph.starts[next_start])
                next_start += 1
                count = 0
                if 2 * (graph.group_end[vertex] - graph.group[vertex]) > members.shape[0]:
                    status = NO_ROOM
                    break
                for w in range(graph.group[vertex], graph.group_end[vertex]):
                    if preceded[w]:
                        members[count] = w
                        count += 1
                for w in range(graph.group[vertex], graph.group_end[vertex]):
                    if begins[w] and w != vertex:
                        members[count] = w + size
                        count += 1
        if own >= 0:
            while own < number and place_of == graph.offsets[vertices[own] + 1]:
                offsets[own + 1] = edges
                own += 1
                if own < number:
                    place_of = graph.offsets[vertices[own]]
            if own == number:
                break
            if place_of == graph.offsets[vertices[own]]:
                _begin_edges(graph, lists, longer[own], np.int64(vertices[own]), cursors)
                if maximal:
                    _gather(lists, longer[own], vertices[own], beyond, near, filled)
            vertex = np.int64(graph.targets[place_of])
            place_of += 1
            count = 0
            left[0] -= 1 + lists.ends[longer[own]] - (lists.ends[longer[own] - 1] if longer[own] else 0)
            if left[0] < 0:
                status = SPENT
                break
            if maximal:
                for w in range(graph.group[vertex], graph.group_end[vertex]):
                    if meets_any(before, w, near):
                        if count >= members.shape[0]:
                            status = NO_ROOM
                            break
                        members[count] = w
                        count += 1
            count = _beside(graph, lists, longer[own], np.int64(vertices[own]), vertex, members, count, cursors)
            if count < 0:
                status = NO_ROOM
        if status:
            break
        inside = False
        for i in range(count):
            inside |= members[i] == vertex
        if inside:
            continue  # the longer match ends wherever this one does
        found = np.int64(recent[vertex])  # often the match before has come here with the same ones beside it
        if found < 0 or not is_list(lists, longer[found], members, count):
            beside = keep(lists, members, count)
            if beside == FULL:
                status = NO_ROOM
                break
            pair[0], pair[1] = vertex, beside
            mask = np.uint64(table.shape[0] - 1)
            place = hashed(pair, 0, 2) & mask
            while True:
                found = np.int64(table[place]) - 1
                if found < 0 or (vertices[found] == vertex and longer[found] == beside):
                    break
                place = (place + np.uint64(1)) & mask
            if found < 0:
                if number == room and 2 * room * VERTEX_BYTES + edges * EDGE_BYTES > most:
                    status = NO_MEMORY
                    break
                if number == room:
                    vertices, longer = grown(vertices, number, 2 * room), grown(longer, number, 2 * room)
                    results, offsets = grown(results, number, 2 * room), grown(offsets, number + 1, 2 * room + 1)
                    room *= 2
                    table = np.zeros(2 * table.shape[0], np.int32)
                    mask = np.uint64(table.shape[0] - 1)
                    for i in range(number):
                        pair[0], pair[1] = vertices[i], longer[i]
                        place = hashed(pair, 0, 2) & mask
                        while table[place]:
                            place = (place + np.uint64(1)) & mask
                        table[place] = i + 1
                    pair[0], pair[1] = vertex, beside
                    place = hashed(pair, 0, 2) & mask
                    while table[place]:
                        place = (place + np.uint64(1)) & mask
                found = np.int64(number)
                vertices[number], longer[number] = vertex, beside
                is_result = graph.wanted[vertex] and not followed[vertex]
                for i in range(count):
                    w = members[i]
                    is_result &= not bad[w] if w < size else not followed[w - size]
                results[number] = is_result
                table[place] = number + 1
                number += 1
            recent[vertex] = found
        if own < 0:
            starts[begun] = found
            begun += 1
        else:
            if edges == targets.shape[0]:
                if 2 * edges * EDGE_BYTES + number * VERTEX_BYTES > most:
                    status = NO_MEMORY
                    break
                targets = grown(targets, edges, 2 * edges)
            targets[edges] = found
            edges += 1
    if number == 0:
        offsets[0] = 0
    return status, Product(vertices[:number], offsets[: number + 1], targets[:edges], results[:number], starts[:begun])


@njit(cache=True, nogil=True)
def _gather(lists, longer, vertex, beyond, near, filled):
    """Write what can be reached from a vertex, and from the matches beside it, longer ones included."""
    size = beyond.begin.shape[0]
    near[filled[0] : filled[1]] = 0
    filled[0], filled[1] = near.shape[0], 0
    add_bits(beyond, vertex, near, filled)
    begin = lists.ends[longer - 1] if longer else 0
    for i in range(begin, lists.ends[longer]):
        w = lists.values[i]
        if w >= size:
            w -= size
        else:
            near[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
            filled[0], filled[1] = min(filled[0], w >> 6), max(filled[1], (w >> 6) + 1)
        add_bits(beyond, w, near, filled)


@njit(cache=True, nogil=True)
def _begin_edges(graph, lists, longer, source, cursors):
    """Write where the edges of each match beside one begin, and of its own vertex `source` behind them."""
    size, begin = graph.events.shape[0], lists.ends[longer - 1] if longer else 0
    for i in range(begin, lists.ends[longer]):
        cursors[i - begin] = graph.offsets[lists.values[i] % size]
    cursors[lists.ends[longer] - begin] = graph.offsets[source]


@njit(cache=True, nogil=True)
def _beside(graph, lists, longer, source, vertex, members, count, cursors):
    """Add where matches beside one come to with the event and variable of a vertex; return how many, -1 for no room.

    Those of longer matches are there already where `count` is not 0. `source` is the vertex that the match comes from.
    `cursors` are the edges that each has come to: vertices are asked for in rising order.
    """
    low, high = np.int64(graph.group[vertex]), np.int64(graph.group_end[vertex])
    size, with_longer = graph.events.shape[0], count == 0
    begin, end = lists.ends[longer - 1] if longer else 0, lists.ends[longer]
    for i in range(begin, end + 1):
        other = lists.values[i] if i < end else source + size
        shift = size if other >= size else 0
        if (shift == 0 and not with_longer) or (i == end and high - low == 1):
            continue
        last = graph.offsets[other - shift + 1]
        at = cursors[i - begin]
        while at < last and graph.targets[at] < low:
            at += 1
        cursors[i - begin] = at
        while at < last and graph.targets[at] < high:
            w = np.int64(graph.targets[at]) + shift
            at += 1
            if w == vertex + size:
                continue
            if count >= members.shape[0]:
                return -1
            k, known = count, False
            while k > 0 and members[k - 1] >= w:
                known |= members[k - 1] == w
                k -= 1
            if not known:
                for j in range(count, k, -1):
                    members[j] = members[j - 1]
                members[k] = w
                count += 1
    return count


@njit(cache=True, nogil=True)
def every_match(graph):
    """Return all matches."""
    return Product(
        np.arange(graph.events.shape[0]).astype(np.int32), graph.offsets, graph.targets, graph.wanted, graph.starts
    )


@njit(cache=True, nogil=True)
def is_single(graph):
    """Return whether a vertex depends on its event and variable alone."""
    for v in range(graph.events.shape[0]):  # noqa: SIM110 (Numba)
        if graph.group_end[v] - graph.group[v] != 1:
            return False
    return True


@njit(cache=True, nogil=True)
def follow_single(graph, same):
    """Return the unextendable matches as `follow` does, where a longer match comes to the same vertices."""
    preceded, followed, _ = _futures(graph, same)
    starts, number, results = np.empty(graph.starts.shape[0], np.int32), 0, graph.wanted.copy()
    for i in range(starts.shape[0]):
        if not preceded[graph.starts[i]]:
            starts[number] = graph.starts[i]
            number += 1
    for v in range(results.shape[0]):
        results[v] &= not followed[v]
    vertices = np.arange(results.shape[0]).astype(np.int32)
    return Product(vertices, graph.offsets, graph.targets, results, starts[:number])
