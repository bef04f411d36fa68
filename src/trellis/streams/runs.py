"""Runs of windows: consecutive windows of a partition that have had the same events, of which one set of sums is kept.

The windows `w` and `w + 1` have the same events of a partition unless one is in the pane between their beginnings. So
there are as many runs as panes with events, and not as many as open windows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Runs(NamedTuple):
    """The partition of each run, as a number, its first window and its last."""

    partition: Ints
    first: Ints
    last: Ints


class WindowEvents(NamedTuple):
    """Windows of partitions with the places of their events: from `lo` to before `hi`."""

    partition: Ints
    window: Ints
    lo: Ints
    hi: Ints


class ChangedRuns(NamedTuple):
    """The runs that others become when events are added, in the order of partitions and windows.

    Attributes
    ----------
    runs
        The runs.
    origin
        The run before that each goes on from; from the number of these on, it is new, as `added[origin - number]`.
    added
        The places of the runs that events are added to.
    lo, hi
        Their events.
    begin, end
        For each run before, between which runs those are that go on from it.
    """

    runs: Runs
    origin: Ints
    added: Ints
    lo: Ints
    hi: Ints
    begin: Ints
    end: Ints


def with_events(known: Runs, more: WindowEvents) -> ChangedRuns:
    """Return the runs when events that are no earlier than those before are in more windows.

    A run is divided where some of its windows have other ones of the events: those that end before the others.
    """
    number = len(known.first)
    ranks = np.unique(np.append(known.first, more.window), return_inverse=True)[1].reshape(-1)
    places = np.append(known.partition, more.partition) * (number + len(more.window)) + ranks
    before, order = np.argsort(places[:number]), np.argsort(places[number:])
    more = WindowEvents(*(array[order] for array in more))
    found = np.searchsorted(places[:number][before], places[number:][order], "right") - 1
    source = np.append(before, -1)[found]  # -1: behind the last, none
    covered = (np.append(known.last, -1)[source] >= more.window) & (
        np.append(known.partition, -1)[source] == more.partition
    )
    source = np.where(covered & (source >= 0), source, -1)
    same = np.stack([more.partition, source, more.lo, more.hi])
    begins = np.flatnonzero(np.append(True, (np.diff(same) != 0).any(axis=0)))
    ends = np.append(begins[1:], len(order)) - 1
    source, first = source[begins], more.window[begins]
    last = known.last.copy()
    old = source >= 0
    np.minimum.at(last, source[old], first[old] - 1)
    rest = np.flatnonzero(last >= known.first)
    runs = [
        np.append(known.partition[rest], more.partition[begins]), np.append(known.first[rest], first),
        np.append(last[rest], more.window[ends]),
    ]  # fmt: skip
    origin = np.append(rest, np.where(old, source, number + np.arange(len(begins))))
    order = np.lexsort((runs[1], runs[0]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    begin, end = np.full(number, len(order)), np.zeros(number, np.int64)
    goes_on = origin < number
    np.minimum.at(begin, origin[goes_on], place[goes_on])
    np.maximum.at(end, origin[goes_on], place[goes_on] + 1)
    changed = Runs(*(array[order] for array in runs))
    return ChangedRuns(changed, origin[order], place[len(rest) :], more.lo[begins], more.hi[begins], begin, end)


def each_between(begin: NDArray[Any], end: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return for each number from `begin` to before `end` of which pair it is, and the number."""
    sizes = end - begin
    of = np.repeat(np.arange(len(begin)), sizes)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[of]
