"""Direct successors where the later event's value must differ from the earlier one's (`!=` on one attribute).

Only an event that can both follow and be followed makes a detour: call it whole. Up to the first time at which a whole
event differs from `x`, everything that differs from `x` follows it directly. If all whole events of that time that
differ have one value `b`, they lead to all but `b`, so only later events of value `b` can still be direct: up to and
including the next time at which a whole event is not `b`, for it leads back to `b`.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def _whole_times(begin, end, first, after, values, takes, gives, times):
    """Write for each time of a key partition that has whole events what they are; return how many such times there are.

    A row is (first event later, number of values up to 3, the first two of them, an event of each).
    """
    count = 0
    x = begin
    while x < end:
        later = min(after[x], end)
        times[count, 0], times[count, 1] = later, 0
        for y in range(x, later):
            if not (takes[y] and gives[y]):
                continue
            known = times[count, 1]
            if (known > 0 and times[count, 2] == values[y]) or (known > 1 and times[count, 3] == values[y]):
                continue
            if known < 2:
                times[count, 2 + known], times[count, 4 + known] = values[y], y
            times[count, 1] = min(known + 1, 3)
        if times[count, 1]:
            count += 1
        x = later
    return count


@njit(cache=True, nogil=True)
def _leave(times, count, jump):
    """Write for each time with one value the next one that has another."""
    for i in range(count - 1, -1, -1):
        jump[i] = i + 1
        if i + 1 < count and times[i + 1, 1] == 1 and times[i + 1, 2] == times[i, 2]:
            jump[i] = jump[i + 1]


@njit(cache=True, nogil=True)
def _first_with_other(i, count, times, jump, value):
    """Return the first time from `i` on that has a whole event of another value."""
    if i < count and times[i, 1] == 1 and times[i, 2] == value:
        return jump[i]
    return i


@njit(cache=True, nogil=True)
def _follow(begin, end, value, values, next_other, next_taking, place, successors):
    """Write the events from `begin` to `end` that can follow and have another value; return how many."""
    found = 0
    y = next_taking[begin] if begin < end else end
    while y < end:
        if values[y] == value:
            y = next_other[y]
            continue
        if successors.shape[0]:
            successors[place + found] = y
        found += 1
        y = next_taking[y + 1]
    return found


@njit(cache=True, nogil=True)
def _links(begin, end, values, takes, next_taking, next_other, next_same, seen):
    """Link the events that can follow: to the next one, the next of another value, and the next of the same."""
    next_taking[end] = end
    for x in range(end - 1, begin - 1, -1):
        next_taking[x] = next_taking[x + 1]
        if not takes[x]:
            continue
        following = next_taking[x + 1]
        same = following < end and values[following] == values[x]
        next_other[x] = next_other[following] if same else following
        next_same[x] = seen[values[x]] if seen[values[x]] >= 0 else end
        seen[values[x]] = x
        next_taking[x] = x
    for x in range(begin, end):
        if takes[x]:
            seen[values[x]] = -1


@njit(cache=True, nogil=True)
def differing_edges(partitions, first, after, limit, values, takes, gives, seen, cursor, successors):
    """Count or write the direct edges.

    Parameters
    ----------
    partitions
        Where the key partitions begin, between which there are no edges.
    first, after, limit
        For each event the first one of its time, the first one later, and the first one that it may not be followed by.
    values
        The value of each event, from 0.
    takes, gives
        Whether it may follow and be followed.
    seen
        For each value -1.
    cursor, successors
        As `trellis.kernels.maximal.inequality.direct_edges` takes them; the successors of one event come in time order.
    """
    n = values.shape[0]
    next_taking, next_other = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    next_same, jump = np.empty(n, np.int64), np.empty(n, np.int64)
    times = np.empty((n, 6), np.int64)
    for partition in range(partitions.shape[0] - 1):
        begin, end = partitions[partition], partitions[partition + 1]
        _links(begin, end, values, takes, next_taking, next_other, next_same, seen)
        count = _whole_times(begin, end, first, after, values, takes, gives, times)
        _leave(times, count, jump)
        i = 0
        for x in range(begin, end):
            while i < count and times[i, 0] <= after[x]:
                i += 1
            if not gives[x]:
                continue
            last = min(limit[x], end)
            turn = _first_with_other(i, count, times, jump, values[x])
            whole = last if turn == count else min(last, times[turn, 0])
            cursor[x] += _follow(after[x], whole, values[x], values, next_other, next_taking, cursor[x], successors)
            if turn == count or times[turn, 1] > 2:
                continue
            which = 0
            if times[turn, 1] == 2:
                which = 1 if times[turn, 2] == values[x] else 0
                if times[turn, 3 - which] != values[x]:
                    continue
            back = _first_with_other(turn + 1, count, times, jump, times[turn, 2 + which])
            last = last if back == count else min(last, times[back, 0])
            y = next_same[times[turn, 4 + which]]
            while y < last:
                if y >= times[turn, 0]:
                    if successors.shape[0]:
                        successors[cursor[x]] = y
                    cursor[x] += 1
                y = next_same[y]
