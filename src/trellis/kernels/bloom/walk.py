"""The tree of filters walked from the top: below a node that does not hold a name nothing is looked at."""

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
def walk(spans, nodes, node_filters, leaf_filters, items, first, out):
    """Mark the leaves from one on that may hold an item; return how many nodes and leaves were looked at.

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
    first
        The leaf to begin with.
    out
        Which leaves may hold one.
    """
    size, visited = leaf_filters.shape[0], 0
    for item in range(items.shape[0]):
        leaf = first
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
