"""Matches of one first event counted by themselves, and which of them REPORT unextendable leaves out at once.

What may be put before a match is told while earlier starts are counted. When an event comes that could begin a match
itself, the class that matches so far lead to with it is compared with the class of those that begin with it. Where the
two are one, or what the longer matches remember is only easier on what follows, whatever follows this event may follow
the earlier ones as well, as far as their span reaches: matches from it are results only if they end behind that. Where
no longer match is so, classes do not tell what is a result.

The same carries values in place of numbers: the best of each class, which tells the best of each start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore.classes import BEST, LIMBS
from trellis.kernels.explore.easier import NO_EASE, RegisterEase
from trellis.kernels.jit import njit

NOT_ALIKE = -12  # what is put before matches that begin with an event has another rest
NONE_YET = 1 << 62  # the value of a match without events: values are carried as numbers above 0


class CountedStarts(NamedTuple):
    """The questions about the first events of matches.

    Attributes
    ----------
    alone
        Whether the matches of a group are those that begin with its first event.
    letter
        The letter with which matches begin, where it is asked what may be put before them; else -1.
    covers, others
        int64 (events + 1,): where the spans of matches end that are longer by something before an event: of the latest
        one with the same rest, and the latest one with another; 0 for none.
    ease
        The order of ease of the values of registers.
    gives
        int64 (3, letters, events): what each event gives to the value of a match: as any, as its first and as its last
        event; no letters where matches are counted.
    """

    alone: bool
    letter: int
    covers: np.ndarray
    others: np.ndarray
    ease: RegisterEase
    gives: np.ndarray


def plain_starts() -> CountedStarts:
    """Return the questions where all matches of a group are counted together: none."""
    none = np.zeros(0, np.int64)
    return CountedStarts(False, -1, none, none, NO_EASE, np.zeros((3, 0, 0), np.int64))


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def let_give(classes, starts, one, start, variable, event):
    """Write what a class gives with an event: the value of its matches; numbers are there already."""
    if classes.sizes[BEST]:
        value = np.int64(classes.counts[one, 0]) + starts.gives[0, variable, event]
        if one == start:
            value += starts.gives[1, variable, event]
        classes.amount[0] = np.uint64(value)


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def note_value(classes, starts, variable, event, totals, group):
    """Note the value of whole matches that end with an event in `totals`, if it is the best of the group."""
    value = np.int64(classes.amount[0]) + starts.gives[2, variable, event]
    totals[group, 0] = max(totals[group, 0], np.uint64(value))


@njit(cache=True, nogil=True, _nrt=False)
def has_none(classes, one):
    """Return whether a class has no matches."""
    limb, used = 0, classes.sizes[LIMBS]
    while limb < used and classes.counts[one, limb] == 0:
        limb += 1
    return limb == used


@njit(cache=True, nogil=True, _nrt=False)
def note_longer(starts, same, other, event, hi):
    """Note what longer matches are like that took an event too; return 0, or `NOT_ALIKE`."""
    if same:
        starts.covers[event] = hi
    elif other:
        starts.others[event] = hi
        if not starts.alone:
            return np.int64(NOT_ALIKE)
    return np.int64(0)
