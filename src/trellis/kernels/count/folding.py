"""Sums over the trends that end at attribute vertices: events are added in the order of time, and can be forgotten.

Numbers are whole ones of some words of 64 bits, the lowest first; negative ones are two's complements. Of each vertex
and event there are several: the number of trends that end there, and for each weight its sum over all their events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.jit import njit

HALF, LOW = np.uint64(32), np.uint64((1 << 32) - 1)


class KnownVertices(NamedTuple):
    """Attribute vertices that earlier events left; group `g` has those from `begin[g]` to before `end[g]`.

    What may follow them has a code above `low` and at most `high`; `numbers` are (vertices, kinds, words).
    """

    begin: np.ndarray  # int64 (groups,)
    end: np.ndarray  # int64 (groups,)
    low: np.ndarray  # int64 (vertices,)
    high: np.ndarray  # int64 (vertices,)
    numbers: np.ndarray  # uint64 (vertices, kinds, words)


class NewEvents(NamedTuple):
    """Events in the order of time; `tick` is equal where neither of two comes first.

    One that `takes` has the code `own`; what may follow one that `gives` is above `low` and at most `high`.
    """

    tick: np.ndarray  # int64 (events,)
    gives: np.ndarray  # bool (events,)
    takes: np.ndarray  # bool (events,)
    own: np.ndarray  # int64 (events,)
    low: np.ndarray  # int64 (events,)
    high: np.ndarray  # int64 (events,)


class EventWeights(NamedTuple):
    """Weights of events, (kinds - 1, events): magnitudes of 128 bits, to be shifted, and whether they are negative."""

    high: np.ndarray  # uint64 (kinds - 1, events)
    low: np.ndarray  # uint64 (kinds - 1, events)
    shift: np.ndarray  # int64 (kinds - 1, events)
    negative: np.ndarray  # bool (kinds - 1, events)


@register_jitable
def _add(to, i, more, j):
    """Add the numbers of a row to those of another."""
    for k in range(to.shape[1]):
        carry = np.uint64(0)
        for w in range(to.shape[2]):
            one = to[i, k, w] + more[j, k, w]
            both = one + carry
            carry = np.uint64(one < more[j, k, w]) | np.uint64(both < carry)
            to[i, k, w] = both


@register_jitable
def _take(to, i, more, j):
    """Take the numbers of a row from those of another."""
    for k in range(to.shape[1]):
        borrow = np.uint64(0)
        for w in range(to.shape[2]):
            one = to[i, k, w] - more[j, k, w]
            less = np.uint64(to[i, k, w] < more[j, k, w])
            to[i, k, w] = one - borrow
            borrow = less | np.uint64(one < borrow)


@register_jitable
def _begin(numbers, p, every):
    """Count the trend that begins with an event: always, or where none goes on with it."""
    words, empty = numbers.shape[2], True
    for w in range(words):
        empty = empty and numbers[p, 0, w] == 0
    if every or empty:
        for w in range(words):
            numbers[p, 0, w] += np.uint64(1)
            if numbers[p, 0, w] != 0:
                break


@register_jitable
def _product(a, b):
    """Return the high and the low word of a product."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW, b >> HALF, b & LOW
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> HALF)
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), (other << HALF) | (lowest & LOW)


@register_jitable
def _weigh(numbers, p, k, weights, x, spare):
    """Add the number of trends times the weight of their last event."""
    words, at = numbers.shape[2], k - 1
    spare[:] = 0
    for part in range(2):
        factor = weights.high[at, x] if part else weights.low[at, x]
        carry = np.uint64(0)
        for w in range(words - part if factor != 0 else 0):
            high, low = _product(numbers[p, 0, w], factor)
            one = low + spare[w + part]
            both = one + carry
            carry = high + np.uint64(one < low) + np.uint64(both < carry)
            spare[w + part] = both
    whole, bits = weights.shift[at, x] >> 6, np.uint64(weights.shift[at, x] & 63)
    if weights.shift[at, x]:
        for w in range(words - 1, -1, -1):
            value = spare[w - whole] << bits if w >= whole else np.uint64(0)
            if bits != 0 and w > whole:
                value |= spare[w - whole - 1] >> (np.uint64(64) - bits)
            spare[w] = value
    carry = np.uint64(weights.negative[at, x])
    for w in range(words):
        more = ~spare[w] if weights.negative[at, x] else spare[w]
        one = numbers[p, k, w] + more
        both = one + carry
        carry = np.uint64(one < more) | np.uint64(both < carry)
        numbers[p, k, w] = both


@register_jitable
def _grow(total, numbers, p, room):
    """Add the first number of a row to a total; return whether that still has at most `room` bits."""
    carry = np.uint64(0)
    for w in range(total.shape[0]):
        one = total[w] + numbers[p, 0, w]
        both = one + carry
        carry = np.uint64(one < numbers[p, 0, w]) | np.uint64(both < carry)
        total[w] = both
    first = room >> 6
    if total[first] >> np.uint64(room & 63) != 0:
        return False
    rest = np.uint64(0)
    for w in range(first + 1, total.shape[0]):
        rest |= total[w]
    return rest == 0


@register_jitable
def _spread(tree, size, begin, end, numbers, p):
    """Add the numbers of a row to what is asked at the places from `begin` to before `end`."""
    place = begin + 1
    while place <= size:
        _add(tree, place, numbers, p)
        place += place & -place
    place = end + 1
    while place <= size:
        _take(tree, place, numbers, p)
        place += place & -place


