"""The best values of the results with a pivot, and the results that have certain values, in their order."""

from __future__ import annotations

import numpy as np

from trellis.kernels.jit import njit
from trellis.kernels.pivots.cases import NOTHING, START, STOP, begin_pivot, fill_rests, may_end, next_turn

VALUE, SOFAR, STATE, PLACE = range(4)  # of a way that is not gone yet: the best it leads to, and where it begins
BEGIN = -1  # in place of the state before the first event
OVER = -1  # in place of the place where a way begins that has no more events
DONE, TROUBLE, NO_ROOM = 0, -1, -2


@njit(cache=True, nogil=True, _nrt=False)
def _push(ways, size, value, sofar, state, place):
    """Put a way on a heap that has the best on top; return the new size."""
    i = size
    while i > 0 and ways[(i - 1) >> 1, VALUE] < value:
        for k in range(4):
            ways[i, k] = ways[(i - 1) >> 1, k]
        i = (i - 1) >> 1
    ways[i, VALUE], ways[i, SOFAR], ways[i, STATE], ways[i, PLACE] = value, sofar, state, place
    return size + 1


@njit(cache=True, nogil=True, _nrt=False)
def _drop(ways, size):
    """Take the best way off a heap; return how many are left."""
    size -= 1
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and ways[child + 1, VALUE] > ways[child, VALUE]:
            child += 1
        if ways[child, VALUE] <= ways[size, VALUE]:
            break
        for k in range(4):
            ways[i, k] = ways[child, k]
        i = child
    for k in range(4):
        ways[i, k] = ways[size, k]
    return size


@njit(cache=True, nogil=True, _nrt=False)
def _keep(values, number, value):
    """Put a value among the best ones, the best first; return how many there are."""
    i = min(number, values.shape[0] - 1)
    while i > 0 and values[i - 1] < value:
        values[i] = values[i - 1]
        i -= 1
    values[i] = value
    return min(number + 1, values.shape[0])


@njit(cache=True, nogil=True, _nrt=False)
def _after(machine, case, place, state):
    """Return the state behind the event at a place of a case, or -1."""
    if state == BEGIN:
        return machine.entry[case.before[place], case.symbols[place]]
    return machine.step[state, case.symbols[place]]


@njit(cache=True, nogil=True, _nrt=False)
def _rest(case, place, state):
    """Return the best rest from a place on."""
    return case.starts[place] if state == BEGIN else case.rest[place, state]


@njit(cache=True, nogil=True, _nrt=False)
def _given(events, case, place, state):
    """Return the value that the event at a place adds."""
    i = case.places[place]
    return events.each[i] + (events.first[i] if state == BEGIN else np.int64(0))


@njit(cache=True, nogil=True, _nrt=False)
def _best_values(events, machine, case, values, number, ways):
    """Put the values of the results of a case among the best; return how many there are, or `NO_ROOM`."""
    limit = values.shape[0]
    start = case.turn[START]
    waiting = _push(ways, 0, case.starts[start], 0, BEGIN, start)
    while waiting:
        floor = values[limit - 1] if number == limit else np.int64(NOTHING)
        value, sofar, state, place = ways[0, VALUE], ways[0, SOFAR], ways[0, STATE], ways[0, PLACE]
        if value <= floor:
            break
        waiting = _drop(ways, waiting)
        while place != OVER:  # along the best way; the others wait
            ends = goes = skips = np.int64(NOTHING)
            if _rest(case, place + 1, state) > NOTHING:
                skips = sofar + _rest(case, place + 1, state)
            target = _after(machine, case, place, state)
            with_this = sofar + _given(events, case, place, state)
            if target >= 0:
                if may_end(machine, case, place, target):
                    ends = with_this + events.last[case.places[place]]
                if case.rest[case.later[place], target] > NOTHING:
                    goes = with_this + case.rest[case.later[place], target]
            if waiting + 2 > ways.shape[0]:
                return NO_ROOM
            if ends >= goes and ends >= skips:
                waiting = _push(ways, waiting, goes, with_this, target, case.later[place]) if goes > floor else waiting
                waiting = _push(ways, waiting, skips, sofar, state, place + 1) if skips > floor else waiting
                place = np.int64(OVER)
            elif goes >= skips:
                waiting = _push(ways, waiting, ends, ends, state, OVER) if ends > floor else waiting
                waiting = _push(ways, waiting, skips, sofar, state, place + 1) if skips > floor else waiting
                sofar, state, place = with_this, target, case.later[place]
            else:
                waiting = _push(ways, waiting, ends, ends, state, OVER) if ends > floor else waiting
                waiting = _push(ways, waiting, goes, with_this, target, case.later[place]) if goes > floor else waiting
                place += 1
        number = _keep(values, number, value)
    return number


