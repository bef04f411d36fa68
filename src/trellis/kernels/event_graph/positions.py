"""Events bound to the positions of a pattern: which of them lie on results of a window, and the graph of those.

Vertices are (event, position), in the order of events; of one event those that only end results come first, since a
result comes before its own extensions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

BEGINS, ENDS, GOES_ON, INNER, DENIED = 1, 2, 4, 8, 16


class StepEdges(NamedTuple):
    """The edges between events on each step of a pattern.

    Attributes
    ----------
    first : int64 (positions + 1,)
        The steps from position `p` are `first[p]` to `first[p + 1]`.
    target : int64 (steps,)
        The position that each step leads to.
    rows : int64 (steps, events + 1)
        The events that follow event `x` on step `s` are `successors[rows[s, x] : rows[s, x + 1]]`.
    successors : int32 (edges,)
        These, in rising order for each event.
    """

    first: np.ndarray
    target: np.ndarray
    rows: np.ndarray
    successors: np.ndarray


@njit(cache=True, nogil=True)
def join_edges(events, positions, steps, vertex_of):
    """Return where the successors of each vertex begin, over all steps from its position, and these, in rising order.

    `vertex_of[p, x]` is the vertex of event `x` at position `p`.
    """
    first, step_target, rows, successors = steps.first, steps.target, steps.rows, steps.successors
    offsets = np.zeros(events.shape[0] + 1, np.int64)
    for v in range(events.shape[0]):
        x, total = events[v], offsets[v]
        for s in range(first[positions[v]], first[positions[v] + 1]):
            total += rows[s, x + 1] - rows[s, x]
        offsets[v + 1] = total
    targets = np.empty(offsets[-1], np.int32)
    for v in range(events.shape[0]):
        x, p, at = events[v], positions[v], offsets[v]
        for s in range(first[p], first[p + 1]):
            begin, j, own = rows[s, x], rows[s, x + 1] - 1, vertex_of[step_target[s]]
            left, at = at - 1, at + j + 1 - begin
            k = at - 1
            while j >= begin:  # those of each step rise: they are merged into what is there, from the back
                found = own[successors[j]]
                if left >= offsets[v] and targets[left] > found:
                    targets[k], left = targets[left], left - 1
                else:
                    targets[k], j = found, j - 1
                k -= 1
    return offsets, targets


@njit(cache=True, nogil=True)
def bind_events(usable, order, roles, steps):
    """Return the vertices of a pattern: events at positions that they may be at, in the order of this module.

    Parameters
    ----------
    usable : bool (positions, events)
        Which events may be at each position.
    order : int64 (positions,)
        The positions in the order in which the vertices of one event come.
    roles : uint8 (positions,)
        Whether results may begin and end at a position, and whether an event there may follow another, as flags.
    steps : StepEdges
        Which events may follow one another.

    Returns
    -------
    events, positions : int64 (vertices,)
        The event and the position of each vertex.
    may_begin, may_end : bool (vertices,)
        Whether results may begin and end there.
    offsets, targets : int64 (vertices + 1,), int32
        Where the successors of each vertex begin, and these.
    inner : int64
        The vertices that may follow others.
    """
    number, size = usable.shape
    vertex_of = np.empty((number, size), np.int64)
    total = np.count_nonzero(usable)
    events, positions = np.empty(total, np.int64), np.empty(total, np.int64)
    may_begin, may_end, inner = np.empty(total, np.bool_), np.empty(total, np.bool_), np.empty(total, np.int64)
    v = entered = 0
    for x in range(size):
        for p in order:
            if usable[p, x]:
                events[v], positions[v], vertex_of[p, x] = x, p, v
                may_begin[v], may_end[v] = roles[p] & BEGINS != 0, roles[p] & ENDS != 0
                if roles[p] & INNER:
                    inner[entered] = v
                    entered += 1
                v += 1
    offsets, targets = join_edges(events, positions, steps, vertex_of)
    return events, positions, may_begin, may_end, offsets, targets, inner[:entered]


@njit(cache=True, nogil=True)
def cover(lo, hi, until):
    """Return the events that ranges cover, with what is told of them by their places among these.

    Parameters
    ----------
    lo, hi : int64 (ranges,)
        The ranges, in any order.
    until : int64 (events,)
        For each event the first one that can never be in a result with it.

    Returns
    -------
    rows : int64 (covered,)
        The events, in rising order.
    bounds : int64 (parts + 1,)
        Where the events of each part begin, and the last ends: ranges that overlap are of one part.
    lo, hi, until : int64
        The same of the covered events, `until` within a part.
    """
    size = until.shape[0]
    reach, place = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    for g in range(lo.shape[0]):
        reach[lo[g]] = max(reach[lo[g]], hi[g])
    rows, bounds = np.empty(size, np.int64), np.zeros(size + 2, np.int64)
    number = parts = end = 0
    for x in range(size):
        if reach[x] > x:
            if x >= end:
                bounds[parts] = number
                parts += 1
            end = max(end, reach[x])
        place[x] = number
        if x < end:
            rows[number] = x
            number += 1
    place[size] = number
    parts = max(parts, 1)
    bounds[parts] = number
    new_lo, new_hi, new_until = np.empty(lo.shape[0], np.int64), np.empty(lo.shape[0], np.int64), rows[:number].copy()
    for g in range(lo.shape[0]):
        new_lo[g] = place[lo[g]]
        new_hi[g] = new_lo[g] + max(hi[g] - lo[g], 0)
    for part in range(parts):
        for k in range(bounds[part], bounds[part + 1]):
            new_until[k] = min(until[rows[k]] - rows[k] + k, bounds[part + 1])
    return rows[:number], bounds[: parts + 1], new_lo, new_hi, new_until


@njit(cache=True, nogil=True)
def nearest_ends(offsets, targets, ends):
    """Return for each vertex the first one with which a path from it may end; the number of vertices if none may."""
    size = ends.shape[0]
    found = np.full(size, size, np.int64)
    for v in range(size - 1, -1, -1):
        if ends[v]:
            found[v] = v
            continue
        for i in range(offsets[v], offsets[v + 1]):
            found[v] = min(found[v], found[targets[i]])
    return found


class VertexGraph(NamedTuple):
    """The vertices in their order, whether matches may begin and end there, and their successors.

    `inner` are the vertices that may follow others.
    """

    events: np.ndarray  # int64 (vertices,)
    positions: np.ndarray  # int64 (vertices,)
    times: np.ndarray  # int64 (vertices,)
    may_begin: np.ndarray  # bool (vertices,)
    may_end: np.ndarray  # bool (vertices,)
    offsets: np.ndarray  # int64 (vertices + 1,)
    targets: np.ndarray  # int32 (edges,)
    inner: np.ndarray  # int64 (inner vertices,)


class MatchRanges(NamedTuple):
    """Ranges of vertices in which results are found by themselves.

    None begins after `earliest` or ends before `latest`. With `only` from 0 on, results begin at the vertices
    `starts[begin[w] : begin[w + 1]]` alone, of which this is the first: conditions on the first event read of it what
    they would read of the others.
    """

    lo: np.ndarray  # int64 (ranges,)
    hi: np.ndarray  # int64 (ranges,)
    only: np.ndarray  # int64 (ranges,)
    earliest: np.ndarray  # int64 (ranges,)
    latest: np.ndarray  # int64 (ranges,)
    begin: np.ndarray  # int64 (ranges + 1,)
    starts: np.ndarray  # int64 (starts,)


class AnchorConditions(NamedTuple):
    """Conditions on an event and the first one of the match, as codes of the events.

    Condition `j` of a kind is asked of position `at[kind, j]`. Of `keys` the former code must equal the latter, of
    `above` it must be greater than that of `below`, of `differ` they must be different; -1 or the lowest number: never.
    """

    at: np.ndarray  # int64 (3, conditions + 1)
    keys: np.ndarray  # int64 (conditions, 2, events)
    above: np.ndarray  # int64 (conditions, events)
    below: np.ndarray  # int64 (conditions, events)
    differ: np.ndarray  # int64 (conditions, 2, events)


@njit(cache=True, nogil=True)
def _allows(carried, position, event, anchor):
    """Return whether an event may be at a position of a match that begins with the event `anchor`."""
    keys, above, below, differ, at = carried.keys, carried.above, carried.below, carried.differ, carried.at
    for j in range(keys.shape[0]):
        if at[0, j] == position and (keys[j, 0, event] < 0 or keys[j, 0, event] != keys[j, 1, anchor]):
            return False
    for j in range(above.shape[0]):
        if at[1, j] == position and not above[j, event] > below[j, anchor]:
            return False
    for j in range(differ.shape[0]):
        if at[2, j] == position:
            code, other = differ[j, 0, event], differ[j, 1, anchor]
            if code < 0 or other < 0 or code == other:
                return False
    return True


@njit(cache=True, nogil=True)
def spread_vertices(ranges, events, positions, free, first, lasts, carried, rows, sizes):
    """Write the vertices of ranges that may be on their results; return how many.

    Behind the last one with which a result of the range may end there are none.

    Parameters
    ----------
    ranges : MatchRanges
        Ranges of vertices; `only` and `starts` are events. See there.
    events, positions : int64 (vertices,)
        The event and the position of each vertex.
    free, lasts : bool (positions,)
        Whether nothing is asked of a position by the first event, and whether results may end there.
    first : int
        The position at which results begin.
    carried : AnchorConditions
        The conditions on the first event.
    rows : int64 (vertices of all ranges,)
        What is written, as far as there is room.
    sizes : int64 (ranges,)
        Becomes the number of vertices of each range.
    """
    number = 0
    for w in range(ranges.lo.shape[0]):
        start, last, before, end = ranges.begin[w], ranges.begin[w + 1], number, number
        for v in range(ranges.lo[w], ranges.hi[w]):
            x, p = events[v], positions[v]
            if p == first:
                while start < last and ranges.starts[start] < x:
                    start += 1
                found = start < last and ranges.starts[start] == x
            else:
                found = free[p] or _allows(carried, p, x, ranges.only[w])
            if found:
                if number < rows.shape[0]:
                    rows[number] = v
                number += 1
                end = number if lasts[p] else end
        number = end
        sizes[w] = number - before
    return number


@njit(cache=True, nogil=True)
def _reach(graph, ranges, w, carried, every, flags, visited):
    """Set the flags of the vertices that a result of a range may reach; return how many, in order, were visited."""
    lo, hi, only, earliest = ranges.lo[w], ranges.hi[w], ranges.only[w], ranges.earliest[w]
    offsets, targets, times, may_begin, inner = graph.offsets, graph.targets, graph.times, graph.may_begin, graph.inner
    events, positions, starts = graph.events, graph.positions, ranges.starts
    number, at, start, last_start = 0, 0, 0, 0
    v = lo
    if only >= 0:
        at = first_at_least(inner, 0, inner.shape[0], lo)
        start, last_start = ranges.begin[w], ranges.begin[w + 1]
    while v < hi:
        begins = may_begin[v]
        if only >= 0:
            begins = start < last_start and starts[start] == v
            start += begins
        if begins and times[v] <= earliest and (every or not flags[v] & INNER):
            flags[v] |= BEGINS
        if flags[v]:
            visited[number] = v
            number += 1
        if flags[v] & (BEGINS | INNER):
            for i in range(offsets[v], offsets[v + 1]):
                t = targets[i]
                if t >= hi:
                    break
                if only < 0:
                    flags[t] |= INNER
                elif not flags[t]:
                    flags[t] = INNER if _allows(carried, positions[t], events[t], events[only]) else DENIED
        if only < 0:
            v += 1
        else:
            while at < inner.shape[0] and inner[at] <= v:
                at += 1
            v = inner[at] if at < inner.shape[0] else hi
            if start < last_start:
                v = min(v, starts[start])
    return number


@njit(cache=True, nogil=True)
def latest_begins(events, offsets, targets, may_begin):
    """Return for each vertex the last event with which what leads to it may begin; -1 where nothing leads to it."""
    found = np.full(events.shape[0], -1, np.int64)
    for v in range(events.shape[0]):
        begin = events[v] if may_begin[v] else found[v]
        if begin >= 0:
            for i in range(offsets[v], offsets[v + 1]):
                found[targets[i]] = max(found[targets[i]], begin)
    return found


@njit(cache=True, nogil=True)
def _mark(graph, ranges, w, carried, every, flags, visited):
    """Set the flags of the vertices that lie on a result of a range; return how many were visited."""
    hi, latest = ranges.hi[w], ranges.latest[w]
    offsets, targets, times, may_end = graph.offsets, graph.targets, graph.times, graph.may_end
    number = _reach(graph, ranges, w, carried, every, flags, visited)
    for k in range(number - 1, -1, -1):
        v = visited[k]
        if flags[v] & (BEGINS | INNER):
            for i in range(offsets[v], offsets[v + 1]):
                if targets[i] >= hi:
                    break
                if flags[targets[i]] & (ENDS | GOES_ON):
                    flags[v] |= GOES_ON
                    break
            if may_end[v] and times[v] >= latest and (every or not flags[v] & GOES_ON):
                flags[v] |= ENDS
        if not flags[v] & (ENDS | GOES_ON):
            flags[v] = 0
    return number


@njit(cache=True, nogil=True, inline="always")
def _copies(flag):
    """Return how many vertices stand for one: it begins or does not, and ends or does not."""
    sides = (1 if flag & BEGINS else 0) + (1 if flag & INNER else 0)
    return sides * ((1 if flag & ENDS else 0) + (1 if flag & GOES_ON else 0))


@njit(cache=True, nogil=True)
def measure(graph, ranges, carried, every, flags, visited):
    """Return how many vertices and edges the results of all ranges take; `flags` are 0, and are so again."""
    offsets, targets = graph.offsets, graph.targets
    vertices = edges = 0
    for w in range(ranges.lo.shape[0]):
        number = _mark(graph, ranges, w, carried, every, flags, visited)
        hi = ranges.hi[w]
        for k in range(number):
            v = visited[k]
            flag = flags[v]
            if flag:
                vertices += _copies(flag)
            if flag & GOES_ON:
                sides = (1 if flag & BEGINS else 0) + (1 if flag & INNER else 0)
                for i in range(offsets[v], offsets[v + 1]):
                    t = targets[i]
                    if t >= hi:
                        break
                    if flags[t] & INNER:
                        edges += sides * ((1 if flags[t] & ENDS else 0) + (1 if flags[t] & GOES_ON else 0))
        for k in range(number):
            flags[visited[k]] = 0
    return vertices, edges


@njit(cache=True, nogil=True)
def write(graph, ranges, carried, every, flags, visited, number_of, group, ambiguous, bounds, out):
    """Write the vertices and edges of the results of the ranges.

    Parameters
    ----------
    graph, ranges, carried, every, flags, visited
        As in `measure`.
    number_of : int64 (vertices,)
        Scratch.
    group : int64 (ranges,)
        The group of each range; it never falls.
    ambiguous : bool (groups,)
        Set where the paths of a group are not in the order of their events, or these do not tell a path: two vertices
        of one event begin, or come next after a vertex and are not one that only ends and one that only goes on.
    bounds : int64 (groups + 1,)
        Becomes where the vertices of each group begin, and where the last ones end.
    out : tuple
        Room for events and positions of vertices, where their edges begin (0 at first), and these.
    """
    offsets, targets, events, positions = graph.offsets, graph.targets, graph.events, graph.positions
    out_events, out_positions, out_offsets, out_targets = out
    vertex = edge = 0
    first, before = -1, -1  # the last event that begins results, and its group
    for w in range(ranges.lo.shape[0]):
        number = _mark(graph, ranges, w, carried, every, flags, visited)
        hi, at, own = ranges.hi[w], vertex, group[w]
        if own > before:
            for g in range(before + 1, own + 1):
                bounds[g] = vertex
            before, first = own, -1
        for k in range(number):
            v = visited[k]
            if flags[v]:
                number_of[v] = at
                at += _copies(flags[v])
        for k in range(number):
            v = visited[k]
            flag = flags[v]
            if flag & BEGINS:
                ambiguous[own] |= events[v] == first
                first = events[v]
            for ends in (True, False):
                if not flag & (ENDS if ends else GOES_ON):
                    continue
                for begins in (True, False):
                    if not flag & (BEGINS if begins else INNER):
                        continue
                    out_events[vertex] = events[v]
                    out_positions[vertex] = positions[v]
                    if not ends:
                        follower = last = -1
                        for i in range(offsets[v], offsets[v + 1]):
                            t = targets[i]
                            if t >= hi:
                                break
                            if not flags[t] & INNER:
                                continue
                            sides = flags[t] & (ENDS | GOES_ON)
                            ambiguous[own] |= events[t] == follower and not (last == ENDS and sides == GOES_ON)
                            follower, last = events[t], sides
                            # Of the copies of a vertex those that end come first, of these the one that begins.
                            place = number_of[t]
                            both = 1 if flags[t] & BEGINS else 0
                            if flags[t] & ENDS:
                                out_targets[edge] = place + both
                                edge += 1
                                place += both + 1
                            if flags[t] & GOES_ON:
                                out_targets[edge] = place + both
                                edge += 1
                    vertex += 1
                    out_offsets[vertex] = edge
        for k in range(number):
            flags[visited[k]] = 0
    for g in range(before + 1, bounds.shape[0]):
        bounds[g] = vertex
    return vertex, edge


@njit(cache=True, nogil=True)
def reordered(order, offsets, targets):
    """Return the edges of vertices in another order, in which they still lead on to later ones."""
    place, begins = np.empty(order.shape[0], np.int64), np.zeros(order.shape[0] + 1, np.int64)
    for k in range(order.shape[0]):
        place[order[k]] = k
        begins[k + 1] = begins[k] + offsets[order[k] + 1] - offsets[order[k]]
    found = np.empty(targets.shape[0], np.int32)
    for k in range(order.shape[0]):
        for i in range(begins[k + 1] - begins[k]):
            found[begins[k] + i] = place[targets[offsets[order[k]] + i]]
    return begins, found


@njit(cache=True, nogil=True)
def lay_out(begin, end, offset, event_offset, events, arrivals, wanted, values, base, out):
    """Copy numbers of attribute vertices from the index of one step to that of all steps.

    Part `p` of the indexes has the vertices `begin[p]` to `end[p]`. Those of `wanted` arrivals get the number that
    `values` has of their event, and `base[p]` more; a number below 0 stays as it is.
    """
    for p in range(begin.shape[0]):
        for v in range(begin[p], end[p]):
            if wanted[arrivals[v]]:
                value = values[events[v] + event_offset[p]]
                out[v + offset[p]] = value + base[p] if value >= 0 else value
