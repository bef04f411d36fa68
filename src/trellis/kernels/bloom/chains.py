"""Chains of leaves: where the steps of a word may lie, one after another.

A word is a list of blocks, a block one or several sets of names that may come in any order (AND). `has[e]` tells the
leaves that may hold a name of the set `e`; the sets of block `b` are `blocks[b]` to `blocks[b + 1]`. Between two blocks
a chain goes on at least `gaps[b]` leaves (0 or 1) after the last leaf of the block before, and no earlier than
`strict[leaf]`. `limit[a]` is the last leaf that a chain from `a` may end in, -1 where none may start.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def nexts(has):
    """Return for each set and leaf the first leaf from there on that may hold it; the number of leaves if none does."""
    sets, size = has.shape
    out = np.empty((sets, size + 2), np.int32)
    for e in range(sets):
        found = size
        out[e, size] = out[e, size + 1] = size
        for leaf in range(size - 1, -1, -1):
            if has[e, leaf]:
                found = leaf
            out[e, leaf] = found
    return out


@njit(cache=True, nogil=True)
def go_on(starts, ends, leaves, gap):
    """Take chains to the first of some leaves, `gap` or more behind their ends, in place; return how many go on.

    Ends and leaves never go back, so one pass over both finds all.
    """
    number = j = 0
    for i in range(starts.shape[0]):
        while j < leaves.shape[0] and leaves[j] < ends[i] + gap:
            j += 1
        if j == leaves.shape[0]:
            break
        starts[number], ends[number] = starts[i], leaves[j]
        number += 1
    return number


@njit(cache=True, nogil=True)
def befores(has):
    """Return for each set and leaf the last leaf up to there that may hold it; -1 if none does."""
    sets, size = has.shape
    out = np.empty((sets, size), np.int32)
    for e in range(sets):
        found = -1
        for leaf in range(size):
            if has[e, leaf]:
                found = leaf
            out[e, leaf] = found
    return out


@njit(cache=True, nogil=True)
def _block_end(after, blocks, b, low):
    """Return the earliest leaf at which all sets of a block have come, from a leaf on."""
    end = low
    for e in range(blocks[b], blocks[b + 1]):
        end = max(end, after[e, low])
    return end


@njit(cache=True, nogil=True)
def first_ends(has, after, blocks, gaps, strict, limit, out):
    """Write for each leaf the earliest end of a chain that starts there, -1 without one."""
    size = has.shape[1]
    for a in range(size):
        out[a] = -1
        starts = False
        for e in range(blocks[0], blocks[1]):
            starts |= has[e, a]
        if not starts or limit[a] < a:
            continue
        end = _block_end(after, blocks, 0, a)
        for b in range(1, blocks.shape[0] - 1):
            if end >= size:
                break
            low = max(end + gaps[b - 1], strict[end])
            end = size if low >= size else _block_end(after, blocks, b, low)
        if end <= limit[a]:
            out[a] = end


@njit(cache=True, nogil=True)
def _add_ends(has, after, blocks, b, one, begin, limit, out):
    """Add the leaves in which a block may end whose first step is the set `one` in the leaf `begin`."""
    end = begin
    for e in range(blocks[b], blocks[b + 1]):
        if e != one:
            end = max(end, after[e, begin])
    for leaf in range(end, limit + 1):
        if leaf == begin:
            out[leaf] = True
            continue
        for e in range(blocks[b], blocks[b + 1]):
            if e != one and has[e, leaf]:
                out[leaf] = True


@njit(cache=True, nogil=True)
def add_ends(has, after, blocks, first, limit, a, out):
    """Add the leaves that chains from a start may end in, under skip-till-any."""
    if first[a] < 0:
        return
    end = min(limit[a], has.shape[1] - 1)
    if blocks.shape[0] == 2:
        for e in range(blocks[0], blocks[1]):
            if has[e, a]:
                _add_ends(has, after, blocks, 0, e, a, end, out)
        return
    for e in range(blocks[-2], blocks[-1]):
        for leaf in range(first[a], end + 1):
            out[leaf] |= has[e, leaf]


@njit(cache=True, nogil=True)
def _ends_of_block(has, after, blocks, first, limit, last, number):
    """Do as `ends_of` for a word of one block."""
    size = has.shape[1]
    reached = np.zeros(size, np.bool_)
    for a in range(size):
        if first[a] < 0:
            continue
        end = min(limit[a], size - 1)
        reached[a : end + 1] = False
        for e in range(blocks[0], blocks[1]):
            if has[e, a]:
                _add_ends(has, after, blocks, 0, e, a, end, reached)
        number[a] = 0
        for leaf in range(a, end + 1):
            if reached[leaf]:
                number[a] += 1
                last[a] = leaf


@njit(cache=True, nogil=True)
def ends_of(has, after, blocks, first, limit, last, number):
    """Write for each start the last end of a chain, and the number of its ends, under skip-till-any."""
    if blocks.shape[0] == 2:
        _ends_of_block(has, after, blocks, first, limit, last, number)
        return
    size = has.shape[1]
    counts = np.zeros(size + 1, np.int64)
    before = np.full(size, -1, np.int32)
    b = blocks.shape[0] - 2
    found = -1
    for leaf in range(size):
        here = False
        for e in range(blocks[b], blocks[b + 1]):
            here |= has[e, leaf]
        if here:
            found = leaf
        before[leaf] = found
        counts[leaf + 1] = counts[leaf] + here
    for a in range(size):
        if first[a] >= 0:
            end = min(limit[a], size - 1)
            last[a] = before[end]
            number[a] = counts[end + 1] - counts[first[a]]


@njit(cache=True, nogil=True)
def mark(has, after, before, blocks, gaps, strict, first, limit, marks):
    """Mark the leaves that lie, as some step, on some chain."""
    size, number = has.shape[1], blocks.shape[0] - 1
    rises = np.zeros((has.shape[0], size + 2), np.int64)
    low, high = np.empty(number, np.int64), np.empty(number, np.int64)
    for a in range(size):
        if first[a] < 0:
            continue
        low[0] = a
        end = _block_end(after, blocks, 0, a)
        for b in range(1, number):
            low[b] = max(end + gaps[b - 1], strict[end])
            end = _block_end(after, blocks, b, low[b])
        upper = min(limit[a], size - 1)
        for b in range(number - 1, -1, -1):
            high[b] = upper
            begin = upper
            for e in range(blocks[b], blocks[b + 1]):
                begin = min(begin, before[e, upper])
            upper = begin - (gaps[b - 1] if b else 0)
        for b in range(number):
            for e in range(blocks[b], blocks[b + 1]):
                end = high[b]
                if b == 0:  # the first step is in the first leaf: this one there, or another
                    others = False
                    for other in range(blocks[0], blocks[1]):
                        others |= other != e and has[other, a]
                    end = end if others else a
                if low[b] <= end:
                    rises[e, low[b]] += 1
                    rises[e, end + 1] -= 1
    for e in range(has.shape[0]):
        inside = 0
        for leaf in range(size):
            inside += rises[e, leaf]
            if inside and has[e, leaf]:
                marks[leaf] = True


@njit(cache=True, nogil=True)
def clear_ends(has, after, blocks, gaps, strict, forbidden, start, limit, reached, other):
    """Write which leaves a chain from a start may end in that has no forbidden name in a gap, both ends included.

    `forbidden[b, leaf]` is the first leaf from there on that may hold what is forbidden before block `b + 1`.
    """
    size, number = has.shape[1], blocks.shape[0] - 1
    reached[:] = False
    for e in range(blocks[0], blocks[1]):
        if has[e, start]:
            _add_ends(has, after, blocks, 0, e, start, limit, reached)
    for b in range(1, number):
        other[:] = False
        single = blocks[b + 1] - blocks[b] == 1
        for e in range(blocks[b], blocks[b + 1]):
            earliest = size
            for leaf in range(start, limit + 1):
                if not reached[leaf]:
                    continue
                low, behind = max(leaf + gaps[b - 1], strict[leaf]), min(forbidden[b - 1, leaf], limit + 1)
                if single:
                    for target in range(low, behind):
                        other[target] |= has[e, target]
                elif low < behind and after[e, low] < behind:
                    earliest = min(earliest, after[e, low])
            if not single and earliest < size:
                _add_ends(has, after, blocks, b, e, earliest, limit, other)
        reached[:] = other


@njit(cache=True, nogil=True)
def clear_first_ends(has, gaps, strict, forbidden, out):
    """Write for each leaf the earliest end of a chain from there that has no forbidden name in a gap, -1 without one.

    For blocks of one set each. From behind: the next step lies between two leaves, which never go back from one leaf to
    the next, and the best of these is kept in a queue.
    """
    number, size = has.shape
    best = np.where(has[number - 1], np.arange(size), size).astype(np.int32)
    queue = np.empty(size + 1, np.int64)
    for b in range(number - 2, -1, -1):
        head, tail, seen = 0, 0, 0
        for leaf in range(size):
            low, behind = max(leaf + gaps[b], strict[leaf]), min(size, forbidden[b, leaf])
            while seen < behind:
                while tail > head and best[queue[tail - 1]] >= best[seen]:
                    tail -= 1
                queue[tail] = seen
                tail += 1
                seen += 1
            while tail > head and queue[head] < low:
                head += 1
            out[leaf] = best[queue[head]] if has[b, leaf] and tail > head and queue[head] < behind else size
        best[:] = out
    for leaf in range(size):
        out[leaf] = best[leaf] if best[leaf] < size else -1


@njit(cache=True, nogil=True)
def clear_rows(has, after, blocks, gaps, strict, forbidden, first, limit, only_first, out):
    """Tell for each start whether some chain to its first end, or to any, has nothing forbidden in its gaps."""
    size = has.shape[1]
    reached, other = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for a in range(size):
        if first[a] < 0 or out[a]:
            continue
        end = first[a] if only_first else min(limit[a], size - 1)
        clear_ends(has, after, blocks, gaps, strict, forbidden, a, end, reached, other)
        if only_first:
            out[a] = reached[end]
        else:
            out[a] = reached.any()
