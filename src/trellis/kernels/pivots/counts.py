"""How many results there are, exactly: the rests of each pivot are counted backwards, in limbs of 64 bits."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit
from trellis.kernels.pivots.cases import START, STOP, begin_pivot, group_symbols, may_end, next_turn

ZERO, ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True, _nrt=False)
def _add(sums, to, given, of, more, used):
    """Add `more` and one number of `used` limbs to another; return what is carried."""
    carry = more
    for limb in range(used):
        a = given[of, limb]
        both = sums[to, limb] + a
        all_ = both + carry
        carry = ONE if both < a or all_ < both else ZERO
        sums[to, limb] = all_
    return carry


@njit(cache=True, nogil=True, _nrt=False)
def _count_turn(events, machine, case, here, later, total):
    """Add the number of results of a turn to the total."""
    states, start, stop = machine.step.shape[0], case.turn[START], case.turn[STOP]
    here[:, 0] = 0
    later[:, 0] = 0
    used = 1
    for place in range(stop - 1, start - 1, -1):
        if place + 1 < stop and case.later[place] == place + 1:
            for state in range(states):
                for limb in range(used):
                    later[state, limb] = here[state, limb]
        symbol = case.symbols[place]
        for k in range(machine.begins[symbol], machine.begins[symbol + 1]):
            state = machine.sources[k]
            target = machine.step[state, symbol]
            ends = ONE if may_end(machine, case, place, target) else ZERO
            if _add(here, state, later, target, ends, used):
                here[:, used] = 0
                later[:, used] = 0
                here[state, used] = ONE
                used += 1
        if events.span and place > start:
            continue
        target = machine.entry[case.before[place], symbol]
        if target >= 0:
            ends = ONE if may_end(machine, case, place, target) else ZERO
            carry, limb = _add(total, 0, later, target, ends, used), used
            while carry:
                total[0, limb] += ONE
                carry = ONE if total[0, limb] == 0 else ZERO
                limb += 1


@njit(cache=True, nogil=True, _nrt=False)
def count_of_pivots(events, machine, asks, programs, case, code, begin, end, here, later, total, limbs, ends):
    """Write the number of results of each group; return whether all conditions could be answered.

    Parameters
    ----------
    events, machine, asks, programs, case, code
        As the page of the package says, with the events of all groups; under a span `until` counts from the first event
        of a group.
    begin, end : int64 (groups,)
        The events of each group.
    here, later : uint64 (states, most limbs)
        Room for the rests from an event on, and from the first of a later time on. Results are sets of events, so that
        one bit for each event of the group, and a limb more, are enough.
    total : uint64 (1, most limbs)
        Zeros: room for the number of a group.
    limbs, ends : uint64 (all limbs,), int64 (groups,)
        The numbers, the least limb first, one group after another, and where each ends.
    """
    at = 0
    for group in range(begin.shape[0]):
        own = group_symbols(events, begin[group], end[group])
        for pivot in range(own.codes.shape[0]):
            if own.codes[pivot] != code:
                continue
            if not begin_pivot(own, machine, asks, programs, case, pivot, code):
                return False
            while next_turn(own, machine, asks, programs, case, pivot, code):
                _count_turn(own, machine, case, here, later, total)
        for limb in range(ends[group] - at):
            limbs[at + limb] = total[0, limb]
            total[0, limb] = ZERO
        at = ends[group]
    return True
