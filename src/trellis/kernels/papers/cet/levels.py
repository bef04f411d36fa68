"""Sequences of a fixed length, as a system without a Kleene operator finds them: all of n events, then of n + 1."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def direct_flags(offsets, successors, direct_offsets, direct):
    """Return for each edge whether it is among the direct ones; both are sorted for each event."""
    found = np.zeros(successors.shape[0], np.bool_)
    for x in range(offsets.shape[0] - 1):
        i = direct_offsets[x]
        for j in range(offsets[x], offsets[x + 1]):
            while i < direct_offsets[x + 1] and direct[i] < successors[j]:
                i += 1
            found[j] = i < direct_offsets[x + 1] and direct[i] == successors[j]
    return found


@njit(cache=True, nogil=True)
def lengthen(rows, whole, hi, offsets, successors, is_direct, longer, longer_whole):
    """Write all sequences with one event more; `whole` are those that can be the beginning of a result."""
    length = rows.shape[1]
    write = 0
    for r in range(rows.shape[0]):
        x = rows[r, length - 1]
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            for j in range(length):
                longer[write, j] = rows[r, j]
            longer[write, length] = successors[i]
            longer_whole[write] = whole[r] and is_direct[i]
            write += 1
