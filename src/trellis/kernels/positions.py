"""Events bound to the positions of a pattern: which of them lie on results of a window, and the graph of those.

Vertices are (event, position) in that order.
"""

from __future__ import annotations

from numba import njit

BEGINS, ENDS, GOES_ON, INNER = 1, 2, 4, 8


@njit(cache=True, nogil=True)
def join_edges(events, positions, first_step, step_target, rows, successors, vertex_of, offsets, targets):
    """Write the successors of vertices, over all steps from their positions, in rising order.

    The steps from position `p` are `first_step[p]` to `first_step[p + 1]`; step `s` leads to `step_target[s]`, and the
    events that follow event `x` on it are `successors[rows[s, x] : rows[s, x + 1]]`. `vertex_of[p, x]` is the vertex of
    event `x` at position `p`. With empty `targets` only `offsets` is filled.
    """
    filling = targets.shape[0] > 0
    total = 0
    for v in range(events.shape[0]):
        x, p = events[v], positions[v]
        begin, sources = total, 0
        for s in range(first_step[p], first_step[p + 1]):
            i, end = rows[s, x], rows[s, x + 1]
            sources += i < end
            if filling:
                for j in range(i, end):
                    targets[total + j - i] = vertex_of[step_target[s], successors[j]]
            total += end - i
        if filling and sources > 1:
            targets[begin:total].sort()
        offsets[v + 1] = total
    return total


@njit(cache=True, nogil=True)
def mark_window(
    lo, hi, first_time, last_time, times, may_begin, may_end, every, offsets, targets, flags, only, allowed
):  # fmt: skip
    """Fill the flags of the vertices `[lo, hi)` that lie on a result of a window.

    `may_begin` and `may_end` tell whether a vertex is at a position where matches do. A result may not begin after
    `first_time` nor end before `last_time`. With `every`, results may also begin and end where they could go on. With
    `only` from 0 on, results begin at this vertex alone, and go over `allowed` vertices.
    """
    for v in range(lo, hi):
        flags[v] = 0
    for v in range(lo, hi):
        begins = may_begin[v] and times[v] <= first_time and (only < 0 or v == only)
        if begins and (every or not flags[v] & INNER):
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
        if may_end[v] and times[v] >= last_time and (every or not flags[v] & GOES_ON):
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
    events,
    positions,
    vertex,
    edge,
    number,
    out_events,
    out_positions,
    out_offsets,
    out_targets,
):
    """Write the vertices and edges of a window from `vertex` and `edge` on; `number` is scratch, a number a vertex.

    Returns where they end, and whether two of one event come next after a vertex, or at the beginning.
    """
    at = vertex
    for v in range(lo, hi):
        flag = flags[v]
        if flag:
            number[v] = at
            at += _copies(flag)
    ambiguous, first = False, -1
    for v in range(lo, hi):
        flag = flags[v]
        if not flag:
            continue
        if flag & BEGINS:
            ambiguous |= events[v] == first
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
                    before = -1
                    for i in range(offsets[v], offsets[v + 1]):
                        t = targets[i]
                        if t >= hi:
                            break
                        if not flags[t] & INNER:
                            continue
                        if events[t] == before:
                            ambiguous = True
                        before = events[t]
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
def allow(anchor, lo, hi, events, positions, asked, keys, above, below, differ, allowed):
    """Fill which of the vertices `[lo, hi)` may be on a result that begins with the event `anchor`.

    Condition `j` is asked of position `asked[j]`. `keys` have codes of the vertices' events and of the anchor that must
    be equal, in `above` the former must be greater, in `differ` they must be different; -1 or the lowest number:
    never.
    """
    for v in range(lo, hi):
        allowed[v] = True
    for j in range(keys.shape[0]):
        for v in range(lo, hi):
            if positions[v] == asked[0, j]:
                code = keys[j, 0, events[v]]
                allowed[v] &= code >= 0 and code == keys[j, 1, anchor]
    for j in range(above.shape[0]):
        for v in range(lo, hi):
            if positions[v] == asked[1, j]:
                allowed[v] &= above[j, events[v]] > below[j, anchor]
    for j in range(differ.shape[0]):
        for v in range(lo, hi):
            if positions[v] == asked[2, j]:
                code = differ[j, 0, events[v]]
                other = differ[j, 1, anchor]
                allowed[v] &= code >= 0 and other >= 0 and code != other


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
