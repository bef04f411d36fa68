"""One best path for each place, going on behind it: what AFTER MATCH keeps of the paths of a graph.

Nodes and values are those of `trellis.kernels.best.nodes`. One backward pass finds the best suffix of every node, as in
`trellis.kernels.best.search`; then the best path that begins at the first event is followed, then the best of those
that begin where it allows it, and so on. No other path is looked at.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.best.nodes import begin, copy, event_of, order_of, start_node, starts_end
from trellis.kernels.best.search import END, FOLLOW, NOWHERE, fill_suffixes
from trellis.kernels.jit import njit

PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)  # where the next path may begin


@njit(cache=True, nogil=True)
def _larger(array):
    found = np.empty(2 * array.shape[0], array.dtype)
    found[: array.shape[0]] = array
    return found


@njit(cache=True, nogil=True, branching=True)
def leading_paths(tasks, groups, links, shape, best, events, aims, skip):
    """Return the vertices of the paths that are kept, one path after another, where each ends, and its task.

    Parameters
    ----------
    tasks, links, shape, best
        As in `trellis.kernels.best.search`.
    groups
        The group of each task, never falling; each begins anew.
    events
        The event of each vertex, never falling.
    aims
        Which vertices are bound to the variable of TO_FIRST and TO_LAST.
    skip
        Where the next path may begin.
    """
    width = shape.kinds.shape[0]
    follow = width + FOLLOW
    found, ends, owners = np.empty(256, np.int32), np.empty(64, np.int64), np.empty(64, np.int64)
    used, paths, place, group = 0, 0, -1, -1
    values = np.zeros((2, width), np.int64)
    for task in range(tasks.lo.shape[0]):
        lo = tasks.lo[task]
        if groups[task] != group:
            group, place = groups[task], -1
        if lo >= tasks.hi[task] or (tasks.single and events[lo] < place):
            continue
        fill_suffixes(task, tasks, links, shape, best)
        x, behind = lo, starts_end(task, tasks)
        while x < behind:
            first = events[x]
            chosen = -1
            while x < behind and events[x] == first:
                node = start_node(x, task, tasks, shape) if first >= place else -1
                if node >= 0 and best[node, follow] != NOWHERE:
                    begin(values, 1, best, node, x, shape)
                    if chosen < 0 or order_of(values, 1, values, 0, shape.signs) > 0:
                        copy(values, 0, values, 1, width)
                        chosen = node
                x += 1
            if chosen < 0:
                continue
            node, aim = chosen, -1
            while True:
                vertex = event_of(node, lo, shape)
                if used == found.shape[0]:
                    found = _larger(found)
                found[used] = vertex
                used += 1
                if aims[vertex] and (aim < 0 or skip == TO_LAST):
                    aim = events[vertex]
                if best[node, follow] == END:
                    break
                node = best[node, follow]
            if paths == ends.shape[0]:
                ends, owners = _larger(ends), _larger(owners)
            ends[paths], owners[paths] = used, task
            paths += 1
            if skip == PAST_LAST:
                place = events[vertex] + 1
            elif skip == TO_NEXT:
                place = first + 1
            else:
                place = max(aim, first + 1)
    return found[:used], ends[:paths], owners[:paths]


@njit(cache=True, nogil=True)
def keep_leading(groups, firsts, places, last, rows):
    """Set the rows of the paths that are kept of some in their order, and return how many.

    Parameters
    ----------
    groups, firsts, places
        The group of each path, its first event, and where the next one may begin if it is kept.
    last
        The group of the last path that was kept before, and where the next one may begin; these are set.
    rows
        Room for all rows.
    """
    group, place, kept = last[0], last[1], 0
    for row in range(groups.shape[0]):
        if groups[row] != group or firsts[row] >= place:
            group, place = groups[row], places[row]
            rows[kept] = row
            kept += 1
    last[0], last[1] = group, place
    return kept
