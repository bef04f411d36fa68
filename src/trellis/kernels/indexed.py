"""Counting paths without edges: a Fenwick tree over the attribute index takes the place of the successor lists.

The events that may follow `x` are, among the later ones, those of one segment of the index (its key) from a position
on (its inequality). Position `place[y]` is where `y` stands in the index; the segment of `x` ends
at `segment_end[x]`, and its successors stand at `cut[x]` or behind it. Segments own their part of one flat
array, in which each is a Fenwick tree of sums from the end. Events are worked on from the last to the first, those of
equal time queried before any of them is inserted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.kernels.paths import _add_logs


@njit(cache=True, nogil=True)
def _first_of_time(x, lo, later):
    """Return the first event from `lo` on that has the time of `x`."""
    while x > lo and later[x - 1] == later[x]:
        x -= 1
    return x


@njit(cache=True, nogil=True)
def _clear(tree, nothing, lo, hi, place, own, own_end, takes):
    """Undo the insertion of the events of a task: the whole tree at once where that is less."""
    if 4 * (hi - lo) > tree.shape[0]:
        tree[:] = nothing
        return
    for y in range(lo, hi):
        if takes[y]:
            size, i = own_end[y] - own[y], own_end[y] - place[y]
            while i <= size:
                tree[own_end[y] - i] = nothing
                i += i & -i


@njit(cache=True, nogil=True)
def nearest_successors(bounds, later, segment_end, cut, place, own, own_end, gives, takes):
    """Return for each event the first event that may follow it, or the number of events if none may."""
    n = place.shape[0]
    tree = np.full(n, n, np.int64)
    nearest = np.full(n, n, np.int64)
    for world in range(bounds.shape[0] - 1):
        end = bounds[world + 1]
        x = end - 1
        while x >= bounds[world]:
            first = _first_of_time(x, bounds[world], later)
            for y in range(first, x + 1):
                if gives[y]:
                    i = segment_end[y] - cut[y]
                    while i > 0:
                        nearest[y] = min(nearest[y], tree[segment_end[y] - i])
                        i -= i & -i
            for y in range(first, x + 1):
                if takes[y]:
                    size = own_end[y] - own[y]
                    i = own_end[y] - place[y]
                    while i <= size:
                        tree[own_end[y] - i] = min(tree[own_end[y] - i], y)
                        i += i & -i
            x = first - 1
    return nearest


@njit(cache=True, nogil=True)
def count_float(
    lo, hi, every, later, segment_end, cut, place, own, own_end, gives, takes, nearest, latest, usable, tree
):  # fmt: skip
    """Return the number of paths of each task as a float, as `trellis.kernels.paths.count_float` does."""
    totals = np.zeros(lo.shape[0], np.float64)
    values = np.zeros(place.shape[0], np.float64)
    for task in range(lo.shape[0]):
        x = hi[task] - 1
        while x >= lo[task]:
            first = _first_of_time(x, lo[task], later)
            for y in range(first, x + 1):
                value = 0.0
                if usable[y]:
                    value = 1.0 if every or nearest[y] >= hi[task] else 0.0
                    if gives[y]:
                        i = segment_end[y] - cut[y]
                        while i > 0:
                            value += tree[segment_end[y] - i]
                            i -= i & -i
                    if every or latest[y] < lo[task]:
                        totals[task] += value
                values[y] = value
            for y in range(first, x + 1):
                if takes[y]:
                    size, i = own_end[y] - own[y], own_end[y] - place[y]
                    while i <= size:
                        tree[own_end[y] - i] += values[y]
                        i += i & -i
            x = first - 1
        _clear(tree, 0.0, lo[task], hi[task], place, own, own_end, takes)
    return totals


@njit(cache=True, nogil=True)
def count_log2(
    lo, hi, every, later, segment_end, cut, place, own, own_end, gives, takes, nearest, latest, usable, tree
):  # fmt: skip
    """Return the binary logarithm of the number of paths of each task; `tree` starts at minus infinity."""
    totals = np.full(lo.shape[0], -np.inf, np.float64)
    values = np.zeros(place.shape[0], np.float64)
    for task in range(lo.shape[0]):
        x = hi[task] - 1
        while x >= lo[task]:
            first = _first_of_time(x, lo[task], later)
            for y in range(first, x + 1):
                value = -np.inf
                if usable[y]:
                    value = 0.0 if every or nearest[y] >= hi[task] else -np.inf
                    if gives[y]:
                        i = segment_end[y] - cut[y]
                        while i > 0:
                            value = _add_logs(value, tree[segment_end[y] - i])
                            i -= i & -i
                    if every or latest[y] < lo[task]:
                        totals[task] = _add_logs(totals[task], value)
                values[y] = value
            for y in range(first, x + 1):
                if takes[y]:
                    size, i = own_end[y] - own[y], own_end[y] - place[y]
                    while i <= size:
                        tree[own_end[y] - i] = _add_logs(tree[own_end[y] - i], values[y])
                        i += i & -i
            x = first - 1
        _clear(tree, -np.inf, lo[task], hi[task], place, own, own_end, takes)
    return totals


@njit(cache=True, nogil=True)
def count_modulo(
    prime, lo, hi, every, later, segment_end, cut, place, own, own_end, gives, takes, nearest, latest, usable, weights,
    tree,
):  # fmt: skip
    """Return number and sums of weights of each task modulo a prime, as `trellis.kernels.paths.count_modulo` does.

    `tree` has one row an event and one column for the number and each weight, all 0.
    """
    kinds = 1 + weights.shape[0]
    totals = np.zeros((kinds, lo.shape[0]), np.uint64)
    values = np.zeros((place.shape[0], kinds), np.uint64)
    for task in range(lo.shape[0]):
        x = hi[task] - 1
        while x >= lo[task]:
            first = _first_of_time(x, lo[task], later)
            for y in range(first, x + 1):
                values[y, :] = np.uint64(0)
                if not usable[y]:
                    continue
                if every or nearest[y] >= hi[task]:
                    values[y, 0] = np.uint64(1)
                if gives[y]:
                    i = segment_end[y] - cut[y]
                    while i > 0:
                        for j in range(kinds):
                            values[y, j] += tree[segment_end[y] - i, j]
                        i -= i & -i
                values[y, 0] %= prime
                for j in range(1, kinds):
                    values[y, j] = (values[y, j] + weights[j - 1, y] * values[y, 0]) % prime
                if every or latest[y] < lo[task]:
                    for j in range(kinds):
                        totals[j, task] = (totals[j, task] + values[y, j]) % prime
            for y in range(first, x + 1):
                if takes[y]:
                    size, i = own_end[y] - own[y], own_end[y] - place[y]
                    while i <= size:
                        for j in range(kinds):
                            tree[own_end[y] - i, j] = (tree[own_end[y] - i, j] + values[y, j]) % prime
                        i += i & -i
            x = first - 1
        _clear(tree, np.uint64(0), lo[task], hi[task], place, own, own_end, takes)
    return totals


@njit(cache=True, nogil=True)
def count_modulo_large(
    prime, lo, hi, every, later, segment_end, cut, place, own, own_end, gives, takes, nearest, latest, usable, tree
):  # fmt: skip
    """Return the number of paths of each task modulo a prime below 2**58; `tree` is all 0.

    Only additions: 64 residues fit 64 bits together, so that one remainder an event is enough.
    """
    totals = np.zeros(lo.shape[0], np.uint64)
    values = np.zeros(place.shape[0], np.uint64)
    for task in range(lo.shape[0]):
        x = hi[task] - 1
        while x >= lo[task]:
            first = _first_of_time(x, lo[task], later)
            for y in range(first, x + 1):
                value = np.uint64(0)
                if usable[y]:
                    if every or nearest[y] >= hi[task]:
                        value = np.uint64(1)
                    if gives[y]:
                        end = segment_end[y]
                        i = end - cut[y]
                        while i > 0:
                            value += tree[end - i]
                            i &= i - 1
                        value %= prime
                    if every or latest[y] < lo[task]:
                        totals[task] = (totals[task] + value) % prime
                values[y] = value
            for y in range(first, x + 1):
                if takes[y] and values[y] != 0:
                    end = own_end[y]
                    size, i = end - own[y], end - place[y]
                    while i <= size:
                        total = tree[end - i] + values[y]
                        tree[end - i] = total - prime if total >= prime else total
                        i += i & -i
            x = first - 1
        _clear(tree, np.uint64(0), lo[task], hi[task], place, own, own_end, takes)
    return totals
