"""Classes that take only events with a given value: they wait for it, and are not looked at when others come."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore.classes import (
    ALL,
    BESIDE,
    CHAIN,
    KEY,
    KEYS,
    LEAD,
    LEARNT,
    LIVE,
    MOST,
    NEXT,
    NUMBER,
    POOLS,
    RESOLVED,
    STUCK,
    TOUCHED,
    VALUE,
    WAY,
)
from trellis.kernels.explore.terms import CODE, OPERATOR, OWN, TURNED, written_of
from trellis.kernels.expression.program import EQUAL
from trellis.kernels.jit import njit

FOR_NONE, FOR_ANY = -1, -2  # what a class waits for that takes no event, and one that takes events of several values
FACTOR = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True, _nrt=False)
def key_of(classes, one, variables):
    """Return the row of codes whose value decides which events a class takes, and the value; `FOR_NONE`, `FOR_ANY`."""
    ways, key, value = classes.ways, np.int64(FOR_NONE), np.int64(0)
    for variable in range(variables):
        way = variable * WAY
        if not classes.states[one, NEXT] & (1 << variable) or ways[one, way + LEAD] == STUCK:
            continue
        own, code = np.int64(FOR_ANY), np.int64(0)
        for here in range(way + RESOLVED, way + RESOLVED + 3 * written_of(ways[one, way + NUMBER]), 3):
            if ways[one, here + OWN] < 0:
                own = np.int64(FOR_NONE)
                break
            if ways[one, here + OPERATOR] in (EQUAL, EQUAL + TURNED):
                own, code = ways[one, here + OWN], ways[one, here + CODE]
        if own == FOR_NONE or (own == key and code == value):
            continue
        if own == FOR_ANY or key != FOR_NONE:
            return np.int64(FOR_ANY), value
        key, value = own, code
    return key, value


@njit(cache=True, nogil=True, _nrt=False)
def _slot(classes, key, value):
    """Return the place of the classes that wait for a value of a row of codes, or where they belong."""
    states, chains = classes.states, classes.chains
    mask = np.uint64(chains.shape[0] - 1)
    code = (np.uint64(value) * FACTOR ^ np.uint64(key)) * FACTOR
    place = (code >> np.uint64(29)) & mask
    while chains[place]:
        one = np.int64(chains[place]) - 1
        if states[one, KEY] == key and states[one, VALUE] == value:
            break
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@njit(cache=True, nogil=True, _nrt=False)
def wait(classes, one, variables):
    """Let a class wait for the value of the events that it takes; return whether it does."""
    states, sizes, keys = classes.states, classes.sizes, classes.keys
    states[one, LEARNT] = 0
    key, value = key_of(classes, one, variables)
    if key == FOR_ANY:
        return False
    if key == FOR_NONE:
        return True
    number = 0
    while number < sizes[KEYS] and keys[number] != key:
        number += 1
    if number == keys.shape[0]:
        return False
    if number == sizes[KEYS]:
        keys[number] = key
        sizes[KEYS] += 1
    place = _slot(classes, key, value)
    states[one, KEY], states[one, VALUE], states[one, CHAIN] = key, value, place + 1
    states[one, BESIDE] = classes.chains[place]
    classes.chains[place] = one + 1
    return True


@njit(cache=True, nogil=True, _nrt=False)
def waiting(classes, ints, there, number, event):
    """Return the first class that waits for the value of an event in one of the rows of codes, or -1."""
    key = classes.keys[number]
    if not there[key, event]:
        return np.int64(-1)
    return np.int64(classes.chains[_slot(classes, key, ints[key, event])]) - 1


@njit(cache=True, nogil=True, _nrt=False)
def forget_keys(classes):
    """Let no class wait any more."""
    if classes.sizes[KEYS]:
        for one in range(classes.sizes[ALL]):
            if classes.states[one, CHAIN]:
                classes.chains[classes.states[one, CHAIN] - 1] = 0
        classes.sizes[KEYS] = 0


@njit(cache=True, nogil=True, _nrt=False)
def forget_classes(classes, moves):
    """Empty the classes."""
    for i in range(classes.sizes[ALL]):
        classes.table[classes.at[i]] = 0
    forget_keys(classes)
    for i in range(min(moves.used[0] * classes.ways.shape[1] // WAY * 2, classes.memo.shape[0])):
        classes.memo[i] = 0
    classes.sizes[MOST] = max(classes.sizes[MOST], classes.sizes[ALL])
    classes.sizes[ALL] = classes.sizes[LIVE] = classes.sizes[TOUCHED] = classes.sizes[POOLS] = 0
