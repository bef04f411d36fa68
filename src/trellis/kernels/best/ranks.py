"""The order and the ranks of some paths; values and nodes as in `trellis.kernels.best.nodes`."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import saturating_sum
from trellis.kernels.best.nodes import (
    USABLE,
    event_of,
    find_successors,
    may_end,
    next_node,
    start_node,
    state_of,
)
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def _comes_first(i, j, events, ends, tasks):
    if tasks[i] != tasks[j]:
        return tasks[i] < tasks[j]
    a = ends[i - 1] if i > 0 else 0
    b = ends[j - 1] if j > 0 else 0
    while a < ends[i] and b < ends[j]:
        if events[a] != events[b]:
            return events[a] < events[b]
        a += 1
        b += 1
    return b < ends[j]


@njit(cache=True, nogil=True)
def rank_order(events, ends, tasks):
    """Return the places of paths in the order of tasks and, within a task, of ranks."""
    size = ends.shape[0]
    order, other = np.arange(size), np.empty(size, np.int64)
    width = 1
    while width < size:
        for begin in range(0, size, 2 * width):
            i, middle = begin, min(begin + width, size)
            j, end = middle, min(begin + 2 * width, size)
            for k in range(begin, end):
                if j >= end or (i < middle and not _comes_first(order[j], order[i], events, ends, tasks)):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@njit(cache=True, nogil=True)
def _suffix_counts(task, tasks, links, shape, counts):
    """Count the paths that go on from every node of a task, at most 2**64 - 1."""
    lo, hi, states = tasks.lo[task], tasks.hi[task], shape.step.shape[0]
    for x in range(hi - 1, lo - 1, -1):
        for state in range(states):
            total = np.uint64(0)
            if shape.events[x, USABLE]:
                if may_end(x, state, task, tasks, shape):
                    total = np.uint64(1)
                for i in range(links.offsets[x], links.offsets[x + 1]):
                    if links.successors[i] >= hi:
                        break
                    z = next_node(state, links.successors[i], lo, shape)
                    if z >= 0:
                        total = saturating_sum(total, counts[z])
            counts[(x - lo) * states + state] = total


@njit(cache=True, nogil=True)
def _counts_before(x, node, task, tasks, links, shape, counts, successors, total):
    """Add to `total` the paths that come behind a node and before those that go on to the event `x`."""
    lo = tasks.lo[task]
    last, state = event_of(node, lo, shape), state_of(node, shape)
    if may_end(last, state, task, tasks, shape):
        total = saturating_sum(total, np.uint64(1))
    for i in range(find_successors(last, x, links, successors)):
        z = next_node(state, successors[i], lo, shape)
        if z >= 0:
            total = saturating_sum(total, counts[z])
    return total


@njit(cache=True, nogil=True)
def ranks_of(tasks, before, task_paths, events, begins, ends, links, shape, counts, successors):
    """Return the ranks of paths within their groups; -1 where one does not fit 63 bits.

    Parameters
    ----------
    tasks, before
        The tasks in order, and how many paths of its group come before those of each, at most 2**64 - 1.
    task_paths
        The paths of task `t` are `task_paths[t]` to `task_paths[t + 1]`, in the order of their ranks.
    counts
        Room for the nodes of the largest task.
    """
    ranks = np.empty(begins.shape[0], np.int64)
    # Of the path at hand: how many paths come before those that share its events so far, and its nodes.
    ahead, nodes = np.zeros(successors.shape[0] + 2, np.uint64), np.zeros(successors.shape[0] + 1, np.int64)
    for task in range(tasks.lo.shape[0]):
        _suffix_counts(task, tasks, links, shape, counts)
        cursor = tasks.lo[task]
        ahead[0] = before[task]
        for p in range(task_paths[task], task_paths[task + 1]):
            shared, length = 0, ends[p] - begins[p]
            if p > task_paths[task]:
                while events[begins[p] + shared] == events[begins[p - 1] + shared]:
                    shared += 1
                    if shared == ends[p - 1] - begins[p - 1]:
                        break
            for d in range(shared, length):
                x = events[begins[p] + d]
                if d > 0:
                    ahead[d + 1] = _counts_before(
                        x, nodes[d - 1], task, tasks, links, shape, counts, successors, ahead[d]
                    )
                    nodes[d] = next_node(state_of(nodes[d - 1], shape), x, tasks.lo[task], shape)
                    continue
                while cursor < x:
                    z = start_node(cursor, task, tasks, shape)
                    if z >= 0:
                        ahead[0] = saturating_sum(ahead[0], counts[z])
                    cursor += 1
                ahead[1] = ahead[0]
                nodes[0] = start_node(x, task, tasks, shape)
            ranks[p] = np.int64(ahead[length]) if ahead[length] < np.uint64(1 << 63) else -1
    return ranks
