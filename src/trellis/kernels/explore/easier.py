"""Which of two classes goes on more easily: whatever comes of the one comes of the other, too.

It is so where they differ in registers alone of which all that is ever asked is whether they are great enough, or small
enough; in the end of the span; and in what a NOT forbids, or may still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.matches import BOUND, BRANCHES, END, EVENT, OPENS, SLOTS, TRACKED
from trellis.kernels.explore.waits import waits_as_easily
from trellis.kernels.jit import njit

UNTOLD, NUMBERS, EVENTS, ONE_VALUE = range(4)
NO_VALUE = -(1 << 63)


class RegisterEase(NamedTuple):
    """The order of ease of the values of each register.

    Attributes
    ----------
    kinds
        `UNTOLD` where nothing is; `NUMBERS` where it is the one whose product with `signs` is less; `EVENTS` where it
        is that whose code is less, by `codes`; and `ONE_VALUE` where it is one value rather than several, by `signs`.
    signs, codes
        See `kinds`; `NO_VALUE` for an event that is neither easier nor harder than others.
    """

    kinds: np.ndarray  # int64 (registers,)
    signs: np.ndarray  # int64 (registers,)
    codes: np.ndarray  # int64 (registers, events)


NO_EASE = RegisterEase(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0), np.int64))
"""Given where nothing is compared."""


@njit(cache=True, nogil=True, _nrt=False)
def is_as_easy(tables, columns, programs, lists, ease, rows, one, other):
    """Return whether a class goes on as easily as another, by their rows and the `ease` of registers."""
    if one == other:
        return True
    if rows[one, BOUND] != rows[other, BOUND] or rows[one, OPENS] != rows[other, OPENS]:
        return False
    if rows[one, BRANCHES] != rows[other, BRANCHES] and not waits_as_easily(
        tables, columns, programs, lists, rows[one, BRANCHES], rows[other, BRANCHES]
    ):
        return False
    if rows[one, END] < rows[other, END]:
        return False
    if rows[one, EVENT] != rows[other, EVENT]:
        if rows[one, EVENT] > TRACKED or rows[other, EVENT] > TRACKED:
            return False
        if (TRACKED - rows[one, EVENT]) & ~(TRACKED - rows[other, EVENT]):
            return False
    for slot in range(ease.kinds.shape[0]):
        a, b = rows[one, SLOTS + slot], rows[other, SLOTS + slot]
        if a == b:
            continue
        kind = ease.kinds[slot]
        if kind == UNTOLD or a == t.NONE or b == t.NONE:
            return False
        if kind == ONE_VALUE:
            if (b if ease.signs[slot] > 0 else a) != t.CONFLICT:
                return False
        elif kind == NUMBERS:
            if (a > b) == (ease.signs[slot] > 0):
                return False
        else:
            x, y = ease.codes[slot, a], ease.codes[slot, b]
            if x == NO_VALUE or y == NO_VALUE or x > y:
                return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def keep_easiest(tables, columns, programs, lists, ease, rows, members, number, one):
    """Add a class to some, unless one goes on as easily, in place of those that it is as easy as.

    How easy it is to go on is told by `ease`. Return how many there are then; -1 if there is no room.
    """
    for i in range(number):
        if is_as_easy(tables, columns, programs, lists, ease, rows, members[i], one):
            return number
    left = 0
    for i in range(number):
        if not is_as_easy(tables, columns, programs, lists, ease, rows, one, members[i]):
            members[left] = members[i]
            left += 1
    if left == members.shape[0]:
        return -1
    members[left] = one
    return left + 1
