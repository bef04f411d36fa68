"""Events bound to the parts of a sequence: which of them lie on results of a window, and the graph of those.

Vertices are (event, part) in that order. A result begins at a vertex of the first part and ends at one of the last.
"""

from __future__ import annotations

from numba import njit

BEGINS, ENDS, GOES_ON, INNER = 1, 2, 4, 8


@njit(cache=True, nogil=True)
def join_edges(places, later_offsets, later, own_offsets, own, from_part, vertices_of, offsets, targets):
    """Write the successors of vertices: those of the same part and of the next one, in the order of their events.

    `places[v]` is the event of vertex `v`; `vertices_of[p, e]` the vertex of event `e` in part `p`. The edges of part
    `p` are rows of `own` (to the same part) and `later` (to the next one), laid out by `own_offsets[p]` and
    `later_offsets[p]`. With empty `targets` only `offsets` is filled.
    """
    filling = targets.shape[0] > 0
    total = 0
    for v in range(places.shape[0]):
        x, p = places[v], from_part[v]
        i, i_end = own_offsets[p, x], own_offsets[p, x + 1]
        j, j_end = later_offsets[p, x], later_offsets[p, x + 1]
        if not filling:
            total += i_end - i + j_end - j
        else:
            while i < i_end or j < j_end:
                if j == j_end or (i < i_end and own[i] <= later[j]):
                    targets[total] = vertices_of[p, own[i]]
                    i += 1
                else:
                    targets[total] = vertices_of[p + 1, later[j]]
                    j += 1
                total += 1
        offsets[v + 1] = total
    return total


@njit(cache=True, nogil=True)
def mark_window(lo, hi, first_time, last_time, times, parts, last_part, every, offsets, targets, flags, only, allowed):
    """Fill the flags of the vertices `[lo, hi)` that lie on a result of a window.

    A result may not begin after `first_time` nor end before `last_time`. With `every`, results may also begin and end
    where they could go on. With `only` from 0 on, results begin at this vertex alone, and go over `allowed` vertices.
    """
    for v in range(lo, hi):
        flags[v] = 0
    for v in range(lo, hi):
        may_begin = parts[v] == 0 and times[v] <= first_time and (only < 0 or v == only)
        if may_begin and (every or not flags[v] & INNER):
            flags[v] |= BEGINS
        if flags[v] & (BEGINS | INNER):
            for i in range(offsets[v], offsets[v + 1]):
                t = targets[i]
                if t >= hi:
                    break
                if only < 0 or allowed[t]:
                    flags[t] |= INNER
    for v in range(hi - 1, lo - 1, -1):
        if not flags[v] & (BEGINS | INNER):
            continue
        for i in range(offsets[v], offsets[v + 1]):
            if targets[i] >= hi:
                break
            if flags[targets[i]] & (ENDS | GOES_ON):
                flags[v] |= GOES_ON
                break
        if parts[v] == last_part and times[v] >= last_time and (every or not flags[v] & GOES_ON):
            flags[v] |= ENDS
        if not flags[v] & (ENDS | GOES_ON):
            flags[v] = 0


@njit(cache=True, nogil=True, inline="always")
def _copies(flag):
    """Return how many vertices stand for one: it begins or does not, and ends or does not."""
    sides = (1 if flag & BEGINS else 0) + (1 if flag & INNER else 0)
    return sides * ((1 if flag & ENDS else 0) + (1 if flag & GOES_ON else 0))


@njit(cache=True, nogil=True)
def measure_window(lo, hi, offsets, targets, flags):
    """Return how many vertices and edges the results of a window take."""
    vertices = edges = 0
    for v in range(lo, hi):
        flag = flags[v]
        if not flag:
            continue
        vertices += _copies(flag)
        if flag & GOES_ON:
            sides = (1 if flag & BEGINS else 0) + (1 if flag & INNER else 0)
            for i in range(offsets[v], offsets[v + 1]):
                t = targets[i]
                if t >= hi:
                    break
                if flags[t] & INNER:
                    edges += sides * ((1 if flags[t] & ENDS else 0) + (1 if flags[t] & GOES_ON else 0))
    return vertices, edges


@njit(cache=True, nogil=True)
def write_window(
    lo,
    hi,
    offsets,
    targets,
    flags,
    places,
    parts,
    vertex,
    edge,
    number,
    out_places,
    out_parts,
    out_offsets,
    out_targets,
):
    """Write the vertices and edges of a window from `vertex` and `edge` on; `number` is scratch, a number a vertex.

    Returns where they end, and whether a vertex has two successors of one event.
    """
    at = vertex
    for v in range(lo, hi):
        flag = flags[v]
        if flag:
            number[v] = at
            at += _copies(flag)
    ambiguous = False
    for v in range(lo, hi):
        flag = flags[v]
        if not flag:
            continue
        for ends in (True, False):
            if not flag & (ENDS if ends else GOES_ON):
                continue
            for begins in (True, False):
                if not flag & (BEGINS if begins else INNER):
                    continue
                out_places[vertex] = places[v]
                out_parts[vertex] = parts[v]
                if not ends:
                    before = -1
                    for i in range(offsets[v], offsets[v + 1]):
                        t = targets[i]
                        if t >= hi:
                            break
                        if not flags[t] & INNER:
                            continue
                        if places[t] == before:
                            ambiguous = True
                        before = places[t]
                        # Of the copies of a vertex those that end come first, of these the one that begins.
                        place = number[t]
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
    return vertex, edge, ambiguous


@njit(cache=True, nogil=True)
def allow(anchor, lo, hi, events, parts, asked, keys, above, below, differ, allowed):
    """Fill which of the vertices `[lo, hi)` may be on a result that begins with the event `anchor`.

    Condition `j` is asked of part `asked[j]`. `keys` have codes of the vertices' events and of the anchor that must be
    equal, in `above` the former must be greater, in `differ` they must be different; -1 or the lowest number: never.
    """
    for v in range(lo, hi):
        allowed[v] = True
    for j in range(keys.shape[0]):
        for v in range(lo, hi):
            if parts[v] == asked[0, j]:
                code = keys[j, 0, events[v]]
                allowed[v] &= code >= 0 and code == keys[j, 1, anchor]
    for j in range(above.shape[0]):
        for v in range(lo, hi):
            if parts[v] == asked[1, j]:
                allowed[v] &= above[j, events[v]] > below[j, anchor]
    for j in range(differ.shape[0]):
        for v in range(lo, hi):
            if parts[v] == asked[2, j]:
                code = differ[j, 0, events[v]]
                other = differ[j, 1, anchor]
                allowed[v] &= code >= 0 and other >= 0 and code != other
