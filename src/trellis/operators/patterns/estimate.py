"""The cost of an exploration, told from the beginning of the largest group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import thread_time

import numpy as np

from trellis.errors import TrellisError
from trellis.events.slice import Groups, Slice
from trellis.operators.growth import beginning, duration, extrapolated, reach_in_spans
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.explore import Exploration
from trellis.plan.plan import Plan

SAMPLED = 1 << 16  # events of the largest group that are explored, at most
MOST_VERTICES = 1 << 16  # matches so far, of these


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


def estimate(plan: Plan, events: Slice, alone: bool) -> Estimate:
    """Return the cost of counting; `alone`, without a graph."""
    sizes = (events.groups.hi - events.groups.lo).astype(np.float64)
    if not len(sizes) or not sizes.max():
        return Estimate(0.0, 0.0)
    largest = int(np.argmax(sizes))
    some = beginning(events, largest, min(SAMPLED, int(sizes[largest])))
    few = replace(plan, sizes=replace(plan.sizes, most_vertices=min(plan.sizes.most_vertices, MOST_VERTICES)))
    exploration = Exploration(few, some, make_variables(plan, some))

    def attempt(_: int, size: int) -> tuple[float, float]:
        """Explore the first events of the largest group; return the matches so far, and the seconds it took."""
        first = Groups(some.groups.lo, some.groups.lo + size, some.groups.number)
        begin = thread_time()
        try:
            vertices = exploration.classes(first) if alone else exploration.vertices(first)
        except TrellisError:
            return float("inf"), float("inf")
        return float(vertices), thread_time() - begin

    return Estimate(*extrapolated(sizes, attempt, most=SAMPLED, reach=reach_in_spans(plan, some)))
