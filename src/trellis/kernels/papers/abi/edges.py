"""From the ABI graph to edges between events, and the pre-filter that finds where trends can start and end."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.event_graph.edges import passes
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def follow_edges(
    rows, base, later, until, first, last, offsets, held, above, below, differ_next, differ_prev, marks, degrees,
    successors,
):  # fmt: skip
    """Go from each source along its to-edges and on along from-edges to later events; return how many there are.

    Parameters
    ----------
    rows
        The first source and the one after the last.
    base
        The event that `first` and `last` begin with.
    later, until
        For each event the first that is later, and the first that can never be in a trend with it.
    above, below, differ_next, differ_prev
        What is asked beyond what the vertices tell, as in `trellis.kernels.event_graph.edges`.
    marks
        Room for a flag an event.
    degrees, successors
        Room for the number of successors of each source, and for the successors in rising order; no room: they are
        counted only.
    """
    total = 0
    filling = successors.shape[0] > 0
    asked = above.shape[0] + differ_next.shape[0] > 0
    for x in range(rows[0], rows[1]):
        begin, end = later[x], until[x]
        degree = 0
        dense = filling and 8 * degrees[x - rows[0]] > end - begin
        if dense:
            marks[: end - begin] = False
        for v in range(first[x - base], last[x - base]):
            for i in range(first_at_least(held, offsets[v], offsets[v + 1], begin), offsets[v + 1]):
                y = int(held[i])
                if y >= end:
                    break
                if asked and not passes(x, y, above, below, differ_next, differ_prev):
                    continue
                if dense:
                    marks[y - begin] = True
                elif filling:
                    successors[total + degree] = y
                degree += 1
        if dense:
            place = total
            for y in range(begin, end):
                if marks[y - begin]:
                    successors[place] = y
                    place += 1
        elif filling and last[x - base] - first[x - base] > 1:
            successors[total : total + degree].sort()
        degrees[x - rows[0]] = degree
        total += degree
    return total


@njit(cache=True, nogil=True)
def pre_filter(ticks, vertex, first, last, offsets, held, begin, vertices):
    """Return which events can start and which can end a trend: Algorithm 3, over trees of vertices.

    For each vertex `mo` is the latest time of its events and `mi` the earliest time of an event with a to-edge to it.
    An event ends no trend if some vertex that it leads to has a later `mo`, and starts none if the `mi` of its own
    vertex is earlier. A tree takes log m steps for a range of to-edges; one by one they would take as many as there
    are.

    Parameters
    ----------
    ticks
        The times as numbers that rise by one.
    """
    n = ticks.shape[0]
    size = 1
    while size < vertices:
        size *= 2
    latest, earliest = np.full(2 * size, np.int64(-1)), np.full(2 * size, np.int64(n))
    for v in range(vertices):
        if offsets[v] < offsets[v + 1]:
            latest[size + v] = ticks[held[offsets[v + 1] - 1] - begin]
    for node in range(size - 1, 0, -1):
        latest[node] = max(latest[2 * node], latest[2 * node + 1])
    starts, ends = np.ones(n, np.bool_), np.ones(n, np.bool_)
    for x in range(first.shape[0]):
        low, high, mo = first[x] + size, last[x] + size, np.int64(-1)
        while low < high:
            if low & 1:
                mo = max(mo, latest[low])
                earliest[low] = min(earliest[low], ticks[x])
                low += 1
            if high & 1:
                high -= 1
                mo = max(mo, latest[high])
                earliest[high] = min(earliest[high], ticks[x])
            low >>= 1
            high >>= 1
        ends[x] = mo <= ticks[x]
    for y in range(n):
        if vertex[y] >= 0:
            node, mi = vertex[y] + size, np.int64(n)
            while node > 0:
                mi = min(mi, earliest[node])
                node >>= 1
            starts[y] = mi >= ticks[y]
    return starts, ends
