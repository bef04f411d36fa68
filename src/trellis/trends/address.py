"""Trends by their rank, without those before them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.digits import number_text
from trellis.errors import UsageError
from trellis.kernels import unrank as kernel
from trellis.language.bound import BoundQuery
from trellis.language.syntax import LengthBound
from trellis.language.times import EPOCH, parse_timestamp
from trellis.trends.graph import EventGraph
from trellis.trends.slice import Slice
from trellis.trends.tasks import NO_BOUND, Tasks, length_bounds


class Addresses:
    """The trends of one task, addressable by rank."""

    def __init__(
        self, events: Slice, graph: EventGraph, tasks: Tasks, task: int, bits: int, having: tuple[LengthBound, ...]
    ) -> None:
        self.least, self.most = length_bounds(having)
        self.limbs = bits // kernel.LIMB + 2
        lo, hi, first_end = int(tasks.lo[task]), int(tasks.hi[task]), int(tasks.first_end[task])
        shape = (lo, hi, first_end, tasks.every, graph.offsets, graph.successors, events.usable, self.limbs)
        self._counts = kernel.suffix_counts(*shape)
        self._layers = np.zeros((0, 0, self.limbs), np.uint64)
        if self.least > 1 or self.most < NO_BOUND:
            lengths = min(hi - lo, self.least if self.most >= NO_BOUND else self.most)
            self._layers = kernel.layered_counts(*shape, max(1, lengths))
        self._path = np.zeros(hi - lo + 1, np.int64)
        self._shape = (
            lo, hi, first_end, tasks.single, tasks.every, graph.offsets, graph.successors, graph.latest, events.usable,
            self._counts, self._layers, self.least, self.most, self._path,
        )  # fmt: skip

    def trend(self, rank: int) -> NDArray[np.int64]:
        """Return the events of the trend with a rank; empty where there is none."""
        limbs = np.array([rank >> (kernel.LIMB * i) & 0xFFFFFFFF for i in range(self.limbs)], np.uint64)
        length = kernel.unrank(limbs, *self._shape)
        return self._path[:length].copy()


def place(counts: Sequence[int], position: int) -> tuple[int, int]:
    """Return which of consecutive ranges of these sizes holds a position, and where in it."""
    ends = list(accumulate(counts))
    found = bisect_right(ends, position)
    return found, position - (ends[found - 1] if found else 0)


def sample_positions(total: int, number: int, seed: int) -> list[int]:
    """Return distinct positions below `total`, every set of them equally likely, in rising order; all if there are few.

    They depend on nothing but the arguments.
    """
    if number >= total:
        return list(range(total))
    chosen: set[int] = set()
    source = Random(seed)
    for last in range(total - number, total):  # Floyd's way: no draw is in vain
        drawn = source.randrange(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return sorted(chosen)


def sampled_ranks(counts: Sequence[int], number: int, seed: int) -> dict[int, list[int]]:
    """Draw results of consecutive groups of these sizes; return the ranks drawn of each group that has any."""
    if number < 0:
        raise UsageError(f"a sample of {number} cannot be drawn")
    chosen: dict[int, list[int]] = {}
    for position in sample_positions(sum(counts), number, seed):
        group, rank = place(counts, position)
        chosen.setdefault(group, []).append(rank)
    return chosen


def named_group(bound: BoundQuery, rows: Sequence[Mapping[str, Any]], window: Any, partition: Any) -> int:
    """Return which of the rows that tell window and partition is the one that was named."""
    names = [name for name, _ in bound.partition]
    if isinstance(partition, Mapping):
        partition = tuple(partition.get(n) for n in names)
    wanted = partition if isinstance(partition, tuple) else (partition,)
    window = _as_moment(window)
    found = [
        i
        for i, row in enumerate(rows)
        if (window is None or row.get("window_start") == window)
        and (partition is None or tuple(row[n] for n in names) == wanted)
    ]
    if len(found) == 1:
        return found[0]
    what = f"{len(found):,} windows and partitions fit" if found else "no window and partition with a result fits"
    raise UsageError(f"{what}; a rank belongs to one", "Name it with window= (its start) and partition= (its values).")


def _as_moment(window: Any) -> Any:
    """Return the start of a window as results have it: text and times without a zone are in UTC."""
    if hasattr(window, "to_pydatetime"):
        window = window.to_pydatetime()
    elif type(window).__module__ == "numpy":
        window = window.astype("datetime64[us]").item() if window.dtype.kind == "M" else window.item()
    if isinstance(window, str):
        micros = parse_timestamp(window)
        return window if micros is None else EPOCH + timedelta(microseconds=micros)
    return window.replace(tzinfo=UTC) if isinstance(window, datetime) and window.tzinfo is None else window


def check_rank(rank: int, count: int) -> None:
    """Refuse what is no rank, and a rank that no trend of a group of this size has."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise UsageError(f"a rank is a whole number, not a {type(rank).__name__}")
    if not 0 <= rank < count:
        shown = number_text(int(rank)) if rank >= 0 else str(rank)
        raise UsageError(f"there is no trend with rank {shown}", f"Ranks go from 0 to {number_text(count - 1)}.")
