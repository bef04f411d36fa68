"""Which events begin a complete trend of a span, where one step of the relation tells it."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def begin_trends(shape, events, tasks):
    """Return for each task of one start whether a complete trend begins there.

    The shape is `Tails` with one segment, and the relation is transitive: an event leads to all that what it leads to
    leads to. So a start leads to where its trends may end if one of these events follows it.

    Parameters
    ----------
    shape : Tails
        How successors are found; see `trellis.kernels.count.passes`.
    events : EventNeighbours
        The neighbours of each event.
    tasks : PassTasks
        Single tasks, each of the trends that begin at its first event.
    """
    place, first, last = shape.place, shape.first, shape.last
    nearest, later, usable = events.nearest, events.later, events.usable
    found = np.zeros(tasks.lo.shape[0], np.bool_)
    for t in range(tasks.lo.shape[0]):
        x, hi, offset = tasks.lo[t], tasks.hi[t], tasks.offset[t]
        begins = x >= tasks.first_end[t] and nearest[x] >= hi
        least = first[x + offset]
        y = hi if least >= last[x + offset] else max(tasks.first_end[t], later[x])
        while y < hi and not begins:
            begins = usable[y] and place[y + offset] >= least
            y += 1
        found[t] = begins
    return found
