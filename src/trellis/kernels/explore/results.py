"""The results among the matches that were followed, as paths of a graph that has nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore.report import EDGE_BYTES, VERTEX_BYTES
from trellis.kernels.jit import njit


class FoundPaths(NamedTuple):
    """Results as paths of vertices, in the order (event, ends before those that go on, variable).

    Attributes
    ----------
    events, variables, offsets, targets
        Of each vertex its event and variable, and those that follow it, in rising order.
    ambiguous
        Whether two results have the same events bound to different variables, as far as some event, and both go on.
    """

    events: np.ndarray  # int64 (vertices,)
    variables: np.ndarray  # int64 (vertices,)
    offsets: np.ndarray  # int64 (vertices + 1,)
    targets: np.ndarray  # int32 (edges,)
    ambiguous: bool


@njit(cache=True, nogil=True)
def paths_of(graph, product, chosen, most):
    """Return whether the results of a product take at most so many bytes, and these results.

    They are those that begin at events that are `chosen`, if any are named.
    """
    size = product.vertices.shape[0]
    vertices, offsets, targets, results = product.vertices, product.offsets, product.targets, product.results
    order = _by_vertex(vertices, graph.events.shape[0])
    alive, goes_on = results.copy(), np.zeros(size, np.bool_)
    for k in range(size - 1, -1, -1):
        one = order[k]
        for i in range(offsets[one], offsets[one + 1]):
            if alive[targets[i]]:
                goes_on[one] = True
                alive[one] = True
                break
    begins, inner = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    ambiguous, before = False, np.int64(-1)
    first_events = np.empty(product.starts.shape[0], np.int64)
    number = 0
    for i in range(product.starts.shape[0]):
        one = product.starts[i]
        event = graph.events[vertices[one]]
        if alive[one] and (chosen.shape[0] == 0 or chosen[event]):
            begins[one] = True
            if goes_on[one]:
                first_events[number] = event
                number += 1
    first_events[:number].sort()
    for i in range(1, number):
        ambiguous |= first_events[i] == first_events[i - 1]
    end_places, places = np.empty(size, np.int32), np.empty(size, np.int32)
    total = edges = 0
    k = last = 0
    while k < size:  # of the vertices of an event those that end come first
        last = _last_of(graph.events, vertices, order, k)
        for i in range(k, last):
            one = order[i]
            if begins[one] or inner[one]:
                for e in range(offsets[one], offsets[one + 1]):
                    inner[targets[e]] = alive[targets[e]]
            end_places[one] = total
            if results[one]:
                total += (1 if begins[one] else 0) + (1 if inner[one] else 0)
        for i in range(k, last):
            one = order[i]
            places[one] = total
            if goes_on[one]:
                copies = (1 if begins[one] else 0) + (1 if inner[one] else 0)
                total += copies
                for e in range(offsets[one], offsets[one + 1] if copies else offsets[one]):
                    edges += copies * ((1 if results[targets[e]] else 0) + (1 if goes_on[targets[e]] else 0))
        k = last
    fits = total * VERTEX_BYTES + edges * EDGE_BYTES <= most
    if not fits:
        size = total = edges = 0
    out_events, out_variables = np.empty(total, np.int64), np.empty(total, np.int64)
    out_offsets, out_targets = np.zeros(total + 1, np.int64), np.empty(edges, np.int32)
    vertex = edge = 0
    k = 0
    while k < size:
        last = _last_of(graph.events, vertices, order, k)
        for i in range(k, k + 2 * (last - k)):
            ends = i < last
            one = order[i] if ends else order[i - (last - k)]
            if not (results[one] if ends else goes_on[one]):
                continue
            for begin in (True, False):
                if not (begins[one] if begin else inner[one]):
                    continue
                out_events[vertex] = graph.events[vertices[one]]
                out_variables[vertex] = graph.variables[vertices[one]]
                if not ends:
                    first_edge, rising = edge, True
                    before = np.int64(-1)
                    for e in range(offsets[one], offsets[one + 1]):
                        after = targets[e]
                        # Of the copies of a vertex the one that begins comes first.
                        both = 1 if begins[after] else 0
                        if results[after]:
                            out_targets[edge] = end_places[after] + both
                            edge += 1
                        if goes_on[after]:
                            event = graph.events[vertices[after]]
                            ambiguous |= event == before
                            before = event
                            out_targets[edge] = places[after] + both
                            edge += 1
                    for e in range(first_edge + 1, edge):
                        rising &= out_targets[e - 1] < out_targets[e]
                    if not rising:
                        out_targets[first_edge:edge].sort()
                vertex += 1
                out_offsets[vertex] = edge
        k = last
    return fits, FoundPaths(out_events, out_variables, out_offsets, out_targets, ambiguous)


@njit(cache=True, nogil=True)
def _last_of(events, vertices, order, k):
    """Return the place behind the last pair that has the event of the one at place `k`."""
    event, last = events[vertices[order[k]]], k + 1
    while last < order.shape[0] and events[vertices[order[last]]] == event:
        last += 1
    return last


@njit(cache=True, nogil=True)
def _by_vertex(vertices, size):
    """Return the pairs in the order of their vertices."""
    begins = np.zeros(size + 1, np.int64)
    for i in range(vertices.shape[0]):
        begins[vertices[i] + 1] += 1
    for i in range(size):
        begins[i + 1] += begins[i]
    order = np.empty(vertices.shape[0], np.int32)
    for i in range(vertices.shape[0]):
        order[begins[vertices[i]]] = i
        begins[vertices[i]] += 1
    return order
