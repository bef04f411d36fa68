"""The cost of counting large groups, told from the beginning of the largest one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Groups, Slice
from trellis.language.bound import WindowKind
from trellis.plan.plan import Plan

LEAST_EVENTS = 16  # of the largest group that are tried first
ENOUGH = 0.02  # seconds that a try takes before it is the last
TOO_LONG = 0.3  # seconds that the next try would take if it grew as the last one did
QUICK = 1e-3  # seconds that tell nothing of how they grow
STEEPEST = 6.0
YEAR = 365 * 24 * 3600  # seconds

Attempt = Callable[[int, int], tuple[float, float]]


def extrapolated(
    sizes: NDArray[np.float64], attempt: Attempt, bounded: bool = True, most: int | None = None, reach: float = inf
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
    reach
        How many events are in the reach of one: of more, each takes as long as another.
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
        if tried and not isfinite(seconds):  # there is no room for so many
            break
        before = tried[-1][2] if tried else QUICK
        tried.append((size, amount, seconds))
        if seconds > ENOUGH or size == last or seconds * seconds > TOO_LONG * max(before, QUICK):
            break
        size = min(2 * size, last)
    size = tried[-1][0]
    if size == sizes[largest] and (len(sizes) == 1 or len(tried) == 1):
        growth = 1.0, 1.0
    else:
        amounts = _growth(tried, 1)
        passes = amounts + 1 if tried[-1][1] > 2 else 1.0
        growth = amounts, min(_growth(tried, 2), amounts + 1) if bounded else max(_growth(tried, 2), passes)
    reach = min(reach, float(sizes[largest]))
    spread = np.append(sizes, size) / reach  # an event costs more until all of its reach is there
    work = [np.where(spread < 1, spread**power, 1 + power * (spread - 1)) for power in growth]
    scale = [float((one[:-1] / one[-1]).sum()) for one in work]
    return tried[-1][1] * scale[0], tried[-1][2] * scale[1]


def _growth(tried: list[tuple[int, float, float]], what: int) -> float:
    """Return the power of the number of events with which something grows."""
    if len(tried) < 2:
        return 2.0
    if what == 2 and tried[-2][2] < QUICK:
        return max(2.0, _growth(tried, 1))
    (small, *_), (large, *_) = tried[-2:]
    before, after = tried[-2][what], tried[-1][what]
    if before <= 0 or after <= 0 or small == large:
        return 1.0
    return min(STEEPEST, max(1.0, log2(after / before) / log2(large / small)))


def reach_in_spans(plan: Plan, events: Slice) -> float:
    """Return how many events are in the span that begins at one, on average; without spans there is no bound."""
    if plan.bound.window.kind is not WindowKind.SPAN or not len(events):
        return inf
    return float((events.until - np.arange(len(events))).mean())


def duration(seconds: float) -> str:
    """Return a time that is about so long."""
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{seconds:,.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} minutes"
    return f"{seconds / 3600:,.0f} hours" if seconds < YEAR else f"{seconds / YEAR:,.0f} years"


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
