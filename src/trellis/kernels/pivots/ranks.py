"""How many results come before certain ones, by the counts of rests of each pivot."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import saturating_sum
from trellis.kernels.jit import njit
from trellis.kernels.pivots.cases import START, STOP, begin_pivot, may_end, next_turn

LARGEST = np.uint64((1 << 63) - 1)


@njit(cache=True, nogil=True, _nrt=False)
def _count(machine, case):
    """Write how many rests there are in each state, from each event on."""
    states, counts = machine.step.shape[0], case.counts
    start, size = case.turn[START], case.turn[STOP]
    for state in range(states):
        counts[size, state] = 0
    for place in range(size - 1, start - 1, -1):
        symbol = case.symbols[place]
        for state in range(states):
            counts[place, state] = counts[place + 1, state]
        for k in range(machine.begins[symbol], machine.begins[symbol + 1]):
            state = machine.sources[k]
            number = _with(machine, case, place, machine.step[state, symbol])
            counts[place, state] = saturating_sum(counts[place, state], number)


@njit(cache=True, nogil=True, _nrt=False)
def _with(machine, case, place, target):
    """Return how many results an event that leads to a state has behind it, one that ends there included."""
    number = case.counts[case.later[place], target]
    return saturating_sum(number, np.uint64(1)) if may_end(machine, case, place, target) else number


@njit(cache=True, nogil=True, _nrt=False)
def _before(events, machine, case, path, begin, end):
    """Return how many results of a case come before a path."""
    total, state, place, stop = np.uint64(0), np.int64(-1), case.turn[START], case.turn[STOP]
    start = place
    for d in range(begin, end):
        while True:
            if place == stop or case.places[place] > path[d] or (events.span and d == begin and place > start):
                return total
            symbol = case.symbols[place]
            target = machine.entry[case.before[place], symbol] if d == begin else machine.step[state, symbol]
            if case.places[place] == path[d]:
                break
            if target >= 0:
                total = saturating_sum(total, _with(machine, case, place, target))
            place += 1
        if target < 0:
            return total
        if d + 1 < end and may_end(machine, case, place, target):
            total = saturating_sum(total, np.uint64(1))
        state, place = target, case.later[place]
    return total


@njit(cache=True, nogil=True, _nrt=False, branching=True)
def ranks_of(events, machine, asks, programs, case, code, pivots, paths, ends, ranks):
    """Add to each path how many results with some pivots come before it; return whether all could be answered.

    Parameters
    ----------
    events, machine, asks, programs, case, code, pivots
        As the page of the package says.
    paths, ends : int64 (events of all paths,), int64 (paths,)
        The events of the paths, one path after another, and where each ends.
    ranks : uint64 (paths,)
        How many come before each; from 2**63 on no more are looked for.
    """
    for i in range(pivots.shape[0]):
        needed = False
        for k in range(ranks.shape[0]):
            needed |= ranks[k] <= LARGEST
        if not needed:
            break
        if not begin_pivot(events, machine, asks, programs, case, pivots[i], code):
            return False
        while next_turn(events, machine, asks, programs, case, pivots[i], code):
            _count(machine, case)
            for k in range(ranks.shape[0]):
                if ranks[k] <= LARGEST:
                    begin = ends[k - 1] if k > 0 else 0
                    ranks[k] = saturating_sum(ranks[k], _before(events, machine, case, paths, begin, ends[k]))
    return True
