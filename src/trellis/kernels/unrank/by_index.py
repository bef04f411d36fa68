"""Unranking by index, without edges: how many paths go on from each event, and the path with a given rank.

The events of a task stand at 0, 1, ... in time order. Event y may follow event x if it is at or behind `later[x]` and
its attribute vertex `place[y]` lies in one of the ranges `[firsts[r][x], lasts[r][x])` (`place` is -1 where an event
never follows another). Paths lead from an event with `starts` to one with `ends`; if `every`, they end anywhere.

Numbers of paths are little-endian limbs in 64-bit words. While they are counted a limb has so few bits that the limbs
of all events can be added without a carry; then it has `BITS`, so that a number, twice two sums and a carry fit a word.
`limbs` is a tuple with as many zeros as there are limbs, which makes their number a constant of the compiled loops; an
empty tuple leaves it to the arrays.

To skip events that need not be looked at one by one, each block of 1,024 is sorted by vertex and has running sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least, grown
from trellis.kernels.jit import njit

BITS = 61
MASK = (1 << BITS) - 1
SHIFT = 10
BLOCK = 1 << SHIFT


class IndexWindow(NamedTuple):
    """The events of one task on the attribute index, from its first event on.

    Attributes
    ----------
    begin : int
        The first event in the slice.
    vertices : int
        The number of attribute vertices.
    later : int64 (events,)
        The first event of a later time.
    place : int32 (events,)
        The attribute vertex of each event; -1 where it never follows another.
    firsts, lasts : tuple of int32 (events,), one for each range
        The ranges of vertices of successors; those of one event do not overlap.
    starts, ends, usable : bool (events,)
        Whether paths may start and end at an event, and go over it.
    every : bool
        Whether paths end anywhere.
    reach : int64 (events,) or (0,)
        The first event that is too late to follow, which never falls; empty where there is no gap.
    own, own_end : int32 (events,) or (0,)
        The segment of vertices that each event's vertex lies in, where successors are vertices from one of a segment on
        to its end; else empty.
    """

    begin: int
    vertices: int
    later: np.ndarray
    place: np.ndarray
    firsts: tuple[np.ndarray, ...]
    lasts: tuple[np.ndarray, ...]
    starts: np.ndarray
    ends: np.ndarray
    usable: np.ndarray
    every: bool
    reach: np.ndarray
    own: np.ndarray = np.empty(0, np.int32)
    own_end: np.ndarray = np.empty(0, np.int32)


class BlockSums(NamedTuple):
    """Running sums of the numbers of paths over the events of each block, by vertex.

    Attributes
    ----------
    slots : int16 (events,)
        Where in its block each event stands by vertex.
    vertices : int32 (events,)
        The vertices in this order.
    sums : int64 (events + blocks, limbs)
        The running sums; each block has one more than it has events.
    """

    slots: np.ndarray
    vertices: np.ndarray
    sums: np.ndarray


@njit(cache=True, nogil=True)
def path_counts(bits, limbs, room, window):
    """Return for each event the number of paths to an end, in `room` limbs of `bits` bits: int64 (events, room).

    They have to hold the number of all paths from starts. An event with more than fits lies on none of these: what its
    limbs hold is never used.
    """
    vertices, later, place, firsts, lasts = window.vertices, window.later, window.place, window.firsts, window.lasts
    ends, every, usable = window.ends, window.every, window.usable
    n = place.shape[0]
    size = len(limbs) if len(limbs) else room
    mask = (1 << bits) - 1
    tree = np.zeros((vertices + 1, size), np.int64)  # a Fenwick tree that adds from the last vertex on
    counts = np.zeros((n, size), np.int64)
    reach, gap, held = window.reach, window.reach.shape[0] > 0, n
    x = n - 1
    while x >= 0:
        begin = x
        while begin > 0 and later[begin - 1] == later[x]:
            begin -= 1
        for y in range(x, begin - 1, -1):
            if not usable[y]:
                continue
            while gap and held > max(reach[y], x + 1):  # what is too late leaves the tree
                held -= 1
                if usable[held] and place[held] >= 0:
                    i = vertices - place[held]
                    while i <= vertices:
                        for k in range(size):
                            tree[i, k] -= counts[held, k]
                        i += i & -i
            counts[y, 0] = 1 if every or ends[y] else 0
            for r in range(len(firsts)):
                i, j = vertices - firsts[r][y], vertices - lasts[r][y]
                while i > j:
                    for k in range(size):
                        counts[y, k] += tree[i, k]
                    i &= i - 1
                while j > i:
                    for k in range(size):
                        counts[y, k] -= tree[j, k]
                    j &= j - 1
            carry = 0
            for k in range(size):
                value = counts[y, k] + carry
                carry = value >> bits
                counts[y, k] = value & mask
        for y in range(begin, x + 1):
            if usable[y] and place[y] >= 0:
                i = vertices - place[y]
                while i <= vertices:
                    for k in range(size):
                        tree[i, k] += counts[y, k]
                    i += i & -i
        x = begin - 1
    return counts


@njit(cache=True, nogil=True)
def widened(counts, bits, room):
    """Return numbers with limbs of `bits` bits as ones with `room` limbs of `BITS`."""
    n, size = counts.shape
    wide = np.zeros((n, room), np.int64)
    for y in range(n):
        for j in range(room):
            k, shift = j * BITS // bits, j * BITS % bits
            got = -shift
            while k < size and got < BITS:
                wide[y, j] |= counts[y, k] << got if got > 0 else counts[y, k] >> shift
                got += bits
                k += 1
            wide[y, j] &= MASK
    return wide


def block_orders(place):
    """Return the events of each block, counted from its begin, by vertex."""
    orders = np.empty(place.shape[0], np.int16)
    whole = place.shape[0] >> SHIFT << SHIFT
    orders[:whole] = np.argsort(place[:whole].reshape(-1, BLOCK), axis=1).reshape(-1)
    orders[whole:] = np.argsort(place[whole:])
    return orders


@njit(cache=True, nogil=True)
def sum_blocks(orders, place, counts):
    """Add up the numbers of paths of the events of each block in the order of their vertices.

    Returns the members of `BlockSums`.
    """
    n, size = counts.shape
    blocks = (n + BLOCK - 1) >> SHIFT
    slots = np.empty(n, np.int16)
    vertices = np.empty(n, np.int32)
    sums = np.zeros((n + blocks, size), np.int64)
    for block in range(blocks):
        begin = block << SHIFT
        for i in range(begin, min(n, begin + BLOCK)):
            y = begin + orders[i]
            slots[y] = i - begin
            vertices[i] = place[y]
            carry = 0
            for k in range(size):
                value = sums[i + block, k] + counts[y, k] + carry
                carry = value >> BITS
                sums[i + block + 1, k] = value & MASK
    return slots, vertices, sums


@njit(cache=True, nogil=True)
def unfold(blocks):
    """Return the number of paths of each event, which `sum_blocks` has put into sums."""
    slots, sums = blocks.slots, blocks.sums
    n, size = slots.shape[0], sums.shape[1]
    counts = np.empty((n, size), np.int64)
    for y in range(n):
        row = y - (y & (BLOCK - 1)) + (y >> SHIFT) + slots[y]
        carry = 0
        for k in range(size):
            value = sums[row + 1, k] - sums[row, k] + carry
            carry = value >> BITS
            counts[y, k] = value & MASK
    return counts


@njit(cache=True, nogil=True)
def start_heads(starts, counts):
    """Return for each block how many paths start before it; one more for all of them."""
    n, size = counts.shape
    blocks = (n + BLOCK - 1) >> SHIFT
    heads = np.zeros((blocks + 1, size), np.int64)
    for block in range(blocks):
        for k in range(size):
            heads[block + 1, k] = heads[block, k]
        for y in range(block << SHIFT, min(n, (block + 1) << SHIFT)):
            if starts[y]:
                carry = 0
                for k in range(size):
                    value = heads[block + 1, k] + counts[y, k] + carry
                    carry = value >> BITS
                    heads[block + 1, k] = value & MASK
    return heads


@njit(cache=True, nogil=True)
def _less(size, rest, heads, row):
    """Return whether a number is less than that of a row."""
    carry = 0
    for k in range(size):
        carry = (rest[k] - heads[row, k] + carry) >> BITS
    return carry < 0


@njit(cache=True, nogil=True)
def _find_start(limbs, rest, spare, starts, blocks, heads):
    """Return the event at which the path with the rank `rest` starts, and make it the rank among the paths from there.

    It is the number of events if there is no such path.
    """
    slots, sums = blocks.slots, blocks.sums
    n, size = slots.shape[0], len(limbs) if len(limbs) else rest.shape[0]
    block, end = 0, heads.shape[0]
    while end - block > 1:
        middle = (block + end) >> 1
        if _less(size, rest, heads, middle):
            end = middle
        else:
            block = middle
    carry = 0
    for k in range(size):
        value = rest[k] - heads[block, k] + carry
        carry = value >> BITS
        rest[k] = value & MASK
    base = (block << SHIFT) + block
    for y in range(block << SHIFT, min(n, (block + 1) << SHIFT)):
        if starts[y]:
            row = base + slots[y]
            carry = 0
            for k in range(size):
                value = rest[k] - (sums[row + 1, k] - sums[row, k]) + carry
                carry = value >> BITS
                spare[k] = value & MASK
            if carry < 0:
                return y
            for k in range(size):
                rest[k] = spare[k]
    return n


@njit(cache=True, nogil=True)
def _find_next(y, limbs, low, high, rest, spare, place, blocks):
    """Return the first event from y on, with a vertex in a range `[low, high)`, that has more paths than are left.

    `rest` tells how many are left; the paths of the events before the one found are subtracted from it.
    """
    slots, vertices, sums = blocks.slots, blocks.vertices, blocks.sums
    n, size, ranges = place.shape[0], len(limbs) if len(limbs) else rest.shape[0], low.shape[0]
    block = y >> SHIFT
    while True:
        base, end = (block << SHIFT) + block, min(n, (block + 1) << SHIFT)
        while y < end:
            follows = False
            for r in range(ranges):
                follows |= low[r] <= place[y] < high[r]
            if follows:
                row = base + slots[y]
                carry = 0
                for k in range(size):
                    value = rest[k] - (sums[row + 1, k] - sums[row, k]) + carry
                    carry = value >> BITS
                    spare[k] = value & MASK
                if carry < 0:
                    return y
                for k in range(size):
                    rest[k] = spare[k]
            y += 1
        while True:  # whole blocks, until one has more paths than are left
            block += 1
            y, end = block << SHIFT, min(n, (block + 1) << SHIFT)
            for k in range(size):
                spare[k] = rest[k]
            for r in range(ranges):
                if low[r] < high[r]:
                    i = first_at_least(vertices, y, end, low[r])
                    j = end if vertices[end - 1] < high[r] else first_at_least(vertices, i, end, high[r])
                    for k in range(size):
                        spare[k] -= sums[j + block, k] - sums[i + block, k]
            carry = 0
            for k in range(size):
                value = spare[k] + carry
                carry = value >> BITS
                spare[k] = value & MASK
            if carry < 0:
                break
            for k in range(size):
                rest[k] = spare[k]


@njit(cache=True, nogil=True)
def take_one(rest):
    """Subtract 1 from a number unless it is 0, and return whether it was."""
    for k in range(rest.shape[0]):
        if rest[k] > 0:
            rest[k] -= 1
            for j in range(k):
                rest[j] = MASK
            return False
    return True


@njit(cache=True, nogil=True)
def unrank(ranks, limbs, window, blocks, heads):
    """Return the paths with given ranks, one after another, and where each ends; a path that there is not is empty.

    Parameters
    ----------
    ranks : int64 (ranks, limbs)
        The ranks, in limbs of `BITS` bits.
    limbs : tuple of int
        As many zeros as there are limbs, or none.
    window, blocks, heads
        The events of the task, what `sum_blocks` gives for them, and what `start_heads` gives.

    Returns
    -------
    events, ends : int32 (values,), int64 (ranks,)
    """
    later, place, firsts, lasts = window.later, window.place, window.firsts, window.lasts
    starts, ends, every = window.starts, window.ends, window.every
    events = np.empty(16 * ranks.shape[0], np.int32)
    path_ends = np.empty(ranks.shape[0], np.int64)
    rest, spare = np.empty(ranks.shape[1], np.int64), np.empty(ranks.shape[1], np.int64)
    low, high = np.empty(len(firsts), np.int32), np.empty(len(firsts), np.int32)
    n, used = place.shape[0], 0
    for i in range(ranks.shape[0]):
        for k in range(rest.shape[0]):
            rest[k] = ranks[i, k]
        x = _find_start(limbs, rest, spare, starts, blocks, heads)
        while x < n:
            if used == events.shape[0]:
                events = grown(events, used, 2 * used)
            events[used] = x
            used += 1
            if take_one(rest) if every else ends[x]:
                break
            for r in range(len(firsts)):
                low[r], high[r] = firsts[r][x], lasts[r][x]
            x = _find_next(later[x], limbs, low, high, rest, spare, place, blocks)
        path_ends[i] = used
    return events[:used].copy(), path_ends
