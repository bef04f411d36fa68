"""The tree of filters walked from the top for a sequence of steps: below a node that no match needs nothing is seen.

The walk goes down level by level. Of the nodes that it has reached it finds those that lie, as some step, on a chain;
the children of these are looked at for these steps only, and the others are left out with all that lies below them. A
node has all bits of its leaves, so a chain of leaves is a chain of the nodes above them at each level.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import ONE
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def _holds(filters, row, positions):
    for j in range(positions.shape[0]):
        if (filters[row, positions[j] >> 6] >> np.uint64(positions[j] & 63)) & ONE == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _looked_at(node, leaf, node_filters, leaf_filters, items, begin, end):
    """Return whether a node, or the leaf where it is -1, may hold one of some items, and how many were tested."""
    for item in range(begin, end):
        if _holds(leaf_filters, leaf, items[item]) if node < 0 else _holds(node_filters, node, items[item]):
            return True, item - begin + 1
    return False, end - begin


@njit(cache=True, nogil=True)
def walk(spans, nodes, node_filters, leaf_filters, items, out):
    """Mark the leaves that may hold an item; return how many nodes and leaves were looked at.

    Parameters
    ----------
    spans
        For each node how many leaves it stands for.
    nodes
        For each leaf the first of the nodes that begin there, the highest first, and where the next leaf's begin.
    node_filters, leaf_filters
        The filters of nodes and leaves, a row of words each.
    items
        The bits of each item, a row each.
    out
        Which leaves may hold one.
    """
    size, visited = leaf_filters.shape[0], 0
    for item in range(items.shape[0]):
        leaf = 0
        while leaf < size:
            step = 0
            for node in range(nodes[leaf], nodes[leaf + 1]):
                visited += 1
                if not _holds(node_filters, node, items[item]):
                    step = spans[node]
                    break
            if step == 0:
                visited += 1
                if _holds(leaf_filters, leaf, items[item]):
                    out[leaf] = True
                step = 1
            leaf += step
    return visited


@njit(cache=True, nogil=True)
def hold(filters, items, out):
    """Mark the filters, a row of words each, that may hold an item."""
    for row in range(filters.shape[0]):
        for item in range(items.shape[0]):
            if not out[row] and _holds(filters, row, items[item]):
                out[row] = True


@njit(cache=True, nogil=True)
def _near(start, end, most, near, far, size):
    """Return whether a chain may start in a leaf and end in another."""
    return end - start <= most and (far.shape[0] == 0 or far[end] <= near[start] + size)


@njit(cache=True, nogil=True)
def _keep_chains(begins, ends, holds, blocks, gaps, most, near, far, size):
    """Leave of what nodes hold those steps that lie on some chain of the nodes.

    `starts` is the latest leaf at which a chain may start that has come to a step in a node, -1 without one, and
    `stops` the earliest at which one may end that goes on from there.
    """
    number, steps = holds.shape
    starts = np.full((number, steps), -1, np.int64)
    before = np.empty(number, np.int64)  # the latest start of a chain whose block before is done up to a node
    best = np.empty(steps, np.int64)
    last = blocks.shape[0] - 2
    for b in range(last + 1):
        best[:] = -1
        done = -1
        here = np.empty(number, np.int64)
        for i in range(number):
            if b > 0:
                while done + 1 < number and begins[done + 1] + gaps[b - 1] <= ends[i]:
                    done += 1
            for e in range(blocks[b], blocks[b + 1]):
                if holds[i, e]:
                    start = ends[i] if b == 0 else (before[done] if done >= 0 else -1)
                    if start >= 0 and _near(start, begins[i], most, near, far, size):
                        starts[i, e] = start
                        best[e] = max(best[e], start)
            here[i] = best[blocks[b] : blocks[b + 1]].min()
        before = here
    behind = np.empty(number, np.int64)
    none = np.int64(1) << 62
    least = np.empty(steps, np.int64)
    for b in range(last, -1, -1):
        least[:] = none
        after = number
        here = np.empty(number, np.int64)
        for i in range(number - 1, -1, -1):
            if b < last:
                while after > 0 and ends[after - 1] >= begins[i] + gaps[b]:
                    after -= 1
            for e in range(blocks[b], blocks[b + 1]):
                holds[i, e] = False
                if starts[i, e] >= 0:
                    stop = begins[i] if b == last else (behind[after] if after < number else none)
                    if stop < none and _near(starts[i, e], stop, most, near, far, size):
                        holds[i, e] = True
                        least[e] = min(least[e], stop)
            here[i] = least[blocks[b] : blocks[b + 1]].max()
        behind = here
        if blocks[b + 1] - blocks[b] > 1:
            _keep_together(begins, ends, holds, blocks[b], blocks[b + 1], most, near, far, size)


@njit(cache=True, nogil=True)
def _keep_together(begins, ends, holds, first, last, most, near, far, size):
    """Leave of the steps of one AND those that have each other step of it near enough, before or behind."""
    number = holds.shape[0]
    kept = holds[:, first:last].copy()
    for other in range(first, last):
        for e in range(first, last):
            if e == other:
                continue
            at = -1
            near_one = np.zeros(number, np.bool_)
            for i in range(number):
                if holds[i, other]:
                    at = i
                near_one[i] = at >= 0 and _near(min(ends[at], ends[i]), begins[i], most, near, far, size)
            at = -1
            for i in range(number - 1, -1, -1):
                if holds[i, other]:
                    at = i
                if not near_one[i] and (at < 0 or not _near(ends[i], begins[at], most, near, far, size)):
                    kept[i, e - first] = False
    holds[:, first:last] = kept


@njit(cache=True, nogil=True)
def narrow(spans, nodes, tops, node_filters, leaf_filters, items, sets, blocks, gaps, low, high, most, near, far, size):
    """Return the leaves that some chain needs, for which steps, and how often a name was looked for in a filter.

    The last result is how often that was in nodes and leaves that lie wholly between `low` and `high`.

    Parameters
    ----------
    spans, nodes, node_filters, leaf_filters
        The tree: see `walk`.
    tops
        The first leaves of the nodes, and of the leaves, without a node above them.
    items, sets
        The bits of names, and where those of each step begin.
    blocks, gaps
        Where the steps of each block begin, and how many leaves lie at least between two blocks.
    low, high
        The leaves between which chains lie, the last not included.
    most
        How many leaves a chain may end behind its start.
    near, far, size
        The last and first times, or positions, of leaves, and how far apart a chain may be; none if it is not limited.
    """
    steps, visited, inside = sets.shape[0] - 1, 0, 0
    first = max(0, np.searchsorted(tops, low, side="right") - 1)
    number = max(0, np.searchsorted(tops, high) - first)
    begins, places = tops[first : first + number].copy(), np.empty(number, np.int64)
    holds = np.zeros((number, steps), np.bool_)
    ends = np.empty(number, np.int64)
    for i in range(number):
        leaf = begins[i]
        places[i] = nodes[leaf] if nodes[leaf] < nodes[leaf + 1] else -1
        ends[i] = leaf + (spans[places[i]] if places[i] >= 0 else 1) - 1
        for e in range(steps):
            holds[i, e], tested = _looked_at(places[i], leaf, node_filters, leaf_filters, items, sets[e], sets[e + 1])
            visited += tested
            inside += tested if leaf >= low and ends[i] < high else 0
    while True:
        for i in range(number):
            begins[i], ends[i] = max(begins[i], low), min(ends[i], high - 1)
        _keep_chains(begins, ends, holds, blocks, gaps, most, near, far, size)
        below, deeper = 0, False
        for i in range(number):
            if holds[i].any():
                below += _children(spans, nodes, places[i], begins[i]) if places[i] >= 0 else 1
                deeper |= places[i] >= 0
        new_begins, new_ends = np.empty(below, np.int64), np.empty(below, np.int64)
        new_places, new_holds = np.empty(below, np.int64), np.zeros((below, steps), np.bool_)
        below = 0
        for i in range(number):
            if not holds[i].any():
                continue
            if places[i] < 0:
                new_begins[below], new_ends[below], new_places[below] = begins[i], ends[i], -1
                new_holds[below] = holds[i]
                below += 1
                continue
            parent = places[i]
            leaf = _begin_of(nodes, parent, begins[i])
            end = leaf + spans[parent]
            node = parent + 1
            while leaf < end:
                child = node if node < nodes[leaf + 1] else -1
                span = spans[child] if child >= 0 else 1
                if leaf + span > low and leaf < high:
                    new_begins[below], new_ends[below], new_places[below] = leaf, leaf + span - 1, child
                    for e in range(steps):
                        if holds[i, e]:
                            new_holds[below, e], tested = _looked_at(
                                child, leaf, node_filters, leaf_filters, items, sets[e], sets[e + 1]
                            )
                            visited += tested
                            inside += tested if leaf >= low and leaf + span <= high else 0
                    below += 1
                leaf += span
                if leaf < end:
                    node = nodes[leaf]
        begins, ends, places, holds = new_begins[:below], new_ends[:below], new_places[:below], new_holds[:below]
        number = below
        if not deeper:
            return begins, holds, visited, inside


@njit(cache=True, nogil=True)
def _children(spans, nodes, parent, inside):
    """Return how many children a node has that covers a leaf."""
    leaf = _begin_of(nodes, parent, inside)
    end, node, number = leaf + spans[parent], parent + 1, 0
    while leaf < end:
        leaf += spans[node] if node < nodes[leaf + 1] else 1
        node = nodes[leaf]
        number += 1
    return number


@njit(cache=True, nogil=True)
def _begin_of(nodes, node, inside):
    """Return the leaf at which a node begins, which is one that it covers or before it."""
    leaf = inside
    while nodes[leaf] > node:
        leaf -= 1
    return leaf


@njit(cache=True, nogil=True)
def next_places(spans, nodes, node_filters, leaf_filters, items, starts, last, most, near, far, size):
    """Return for each of some leaves in order the next that may hold an item, as far as a chain from there may go.

    So a NOT is looked for between steps only, and no further than to where it is found. The second result is how often
    an item was looked for in a filter.

    Parameters
    ----------
    spans, nodes, node_filters, leaf_filters, items
        The tree, and the bits of what is forbidden: see `walk`.
    starts, last
        The leaves to begin with, and the last one to look at.
    most, near, far, size
        How far a chain may go: see `narrow`.
    """
    found, number, visited = np.empty(starts.shape[0], np.int64), 0, 0
    leaf = 0
    held = False  # whether `leaf` holds one
    for i in range(starts.shape[0]):
        start = starts[i]
        if leaf < start:
            leaf, held = start, False
        while not held and leaf <= last and _near(start, leaf, most, near, far, size):
            step = 0
            for node in range(nodes[leaf], nodes[leaf + 1]):
                held, tested = _looked_at(node, leaf, node_filters, leaf_filters, items, 0, items.shape[0])
                visited += tested
                if not held:
                    step = spans[node]
                    break
            if step == 0:
                held, tested = _looked_at(-1, leaf, node_filters, leaf_filters, items, 0, items.shape[0])
                visited += tested
                step = 1
            if held:
                found[number] = leaf
                number += 1
            else:
                leaf += step
    return found[:number], visited
