"""Few paths: counted and listed in one go, where making a walk ready would take longer than the walk."""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.paths import may_end, may_start
from trellis.kernels.jit import njit

LONG, STEPS = 8, 8  # values of a row, and steps for one, on average, beyond which paths are not few


@njit(cache=True, nogil=True)
def list_few(graph, group, shortest, longest, most, counts):
    """Return all paths of all tasks, in the order of tasks and ranks, unless there are too many.

    Parameters
    ----------
    graph : TaskGraph
        The traversal input: tasks and their edges.
    group : int64 (tasks,)
        The group of each task; it never falls.
    shortest, longest : int
        The lengths that are listed.
    most : int
        How many paths are few.
    counts : int64 (groups,)
        Zeros at first; becomes the number of paths of each group, if they are few.

    Returns
    -------
    values : int32
        The events of the paths, one after another.
    offsets : int32 (paths + 1,)
        Where each path begins, and where the last one ends; empty where there are too many.
    ranks, groups : int64 (paths,)
        The rank of each path in its group, and the group.
    """
    single, every, offsets, successors = graph.single, graph.every, graph.offsets, graph.successors
    latest, nearest_end = graph.latest, graph.nearest_end
    values, ends = np.empty(most * LONG, np.int32), np.empty(most + 1, np.int32)
    ranks, groups = np.empty(most, np.int64), np.empty(most, np.int64)
    deepest = 0
    for task in range(group.shape[0]):
        deepest = max(deepest, graph.hi[task] - graph.lo[task])
    nodes, places = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    row = used = steps = 0
    ends[0] = 0
    for task in range(group.shape[0]):
        lo, hi, first_end, own = graph.lo[task], graph.hi[task], graph.first_end[task], group[task]
        for start in range(lo, min(lo + 1, hi) if single else hi):
            if not may_start(start, lo, hi, single, every, nearest_end, latest):
                continue
            depth, y = 0, start
            while True:
                if y >= 0:
                    steps += 1
                    if steps > most * STEPS:
                        return values[:0], ends[:0], ranks[:0], groups[:0]
                    nodes[depth], places[depth] = y, offsets[y]
                    depth += 1
                    if shortest <= depth <= longest and may_end(y, hi, first_end, every, offsets, successors):
                        if row == most or used + depth > values.shape[0]:
                            return values[:0], ends[:0], ranks[:0], groups[:0]
                        for k in range(depth):
                            values[used + k] = nodes[k]
                        used += depth
                        ranks[row], groups[row] = counts[own], own
                        counts[own] += 1
                        row += 1
                        ends[row] = used
                if depth == 0:
                    break
                x, i = nodes[depth - 1], places[depth - 1]
                y = -1
                if depth < longest and i < offsets[x + 1] and successors[i] < hi:
                    places[depth - 1] = i + 1
                    if nearest_end[successors[i]] < hi:
                        y = successors[i]
                else:
                    depth -= 1
    return values[:used].copy(), ends[: row + 1].copy(), ranks[:row].copy(), groups[:row].copy()


@njit(cache=True, nogil=True)
def take_row_words(values, offsets, ids, times, codes):
    """Return the ids and codes of the events of rows, and the times at which these begin and end.

    Parameters
    ----------
    values, offsets : int32
        The events of the rows, and where each row begins and the last one ends.
    ids, times : int64 (events,)
        The id and the time of each event.
    codes : uint8 (events,) or empty
        A code of each event.

    Returns
    -------
    ids : int64
        The id of each value.
    codes : uint8
        The code of each value; empty without codes.
    firsts, lasts : int64 (rows,)
        The times of the first and the last event of each row.
    """
    rows, size = offsets.shape[0] - 1, values.shape[0]
    row_ids, row_codes = np.empty(size, np.int64), np.empty(size if codes.shape[0] else 0, np.uint8)
    for i in range(size):
        row_ids[i] = ids[values[i]]
    for i in range(row_codes.shape[0]):
        row_codes[i] = codes[values[i]]
    firsts, lasts = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for row in range(rows):
        firsts[row], lasts[row] = times[values[offsets[row]]], times[values[offsets[row + 1] - 1]]
    return row_ids, row_codes, firsts, lasts
