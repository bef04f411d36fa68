"""The cost of an exploration, told from the beginning of the largest group."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from time import thread_time

import numpy as np

from trellis.errors import TrellisError
from trellis.events.slice import Groups
from trellis.operators.patterns.explore import Exploration

LEAST_EVENTS = 64  # of the largest group that are tried first
ENOUGH = 0.05  # seconds that a try takes before it is the last
QUICK = 1e-3  # seconds that tell nothing of how they grow
STEEPEST = 6.0


@dataclass(frozen=True)
class Estimate:
    """How many matches so far there are in all groups, about, and how many seconds counting takes."""

    vertices: float
    seconds: float

    def texts(self) -> dict[str, str]:
        """Say it, for `explain`."""
        return {
            "vertices": f"about {self.vertices:,.0f} matches so far in all windows and partitions, by a sample",
            "time": f"about {_duration(self.seconds)} to count, by a sample",
        }


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{seconds:,.0f} seconds"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def estimate(exploration: Exploration, alone: bool) -> Estimate:
    """Return the cost of counting; `alone`, without a graph.

    The first events of the largest group are explored, then twice as many, as long as that is quick: how the work
    grows between the last two tells how it goes on.
    """
    groups = exploration.events.groups
    sizes = (groups.hi - groups.lo).astype(np.float64)
    if not len(sizes) or sizes.max() == 0:
        return Estimate(0, 0)
    largest = int(np.argmax(sizes))
    tried: list[tuple[int, float, float]] = []
    size = min(LEAST_EVENTS, int(sizes[largest]))
    _try(exploration, groups, largest, min(8, size), alone)  # kernels are loaded
    while True:
        vertices, seconds = _try(exploration, groups, largest, size, alone)
        tried.append((size, vertices, seconds))
        if seconds > ENOUGH or size == sizes[largest]:
            break
        size = min(2 * size, int(sizes[largest]))
    if size == sizes[largest] and (len(groups) == 1 or len(tried) == 1):
        growth = 1.0, 1.0
    else:
        matches = _growth(tried, 1)
        growth = matches, min(_growth(tried, 2), matches + 1)  # at worst every match so far meets every event
    scale = [float(((sizes / size) ** power).sum()) for power in growth]
    return Estimate(tried[-1][1] * scale[0], tried[-1][2] * scale[1])


def _growth(tried: list[tuple[int, float, float]], what: int) -> float:
    """Return the power of the number of events with which something grows."""
    if len(tried) < 2 or (what == 2 and tried[-2][2] < QUICK):
        return 2.0
    (small, *_), (large, *_) = tried[-2:]
    before, after = tried[-2][what], tried[-1][what]
    if before <= 0 or after <= 0 or small == large:
        return 1.0
    return min(STEEPEST, max(1.0, log2(after / before) / log2(large / small)))


def _try(exploration: Exploration, groups: Groups, group: int, size: int, alone: bool) -> tuple[float, float]:
    """Explore the first events of a group; return the matches so far, and the seconds it took."""
    lo = groups.lo[group : group + 1]
    some = Groups(lo, lo + size, groups.number[group : group + 1])
    begin = thread_time()
    try:
        vertices = exploration.classes(some) if alone else exploration.vertices(some)
    except TrellisError:
        return float("inf"), float("inf")
    return float(vertices), thread_time() - begin
