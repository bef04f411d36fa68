"""The cost of counting large groups, told from the beginning of the largest one."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Groups, Slice

LEAST_EVENTS = 64  # of the largest group that are tried first
ENOUGH = 0.02  # seconds that a try takes before it is the last
QUICK = 1e-3  # seconds that tell nothing of how they grow
STEEPEST = 6.0

Attempt = Callable[[int, int], tuple[float, float]]


def extrapolated(
    sizes: NDArray[np.float64], attempt: Attempt, bounded: bool = True, most: int | None = None
) -> tuple[float, float]:
    """Return an amount and the seconds of all groups of some sizes.

    The first events of the largest group are tried, then twice as many, as long as that is quick: how the work grows
    between the last two tells how it goes on. Where the amount does not bound it, it is the passes over the events that
    exact numbers take, which few events do not show yet.

    Parameters
    ----------
    sizes
        How many events each group has.
    attempt
        Does the work for the first events of a group, so many of them; gives the amount and the seconds.
    bounded
        Whether at worst each of the amount meets every event, which bounds how the seconds grow.
    most
        How many events are tried, at most; all of the largest group by default.
    """
    if not len(sizes) or sizes.max() == 0:
        return 0.0, 0.0
    largest = int(np.argmax(sizes))
    tried: list[tuple[int, float, float]] = []
    last = int(sizes[largest]) if most is None else min(most, int(sizes[largest]))
    size = min(LEAST_EVENTS, last)
    attempt(largest, min(8, size))  # kernels are loaded
    while True:
        amount, seconds = attempt(largest, size)
        if seconds > ENOUGH:  # a kernel may have been compiled
            seconds = min(seconds, attempt(largest, size)[1])
        tried.append((size, amount, seconds))
        if seconds > ENOUGH or size == last:
            break
        size = min(2 * size, last)
    if size == sizes[largest] and (len(sizes) == 1 or len(tried) == 1):
        growth = 1.0, 1.0
    else:
        amounts = _growth(tried, 1)
        passes = amounts + 1 if tried[-1][1] > 2 else 1.0
        growth = amounts, min(_growth(tried, 2), amounts + 1) if bounded else max(_growth(tried, 2), passes)
    scale = [float(((sizes / size) ** power).sum()) for power in growth]
    return tried[-1][1] * scale[0], tried[-1][2] * scale[1]


def _growth(tried: list[tuple[int, float, float]], what: int) -> float:
    """Return the power of the number of events with which something grows."""
    if len(tried) < 2 or (what == 2 and tried[-2][2] < QUICK):
        return 2.0
    (small, *_), (large, *_) = tried[-2:]
    before, after = tried[-2][what], tried[-1][what]
    if before <= 0 or after <= 0 or small == large:
        return 1.0
    return min(STEEPEST, max(1.0, log2(after / before) / log2(large / small)))


def duration(seconds: float) -> str:
    """Return a time that is about so long."""
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{seconds:,.0f} seconds"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def beginning(events: Slice, group: int, size: int) -> Slice:
    """Return the first events of a group, so many of them, as a slice of their own."""
    lo = int(events.groups.lo[group])
    own, cut = np.arange(lo, lo + size), slice(lo, lo + size)
    columns: dict[str, Any] = {name: column.take(own) for name, column in events.columns.items()}
    number = events.groups.number[group : group + 1]
    return Slice(
        columns, events.ids.take(own), events.times[cut], events.usable[cut], np.array([0, size]),
        Groups(np.array([0]), np.array([size]), number), np.minimum(events.until[cut] - lo, size), None,
        None if events.order is None else events.order[cut],
    )  # fmt: skip
