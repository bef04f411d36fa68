"""Events that forbid to put another one of the pivot's variable to results, where the pivot is an extreme one.

Such an event would be more extreme than the pivot, so that the results with it are those of another pivot. Where the
easiest one within reach cannot be put to a result, none can.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.expression.program import TRUE, is_true
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def easiest_between(events, asks, programs, code, begin, end):
    """Return the event of the pivot's variable, from `begin` to `end`, that is most easily put to results, or -1.

    Of equal ones it is the last.
    """
    found, best = np.int64(-1), np.int64(0)
    for i in range(begin, end):
        row = events.rows[i]
        if events.codes[i] != code or not programs.there[asks.column, row]:
            continue
        value = programs.ints[asks.column, row]
        if asks.turned:
            value = -value
        if found < 0 or value <= best:
            found, best = np.int64(i), value
    return found


@njit(cache=True, nogil=True, _nrt=False)
def easier(events, asks, programs, one, other):
    """Return which of two events of the pivot's variable is more easily put to results; -1 stands for none."""
    if one < 0 or other < 0:
        return max(one, other)
    a, b = programs.ints[asks.column, events.rows[other]], programs.ints[asks.column, events.rows[one]]
    return other if a != b and (a > b) == asks.turned else one


@njit(cache=True, nogil=True, _nrt=False)
def block_in_reach(events, asks, programs, case, code, start, stop, first, end):
    """Mark the events that forbid to put another one to the results of a span that end with the event at a place.

    Parameters
    ----------
    events, asks, programs, case, code
        As the page of the package says.
    start, stop
        Where the results begin, and before which place of the case they end.
    first, end
        The place of a last event, and one that lies behind it.

    Returns
    -------
    end
        The place, up to `end`, before which what may be put to results does not depend on their last events.
    """
    begun, last = case.places[start], case.places[first]
    before = behind = np.int64(-1)
    if asks.front:
        low = first_at_least(events.until, 0, begun, last + 1)
        high = first_at_least(events.times, low, begun, events.times[begun])
        before = easiest_between(events, asks, programs, code, low, high)
        if before >= 0:  # the last of those that are as easy stays in reach longest
            end = min(end, first_at_least(case.places, first, end, events.until[before]))
    if asks.back:
        until = events.until[begun]
        low = first_at_least(events.times, last, until, events.times[last] + 1)
        behind = easiest_between(events, asks, programs, code, low, until)
        if behind >= 0:
            same = first_at_least(events.times, last, until, events.times[behind])
            end = min(end, first_at_least(case.places, first, end, same))
    mark_blocks(events, asks, programs, case, start, stop, easier(events, asks, programs, before, behind))
    return end


@njit(cache=True, nogil=True, _nrt=False)
def mark_blocks(events, asks, programs, case, start, stop, easiest):
    """Mark the events of a `case` that forbid to put the `easiest` event to results, from the place `start` to `stop`.

    They are read in `events` by `asks` and `programs`.
    """
    for place in range(start, stop):
        own = events.codes[case.places[place]]
        if asks.begins[own] == asks.begins[own + 1]:
            continue
        holds = False
        if easiest >= 0:
            case.chosen[0], case.chosen[1] = events.rows[easiest], events.rows[case.places[place]]
            holds = is_true(programs, asks.begins[own], case.chosen, 0, case.whole, case.real, case.there) == TRUE
        base = asks.symbols[own]
        symbol = base + ((case.symbols[place] - base) & ~asks.blocks)
        case.symbols[place] = symbol if holds else symbol + asks.blocks
