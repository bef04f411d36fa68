"""Counts tasks of the index several at a time: windows and spans that overlap share a way through the events."""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.algebra import add, gather, settle, step
from trellis.kernels.jit import njit

ABREAST = 16  # tasks that go through the events together; written out, so that they become wide loads and stores


@njit(cache=True, nogil=True, neighbours=True)
def count_abreast(algebra, shape, events, tasks):
    """Count as `count` does, for tasks of the shape `Segments`, `ABREAST` tasks of one part at a time.

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
    ranges = first.shape[0]
    inner_lo, inner_hi, outer_hi, inner_end = tasks.lo[behind - 1], tasks.hi[t], tasks.hi[behind - 1], first_ends.max()
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
            r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = algebra.zero
            r8 = r9 = r10 = r11 = r12 = r13 = r14 = r15 = algebra.zero
            for r in range(ranges):
                end = np.int64(last[r, v])
                i = end - first[r, v]
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
                    r8 = gather(algebra, r8, tree[node, 8])
                    r9 = gather(algebra, r9, tree[node, 9])
                    r10 = gather(algebra, r10, tree[node, 10])
                    r11 = gather(algebra, r11, tree[node, 11])
                    r12 = gather(algebra, r12, tree[node, 12])
                    r13 = gather(algebra, r13, tree[node, 13])
                    r14 = gather(algebra, r14, tree[node, 14])
                    r15 = gather(algebra, r15, tree[node, 15])
                    i &= i - 1
            at = y - begin
            inside = inner_lo <= y < inner_hi and usable[y]
            ends = every or (nearest[y] >= outer_hi and y >= inner_end)
            if (
                inside
                and (ends or (not every and nearest[y] < inner_hi))
                and (not t <= starts[y] < behind if single else latest[y] >= inner_lo and not every)
            ):
                # In the range of every column, where none of them starts, and all may end or none.
                rows[at, 0] = step(algebra, settle(algebra, r0), ends)
                rows[at, 1] = step(algebra, settle(algebra, r1), ends)
                rows[at, 2] = step(algebra, settle(algebra, r2), ends)
                rows[at, 3] = step(algebra, settle(algebra, r3), ends)
                rows[at, 4] = step(algebra, settle(algebra, r4), ends)
                rows[at, 5] = step(algebra, settle(algebra, r5), ends)
                rows[at, 6] = step(algebra, settle(algebra, r6), ends)
                rows[at, 7] = step(algebra, settle(algebra, r7), ends)
                rows[at, 8] = step(algebra, settle(algebra, r8), ends)
                rows[at, 9] = step(algebra, settle(algebra, r9), ends)
                rows[at, 10] = step(algebra, settle(algebra, r10), ends)
                rows[at, 11] = step(algebra, settle(algebra, r11), ends)
                rows[at, 12] = step(algebra, settle(algebra, r12), ends)
                rows[at, 13] = step(algebra, settle(algebra, r13), ends)
                rows[at, 14] = step(algebra, settle(algebra, r14), ends)
                rows[at, 15] = step(algebra, settle(algebra, r15), ends)
                continue
            row[0], row[1], row[2], row[3] = r0, r1, r2, r3
            row[4], row[5], row[6], row[7] = r4, r5, r6, r7
            row[8], row[9], row[10], row[11] = r8, r9, r10, r11
            row[12], row[13], row[14], row[15] = r12, r13, r14, r15
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
                r8, r9, r10, r11 = rows[at, 8], rows[at, 9], rows[at, 10], rows[at, 11]
                r12, r13, r14, r15 = rows[at, 12], rows[at, 13], rows[at, 14], rows[at, 15]
                zero = algebra.zero  # few events of a span lead to where its trends may end
                zero0 = r0 == zero and r1 == zero and r2 == zero and r3 == zero
                zero1 = r4 == zero and r5 == zero and r6 == zero and r7 == zero
                zero2 = r8 == zero and r9 == zero and r10 == zero and r11 == zero
                zero3 = r12 == zero and r13 == zero and r14 == zero and r15 == zero
                if zero0 and zero1 and zero2 and zero3:
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
                    t8 = add(algebra, tree[node, 8], r8)
                    t9 = add(algebra, tree[node, 9], r9)
                    t10 = add(algebra, tree[node, 10], r10)
                    t11 = add(algebra, tree[node, 11], r11)
                    t12 = add(algebra, tree[node, 12], r12)
                    t13 = add(algebra, tree[node, 13], r13)
                    t14 = add(algebra, tree[node, 14], r14)
                    t15 = add(algebra, tree[node, 15], r15)
                    tree[node, 0], tree[node, 1], tree[node, 2], tree[node, 3] = t0, t1, t2, t3
                    tree[node, 4], tree[node, 5], tree[node, 6], tree[node, 7] = t4, t5, t6, t7
                    tree[node, 8], tree[node, 9], tree[node, 10], tree[node, 11] = t8, t9, t10, t11
                    tree[node, 12], tree[node, 13], tree[node, 14], tree[node, 15] = t12, t13, t14, t15
                    i += i & -i
        x = begin - 1
