"""Kernels of vertex programs over a graph that is here as a whole: ranks, components, cores and triangles.

Those that take `low` and `high` do the work of these vertices only, and write nowhere else: threads share a graph so.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def rank_round(offsets, sources, shares, damping, tolerance, values, scheduled, new, changed, low, high):
    """Compute the ranks of the scheduled vertices anew; tell whose move, and return how many were scheduled.

    Parameters
    ----------
    offsets, sources : int64 (vertices + 1,), (edges,)
        Where the edges into each vertex begin, and the vertices that they come from.
    shares : float64 (edges,)
        The part of its source's rank that each edge carries.
    damping, tolerance : float
        The factor of what is gathered, and the largest difference that is no move.
    values, new : float64 (vertices,)
        The ranks before the round and after it.
    scheduled, changed : bool (vertices,)
        Which vertices are computed, and which of them have moved.
    low, high : int
        The vertices of this thread.
    """
    number = 0
    for v in range(low, high):
        new[v] = values[v]
        changed[v] = False
        if not scheduled[v]:
            continue
        number += 1
        total = 0.0
        for j in range(offsets[v], offsets[v + 1]):
            total += values[sources[j]] * shares[j]
        value = 1 + damping * total
        if abs(value - values[v]) > tolerance:
            new[v] = value
            changed[v] = True
    return number


@njit(cache=True, nogil=True)
def schedule(offsets, sources, changed, scheduled, low, high):
    """Tell which vertices gather from one that has changed; return how many have themselves.

    Parameters
    ----------
    offsets, sources : int64 (vertices + 1,), (edges,)
        Where the edges into each vertex begin, and the vertices that they come from.
    changed, scheduled : bool (vertices,)
        Which vertices have moved, and which are to be computed in the next round.
    low, high : int
        The vertices of this thread.
    """
    number = 0
    for v in range(low, high):
        number += changed[v]
        scheduled[v] = False
        for j in range(offsets[v], offsets[v + 1]):
            if changed[sources[j]]:
                scheduled[v] = True
                break
    return number


@njit(cache=True, nogil=True)
def _root(parents, v):
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v


@njit(cache=True, nogil=True)
def smallest_connected(offsets, sources, out):
    """Give for each vertex the smallest that is connected with it."""
    for v in range(out.shape[0]):
        out[v] = v
    for v in range(out.shape[0]):
        for j in range(offsets[v], offsets[v + 1]):
            one, other = _root(out, v), _root(out, sources[j])
            if one < other:
                out[other] = one
            else:
                out[one] = other
    for v in range(out.shape[0]):
        out[v] = _root(out, v)


@njit(cache=True, nogil=True)
def core_numbers(offsets, sources, out):
    """Give for each vertex its core: those with the fewest neighbours are taken away first, each edge once."""
    size, most = out.shape[0], 0
    for v in range(size):
        out[v] = offsets[v + 1] - offsets[v]
        most = max(most, out[v])
    begins = np.zeros(most + 2, np.int64)  # where the vertices of each degree begin in `order`
    for v in range(size):
        begins[out[v] + 1] += 1
    for d in range(most + 1):
        begins[d + 1] += begins[d]
    order, place = np.empty(size, np.int64), np.empty(size, np.int64)
    at = begins.copy()
    for v in range(size):
        place[v] = at[out[v]]
        order[place[v]] = v
        at[out[v]] += 1
    for i in range(size):
        v = order[i]
        for j in range(offsets[v], offsets[v + 1]):
            other = sources[j]
            if out[other] > out[v]:
                first = begins[out[other]]  # it changes places with the first of its degree, which then begins later
                swapped = order[first]
                order[place[other]], place[swapped] = swapped, place[other]
                order[first], place[other] = other, first
                begins[out[other]] += 1
                out[other] -= 1


@njit(cache=True, nogil=True)
def lower_neighbours(offsets, sources, rank, begins, lower):
    """List for each vertex its neighbours of a lower rank, ascending by number; return how many there are."""
    number = 0
    for v in range(rank.shape[0]):
        begins[v] = number
        for j in range(offsets[v], offsets[v + 1]):
            if rank[sources[j]] < rank[v]:
                lower[number] = sources[j]
                number += 1
    begins[rank.shape[0]] = number
    return number


@njit(cache=True, nogil=True)
def count_triangles(begins, lower, counts, low, high):
    """Count each triangle once, at one of its vertices, for all of them; `counts` belongs to the thread."""
    marked = np.zeros(begins.shape[0], np.bool_)
    for v in range(low, high):
        for j in range(begins[v], begins[v + 1]):
            marked[lower[j]] = True
        for j in range(begins[v], begins[v + 1]):
            other = lower[j]
            for i in range(begins[other], begins[other + 1]):
                if marked[lower[i]]:
                    counts[v] += 1
                    counts[other] += 1
                    counts[lower[i]] += 1
        for j in range(begins[v], begins[v + 1]):
            marked[lower[j]] = False
