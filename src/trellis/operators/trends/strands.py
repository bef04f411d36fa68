"""Strands of a slice: what one world, or one key in it, holds, in time order; edges never leave a strand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.kernels.events.partitions import later_times

Flags = NDArray[np.bool_]
Places = NDArray[np.int32]


@dataclass(frozen=True)
class Strands:
    """The usable events by strand, each strand in time order.

    Attributes
    ----------
    order
        The positions of the events; all that follows speaks of places in it.
    bounds
        Strand `i` is `[bounds[i], bounds[i + 1])`.
    first, after
        For each event the first one of its time, and the first one later.
    limit
        For each event the first one of its strand that shares no window with it.
    """

    order: Ints
    bounds: Ints
    first: Places
    after: Places
    limit: Places


def arrange(events: Slice, key: Ints | None) -> Strands:
    """Return the strands of a slice: its worlds, or what has one key in them."""
    n = len(events)
    order = np.flatnonzero(events.usable)
    strand = np.repeat(np.arange(len(events.bounds) - 1), np.diff(events.bounds))[order]
    if key is not None:
        strand = strand * (key.max(initial=0) + 2) + key[order] + 1
        arranged = np.argsort(strand, kind="stable")
        order, strand = order[arranged], strand[arranged]
    bounds = np.append(np.flatnonzero(np.diff(strand, prepend=-1)), len(order))
    number = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) * (n + 1)
    first, after = runs_of(number + later_times(events.times, events.bounds)[order])
    limit = np.searchsorted(number + order, number + events.until[order])
    return Strands(order, bounds, first, after, limit.astype(np.int32))


def runs_of(values: Ints) -> tuple[Places, Places]:
    """Return for each value where the run of equal values begins and ends that it lies in."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    sizes = np.diff(np.append(begins, len(values)))
    return np.repeat(begins, sizes).astype(np.int32), np.repeat(begins + sizes, sizes).astype(np.int32)
