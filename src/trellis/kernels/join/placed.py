"""Sums by place: for a task whose lists are narrowed many times, what its slots accept of each other is found once.

The candidates of a slot are put in order once, by time or by code; of a neighbour's candidate it is known how many of
them, from the first on, it accepts. However lists are narrowed later, its sum is one of the running sums in that order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.join.block import lean
from trellis.kernels.join.lists import GREATER

TIME, CODE, SCAN = range(3)  # how a slot's sums are passed on: by time alone, by one code, pair by pair
FEWEST = 24  # candidates of a slot that are put in order
DENSE = 4  # times as many in order as in the lists at hand, at most, to go through all of them


class PlacedSums(NamedTuple):
    """For each pair of slots that sums are passed between, the candidates in order, and places among them.

    Attributes
    ----------
    order, size
        int64 (edges, candidates), (edges,): the candidates that sums are passed from, and how many; 0: not in order.
    place
        int64 (edges, candidates): of each candidate that gets sums, how many of the others it accepts.
    spare
        int64 (candidates,): scratch of sorting.
    running
        uint64 (candidates + 1,): running sums.
    """

    order: np.ndarray
    size: np.ndarray
    place: np.ndarray
    spare: np.ndarray
    running: np.ndarray


@lean
def sort(order, spare, size, codes):
    """Sort candidates by code: runs of one, two, four and so on are merged."""
    width = 1
    while width < size:
        for begin in range(0, size, 2 * width):
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            i, j = begin, middle
            for k in range(begin, end):
                if j == end or (i < middle and codes[order[i]] <= codes[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for k in range(size):
            order[k] = spare[k]
        width *= 2


@lean
def put_in_order(tables, lists, edges, placed):
    """Put the candidates of a task's first lists in order, for each edge where it is time or one comparison."""
    events, pool = tables.events, lists.pool
    for e in range(edges.shape[0]):
        w, u, how, ordered, c = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3], edges[e, 4]
        low, high = lists.low[0, w], lists.high[0, w]
        by_code = how == CODE and tables.kinds[c] == GREATER and ordered == 0
        size = high - low
        placed.size[e] = 0
        if size < FEWEST or (how != TIME and not by_code):
            continue
        placed.size[e] = size
        order, place = placed.order[e], placed.place[e]
        falling = ordered < 0
        for k in range(size):
            order[k] = pool[low + k]
        if by_code:
            falling = tables.first[c] == u  # `w` must be greater
            sort(order, placed.spare, size, tables.codes[c])
        for i in range(lists.low[0, u], lists.high[0, u]):
            a = pool[i]
            if by_code:
                own = tables.codes[c, a]
                first = first_at_least_in(order, tables.codes[c], 0, size, own + 1 if falling else own)
            elif ordered == 0:
                first = size
            else:
                bound = tables.later[events[a]] if falling else tables.begins[events[a]]
                first = first_at_least_in(order, events, 0, size, bound)
            place[a] = size - first if falling else first
        if falling:
            for k in range(size // 2):
                order[k], order[size - 1 - k] = order[size - 1 - k], order[k]


@lean
def is_placed(lists, node, edge, size):
    """Return whether sums are passed on by place: candidates are in order, and enough of them are in the lists."""
    w, u = edge[0], edge[1]
    both = lists.high[node, w] - lists.low[node, w] + lists.high[node, u] - lists.low[node, u]
    return 0 < size <= DENSE * both


@lean
def clear(lists, numbers, w, zero):
    """Let the candidates of a slot count nothing, whether they are in its list or were left out of it."""
    for a in range(lists.pool[lists.low[0, w]], lists.pool[lists.high[0, w] - 1] + 1):
        numbers[a] = zero
