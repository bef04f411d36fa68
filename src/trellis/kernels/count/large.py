"""Count a large task on the attribute index: the number of paths as a float and modulo three primes, in one pass.

A Fenwick tree over millions of attribute vertices misses the processor's caches at nearly every step. So the events
are taken block by block, from the last to the first. Inside a block a tree over the vertices of the block alone is
small enough for the caches. What later blocks have is read from two flat arrays, the values of the vertices and the
sums of `BUCKET` vertices each, for all events of a block at once: none of these reads waits for another.

The shape is `trellis.kernels.count.shapes.Tails` with one segment, and the rules are those of `one_pass` there.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.arrays import ones
from trellis.kernels.jit import njit

SHIFT = 4
BUCKET = 1 << SHIFT  # with a block's tree at most 64 residues below 2**58 are added before a remainder is taken
PRIMES, BITS = 3, 58  # the primes are a little below 2**BITS


@register_jitable
def _fold(total, prime, rest):
    """Return the remainder of a sum of at most 64 residues: see `trellis.kernels.count.algebra.Modulo`."""
    high = total >> np.uint64(BITS)
    folded = total - (high << np.uint64(BITS)) + high * rest
    return folded - prime if folded >= prime else folded


@register_jitable
def _add(a, b, prime):
    """Add two residues."""
    total = a + b
    return total - prime if total >= prime else total


@njit(cache=True, nogil=True)
def count_large(primes, shape, events, tasks, t, block):
    """Return the number of paths of one task that is not single: as a float, and modulo each of three primes.

    `block` is the number of events that are taken together; a block ends where a time does.
    """
    lo, hi, first_end, every, offset = tasks.lo[t], tasks.hi[t], tasks.first_end[t], tasks.every, tasks.offset[t]
    nearest, latest, usable, later = events.nearest, events.latest, events.usable, events.later
    place, first, last, width = shape.place, shape.first, shape.last, tasks.width[t]
    p0, p1, p2 = np.uint64(primes[0]), np.uint64(primes[1]), np.uint64(primes[2])
    one, power = np.uint64(1), np.uint64(1) << np.uint64(BITS)
    q0, q1, q2 = power - p0, power - p1, power - p2
    # A row is three residues and, in the same bytes as an unsigned number, a float.
    leaf, bucket = np.zeros((width, 4), np.uint64), np.zeros(((width >> SHIFT) + 2, 4), np.uint64)
    above, tree = np.zeros_like(bucket), np.zeros((block, 4), np.uint64)
    leaf_f, bucket_f, above_f = leaf.view(np.float64), bucket.view(np.float64), above.view(np.float64)
    held, before = np.zeros((width >> 6) + 1, np.uint64), np.zeros((width >> 6) + 2, np.int32)
    own, after, row = np.zeros(block, np.int32), np.zeros(block, np.int32), np.zeros((block, 4), np.uint64)
    row_f, tree_f = row.view(np.float64), tree.view(np.float64)
    total0 = total1 = total2 = np.uint64(0)
    total_f = 0.0
    stop = hi
    while stop > lo:
        start = max(lo, stop - block)
        while start > lo and later[start - 1] == later[start]:
            start -= 1
        size = stop - start
        if size > own.shape[0]:
            own, after, row = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros((size, 4), np.uint64)
            tree = np.zeros((size, 4), np.uint64)
            row_f, tree_f = row.view(np.float64), tree.view(np.float64)
        # The vertices of the block, numbered among themselves.
        held[:] = 0
        for y in range(start, stop):
            w = place[y + offset]
            if w >= 0:
                held[w >> 6] |= one << np.uint64(w & 63)
        for w in range(held.shape[0]):
            before[w + 1] = before[w] + ones(held[w])
        inside = np.int64(before[held.shape[0]])
        tree[:inside] = 0
        # What later blocks have, of all buckets from one on.
        for k in range(bucket.shape[0] - 2, -1, -1):
            above[k, 0] = _add(above[k + 1, 0], bucket[k, 0], p0)
            above[k, 1] = _add(above[k + 1, 1], bucket[k, 1], p1)
            above[k, 2] = _add(above[k + 1, 2], bucket[k, 2], p2)
            above_f[k, 3] = above_f[k + 1, 3] + bucket_f[k, 3]
        for y in range(start, stop):
            at = y - start
            v = np.int64(place[y + offset])
            if v >= 0:
                own[at] = before[v >> 6] + ones(held[v >> 6] & ((one << np.uint64(v & 63)) - one))
            v = np.int64(first[y + offset] if first[y + offset] < last[y + offset] else width)
            after[at] = before[v >> 6] + ones(held[v >> 6] & ((one << np.uint64(v & 63)) - one))
            b = (v >> SHIFT) + 1
            r0, r1, r2, rf = above[b, 0], above[b, 1], above[b, 2], above_f[b, 3]
            for w in range(v, min(b << SHIFT, width)):
                r0 += leaf[w, 0]
                r1 += leaf[w, 1]
                r2 += leaf[w, 2]
                rf += leaf_f[w, 3]
            row[at, 0], row[at, 1], row[at, 2] = r0, r1, r2
            row_f[at, 3] = rf
        # The block by itself, one time after the other.
        x = stop - 1
        while x >= start:
            begin = x
            while begin > start and later[begin - 1] == later[x]:
                begin -= 1
            for y in range(begin, x + 1):
                at = y - start
                r0, r1, r2, rf = row[at, 0], row[at, 1], row[at, 2], row_f[at, 3]
                i = inside - after[at]
                while i > 0:
                    node = inside - i
                    r0 += tree[node, 0]
                    r1 += tree[node, 1]
                    r2 += tree[node, 2]
                    rf += tree_f[node, 3]
                    i &= i - 1
                if every or (nearest[y] >= hi and y >= first_end):
                    r0, r1, r2, rf = r0 + one, r1 + one, r2 + one, rf + 1.0
                r0, r1, r2 = _fold(r0, p0, q0), _fold(r1, p1, q1), _fold(r2, p2, q2)
                if not usable[y]:
                    r0 = r1 = r2 = np.uint64(0)
                    rf = 0.0
                elif every or latest[y] < lo:
                    total0, total1, total2 = _add(total0, r0, p0), _add(total1, r1, p1), _add(total2, r2, p2)
                    total_f += rf
                row[at, 0], row[at, 1], row[at, 2] = r0, r1, r2
                row_f[at, 3] = rf
            for y in range(begin, x + 1):
                if place[y + offset] >= 0:
                    at = y - start
                    r0, r1, r2, rf = row[at, 0], row[at, 1], row[at, 2], row_f[at, 3]
                    i = inside - own[at]
                    while i <= inside:
                        node = inside - i
                        tree[node, 0] = _add(tree[node, 0], r0, p0)
                        tree[node, 1] = _add(tree[node, 1], r1, p1)
                        tree[node, 2] = _add(tree[node, 2], r2, p2)
                        tree_f[node, 3] += rf
                        i += i & -i
            x = begin - 1
        for y in range(start, stop):
            v = np.int64(place[y + offset])
            if v >= 0:
                at, b = y - start, v >> SHIFT
                leaf[v, 0] = _add(leaf[v, 0], row[at, 0], p0)
                leaf[v, 1] = _add(leaf[v, 1], row[at, 1], p1)
                leaf[v, 2] = _add(leaf[v, 2], row[at, 2], p2)
                leaf_f[v, 3] += row_f[at, 3]
                bucket[b, 0] = _add(bucket[b, 0], row[at, 0], p0)
                bucket[b, 1] = _add(bucket[b, 1], row[at, 1], p1)
                bucket[b, 2] = _add(bucket[b, 2], row[at, 2], p2)
                bucket_f[b, 3] += row_f[at, 3]
        stop = start
    return total_f, total0, total1, total2