@register_jitable
def _places(events, lo, hi, codes):
    """Set the distinct codes of what may follow, in order, and return how many there are."""
    n = 0
    for x in range(lo, hi):
        if events.takes[x]:
            codes[n] = events.own[x]
            n += 1
    codes[:n].sort()
    size = min(n, 1)
    for i in range(1, n):
        if codes[i] != codes[i - 1]:
            codes[size] = codes[i]
            size += 1
    return size


@register_jitable
def _up_to(counted, place):
    """Return how many events stand before a place."""
    number = 0
    while place > 0:
        number += counted[place]
        place -= place & -place
    return number


@njit(cache=True, nogil=True)
def fold(known, events, weights, lo, hi, before, every, room):
    """Count the trends that end at each event of groups.

    Parameters
    ----------
    known : KnownVertices
        The vertices of each group; those that nothing follows may be left out.
    events : NewEvents
        The events; group `g` has those from `lo[g]` to before `hi[g]`, all later than what its vertices are of.
    weights : EventWeights
        Their weights.
    lo, hi : int64 (groups,)
        The events of groups.
    before : uint64 (groups, 1, words)
        How many trends each group has that ended at any earlier event.
    every : bool
        Whether a trend may begin and end anywhere, or only where it cannot go on.
    room : int
        The bits that the number of all trends may have, so that no number leaves its words.

    Returns
    -------
    fits : bool
        Whether there was room. If not, nothing else means anything.
    numbers : uint64 (sum of hi - lo, kinds, words)
        The numbers of the events of all groups, one group behind another.
    followed, followed_vertices : bool
        Of each of these events, and of each vertex, whether something follows; always False if `every`.
    """
    kinds, words = known.numbers.shape[1], known.numbers.shape[2]
    pairs, largest = 0, 0
    for g in range(lo.shape[0]):
        pairs += hi[g] - lo[g]
        largest = max(largest, hi[g] - lo[g])
    numbers = np.zeros((pairs, kinds, words), np.uint64)
    followed, followed_vertices = np.zeros(pairs, np.bool_), np.zeros(known.low.shape[0], np.bool_)
    codes, counted = np.empty(largest, np.int64), np.zeros(largest + 2, np.int64)
    tree, spare = np.zeros((largest + 2, kinds, words), np.uint64), np.zeros(words, np.uint64)
    total = np.zeros(words, np.uint64)
    begins, ends, place = np.zeros(largest, np.int64), np.zeros(largest, np.int64), np.zeros(largest, np.int64)
    at = 0
    for g in range(lo.shape[0]):
        first, behind = lo[g], hi[g]
        size = _places(events, first, behind, codes)
        own = codes[:size]
        tree[: size + 2], total[:] = 0, 0
        fits = _grow(total, before, g, room)
        for v in range(known.begin[g], known.end[g]):
            begin, end = np.searchsorted(own, known.low[v], "right"), np.searchsorted(own, known.high[v], "right")
            if begin < end:
                followed_vertices[v] = not every
                _add(tree, begin + 1, known.numbers, v)
                _take(tree, end + 1, known.numbers, v)
        for i in range(1, size + 1):
            if i + (i & -i) <= size:
                _add(tree, i + (i & -i), tree, i)
        for x in range(first, behind):
            i = x - first
            begins[i] = ends[i] = 0
            place[i] = np.searchsorted(own, events.own[x]) + 1 if events.takes[x] else 0
            if events.gives[x]:
                begins[i] = np.searchsorted(own, events.low[x], "right")
                ends[i] = np.searchsorted(own, events.high[x], "right")
        a = first
        while a < behind:
            b = a
            while b < behind and events.tick[b] == events.tick[a]:
                p, node = at + b - first, place[b - first]
                while node > 0:
                    _add(numbers, p, tree, node)
                    node -= node & -node
                _begin(numbers, p, every)
                for k in range(1, kinds):
                    _weigh(numbers, p, k, weights, b, spare)
                fits = _grow(total, numbers, p, room) and fits
                b += 1
            if not fits:
                return False, numbers, followed, followed_vertices
            for x in range(a, b):
                i = x - first
                if begins[i] < ends[i]:
                    _spread(tree, size, begins[i], ends[i], numbers, at + i)
            a = b
        if not every:
            counted[: size + 2] = 0
            b = behind
            while b > first:
                a = b
                while a > first and events.tick[a - 1] == events.tick[b - 1]:
                    a -= 1
                    i = a - first
                    followed[at + i] = begins[i] < ends[i] and _up_to(counted, ends[i]) > _up_to(counted, begins[i])
                for x in range(a, b):
                    node = place[x - first]
                    while 0 < node <= size:
                        counted[node] += 1
                        node += node & -node
                b = a
        at += behind - first
    return True, numbers, followed, followed_vertices


@njit(cache=True, nogil=True)
def add_to_rows(numbers, rows, more):
    """Add the numbers of each row of `more` to the row of `numbers` that is named; -1: to none."""
    for i in range(rows.shape[0]):
        if rows[i] >= 0:
            _add(numbers, rows[i], more, i)


@njit(cache=True, nogil=True)
def raise_by(numbers, kind, bits):
    """Multiply the numbers of a kind by a power of two."""
    words, whole, rest = numbers.shape[2], bits >> 6, np.uint64(bits & 63)
    for i in range(numbers.shape[0]):
        for w in range(words - 1, -1, -1):
            value = numbers[i, kind, w - whole] << rest if w >= whole else np.uint64(0)
            if rest != 0 and w > whole:
                value |= numbers[i, kind, w - whole - 1] >> (np.uint64(64) - rest)
            numbers[i, kind, w] = value
