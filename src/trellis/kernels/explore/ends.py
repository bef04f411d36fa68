"""Which whole matches of a class nothing can be put after, told as events come, without a graph: REPORT unextendable.

The matches of a class have the same rest, so one of them can go on to a longer whole match exactly if the class does so
at a time after its last event. If the event makes it a whole one at once, those that ended before are left out. If not,
the step is noted, and decided when the last event of the group has come, the latest step first. The whole matches of a
class are held in three parts: those that ended at the time of the last one (`ended`), those before (`older`), and those
behind which steps were noted, with the first time that matters to them (`held`). A time is that of its first event.
"""

from __future__ import annotations

from trellis.kernels.explore.classes import (
    ALL,
    FOLLOWED,
    HELD,
    LIMBS,
    NO_LIMBS,
    NO_STEPS,
    NOTED,
    NOTES,
    POOL,
    POOLS,
    SINCE,
    WATCHED,
    WAY,
    add,
)
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def _latest(states, ways, sizes, one, what):
    """Return the latest time of a class, and of those that take events for it."""
    found = states[one, what]
    if sizes[POOLS]:
        for way in range(0, ways.shape[1], WAY):
            pool = ways[one, way + POOL] - 1
            if pool >= 0:
                found = max(found, states[pool, what])
    return found


@njit(cache=True, nogil=True, _nrt=False)
def _watch(states, ways, sizes, one):
    """Let the steps of a class be noted, and of those that take events for it."""
    if not states[one, WATCHED]:
        states[one, WATCHED] = 1
        if sizes[POOLS]:
            for way in range(0, ways.shape[1], WAY):
                if ways[one, way + POOL]:
                    states[ways[one, way + POOL] - 1, WATCHED] = 1


@njit(cache=True, nogil=True, _nrt=False)
def _hold(classes, counts, one, time):
    """Move numbers of matches to those that a step from a time on may follow; return 0, or `NO_STEPS`."""
    some, sizes = False, classes.sizes
    for k in range(sizes[LIMBS]):
        some |= counts[one, k] != 0
    if some:
        if sizes[HELD] == classes.held.shape[0]:
            return NO_STEPS
        classes.held[sizes[HELD], 0], classes.held[sizes[HELD], 1] = one, time
        for k in range(counts.shape[1]):
            classes.numbers[sizes[HELD], k] = counts[one, k]
        sizes[HELD] += 1
        _empty(counts, one)
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def _empty(counts, one):
    for k in range(counts.shape[1]):
        counts[one, k] = 0


@njit(cache=True, nogil=True, _nrt=False)
def _end(classes, one, time):
    """Add the amount to the whole matches of a class that end at a time; return 0, or what there is no room for."""
    states, sizes, ended, older = classes.states, classes.sizes, classes.ended, classes.older
    since = states[one, SINCE]
    if since < 0:
        _watch(states, classes.ways, sizes, one)
    elif since < time:
        followed = _latest(states, classes.ways, sizes, one, FOLLOWED)
        noted = _latest(states, classes.ways, sizes, one, NOTED)
        if followed >= since:
            _empty(older, one)
        elif noted >= since and _hold(classes, older, one, since) < 0:
            return NO_STEPS
        if followed > since:
            _empty(ended, one)
        elif noted > since and _hold(classes, ended, one, since + 1) < 0:
            return NO_STEPS
        if not add(older, one, ended[one], sizes):
            return NO_LIMBS
        _empty(ended, one)
    states[one, SINCE] = time
    return 0 if add(ended, one, classes.amount, sizes) else NO_LIMBS


@njit(cache=True, nogil=True, _nrt=False)
def go_on(classes, one, target, is_whole, counts, time, totals, group):
    """Note that the matches of a class became those of a `target`; return 0, or what there is no room for.

    `is_whole` tells whether these are whole matches, and `counts` whether such count; `time` is the first event of the
    time at which they end. Where all that count are results they are added to the `totals` of the group.
    """
    states, sizes = classes.states, classes.sizes
    if classes.notes.shape[0] == 0:
        return 0 if not (is_whole and counts) or add(totals, group, classes.amount, sizes) else NO_LIMBS
    if is_whole:
        states[one, FOLLOWED] = time
        return _end(classes, target, time) if counts else 0
    if states[one, WATCHED] and states[one, FOLLOWED] < time:
        if sizes[NOTES] == classes.notes.shape[0]:
            return NO_STEPS
        notes, number = classes.notes, sizes[NOTES]
        notes[number, 0], notes[number, 1], notes[number, 2] = one, target, time
        sizes[NOTES] += 1
        states[one, NOTED] = time
        _watch(states, classes.ways, sizes, target)
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def count_ends(classes, totals, group):
    """Add the number of whole matches that nothing can be put after to that of a group; return whether it fits."""
    states, ways, sizes, notes = classes.states, classes.ways, classes.sizes, classes.notes
    if notes.shape[0] == 0:
        return True
    for i in range(sizes[NOTES] - 1, -1, -1):
        one, target, time = notes[i, 0], notes[i, 1], notes[i, 2]
        if _latest(states, ways, sizes, target, FOLLOWED) > time:
            states[one, FOLLOWED] = max(states[one, FOLLOWED], time)
    fits = True
    for i in range(sizes[HELD]):
        if _latest(states, ways, sizes, classes.held[i, 0], FOLLOWED) < classes.held[i, 1]:
            fits &= add(totals, group, classes.numbers[i], sizes)
    for one in range(sizes[ALL]):
        if states[one, SINCE] >= 0:
            followed = _latest(states, ways, sizes, one, FOLLOWED)
            if followed < states[one, SINCE]:
                fits &= add(totals, group, classes.older[one], sizes)
            if followed <= states[one, SINCE]:
                fits &= add(totals, group, classes.ended[one], sizes)
    return fits
