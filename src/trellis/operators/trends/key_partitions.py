"""Key partitions of a slice: the events of one key in a partition, in time order; edges never leave them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice

Flags = NDArray[np.bool_]
Places = NDArray[np.int32]


@dataclass(frozen=True)
class KeyPartitions:
    """The usable events by key partition, each in time order; without a key, by partition.

    Attributes
    ----------
    order
        The positions of the events; all that follows speaks of places in it.
    bounds
        Key partition `i` is `[bounds[i], bounds[i + 1])`.
    first, after
        For each event the first one of its time, and the first one later.
    limit
        For each event the first one of its key partition that shares no window with it.
    """

    order: Ints
    bounds: Ints
    first: Places
    after: Places
    limit: Places


def arrange(events: Slice, key: Ints | None) -> KeyPartitions:
    """Return the key partitions of a slice; without a key, its partitions."""
    n = len(events)
    order = np.flatnonzero(events.usable)
    number = np.repeat(np.arange(len(events.bounds) - 1), np.diff(events.bounds))[order]
    if key is not None:
        number = number * (key.max(initial=0) + 2) + key[order] + 1
        arranged = np.argsort(number, kind="stable")
        order, number = order[arranged], number[arranged]
    bounds = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(order))
    shift = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) * (n + 1)
    first, after = runs_of(shift + events.later[order])
    limit = np.searchsorted(shift + order, shift + events.until[order])
    return KeyPartitions(order, bounds, first, after, limit.astype(np.int32))


def runs_of(values: Ints) -> tuple[Places, Places]:
    """Return for each value where the run of equal values begins and ends that it lies in."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    sizes = np.diff(np.append(begins, len(values)))
    return np.repeat(begins, sizes).astype(np.int32), np.repeat(begins + sizes, sizes).astype(np.int32)
