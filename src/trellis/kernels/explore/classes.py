"""Classes of matches so far with the same rest, and how many matches each has, exactly: in limbs of 64 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import hashed, is_row
from trellis.kernels.explore.matches import END, SLOTS, TIES, VARIABLE
from trellis.kernels.explore.moves import coming_of
from trellis.kernels.explore.tables import NONE
from trellis.kernels.explore.terms import MOST_TERMS
from trellis.kernels.jit import njit

NO_CLASSES, NO_LIMBS, NO_DEPTH = -7, -8, -9  # what there is no room for
NO_PAIRS, TOO_MANY_BESIDE = -13, -14  # see `beside`
UNKNOWN, CHANGING, STUCK = 0, -1, -2  # what is known of the class that a class leads to
EXTREMES = -3  # less a class: it leads to classes that differ from that one in what they have as an extreme value alone
NOT_YET = -1  # terms that are not resolved yet
UNMADE, FAILED = -3, -4  # a class that must be found out, and none
NEXT, SHAPE, IS_LIVE, IS_TOUCHED, TAKEN, LIVING, TOUCHING, GUARDED, UNTILED = range(9)
COMING, RESUMED, LOOKED, KEY, VALUE, CHAIN, BESIDE, LEARNT = range(9, 17)
NUMBERS = 17
"""Numbers of a class: the variables that may come next, as bits; that of its shape, or -1; whether events can join it,
and whether it has fresh matches; the last event, plus one, that it was let take. Besides, one after another, the
classes that events can still join, and those with fresh matches. Then what NOTs and UNTILs forbid to it, as bits, where
that is noted as events come; see `bars`. Then the variables that may come next, also those of which another class takes
the events for it; the last time at which it goes on to a whole match, or -1; and the event from which on all were
looked at for that; see `ends`. Last what it waits for, the place of those that wait for the same, plus one, and the
next of them, plus one; and whether more is known of the events that it takes than when it was last asked to wait; see
`keys`."""
LEAD, POOL, WHOLE, NUMBER, KNOWN, RESOLVED = range(6)
"""Numbers of a class and a variable, or what is forbidden: the class, plus one, that it leads to, or what is known of
it; the class, plus one, that takes the variable's events together with others that differ in what it overwrites;
whether the matches that it leads to are whole ones; how many terms are resolved (-1: not known, -2 less their number:
not all), and whether those that become known with the event are among them; the terms follow."""
WAY = RESOLVED + 3 * MOST_TERMS
MOST_KEYS = 8  # rows of codes that classes wait for


class Classes(NamedTuple):
    """Room for classes.

    Attributes
    ----------
    rows
        The numbers of each class as a match so far.
    counts, fresh, amount
        uint64 (classes, limbs): how many matches each has, and how many more since the time of the last event; and how
        many the class has that takes an event.
    states, ways
        int64 (classes, numbers): what else is known of a class, and of it and each variable.
    memo
        For each move the class, plus one, that it led to last.
    table, at
        An open-addressing hash of the classes, plus one, and the place of each in it.
    sizes
        How many classes, live ones, and touched ones there are, the most classes that a group had, how many limbs are
        in use, and whether classes take events together; how many rows of codes classes wait for; whether classes carry
        the value of their best match in place of the number of all; the event that is taken, and for each power of two
        the one with which there were more classes than that.
    stack
        The classes of which it is asked whether their matches go on, each for the one before; see `ends`.
    chains, keys
        A hash of the first of the classes, plus one, that wait for a value, and the rows of codes that have these.
    """

    rows: np.ndarray  # int64 (classes, numbers)
    counts: np.ndarray
    fresh: np.ndarray
    amount: np.ndarray
    states: np.ndarray
    ways: np.ndarray
    memo: np.ndarray  # int32 (moves,)
    table: np.ndarray  # int32 (2 * classes,)
    at: np.ndarray  # int64 (classes,)
    sizes: np.ndarray  # int64 (PASSED + POWERS,)
    stack: np.ndarray  # int64 (depth, 3)
    chains: np.ndarray  # int32 (2 * classes,)
    keys: np.ndarray  # int64 (8,)


ALL, LIVE, TOUCHED, MOST, LIMBS, POOLS, KEYS, BEST, PLACE, PASSED = range(10)
POWERS = 40


def make_classes(classes: int, width: int, variables: int, limbs: int, moves: int, depth: int = 1) -> Classes:
    """Return room for classes, a power of two, whose matches make some moves."""
    return Classes(
        np.empty((classes, width), np.int64), np.zeros((classes, limbs), np.uint64),
        np.zeros((classes, limbs), np.uint64), np.zeros(limbs, np.uint64), np.empty((classes, NUMBERS), np.int64),
        np.empty((classes, variables * WAY), np.int64), np.zeros(moves, np.int32), np.zeros(2 * classes, np.int32),
        np.empty(classes, np.int64), np.zeros(PASSED + POWERS, np.int64), np.empty((depth, 3), np.int64),
        np.zeros(2 * classes, np.int32), np.empty(MOST_KEYS, np.int64),
    )  # fmt: skip


def class_bytes(width: int, variables: int, limbs: int) -> int:
    """Return the bytes of a class in `Classes`."""
    return 8 * (width + 2 * limbs + NUMBERS + variables * WAY + 3)


@njit(cache=True, nogil=True, _nrt=False)
def known_class(rows, table, row):
    """Return the class of a row; without one, a negative number: the place where it belongs, less the greatest."""
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(row, 0, row.shape[0]) & mask
    while True:
        found = np.int64(table[place]) - 1
        if found < 0:
            return np.int64(place) - table.shape[0]
        if is_row(rows, found, row):
            return found
        place = (place + np.uint64(1)) & mask


@njit(cache=True, nogil=True, _nrt=False)
def make_class(tables, lists, classes, row, shape):
    """Return the class of a row, which is made if there is none; `NO_CLASSES` where there is no room."""
    rows, table = classes.rows, classes.table
    place = known_class(rows, table, row)
    if place >= 0:
        return place
    place += table.shape[0]
    number = classes.sizes[ALL]
    if number >= rows.shape[0]:
        return np.int64(NO_CLASSES)
    for i in range(row.shape[0]):
        rows[number, i] = row[i]
    for k in range(classes.counts.shape[1]):
        classes.counts[number, k] = classes.fresh[number, k] = 0
    state = classes.states
    state[number, NEXT] = state[number, COMING] = coming_of(tables, lists, row)
    state[number, SHAPE], state[number, RESUMED], state[number, LOOKED] = shape, -1, row[END]
    state[number, IS_LIVE] = state[number, IS_TOUCHED] = state[number, TAKEN] = 0
    state[number, GUARDED] = state[number, UNTILED] = state[number, CHAIN] = state[number, LEARNT] = 0
    for way in range(0, classes.ways.shape[1], WAY):
        classes.ways[number, way + LEAD] = UNKNOWN
        classes.ways[number, way + POOL] = 0
        classes.ways[number, way + NUMBER] = NOT_YET
        classes.ways[number, way + KNOWN] = 0
    table[place] = number + 1
    classes.at[number] = place
    classes.sizes[ALL] = number + 1
    if number & (number - 1) == 0:
        power = 0
        while number >> (power + 1):
            power += 1
        classes.sizes[PASSED + power] = classes.sizes[PLACE]
    return number


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def forget_last(tables, row, variable):
    """Empty the slots of a match that are read no more, since it has been asked whether it is whole."""
    row[VARIABLE], row[TIES] = 0, 0
    forgets = t.at(tables, t.L_FORGETS, variable)
    for slot in range(row.shape[0] - SLOTS if forgets else 0):
        if forgets & (1 << slot):
            row[SLOTS + slot] = NONE


# --- Numbers of matches -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def add(total, number, other, sizes):
    """Add limbs to those of a row, or keep the greater value; return whether they fit."""
    if sizes[BEST]:
        total[number, 0] = max(total[number, 0], other[0])
        return True
    used = own = sizes[LIMBS]
    while own and other[own - 1] == 0:
        own -= 1
    carry = np.uint64(0)
    for i in range(own):
        some = other[i] + carry
        carry = np.uint64(1) if some < carry else np.uint64(0)
        some += total[number, i]
        if some < total[number, i]:
            carry = np.uint64(1)
        total[number, i] = some
    while carry and own < used:
        total[number, own] += carry
        carry = np.uint64(1) if total[number, own] == 0 else np.uint64(0)
        own += 1
    if carry:
        if used == total.shape[1]:
            return False
        total[number, used] = carry
        sizes[LIMBS] = used + 1
    return True


@njit(cache=True, nogil=True, _nrt=False)
def take_amount(classes, one):
    """Write the number of matches of a class as the amount."""
    for k in range(classes.sizes[LIMBS]):
        classes.amount[k] = classes.counts[one, k]


@njit(cache=True, nogil=True, _nrt=False)
def give(counts, fresh, amount, states, sizes, one, event):
    """Add the amount to a class; return whether it fits.

    It becomes fresh where the class may still take an event of this time; `event` is 0 if there are several such.
    `counts`, `fresh`, `amount`, `states` and `sizes` are those of `Classes`.
    """
    if event and (states[one, TAKEN] == event or not states[one, IS_LIVE]):
        if not states[one, IS_LIVE]:
            enliven(states, sizes, one)
        return add(counts, one, amount, sizes)
    if not states[one, IS_TOUCHED]:
        states[one, IS_TOUCHED] = 1
        states[sizes[TOUCHED], TOUCHING] = one
        sizes[TOUCHED] += 1
    return add(fresh, one, amount, sizes)


@njit(cache=True, nogil=True, _nrt=False)
def enliven(states, sizes, one):
    """Let later events join a class."""
    states[one, IS_LIVE] = 1
    if states[one, NEXT]:
        states[sizes[LIVE], LIVING] = one
        sizes[LIVE] += 1


@njit(cache=True, nogil=True, _nrt=False)
def leave_out(classes, event):
    """Leave out the classes whose span has passed."""
    left = 0
    for i in range(classes.sizes[LIVE]):
        one = classes.states[i, LIVING]
        if classes.rows[one, END] > event or classes.rows[one, VARIABLE] == NONE:
            classes.states[left, LIVING] = one
            left += 1
    classes.sizes[LIVE] = left


@njit(cache=True, nogil=True, _nrt=False)
def give_pools(classes, one, event):
    """Add the amount to the classes that stand for a class; return whether it fits."""
    fits = True
    for way in range(0, classes.ways.shape[1], WAY):
        pool = classes.ways[one, way + POOL] - 1
        if pool >= 0:
            fits &= give(classes.counts, classes.fresh, classes.amount, classes.states, classes.sizes, pool, event)
    return fits


@njit(cache=True, nogil=True, _nrt=False)
def settle(classes):
    """Make fresh matches ones that later events can join; return whether they fit."""
    counts, fresh, states, sizes = classes.counts, classes.fresh, classes.states, classes.sizes
    for i in range(sizes[TOUCHED]):
        one = states[i, TOUCHING]
        if not add(counts, one, fresh[one], sizes):
            return False
        for k in range(sizes[LIMBS]):
            fresh[one, k] = 0
        states[one, IS_TOUCHED] = 0
        if not states[one, IS_LIVE]:
            enliven(states, sizes, one)
    sizes[TOUCHED] = 0
    return True
