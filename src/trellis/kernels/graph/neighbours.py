"""Kernels of vertex programs over lists of neighbours: h-index and common members."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

SKEWED = 16  # times as long: from here on members of the shorter list are looked up in the longer one


@njit(cache=True, nogil=True)
def h_index(values, offsets, out):
    """Give for each segment the largest h so that h of its values are at least h."""
    longest = 0
    for i in range(out.shape[0]):
        longest = max(longest, offsets[i + 1] - offsets[i])
    counts = np.zeros(longest + 1, np.int64)
    for i in range(out.shape[0]):
        begin, end = offsets[i], offsets[i + 1]
        size = end - begin
        counts[: size + 1] = 0
        for j in range(begin, end):
            counts[max(0, min(values[j], size))] += 1
        h, reached = size, counts[size]
        while reached < h:
            h -= 1
            reached += counts[h]
        out[i] = h


@njit(cache=True, nogil=True)
def _shared(a, b):
    """Count what two ascending lists have in common; `a` is the shorter one."""
    found = 0
    if b.shape[0] > SKEWED * a.shape[0]:
        for value in a:
            place = first_at_least(b, 0, b.shape[0], value)
            if place < b.shape[0] and b[place] == value:
                found += 1
        return found
    i = j = 0
    while i < a.shape[0] and j < b.shape[0]:
        if a[i] == b[j]:
            found += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return found


@njit(cache=True, nogil=True)
def common_members(offsets, sources, set_offsets, members, own_offsets, own_members, out):
    """Give for each target how many members of its own set the sets of its sources have, all together."""
    for i in range(out.shape[0]):
        own = own_members[own_offsets[i] : own_offsets[i + 1]]
        total = 0
        for j in range(offsets[i], offsets[i + 1]):
            source = sources[j]
            other = members[set_offsets[source] : set_offsets[source + 1]]
            total += _shared(own, other) if own.shape[0] <= other.shape[0] else _shared(other, own)
        out[i] = total
