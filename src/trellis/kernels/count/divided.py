"""Numbers of paths of spans that overlap, where few attribute vertices hold all successors.

Spans that begin before the end of another are divided there. What an event of the earlier part leads to is one number
for each attribute vertex, by which the paths go on into the later part, and one for those that end before it; what an
attribute vertex leads to in the later part is one number for each end. So each part is gone through once for all spans,
and a span takes a product of two short rows.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.count.algebra import add, times
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def count_divided(algebra, place, first, last, events, tasks):
    """Return the number of paths of each task, as `passes.count` does.

    The tasks are single, those of a part follow one another with rising `lo` and `hi`, and whether a path may end at an
    event does not depend on the task, but for `first_end`, which is not behind `lo` where paths may end anywhere.

    Parameters
    ----------
    algebra : Floats or Logs or Modulo
        How numbers are added and multiplied.
    place, first, last : arrays
        The attribute vertex of each event of the index, and the ranges of those of its successors, a row for each.
    events : EventNeighbours
        The neighbours of each event.
    tasks : PassTasks
        The tasks.
    """
    totals = np.full(tasks.lo.shape[0], algebra.zero)
    starts, part, offset = tasks.starts, tasks.part, tasks.offset
    t = 0
    while t < tasks.lo.shape[0]:
        behind = t + 1
        while behind < tasks.lo.shape[0] and part[behind] == part[t] and offset[behind] == offset[t]:
            behind += 1
        x, end = tasks.lo[t], tasks.hi[behind - 1]
        while x < end:
            if t <= starts[x] < behind:
                middle, final = tasks.hi[starts[x]], x
                for y in range(x, middle):
                    if t <= starts[y] < behind:
                        final = y
                _add_divided(
                    algebra, place, first, last, events, tasks, t, behind, x, middle, tasks.hi[starts[final]], totals
                )
                x = middle
            else:
                x += 1
        t = behind
    return totals


@njit(cache=True, nogil=True)
def _add_divided(algebra, place, first, last, events, tasks, t, behind, lo, middle, hi, totals):
    """Add the paths that begin in `[lo, middle)`, whose spans end from `middle` to `hi`."""
    starts, offset, width, every = tasks.starts, tasks.offset[t], tasks.width[t], tasks.every
    later, nearest, usable, ranges = events.later, events.nearest, events.usable, first.shape[0]
    zero, one = algebra.zero, algebra.one
    # The later part: how many paths lead from each vertex to each end, and how many to ends before each event.
    led = np.full((hi - middle, width), zero)
    before = np.full((hi - middle + 1, width), zero)
    waiting = np.full((width, width), zero)
    y = middle
    while y < hi:
        end = min(later[y], hi)
        for z in range(y, end):
            at = place[z + offset]
            ends = usable[z] and (every or nearest[z] >= 0)
            for q in range(width):
                if usable[z] and at >= 0:
                    led[z - middle, q] = add(algebra, waiting[at, q], one) if q == at else waiting[at, q]
                before[z - middle + 1, q] = before[z - middle, q]
                if ends:
                    before[z - middle + 1, q] = add(algebra, before[z - middle, q], led[z - middle, q])
        for z in range(y, end):
            if usable[z] and place[z + offset] >= 0:
                for r in range(ranges):
                    for p in range(first[r, z + offset], last[r, z + offset]):
                        for q in range(width):
                            waiting[p, q] = add(algebra, waiting[p, q], led[z - middle, q])
        y = end
    # The earlier part, from its end: the last number of a row is of the paths that end in it.
    rows = np.full((16, width + 1), zero)
    held = np.full((width, width + 1), zero)
    for q in range(width):
        held[q, q] = one
    x = middle - 1
    while x >= lo:
        begin = x
        while begin > lo and later[begin - 1] == later[x]:
            begin -= 1
        if x - begin >= rows.shape[0]:
            rows = np.full((x - begin + 1, width + 1), zero)
        for z in range(begin, x + 1):
            for q in range(width + 1):
                rows[z - begin, q] = zero
            if not usable[z]:
                continue
            for r in range(ranges):
                for p in range(first[r, z + offset], last[r, z + offset]):
                    for q in range(width + 1):
                        rows[z - begin, q] = add(algebra, rows[z - begin, q], held[p, q])
            if every or nearest[z] >= 0:
                rows[z - begin, width] = add(algebra, rows[z - begin, width], one)
            task = starts[z]
            if t <= task < behind:
                least, until, total = tasks.first_end[task], tasks.hi[task], zero
                if least <= z:
                    total = rows[z - begin, width]
                    for q in range(width):
                        total = add(algebra, total, times(algebra, rows[z - begin, q], before[until - middle, q]))
                elif least < middle:  # of few: what begins soon after the first of these spans
                    total = _count_from(algebra, place, first, last, events, tasks, task, z)
                else:
                    for y in range(least, until):
                        if usable[y] and (every or nearest[y] >= 0):
                            for q in range(width):
                                total = add(algebra, total, times(algebra, rows[z - begin, q], led[y - middle, q]))
                totals[task] = add(algebra, totals[task], total)
        for z in range(begin, x + 1):
            at = place[z + offset]
            if usable[z] and at >= 0:
                for q in range(width + 1):
                    held[at, q] = add(algebra, held[at, q], rows[z - begin, q])
        x = begin - 1


@njit(cache=True, nogil=True)
def _count_from(algebra, place, first, last, events, tasks, t, start):
    """Return the number of paths of a task from one start: forwards, with what waits at each attribute vertex."""
    offset, least, hi, every = tasks.offset[t], tasks.first_end[t], tasks.hi[t], tasks.every
    later, nearest, usable = events.later, events.nearest, events.usable
    total, now, y = algebra.zero, algebra.one, start
    waiting = np.full(tasks.width[t], algebra.zero)
    values = np.full(hi - start, algebra.zero)
    while y < hi:
        end = min(later[y], hi) if y > start else start + 1
        for z in range(y, end):
            if z > start:
                at = place[z + offset]
                now = waiting[at] if usable[z] and at >= 0 else algebra.zero
            values[z - start] = now
            if z >= least and usable[z] and (every or nearest[z] >= 0):
                total = add(algebra, total, now)
        for z in range(y, end):
            for r in range(first.shape[0] if usable[z] else 0):
                for p in range(first[r, z + offset], last[r, z + offset]):
                    waiting[p] = add(algebra, waiting[p], values[z - start])
        y = min(later[start], hi) if y == start else end
    return total
