"""Counting sequences whose first event alone is compared with the others, always by the same value, in long windows.

The first events are taken by falling value; what they accept only grows, so every other candidate is put once into a
segment tree over time. A node of the tree has, for the variables from `a` to `b`, the number of ways to choose one
event for each, in the order of time, among those in its range: two ranges that follow one another are joined by sums of
products. A task is a range of times.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def _join(tree, node, modulus):
    """Set a node from its two children."""
    width = tree.shape[1]
    left, right = 2 * node, 2 * node + 1
    for a in range(width):
        for b in range(a, width):
            total = tree[left, a, b] + tree[right, a, b]
            for m in range(a, b):
                product = tree[left, a, m] * tree[right, m + 1, b]
                if modulus > 0:
                    product %= modulus
                total += product
            if modulus > 0:
                total %= modulus
            tree[node, a, b] = total


@njit(cache=True, nogil=True)
def _append(ways, other, tree, node, modulus):
    """Join what was found so far, ways to choose the first variables, with a node behind it."""
    width = tree.shape[1]
    for b in range(width):
        total = ways[b] + tree[node, 0, b]
        for m in range(b):
            product = ways[m] * tree[node, m + 1, b]
            if modulus > 0:
                product %= modulus
            total += product
        if modulus > 0:
            total %= modulus
        other[b] = total
    for b in range(width):
        ways[b] = other[b]


@njit(cache=True, nogil=True)
def sweep(times, width, order, values, low, high, codes, places, variables, zero, modulus):
    """Return the number of matches of each task.

    Parameters
    ----------
    times, width
        How many times there are, and how many variables besides the first.
    order, values, low, high
        The tasks by falling value of their first event, this value, and the range of times of what follows it.
    codes, places, variables
        The other candidates by falling code, with the time and the variable of each; a task accepts greater codes.
    zero, modulus
        The kind of numbers; modulo a prime below 2**31, or 0.
    """
    size = 1
    while size < times:
        size *= 2
    tree = np.full((2 * size, width, width), zero)
    totals = np.full(order.shape[0], zero)
    ways, other = np.full(width, zero), np.full(width, zero)
    right = np.empty(64, np.int64)
    used = 0
    for t in order:
        while used < codes.shape[0] and codes[used] > values[t]:
            node = size + places[used]
            tree[node, variables[used], variables[used]] += zero + 1
            node >>= 1
            while node > 0:
                _join(tree, node, modulus)
                node >>= 1
            used += 1
        for b in range(width):
            ways[b] = zero
        a, b, behind = low[t] + size, high[t] + size, 0
        while a < b:
            if a & 1:
                _append(ways, other, tree, a, modulus)
                a += 1
            if b & 1:
                b -= 1
                right[behind] = b
                behind += 1
            a >>= 1
            b >>= 1
        while behind > 0:
            behind -= 1
            _append(ways, other, tree, right[behind], modulus)
        totals[t] = ways[width - 1]
    return totals
