"""Building the ABI graph: attribute vertices that are split event by event, or all at once from sorted cuts.

Values are whole numbers. What may follow an event has a value from its `low` to below its `high`; an event to which
nothing can lead has the value -1, one from which nothing can go on has `low = high`. Vertices are ranges of values that
follow one another; those of a part begin at 0, at each `low` and at each `high` below `top`.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least, grown
from trellis.kernels.jit import njit

LEVELS = 20  # of the skip list: enough for a million vertices
NONE = -1


@njit(cache=True, nogil=True)
def _level(node):
    """Return on how many levels a vertex stands: by a hash of its number, half as many on each."""
    mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    level = 1
    while level < LEVELS and mixed & np.uint64(1):
        mixed >>= np.uint64(1)
        level += 1
    return level


@njit(cache=True, nogil=True)
def _find(value, minima, forward, path):
    """Return the vertex that holds a value, and in `path` the last one before it on each level."""
    node = 0
    for level in range(LEVELS - 1, -1, -1):
        while forward[node, level] != NONE and minima[forward[node, level]] <= value:
            node = forward[node, level]
        path[level] = node
    return node


@njit(cache=True, nogil=True)
def _divide(old, new, cut, value, heads, following):
    """Move the from-edges of a vertex to events with a value from the cut on to a new vertex."""
    below = above = NONE
    event = heads[old]
    while event != NONE:
        after = following[event]
        if value[event] >= cut:
            following[event] = above
            above = event
        else:
            following[event] = below
            below = event
        event = after
    heads[old], heads[new] = below, above


@njit(cache=True, nogil=True)
def _room(array, used):
    """Return an array with room for one more value than are used."""
    return array if used < array.shape[0] else grown(array, used, 2 * used)


@njit(cache=True, nogil=True)
def build_dynamically(value, low, high, sources, top, explicit, most):
    """Take events one by one: split the vertices that they violate, and give each its edges.

    Parameters
    ----------
    value, low, high
        The values of the events, in time order.
    sources
        How many of them, the first ones, get to-edges.
    top
        The end of all values.
    explicit
        Whether each to-edge is stored by itself, and copied where its vertex is split; else two vertices per event are.
    most
        How many to-edges may be stored.

    Returns
    -------
    vertices
        How many vertices there are; -1 where there would be more than `most` to-edges.
    vertex
        The vertex of each event, by number; -1 for none.
    first, last
        The first vertex that the to-edges of each source lead to, and the one after the last.
    to_edges
        How many to-edges were stored.
    """
    n = value.shape[0]
    minima, heads = np.empty(2 * sources + 1, np.int64), np.full(2 * sources + 1, NONE, np.int64)
    forward = np.empty((2 * sources + 1, LEVELS), np.int32)
    following, path = np.empty(n, np.int64), np.empty(LEVELS, np.int64)
    begin_at, end_at = np.full(sources, NONE, np.int64), np.full(sources, NONE, np.int64)
    # To-edges: for each vertex a chain of events.
    chains = np.full(2 * sources + 1, NONE, np.int64)
    edge_event, edge_after = np.empty(16, np.int32), np.empty(16, np.int64)
    edges = 0
    minima[0] = 0
    forward[0, :] = NONE
    nodes = 1
    for event in range(n):
        gives = event < sources and low[event] < high[event]
        if gives:
            for which in range(2):
                cut = low[event] if which == 0 else high[event]
                node = NONE
                if cut < top:
                    node = _find(cut, minima, forward, path)
                    if minima[node] < cut:  # violated: it holds values on both sides of the cut
                        new = nodes
                        nodes += 1
                        minima[new] = cut
                        level = _level(new)
                        for i in range(LEVELS):
                            forward[new, i] = NONE
                            if i < level:
                                forward[new, i] = forward[path[i], i]
                                forward[path[i], i] = new
                        _divide(node, new, cut, value, heads, following)
                        if explicit:
                            edge = chains[node]
                            while edge != NONE:
                                edge_event, edge_after = _room(edge_event, edges), _room(edge_after, edges)
                                edge_event[edges], edge_after[edges] = edge_event[edge], chains[new]
                                chains[new] = edges
                                edges += 1
                                edge = edge_after[edge]
                        node = new
                if which == 0:
                    begin_at[event] = node
                else:
                    end_at[event] = node
        if value[event] >= 0:
            node = _find(value[event], minima, forward, path)
            following[event] = heads[node]
            heads[node] = event
        if gives and explicit:
            node = begin_at[event]
            while node != end_at[event]:
                edge_event, edge_after = _room(edge_event, edges), _room(edge_after, edges)
                edge_event[edges], edge_after[edges] = event, chains[node]
                chains[node] = edges
                edges += 1
                node = int(forward[node, 0])
        if edges > most:
            return -1, following, begin_at, end_at, edges
    number, vertex = np.empty(nodes, np.int64), np.full(n, NONE, np.int64)
    first, last = np.zeros(sources, np.int64), np.zeros(sources, np.int64)
    node, vertices = 0, 0
    while node != NONE:
        number[node] = vertices
        event = heads[node]
        while event != NONE:
            vertex[event] = vertices
            event = following[event]
        edge = chains[node]
        while edge != NONE:  # vertices come in order, so that the last one seen is the last
            event = int(edge_event[edge])
            if last[event] == 0:
                first[event] = vertices
            last[event] = vertices + 1
            edge = edge_after[edge]
        vertices += 1
        node = int(forward[node, 0])
    if not explicit:
        for event in range(sources):
            if begin_at[event] != NONE:
                first[event] = number[begin_at[event]]
                last[event] = vertices if end_at[event] == NONE else number[end_at[event]]
    return vertices, vertex, first, last, edges


# --- All at once --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def merge_distinct(a, b):
    """Return the values of two sorted arrays in rising order, each once."""
    merged = np.empty(a.shape[0] + b.shape[0], np.int64)
    i = j = size = 0
    while i < a.shape[0] or j < b.shape[0]:
        if j == b.shape[0] or (i < a.shape[0] and a[i] <= b[j]):
            one = a[i]
            i += 1
        else:
            one = b[j]
            j += 1
        if size == 0 or merged[size - 1] != one:
            merged[size] = one
            size += 1
    return merged[:size]


@njit(cache=True, nogil=True)
def find_vertices(cuts, values, begin, end, vertices):
    """Find for each of some values the vertex that holds it: how many cuts are not above it; -1 for a value below 0."""
    for i in range(begin, end):
        vertices[i] = first_at_least(cuts, 0, cuts.shape[0], values[i] + 1) if values[i] >= 0 else NONE


@njit(cache=True, nogil=True)
def gather_events(vertex, first, last, begins, held):
    """Write the events of the vertices from `first` to before `last`, each vertex's from where it begins, by time."""
    place = begins[first:last].copy()
    for event in range(vertex.shape[0]):
        if first <= vertex[event] < last:
            held[place[vertex[event] - first]] = event
            place[vertex[event] - first] += 1
