"""The events of one pivot as symbols, and the best rest of a result from each event on.

Under a span what follows depends on the first event, and what may be put before it on the last one: so there the
results with a pivot are looked at in turns, those of one first event at a time, and of last events that allow the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.expression.program import MISFIT, TRUE, is_true
from trellis.kernels.jit import njit
from trellis.kernels.pivots.blocks import block_in_reach, easier, easiest_between, mark_blocks

NOTHING = -(1 << 62)  # in place of a value that there is not
NOWHERE = -1  # in place of a state
SIZE, START, STOP, END_LO, END_HI = range(5)
"""Numbers of a turn: of the events of the pivot; the first event, or the first of all, and the one behind the last that
results may have; and the range of last ones."""


class EventSymbols(NamedTuple):
    """The events of a group that have a variable, in their order.

    `rows` are their positions in the slice, `codes` their variables, `times` numbers that never fall and are equal
    where the times are. A result's value is the sum of what its events give, and of what its first and last one do.
    Under a span `until` has the first that is too late for each, and `begins` tells which may be the first ones.
    """

    rows: np.ndarray  # int64 (events,)
    codes: np.ndarray  # int64 (events,)
    times: np.ndarray  # int64 (events,)
    each: np.ndarray  # int64 (events,)
    first: np.ndarray  # int64 (events,)
    last: np.ndarray  # int64 (events,)
    until: np.ndarray  # int64 (events,)
    begins: np.ndarray  # bool (events,)
    span: bool


class PivotAsks(NamedTuple):
    """The conditions by the variable that they compare with the pivot's.

    Those of variable `u` are `begins[u]` to `begins[u + 1]`, each the program of its number; an event that fails one
    whose `adds` is 0 has no symbol; the others add that to the first symbol of the variable if it meets them.

    The pivot may be the extreme one of several events, by the row `column` of codes, the greatest first (with `turned`
    the least), and the first of equal ones: it adds `own` to the symbol. Then `front` and `back` tell whether events of
    its variable may be put before and behind every result; events that forbid the easiest of these add `blocks`.
    """

    begins: np.ndarray  # int64 (variables + 1,)
    adds: np.ndarray  # int64 (conditions,)
    symbols: np.ndarray  # int64 (variables,)
    column: int
    turned: bool
    own: int
    blocks: int
    front: bool
    back: bool


class PivotAutomaton(NamedTuple):
    """The automaton of results with one pivot, and the sets of its states that longer matches may have reached.

    Attributes
    ----------
    entry, step
        The state behind a first event, by what may stand before it and the symbol; and behind any other.
    sources, begins
        The states that read a symbol, symbol after symbol.
    results
        Whether a state is that of a result, unless something can be put behind it.
    before, read_before
        Sets of states, as bits, that events before a first one lead to, and each with one more event.
    behind, read_behind
        Sets of states from which events behind a last one lead to an end; the same.
    last
        Whether a result may end in a state if that set is behind it.
    every
        The states of matches, of which those sets are: the one behind each, by the symbol.
    """

    entry: np.ndarray  # int64 (sets, symbols)
    step: np.ndarray  # int64 (states, symbols)
    sources: np.ndarray  # int64 (transitions,)
    begins: np.ndarray  # int64 (symbols + 1,)
    results: np.ndarray  # bool (states,)
    before: np.ndarray  # int64 (sets,)
    read_before: np.ndarray  # int64 (sets, symbols)
    behind: np.ndarray  # int64 (sets,)
    read_behind: np.ndarray  # int64 (sets, symbols)
    last: np.ndarray  # bool (sets, states)
    every: np.ndarray  # int64 (all states, symbols)


class PivotCase(NamedTuple):
    """The events of one pivot.

    Attributes
    ----------
    places, symbols, later
        Of each its number among all events, its symbol, and the first of a later time.
    before, behind
        The numbers of the sets of states that events before its time lead to, and that those from it on do.
    rest, starts
        The best rest of a result in each state whose next event is this one or a later one; and the best result.
    counts
        How many rests there are, at most 2**64 - 1.
    latest
        The last event at which a match that has reached a state before its time may begin, or -1.
    turn
        Which results are looked at; see `SIZE`.
    chosen, whole, real, there
        Room for programs.
    """

    places: np.ndarray  # int64 (events + 1,)
    symbols: np.ndarray  # int64 (events + 1,)
    later: np.ndarray  # int64 (events + 1,)
    before: np.ndarray  # int64 (events + 1,)
    behind: np.ndarray  # int64 (events + 1,)
    rest: np.ndarray  # int64 (events + 1, states)
    starts: np.ndarray  # int64 (events + 1,)
    counts: np.ndarray  # uint64 (events + 1, states)
    latest: np.ndarray  # int64 (events + 1, all states)
    turn: np.ndarray  # int64 (5,)
    chosen: np.ndarray  # int64 (2,)
    whole: np.ndarray  # int64 (longest program,)
    real: np.ndarray  # float64 (longest program,)
    there: np.ndarray  # bool (longest program,)


@njit(cache=True, nogil=True, _nrt=False)
def group_symbols(events, lo, hi):
    """Return the events of a group as symbols of their own; `until` counts from the first event of a group already."""
    return EventSymbols(
        events.rows[lo:hi], events.codes[lo:hi], events.times[lo:hi], events.each[lo:hi], events.first[lo:hi],
        events.last[lo:hi], events.until[lo:hi], events.begins[lo:hi], events.span,
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def _read(events, asks, programs, case, pivot, code):
    """Write the events that results with a pivot may have, and their symbols; return how many, or -1 for no answer."""
    number, begin, end = 0, 0, events.rows.shape[0]
    if events.span:
        begin, end = first_at_least(events.until, 0, pivot, pivot + 1), events.until[pivot]
    case.chosen[0] = events.rows[pivot]
    for i in range(begin, end):
        own = events.codes[i]
        symbol = asks.symbols[own]
        if own == code:
            if i == pivot:
                symbol += asks.own
            elif asks.column < 0 or not _is_below(events, asks, programs, i, pivot):
                continue
        case.chosen[1] = events.rows[i]
        for one in range(asks.begins[own], asks.begins[own + 1]):
            answer = is_true(programs, one, case.chosen, 0, case.whole, case.real, case.there)
            if answer == MISFIT:
                return -1
            if answer == TRUE:
                symbol += asks.adds[one]
            elif asks.adds[one] == 0:
                symbol = -1
                break
        if symbol >= 0:
            case.places[number], case.symbols[number] = i, symbol
            number += 1
    return number


@njit(cache=True, nogil=True, _nrt=False)
def _is_below(events, asks, programs, i, pivot):
    """Return whether an extreme pivot is more extreme than another event of its variable, or comes before its equal."""
    one, other = events.rows[i], events.rows[pivot]
    if not programs.there[asks.column, one] or not programs.there[asks.column, other]:
        return False
    a, b = programs.ints[asks.column, one], programs.ints[asks.column, other]
    if a == b:
        return i > pivot
    return (a > b) == asks.turned


@njit(cache=True, nogil=True, _nrt=False)
def _block(events, machine, asks, programs, case, code):
    """Mark the events that forbid to put another one before or behind results; return whether that can be told.

    It can where all results begin at one time, and end at one.
    """
    size, begin, end, easiest = case.turn[SIZE], -1, -1, np.int64(-1)
    for place in range(size):
        symbol = case.symbols[place]
        if asks.front and machine.entry[case.before[place], symbol] >= 0:
            if begin < 0:
                begin = place
                earlier = first_at_least(events.times, 0, case.places[place], events.times[case.places[place]])
                easiest = easiest_between(events, asks, programs, code, 0, earlier)
            elif events.times[case.places[place]] != events.times[case.places[begin]]:
                return False
        if asks.back:
            ends = False
            behind = case.behind[case.later[place]]
            state = machine.entry[case.before[place], symbol]
            ends = state >= 0 and machine.results[state] and machine.last[behind, state]
            for k in range(machine.begins[symbol], machine.begins[symbol + 1]):
                state = machine.step[machine.sources[k], symbol]
                ends |= machine.results[state] and machine.last[behind, state]
            if ends:
                if end >= 0 and events.times[case.places[place]] != events.times[case.places[end]]:
                    return False
                end = place
    if end >= 0:
        number = events.rows.shape[0]
        later = first_at_least(events.times, case.places[end], number, events.times[case.places[end]] + 1)
        behind = easiest_between(events, asks, programs, code, later, number)
        easiest = easier(events, asks, programs, easiest, behind)
    mark_blocks(events, asks, programs, case, 0, size, easiest)
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _number_of(sets, some):
    """Return the number of a set of states."""
    for i in range(sets.shape[0]):
        if sets[i] == some:
            return i
    return NOWHERE


@njit(cache=True, nogil=True, _nrt=False)
def _look_before(events, machine, case, size):
    """Write for each event of a case the first of a later time, and what may be put before it."""
    later = size
    for i in range(size - 1, -1, -1):
        if i + 1 < size and events.times[case.places[i + 1]] > events.times[case.places[i]]:
            later = i + 1
        case.later[i] = later
    case.later[size] = size
    if machine.before.shape[0] == 1:
        for i in range(size):
            case.before[i] = 0
    elif events.span:
        _note_latest(machine, case, size)
    else:
        i, number = 0, 0
        while i < size:
            some, end = machine.before[number], case.later[i]
            for j in range(i, end):
                case.before[j] = number
                some |= machine.read_before[number, case.symbols[j]]
            if some != machine.before[number]:
                number = _number_of(machine.before, some)
            i = end


@njit(cache=True, nogil=True, _nrt=False)
def _note_latest(machine, case, size):
    """Write for each event and state the last event at which a match that has reached it before may begin."""
    latest, states = case.latest, machine.every.shape[0]
    for state in range(states):
        latest[0, state] = -1
    i = 0
    while i < size:
        end = case.later[i]
        for state in range(states):
            latest[end, state] = latest[i, state]
        for j in range(i, end):
            for state in range(states):
                if j > i:
                    latest[j, state] = latest[i, state]
                begun = j if state == 0 else latest[i, state]
                target = machine.every[state, case.symbols[j]]
                if begun >= 0 and target >= 0:
                    latest[end, target] = max(latest[end, target], begun)
        i = end


@njit(cache=True, nogil=True, _nrt=False)
def may_end(machine, case, place, state):
    """Return whether a result may end with an event of a case that leads to a state."""
    if not machine.results[state] or place < case.turn[END_LO] or place >= case.turn[END_HI]:
        return False
    return machine.last[case.behind[case.later[place]], state]


@njit(cache=True, nogil=True, _nrt=False)
def _best_with(events, machine, case, place, state):
    """Return the best that an event that leads to a state gives, with what follows it; `NOTHING` for none."""
    found = case.rest[case.later[place], state]
    i = case.places[place]
    if events.last[i] > found and may_end(machine, case, place, state):
        found = events.last[i]
    return found + events.each[i] if found > NOTHING else found


@njit(cache=True, nogil=True, _nrt=False)
def begin_pivot(events, machine, asks, programs, case, pivot, code):
    """Write the events of a pivot, of which no result is looked at yet; return whether conditions have an answer."""
    size = _read(events, asks, programs, case, pivot, code)
    if size < 0:
        return False
    _look_before(events, machine, case, size)
    turn = case.turn
    turn[SIZE], turn[START], turn[STOP], turn[END_LO], turn[END_HI] = size, -1, 0, 0, 0
    if asks.blocks and size and not events.span:
        _look_behind(machine, case, 0, size)
        return _block(events, machine, asks, programs, case, code)
    return True


@njit(cache=True, nogil=True, _nrt=False)
def next_turn(events, machine, asks, programs, case, pivot, code):
    """Turn to the next results of a pivot, and write what may be put behind them; return whether there are any more."""
    turn = case.turn
    size = turn[SIZE]
    if not events.span:
        if turn[START] == 0 or size == 0:
            return False
        turn[START], turn[STOP], turn[END_LO], turn[END_HI] = 0, size, 0, size
    elif not _next_of_span(events, machine, asks, programs, case, pivot, code):
        return False
    _look_behind(machine, case, turn[START], turn[STOP])
    return True


@njit(cache=True, nogil=True, _nrt=False)
def _next_of_span(events, machine, asks, programs, case, pivot, code):
    """Turn to the next first event of a pivot, or the next last ones, with which results may be; return whether any."""
    turn, size = case.turn, case.turn[SIZE]
    while True:
        start, first = turn[START], turn[END_HI]
        if turn[END_HI] >= turn[STOP]:
            start += 1
            while start < size and not events.begins[case.places[start]]:
                start += 1
            if start >= size or case.places[start] > pivot:
                return False
            turn[START], turn[STOP] = start, first_at_least(case.places, start, size, events.until[case.places[start]])
            first = start
        _turn_to_ends(events, machine, case, first)
        entry = machine.entry[case.before[start]]
        begins = entry[case.symbols[start]] >= 0
        if asks.blocks:  # whatever else the first event may be marked as
            own = events.codes[case.places[start]]
            if asks.begins[own] < asks.begins[own + 1]:
                other = asks.symbols[own] + ((case.symbols[start] - asks.symbols[own]) ^ asks.blocks)
                begins |= entry[other] >= 0
            if begins:
                turn[END_HI] = block_in_reach(
                    events, asks, programs, case, code, start, turn[STOP], first, turn[END_HI]
                )  # fmt: skip
        if begins:
            return True


@njit(cache=True, nogil=True, _nrt=False)
def _turn_to_ends(events, machine, case, first):
    """Turn to the last events from the `first` one on before which the same may be put."""
    turn, some = case.turn, np.int64(0)
    start, end = turn[START], turn[STOP]
    if machine.before.shape[0] > 1:
        for state in range(machine.every.shape[0]):
            begun = case.latest[start, state]
            if begun >= 0:
                until = events.until[case.places[begun]]
                if until > case.places[first]:
                    some |= np.int64(1) << state
                    end = min(end, first_at_least(case.places, first, turn[STOP], until))
        case.before[start] = _number_of(machine.before, some)
    turn[END_LO], turn[END_HI] = first, end


@njit(cache=True, nogil=True, _nrt=False)
def _look_behind(machine, case, start, stop):
    """Write for each event of a case the set of states from which it and later ones lead to an end."""
    case.behind[stop] = 0
    for place in range(stop - 1, start - 1, -1):
        number = case.behind[place + 1]
        some = machine.behind[number] | machine.read_behind[case.behind[case.later[place]], case.symbols[place]]
        if some != machine.behind[number]:
            number = _number_of(machine.behind, some)
        case.behind[place] = number


@njit(cache=True, nogil=True, _nrt=False)
def fill_rests(events, machine, case):
    """Write the best rests of the results of a turn, and the best results."""
    start, stop = case.turn[START], case.turn[STOP]
    states = machine.step.shape[0]
    case.starts[stop] = NOTHING
    for state in range(states):
        case.rest[stop, state] = NOTHING
    for place in range(stop - 1, start - 1, -1):
        symbol = case.symbols[place]
        for state in range(states):
            case.rest[place, state] = case.rest[place + 1, state]
        for k in range(machine.begins[symbol], machine.begins[symbol + 1]):
            state = machine.sources[k]
            value = _best_with(events, machine, case, place, machine.step[state, symbol])
            case.rest[place, state] = max(case.rest[place, state], value)
        case.starts[place] = NOTHING if events.span else case.starts[place + 1]
        if events.span and place > start:
            continue
        state = machine.entry[case.before[place], symbol]
        if state >= 0:
            value = _best_with(events, machine, case, place, state)
            if value > NOTHING:
                case.starts[place] = max(case.starts[place], value + events.first[case.places[place]])


@njit(cache=True, nogil=True, _nrt=False, branching=True)
def best_of_pivots(events, machine, asks, programs, case, code, pivots, best):
    """Write the best value of each pivot; return whether all conditions could be answered."""
    for i in range(pivots.shape[0]):
        if not begin_pivot(events, machine, asks, programs, case, pivots[i], code):
            return False
        best[i] = NOTHING
        while next_turn(events, machine, asks, programs, case, pivots[i], code):
            fill_rests(events, machine, case)
            best[i] = max(best[i], case.starts[case.turn[START]])
    return True
