"""Counting the paths of the event graph: how many, of which length, with which weights.

A task is a range `[lo, hi)` of events whose paths are counted together: a window, or all that begins at one event
within its span (`single`). A path of a task starts at an event without predecessor in it (at `lo` if single; anywhere
if `every`), and ends at an event without successor in it that is not before `first_end` (anywhere if `every`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.jit import njit


class TaskGraph(NamedTuple):
    """The traversal input of kernels that go over listed edges: tasks, and the event graph that they share.

    Attributes
    ----------
    lo, hi, first_end : int64 (tasks,)
        The events of each task, and the first of them with which a path may end.
    single, every : bool
        Whether paths start at `lo` alone; whether they start and end anywhere.
    offsets : int64 (events + 1,)
        Where the successors of each event begin.
    successors : int32 (edges,)
        The successors of each event, in rising order.
    latest : int64 (events,)
        The latest predecessor of each event, or -1.
    nearest_end : int64 (events,)
        The first event with which a path from each event may end; none of the events where no path leads on to one.
    """

    lo: np.ndarray
    hi: np.ndarray
    first_end: np.ndarray
    single: bool
    every: bool
    offsets: np.ndarray
    successors: np.ndarray
    latest: np.ndarray
    nearest_end: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def may_end(x, hi, first_end, every, offsets, successors):
    """Whether a path of the task `[.., hi)` may end at event `x`."""
    if every:
        return True
    if offsets[x] < offsets[x + 1] and successors[offsets[x]] < hi:
        return False
    return x >= first_end


@njit(cache=True, nogil=True, inline="always")
def may_start(x, lo, hi, single, every, nearest_end, latest):
    """Whether a path of the task `[lo, hi)` may start at event `x`; `nearest_end` says where one from it may end."""
    if nearest_end[x] >= hi:
        return False
    if single:
        return x == lo
    return every or latest[x] < lo


@njit(cache=True, nogil=True)
def members(graph, shortest, longest, on_path):
    """Set `on_path` for the events of each task that lie on a path of length `shortest` to `longest`.

    `reached[x, j]`: x can be the event number j + 1 of a path; `left[x, j]`: j + 1 events, x included, can follow to an
    end. Lengths beyond what the bounds tell apart are kept in the last place.
    """
    lo, hi, first_end, single, every = graph.lo, graph.hi, graph.first_end, graph.single, graph.every
    offsets, successors, latest, nearest_end = graph.offsets, graph.successors, graph.latest, graph.nearest_end
    for task in range(lo.shape[0]):
        size = hi[task] - lo[task]
        places = min(size, max(1, shortest if longest > size else longest))
        reached = np.zeros((size, places), np.bool_)
        left = np.zeros((size, places), np.bool_)
        for x in range(lo[task], hi[task]):
            if may_start(x, lo[task], hi[task], single, every, nearest_end, latest):
                reached[x - lo[task], 0] = True
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                for j in range(places):
                    if reached[x - lo[task], j]:
                        if j + 1 < places:
                            reached[successors[i] - lo[task], j + 1] = True
                        elif longest > size:
                            reached[successors[i] - lo[task], j] = True
        for x in range(hi[task] - 1, lo[task] - 1, -1):
            if nearest_end[x] >= hi[task]:
                continue
            if may_end(x, hi[task], first_end[task], every, offsets, successors):
                left[x - lo[task], 0] = True
            for i in range(offsets[x], offsets[x + 1]):
                if successors[i] >= hi[task]:
                    break
                for j in range(places):
                    if left[successors[i] - lo[task], j]:
                        if j + 1 < places:
                            left[x - lo[task], j + 1] = True
                        elif longest > size:
                            left[x - lo[task], j] = True
        for here in range(size):
            for j in range(places):
                if reached[here, j]:
                    for k in range(places):
                        if left[here, k] and shortest <= j + k + 1 <= longest:
                            on_path[lo[task] + here] = True
