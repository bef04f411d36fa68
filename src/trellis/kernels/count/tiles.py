"""Counting one group in tiles: the pass over a tile, the sums of ranges of a column, and what is first over a range."""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.algebra import add_logs
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def _add(words, logs, to, more, more_logs, source, moduli):
    """Add a row of numbers to another."""
    for w in range(moduli.shape[0]):
        total = words[to, w] + more[source, w]
        words[to, w] = total - moduli[w] if moduli[w] != 0 and total >= moduli[w] else total
    logs[to] = add_logs(logs[to], more_logs[source])


@njit(cache=True, nogil=True)
def _add_range(words, logs, to, tree, tree_logs, low, high, moduli):
    """Add what a tree of sums holds from leaf `low` to before `high`; nothing is taken away again."""
    half = tree.shape[0] // 2
    low, high = low + half, high + half
    while low < high:
        if low & 1:
            _add(words, logs, to, tree, tree_logs, low, moduli)
            low += 1
        if high & 1:
            high -= 1
            _add(words, logs, to, tree, tree_logs, high, moduli)
        low, high = low >> 1, high >> 1


@njit(cache=True, nogil=True)
def add_rows(words, logs, rows, more, more_logs, moduli):
    """Add numbers to the rows that are named, each as often as it is named.

    Parameters
    ----------
    words, logs : uint64 (numbers, words), float64 (numbers,)
        The numbers that are added to, and their binary logarithms.
    rows : int64 (added,)
        Which of them each number is added to.
    more, more_logs : uint64 (added, words), float64 (added,)
        The numbers that are added, and their binary logarithms.
    moduli : uint64 (words,)
        What numbers are counted modulo; 0: modulo 2**64.
    """
    for i in range(rows.shape[0]):
        _add(words, logs, rows[i], more, more_logs, i, moduli)


@njit(cache=True, nogil=True)
def solve_tile(tick, place, low, high, every, moduli, words, logs):
    """Count the paths from each event of a tile on, in place: `words` and `logs` have what later tiles add to each.

    Parameters
    ----------
    tick : int32 (events,)
        Rising numbers, equal where neither of two events comes first.
    place : int64 (events,)
        The place of each event among those of the tile that may follow any, in the order of values; -1: none.
    low, high : int64 (events,)
        What may follow an event stands from `low` to before `high`.
    every : bool
        Whether a path may end anywhere, or only where nothing follows.
    moduli : uint64 (words,)
        What numbers are counted modulo; 0: modulo 2**64.
    words, logs : uint64 (events, words), float64 (events,)
        The numbers, and their binary logarithms.

    Returns
    -------
    bool (events,)
        Whether nothing follows an event.
    """
    events, count, width = tick.shape[0], 0, moduli.shape[0]
    ends = np.zeros(events, np.bool_)
    for x in range(events):
        count += place[x] >= 0
    tree, tree_logs = np.zeros((2 * count, width), np.uint64), np.full(2 * count, -np.inf)
    end = events
    while end > 0:
        begin = end - 1
        while begin > 0 and tick[begin - 1] == tick[end - 1]:
            begin -= 1
        for x in range(begin, end):
            _add_range(words, logs, x, tree, tree_logs, low[x], high[x], moduli)
            ends[x] = logs[x] == -np.inf
            if every or ends[x]:
                for w in range(width):
                    total = words[x, w] + np.uint64(1)
                    words[x, w] = np.uint64(0) if moduli[w] != 0 and total == moduli[w] else total
                logs[x] = add_logs(logs[x], 0.0)
        for x in range(begin, end):
            if place[x] >= 0:
                node = place[x] + count
                while node > 0:
                    _add(tree, tree_logs, node, words, logs, x, moduli)
                    node >>= 1
        end = begin
    return ends


@njit(cache=True, nogil=True)
def walk_tile(tick, place, low, high, starts, ends, every, numbers, begins, ranks):
    """Follow trends through a tile, by their ranks among those that go on in the same way.

    Parameters
    ----------
    tick : int32 (events,)
        Rising numbers, equal where neither of two events comes first.
    place, low, high : int64 (events,)
        The place of each event in the order of values, -1 for none; what may follow it stands from `low` to before
        `high`.
    starts, ends : bool (events,)
        Whether a trend begins with an event, and whether nothing follows it.
    every : bool
        Whether a trend may end anywhere.
    numbers : uint64 (events,)
        How many trends go on from each event.
    begins : int64 (trends, 2)
        The places from which on, and before which, the next event of each trend stands; -1 for one that begins here.
    ranks : uint64 (trends,)
        Its rank among the trends that go on with an event of this tile or of a later one; in place, among those left.

    Returns
    -------
    events, bounds : int64 (found,), int64 (trends + 1,)
        The events of the trends in this tile: those of trend `i` from `bounds[i]` to before `bounds[i + 1]`.
    done : bool (trends,)
        Whether a trend ends here.
    """
    trends, count = begins.shape[0], 0
    found, bounds = np.empty(64, np.int64), np.zeros(trends + 1, np.int64)
    done = np.zeros(trends, np.bool_)
    for i in range(trends):
        first, last, x = begins[i, 0], begins[i, 1], 0
        while x < tick.shape[0] and not done[i]:
            fits = starts[x] if first < 0 else first <= place[x] < last
            if not fits or ranks[i] >= numbers[x]:
                ranks[i] -= numbers[x] if fits else np.uint64(0)
                x += 1
                continue
            if count == found.shape[0]:
                found = np.append(found, np.empty(count, np.int64))
            found[count] = x
            count += 1
            done[i] = ranks[i] == 0 if every else ends[x]
            ranks[i] -= np.uint64(every and not done[i])
            first, last, now = low[x], high[x], tick[x]
            while x < tick.shape[0] and tick[x] == now:
                x += 1
        bounds[i + 1] = count
    return found[:count], bounds, done


@njit(cache=True, nogil=True)
def fill_tree(tree, logs, moduli):
    """Add up a tree of sums whose leaves, the second half of it, have their numbers."""
    for node in range(tree.shape[0] // 2 - 1, 0, -1):
        _add(tree, logs, node, tree, logs, 2 * node, moduli)
        _add(tree, logs, node, tree, logs, 2 * node + 1, moduli)


@njit(cache=True, nogil=True)
def sums_of_ranges(tree, tree_logs, low, high, moduli):
    """Return the sums of the numbers that stand from `low[i]` to before `high[i]`, and their binary logarithms.

    Parameters
    ----------
    tree, tree_logs : uint64 (2 * places, words), float64 (2 * places,)
        The tree of sums of the numbers at all places, filled, and their binary logarithms.
    low, high : int64 (sums,)
        The range of places of each sum.
    moduli : uint64 (words,)
        What numbers are counted modulo; 0: modulo 2**64.
    """
    words, logs = np.zeros((low.shape[0], moduli.shape[0]), np.uint64), np.full(low.shape[0], -np.inf)
    for i in range(low.shape[0]):
        _add_range(words, logs, i, tree, tree_logs, low[i], high[i], moduli)
    return words, logs


@njit(cache=True, nogil=True)
def first_over(size, low, high, times, never):
    """Return for each of `size` places the first of rising times whose range `[low, high)` holds it, else `never`."""
    found = np.full(size, never, np.int64)
    following = np.arange(size + 1)  # the next place without a time
    for i in range(times.shape[0]):
        place = low[i]
        while True:
            root = place
            while following[root] != root:
                root = following[root]
            while following[place] != root:
                following[place], place = root, following[place]
            if root >= high[i]:
                break
            found[root] = times[i]
            following[root] = root + 1
            place = root + 1
    return found
