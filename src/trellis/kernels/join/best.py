"""The best matches of joins by the keys of ORDER BY: branch and bound in the walk that lists them.

The matches of one first event are walked in the order of their ranks. Whatever cannot come before the last of the best
so far is left out: a way by the bounds of its keys (see `bounds`), first events before they are begun. Among equals the
one of the lower rank is the better, so what only ties with the last of them is left out as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.join.block import BLOCK, lean, run_block
from trellis.kernels.join.bounds import bound_of, find_extremes, set_load, word_of
from trellis.kernels.join.lists import NONE, ONE
from trellis.kernels.join.walk import _begin_walk, _is_result, _level, _next_event, _pass_over, _write


class BestTasks(NamedTuple):
    """Tasks of the search, each of the matches that begin at one event in one group; int64 (tasks,), in its order.

    Attributes
    ----------
    lo, hi, event
        The events of the group, and the first event.
    number, group
        The place of the task in the order of ranks, and its group.
    bucket
        Which heap its matches go to.
    words
        int64 (tasks, keys): the greatest words that they may have.
    """

    lo: np.ndarray  # int64 (tasks,)
    hi: np.ndarray  # int64 (tasks,)
    event: np.ndarray  # int64 (tasks,)
    number: np.ndarray  # int64 (tasks,)
    group: np.ndarray  # int64 (tasks,)
    bucket: np.ndarray  # int64 (tasks,)
    words: np.ndarray


class BestRows(NamedTuple):
    """The best matches so far: a heap for each bucket, the last of its matches on top.

    Attributes
    ----------
    heap, size
        int64 (buckets, most), (buckets,): the rows of each, and how many it has.
    words
        int64 (rows, keys): the words of each row.
    task, turn
        int64 (rows,): the task's number, and the place in the order in which they were found.
    positions, variables, length
        int32, int8 (rows * longest,), int64 (rows,): the events and variables of each row.
    offered
        int64 (1,): how many were kept so far, those that were lost again included.
    """

    heap: np.ndarray
    size: np.ndarray
    words: np.ndarray
    task: np.ndarray
    turn: np.ndarray
    positions: np.ndarray
    variables: np.ndarray
    length: np.ndarray
    offered: np.ndarray


@lean
def _is_behind(rows, i, j):
    """Return whether row `i` comes behind row `j`."""
    for key in range(rows.words.shape[1]):
        if rows.words[i, key] != rows.words[j, key]:
            return rows.words[i, key] < rows.words[j, key]
    return rows.task[i] > rows.task[j] or (rows.task[i] == rows.task[j] and rows.turn[i] > rows.turn[j])


@lean
def _is_hopeless(rows, bucket, words, task):
    """Return whether a match of a task with such words at best comes behind all of a full heap."""
    heap, size = rows.heap[bucket], rows.size[bucket]
    if size < heap.shape[0]:
        return False
    last = heap[0]
    for key in range(words.shape[0]):
        if words[key] != rows.words[last, key]:
            return words[key] < rows.words[last, key]
    return task >= rows.task[last]


@lean
def _row_for(rows, bucket):
    """Return the row that a new match takes: a free one, or that of the last of the best."""
    size, most = rows.size[bucket], rows.heap.shape[1]
    return bucket * most + size if size < most else rows.heap[bucket, 0]


@lean
def _keep_row(rows, bucket, row):
    """Put a row that was written into its heap."""
    heap, size = rows.heap[bucket], rows.size[bucket]
    rows.turn[row] = rows.offered[0]
    rows.offered[0] += 1
    if size < heap.shape[0]:
        i = size
        heap[i] = row
        rows.size[bucket] = size + 1
        while i > 0 and _is_behind(rows, heap[i], heap[(i - 1) >> 1]):
            heap[i], heap[(i - 1) >> 1] = heap[(i - 1) >> 1], heap[i]
            i = (i - 1) >> 1
        return
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _is_behind(rows, heap[child + 1], heap[child]):
            child += 1
        if not _is_behind(rows, heap[child], heap[i]):
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@lean
def _bound_node(tables, lists, levels, keys, extremes, n, slot, event):
    """Find the greatest words that matches of a node may have; return False if there can be none.

    A `slot` takes the event; with -1 all that wait do so.
    """
    number, waiting = keys.falling.shape[0], levels.remaining[n]
    for load in range(keys.slot.shape[0]):
        s = keys.slot[load]
        if s == slot:
            set_load(keys, load, event)
        elif waiting & (ONE << np.uint64(s)):
            place = levels.cursor[n, s]
            if place >= lists.high[n, s]:
                return False
            keys.least[load], keys.greatest[load] = extremes.least[load, place], extremes.greatest[load, place]
            keys.null[load] = extremes.null[load, place]
        else:
            set_load(keys, load, levels.taken[n, s])
    for key in range(number):
        keys.words[key] = bound_of(keys, levels.arm[n] * number + key, keys.falling[key])
    return True


@lean
def _choose_taken(tables, lists, levels, arms, n):
    """Let programs read the events that a node has bound."""
    bound = arms.masks[levels.arm[n]] & ~levels.remaining[n]
    for v in range(tables.begin.shape[0] - 1):
        if bound & (ONE << np.uint64(v)):
            lists.chosen[v] = levels.taken[n, v]


@lean
def _run_key(lists, keys, program, slot, size):
    """Run the program of a key on a block; return its row, or -1 after a number has left 64 bits."""
    row = run_block(keys.programs, program, lists.chosen, slot, size, keys.block)
    if row < 0:
        lists.state[0] = 1
    return row


@lean
def _word_at(keys, program, key, row, k):
    """Return the word of a key for the event number `k` of the block."""
    block, at = keys.block, k * keys.block.stride[row]
    return word_of(
        block.whole[row, at], block.real[row, at], keys.real[program], block.there[row, at], keys.falling[key]
    )


@lean
def _offer(lists, levels, keys, rows, bucket, task, n, depth, last):
    """Keep the match of a node if it is among the best: all its slots are chosen; `last` is its last event, or -1."""
    number = keys.falling.shape[0]
    for key in range(number):
        program = levels.arm[n] * number + key
        row = _run_key(lists, keys, program, -1, 1)
        if row < 0:
            return -1
        keys.words[key] = _word_at(keys, program, key, row, 0)
    if _is_hopeless(rows, bucket, keys.words, task):
        return -1
    row = _row_for(rows, bucket)
    for key in range(number):
        rows.words[row, key] = keys.words[key]
    length = depth + (last >= 0)
    rows.task[row], rows.length[row] = task, length
    _write(levels, n, depth, rows, row * (rows.positions.shape[0] // rows.length.shape[0]) + depth)
    _keep_row(rows, bucket, row)
    return row


@lean
def _best_of_list(tables, lists, levels, arms, keys, extremes, rows, bucket, task, n, depth):
    """Keep the best matches of a node that waits for the event of one slot."""
    s, waiting = 0, levels.remaining[n]
    while waiting & (ONE << np.uint64(s)) == NONE:
        s += 1
    variable = 0
    while arms.slots[levels.arm[n], variable] != s:
        variable += 1
    _choose_taken(tables, lists, levels, arms, n)
    program, longest = levels.arm[n] * keys.falling.shape[0], rows.positions.shape[0] // rows.length.shape[0]
    while levels.cursor[n, s] < lists.high[n, s]:
        first = levels.cursor[n, s]
        _bound_node(tables, lists, levels, keys, extremes, n, -1, -1)
        if _is_hopeless(rows, bucket, keys.words, task):
            return
        size = min(BLOCK, lists.high[n, s] - first)
        for k in range(size):
            keys.block.events[k] = tables.events[lists.pool[first + k]]
        row = _run_key(lists, keys, program, s, size)
        if row < 0:
            return
        for k in range(size):
            keys.ahead[k] = _word_at(keys, program, 0, row, k)
        for k in range(size):
            full = rows.size[bucket] == rows.heap.shape[1]
            if full and keys.ahead[k] < rows.words[rows.heap[bucket, 0], 0]:
                continue
            event = tables.events[lists.pool[first + k]]
            lists.chosen[s] = event
            kept = _offer(lists, levels, keys, rows, bucket, task, n, depth, event)
            if kept >= 0:
                rows.positions[kept * longest + depth] = event
                rows.variables[kept * longest + depth] = variable
        levels.cursor[n, s] = first + size


@lean
def _may_be_better(tables, lists, levels, keys, extremes, rows, bucket, task, begin, end):
    """Return whether a node of a level may still lead to a match that is among the best."""
    for n in range(begin, end):
        if levels.remaining[n] == NONE or not _bound_node(tables, lists, levels, keys, extremes, n, -1, -1):
            continue
        if not _is_hopeless(rows, bucket, keys.words, task):
            return True
    return False


@lean
def _may_go_on(tables, lists, levels, arms, keys, extremes, rows, bucket, task, begin, end, event):
    """Return whether a node of a level may lead to such a match if one of its slots takes an event."""
    for n in range(begin, end):
        for s in range(tables.begin.shape[0] - 1):
            bit, at = ONE << np.uint64(s), levels.cursor[n, s]
            if levels.remaining[n] & bit == NONE or arms.before[s] & levels.remaining[n] != NONE:
                continue
            if at >= lists.high[n, s] or tables.events[lists.pool[at]] != event:
                continue
            if not _bound_node(tables, lists, levels, keys, extremes, n, s, event):
                continue
            if not _is_hopeless(rows, bucket, keys.words, task):
                return True
    return False


@lean
def _best_of_task(tables, programs, lists, levels, arms, keys, extremes, rows, task):
    """Search the matches that begin at one event: `task` is its group's events, the event, its number and bucket."""
    lo, hi, event, number, bucket = task
    edges, until, depth = (lo, hi), hi, 0
    if tables.span[0]:
        until = min(hi, tables.until[event])
    _begin_walk(tables, programs, lists, levels, arms, lo, hi, event)
    while True:
        if _level(tables, programs, lists, levels, arms, depth, event, until, edges):
            depth += 1
            for n in range(levels.base[depth], levels.base[depth + 1]):
                parent = levels.parent[n] if depth > 1 else -1
                find_extremes(tables, lists, keys, extremes, n, parent, levels.remaining[n])
        if lists.state[0] or levels.state[1]:
            return
        while depth > 0:
            begin, end = levels.base[depth], levels.base[depth + 1]
            while levels.emit[depth] < end:
                n = levels.emit[depth]
                levels.emit[depth] += 1
                if _is_result(levels, n, begin):
                    _choose_taken(tables, lists, levels, arms, n)
                    _offer(lists, levels, keys, rows, bucket, number, n, depth, -1)
            waiting = levels.remaining[begin]
            if end == begin + 1 and waiting & (waiting - ONE) == NONE and waiting != NONE:
                _best_of_list(tables, lists, levels, arms, keys, extremes, rows, bucket, number, begin, depth)
                depth -= 1
                continue
            event = _next_event(tables, lists, levels, arms, begin, end, until)
            if event >= until:
                depth -= 1
            elif _may_go_on(tables, lists, levels, arms, keys, extremes, rows, bucket, number, begin, end, event):
                break
            elif _may_be_better(tables, lists, levels, keys, extremes, rows, bucket, number, begin, end):
                _pass_over(tables, lists, levels, begin, end, event)
            else:
                depth -= 1
        if depth == 0:
            return


