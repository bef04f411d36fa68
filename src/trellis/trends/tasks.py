"""What is counted and walked together: a window, or all trends of a span that begin at one event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trellis.kernels.worlds import first_ends
from trellis.language.bound import WindowKind
from trellis.language.syntax import LengthBound, Report
from trellis.plan.plan import Plan
from trellis.trends.graph import EventGraph
from trellis.trends.slice import Ints, Slice

NO_BOUND = 1 << 62


@dataclass(frozen=True)
class Tasks:
    """Ranges of events as `trellis.kernels.paths` takes them; `group` never falls."""

    lo: Ints
    hi: Ints
    first_end: Ints
    group: Ints
    single: bool
    every: bool

    def of_groups(self, wanted: Ints) -> Tasks:
        """Return the tasks of some groups."""
        keep = np.isin(self.group, wanted)
        return Tasks(self.lo[keep], self.hi[keep], self.first_end[keep], self.group[keep], self.single, self.every)


def make_tasks(plan: Plan, events: Slice, graph: Callable[[], EventGraph]) -> Tasks:
    """Return the tasks of a slice, in the order of the output."""
    groups = events.groups
    every = plan.bound.report is Report.ANY
    if plan.bound.window.kind is not WindowKind.SPAN:
        return Tasks(groups.lo, groups.hi, groups.lo, np.arange(len(groups)), False, every)
    starts = np.flatnonzero(events.usable)
    group = np.searchsorted(groups.lo, starts, side="right") - 1
    first_end = first_ends(graph().latest, events.until)
    return Tasks(starts, events.until[starts], first_end[starts], group, True, every)


def length_bounds(having: tuple[LengthBound, ...]) -> tuple[int, int]:
    """Return the least and the greatest length that HAVING allows."""
    least, most = 1, NO_BOUND
    for bound in having:
        if bound.op in (">=", "="):
            least = max(least, bound.value)
        if bound.op == ">":
            least = max(least, bound.value + 1)
        if bound.op in ("<=", "="):
            most = min(most, bound.value)
        if bound.op == "<":
            most = min(most, bound.value - 1)
    return min(least, NO_BOUND), most
