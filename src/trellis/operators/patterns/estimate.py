"""The cost of an exploration, told from the beginning of the largest group."""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time

import numpy as np

from trellis.errors import TrellisError
from trellis.events.slice import Groups
from trellis.operators.growth import duration, extrapolated
from trellis.operators.patterns.explore import Exploration


@dataclass(frozen=True)
class Estimate:
    """How many matches so far there are in all groups, about, and how many seconds counting takes."""

    vertices: float
    seconds: float

    def texts(self) -> dict[str, str]:
        """Say it, for `explain`."""
        return {
            "vertices": f"about {self.vertices:,.0f} matches so far in all windows and partitions, by a sample",
            "time": f"about {duration(self.seconds)} to count, by a sample",
        }


def estimate(exploration: Exploration, alone: bool) -> Estimate:
    """Return the cost of counting; `alone`, without a graph."""
    groups = exploration.events.groups

    def attempt(group: int, size: int) -> tuple[float, float]:
        """Explore the first events of a group; return the matches so far, and the seconds it took."""
        lo = groups.lo[group : group + 1]
        some = Groups(lo, lo + size, groups.number[group : group + 1])
        begin = thread_time()
        try:
            vertices = exploration.classes(some) if alone else exploration.vertices(some)
        except TrellisError:
            return float("inf"), float("inf")
        return float(vertices), thread_time() - begin

    return Estimate(*extrapolated((groups.hi - groups.lo).astype(np.float64), attempt))
