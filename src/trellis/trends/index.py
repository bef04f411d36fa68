"""The attribute index: events sorted by key and attribute, so that what may follow an event is a range.

It takes the place of edges where the adjacent conditions are at most some equalities and one inequality, and serves all
windows of a slice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.kernels import indexed as kernel
from trellis.kernels.worlds import later_times
from trellis.language.bound import WindowKind
from trellis.language.syntax import Report, Select
from trellis.plan.plan import Plan
from trellis.trends.adjacency import HIGHEST, LOWEST, Adjacency, encode
from trellis.trends.slice import Ints, Slice


@dataclass(frozen=True)
class AttributeIndex:
    """The arrays that `trellis.kernels.indexed` works on; `nearest` and `latest`: first successor, last predecessor."""

    later: Ints
    segment_end: Ints
    cut: Ints
    place: Ints
    own: Ints
    own_end: Ints
    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    nearest: Ints
    latest: Ints

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays in the order of the kernels' arguments."""
        return (
            self.later, self.segment_end, self.cut, self.place, self.own, self.own_end, self.gives, self.takes,
            self.nearest, self.latest,
        )  # fmt: skip


def build_index(plan: Plan, events: Slice) -> AttributeIndex | None:
    """Return the index of a slice, or None where the conditions, or what is reported, need edges."""
    bound = plan.bound
    if bound.select is not Select.ANY or bound.report is Report.MAXIMAL or bound.window.kind is WindowKind.SPAN:
        return None
    adjacency = encode(plan.adjacent, events.columns, events.usable)
    if adjacency.residual or adjacency.differ_next or len(adjacency.above) > 1:
        return None
    return _index(events, adjacency)


def _index(events: Slice, adjacency: Adjacency) -> AttributeIndex:
    n = len(events)
    world = np.repeat(np.arange(len(events.bounds) - 1), np.diff(events.bounds))
    above = adjacency.above[0] if adjacency.above else np.zeros(n, np.int64)
    below = adjacency.below[0] if adjacency.below else np.full(n, -1, np.int64)
    key_next, key_prev = _joined(world, adjacency.key_next, adjacency.key_prev)
    takes = adjacency.takes & (above != LOWEST) & (key_next >= 0)
    gives = adjacency.gives & (below != HIGHEST) & (key_prev >= 0)
    above, below = np.where(takes, above, 0), np.where(gives, below, 0)
    later = later_times(events.times, events.bounds)
    ranges = _ranges(key_next, above, takes, key_prev, below)
    nearest = kernel.nearest_successors(events.bounds, later, *ranges, gives, takes)
    mirrored = _mirror(events, key_next, key_prev, above, below, gives, takes)
    latest = n - 1 - mirrored[::-1]
    segment_end, cut, place, own, own_end = ranges
    return AttributeIndex(later, segment_end, cut, place, own, own_end, gives, takes, nearest, latest)


def _joined(world: Ints, key_next: Ints | None, key_prev: Ints | None) -> tuple[Ints, Ints]:
    """Make the keys of a world another world's strangers; -1 stays. Dense, so that a value fits beside a key."""
    if key_next is None or key_prev is None:
        return world, world
    keys, worlds = np.concatenate([key_next, key_prev]), np.concatenate([world, world])
    _, codes = np.unique(worlds * (keys.max(initial=0) + 1) + keys, return_inverse=True)
    codes = np.where(keys < 0, -1, codes)
    return codes[: len(world)], codes[len(world) :]


def _ranges(
    key_next: Ints, above: Ints, takes: NDArray[np.bool_], key_prev: Ints, below: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Sort what can follow by (key, value).

    Return for each event the end of the segment of its successors and the cut; then its place, own segment and its end.
    """
    lowest = min(above.min(initial=0), below.min(initial=0))
    width = max(above.max(initial=0), below.max(initial=0)) - lowest + 1
    members = np.flatnonzero(takes)
    address = key_next[members] * width + (above[members] - lowest)
    order = np.argsort(address, kind="stable")
    sorted_address, sorted_key = address[order], key_next[members][order]
    place = np.zeros(len(takes), np.int64)
    place[members[order]] = np.arange(len(members))
    segment, segment_end = (np.searchsorted(sorted_key, key_prev, side) for side in ("left", "right"))
    own, own_end = (np.searchsorted(sorted_key, key_next, side) for side in ("left", "right"))
    cut = np.searchsorted(sorted_address, key_prev * width + (below - lowest), "right")
    return segment_end, np.clip(cut, segment, segment_end), place, own, own_end


def _mirror(
    events: Slice, key_next: Ints, key_prev: Ints, above: Ints, below: Ints, gives: NDArray[np.bool_],
    takes: NDArray[np.bool_],
) -> Ints:  # fmt: skip
    """Return the nearest predecessors as the nearest successors of the same events with time running backwards."""
    n = len(events)
    back = slice(None, None, -1)
    bounds = n - events.bounds[back]
    times = events.times[back]
    later = later_times(-times if times.dtype.kind == "f" else ~times, bounds)
    ranges = _ranges(key_prev[back], -below[back], gives[back], key_next[back], -above[back])
    return kernel.nearest_successors(bounds, later, *ranges, takes[back], gives[back])
