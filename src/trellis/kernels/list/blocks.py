"""Blocks: the suffixes of all paths from an event, laid out once because many prefixes lead to it.

From most events few paths go on, and the same ones behind every prefix. The number of paths from each event (64 bits,
saturating) tells which events have few enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import saturating_sum
from trellis.kernels.count.paths import may_end
from trellis.kernels.jit import njit
from trellis.kernels.list.wide import SPARE

MOST = 1024  # paths from an event that has a block
LOG_MOST = 10
FEWEST = 64  # values worth laying out

TASK, BLOCKED = range(2)  # places in `ready`: the task, and the most paths of an event that has a block
AT, ROW, WIDEST, SIZE = range(4)  # columns of `table`


class RowWords(NamedTuple):
    """Events as the words by which rows show them, and what else is told of rows: for listing whole rows in one pass.

    Attributes
    ----------
    ids, times : int64 (events,)
        The id and the time of each event.
    codes : uint8 (events,) or empty
        A code of each event, of which rows have one for each of their events, too.
    heads, head_codes : int64 and uint8 (deepest + SPARE,)
        Ids and codes of the path at hand.
    block_lasts, block_codes : int64 (block rows + SPARE,), uint8 (block values + SPARE,)
        The time at which each row of a block ends, and the codes of its events.
    firsts, lasts, row_codes : int64 (rows + SPARE,) twice, uint8 (values + SPARE,)
        What is filled beside the rows: the times at which they begin and end, and the codes of their events.
    """

    ids: np.ndarray
    times: np.ndarray
    codes: np.ndarray
    heads: np.ndarray
    head_codes: np.ndarray
    block_lasts: np.ndarray
    block_codes: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    row_codes: np.ndarray


class PathBlocks(NamedTuple):
    """The numbers of paths and the blocks of one task, by event from its first on.

    Of a task of one start they are those of the events that it leads to; no walk comes to the others.

    Attributes
    ----------
    ready : int64 (2,)
        The task whose numbers and blocks these are, or -1, and the most paths of an event that has a block.
    order : int32 (events,)
        The events, each behind all that it leads to.
    seen : int64 (events,)
        The last task whose start was found to lead to each event, and 1 more; zeros at first.
    counts : uint64 (events,)
        The number of paths from each event to an end, at most 2**64 - 1.
    table : int64 (events, 4)
        Of each block the place of its first value and of its first row, the length of its longest row, its values.
    values : int32 (room + SPARE,)
        The rows of all blocks, those of one event in rank order; int64 where they are words of events.
    lengths : int32 (room + SPARE,)
        The length of each row; with `shared`, where in its block the row ends.
    shared : int32 (room + SPARE,) or None
        How many events each row shares with the one before it in its block; then only the others are in `values`.
    """

    ready: np.ndarray
    order: np.ndarray
    seen: np.ndarray
    counts: np.ndarray
    table: np.ndarray
    values: np.ndarray
    lengths: np.ndarray
    shared: np.ndarray | None


@njit(cache=True, nogil=True)
def _count_from_start(graph, task, blocks):
    """Do what `_count` does for a task of one start, without looking at events that this does not lead to.

    Events on the way to the one at hand lie at the back of `order`, and `table[x - lo, AT]` is the edge from there.
    """
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors, nearest_end = graph.offsets, graph.successors, graph.nearest_end
    counts, table, order, seen = blocks.counts, blocks.table, blocks.order, blocks.seen
    number, top, last = 0, order.shape[0], order.shape[0]
    y = lo
    while True:
        if seen[y - lo] != task + 1:
            seen[y - lo], counts[y - lo] = task + 1, np.uint64(0)
            if nearest_end[y] < hi:
                top -= 1
                order[top], table[y - lo, AT] = y, offsets[y]
        if top == last:
            return number
        x = np.int64(order[top])
        i, total = table[x - lo, AT], counts[x - lo]
        while i < offsets[x + 1] and successors[i] < hi and seen[successors[i] - lo] == task + 1:
            total = saturating_sum(total, counts[successors[i] - lo])
            i += 1
        table[x - lo, AT], counts[x - lo] = i, total
        if i < offsets[x + 1] and successors[i] < hi:
            y = np.int64(successors[i])
            continue
        if may_end(x, hi, first_end, every, offsets, successors):
            counts[x - lo] = saturating_sum(total, np.uint64(1))
        top += 1
        order[number] = x
        number += 1


@njit(cache=True, nogil=True)
def _count(graph, task, blocks):
    """Set `counts[x - lo]` to the number of paths from each event of a task to an end, saturating.

    Return how many events there are in `order`.
    """
    if graph.single:
        return _count_from_start(graph, task, blocks)
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors, nearest_end = graph.offsets, graph.successors, graph.nearest_end
    counts, order = blocks.counts, blocks.order
    for x in range(hi - 1, lo - 1, -1):
        order[hi - 1 - x] = x
        total = np.uint64(0)
        if nearest_end[x] < hi:
            if may_end(x, hi, first_end, every, offsets, successors):
                total = np.uint64(1)
            for i in range(offsets[x], offsets[x + 1]):
                y = successors[i]
                if y >= hi:
                    break
                total = saturating_sum(total, counts[y - lo])
        counts[x - lo] = total
    return hi - lo


@njit(cache=True, nogil=True)
def _highest_blocked(graph, task, number, blocks, room):
    """Return the largest power of two, at most `MOST`, such that the blocks of all events with so few paths fit.

    `table[x - lo, SIZE]` becomes the number of values of all paths from x, for events with at most `MOST` of them.
    """
    lo, hi, offsets, successors = graph.lo[task], graph.hi[task], graph.offsets, graph.successors
    counts, table = blocks.counts, blocks.table
    needed = np.zeros(LOG_MOST + 1, np.int64)
    for k in range(number):
        x = np.int64(blocks.order[k])
        count = counts[x - lo]
        if count == 0 or count > MOST:
            continue
        size = np.int64(count)
        for i in range(offsets[x], offsets[x + 1]):
            y = successors[i]
            if y >= hi:
                break
            if counts[y - lo]:
                size += table[y - lo, SIZE]
        table[x - lo, SIZE] = size
        step = 0
        while np.uint64(1) << np.uint64(step) < count:
            step += 1
        needed[step] += size
    total, highest = np.int64(0), np.int64(0)
    for step in range(LOG_MOST + 1):
        total += needed[step]
        if total > room:
            break
        highest = np.int64(1) << step
    return highest


@njit(cache=True, nogil=True)
def _lay_out(graph, task, number, highest, blocks, words):
    """Write the blocks of all events with at most `highest` paths: rows in rank order, one after another."""
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors = graph.offsets, graph.successors
    counts, table, values, lengths = blocks.counts, blocks.table, blocks.values, blocks.lengths
    if words is not None:
        ids, times, codes, lasts, block_codes = (
            words.ids, words.times, words.codes, words.block_lasts, words.block_codes
        )  # fmt: skip
        coded = codes.shape[0] > 0
    used = rows = np.int64(0)
    for k in range(number):
        x = np.int64(blocks.order[k])
        here = x - lo
        if counts[here] == 0 or counts[here] > highest:
            continue
        table[here, AT], table[here, ROW], widest = used, rows, np.int64(1)
        if may_end(x, hi, first_end, every, offsets, successors):
            if words is None:
                values[used] = x
            else:
                values[used], lasts[rows] = ids[x], times[x]
                if coded:
                    block_codes[used] = codes[x]
            lengths[rows] = 1
            used, rows = used + 1, rows + 1
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            there = successors[i] - lo
            if counts[there] == 0:
                continue
            at, first = table[there, AT], table[there, ROW]
            for row in range(first, first + np.int64(counts[there])):
                length = lengths[row]
                if words is None:
                    values[used] = x
                else:
                    values[used], lasts[rows] = ids[x], lasts[row]
                    if coded:
                        block_codes[used] = codes[x]
                        for k in range(length):
                            block_codes[used + 1 + k] = block_codes[at + k]
                for k in range(length):
                    values[used + 1 + k] = values[at + k]
                lengths[rows] = length + 1
                at, used, rows = at + length, used + length + 1, rows + 1
            widest = max(widest, table[there, WIDEST] + 1)
        table[here, WIDEST], table[here, SIZE] = widest, used - table[here, AT]


@njit(cache=True, nogil=True)
def _lay_out_compactly(graph, task, number, highest, blocks, shared, words):
    """Do what `_lay_out` does, but of each row write only what differs from the row before it in the block."""
    lo, hi, first_end, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.every
    offsets, successors = graph.offsets, graph.successors
    counts, table, values, ends = blocks.counts, blocks.table, blocks.values, blocks.lengths
    if words is not None:
        ids, times, lasts = words.ids, words.times, words.block_lasts
    used = rows = np.int64(0)
    for k in range(number):
        x = np.int64(blocks.order[k])
        here = x - lo
        if counts[here] == 0 or counts[here] > highest:
            continue
        table[here, AT], table[here, ROW] = used, rows
        begin, begun = used, 0  # whether a row holds x already
        if words is None:
            values[used] = x
        else:
            values[used] = ids[x]
        used += 1
        if may_end(x, hi, first_end, every, offsets, successors):
            ends[rows], shared[rows], begun = 1, 0, 1
            if words is not None:
                lasts[rows] = times[x]
            rows += 1
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            there = successors[i] - lo
            if counts[there] == 0:
                continue
            at, first, size = table[there, AT], table[there, ROW], table[there, SIZE]
            for k in range(size):
                values[used + k] = values[at + k]
            for row in range(first, first + np.int64(counts[there])):
                ends[rows], shared[rows] = used - begin + ends[row], begun + shared[row]
                if words is not None:
                    lasts[rows] = lasts[row]
                rows, begun = rows + 1, 1
            used += size
        table[here, SIZE] = used - begin


@njit(cache=True, nogil=True)
def make_ready(graph, task, wanted, blocks, shared, words=None):
    """Count the paths of a task, and lay out blocks of at most as many values as `wanted` rows repay.

    Parameters
    ----------
    graph : TaskGraph
        The traversal input; see `trellis.kernels.count.paths`.
    task : int
        The task; `blocks.ready` becomes this.
    wanted : uint64
        How many rows will be listed.
    blocks : PathBlocks
        What is filled.
    shared : int32 (room + SPARE,) or None
        `blocks.shared`: as an argument of its own, so that Numba knows whether it is None.
    words : RowWords or None
        What `blocks.values` tell of events, if not their positions; codes only where nothing is shared.
    """
    number = _count(graph, task, blocks)
    room, highest = np.int64(min(np.uint64(blocks.lengths.shape[0] - SPARE), wanted >> np.uint64(1))), np.int64(0)
    if room >= FEWEST:
        highest = _highest_blocked(graph, task, number, blocks, room)
        if shared is None:
            _lay_out(graph, task, number, highest, blocks, words)
        else:
            _lay_out_compactly(graph, task, number, highest, blocks, shared, words)
    blocks.ready[TASK], blocks.ready[BLOCKED] = task, highest
