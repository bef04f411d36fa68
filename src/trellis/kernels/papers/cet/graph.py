"""The event graph backwards, for SASE's pointers, and the longest path of each window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.jit import njit


class TwoWayGraph(NamedTuple):
    """The event graph forwards, the earliest successor first, and backwards, the latest predecessor first.

    `offsets` and `before_offsets` are int64 (events + 1,), `successors` and `before` int32 (edges,), `usable` is bool
    (events,): whether an event may be on a trend.
    """

    offsets: np.ndarray  # int64 (events + 1,)
    successors: np.ndarray  # int32 (edges,)
    before_offsets: np.ndarray  # int64 (events + 1,)
    before: np.ndarray  # int32 (edges,)
    usable: np.ndarray  # bool (events,)


@njit(cache=True, nogil=True)
def predecessors(offsets, successors):
    """Return offsets and predecessors of every event, the latest first."""
    n = offsets.shape[0] - 1
    begins = np.zeros(n + 1, np.int64)
    for i in range(successors.shape[0]):
        begins[successors[i] + 1] += 1
    for x in range(n):
        begins[x + 1] += begins[x]
    found = np.empty(successors.shape[0], np.int32)
    place = begins[1:].copy()
    for x in range(n):
        for i in range(offsets[x], offsets[x + 1]):
            place[successors[i]] -= 1
            found[place[successors[i]]] = x
    return begins, found


@njit(cache=True, nogil=True)
def longest_paths(lo, hi, ok, offsets, successors):
    """Return the number of events on the longest path of each task, and the edges inside it."""
    longest, edges = np.zeros(lo.shape[0], np.int64), np.zeros(lo.shape[0], np.int64)
    most = np.int64(0)
    for task in range(lo.shape[0]):
        most = max(most, hi[task] - lo[task])
    length = np.zeros(most, np.int64)
    for task in range(lo.shape[0]):
        begin, end = lo[task], hi[task]
        for x in range(end - 1, begin - 1, -1):
            further = np.int64(0)
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= end:
                    break
                further = max(further, length[successors[i] - begin])
                edges[task] += 1
            length[x - begin] = further + 1 if ok[x] else 0
            longest[task] = max(longest[task], length[x - begin])
    return longest, edges
