"""The edges of the event graph: which later events may follow an event.

Conditions come as integer codes, so that one kernel serves all types and comparators: a key that must be equal, pairs
of codes of which the later event's must be greater, pairs that must differ, and flags. A negative key or difference
code (NULL, NaN) matches nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

ANY, NEXT = 0, 1  # selection policies; under `contiguous` there is no choice


class EdgeLists(NamedTuple):
    """The successors of each event as lists, in time order; where there are too many, `EdgeCodes` finds them.

    Those of event `x` are `successors[offsets[x]:offsets[x + 1]]`.
    """

    offsets: np.ndarray  # int64 (events + 1,)
    successors: np.ndarray  # int32 (edges,)


class EdgeCodes(NamedTuple):
    """The conditions on pairs of events, as codes of the events.

    Attributes
    ----------
    policy : int
        Which of the events that may follow do: `ANY`, or the `NEXT` one.
    later, until : int64 (events,)
        The first event that is later, and the first one that is never in a trend with an event.
    gives, takes : bool (events,)
        Whether an event may be followed, and may follow.
    key_prev : int64 (events,)
        The key that a successor must have; -1: none can follow. Empty where no key is asked for.
    key_runs, by_key : int64 (keys + 1,), (events,)
        The events with key `k` are `by_key[key_runs[k]:key_runs[k + 1]]`, in rising order; empty where none is asked.
    above, below : int64 (conditions, events)
        `above[j, y] > below[j, x]` is asked of every edge from x to y.
    differ_next, differ_prev : int64 (conditions, events)
        `differ_next[j, y] != differ_prev[j, x]`, and neither below 0, is asked too.
    either_above, either_below : int64 (clauses, choices, events)
        `either_above[j, i, y] > either_below[j, i, x]` is asked for one i at least.
    """

    policy: int
    later: np.ndarray
    until: np.ndarray
    gives: np.ndarray
    takes: np.ndarray
    key_prev: np.ndarray
    key_runs: np.ndarray
    by_key: np.ndarray
    above: np.ndarray
    below: np.ndarray
    differ_next: np.ndarray
    differ_prev: np.ndarray
    either_above: np.ndarray
    either_below: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def passes(x, y, above, below, differ_next, differ_prev):
    """Whether the codes of a later event `y` allow it to follow `x`."""
    for j in range(above.shape[0]):
        if above[j, y] <= below[j, x]:
            return False
    for j in range(differ_next.shape[0]):
        a, b = differ_next[j, y], differ_prev[j, x]
        if a < 0 or b < 0 or a == b:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def passes_either(x, y, above, below):
    """Whether one side of each clause allows a later event `y` to follow `x`."""
    for j in range(above.shape[0]):
        some = False
        for i in range(above.shape[1]):
            some |= above[j, i, y] > below[j, i, x]
        if not some:
            return False
    return True


@njit(cache=True, nogil=True)
def _mark(x, first, last, takes, above, below, differ_next, differ_prev, either_above, either_below, marks):
    """Mark which events from `first` to `last` may follow: a loop a condition, of which many steps run at once."""
    size = last - first
    able = takes[first:last]
    for i in range(size):
        marks[i] = able[i]
    for j in range(above.shape[0]):
        codes, bound = above[j, first:last], below[j, x]
        for i in range(size):
            marks[i] &= codes[i] > bound
    for j in range(differ_next.shape[0]):
        codes, other = differ_next[j, first:last], differ_prev[j, x]
        for i in range(size):
            marks[i] &= (codes[i] >= 0) & (codes[i] != other) & (other >= 0)
    some = np.empty(size if either_above.shape[0] else 0, np.bool_)
    for j in range(either_above.shape[0]):
        some[:] = False
        for k in range(either_above.shape[1]):
            codes, bound = either_above[j, k, first:last], either_below[j, k, x]
            for i in range(size):
                some[i] |= codes[i] > bound
        for i in range(size):
            marks[i] &= some[i]


@njit(cache=True, nogil=True)
def _write_marked(first, marks, successors):
    """Write the marked events, of which there are as many as `successors` takes."""
    i = place = 0
    while place < successors.shape[0]:
        successors[place] = first + i  # overwritten unless it is marked
        place += marks[i]
        i += 1


@njit(cache=True, nogil=True)
def edges_of_rows(begin, end, codes, degrees, successors):
    """Find the successors of the events `begin` to before `end`; return how many there are.

    Parameters
    ----------
    begin, end : int
        The events.
    codes : EdgeCodes
        What may follow what.
    degrees : int64 (end - begin,)
        Becomes the number of successors of each event.
    successors : int32 (edges,)
        Gets the successors one after another, in rising order for each event; where it is empty they are only counted.
    """
    policy, later, until, gives, takes = codes.policy, codes.later, codes.until, codes.gives, codes.takes
    key_prev, key_runs, by_key = codes.key_prev, codes.key_runs, codes.by_key
    above, below, differ_next, differ_prev = codes.above, codes.below, codes.differ_next, codes.differ_prev
    either_above, either_below = codes.either_above, codes.either_below
    filling = successors.shape[0] > 0
    keyed = key_runs.shape[0] > 0
    longest = 0
    for x in range(begin, end):
        longest = max(longest, until[x] - later[x])
    marks = np.empty(longest, np.bool_)
    total = 0
    for x in range(begin, end):
        degree = 0
        first, last = later[x], until[x]
        if gives[x] and first < last:
            if keyed:
                if key_prev[x] >= 0:
                    run_end = key_runs[key_prev[x] + 1]
                    i = first_at_least(by_key, key_runs[key_prev[x]], run_end, first)
                    while i < run_end and by_key[i] < last:
                        y = by_key[i]
                        i += 1
                        fits = takes[y] and passes(x, y, above, below, differ_next, differ_prev)
                        if fits and passes_either(x, y, either_above, either_below):
                            if filling:
                                successors[total + degree] = y
                            degree += 1
                            if policy == NEXT:
                                break
            elif policy == ANY:
                _mark(x, first, last, takes, above, below, differ_next, differ_prev, either_above, either_below, marks)
                degree = marks[: last - first].sum()
                if filling:
                    _write_marked(first, marks, successors[total : total + degree])
            else:
                for y in range(first, last):
                    fits = takes[y] and passes(x, y, above, below, differ_next, differ_prev)
                    if fits and passes_either(x, y, either_above, either_below):
                        if filling:
                            successors[total + degree] = y
                        degree += 1
                        if policy == NEXT:
                            break
        degrees[x - begin] = degree
        total += degree
    return total


@njit(cache=True, nogil=True)
def sources_of(begin, degrees, total):
    """Return the source of every edge of the rows from `begin` on."""
    sources = np.empty(total, np.int64)
    i = 0
    for row in range(degrees.shape[0]):
        for _ in range(degrees[row]):
            sources[i] = begin + row
            i += 1
    return sources


@njit(cache=True, nogil=True)
def keep_edges(degrees, successors, keep, only_first):
    """Drop the edges whose flag is not set, in place; return how many are left."""
    read = write = 0
    for row in range(degrees.shape[0]):
        kept = 0
        for _ in range(degrees[row]):
            if keep[read] and not (only_first and kept):
                successors[write] = successors[read]
                write += 1
                kept += 1
            read += 1
        degrees[row] = kept
    return write


@njit(cache=True, nogil=True)
def latest_predecessors(offsets, successors):
    """Return for each event its latest predecessor, or -1."""
    n = offsets.shape[0] - 1
    latest = np.full(n, -1, np.int64)
    for x in range(n):
        for i in range(offsets[x], offsets[x + 1]):
            latest[successors[i]] = x
    return latest


@njit(cache=True, nogil=True)
def reduce_columns(row, column, end, offsets, successors, read, direct, reach):
    """Drop the edges into the events from `column` to `end` that have a detour; return how many words were joined.

    The columns of a partition are taken from the first to the last, and all events from `row` on that have an edge into
    them. `direct[x]` edges of `x` have no detour and are moved to the front of its row; the others begin at
    `read[x]`. `reach` has a row per event from `row` on and a bit per column.
    """
    words = reach.shape[1]
    joined = 0
    for x in range(end - 1, row - 1, -1):
        own = reach[x - row]
        own[:] = 0
        for i in range(offsets[x], offsets[x] + direct[x]):
            other = reach[successors[i] - row]
            for word in range(words):
                own[word] |= other[word]
        joined += direct[x] * words
        while read[x] < offsets[x + 1] and successors[read[x]] < end:
            y = np.int64(successors[read[x]])
            read[x] += 1
            place = y - column
            if (own[place >> 6] >> np.uint64(place & 63)) & np.uint64(1):
                continue
            successors[offsets[x] + direct[x]] = y
            direct[x] += 1
            other = reach[y - row]
            for word in range(words):
                own[word] |= other[word]
            own[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
            joined += words
    return joined


@njit(cache=True, nogil=True)
def pack_rows(offsets, direct, successors):
    """Move the first `direct[x]` edges of every event together, in place; return how many there are."""
    write = 0
    for x in range(direct.shape[0]):
        for i in range(offsets[x], offsets[x] + direct[x]):
            successors[write] = successors[i]
            write += 1
    return write


@njit(cache=True, nogil=True)
def note_first_ends(offsets, successors, events, ends):
    """Note for the first event of each path where the one ends that ends first, unless another has ended before."""
    n = offsets.shape[0] - 1
    found, later = np.empty(n, np.int64), np.zeros(n, np.bool_)
    for x in range(n - 1, -1, -1):
        least = events[x] if offsets[x] == offsets[x + 1] else np.int64(ends.shape[0])
        for i in range(offsets[x], offsets[x + 1]):
            least = min(least, found[successors[i]])
            later[successors[i]] = True
        found[x] = least
    for x in range(n):
        if not later[x]:
            ends[events[x]] = min(ends[events[x]], found[x])
