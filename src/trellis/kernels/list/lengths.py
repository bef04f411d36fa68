"""Lengths that paths from an event to an end can have, so that a walk enters no branch in vain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.count.paths import may_end
from trellis.kernels.jit import njit

FAR = np.uint64(63)  # this bit of a set of lengths stands for 64 and more


class LengthLimits(NamedTuple):
    """The lengths that are allowed, and those that paths from each event of one task have, from its first on.

    Attributes
    ----------
    ready : int64 (1,)
        The task whose sets these are, or -1.
    least, most : int
        The least and the greatest number of events of a path.
    sets : uint64 (events,)
        The set of lengths of paths from each event to an end: bit `j` for `j + 1` events, the last for 64 and more.
    longest : int64 (events,)
        The greatest of these lengths; 0 without a path.
    """

    ready: np.ndarray
    least: int
    most: int
    sets: np.ndarray
    longest: np.ndarray


@njit(cache=True, nogil=True)
def find_lengths(graph, task, limits):
    """Find the lengths of the paths from each event of a task to an end."""
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors, nearest_end = graph.offsets, graph.successors, graph.nearest_end
    sets, longest = limits.sets, limits.longest
    far = np.uint64(1) << FAR
    for x in range(hi - 1, lo - 1, -1):
        bits, high = np.uint64(0), np.int64(0)
        if nearest_end[x] < hi:
            if may_end(x, hi, first_end, every, offsets, successors):
                bits, high = np.uint64(1), np.int64(1)
            for i in range(offsets[x], offsets[x + 1]):
                y = successors[i]
                if y >= hi:
                    break
                bits |= (sets[y - lo] << np.uint64(1)) | (sets[y - lo] & far)
                if longest[y - lo] > 0:
                    high = max(high, longest[y - lo] + 1)
        sets[x - lo], longest[x - lo] = bits, high
    limits.ready[0] = task


@njit(cache=True, nogil=True)
def is_reachable(before, bits, high, least, most):
    """Whether `before` events and some more, as many as `bits` and `high` allow, make an allowed length."""
    if before + high < least:
        return False
    low, top = max(1, least - before), most - before
    if top < 1:
        return False
    if top >= 64 and high >= low and (bits >> FAR) & np.uint64(1):
        return True
    for j in range(low, min(top, 63) + 1):  # noqa: SIM110 (Numba has no any())
        if (bits >> np.uint64(j - 1)) & np.uint64(1):
            return True
    return False
