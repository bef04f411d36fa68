"""Results in their order where the same events may be bound to different variables.

Results are ordered by their events first and by their variables only where all events are the same, then by their
iterations, so the paths of a graph are not in their order vertex by vertex: a walk goes over events, with all vertices
that a sequence of events can have reached. The variables to which it binds them are told apart when the sequence is
complete, and the iterations when the variables are. Numbers of paths are exact, in
limbs of 64 bits, the lowest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

NO_ROOM = -1
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class Levels(NamedTuple):
    """Room for the vertices that a sequence of events can have reached, one event after another.

    Attributes
    ----------
    begins
        Where each level begins.
    vertices, places, useful, active
        The vertices of a level in rising order, the next successor of each, whether a binding goes over it, and one of
        the variables that are chosen.
    ways
        uint64 (vertices, limbs): the numbers of ways to each.
    chosen, variables
        The place in each level of the binding that is written, and the variable.
    """

    begins: np.ndarray  # int64 (room,)
    vertices: np.ndarray  # int64 (room,)
    places: np.ndarray  # int64 (room,)
    useful: np.ndarray  # bool (room,)
    active: np.ndarray  # bool (room,)
    ways: np.ndarray
    chosen: np.ndarray  # int64 (room,)
    variables: np.ndarray  # int64 (room,)


def make_levels(levels: int, vertices: int, limbs: int) -> Levels:
    """Return room for some levels, and vertices on them."""
    return Levels(
        np.zeros(levels + 2, np.int64), np.empty(vertices, np.int64), np.empty(vertices, np.int64),
        np.empty(vertices, np.bool_), np.empty(vertices, np.bool_), np.zeros((vertices, limbs), np.uint64),
        np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _add_product(total, a, b):
    """Add the product of two numbers of limbs to a third, which holds it."""
    limbs = total.shape[0]
    for i in range(limbs):
        carry = np.uint64(0)
        if a[i] == 0:
            continue
        a_low, a_high = a[i] & LOW, a[i] >> HALF
        for j in range(limbs - i):
            b_low, b_high = b[j] & LOW, b[j] >> HALF
            low, middle, other, high = a_low * b_low, a_high * b_low, a_low * b_high, a_high * b_high
            cross = (low >> HALF) + (middle & LOW) + (other & LOW)
            low = (low & LOW) | (cross << HALF)
            high += (middle >> HALF) + (other >> HALF) + (cross >> HALF)
            low += carry
            high += np.uint64(1) if low < carry else np.uint64(0)
            total[i + j] += low
            high += np.uint64(1) if total[i + j] < low else np.uint64(0)
            carry = high


@njit(cache=True, nogil=True)
def _add(total, other):
    carry = np.uint64(0)
    for i in range(total.shape[0]):
        some = other[i] + carry
        carry = np.uint64(1) if some < carry else np.uint64(0)
        total[i] += some
        if total[i] < some:
            carry = np.uint64(1)


@njit(cache=True, nogil=True)
def _is_less(a, b):
    for i in range(a.shape[0] - 1, -1, -1):
        if a[i] != b[i]:
            return a[i] < b[i]
    return False


@njit(cache=True, nogil=True)
def _subtract(a, b):
    borrow = np.uint64(0)
    for i in range(a.shape[0]):
        before = a[i]
        a[i] = before - b[i] - borrow
        borrow = np.uint64(1) if before < b[i] or (before == b[i] and borrow) else np.uint64(0)


@njit(cache=True, nogil=True)
def paths_to_ends(offsets, successors, lo, hi, limbs):
    """Return the numbers of paths from each vertex of `[lo, hi)` to an end, and the vertices that nothing precedes."""
    ways = np.zeros((hi - lo, limbs), np.uint64)
    entered = np.zeros(hi - lo, np.bool_)
    for v in range(hi - 1, lo - 1, -1):
        if offsets[v] == offsets[v + 1]:
            ways[v - lo, 0] = 1
        for i in range(offsets[v], offsets[v + 1]):
            _add(ways[v - lo], ways[successors[i] - lo])
            entered[successors[i] - lo] = True
    starts = np.empty(hi - lo, np.int64)
    number = 0
    for v in range(lo, hi):
        if not entered[v - lo]:
            starts[number] = v
            number += 1
    return ways, starts[:number]


@njit(cache=True, nogil=True)
def _insert(levels, begin, end, vertex, place, ways):
    """Add ways to a vertex of a level that ends at `end`; return its new end."""
    at = end
    while at > begin and levels.vertices[at - 1] > vertex:
        at -= 1
    if at > begin and levels.vertices[at - 1] == vertex:
        _add(levels.ways[at - 1], ways)
        return end
    for i in range(end, at, -1):
        levels.vertices[i], levels.places[i] = levels.vertices[i - 1], levels.places[i - 1]
        for k in range(ways.shape[0]):
            levels.ways[i, k] = levels.ways[i - 1, k]
    levels.vertices[at], levels.places[at] = vertex, place
    for k in range(ways.shape[0]):
        levels.ways[at, k] = ways[k]
    return end + 1


@njit(cache=True, nogil=True)
def _next_level(offsets, successors, events, starts, root, depth, levels, one):
    """Lay out the level of the next event behind a level, or among the starts; return its end, or what is wrong."""
    begin = levels.begins[depth]
    end = begin
    if depth == 0:
        if root[0] == starts.shape[0]:
            return end
        event = events[starts[root[0]]]
        while root[0] < starts.shape[0] and events[starts[root[0]]] == event:
            if end + 1 >= levels.vertices.shape[0]:
                return NO_ROOM
            vertex = starts[root[0]]
            end = _insert(levels, begin, end, vertex, offsets[vertex], one)
            root[0] += 1
        return end
    event = np.int64(-1)
    for i in range(levels.begins[depth - 1], begin):
        if levels.places[i] < offsets[levels.vertices[i] + 1]:
            other = events[successors[levels.places[i]]]
            if event < 0 or other < event:
                event = other
    for i in range(levels.begins[depth - 1], begin):
        last = offsets[levels.vertices[i] + 1]
        while levels.places[i] < last and events[successors[levels.places[i]]] == event:
            if end + 1 >= levels.vertices.shape[0]:
                return NO_ROOM
            vertex = np.int64(successors[levels.places[i]])
            end = _insert(levels, begin, end, vertex, offsets[vertex], levels.ways[i])
            levels.places[i] += 1
    return end


@njit(cache=True, nogil=True)
def _is_edge(offsets, successors, source, target):
    end = offsets[source + 1]
    at = first_at_least(successors, offsets[source], end, target)
    return at < end and successors[at] == target


@njit(cache=True, nogil=True)
def mark_useful(offsets, successors, depth, levels):
    """Mark the vertices of all levels over which a binding goes that ends on the last level, at one marked there."""
    for d in range(depth - 1, -1, -1):
        for i in range(levels.begins[d], levels.begins[d + 1]):
            levels.useful[i] = False
            for j in range(levels.begins[d + 1], levels.begins[d + 2]):
                if levels.useful[j] and _is_edge(offsets, successors, levels.vertices[i], levels.vertices[j]):
                    levels.useful[i] = True
                    break


@njit(cache=True, nogil=True)
def _is_reached(offsets, successors, levels, d, i):
    """Return whether a vertex of level `d` follows one of the variables that are chosen."""
    if d == 0:
        return True
    for j in range(levels.begins[d - 1], levels.begins[d]):
        if levels.active[j] and _is_edge(offsets, successors, levels.vertices[j], levels.vertices[i]):
            return True
    return False


@njit(cache=True, nogil=True)
def _next_variables(offsets, successors, variables, depth, levels, d):
    """Choose the next variables; that of level `d` is the last that was tried; return whether there are any."""
    while d >= 0:
        best = np.int64(-1)
        for i in range(levels.begins[d], levels.begins[d + 1]):
            own = variables[levels.vertices[i]]
            if (
                levels.useful[i]
                and own > levels.variables[d]
                and (best < 0 or own < best)
                and _is_reached(offsets, successors, levels, d, i)
            ):
                best = own
        if best < 0:
            d -= 1
            continue
        levels.variables[d] = best
        for i in range(levels.begins[d], levels.begins[d + 1]):
            levels.active[i] = (
                levels.useful[i]
                and variables[levels.vertices[i]] == best
                and _is_reached(offsets, successors, levels, d, i)
            )
        if d == depth:
            return True
        d += 1
        levels.variables[d] = -1
    return False


@njit(cache=True, nogil=True)
def _next_binding(offsets, successors, depth, levels, d):
    """Choose the next binding to the variables that are chosen; return whether there is one.

    The choice of level `d` is the last that was tried.
    """
    chosen = levels.chosen
    while d >= 0:
        chosen[d] += 1
        if chosen[d] >= levels.begins[d + 1]:
            d -= 1
            continue
        if not levels.active[chosen[d]]:
            continue
        if d > 0 and not _is_edge(offsets, successors, levels.vertices[chosen[d - 1]], levels.vertices[chosen[d]]):
            continue
        if d == depth:
            return True
        d += 1
        chosen[d] = levels.begins[d] - 1
    return False


@njit(cache=True, nogil=True)
def next_result(offsets, successors, variables, depth, levels, is_first):
    """Choose the first or the next binding of a sequence of events, over useful vertices; return whether there is one.

    Bindings come by their variables, and those with the same ones by their vertices.
    """
    d = np.int64(depth)
    if is_first:
        levels.variables[0], d = -1, np.int64(0)
    elif _next_binding(offsets, successors, depth, levels, d):
        return True
    while _next_variables(offsets, successors, variables, depth, levels, d):
        levels.chosen[0], d = levels.begins[0] - 1, np.int64(depth)
        if _next_binding(offsets, successors, depth, levels, np.int64(0)):
            return True
    return False


@njit(cache=True, nogil=True, branching=True)
def list_by_events(
    offsets, successors, events, variables, lo, ways, starts, skip, wanted, least, most, levels, out, ends
):
    """Write results in the order of their events, from the rank `skip` on.

    Parameters
    ----------
    offsets, successors, events, variables, lo
        The paths, the event and the variable of each vertex, and the first vertex of the group.
    ways, starts
        See `paths_to_ends`.
    skip
        uint64 (limbs,): the rank of the first result; it is used up.
    wanted, least, most
        How many to write, and the lengths of those that count; where they bound anything, ranks are among these.
    levels
        Room; `out` and `ends` for the vertices and where each result ends.

    Returns
    -------
    int
        How many were written; `NO_ROOM` where levels are too small.
    """
    limbs = skip.shape[0]
    bounded = least > 1 or most < ways.shape[0]
    root = np.zeros(1, np.int64)
    one, size = np.zeros(limbs, np.uint64), np.zeros(limbs, np.uint64)
    one[0] = 1
    written, used, depth = 0, 0, 0
    levels.begins[0] = 0
    while depth >= 0:
        if depth + 2 >= levels.begins.shape[0]:
            return NO_ROOM
        end = _next_level(offsets, successors, events, starts, root, depth, levels, one)
        if end == NO_ROOM:
            return NO_ROOM
        if end == levels.begins[depth]:
            depth -= 1
            continue
        levels.begins[depth + 1] = end
        if not bounded:
            size[:] = 0
            for i in range(levels.begins[depth], end):
                _add_product(size, levels.ways[i], ways[levels.vertices[i] - lo])
            if not _is_less(skip, size):
                _subtract(skip, size)
                continue
        size[:] = 0
        for i in range(levels.begins[depth], end):
            v = levels.vertices[i]
            if offsets[v] == offsets[v + 1]:
                _add(size, levels.ways[i])
        if depth + 1 < least:
            size[:] = 0
        if not _is_less(skip, size):
            _subtract(skip, size)
        else:
            for i in range(levels.begins[depth], end):
                v = levels.vertices[i]
                levels.useful[i] = offsets[v] == offsets[v + 1]
            mark_useful(offsets, successors, depth, levels)
            more = next_result(offsets, successors, variables, depth, levels, True)
            while more:
                if _is_less(skip, one):
                    if used + depth + 1 > out.shape[0]:
                        return written
                    for k in range(depth + 1):
                        out[used + k] = levels.vertices[levels.chosen[k]]
                    used += depth + 1
                    ends[written] = used
                    written += 1
                    if written == wanted:
                        return written
                else:
                    _subtract(skip, one)
                more = next_result(offsets, successors, variables, depth, levels, False)
        if depth + 1 < most:
            depth += 1
    return written
