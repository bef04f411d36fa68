"""The best paths of the event graph by a value, without the others.

Values and nodes are those of `trellis.kernels.best.nodes`.

The best suffix of every node is found by one backward pass; the j-th best of a node only when it is asked for, from a
heap of what its successors offer (recursive enumeration: Jimenez and Marzal). Among equal values the path that ends
comes first, then the one whose next event is earlier: for words that only add up, this is the order of ranks.

Kernels that need more room say so and are called again; all they know is in `state` and the tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from trellis.kernels.best.heaps import (
    NODE,
    PATH_END,
    SUFFIX,
    TASK,
    drop_first,
    keep_path,
    offer_slot,
    sift_down,
    sort_heap,
)
from trellis.kernels.best.nodes import (
    FIRST,
    GREATEST,
    KIND,
    LEAST,
    NONE,
    USABLE,
    begin,
    begin_at_end,
    copy,
    event_of,
    find_successors,
    is_listed,
    join,
    may_end,
    most_successors,
    next_node,
    order_of,
    pass_event,
    start_node,
    starts_end,
    state_of,
)
from trellis.kernels.jit import njit

END, NOWHERE = -1, -2  # in place of a successor
FOLLOW = 0  # column of nodes' best suffixes, behind the words: the node that comes next
FIRST_SUFFIX, LAST_SUFFIX, HEAP, HEAP_SIZE = range(4)  # columns of nodes' heaps; the last found suffix is on top
BEHIND, OF_BEHIND, FOLLOWING = range(3)  # columns of suffixes: next node, its suffix (-1: the first), the next best


@njit(cache=True, nogil=True)
def _suffixes(task, tasks, links, shape, best):
    """Find the value of the best suffix of every node of a task, and the node that it goes on to (END, NOWHERE)."""
    width, states = shape.kinds.shape[0], shape.step.shape[0]
    follow = width + FOLLOW
    lo, hi = tasks.lo[task], tasks.hi[task]
    for x in range(hi - 1, lo - 1, -1):
        here = (x - lo) * states
        for state in range(states):
            best[here + state, follow] = NOWHERE
            if shape.events[x, USABLE] and may_end(x, state, task, tasks, shape):
                begin_at_end(best, here + state, x, state, shape)
                best[here + state, follow] = END
        if not shape.events[x, USABLE]:
            continue
        for i in range(links.offsets[x], links.offsets[x + 1]):
            y = links.successors[i]
            if y >= hi:
                break
            there, kind = (y - lo) * states, shape.events[y, KIND]
            for state in range(states):
                after = shape.step[state, kind]
                if after < 0 or best[there + after, follow] == NOWHERE:
                    continue
                node = here + state
                if best[node, follow] == NOWHERE or order_of(best, there + after, best, node, shape.signs) > 0:
                    copy(best, node, best, there + after, width)
                    best[node, follow] = there + after
        for state in range(states):
            if best[here + state, follow] != NOWHERE:
                pass_event(best, here + state, x, state, shape)


def fill_suffixes(task, tasks, links, shape, best):
    """Find the best suffixes of a task; where successors are not listed, they are known already."""
    raise NotImplementedError


@overload(fill_suffixes)
def _fill_suffixes(task, tasks, links, shape, best):
    if is_listed(links):
        return lambda task, tasks, links, shape, best: _suffixes(task, tasks, links, shape, best)
    return lambda task, tasks, links, shape, best: None


@njit(cache=True, nogil=True)
def best_of_tasks(tasks, starts, offsets, links, shape, best):
    """Return the value of the best path of each task, or from each of some starts, and behind it whether there is one.

    Where tasks are `single`, the starts of task `t` are the events `starts[offsets[t] : offsets[t + 1]]`.
    """
    width = shape.kinds.shape[0]
    totals = np.zeros((starts.shape[0] if tasks.single else tasks.lo.shape[0], width + 1), np.int64)
    here = np.zeros((1, width), np.int64)
    for task in range(tasks.lo.shape[0]):
        _suffixes(task, tasks, links, shape, best)
        first, end = tasks.lo[task], tasks.hi[task]
        if tasks.single:
            first, end = offsets[task], offsets[task + 1]
        for i in range(first, end):
            x, row = (starts[i], i) if tasks.single else (i, task)
            node = start_node(x, task, tasks, shape)
            if node < 0 or best[node, width + FOLLOW] == NOWHERE:
                continue
            begin(here, 0, best, node, x, shape)
            if not totals[row, width] or order_of(here, 0, totals, row, shape.signs) > 0:
                copy(totals, row, here, 0, width)
                totals[row, width] = 1
    return totals


# --- Heaps ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _fill(node, task, tasks, links, shape, best, most, successors, slots, at):
    """Make the heap of the `most` first ways to go on from a node; return how many there are."""
    width = shape.kinds.shape[0]
    lo = tasks.lo[task]
    x, state = event_of(node, lo, shape), state_of(node, shape)
    size = 0
    if may_end(x, state, task, tasks, shape):
        begin_at_end(slots, at, x, state, shape)
        slots[at, width + NODE], slots[at, width + SUFFIX] = END, -1
        size = offer_slot(slots, at, 0, most, shape.signs)
    for i in range(find_successors(x, tasks.hi[task], links, successors)):
        z = next_node(state, successors[i], lo, shape)
        if z >= 0 and best[z, width + FOLLOW] != NOWHERE:
            copy(slots, at + size, best, z, width)
            slots[at + size, width + NODE], slots[at + size, width + SUFFIX] = z, -1
            size = offer_slot(slots, at, size, most, shape.signs)
    sort_heap(slots, at, size, shape.signs)
    return size


@njit(cache=True, nogil=True)
def _fill_starts(task, tasks, shape, best, most, slots, at):
    """Make the heap of the `most` first starts of a task; return how many there are."""
    width = shape.kinds.shape[0]
    size = 0
    for x in range(tasks.lo[task], starts_end(task, tasks)):
        z = start_node(x, task, tasks, shape)
        if z >= 0 and best[z, width + FOLLOW] != NOWHERE:
            begin(slots, at + size, best, z, x, shape)
            slots[at + size, width + NODE], slots[at + size, width + SUFFIX] = z, -1
            size = offer_slot(slots, at, size, most, shape.signs)
    sort_heap(slots, at, size, shape.signs)
    return size


# --- The best paths ---------------------------------------------------------------------------------------------

# What best_paths knows: places in its state, and what it asks for when it returns.
TURN, READY, ROOT, ROOT_SIZE, ASKED, PATHS, USED, KEEPING, SUFFIXES, SLOTS, NEEDED = range(11)
STATE_SIZE = 11
DONE, MORE_EVENTS, MORE_PATHS, MORE_SUFFIXES, MORE_SLOTS = range(5)
NOT_YET = -1  # the heap of a task's starts was not made yet


@njit(cache=True, nogil=True)
def _write_path(node, suffix, task, tasks, shape, best, suffixes, events, used):
    """Write the events of a node and of one of its suffixes (-1: the first) from `used` on; return their end."""
    width = shape.kinds.shape[0]
    while node != END:
        events[used] = event_of(node, tasks.lo[task], shape)
        used += 1
        if suffix >= 0:
            node, suffix = suffixes[suffix, width + BEHIND], suffixes[suffix, width + OF_BEHIND]
        else:
            node = best[node, width + FOLLOW]
    return used


@njit(cache=True, nogil=True)
def _slots_needed(since, end, task, tasks, links, limit, events):
    """Return a number of slots that the heaps of the nodes of a path do not exceed."""
    total = 0
    for i in range(since, end):
        total += min(limit, most_successors(events[i], tasks.hi[task], links) + 1) + 1
    return total


@njit(cache=True, nogil=True)
def _advance(start, suffix, task, tasks, links, shape, best, limit, successors, heaps, suffixes, slots, stack, state):
    """Find the suffix of a start that comes next behind a certain one (-1: the first), if there is one.

    The start asks the node behind, and so on down the path; then each puts the answer in the place of what was on top
    of its heap, and what is on top then is its own answer.
    """
    width = shape.kinds.shape[0]
    behind, of_behind, following = width + BEHIND, width + OF_BEHIND, width + FOLLOWING
    depth = 0
    node, above = start, -1
    while True:
        if suffix < 0:
            if heaps[node, FIRST_SUFFIX] < 0:
                at, new = state[SLOTS], state[SUFFIXES]
                size = _fill(node, task, tasks, links, shape, best, limit, successors, slots, at)
                copy(suffixes, new, best, node, width)
                suffixes[new, behind], suffixes[new, of_behind] = slots[at, width + NODE], -1
                suffixes[new, following] = -1
                heaps[node, FIRST_SUFFIX], heaps[node, LAST_SUFFIX] = new, new
                heaps[node, HEAP], heaps[node, HEAP_SIZE] = at, size
                state[SLOTS] += size + 1
                state[SUFFIXES] += 1
            suffix = heaps[node, FIRST_SUFFIX]
            if above >= 0:
                suffixes[above, of_behind] = suffix
        if suffixes[suffix, following] >= 0 or heaps[node, HEAP_SIZE] == 0:
            break
        stack[depth] = node
        depth += 1
        above = heaps[node, LAST_SUFFIX]
        if suffixes[above, behind] == END:
            break
        node, suffix = suffixes[above, behind], suffixes[above, of_behind]
    for d in range(depth - 1, -1, -1):
        node = stack[d]
        at, last = heaps[node, HEAP], heaps[node, LAST_SUFFIX]
        answer = -1
        if suffixes[last, behind] != END:
            answer = suffixes[suffixes[last, of_behind], following]
        if answer >= 0:
            copy(slots, at, suffixes, answer, width)
            slots[at, width + SUFFIX] = answer
            sift_down(slots, at, heaps[node, HEAP_SIZE], False, shape.signs)
        else:
            heaps[node, HEAP_SIZE] = drop_first(slots, at, heaps[node, HEAP_SIZE], shape.signs)
            if heaps[node, HEAP_SIZE] == 0:
                continue
        new = state[SUFFIXES]
        copy(suffixes, new, slots, at, width)
        pass_event(suffixes, new, event_of(node, tasks.lo[task], shape), state_of(node, shape), shape)
        suffixes[new, behind], suffixes[new, of_behind] = slots[at, width + NODE], slots[at, width + SUFFIX]
        suffixes[new, following] = -1
        suffixes[last, following] = new
        heaps[node, LAST_SUFFIX] = new
        state[SUFFIXES] += 1


class SearchRoom(NamedTuple):
    """Room of the search for the best paths; see the page of the package for shapes.

    `best` and `heaps` have room for the nodes of the largest task, `successors` and `stack` for as many events, `top`
    for the paths that are wanted of each bucket. `suffixes`, `slots`, `events` and `paths` grow. In the end `events`
    has the paths one after another and `paths` their values, ends and tasks, and whether they are among the best of
    their buckets (others were until better ones came).
    """

    best: np.ndarray  # int64 (nodes, words + 1)
    successors: np.ndarray  # int32 (events,)
    heaps: np.ndarray  # int64 (nodes, 4)
    stack: np.ndarray  # int64 (events,)
    top: np.ndarray  # int64 (limit,)
    suffixes: np.ndarray  # int64 (room, words + 3)
    slots: np.ndarray  # int64 (room, words + 2)
    events: np.ndarray  # int32 (room,)
    paths: np.ndarray  # int64 (room, words + 3)


@njit(cache=True, nogil=True, branching=True)
def best_paths(state, order, bucket, tasks, links, shape, given, room):
    """Find the best paths of each bucket of tasks, as many as `room.top` has room for.

    Parameters
    ----------
    state : int64 (STATE_SIZE,)
        `state[TURN]` and `state[READY]` are -1 at first, the rest is 0; the kernel goes on with it when it is called
        again with more room of what it returned (`MORE_...`), for `state[NEEDED]` rows; until it returns `DONE`.
    order, bucket : int64 (tasks,)
        Which tasks to look at: those of a bucket together, those with the best paths first.
    tasks, links, shape
        What is searched; see `trellis.kernels.best.nodes`.
    given : bool
        Whether `room.best` holds the best suffixes of the (one) task already.
    room : SearchRoom
        What is worked on.
    """
    best, successors, heaps, stack, top = room.best, room.successors, room.heaps, room.stack, room.top
    suffixes, slots, events, paths = room.suffixes, room.slots, room.events, room.paths
    width, signs = shape.kinds.shape[0], shape.signs
    limit = top.shape[0]
    while True:
        if state[ROOT_SIZE] == 0:
            state[TURN] += 1
            if state[TURN] == order.shape[0]:
                return DONE
            state[ROOT_SIZE] = NOT_YET
        task = order[state[TURN]]
        lo, hi = tasks.lo[task], tasks.hi[task]
        if state[ROOT_SIZE] == NOT_YET:
            if task != state[READY]:
                if not given:
                    fill_suffixes(task, tasks, links, shape, best)
                heaps[: (hi - lo) * shape.step.shape[0], FIRST_SUFFIX] = -1
                state[READY], state[SUFFIXES], state[SLOTS] = task, 0, 0
            state[NEEDED] = state[SLOTS] + min(limit, starts_end(task, tasks) - lo) + 1
            if state[NEEDED] > slots.shape[0]:
                return MORE_SLOTS
            if state[TURN] == 0 or bucket[task] != bucket[order[state[TURN] - 1]]:
                state[KEEPING] = 0
            state[ROOT], state[ASKED] = state[SLOTS], 0
            state[ROOT_SIZE] = _fill_starts(task, tasks, shape, best, limit, slots, state[ROOT])
            state[SLOTS] += state[ROOT_SIZE] + 1
            continue
        root, path = state[ROOT], state[PATHS]
        node, suffix = slots[root, width + NODE], slots[root, width + SUFFIX]
        if not state[ASKED]:  # write the first path down, unless it comes behind all that are kept
            state[NEEDED] = state[USED] + hi - lo
            if state[NEEDED] > events.shape[0]:
                return MORE_EVENTS
            state[NEEDED] = path + 1
            if state[NEEDED] > paths.shape[0]:
                return MORE_PATHS
            copy(paths, path, slots, root, width)
            paths[path, width + TASK] = task
            keeping = keep_path(path, top, state[KEEPING], paths, signs)
            if keeping < 0:
                state[ROOT_SIZE] = 0
                continue
            state[KEEPING] = keeping
            state[USED] = _write_path(node, suffix, task, tasks, shape, best, suffixes, events, state[USED])
            paths[path, width + PATH_END] = state[USED]
            state[PATHS] += 1
            state[ASKED] = 1
            continue
        since, end = paths[path - 2, width + PATH_END] if path > 1 else 0, state[USED]
        state[NEEDED] = state[SUFFIXES] + 2 * (end - since)
        if state[NEEDED] > suffixes.shape[0]:
            return MORE_SUFFIXES
        state[NEEDED] = state[SLOTS] + _slots_needed(since, end, task, tasks, links, limit, events)
        if state[NEEDED] > slots.shape[0]:
            return MORE_SLOTS
        _advance(node, suffix, task, tasks, links, shape, best, limit, successors, heaps, suffixes, slots, stack, state)
        suffix = suffixes[heaps[node, FIRST_SUFFIX] if suffix < 0 else suffix, width + FOLLOWING]
        if suffix >= 0:
            begin(slots, root, suffixes, suffix, event_of(node, lo, shape), shape)
            slots[root, width + SUFFIX] = suffix
            sift_down(slots, root, state[ROOT_SIZE], False, signs)
        else:
            state[ROOT_SIZE] = drop_first(slots, root, state[ROOT_SIZE], signs)
        state[ASKED] = 0


# What paths_between knows, and what it asks for when it returns; the rest as in best_paths.
DEPTH, WAITING = ROOT, ROOT_SIZE
MORE_WAITING = MORE_SLOTS


class ValueBounds(NamedTuple):
    """Of each bucket the values that paths are between, how many are wanted, and how many there are so far.

    `low` and `high` are int64 (buckets, words), `limit` and `taken` int64 (buckets,).
    """

    low: np.ndarray  # int64 (buckets, words)
    high: np.ndarray  # int64 (buckets, words)
    limit: np.ndarray  # int64 (buckets,)
    taken: np.ndarray  # int64 (buckets,)


class BetweenRoom(NamedTuple):
    """Room of the search between values.

    Attributes
    ----------
    best, successors, events, paths
        As in `SearchRoom`.
    waiting : int64 (room,)
        Nodes to go to, those of the deepest place of the path last and in reverse; grows.
    marks : int64 (events, 2)
        How many waited before each place of the path was reached, and its event.
    sofar : int64 (events, words)
        What the path up to each place gives.
    """

    best: np.ndarray  # int64 (nodes, words + 1)
    successors: np.ndarray  # int32 (events,)
    marks: np.ndarray
    sofar: np.ndarray
    waiting: np.ndarray
    events: np.ndarray  # int32 (room,)
    paths: np.ndarray  # int64 (room, words + 3)


@njit(cache=True, nogil=True, branching=True)
def paths_between(state, order, bucket, tasks, links, shape, given, bounds, room):
    """List, in rank order of each task, the paths that are at least as good as `low[bucket]` and not as `high[bucket]`.

    Every branch that is entered leads to a path as good as `low`.

    Parameters
    ----------
    state, order, bucket, tasks, links, shape, given
        As `best_paths` takes them.
    bounds : ValueBounds
        Which paths are listed of each bucket, and how many.
    room : BetweenRoom
        What is worked on.
    """
    low, high, limit, taken = bounds.low, bounds.high, bounds.limit, bounds.taken
    best, successors, marks, sofar, waiting = room.best, room.successors, room.marks, room.sofar, room.waiting
    events, paths = room.events, room.paths
    width, kinds, signs = shape.kinds.shape[0], shape.kinds, shape.signs
    here = np.empty((1, width), np.int64)
    while True:
        if state[WAITING] == 0:
            state[TURN] += 1
            if state[TURN] == order.shape[0]:
                return DONE
            state[WAITING] = NOT_YET
        task = order[state[TURN]]
        group, lo, hi = bucket[task], tasks.lo[task], tasks.hi[task]
        if taken[group] >= limit[group]:
            state[WAITING] = 0
            continue
        if state[WAITING] == NOT_YET:
            state[NEEDED] = hi - lo
            if state[NEEDED] > waiting.shape[0]:
                return MORE_WAITING
            if task != state[READY]:
                state[READY] = task
                if not given:
                    fill_suffixes(task, tasks, links, shape, best)
            state[DEPTH] = state[WAITING] = 0
            for x in range(starts_end(task, tasks) - 1, lo - 1, -1):
                z = start_node(x, task, tasks, shape)
                if z >= 0 and best[z, width + FOLLOW] != NOWHERE:
                    begin(here, 0, best, z, x, shape)
                    if order_of(here, 0, low, group, signs) >= 0:
                        waiting[state[WAITING]] = z
                        state[WAITING] += 1
            continue
        while state[DEPTH] > 0 and state[WAITING] == marks[state[DEPTH] - 1, 0]:
            state[DEPTH] -= 1
        depth, count = state[DEPTH], state[WAITING] - 1
        z = waiting[count]
        x, place = event_of(z, lo, shape), state_of(z, shape)
        state[NEEDED] = count + most_successors(x, hi, links)
        if state[NEEDED] > waiting.shape[0]:
            return MORE_WAITING
        if depth > 0:
            copy(sofar, depth, sofar, depth - 1, width)
        else:
            for w in range(width):
                sofar[0, w] = NONE if kinds[w] == LEAST else (-1 if kinds[w] == GREATEST else 0)
            join(sofar, 0, shape.gives[FIRST], x, kinds)
        pass_event(sofar, depth, x, place, shape)
        marks[depth, 0], marks[depth, 1] = count, x
        if may_end(x, place, task, tasks, shape):
            begin_at_end(here, 0, x, place, shape)
            join(here, 0, sofar, depth, kinds)
            if order_of(here, 0, low, group, signs) >= 0 and order_of(here, 0, high, group, signs) < 0:
                state[NEEDED] = state[USED] + depth + 1
                if state[NEEDED] > events.shape[0]:
                    return MORE_EVENTS
                state[NEEDED] = state[PATHS] + 1
                if state[NEEDED] > paths.shape[0]:
                    return MORE_PATHS
                for d in range(depth + 1):
                    events[state[USED] + d] = marks[d, 1]
                state[USED] += depth + 1
                paths[state[PATHS], width + PATH_END] = state[USED]
                paths[state[PATHS], width + TASK] = task
                state[PATHS] += 1
                taken[group] += 1
        state[DEPTH] += 1
        for i in range(find_successors(x, hi, links, successors) - 1, -1, -1):
            z = next_node(place, successors[i], lo, shape)
            if z >= 0 and best[z, width + FOLLOW] != NOWHERE:
                copy(here, 0, best, z, width)
                join(here, 0, sofar, depth, kinds)
                if order_of(here, 0, low, group, signs) >= 0:
                    waiting[count] = z
                    count += 1
        state[WAITING] = count
