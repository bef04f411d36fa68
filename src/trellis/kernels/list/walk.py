"""The depth-first walk over the event graph, in rank order; every listing of paths by edges is this one.

The walk goes on where it stopped, so its results come in batches of bounded size. It lists whole rank ranges: what
comes before the first rank is skipped whole subtrees at a time, by the numbers of paths from each event. Below an event
that has a block (`trellis.kernels.list.blocks`) rows are copied instead of walked to. With limits on the length
(`trellis.kernels.list.lengths`) it enters only branches that lead to an allowed one, but cannot skip: a rank range then
begins with the first path of its task, or where `stand_on` has put the walk. With marks it starts and ends paths where
these say, and goes through any lists of neighbours: the papers' depth-first algorithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels.arrays import first_at_least
from trellis.kernels.count.paths import may_end, may_start
from trellis.kernels.jit import njit
from trellis.kernels.list.blocks import AT, BLOCKED, ROW, SIZE, TASK, WIDEST, make_ready
from trellis.kernels.list.lengths import find_lengths, is_reachable
from trellis.kernels.list.rows import fitting, fitting_compactly, write_compactly, write_rows
from trellis.kernels.list.wide import SPARE, copy_wide, fill_wide

# Places in the state of a walk: the rank range, whether its task was begun, the next event that may be a start, how
# many events the path at hand has, whether its last event was just entered, rows that are still wanted; rows and
# values written. Then numbers of paths: how many to skip, and how many of the rank range are left.
RANGE, READY, CURSOR, DEPTH, FRESH, REST, ROWS, VALUES, STATE_SIZE = range(9)
SKIP, LEFT = range(2)
ENDLESS = 1 << 62  # more rows than are ever listed


class WalkRanges(NamedTuple):
    """Rank ranges: the paths of the task `task[i]` from rank `first[i]` on, `size[i]` of them.

    `task` is int64, `first` and `size` are uint64, all (ranges,).
    """

    task: np.ndarray  # int64 (ranges,)
    first: np.ndarray  # uint64 (ranges,)
    size: np.ndarray  # uint64 (ranges,)


class WalkState(NamedTuple):
    """The state of a walk: all that it needs to go on.

    Attributes
    ----------
    state : int64 (STATE_SIZE,)
        See the constants of this module.
    numbers : uint64 (2,)
        How many paths to skip, and how many of the rank range are left.
    nodes : int32 (deepest + SPARE,)
        The events of the path at hand.
    places : int64 (deepest + 1,)
        The edge over which the path goes on from each of its events.
    """

    state: np.ndarray
    numbers: np.ndarray
    nodes: np.ndarray
    places: np.ndarray


class WalkMarks(NamedTuple):
    """Where paths of the one task start and end, as bool (events,) from its first event on.

    Where `backwards`, neighbours are predecessors, the latest first, and paths are written from their last event on.
    """

    starts: np.ndarray  # bool (events,)
    ends: np.ndarray  # bool (events,)
    backwards: bool


class WalkRows(NamedTuple):
    """Buffers for a batch of rows.

    Attributes
    ----------
    values : int32 (room + SPARE,)
        The events of the paths, one after another; int64 where they are told by words.
    ends : int32 (rows + SPARE,)
        Where each path ends, after a 0.
    shared : int32 (rows + SPARE,) or None
        How many leading events a path shares with the one before it in the buffers and in its rank range; then only
        the others are in `values`.
    """

    values: np.ndarray
    ends: np.ndarray
    shared: np.ndarray | None


def _shared_of(blocks):
    """Return the shared lengths of blocks, or None without blocks, so that Numba knows the type of either."""
    return None if blocks is None else blocks.shared


@overload(_shared_of)
def _shared_of_blocks(blocks):
    if isinstance(blocks, types.NoneType):
        return lambda blocks: None
    return lambda blocks: blocks.shared


def _heads_of(words, nodes):
    """Return the words of the path at hand or, without words, its events: with these rows begin."""
    return nodes if words is None else words.heads


@overload(_heads_of)
def _heads_of_words(words, nodes):
    if isinstance(words, types.NoneType):
        return lambda words, nodes: nodes
    return lambda words, nodes: words.heads


@njit(cache=True, nogil=True)
def _walk(walk, graph, task, blocks, block_shared, limits, marks, rows, shared, words, row, used):
    """Write paths of one rank range until it is over or no more fit; return rows, values and whether no more fit."""
    state, numbers, nodes, places = walk.state, walk.numbers, walk.nodes, walk.places
    lo, hi, first_end, single, every = graph.lo[task], graph.hi[task], graph.first_end[task], graph.single, graph.every
    offsets, successors, latest, nearest_end = graph.offsets, graph.successors, graph.latest, graph.nearest_end
    values, ends = rows.values, rows.ends
    room, rows_room = values.shape[0] - SPARE, ends.shape[0] - SPARE
    depth, cursor, fresh = state[DEPTH], state[CURSOR], state[FRESH]
    skip, left = numbers[SKIP], min(numbers[LEFT], np.uint64(state[REST]))
    wanted, full, over = left, False, False
    few = np.uint64(0)  # paths of an event that has a block, at most
    if blocks is not None:
        few = np.uint64(blocks.ready[BLOCKED])
        counts, table, block_values, block_lengths = blocks.counts, blocks.table, blocks.values, blocks.lengths
    if limits is not None:
        least, most, sets, longest = limits.least, limits.most, limits.sets, limits.longest
    if marks is not None:
        starts, stops, backwards = marks.starts, marks.ends, marks.backwards
    heads = _heads_of(words, nodes)
    if words is not None:
        head_codes, row_codes, block_codes = words.head_codes, words.row_codes, words.block_codes
        ids, times, codes, firsts, lasts = words.ids, words.times, words.codes, words.firsts, words.lasts
        block_lasts, coded = words.block_lasts, words.codes.shape[0] > 0
    stop = lo + 1 if single else hi
    turn = np.int64(0)  # how many events the next row shares with the one before
    while left > 0:
        if depth == 0:
            while cursor < stop:
                if marks is not None:
                    begins = starts[cursor - lo]
                else:
                    begins = may_start(cursor, lo, hi, single, every, nearest_end, latest)
                if begins:
                    break
                cursor += 1
            if cursor >= stop:
                over = True
                break
            y, turn = cursor, np.int64(0)
            cursor += 1
        else:
            x = nodes[depth - 1]
            if fresh:
                fresh = 0
                whole = may_end(x, hi, first_end, every, offsets, successors) if marks is None else stops[x - lo]
                if limits is not None:
                    whole = whole and least <= depth <= most
                if whole:
                    if skip > 0:
                        skip -= np.uint64(1)
                    else:
                        begin = np.int64(0) if shared is None else turn
                        if row >= rows_room or used + depth - begin > room:
                            fresh, full = 1, True
                            break
                        copy_wide(values, used, heads, begin, depth - begin)
                        if words is not None:
                            firsts[row], lasts[row] = times[nodes[0]], times[x]
                            if coded:
                                copy_wide(row_codes, used, head_codes, begin, depth - begin)
                        if marks is not None and backwards:
                            for j in range(depth):
                                values[used + j] = nodes[depth - 1 - j]
                        if shared is not None:
                            shared[row] = turn
                        used += depth - begin
                        row += 1
                        ends[row] = used
                        left -= np.uint64(1)
                        turn = depth
                        continue
            i = places[depth - 1]
            if i >= offsets[x + 1] or successors[i] >= hi or successors[i] < lo:
                depth -= 1
                turn = min(turn, depth)
                continue
            y = np.int64(successors[i])
            places[depth - 1] = i + 1
        here = y - lo
        count = np.uint64(1)
        if blocks is not None:
            count = counts[here]
        if limits is not None:
            count = np.uint64(is_reachable(depth, sets[here], longest[here], least, most))
        if count <= skip:
            skip -= count
            continue
        if count > few:
            nodes[depth], places[depth] = y, offsets[y]
            if words is not None:
                heads[depth] = ids[y]
                if coded:
                    head_codes[depth] = codes[y]
            depth, fresh = depth + 1, 1
            continue
        if blocks is not None:
            begin, rest = np.int64(skip), np.int64(count - skip)
            number = np.int64(min(np.uint64(rest), left, np.uint64(rows_room - row)))
            at, first, size = table[here, AT], table[here, ROW], table[here, SIZE]
            if shared is None:
                for j in range(begin):
                    at += block_lengths[first + j]
                if used + number * depth + size > room:
                    number = fitting(used, room, depth, block_lengths, first + begin, number)
                place, wide = first + begin, table[here, WIDEST]
                if words is not None:
                    coding = number if coded else np.int64(0)
                    write_rows(
                        row_codes, used, ends, row, head_codes, depth, wide, block_codes, at, block_lengths, place,
                        coding,
                    )  # fmt: skip
                used = write_rows(
                    values, used, ends, row, heads, depth, wide, block_values, at, block_lengths, place, number
                )
            else:
                head = depth - turn + (block_shared[first + begin] if begin else 0)
                if used + head + size > room:
                    number = fitting_compactly(used + head, room, block_lengths, first, begin, number)
                if number > 0:
                    used = write_compactly(
                        values, used, ends, shared, row, heads, depth, turn, block_values, at, block_lengths,
                        block_shared, first, begin, number,
                    )  # fmt: skip
            if words is not None:
                fill_wide(firsts, row, number, times[y if depth == 0 else np.int64(nodes[0])])
                copy_wide(lasts, row, block_lasts, first + begin, number)
            row += number
            left -= np.uint64(number)
            turn, skip = depth, np.uint64(0)
            if number < rest:  # the block is to be gone on with
                skip = np.uint64(begin + number)
                if depth == 0:
                    cursor -= 1
                else:
                    places[depth - 1] -= 1
                if left > 0:
                    full = True
                    break
    written = wanted - left
    state[DEPTH], state[CURSOR], state[FRESH] = depth, cursor, fresh
    numbers[SKIP], numbers[LEFT] = skip, np.uint64(0) if over else numbers[LEFT] - written
    state[REST] -= np.int64(written)
    return row, used, full


@njit(cache=True, nogil=True)
def fill(walk, ranges, graph, blocks, limits, marks, rows, words=None):
    """Write the next paths until a buffer is full or as many are written as `state[REST]` tells.

    `state[ROWS]` and `state[VALUES]` become the numbers of rows and values that were written.

    Parameters
    ----------
    walk : WalkState
        Where the walk stands; zeros at first.
    ranges : WalkRanges
        What is listed; with `limits` or `marks` every first rank is 0.
    graph : TaskGraph
        The traversal input: tasks and their edges.
    blocks : PathBlocks or None
        Room for what makes a task ready; without it nothing can be skipped.
    limits : LengthLimits or None
        Which lengths are listed; without it, all.
    marks : WalkMarks or None
        Where paths start and end, if not where the tasks say.
    rows : WalkRows
        What is written to.
    words : RowWords or None
        What rows tell of events, if not their positions. Codes cannot be combined with `shared`.
    """
    state, numbers = walk.state, walk.numbers
    row = used = np.int64(0)
    rows.ends[0] = 0
    full = False
    while not full and state[RANGE] < ranges.task.shape[0] and state[REST] > 0:
        at = state[RANGE]
        task = ranges.task[at]
        if blocks is not None and blocks.ready[TASK] != task:
            make_ready(graph, task, ranges.size[at], blocks, _shared_of(blocks), words)
        if limits is not None and limits.ready[0] != task:
            find_lengths(graph, task, limits)
        if not state[READY]:
            state[READY], state[CURSOR], state[DEPTH], state[FRESH] = 1, graph.lo[task], 0, 0
            numbers[SKIP], numbers[LEFT] = ranges.first[at], ranges.size[at]
        row, used, full = _walk(
            walk, graph, task, blocks, _shared_of(blocks), limits, marks, rows, rows.shared, words, row, used
        )
        if numbers[LEFT] == 0:
            state[RANGE] += 1
            state[READY] = 0
    state[ROWS], state[VALUES] = row, used


def walk_of_task(task: int, deepest: int) -> tuple[WalkState, WalkRanges]:
    """Return a walk over all paths of one task, of at most `deepest` events each, and its one rank range."""
    state = np.zeros(STATE_SIZE, np.int64)
    state[REST] = ENDLESS
    walk = WalkState(
        state, np.zeros(2, np.uint64), np.zeros(deepest + SPARE, np.int32), np.zeros(deepest + 1, np.int64)
    )
    return walk, WalkRanges(np.array([task]), np.zeros(1, np.uint64), np.array([ENDLESS], np.uint64))


@njit(cache=True, nogil=True)
def stand_on(path, walk, offsets, successors):
    """Let a walk begin with the path given, whatever its rank."""
    state, length = walk.state, path.shape[0]
    for d in range(length):
        x = path[d]
        walk.nodes[d], walk.places[d] = x, offsets[x]
        if d + 1 < length:
            walk.places[d] = first_at_least(successors, offsets[x], offsets[x + 1], path[d + 1]) + 1
    state[DEPTH], state[FRESH], state[CURSOR] = length, 1, path[0] + 1
