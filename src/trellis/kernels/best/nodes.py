"""Nodes of the k-best search: events in states, their values as rows of words, and their successors.

A value is a row of words, compared word by word, each in its direction. Words add up along a path (a sum too wide for
one word has more of them, `LOW` ones that carry into the one before), or keep the least or the greatest. What a path
may do further on can depend on what it has met so far (its length, whether there was a value): a small automaton, in
which `step[state, kind of y]` is the state after going on to event `y` (-1: never). A node is an event in a state, its
number `(event - lo) * states + state`.

Rows of values stand in tables of 64-bit integers: the words first, then columns with what the table is about.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from trellis.kernels.event_graph.edges import EdgeLists
from trellis.kernels.jit import njit

HIGH, LOW, LEAST, GREATEST = 0, 1, 2, 3  # kinds of words
WORD = 62  # bits of a word
MASK = (1 << WORD) - 1
NONE = 1 << WORD  # what LEAST begins with; GREATEST begins with -1

NEAREST, LATEST, USABLE, KIND = range(4)  # columns of events: first successor, last predecessor, usable, kind
EACH, FIRST, LAST = range(3)  # what an event gives: anywhere, besides as the first or last of a path
MAY_END, PLACE = range(2)  # columns of states, behind the words that a path gives which ends there


class PathValues(NamedTuple):
    """The events of paths, the words that they are compared by, and the automaton of what they have met.

    `events`, `gives` (anywhere, first, last: a row of words per event), kinds and signs of the words, `nth` (place in
    the path, word) with what an event gives there, then the automaton: steps, first states, `ending`.
    """

    events: np.ndarray  # int64 (events, 4)
    gives: np.ndarray  # int64 (3, events, words)
    kinds: np.ndarray  # int64 (words,)
    signs: np.ndarray  # int64 (words,)
    nth: np.ndarray  # int64 (n, 2)
    nth_gives: np.ndarray  # int64 (n, events)
    step: np.ndarray  # int64 (states, kinds)
    first: np.ndarray  # int64 (kinds,)
    ending: np.ndarray  # int64 (states, words + 2)


class SearchTasks(NamedTuple):
    """Ranges of events as in `trellis.kernels.count.paths`; paths end where nothing follows before `until`.

    That is `hi`, unless several tasks that are `single` are looked at as one, to bound what their paths give.
    """

    lo: np.ndarray  # int64 (tasks,)
    hi: np.ndarray  # int64 (tasks,)
    first_end: np.ndarray  # int64 (tasks,)
    until: np.ndarray  # int64 (tasks,)
    single: bool
    every: bool


# --- Words ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _bits_at(high, low, position):
    """Return the bits from `position` on of a signed number of 128 bits, as many as a word has."""
    if position <= -WORD:
        return np.int64(0)
    if position < 0:
        return np.int64((low << np.uint64(-position)) & np.uint64(MASK))
    if position >= 128:
        return np.int64(MASK) if high < 0 else np.int64(0)
    if position >= 64:
        return (high >> np.int64(position - 64)) & np.int64(MASK)
    found = low >> np.uint64(position)
    if position > 0:
        found |= np.uint64(high) << np.uint64(64 - position)
    return np.int64(found & np.uint64(MASK))


@njit(cache=True, nogil=True)
def widths(high, low, shift):
    """Return over all whole numbers `(high * 2**64 + low) << shift`: the most bits, and the twos that all contain."""
    bits, twos = 0, 1 << 30
    for i in range(high.shape[0]):
        if high[i] == 0 and low[i] == np.uint64(0):
            continue
        top, rest = high[i], low[i]
        if top < 0:
            top, rest = ~top, ~rest  # as many bits as the negative number, or one fewer
        number, upper = (np.uint64(top), 64) if top > 0 else (rest, 0)
        length = 0
        while number:
            number >>= np.uint64(1)
            length += 1
        bits = max(bits, upper + length + 1 + shift[i])
        zeros = 0
        while zeros < 64 and not (low[i] >> np.uint64(zeros)) & np.uint64(1):
            zeros += 1
        if zeros == 64:
            while not (high[i] >> np.int64(zeros - 64)) & 1:
                zeros += 1
        twos = min(twos, zeros + shift[i])
    return bits, twos


@njit(cache=True, nogil=True)
def words_of(high, low, shift, words):
    """Write the whole numbers `(high * 2**64 + low) << shift` as words, the highest first; `shift` may be negative."""
    count = words.shape[1]
    for i in range(words.shape[0]):
        for w in range(count):
            words[i, w] = _bits_at(high[i], low[i], WORD * (count - 1 - w) - shift[i])
        if high[i] < 0:
            words[i, 0] -= 1 << WORD  # the highest word has the sign


@njit(cache=True, nogil=True)
def join(table, at, other, row, kinds):
    """Add the value `other[row]` to `table[at]`."""
    for w in range(kinds.shape[0] - 1, -1, -1):
        if kinds[w] == LEAST:
            table[at, w] = min(table[at, w], other[row, w])
        elif kinds[w] == GREATEST:
            table[at, w] = max(table[at, w], other[row, w])
        else:
            total = table[at, w] + other[row, w]
            if kinds[w] == LOW:
                table[at, w - 1] += total >> WORD
                total &= MASK
            table[at, w] = total


@njit(cache=True, nogil=True)
def take_off(table, at, other, row, kinds):
    """Take the value `other[row]`, of words that add up, off `table[at]`."""
    for w in range(kinds.shape[0] - 1, -1, -1):
        total = table[at, w] - other[row, w]
        if kinds[w] == LOW:
            table[at, w - 1] += total >> WORD
            total &= MASK
        table[at, w] = total


@njit(cache=True, nogil=True)
def order_of(table, at, other, row, signs):
    """Return 1 where the value `table[at]` is better than `other[row]`, -1 where it is worse, 0 where it is equal."""
    for w in range(signs.shape[0]):
        if table[at, w] != other[row, w]:
            return 1 if (table[at, w] > other[row, w]) == (signs[w] > 0) else -1
    return 0


@njit(cache=True, nogil=True)
def copy(table, at, other, row, width):
    """Copy a value of so many words."""
    for w in range(width):
        table[at, w] = other[row, w]


@njit(cache=True, nogil=True)
def pass_event(table, at, x, state, shape):
    """Add to `table[at]` what the event `x` gives in a state."""
    join(table, at, shape.gives[EACH], x, shape.kinds)
    place = shape.ending[state, shape.kinds.shape[0] + PLACE]
    for j in range(shape.nth.shape[0]):
        if shape.nth[j, 0] == place:
            table[at, shape.nth[j, 1]] += shape.nth_gives[j, x]


@njit(cache=True, nogil=True)
def begin_at_end(table, at, x, state, shape):
    """Set `table[at]` to what a path gives that ends at `x`, but for what `x` gives anywhere."""
    copy(table, at, shape.ending, state, shape.kinds.shape[0])
    join(table, at, shape.gives[LAST], x, shape.kinds)


@njit(cache=True, nogil=True)
def begin(table, at, other, row, x, shape):
    """Set `table[at]` to the value of a path that starts at `x` and goes on as `other[row]`."""
    copy(table, at, other, row, shape.kinds.shape[0])
    join(table, at, shape.gives[FIRST], x, shape.kinds)


# --- Successors -------------------------------------------------------------------------------------------------


def is_listed(links):
    """Whether successors are listed, by the type of the links: else these are the `IndexWindow` of the one task."""
    return isinstance(links, types.BaseNamedTuple) and links.instance_class is EdgeLists


def find_successors(x, hi, links, successors):
    """Write the successors of an event before `hi` into `successors`, in time order; return how many they are."""
    raise NotImplementedError


def most_successors(x, hi, links):
    """Return a number that an event has not more successors than."""
    raise NotImplementedError


@overload(find_successors)
def _find_successors(x, hi, links, successors):
    if is_listed(links):

        def listed(x, hi, links, successors):
            number = 0
            for i in range(links.offsets[x], links.offsets[x + 1]):
                if links.successors[i] >= hi:
                    break
                successors[number] = links.successors[i]
                number += 1
            return number

        return listed

    def sought(x, hi, links, successors):
        here, place, usable, number = x - links.begin, links.place, links.usable, 0
        for y in range(links.later[here], hi - links.begin):
            for r in range(len(links.firsts)):
                if links.firsts[r][here] <= place[y] < links.lasts[r][here] and usable[y]:
                    successors[number] = links.begin + y
                    number += 1
        return number

    return sought


@overload(most_successors)
def _most_successors(x, hi, links):
    if is_listed(links):
        return lambda x, hi, links: links.offsets[x + 1] - links.offsets[x]
    return lambda x, hi, links: hi - x


@njit(cache=True, nogil=True)
def may_end(x, state, task, tasks, shape):
    """Whether a path of a task may end at an event in a state."""
    if not shape.ending[state, shape.kinds.shape[0] + MAY_END]:
        return False
    return tasks.every or (shape.events[x, NEAREST] >= tasks.until[task] and x >= tasks.first_end[task])


@njit(cache=True, nogil=True)
def start_node(x, task, tasks, shape):
    """Return the node of an event at which a path of a task may start, or -1."""
    lo = tasks.lo[task]
    if not shape.events[x, USABLE] or not (tasks.single or tasks.every or shape.events[x, LATEST] < lo):
        return -1
    state = shape.first[shape.events[x, KIND]]
    return (x - lo) * shape.step.shape[0] + state if state >= 0 else -1


@njit(cache=True, nogil=True)
def next_node(state, y, lo, shape):
    """Return the node of an event behind a state, or -1."""
    after = shape.step[state, shape.events[y, KIND]]
    return (y - lo) * shape.step.shape[0] + after if after >= 0 else -1


@njit(cache=True, nogil=True, error_model="numpy")
def event_of(node, lo, shape):
    """Return the event of a node."""
    return lo + node // shape.step.shape[0]


@njit(cache=True, nogil=True, error_model="numpy")
def state_of(node, shape):
    """Return the state of a node."""
    return node % shape.step.shape[0]


@njit(cache=True, nogil=True)
def starts_end(task, tasks):
    """Return the end of the events at which paths of a task may start."""
    return tasks.lo[task] + 1 if tasks.single else tasks.hi[task]
