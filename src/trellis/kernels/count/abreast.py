"""Counts tasks of the shape `Tails` several at a time: windows that overlap share a way through the events."""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.algebra import add, gather, settle, step
from trellis.kernels.jit import njit

ABREAST = 8  # tasks that go through the events together; written out, so that they become wide loads and stores


@njit(cache=True, nogil=True)
def count_abreast(algebra, shape, events, tasks):
    """Count as `count` does, for tasks of the shape `Tails`, `ABREAST` tasks of one part at a time.

    The tasks of a part follow one another with rising `lo` and `hi`; each node of the tree is a row of columns, one for
    each task.
    """
    totals = np.full(tasks.lo.shape[0], algebra.zero)
    width = tasks.width.max() if tasks.width.shape[0] else 0
    tree = np.empty((width, ABREAST), totals.dtype)
    t = 0
    while t < tasks.lo.shape[0]:
        behind = t + 1
        most = min(tasks.lo.shape[0], t + ABREAST)
        # Parts can begin at the same event, and can have the same offset, but not both.
        while behind < most and tasks.part[behind] == tasks.part[t] and tasks.offset[behind] == tasks.offset[t]:
            behind += 1
        tree[: tasks.width[t]] = algebra.zero
        _pass_abreast(algebra, shape, events, tasks, t, behind, tree, totals)
        t = behind
    return totals


@njit(cache=True, nogil=True)
def _pass_abreast(algebra, shape, events, tasks, t, behind, tree, totals):
    offset, columns, every, single, starts = tasks.offset[t], behind - t, tasks.every, tasks.single, tasks.starts
    los, his, first_ends = tasks.lo[t:behind], tasks.hi[t:behind], tasks.first_end[t:behind]
    nearest, latest, usable, later = events.nearest, events.latest, events.usable, events.later
    place, first, last, own, own_end = shape.place, shape.first, shape.last, shape.own, shape.own_end
    lo, x = tasks.lo[t], tasks.hi[behind - 1] - 1
    inner_lo, inner_hi = tasks.lo[behind - 1], tasks.hi[t]
    row = np.full(ABREAST, algebra.zero)
    rows = np.full((16, ABREAST), algebra.zero)
    while x >= lo:
        begin = x
        while begin > lo and later[begin - 1] == later[x]:
            begin -= 1
        if x - begin >= rows.shape[0]:
            rows = np.full((x - begin + 1, ABREAST), algebra.zero)
        for y in range(begin, x + 1):
            v = y + offset
            end = np.int64(last[v])
            r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = algebra.zero
            i = end - first[v]
            while i > 0:
                node = np.uintp(end - i)
                r0 = gather(algebra, r0, tree[node, 0])
                r1 = gather(algebra, r1, tree[node, 1])
                r2 = gather(algebra, r2, tree[node, 2])
                r3 = gather(algebra, r3, tree[node, 3])
                r4 = gather(algebra, r4, tree[node, 4])
                r5 = gather(algebra, r5, tree[node, 5])
                r6 = gather(algebra, r6, tree[node, 6])
                r7 = gather(algebra, r7, tree[node, 7])
                i &= i - 1
            at = y - begin
            inside = columns == ABREAST and inner_lo <= y and nearest[y] < inner_hi and not every
            if inside and (not t <= starts[y] < behind if single else latest[y] >= inner_lo):
                # In the range of every column, where none of them starts or ends.
                rows[at, 0] = settle(algebra, r0)
                rows[at, 1] = settle(algebra, r1)
                rows[at, 2] = settle(algebra, r2)
                rows[at, 3] = settle(algebra, r3)
                rows[at, 4] = settle(algebra, r4)
                rows[at, 5] = settle(algebra, r5)
                rows[at, 6] = settle(algebra, r6)
                rows[at, 7] = settle(algebra, r7)
                continue
            row[0] = r0
            row[1] = r1
            row[2] = r2
            row[3] = r3
            row[4] = r4
            row[5] = r5
            row[6] = r6
            row[7] = r7
            for z in range(columns):
                value = algebra.zero
                if usable[y] and los[z] <= y < his[z]:
                    may_end = every or (nearest[y] >= his[z] and y >= first_ends[z])
                    value = step(algebra, settle(algebra, row[z]), may_end)
                    if starts[y] == t + z if single else every or latest[y] < los[z]:
                        totals[t + z] = add(algebra, totals[t + z], value)
                rows[at, z] = value
        for y in range(begin, x + 1):
            v = y + offset
            if place[v] >= 0:
                end = np.int64(own_end[v])
                size, i = end - own[v], end - place[v]
                at = y - begin
                r0, r1, r2, r3 = rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3]
                r4, r5, r6, r7 = rows[at, 4], rows[at, 5], rows[at, 6], rows[at, 7]
                zero = algebra.zero  # few events of a span lead to where its trends may end
                front = r0 == zero and r1 == zero and r2 == zero and r3 == zero
                if front and r4 == zero and r5 == zero and r6 == zero and r7 == zero:
                    continue
                while i <= size:
                    node = np.uintp(end - i)
                    t0 = add(algebra, tree[node, 0], r0)
                    t1 = add(algebra, tree[node, 1], r1)
                    t2 = add(algebra, tree[node, 2], r2)
                    t3 = add(algebra, tree[node, 3], r3)
                    t4 = add(algebra, tree[node, 4], r4)
                    t5 = add(algebra, tree[node, 5], r5)
                    t6 = add(algebra, tree[node, 6], r6)
                    t7 = add(algebra, tree[node, 7], r7)
                    tree[node, 0] = t0
                    tree[node, 1] = t1
                    tree[node, 2] = t2
                    tree[node, 3] = t3
                    tree[node, 4] = t4
                    tree[node, 5] = t5
                    tree[node, 6] = t6
                    tree[node, 7] = t7
                    i += i & -i
        x = begin - 1
