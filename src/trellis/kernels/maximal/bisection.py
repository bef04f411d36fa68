"""Time bisection: events are halved by time again and again, and a direct edge across a middle is found from bounds.

`y` may follow `x` where `above[y] > below[x]` and `y` is strictly later; no order is asked of the two codes of one
event. The edge from `x` to `z` is direct where no event between them has `above > below[x]` and `below < above[z]`: one
event is enough for a detour, whether or not the condition is transitive. Of the events in between, those in the half of
`x` are summed up by one number,

    ceiling[x] = least `below` of the events of its half that may follow x,

and those in the half of `z` by another,

    floor[z] = greatest `above` of the events of its half that z may follow,

so that the direct edges across the middle are the pairs with `floor[z] <= below[x] < above[z] <= ceiling[x]`.

A half is kept in two orders, each of two arrays of packed pairs: by `above` (code and event; floor and below) and by
`below` (code and event; ceiling and above). Floors and ceilings of a whole follow from those of its two parts in
one pass over the orders, so that n events take n log n steps. Among equal codes the later event comes first.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit

LEAF = 16  # events that are compared pair by pair
# Codes lie between these two. An event that cannot follow has `above` NO_FLOOR, one that cannot be followed has `below`
# NO_CEILING.
NO_FLOOR, NO_CEILING = 0, (1 << 31) - 1
LAST = (1 << 32) - 1
OPEN = 256  # nodes that wait at once, two a level: more than 2**31 events need


@njit(cache=True, nogil=True)
def code_of(pair):
    """Return the first of a packed pair."""
    return pair >> 32


@njit(cache=True, nogil=True)
def other_of(pair):
    """Return the second of a packed pair of codes."""
    return pair & LAST


@njit(cache=True, nogil=True)
def event_of(pair):
    """Return the event of a packed pair of code and event."""
    return LAST - (pair & LAST)


@njit(cache=True, nogil=True)
def packed(first, second):
    """Pack two numbers below 2**31."""
    return (np.int64(first) << 32) | np.int64(second)


@njit(cache=True, nogil=True)
def packed_event(code, event):
    """Pack a code and an event, so that of equal codes the later event is the lesser pair."""
    return (np.int64(code) << 32) | (LAST - np.int64(event))


@njit(cache=True, nogil=True)
def rank_codes(by_above, by_below, above, below):
    """Return codes from 1 that compare as the given ones do, `above` with `below`.

    Parameters
    ----------
    by_above, by_below
        The events that count, sorted by either code; the others get no floor as `above`, no ceiling as `below`.
    above, below
        Codes of any size.
    """
    ranked_above = np.full(above.shape[0], NO_FLOOR, np.int32)
    ranked_below = np.full(below.shape[0], NO_CEILING, np.int32)
    i = rank = 0
    for y in by_below:
        while i < by_above.shape[0] and above[by_above[i]] <= below[y]:
            if i == 0 or above[by_above[i]] > above[by_above[i - 1]]:
                rank += 1
            ranked_above[by_above[i]] = rank
            i += 1
        ranked_below[y] = rank
    while i < by_above.shape[0]:
        if i == 0 or above[by_above[i]] > above[by_above[i - 1]]:
            rank += 1
        ranked_above[by_above[i]] = rank
        i += 1
    return ranked_above, ranked_below


@njit(cache=True, nogil=True)
def split(lo, hi, first, after, nodes):
    """Halve the events from `lo` to `hi` until `LEAF` are left, between events of different time where there are any.

    `first[x]` is the first event of the time of `x`, `after[x]` the first of the next. Each row of `nodes` becomes
    (begin, middle, end, depth, right half); a node is followed by its left half, and that by its right half. A
    leaf has no middle (-1). Return how many there are: fewer than twice as many as events.
    """
    stack = np.empty((OPEN, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = lo, hi, 0, -1
    waiting, count = 1, 0
    while waiting:
        waiting -= 1
        begin, end, depth, whole = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        middle = np.int64(-1)
        if end - begin > LEAF:
            half = (begin + end) >> 1
            left, right = first[half], after[half]
            middle = half
            if left > begin and (right >= end or half - left <= right - half):
                middle = left
            elif right < end:
                middle = right
        nodes[count, 0], nodes[count, 1], nodes[count, 2], nodes[count, 3], nodes[count, 4] = (
            begin,
            middle,
            end,
            depth,
            -1,
        )
        if whole >= 0:
            nodes[whole, 4] = count
        if middle >= 0:
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] = middle, end, depth + 1, count
            stack[waiting + 1, 0], stack[waiting + 1, 1] = begin, middle
            stack[waiting + 1, 2], stack[waiting + 1, 3] = depth + 1, -1
            waiting += 2
        count += 1
    return count


@njit(cache=True, nogil=True)
def _sort_leaf(keys, values, lo, hi):
    for i in range(lo + 1, hi):
        key, value = keys[i], values[i]
        j = i
        while j > lo and keys[j - 1] > key:
            keys[j], values[j] = keys[j - 1], values[j - 1]
            j -= 1
        keys[j], values[j] = key, value


@njit(cache=True, nogil=True)
def order_leaf(lo, hi, base, above, below, floor, ceiling, by_above, of_above, by_below, of_below):
    """Put a leaf into its two orders; `floor` and `ceiling` start at `lo`, the orders at `base`."""
    for x in range(lo, hi):
        by_above[x - base] = packed_event(above[x], x - base)
        of_above[x - base] = packed(floor[x - lo], below[x])
        by_below[x - base] = packed_event(below[x], x - base)
        of_below[x - base] = packed(ceiling[x - lo], above[x])
    _sort_leaf(by_above, of_above, lo - base, hi - base)
    _sort_leaf(by_below, of_below, lo - base, hi - base)


@njit(cache=True, nogil=True)
def merge(lo, middle, hi, keys, values, into_keys, into_values):
    """Merge two sorted neighbours into other arrays."""
    i, j = lo, middle
    for k in range(lo, hi):
        if j >= hi or (i < middle and keys[i] < keys[j]):
            into_keys[k], into_values[k] = keys[i], values[i]
            i += 1
        else:
            into_keys[k], into_values[k] = keys[j], values[j]
            j += 1


@njit(cache=True, nogil=True)
def raise_floors(lo, middle, hi, by_below, of_below, by_above, of_above):
    """Let the floors of the right half know of the left half."""
    i, best = lo, np.int64(NO_FLOOR)
    for j in range(middle, hi):
        code = code_of(by_above[j])
        while i < middle and code_of(by_below[i]) < code:
            best = max(best, other_of(of_below[i]))
            i += 1
        value = of_above[j]
        if best > code_of(value):
            of_above[j] = packed(best, other_of(value))


@njit(cache=True, nogil=True)
def lower_ceilings(lo, middle, hi, by_below, of_below, by_above, of_above):
    """Let the ceilings of the left half know of the right half."""
    j, least = hi - 1, np.int64(NO_CEILING)
    for i in range(middle - 1, lo - 1, -1):
        code = code_of(by_below[i])
        while j >= middle and code_of(by_above[j]) > code:
            least = min(least, other_of(of_above[j]))
            j -= 1
        value = of_below[i]
        if least < code_of(value):
            of_below[i] = packed(least, other_of(value))
