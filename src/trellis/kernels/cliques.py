"""The largest clique of a graph whose rows are bit sets, by branch and bound, and by the GraphCEP paper's Algorithm 1.

A vertex is a bit; `rows[v]` are the neighbours of `v`. A search is told a size that is known and looks for larger ones
only; it ends as soon as it finds one of the size that cannot be exceeded.

Two bounds keep it small. A vertex with too few neighbours is peeled off before the search begins, and again those that
have too few without it: what is left is the core. And what is left is coloured so that neighbours differ, since a
clique has at most one vertex of each colour.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_ONE, _TWO, _FOUR, _TOP_BYTE = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_HALVES, _QUARTERS, _NIBBLES = (np.uint64(x) for x in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
_BYTES = np.uint64(0x0101010101010101)


@njit(cache=True, nogil=True)
def ones(word):
    """Return the number of bits that are set."""
    word -= (word >> _ONE) & _HALVES
    word = (word & _QUARTERS) + ((word >> _TWO) & _QUARTERS)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return np.int64((word * _BYTES) >> _TOP_BYTE)


@njit(cache=True, nogil=True)
def _lowest(word):
    """Return the place of the lowest bit that is set."""
    return ones((word & (~word + _ONE)) - _ONE)


@njit(cache=True, nogil=True)
def connect(rows, a, b):
    """Make two vertices neighbours."""
    rows[a, b >> 6] |= _ONE << np.uint64(b & 63)
    rows[b, a >> 6] |= _ONE << np.uint64(a & 63)


@njit(cache=True, nogil=True)
def disconnect(rows, a, b):
    """Make two vertices strangers."""
    rows[a, b >> 6] &= ~(_ONE << np.uint64(b & 63))
    rows[b, a >> 6] &= ~(_ONE << np.uint64(a & 63))


@njit(cache=True, nogil=True)
def all_of(number, words):
    """Return the set of the first vertices."""
    found = np.zeros(words, np.uint64)
    for v in range(number):
        found[v >> 6] |= _ONE << np.uint64(v & 63)
    return found


@njit(cache=True, nogil=True)
def peel(rows, chosen, least):
    """Take vertices with fewer than `least` neighbours out of a set until all have enough; return how many remain."""
    words = rows.shape[1]
    degrees = np.zeros(rows.shape[0], np.int64)
    gone = np.empty(rows.shape[0], np.int64)
    number, left = 0, 0
    for w in range(words):
        rest = chosen[w]
        while rest:
            v = (w << 6) + _lowest(rest)
            rest &= rest - _ONE
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
        chosen[v >> 6] &= ~(_ONE << np.uint64(v & 63))
        for w in range(words):
            rest = rows[v, w] & chosen[w]
            while rest:
                u = (w << 6) + _lowest(rest)
                rest &= rest - _ONE
                degrees[u] -= 1
                if degrees[u] == least - 1:
                    gone[number] = u
                    number += 1
    return left


@njit(cache=True, nogil=True)
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
                bit = same[w] & (~same[w] + _ONE)
                v = (w << 6) + ones(bit - _ONE)
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


@njit(cache=True, nogil=True)
def search(rows, chosen, known, most, shared, steps):
    """Return the size of the largest clique within a set, or `known` if none is larger.

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
    shared
        A known size that other searches may raise while this one goes on, in an array of one.
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
        known = max(known, shared[0])
        if j < 0 or known >= most or depth + colours[depth, j] <= known:
            depth -= 1
            continue
        v = order[depth, j]
        at[depth] = j - 1
        steps[0] += 1
        sets[depth, v >> 6] &= ~(_ONE << np.uint64(v & 63))
        if depth + 1 > known:
            known = depth + 1
            shared[0] = max(known, shared[0])
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


@njit(cache=True, nogil=True)
def search_as_published(rows, chosen, known, most, steps):
    """Return what `search` does, by the paper's Algorithm 1: bounds are the degree and the number of candidates.

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
                v = (w << 6) + _lowest(untried[depth, w])
        if v < 0 or depth + sum_ <= known or known >= most:
            depth -= 1
            continue
        steps[0] += 1
        untried[depth, v >> 6] &= ~(_ONE << np.uint64(v & 63))
        known = max(known, depth + 1)
        if known >= most:
            break
        for w in range(words):
            sets[depth + 1, w] = sets[depth, w] & rows[v, w]
        depth += 1
        _prune(rows, sets[depth], known)
        untried[depth] = sets[depth]
    return known


@njit(cache=True, nogil=True)
def _prune(rows, chosen, known):
    """Take out vertices that have too few neighbours in the whole graph for a clique larger than the known one."""
    for w in range(rows.shape[1]):
        rest = chosen[w]
        while rest:
            bit = rest & (~rest + _ONE)
            rest &= ~bit
            v = (w << 6) + ones(bit - _ONE)
            degree = 0
            for x in range(rows.shape[1]):
                degree += ones(rows[v, x])
            if degree < known:
                chosen[w] &= ~bit