@lean
def _place_behind(rows, row, variable):
    """Return the first event at which a match may begin that AFTER MATCH keeps behind one: see `best_matches`."""
    at = row * (rows.positions.shape[0] // rows.length.shape[0])
    for i in range(at, at + rows.length[row]):
        if rows.variables[i] == variable:
            return rows.positions[i]
    return rows.positions[at + rows.length[row] - 1] + 1


@lean
def best_matches(tables, programs, lists, levels, arms, keys, extremes, tasks, rows, skip):
    """Search the best matches of each bucket, until a number leaves 64 bits or there is no room for a node.

    Parameters
    ----------
    tables, programs, lists, levels, arms
        As in the walk that lists matches.
    keys, extremes
        The keys, and room for the extremes of all lists.
    tasks
        Where matches begin; those of the greatest words first, so that much is left out.
    rows
        The best matches, which are written.
    skip
        int64 (2,): whether each bucket is of one first event, in order, and those are left out that AFTER MATCH skips;
        the variable at whose event the next match may begin, or -1 behind the last event.
    """
    group, place = np.int64(-1), np.int64(-1)
    for t in range(tasks.event.shape[0]):
        number, bucket = tasks.number[t], tasks.bucket[t]
        if _is_hopeless(rows, bucket, tasks.words[t], number):
            continue
        if skip[0] and tasks.group[t] == group and tasks.event[t] < place:
            continue
        task = tasks.lo[t], tasks.hi[t], tasks.event[t], number, bucket
        _best_of_task(tables, programs, lists, levels, arms, keys, extremes, rows, task)
        if lists.state[0] or levels.state[1]:
            return
        if skip[0] and rows.size[bucket]:
            group, place = tasks.group[t], _place_behind(rows, rows.heap[bucket, 0], skip[1])
