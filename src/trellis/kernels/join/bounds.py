"""The keys of ORDER BY over matches of joins: their words, and bounds of these where some slots have no event yet.

A key is a program. Its *word* is a whole number that is greater for what comes first, so that words of rising and
falling keys compare alike. While slots wait for their events, a key lies between what the least and the greatest
values that these may take make of it: each instruction is run on intervals. Rounding never turns an order around, so
the ends of an interval bound what the key is as it is written, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.expression import program as p
from trellis.kernels.expression.program import Programs
from trellis.kernels.expression.sums import as_bits
from trellis.kernels.join.block import BlockScratch, lean
from trellis.kernels.join.lists import NONE, ONE

LOWEST, HIGHEST = p.LOWEST, p.HIGHEST  # words of NULL: in a falling key it comes last, in a rising one first


class Intervals(NamedTuple):
    """The intervals that instructions leave, each (longest program,).

    Attributes
    ----------
    low, high, real_low, real_high
        int64 and float64: the ends of the interval.
    known, null, vague
        bool: whether there may be a number, or NULL; whether nothing is known.
    """

    low: np.ndarray  # int64 (longest program,)
    high: np.ndarray  # int64 (longest program,)
    real_low: np.ndarray  # float64 (longest program,)
    real_high: np.ndarray  # float64 (longest program,)
    known: np.ndarray  # bool (longest program,)
    null: np.ndarray  # bool (longest program,)
    vague: np.ndarray  # bool (longest program,)


class MatchKeys(NamedTuple):
    """The keys of ORDER BY.

    Attributes
    ----------
    programs
        The keys, those of an arm together; the fourth field of an instruction that loads a column is its number among
        the loads.
    falling, real
        bool (keys,), (programs,): whether the greatest come first; whether a program leaves a double.
    slot, code
        int64 (loads,), (loads, events): the slot that a load reads, and the rank of each event's value; -1 for NULL.
    least, greatest, null
        int64, int64, bool (loads,): of the events that the slot may take the one with the least and the one with the
        greatest value, -1 if there is none with a value; whether one has none. They are set before a bound is asked.
    block, interval
        Scratch of programs.
    words, ahead
        int64 (keys,), (`BLOCK`,): the words that were asked for; those of the first key for the events of a block.
    """

    programs: Programs
    falling: np.ndarray
    real: np.ndarray
    slot: np.ndarray
    code: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    null: np.ndarray
    block: BlockScratch
    interval: Intervals
    words: np.ndarray
    ahead: np.ndarray


class Extremes(NamedTuple):
    """For each load and place of the pool the extremes of its list from there on, as in `MatchKeys`."""

    least: np.ndarray  # int32 (loads, pool)
    greatest: np.ndarray  # int32 (loads, pool)
    null: np.ndarray  # bool (loads, pool)


@lean
def word_of(whole, real, is_real, there, falling):
    """Return the word of a value."""
    if not there:
        return LOWEST if falling else HIGHEST
    word = whole
    if is_real:
        word = as_bits(real + 0.0)
        if word < 0:
            word ^= HIGHEST
    return word if falling else -word


@lean
def _load(keys, at, i):
    """Leave the interval of a column."""
    op, column, load = keys.programs.code[at], keys.programs.code[at + 1], keys.programs.code[at + 3]
    v, least, greatest = keys.interval, keys.least[load], keys.greatest[load]
    v.known[i], v.null[i], v.vague[i] = least >= 0, keys.null[load], False
    if least >= 0 and op == p.LOAD_WHOLE:
        v.low[i], v.high[i] = keys.programs.ints[column, least], keys.programs.ints[column, greatest]
    elif least >= 0:
        v.real_low[i], v.real_high[i] = keys.programs.reals[column, least], keys.programs.reals[column, greatest]


@lean
def _of_wholes(op, v, i, a, b, factor):
    """Leave the interval of arithmetic on whole numbers, none of which leaves 64 bits."""
    low, high = v.low[a], v.high[a]
    if op == p.ADD:
        v.low[i], v.high[i] = low + v.low[b], high + v.high[b]
    elif op == p.SUBTRACT:
        v.low[i], v.high[i] = low - v.high[b], high - v.low[b]
    elif op == p.NEGATIVE:
        v.low[i], v.high[i] = -high, -low
    elif op == p.ABSOLUTE:
        v.low[i], v.high[i] = max(low, -high, 0), max(high, -low)
    elif op == p.REMAINDER:
        least, most = v.low[b], v.high[b]
        v.low[i] = max(min(low, 0), min(least, -most))
        v.high[i] = min(max(high, 0), max(-least, most))
        v.null[i] |= least <= 0 <= most
    else:
        other, another = (factor, factor) if op == p.SCALE else (v.low[b], v.high[b])
        v.low[i] = min(low * other, low * another, high * other, high * another)
        v.high[i] = max(low * other, low * another, high * other, high * another)


@lean
def _of_reals(op, v, i, a, b):
    """Leave the interval of arithmetic on doubles; with infinite ones the result may be NULL."""
    low, high, other, another = v.real_low[a], v.real_high[a], v.real_low[b], v.real_high[b]
    if op == p.ADD_REAL:
        left, right = low + other, high + another
    elif op == p.SUBTRACT_REAL:
        left, right = low - another, high - other
    elif op == p.NEGATIVE_REAL:
        left, right = -high, -low
    elif op == p.ABSOLUTE_REAL:
        left, right = max(low, -high, 0.0), max(high, -low)
    elif op == p.REMAINDER_REAL:
        most = max(-other, another)
        left, right = max(min(low, 0.0), -most), min(max(high, 0.0), most)
        v.null[i] |= other <= 0.0 <= another
    else:
        if op == p.DIVIDE_REAL:
            if other <= 0.0 <= another:
                v.vague[i] = True
                return
            w, x, y, z = low / other, low / another, high / other, high / another
        else:
            w, x, y, z = low * other, low * another, high * other, high * another
        left, right = min(w, x, y, z), max(w, x, y, z)
        if np.isnan(w + x + y + z):
            left = np.nan
    v.real_low[i], v.real_high[i] = left, right
    v.vague[i] = np.isnan(left) or np.isnan(right)
    v.null[i] |= np.isinf(low) or np.isinf(high) or np.isinf(other) or np.isinf(another)


@lean
def _of_function(op, v, i, a, digits):
    """Leave the interval of a function of a double that never falls; beyond its domain it is NULL."""
    low, high = v.real_low[a], v.real_high[a]
    if op == p.FLOOR:
        left, right = np.floor(low), np.floor(high)
    elif op == p.CEIL:
        left, right = np.ceil(low), np.ceil(high)
    elif op == p.ROUND:
        left, right = p._rounded(low, digits), p._rounded(high, digits)
    elif op == p.ROOT:
        v.null[i] |= low < 0.0
        v.known[i] = high >= 0.0
        left, right = np.sqrt(max(low, 0.0)), np.sqrt(max(high, 0.0))
    elif op == p.LOGARITHM:  # this one and the next are not rounded to the nearest double
        v.null[i] |= low <= 0.0
        v.known[i] = high > 0.0
        left = np.nextafter(np.log(low), -np.inf) if low > 0.0 else -np.inf
        right = np.nextafter(np.log(high), np.inf) if high > 0.0 else np.inf
    else:
        left, right = np.nextafter(np.exp(low), -np.inf), np.nextafter(np.exp(high), np.inf)
    v.real_low[i], v.real_high[i] = left, right
    v.vague[i] = np.isnan(left) or np.isnan(right)


@lean
def _take_interval(v, i, a):
    """Leave an interval as it is."""
    v.low[i], v.high[i], v.real_low[i], v.real_high[i] = v.low[a], v.high[a], v.real_low[a], v.real_high[a]
    v.known[i], v.null[i] = v.known[a], v.null[a]


@lean
def _take_either(v, i, a, b):
    """Leave the interval of what one or the other of two values may be."""
    if not v.known[a] or not v.known[b]:
        _take_interval(v, i, a if v.known[a] else b)
    else:
        v.low[i], v.high[i] = min(v.low[a], v.low[b]), max(v.high[a], v.high[b])
        v.real_low[i], v.real_high[i] = min(v.real_low[a], v.real_low[b]), max(v.real_high[a], v.real_high[b])
        v.known[i] = True
    v.null[i] = v.null[a] or v.null[b]


@lean
def _coalesce(v, i, a, b):
    """Leave the interval of the first of two values that is not NULL."""
    if v.known[a] and not v.null[a]:
        _take_interval(v, i, a)
    else:
        _take_either(v, i, a, b)
        v.null[i] = v.null[a] and v.null[b]


@lean
def _choose(v, i, test, a, b):
    """Leave the interval of one value where a test is true, else of the other."""
    if v.known[test] and not v.null[test] and v.low[test] == 1:
        _take_interval(v, i, a)
    elif not v.known[test] or v.high[test] == 0:
        _take_interval(v, i, b)
    else:
        _take_either(v, i, a, b)


@lean
def bound_of(keys, program, falling):
    """Return the greatest word that a key may have, by the extremes of its loads."""
    code, v = keys.programs.code, keys.interval
    i = -1
    for at in range(code[program], code[program + 1], p.FIELDS):
        i += 1
        op, a, b = code[at], code[at + 1], code[at + 2]
        if op in (p.LOAD_WHOLE, p.LOAD_REAL):
            _load(keys, at, i)
            continue
        if op in (p.CONSTANT_WHOLE, p.CONSTANT_REAL, p.NULL):
            v.known[i], v.vague[i] = op != p.NULL, False
            if op == p.CONSTANT_WHOLE:
                v.low[i] = v.high[i] = a
            elif op == p.CONSTANT_REAL:
                v.real_low[i] = v.real_high[i] = keys.programs.real[a]
                v.known[i] = not np.isnan(v.real_low[i])
            v.null[i] = not v.known[i]
            continue
        if p.AND <= op <= p.IS_NULL or op == p.COMPARE_COLUMNS or p.COMPARE_WHOLE <= op <= p.COMPARE_SCALED:
            v.low[i], v.high[i], v.known[i], v.null[i], v.vague[i] = 0, 1, True, True, False
            continue
        if op in (p.CHOOSE_WHOLE, p.CHOOSE_REAL):
            other = code[at + 3]
            v.vague[i] = v.vague[a] or v.vague[b] or v.vague[other]
            if not v.vague[i]:
                _choose(v, i, a, b, other)
            continue
        function = p.FLOOR <= op <= p.ROUND
        single = function or op in (p.NEGATIVE, p.ABSOLUTE, p.SCALE, p.NEGATIVE_REAL, p.ABSOLUTE_REAL, p.TO_REAL)
        other = a if single else b
        v.vague[i] = v.vague[a] or v.vague[other]
        if v.vague[i]:
            continue
        if op in (p.COALESCE_WHOLE, p.COALESCE_REAL):
            _coalesce(v, i, a, b)
            continue
        v.known[i], v.null[i] = v.known[a] and v.known[other], v.null[a] or v.null[other]
        if not v.known[i]:
            continue
        if op == p.TO_REAL:
            power = keys.programs.real[b] if b >= 0 else 1.0
            v.real_low[i], v.real_high[i] = np.float64(v.low[a]) / power, np.float64(v.high[a]) / power
        elif p.ADD <= op <= p.SCALE:
            _of_wholes(op, v, i, a, other, b)
        elif function:
            _of_function(op, v, i, a, b)
        else:
            _of_reals(op, v, i, a, other)
    if v.vague[i] or (v.null[i] and not falling):
        return HIGHEST
    is_real = keys.real[program]
    if falling:
        return word_of(v.high[i], v.real_high[i], is_real, v.known[i], falling)
    return word_of(v.low[i], v.real_low[i], is_real, v.known[i], falling)


@lean
def bound_tasks(keys, arm, given, events, least, greatest, null, words):
    """Write the greatest words that matches may have, for tasks of which a slot has its event.

    Parameters
    ----------
    keys, arm, given
        The keys, the arm, and its slot that has an event.
    events
        int64 (tasks,): these events.
    least, greatest, null
        int64, int64, bool (loads, tasks): the extremes of what the other slots may take.
    words
        int64 (tasks, keys): what is written.
    """
    number = keys.falling.shape[0]
    for t in range(events.shape[0]):
        for load in range(keys.slot.shape[0]):
            if keys.slot[load] == given:
                set_load(keys, load, events[t])
            else:
                keys.least[load], keys.greatest[load] = least[load, t], greatest[load, t]
                keys.null[load] = null[load, t]
        for key in range(number):
            words[t, key] = bound_of(keys, arm * number + key, keys.falling[key])


@lean
def set_load(keys, load, event):
    """Let a load read one event, or none (-1)."""
    there = event >= 0 and keys.code[load, event] >= 0
    keys.least[load] = keys.greatest[load] = event if there else -1
    keys.null[load] = not there


@lean
def find_extremes(tables, lists, keys, extremes, node, parent, remaining):
    """Find the extremes of the lists of a node, unless they are the ends of those of a parent that has them."""
    for load in range(keys.slot.shape[0]):
        s = keys.slot[load]
        if remaining & (ONE << np.uint64(s)) == NONE:
            continue
        low, high = lists.low[node, s], lists.high[node, s]
        if parent >= 0 and high == lists.high[parent, s] and low >= lists.low[parent, s]:
            continue
        code = keys.code[load]
        least, greatest, null = np.int64(-1), np.int64(-1), False
        for place in range(high - 1, low - 1, -1):
            event = tables.events[lists.pool[place]]
            own = code[event]
            if own < 0:
                null = True
            elif least < 0:
                least = greatest = event
            elif own < code[least]:
                least = event
            elif own > code[greatest]:
                greatest = event
            extremes.least[load, place], extremes.greatest[load, place] = least, greatest
            extremes.null[load, place] = null