@njit(cache=True, nogil=True, _nrt=False, branching=True)
def best_values(events, machine, asks, programs, case, code, pivots, best, values, number, ways):
    """Put the values of the results with some pivots among the best; return how many there are, or what went wrong.

    The pivots come in the falling order of their `best` values. It is `TROUBLE` where numbers leave 64 bits.
    """
    for i in range(pivots.shape[0]):
        if best[i] == NOTHING or (number == values.shape[0] and best[i] <= values[number - 1]):
            break
        if not begin_pivot(events, machine, asks, programs, case, pivots[i], code):
            return TROUBLE
        while next_turn(events, machine, asks, programs, case, pivots[i], code):
            fill_rests(events, machine, case)
            if case.starts[case.turn[START]] > NOTHING:
                number = _best_values(events, machine, case, values, number, ways)
                if number < 0:
                    return number
    return number


@njit(cache=True, nogil=True, _nrt=False)
def _is_before(paths, begin, end, worst):
    """Return whether the path from `begin` to `end` comes before another in the order of results."""
    for d in range(min(end - begin, worst.shape[0])):
        if paths[begin + d] != worst[d]:
            return paths[begin + d] < worst[d]
    return end - begin < worst.shape[0]


@njit(cache=True, nogil=True, _nrt=False, branching=True)
def paths_of(events, machine, asks, programs, case, code, pivot, theta, exact, most, worst, paths, ends, stack):
    """Write results with a pivot whose values are `theta` if that is `exact`, else at least that.

    The first ones are among them, up to `most`, that come before a path `worst` if it has events; but for those of one
    first event they are in order.

    Returns
    -------
    number
        How many there are; or `NO_ROOM` for them or their events, or `TROUBLE`.
    """
    if not begin_pivot(events, machine, asks, programs, case, pivot, code):
        return TROUBLE
    number, start = np.int64(0), np.int64(-1)
    while next_turn(events, machine, asks, programs, case, pivot, code):
        if number >= most and case.turn[START] > start:
            break
        start = case.turn[START]
        fill_rests(events, machine, case)
        if case.starts[start] >= theta:
            if number + most > ends.shape[0]:
                return NO_ROOM
            number = _paths(events, machine, case, theta, exact, number + most, worst, paths, ends, number, stack)
            if number < 0:
                return number
    return number


@njit(cache=True, nogil=True, _nrt=False)
def _paths(events, machine, case, theta, exact, most, worst, paths, ends, number, stack):
    """Write the first results of a turn behind some others, up to `most` in all; return how many there are then."""
    size, used, depth = case.turn[STOP], ends[number - 1] if number else np.int64(0), 0
    state, place, sofar = np.int64(BEGIN), case.turn[START], np.int64(0)
    while True:
        target, goes, value = np.int64(-1), False, np.int64(NOTHING)
        while place < size:
            rest = _rest(case, place, state)
            if rest == NOTHING or sofar + rest < theta:
                place = np.int64(size)
                break
            target = _after(machine, case, place, state)
            if target >= 0:
                with_this = sofar + _given(events, case, place, state)
                rest = case.rest[case.later[place], target]
                goes = rest > NOTHING and with_this + rest >= theta
                value = np.int64(NOTHING)
                if may_end(machine, case, place, target):
                    value = with_this + events.last[case.places[place]]
                if goes or value >= theta:
                    break
            place += 1
        if place == size:
            if depth == 0:
                return number
            depth -= 1
            state, place, sofar = stack[depth, STATE], stack[depth, PLACE] + 1, stack[depth, SOFAR]
            continue
        stack[depth, STATE], stack[depth, PLACE], stack[depth, SOFAR] = state, place, sofar
        if value >= theta and (value == theta or not exact):
            if used + depth + 1 > paths.shape[0]:
                return NO_ROOM
            for d in range(depth + 1):
                paths[used + d] = case.places[stack[d, PLACE]]
            if worst.shape[0] and not _is_before(paths, used, used + depth + 1, worst):
                return number  # nor do those behind it
            used += depth + 1
            ends[number] = used
            number += 1
            if number == most:
                return number
        if goes:
            depth += 1
            sofar += _given(events, case, place, state)
            state, place = target, case.later[place]
        else:
            place += 1
