"""One round of breadth-first extraction: all partial trends of a length get one event more."""

from __future__ import annotations

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def count_longer(paths, hi, offsets, successors):
    """Return how many paths of one event more there are."""
    total = 0
    for p in range(paths.shape[0]):
        x = paths[p, paths.shape[1] - 1]
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            total += 1
    return total


@njit(cache=True, nogil=True)
def extend(paths, hi, offsets, successors, longer):
    """Write the paths of one event more, each in a row."""
    length, row = paths.shape[1], 0
    for p in range(paths.shape[0]):
        x = paths[p, length - 1]
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            for d in range(length):
                longer[row, d] = paths[p, d]
            longer[row, length] = successors[i]
            row += 1
