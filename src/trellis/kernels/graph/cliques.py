"""The largest clique of a graph whose rows are bit sets, by branch and bound, and by the GraphCEP paper's Algorithm 1.

A vertex is a bit; `rows[v]` are the neighbours of `v`. A search is given a size that is known and looks for larger ones
only; it ends as soon as it finds one of the size that cannot be exceeded.

Two bounds keep it small. A vertex with too few neighbours is peeled off before the search begins, and again those that
have too few without it: what is left is the core. And what is left is coloured so that neighbours differ, since a
clique has at most one vertex of each colour.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import ONE, lowest_bit, ones
from trellis.kernels.jit import njit

# Said aloud, since a caller that does without (see `trellis.kernels.papers.debs2016.tables.lean`) would pass that on.
counted = njit(cache=True, nogil=True, _nrt=True)


@counted
def connect(rows, a, b):
    """Make two vertices neighbours."""
    rows[a, b >> 6] |= ONE << np.uint64(b & 63)
    rows[b, a >> 6] |= ONE << np.uint64(a & 63)


@counted
def disconnect(rows, a, b):
    """Make two vertices strangers."""
    rows[a, b >> 6] &= ~(ONE << np.uint64(b & 63))
    rows[b, a >> 6] &= ~(ONE << np.uint64(a & 63))


@counted
def all_of(number, words):
    """Return the set of the first vertices."""
    found = np.zeros(words, np.uint64)
    for v in range(number):
        found[v >> 6] |= ONE << np.uint64(v & 63)
    return found


@counted
def peel(rows, chosen, least):
    """Take vertices with fewer than `least` neighbours out of a set until all have enough; return how many remain."""
    words = rows.shape[1]
    degrees = np.zeros(rows.shape[0], np.int64)
    gone = np.empty(rows.shape[0], np.int64)
    number, left = 0, 0
    for w in range(words):
        rest = chosen[w]
        while rest:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - ONE
            left += 1
            for x in range(words):
                degrees[v] += ones(rows[v, x] & chosen[x])
            if degrees[v] < least:
                gone[number] = v
                number += 1
    i = 0
    while i < number:
        v = gone[i]
        i += 1
        left -= 1
        chosen[v >> 6] &= ~(ONE << np.uint64(v & 63))
        for w in range(words):
            rest = rows[v, w] & chosen[w]
            while rest:
                u = (w << 6) + lowest_bit(rest)
                rest &= rest - ONE
                degrees[u] -= 1
                if degrees[u] == least - 1:
                    gone[number] = u
                    number += 1
    return left


@counted
def _colour(rows, chosen, least, order, colours, uncoloured, same):
    """List the vertices of a set by colour, those whose colour is more than `least`; return how many."""
    words = rows.shape[1]
    uncoloured[:] = chosen
    listed, colour, left = 0, 0, True
    while left:
        colour += 1
        same[:] = uncoloured
        left = False
        for w in range(words):
            while same[w]:
                bit = same[w] & (~same[w] + ONE)
                v = (w << 6) + lowest_bit(bit)
                uncoloured[w] &= ~bit
                same[w] &= ~bit
                for x in range(w, words):
                    same[x] &= ~rows[v, x]
                if colour > least:
                    order[listed] = v
                    colours[listed] = colour
                    listed += 1
        for w in range(words):
            left |= uncoloured[w] != 0
    return listed


@counted
def search(rows, chosen, known, most, inside, shared, steps):
    """Return the size of the largest clique within a set, or what is known by then if none is larger.

    Parameters
    ----------
    rows
        The neighbours of each vertex.
    chosen
        The set; it is used up.
    known
        A size: only larger cliques matter.
    most
        A size that is enough.
    inside
        How many vertices the cliques of this set have beside those in it.
    shared
        The size, with these, that is known to all who search, in an array of one; others may raise it meanwhile.
    steps
        Where the vertices that were tried are counted, in an array of one.
    """
    number, words = rows.shape
    depths = min(number, most) + 1
    sets = np.empty((depths, words), np.uint64)
    order = np.empty((depths, number), np.int64)
    colours = np.empty((depths, number), np.int64)
    at = np.empty(depths, np.int64)
    uncoloured, same = np.empty(words, np.uint64), np.empty(words, np.uint64)
    depth = 0
    sets[0] = chosen
    at[0] = _colour(rows, sets[0], known, order[0], colours[0], uncoloured, same) - 1
    while depth >= 0:
        j = at[depth]
        known = max(known, shared[0] - inside)
        if j < 0 or known >= most or depth + colours[depth, j] <= known:
            depth -= 1
            continue
        v = order[depth, j]
        at[depth] = j - 1
        steps[0] += 1
        sets[depth, v >> 6] &= ~(ONE << np.uint64(v & 63))
        if depth + 1 > known:
            known = depth + 1
            shared[0] = max(known + inside, shared[0])
            if known >= most:
                break
        left = False
        for w in range(words):
            sets[depth + 1, w] = sets[depth, w] & rows[v, w]
            left |= sets[depth + 1, w] != 0
        if left:
            depth += 1
            at[depth] = _colour(rows, sets[depth], known - depth, order[depth], colours[depth], uncoloured, same) - 1
    return known


@counted
def search_as_published(rows, chosen, known, most, steps):
    """Search as `search` does, by the paper's Algorithm 1: bounds are the degree and the number of candidates.

    In its favour, candidates are those that know the whole clique, and a clique must be larger than the known one.
    """
    number, words = rows.shape
    depths = min(number, most) + 1
    sets = np.empty((depths, words), np.uint64)
    untried = np.empty((depths, words), np.uint64)
    depth = 0
    sets[0] = chosen
    _prune(rows, sets[0], known)
    untried[0] = sets[0]
    while depth >= 0:
        v, sum_ = -1, 0
        for w in range(words):
            sum_ += ones(sets[depth, w])
            if v < 0 and untried[depth, w]:
                v = (w << 6) + lowest_bit(untried[depth, w])
        if v < 0 or depth + sum_ <= known or known >= most:
            depth -= 1
            continue
        steps[0] += 1
        untried[depth, v >> 6] &= ~(ONE << np.uint64(v & 63))
        known = max(known, depth + 1)
        if known >= most:
            break
        for w in range(words):
            sets[depth + 1, w] = sets[depth, w] & rows[v, w]
        depth += 1
        _prune(rows, sets[depth], known)
        untried[depth] = sets[depth]
    return known


@counted
def _prune(rows, chosen, known):
    """Take out vertices that have too few neighbours in the whole graph for a clique larger than the known one."""
    for w in range(rows.shape[1]):
        rest = chosen[w]
        while rest:
            bit = rest & (~rest + ONE)
            rest &= ~bit
            v = (w << 6) + lowest_bit(bit)
            degree = 0
            for x in range(rows.shape[1]):
                degree += ones(rows[v, x])
            if degree < known:
                chosen[w] &= ~bit


# --- Large graphs -----------------------------------------------------------------------------------------------


@counted
def core_order(begins, neighbours):
    """Return vertices so that each has as few neighbours behind it as can be: whoever has the fewest comes next.

    Parameters
    ----------
    begins, neighbours
        The neighbours of `v` are `neighbours[begins[v]:begins[v + 1]]`.
    """
    number = begins.shape[0] - 1
    degrees = begins[1:] - begins[:-1]
    most = 0
    for v in range(number):
        most = max(most, degrees[v])
    starts = np.zeros(most + 2, np.int64)
    for v in range(number):
        starts[degrees[v] + 1] += 1
    for d in range(most + 1):
        starts[d + 1] += starts[d]
    order, place = np.empty(number, np.int64), np.empty(number, np.int64)
    fill = starts[:-1].copy()
    for v in range(number):
        place[v] = fill[degrees[v]]
        order[place[v]] = v
        fill[degrees[v]] += 1
    for i in range(number):
        v = order[i]
        for at in range(begins[v], begins[v + 1]):
            u = neighbours[at]
            if degrees[u] > degrees[v]:
                # The first of those with its degree changes places with it, and then counts to the degree below.
                first = max(starts[degrees[u]], i + 1)
                w = order[first]
                order[first], order[place[u]] = u, w
                place[w], place[u] = place[u], first
                starts[degrees[u]] = first + 1
                degrees[u] -= 1
    return order


@counted
def search_behind(begins, neighbours, order, worker, workers, shared, steps):
    """Search the cliques of every vertex and neighbours behind it, of each `workers`-th vertex, from the last on.

    The size of the largest one is kept in `shared[0]`.
    """
    number = order.shape[0]
    place = np.empty(number, np.int64)
    for i in range(number):
        place[order[i]] = i
    mark = np.zeros(number, np.int64)
    candidates = np.empty(number, np.int64)
    for i in range(number - 1 - worker, -1, -workers):
        v = order[i]
        found = 0
        for at in range(begins[v], begins[v + 1]):
            u = neighbours[at]
            if place[u] > i:
                candidates[found] = u
                found += 1
                mark[u] = found
        known = max(shared[0] - 1, 0)
        if found > known:
            rows = np.zeros((found, (found + 63) >> 6), np.uint64)
            for j in range(found):
                u = candidates[j]
                for at in range(begins[u], begins[u + 1]):
                    if mark[neighbours[at]]:
                        connect(rows, j, mark[neighbours[at]] - 1)
            chosen = all_of(found, rows.shape[1])
            if peel(rows, chosen, known) > known:
                search(rows, chosen, known, found, 1, shared, steps)
        if shared[0] == 0:
            shared[0] = 1
        for j in range(found):
            mark[candidates[j]] = 0
