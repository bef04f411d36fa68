"""Kernels of vertex programs that go from a few vertices on: shortest paths, and all cliques of a vertex."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import ONE, lowest_bit
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def relax(offsets, targets, weights, weighted, far, changed, bound):
    """Let distances go along edges until none changes; round by round, as a vertex program does.

    Parameters
    ----------
    offsets, targets, weights
        The edges out of each vertex; `weights` count if `weighted`, else each edge is 1.
    far
        The distances, which are changed in place.
    changed
        The vertices that have changed at the start.
    bound
        After how many rounds to stop.

    Returns
    -------
    tuple
        How many rounds there were, how often a vertex was scheduled, and how many still change.
    """
    size = far.shape[0]
    stamp = np.full(size, -1, np.int64)
    now, after = np.empty(size, np.int64), np.empty(size, np.int64)
    held, best = np.empty(size, np.float64), np.empty(size, np.float64)
    number = changed.shape[0]
    now[:number] = changed
    rounds = scheduled = 0
    while number > 0 and rounds < bound:
        for i in range(number):
            held[i] = far[now[i]]  # of the round before, whatever this round brings
        reached = 0
        for i in range(number):
            for j in range(offsets[now[i]], offsets[now[i] + 1]):
                target = targets[j]
                value = held[i] + (weights[j] if weighted else 1.0)
                if stamp[target] != rounds:
                    stamp[target] = rounds
                    after[reached] = target
                    best[target] = value
                    reached += 1
                elif value < best[target]:
                    best[target] = value
        if reached == 0:
            return rounds, scheduled, 0
        number = 0
        for i in range(reached):
            target = after[i]
            if best[target] < far[target]:
                far[target] = best[target]
                now[number] = target
                number += 1
        rounds += 1
        scheduled += reached
    return rounds, scheduled, number


@njit(cache=True, nogil=True)
def _near_rows(offsets, neighbours, vertex):
    """Return which neighbours of a vertex are neighbours of each other, as bit sets; neighbours are in order."""
    begin, end = offsets[vertex], offsets[vertex + 1]
    size = end - begin
    rows = np.zeros((size, max(1, (size + 63) >> 6)), np.uint64)
    for i in range(size):
        own = neighbours[begin + i]
        j, at = 0, offsets[own]
        while j < size and at < offsets[own + 1]:
            one, other = neighbours[begin + j], neighbours[at]
            if one == other:
                rows[i, j >> 6] |= ONE << np.uint64(j & 63)
            j += one <= other
            at += other <= one
    return rows


@njit(cache=True, nogil=True)
def _sets_of_members(cliques, names, size, own):
    """Return for each of some vertices, and in place `own` for the vertex that all cliques have, the cliques it is in.

    They are given as sets: where those of each begin, and their names.
    """
    offsets = np.zeros(size + 2, np.int64)
    for v in range(size):
        at = v + (v >= own)
        for i in range(cliques.shape[0]):
            offsets[at + 1] += np.int64(cliques[i, v >> 6] >> np.uint64(v & 63) & ONE)
    offsets[own + 1] = cliques.shape[0]
    for v in range(size + 1):
        offsets[v + 1] += offsets[v]
    members = np.empty(offsets[size + 1], names.dtype)
    for v in range(size):
        at = offsets[v + (v >= own)]
        for i in range(cliques.shape[0]):
            if cliques[i, v >> 6] >> np.uint64(v & 63) & ONE:
                members[at] = names[i]
                at += 1
    members[offsets[own] : offsets[own + 1]] = names
    return offsets, members


@njit(cache=True, nogil=True)
def _all_cliques(rows, most):
    """Return all cliques of a graph whose rows are bit sets, the empty one too, a row of words each, and their number.

    At most `most` are returned; the number is larger by one if there are more. A vertex is joined with lower ones only,
    so that cliques come in the order of their bits.
    """
    size, words = rows.shape
    found = np.zeros((min(most, 64), words), np.uint64)
    number = 1  # the empty one
    left = np.zeros((size + 1, words), np.uint64)  # at each depth the vertices that may still be added
    for v in range(size):
        left[0, v >> 6] |= ONE << np.uint64(v & 63)
    fit = left.copy()  # those that may be added at all
    clique = np.zeros(words, np.uint64)
    chosen = np.zeros(size + 1, np.int64)
    depth = 0
    while depth >= 0:
        vertex = -1
        for w in range(words):
            if left[depth, w]:
                vertex = (w << 6) + lowest_bit(left[depth, w])
                left[depth, w] &= left[depth, w] - ONE
                break
        if vertex < 0:
            depth -= 1
            if depth >= 0:
                clique[chosen[depth] >> 6] &= ~(ONE << np.uint64(chosen[depth] & 63))
            continue
        if number >= most:
            return found[:number], number + 1
        clique[vertex >> 6] |= ONE << np.uint64(vertex & 63)
        if number == found.shape[0]:
            larger = np.zeros((min(most, 2 * number), words), np.uint64)
            larger[:number] = found
            found = larger
        found[number] = clique
        number += 1
        chosen[depth] = vertex
        depth += 1
        left[depth] = fit[depth - 1] & rows[vertex]
        left[depth, (vertex >> 6) + 1 :] = 0
        left[depth, vertex >> 6] &= (ONE << np.uint64(vertex & 63)) - ONE
        fit[depth] = left[depth]
    return found[:number], number


@njit(cache=True, nogil=True)
def cliques_near(offsets, neighbours, vertex, widest, most):
    """Return all cliques of a vertex, with those that it and each of its neighbours is in.

    Parameters
    ----------
    offsets, neighbours
        The neighbours of each vertex, in order.
    vertex
        The vertex.
    widest
        The name of a clique are its bits where there are no more neighbours than this; else it is its number.
    most
        How many cliques there may be.

    Returns
    -------
    tuple
        The vertex and its neighbours in order, the bit sets of neighbours, the cliques without the vertex and their
        number (one more than `most` where there are more), and sets of names for each vertex: see `_sets_of_members`.
    """
    near = neighbours[offsets[vertex] : offsets[vertex + 1]]
    size = near.shape[0]
    rows = _near_rows(offsets, neighbours, vertex)
    found, number = _all_cliques(rows, most)
    own = np.searchsorted(near, vertex)
    places = np.empty(size + 1, np.int64)
    places[:own], places[own], places[own + 1 :] = near[:own], vertex, near[own:]
    names = found[:, 0].copy() if size <= widest else np.arange(number).astype(np.uint64)
    if number > most:
        return places, rows, found, number, offsets[:0], names
    begins, members = _sets_of_members(found, names, size, own)
    return places, rows, found, number, begins, members
