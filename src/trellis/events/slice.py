"""A slice: sorted columnar events, and the partitions and groups they fall into, the input of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.kernels.events.partitions import later_times
from trellis.properties import cached_property

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Windows of partitions, in the order of the output: group `g` holds the events `[lo[g], hi[g])`.

    `number` is the window's (the whole k of `[k * slide, k * slide + size)`), 0 where there are no windows.
    """

    lo: Ints
    hi: Ints
    number: Ints

    def __len__(self) -> int:
        return len(self.lo)


@dataclass(frozen=True)
class Slice:
    """Events in the order (partition, time, id).

    Attributes
    ----------
    columns
        The columns in normalised form (see `trellis.events.columns.types`), by name.
    ids
        The event ids as they were given.
    times
        The times as numbers: microseconds for timestamps and dates. For windows and spans.
    usable
        Which events meet the constant conditions; the others only break contiguous trends.
    bounds
        Partition `i` is `[bounds[i], bounds[i + 1])`; edges never leave a partition.
    groups
        The windows of partitions.
    until
        For each event the first one that can never be in a trend with it: past its last window, span or partition.
    begins
        Under a span, the events at which the results that are wanted begin; None for all. The others count when it is
        judged what is complete.
    order
        Where columns break ties, numbers that are in the order of (time, these columns) and equal where all are.
    """

    columns: Mapping[str, pa.Array]
    ids: pa.Array
    times: NDArray[Any]
    usable: NDArray[np.bool_]
    bounds: Ints
    groups: Groups
    until: Ints
    begins: NDArray[np.bool_] | None = None
    order: Ints | None = None

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def later(self) -> Ints:
        """For each event the first one of its partition that is later, or the end of that."""
        found: Ints = later_times(self.ticks, self.bounds)
        return found

    @cached_property
    def pairs(self) -> int:
        """The number of pairs of events that can be in one trend."""
        return self.pairs_between(0, len(self))

    def pairs_between(self, begin: int, end: int, each_start: bool = False) -> int:
        """Return the number of such pairs of some events, or, for `each_start` of a span, of all that it reaches."""
        if not each_start:
            return int(self.until[begin:end].sum()) - (end * (end + 1) - begin * (begin + 1)) // 2
        reached = (self.until[begin:end] - np.arange(begin + 1, end + 1)).astype(np.float64)
        return int((reached * reached).sum() / 2)

    @property
    def ticks(self) -> NDArray[Any]:
        """Numbers that tell which of two events comes first, equal where neither does; `times` are for distances."""
        return self.times if self.order is None else self.order


def read_backwards(events: Slice) -> Slice:
    """Return a slice whose time runs backwards: its last event is the first one, and so are its partitions and groups.

    Results that begin at some events only are none that end there: such slices have no mirror.
    """
    assert events.begins is None
    size, groups, rows = len(events), events.groups, pa.array(np.arange(len(events))[::-1])
    reached_from = np.searchsorted(events.until, np.arange(size), side="right")
    return Slice(
        {name: column.take(rows) for name, column in events.columns.items()},
        events.ids.take(rows),
        -events.times[::-1],
        events.usable[::-1].copy(),
        size - events.bounds[::-1],
        Groups(size - groups.hi[::-1], size - groups.lo[::-1], groups.number[::-1].copy()),
        size - reached_from[::-1],
        order=None if events.order is None else -events.order[::-1],
    )


def first_of_time(later: Ints) -> Ints:
    """Return for each event the first one of its time and partition; `later` has the first of a later time."""
    begins = np.ones(len(later), np.bool_)
    begins[1:] = later[1:] != later[:-1]
    return np.maximum.accumulate(np.where(begins, np.arange(len(later)), 0))


def next_of(flags: NDArray[np.bool_]) -> Ints:
    """Return for each place, and the one behind the last, the first from there on that has the flag; else the size."""
    size = len(flags)
    found = np.where(flags, np.arange(size), size)
    return np.append(np.minimum.accumulate(found[::-1])[::-1], size)


def last_of(flags: NDArray[np.bool_]) -> Ints:
    """Return for each place, and the one behind the last, the last one before it that has the flag; -1 without."""
    return np.append(-1, np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1)))


def until_forbidden(later: Ints, forbidden: NDArray[np.bool_]) -> Ints:
    """Return for each event the first one that is later than a forbidden one that is later than it."""
    return np.append(later, len(later))[next_of(forbidden)[later]]
