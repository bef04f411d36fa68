"""Unranking many paths at once: their cursors go forward in time together, through a time bisection of the events.

Events, ranges and limbs are as in `trellis.kernels.unrank.by_index`. A cursor stands at an event x of its path and
knows its rank among the paths that go on from there. The next event of its path is the first one at which the numbers
of paths of the successors, added up in time order, exceed the rank. So whole ranges of time are passed by subtracting
what all successors in them have; a range that has more than that holds the next event.

The ranges are the nodes of a binary tree over time. A node lists its events by vertex, with sums from the end, so that
a range of vertices is a difference. The tree is walked from left to right: cursors that are bound for a node are split
between its two parts, those for the right one put off; those that have arrived in the left part and are bound for
nothing yet are asked whether they go on to the right one. Only the nodes on the way from the root to the current event
are kept, which takes no more room than two lists of all events. A node that no cursor is bound for is passed over.

A cursor is a row of numbers: the limbs of its rank, then one number for each range of vertices, then its own number.
For those bound for a node, the number of a range tells where in the list of the node it begins (the lower 32 bits) and
ends (the upper ones); for those that wait, the first one is the event where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import ONE, first_at_least, grown
from trellis.kernels.jit import njit
from trellis.kernels.unrank.by_index import BITS, MASK, take_one

HALF, SIGN = np.uint64(32), np.uint64(63)
LOW = (1 << 32) - 1


class TimeTree(NamedTuple):
    """The nodes on the way to the current event: the one of level h stands from `begin[h]` on and holds `held[h]`.

    `members` are the events by vertex, `vertices` their vertices, `sums` of the numbers of paths from there to the end,
    and `below` tells how many of the members before are in the half that is the node below.
    """

    begin: np.ndarray  # uint64 (levels + 1,)
    held: np.ndarray  # uint64 (levels,)
    members: np.ndarray  # int32 (room,)
    vertices: np.ndarray  # int32 (room,)
    sums: np.ndarray  # int64 (room, limbs)
    below: np.ndarray  # int32 (room,)


@njit(cache=True, nogil=True)
def _set_out(ranks, limbs, starts, counts):
    """Return the events at which the paths with given ranks, in rising order, start, and their ranks among those."""
    size = len(limbs) if len(limbs) else ranks.shape[1]
    first = np.full(ranks.shape[0], counts.shape[0], np.int32)
    rest = ranks.copy()
    before = np.zeros(size, np.int64)
    i = 0
    for y in range(counts.shape[0]):
        if i == ranks.shape[0]:
            break
        if not starts[y]:
            continue
        while i < ranks.shape[0]:
            carry = over = 0
            for k in range(size):
                value = ranks[i, k] - before[k] + carry
                carry = value >> BITS
                rest[i, k] = value & MASK
                over = (rest[i, k] - counts[y, k] + over) >> BITS
            if over >= 0:
                break
            first[i] = y
            i += 1
        carry = 0
        for k in range(size):
            value = before[k] + counts[y, k] + carry
            carry = value >> BITS
            before[k] = value & MASK
    return first, rest


@njit(cache=True, nogil=True)
def _make_tree(order, place, size):
    """Return room for a tree, with the root; the root itself is never asked for sums."""
    n, top = place.shape[0], 0
    while 1 << top < n:
        top += 1
    begin, held = np.zeros(top + 2, np.uint64), np.zeros(top + 1, np.uint64)
    for h in range(top + 1):
        begin[h + 1] = begin[h] + np.uint64(min(1 << h, n) + 1)
    room = begin[top + 1]
    tree = TimeTree(
        begin, held, np.empty(room, np.int32), np.empty(room, np.int32),
        np.empty((max(begin[top], ONE), size), np.int64), np.empty(room, np.int32),
    )  # fmt: skip
    held[top] = order.shape[0]
    for i in range(order.shape[0]):
        tree.members[begin[top] + np.uint64(i)] = order[i]
        tree.vertices[begin[top] + np.uint64(i)] = place[order[i]]
    return tree


@njit(cache=True, nogil=True)
def _make_half(tree, h, y, counts, summed, limbs):
    """Make the node of level h the half of the one above it that begins at event y; `summed` if its sums are needed."""
    members, vertices, sums, below = tree.members, tree.vertices, tree.sums, tree.below
    size = np.uint64(len(limbs) if len(limbs) else counts.shape[1])
    begin, width = tree.begin[h], 1 << h
    end = begin
    for i in range(tree.begin[h + 1], tree.begin[h + 1] + tree.held[h + 1]):
        member = members[i]
        below[i] = end - begin
        members[end] = member
        vertices[end] = vertices[i]
        end += np.uint64(0 <= member - y < width)
    below[tree.begin[h + 1] + tree.held[h + 1]] = end - begin
    tree.held[h] = end - begin
    if not summed:
        return
    for k in range(size):
        sums[end, k] = 0
    i = end
    while i > begin:
        i -= ONE
        carry = 0
        for k in range(size):
            value = sums[i + ONE, k] + counts[np.uint64(members[i]), k] + carry
            carry = value >> BITS
            sums[i, k] = value & MASK


@njit(cache=True, nogil=True)
def _join(waiting, begin, end, tree, h, firsts, lasts, bound, bound_end, limbs, amount, cuts):
    """Ask the waiting from `begin` on whether they go to the node of level h; those who do are added to the bound.

    The others stay and have the paths of the node subtracted. Return the new ends of both.
    """
    vertices, sums = tree.vertices, tree.sums
    size, ranges = np.uint64(len(limbs) if len(limbs) else sums.shape[1]), np.uint64(len(firsts))
    node, node_end = tree.begin[h], tree.begin[h] + tree.held[h]
    kept, before = begin, -1
    for i in range(begin, end):
        x = waiting[i, size]
        if x != before:  # those who come from one event stand side by side
            before = x
            for k in range(size):
                amount[k] = 0
            for r in range(ranges):
                low, high = firsts[r][np.uint64(x)], lasts[r][np.uint64(x)]
                a = b = node_end
                if low < high and node < node_end:
                    a = np.uint64(first_at_least(vertices, node, node_end, low))
                    if high <= vertices[node_end - ONE]:
                        b = np.uint64(first_at_least(vertices, a, node_end, high))
                cuts[r] = (a - node) | (b - node) << HALF
                for k in range(size):
                    amount[k] += sums[a, k] - sums[b, k]
        who = waiting[i, size + ranges]
        carry = 0
        for k in range(size):  # written to both places, but only one of them gets an end behind it
            old = waiting[i, k]
            value = old - amount[k] + carry
            carry = value >> BITS
            bound[bound_end, k], waiting[kept, k] = old, value & MASK
        for r in range(ranges):
            bound[bound_end, size + r] = cuts[r]
        waiting[kept, size] = x
        bound[bound_end, size + ranges] = waiting[kept, size + ranges] = who
        goes = np.uint64(carry) >> SIGN
        bound_end += goes
        kept += ONE - goes
    return kept, bound_end


@njit(cache=True, nogil=True)
def _split(bound, begin, end, tree, h, left, left_end, right, right_end, firsts, limbs, amount, cuts, left_cuts):
    """Split those bound for the node above level h between its two parts, the left one being the node of level h.

    `left` or `right` may be `bound` itself, written from `begin` on. Return the new ends of both.
    """
    sums, below = tree.sums, tree.below
    size, ranges = np.uint64(len(limbs) if len(limbs) else sums.shape[1]), np.uint64(len(firsts))
    above, node, held = tree.begin[h + 1], tree.begin[h], tree.held[h]
    cuts[0] = -1
    for i in range(begin, end):
        same = True
        for r in range(ranges):
            same &= bound[i, size + r] == cuts[r]
        if not same:
            for k in range(size):
                amount[k] = 0
            for r in range(ranges):
                cuts[r] = bound[i, size + r]
                a, b = below[above + np.uint64(cuts[r] & LOW)], below[above + np.uint64(cuts[r] >> 32)]
                left_cuts[r] = np.uint64(a) | np.uint64(b) << HALF
                for k in range(size):
                    amount[k] += sums[node + np.uint64(a), k]
                if np.uint64(b) != held:
                    for k in range(size):
                        amount[k] -= sums[node + np.uint64(b), k]
        who = bound[i, size + ranges]
        for r in range(ranges):
            left[left_end, size + r], right[right_end, size + r] = left_cuts[r], cuts[r] - left_cuts[r]
        carry = 0
        for k in range(size):
            old = bound[i, k]
            value = old - amount[k] + carry
            carry = value >> BITS
            left[left_end, k], right[right_end, k] = old, value & MASK
        left[left_end, size + ranges] = right[right_end, size + ranges] = who
        goes = np.uint64(carry) >> SIGN
        left_end += goes
        right_end += ONE - goes
    return left_end, right_end


@njit(cache=True, nogil=True)
def _arrive(y, bound, begin, end, log, log_at, log_end, waiting, waiting_end, firsts, limbs, every, last):
    """Note that cursors arrive at event y; those whose paths do not end here wait. Return the new ends of both."""
    ranges = np.uint64(len(firsts))
    size = np.uint64(len(limbs)) if len(limbs) else np.uint64(bound.shape[1]) - ranges - ONE
    for i in range(begin, end):
        log[log_end], log_at[log_end] = bound[i, size + ranges], y
        log_end += ONE
        if last and not every:
            continue
        for k in range(size):
            waiting[waiting_end, k] = bound[i, k]
        waiting[waiting_end, size], waiting[waiting_end, size + ranges] = y, bound[i, size + ranges]
        if not (every and take_one(waiting[waiting_end, :size])):
            waiting_end += ONE
    return log_end, waiting_end


@njit(cache=True, nogil=True)
def _release(held, number, waiting, waiting_end):
    """Add those who were held up to the waiting, and return the new end of these."""
    for i in range(number):
        for k in range(held.shape[1]):
            waiting[waiting_end, k] = held[i, k]
        waiting_end += ONE
    return waiting_end


@njit(cache=True, nogil=True)
def unrank_many(ranks, limbs, order, window, counts):
    """Return the paths with given ranks, in rising order: which cursor arrives, one after another, at which event.

    Parameters
    ----------
    ranks : int64 (ranks, limbs)
        The ranks, rising, in limbs of `BITS` bits.
    limbs : tuple of int
        As many zeros as there are limbs, or none.
    order : int32 (events that may follow others,)
        These by vertex.
    window : IndexWindow
        The events of the task.
    counts : int64 (events, limbs)
        The number of paths from each event.

    Returns
    -------
    log, log_at : int32 (values,)
        The cursor (the place of its rank) and the event of every arrival, in time order; see `collect`.
    """
    later, place, firsts, lasts = window.later, window.place, window.firsts, window.lasts
    starts, ends, every = window.starts, window.ends, window.every
    n, number = place.shape[0], ranks.shape[0]
    size, ranges = len(limbs) if len(limbs) else counts.shape[1], len(firsts)
    tree = _make_tree(order, place, size)
    top = tree.held.shape[0] - 1
    first, first_rest = _set_out(ranks, limbs, starts, counts)
    shape = (number + 1, size + ranges + 1)  # one is written behind the last before it is known if it belongs there
    here, off = np.empty(shape, np.int64), np.empty(shape, np.int64)
    waiting, held = np.empty(shape, np.int64), np.empty(shape, np.int64)
    amount, cuts, left_cuts = np.zeros(size, np.int64), np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    put_off = np.zeros(top + 2, np.uint64)  # where those bound for the right half of the node of a level begin in `off`
    mark = np.zeros(n, np.uint64)  # how many were waiting when a node that begins at an event was reached
    log, log_at = np.empty(8 * number + 16, np.int32), np.empty(8 * number + 16, np.int32)
    none = here_end = off_end = waiting_end = held_end = log_end = np.uint64(0)
    y = due = gone = np.int64(0)
    while y < n:
        h, begin = top, none  # the node that begins at y: the root, or the right half of one
        if y > 0:
            h = 0
            while y >> h & 1 == 0:
                h += 1
            begin, marked = put_off[h + 1], mark[y - (1 << h)]
            _make_half(tree, h, y, counts, waiting_end > marked, limbs)
            waiting_end, off_end = _join(
                waiting, marked, waiting_end, tree, h, firsts, lasts, off, off_end, limbs, amount, cuts
            )
        mark[y] = waiting_end
        source, source_end, put = off, off_end, True  # those bound for the node, from `begin` on; were they put off?
        visit = first[gone] if gone < number else n
        if held_end > none:
            visit = min(visit, due)
        while h > 0 and (source_end > begin or visit < y + (1 << h)):
            h -= 1
            _make_half(tree, h, y, counts, source_end > begin, limbs)
            put_off[h + 1] = begin if put else off_end
            here_end, off_end = _split(
                source, begin, source_end, tree, h, here, none, off, put_off[h + 1], firsts, limbs, amount, cuts,
                left_cuts,
            )  # fmt: skip
            source, begin, source_end, put = here, none, here_end, False
        if h > 0:
            y += 1 << h
            continue
        while gone < number and first[gone] == y:
            source[source_end, size + ranges] = gone
            for k in range(size):
                source[source_end, k] = first_rest[gone, k]
            source_end += ONE
            gone += 1
        needed = log_end + source_end - begin
        if needed > log.shape[0]:
            log, log_at = grown(log, log_end, 2 * np.int64(needed)), grown(log_at, log_end, 2 * np.int64(needed))
        log_end, held_end = _arrive(
            y, source, begin, source_end, log, log_at, log_end, held, held_end, firsts, limbs, every, ends[y]
        )
        if put:
            off_end = begin
        due = later[y] - 1
        if due == y:  # those at events of one time are held up till all of them are passed
            waiting_end = _release(held, held_end, waiting, waiting_end)
            held_end = none
        y += 1
    return log[:log_end], log_at[:log_end]


@njit(cache=True, nogil=True)
def collect(log, log_at, shift, begin, events, ends):
    """Write the paths of cursors one after another into `events`, from `begin` on, and where each of them ends.

    `shift` is added to every event. `ends` has a place for each cursor and is 0.
    """
    for who in log:
        ends[who] += 1
    for who in range(ends.shape[0]):
        ends[who], begin = begin, begin + ends[who]
    for i in range(log.shape[0]):
        events[ends[log[i]]] = log_at[i] + shift
        ends[log[i]] += 1
