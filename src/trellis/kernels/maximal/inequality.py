"""Direct successors under one inequality: the edges without a detour, found without testing all pairs.

See `trellis.kernels.maximal.bisection` for what a direct edge is. Across a middle the left events are taken by falling
`below`; right events are put on a stack as soon as their `above` is greater, so that the lowest `above` is always on
top, and taken out when one is found whose floor has been passed: it can be reached directly by no later one either.
What is left from the top down to the ceiling is an edge each.

Events come as key partitions (or whole partitions, where there is no key), each in time order; edges never leave one.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import ONE, lowest_bit
from trellis.kernels.jit import njit
from trellis.kernels.maximal.bisection import (
    LEAF,
    NO_CEILING,
    NO_FLOOR,
    code_of,
    event_of,
    merge,
    order_leaf,
    other_of,
    packed,
    raise_floors,
    split,
)

TILE = 256  # a tile owns at least so many events


@njit(cache=True, nogil=True)
def tiles(partitions, limit):
    """Cut key partitions into tiles, so that the cost depends on how far edges may go and not on the length of one.

    No edge of `x` goes to `limit[x]` or beyond, which never falls within a key partition. Return rows (begin, owned,
    end): the edges of the events from `begin` to `owned` all end before `end`.
    """
    found = np.empty((limit.shape[0] // TILE + partitions.shape[0], 3), np.int64)
    count = 0
    for partition in range(partitions.shape[0] - 1):
        begin, last = partitions[partition], partitions[partition + 1]
        while begin < last:
            owned = min(last, max(limit[begin], begin + TILE))
            end = max(owned, limit[owned - 1])
            if last - begin <= 2 * (end - begin):
                owned = end = last
            found[count, 0], found[count, 1], found[count, 2] = begin, owned, end
            count += 1
            begin = owned
    return found[:count]


@njit(cache=True, nogil=True)
def _leaf(lo, hi, owned, first, above, below, limit, cursor, successors, floor, ceiling):
    """Write the edges within a leaf; find its floors and ceilings."""
    filling = successors.shape[0] > 0
    floor[: hi - lo] = NO_FLOOR
    ceiling[: hi - lo] = NO_CEILING
    seen = 0
    for x in range(lo, hi):
        code = below[x]
        least = pending = np.int32(NO_CEILING)
        time = first[x]
        place = cursor[x]
        for y in range(x + 1, hi):
            if first[y] != time:
                time = first[y]
                least = pending
            if time > x and above[y] > code:
                floor[y - lo] = max(floor[y - lo], above[x])
                pending = min(pending, below[y])
                if above[y] <= least and x < owned and y < limit[x]:
                    if filling:
                        successors[place] = y
                    place += 1
        ceiling[x - lo] = pending
        seen += place - cursor[x]
        cursor[x] = place
    return seen


@njit(cache=True, nogil=True)
def _turn(values, begin, end):
    """Reverse some values: by falling `above`, direct successors are mostly in the order of time."""
    end -= 1
    while begin < end:
        values[begin], values[end] = values[end], values[begin]
        begin += 1
        end -= 1


@njit(cache=True, nogil=True)
def _across(
    base, lo, middle, hi, owned, by_above, of_above, by_below, of_below, limit, cursor, successors, stack, floors, room
):
    """Write the edges across a middle and lower the ceilings of the left half; return how many were seen.

    Stops when more than `room` were.
    """
    filling = successors.shape[0] > 0
    limited = limit[lo + base] < hi + base
    top, seen = 0, 0
    j, least = hi - 1, np.int64(NO_CEILING)
    for i in range(middle - 1, lo - 1, -1):
        code, x = code_of(by_below[i]), event_of(by_below[i]) + base
        ceiling = code_of(of_below[i])
        while j >= middle and code_of(by_above[j]) > code:
            least = min(least, other_of(of_above[j]))
            if code_of(of_above[j]) <= code:
                stack[top], floors[top] = by_above[j], code_of(of_above[j])
                top += 1
            j -= 1
        if least < ceiling:
            of_below[i] = packed(least, other_of(of_below[i]))
        if top == 0 or code_of(stack[top - 1]) > ceiling or x >= owned:
            continue
        k, passed, found = top - 1, 0, 0
        end = limit[x] if limited else hi + base
        place = cursor[x] if filling else 0
        while k >= 0 and code_of(stack[k]) <= ceiling:
            if floors[k] > code:
                passed += 1
            else:
                z = event_of(stack[k]) + base
                if z < end:
                    if filling:
                        successors[place + found] = z
                    found += 1
            k -= 1
        seen += top - 1 - k - passed
        if found:
            cursor[x] += found
            if filling:
                _turn(successors, place, place + found)
        if passed:
            write = k + 1
            for read in range(k + 1, top):
                if floors[read] <= code:
                    stack[write], floors[write] = stack[read], floors[read]
                    write += 1
            top = write
        if seen > room:
            return seen
    return seen


@njit(cache=True, nogil=True)
def direct_edges(rows, first, after, above, below, limit, cursor, successors, cap):
    """Count or write the direct edges of tiles; return how many were looked at: more than `cap` if it gave up.

    Parameters
    ----------
    rows
        The tiles, as `tiles` gives them.
    first, after
        For each event the first one of its time (in its key partition) and the first one later.
    above, below
        The codes, as `trellis.kernels.maximal.bisection.rank_codes` makes them.
    limit
        For each event the first one that it may not be followed by.
    cursor
        For each event where its next successor goes; raised by one for each edge.
    successors
        What is written to; empty if the edges are only counted. Those of one event come in no order.
    cap
        How many edges are too many.
    """
    most = 0
    for row in range(rows.shape[0]):
        most = max(most, rows[row, 2] - rows[row, 0])
    by_above, of_above = np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    by_below, of_below = np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    stack, floors = np.empty(most, np.int64), np.empty(most, np.int64)
    nodes = np.empty((2 * most + 1, 5), np.int64)
    floor, ceiling = np.empty(LEAF, np.int32), np.empty(LEAF, np.int32)
    seen = 0
    for row in range(rows.shape[0]):
        base, owned = rows[row, 0], rows[row, 1]
        count = split(base, rows[row, 2], first, after, nodes)
        for node in range(count - 1, -1, -1):
            lo, middle, hi, depth = nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3]
            to = depth & 1
            if middle < 0:
                seen += _leaf(lo, hi, owned, first, above, below, limit, cursor, successors, floor, ceiling)
                order_leaf(
                    lo, hi, base, above, below, floor, ceiling, by_above[to], of_above[to], by_below[to], of_below[to]
                )
                continue
            different = first[middle] == middle
            lo, middle, hi, at = lo - base, middle - base, hi - base, 1 - to
            if different:
                seen += _across(
                    base, lo, middle, hi, owned, by_above[at], of_above[at], by_below[at], of_below[at],
                    limit, cursor, successors, stack, floors, cap - seen,
                )  # fmt: skip
                if seen > cap:
                    return seen
            if depth:
                if different:
                    raise_floors(lo, middle, hi, by_below[at], of_below[at], by_above[at], of_above[at])
                merge(lo, middle, hi, by_above[at], of_above[at], by_above[to], of_above[to])
                merge(lo, middle, hi, by_below[at], of_below[at], by_below[to], of_below[to])
    return seen


@njit(cache=True, nogil=True)
def _sort_by_bits(values, words):
    """Sort distinct numbers by setting a bit for each and reading the bits; `words` are 0, and are 0 again."""
    low = high = np.int64(values[0])
    for value in values:
        low, high = min(low, value), max(high, value)
        words[value >> 6] |= ONE << np.uint64(value & 63)
    place = 0
    for i in range(low >> 6, (high >> 6) + 1):
        word = words[i]
        words[i] = 0
        while word:
            values[place] = (i << 6) + lowest_bit(word)
            place += 1
            word &= word - ONE


@njit(cache=True, nogil=True)
def sort_rows(offsets, successors):
    """Sort the successors of each event: by insertion as long as few of them move."""
    words = np.zeros(((offsets.shape[0] - 1) >> 6) + 1, np.uint64)
    for x in range(offsets.shape[0] - 1):
        row = successors[offsets[x] : offsets[x + 1]]
        moves = 0
        for i in range(1, row.shape[0]):
            value, j = row[i], i
            while j > 0 and row[j - 1] > value:
                row[j] = row[j - 1]
                j -= 1
            row[j] = value
            moves += i - j
            if moves > 8 * row.shape[0]:
                _sort_by_bits(row, words)
                break


@njit(cache=True, nogil=True)
def to_positions(order, successors):
    """Replace places in an order by the positions that stand there."""
    for i in range(successors.shape[0]):
        successors[i] = order[successors[i]]


@njit(cache=True, nogil=True)
def placed_rows(order, degrees, successors, offsets):
    """Return rows that come in an order where `offsets` says, as positions."""
    placed = np.empty(successors.shape[0], np.int32)
    read = 0
    for x in range(order.shape[0]):
        for i in range(degrees[x]):
            placed[offsets[order[x]] + i] = order[successors[read]]
            read += 1
    return placed
