"""Whether something can be put after a whole match, told by its class: REPORT unextendable, without a graph.

The matches of a class have the same rest, so one of them can go on to a longer whole match exactly if the class does so
at a time after its last event. The last such time is looked for from the end of the group backwards, and no further
than it is asked for: what was looked at once is known for all matches of the class. It may lead through other classes,
of which the same is asked then. A time is that of its first event.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.classes import (
    COMING,
    FAILED,
    LOOKED,
    NO_DEPTH,
    RESUMED,
    WAY,
    WHOLE,
)
from trellis.kernels.explore.lead import follow
from trellis.kernels.explore.matches import SPENT
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def is_followed(
    tables, columns, programs, lists, scratch, moves, classes, one, row, fresh, due, time, lo, hi, pooled
):  # fmt: skip
    """Return whether the matches of a class that end at a time go on to longer whole ones: 1, 0, or what went wrong.

    Parameters
    ----------
    tables, columns, programs, lists, scratch, moves, classes, row, fresh, due, lo, hi, pooled
        As in `follow`.
    one, time
        The class, and the first event of the time.
    """
    states, ways, stack = classes.states, classes.ways, classes.stack
    stack[0, 0], stack[0, 1], stack[0, 2] = one, time, 0
    depth = 0
    while True:
        here, since, variable = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        event = states[here, LOOKED] - 1
        done = states[here, RESUMED] >= 0 or not states[here, COMING] or event < lo
        if done or columns[t.SAME_ROW, event] <= since:
            found = states[here, RESUMED] > since
            if depth == 0:
                return np.int64(found)
            depth -= 1
            if found:
                above = stack[depth, 0]
                states[above, RESUMED] = columns[t.SAME_ROW, states[above, LOOKED] - 1]
            else:
                stack[depth, 2] += 1
            continue
        scratch.left[0] -= 1
        if scratch.left[0] < 0:
            return np.int64(SPENT)
        now = columns[t.SAME_ROW, event]
        while variable < tables[t.VARIABLES]:
            upto = tables[t.E_UPTO] + variable
            if states[here, COMING] & (1 << variable) and columns[upto, event] != columns[upto, event + 1]:
                target = follow(
                    tables, columns, programs, lists, scratch, moves, classes, here, row, fresh, due, variable, event,
                    lo, hi, pooled,
                )  # fmt: skip
                if target < 0 and target != FAILED:
                    return target
                if target >= 0 and ways[here, variable * WAY + WHOLE]:
                    states[here, RESUMED] = now
                    break
                if target >= 0 and target != here and _may_be(columns, states, target, now):
                    stack[depth, 2] = variable
                    depth += 1
                    if depth == stack.shape[0]:
                        return np.int64(NO_DEPTH)
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = target, now, 0
                    break
            variable += 1
        if variable == tables[t.VARIABLES]:
            states[here, LOOKED], stack[depth, 2] = event, 0


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def _may_be(columns, states, one, time):
    """Return whether a class may go on to a whole match after a time, for all that is known."""
    if states[one, RESUMED] >= 0:
        return states[one, RESUMED] > time
    return states[one, COMING] != 0 and columns[t.SAME_ROW, states[one, LOOKED] - 1] > time
