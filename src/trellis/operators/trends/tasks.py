"""Tasks, each counted and listed as a whole: a window, or all trends of a span that begin at one event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.events.slice import Ints, Slice
from trellis.kernels.events.partitions import first_ends
from trellis.language.bound import LengthBound, WindowKind
from trellis.language.syntax import Report
from trellis.plan.plan import Plan

NO_BOUND = 1 << 62


@dataclass(frozen=True)
class TrendTasks:
    """Ranges of events as `kernels.count.passes` takes them; `group` never falls, `number` is the task's own.

    Tasks that are `single` begin at `lo`, or, where `starts` is given, at the events that it gives their number.
    """

    lo: Ints
    hi: Ints
    first_end: Ints
    group: Ints
    number: Ints
    single: bool
    every: bool
    starts: Ints | None = None

    def __len__(self) -> int:
        return len(self.lo)

    def of_groups(self, wanted: Ints) -> TrendTasks:
        """Return the tasks of some groups."""
        return self.chosen(np.isin(self.group, wanted))

    def chosen(self, which: Any) -> TrendTasks:
        """Return the tasks that a mask, a slice or places name."""
        lo, hi, first_end, group, number = (
            a[which] for a in (self.lo, self.hi, self.first_end, self.group, self.number)
        )
        return TrendTasks(lo, hi, first_end, group, number, self.single, self.every, self.starts)

    def starting(self, events: int) -> Ints:
        """Return for each of so many events the place of the task that begins there, or -1; nothing for windows."""
        if not self.single:
            return np.empty(0, np.int64)
        found = np.full(events, -1)
        if self.starts is None:
            found[self.lo] = np.arange(len(self))
            return found
        place = np.full(self.starts.max(initial=-1) + 2, -1)
        place[self.number] = np.arange(len(self))
        return place[self.starts]

    def together(self, events: int) -> TrendTasks:
        """Return tasks of spans with those joined that end at the same event and may end trends at the same ones.

        What cannot be the begin of a complete trend, because each could also begin earlier, is left out.
        """
        if not self.single or self.starts is not None:
            return self
        some = self if self.every else self.chosen(self.first_end < self.hi)
        first_end = np.where(some.every | (some.first_end <= some.lo), 0, some.first_end)
        order = np.lexsort((some.lo, first_end, some.hi, some.group))
        new = np.ones(len(some), np.bool_)
        keys = [key[order] for key in (some.group, some.hi, first_end)]
        new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        first = order[new]
        starts = np.full(events, -1)
        starts[some.lo[order]] = some.number[first][np.cumsum(new) - 1]
        joined = replace(some, first_end=first_end, starts=starts)
        return joined.chosen(np.sort(first))


def make_tasks(plan: Plan, events: Slice) -> TrendTasks:
    """Return the tasks of a slice, in the order of the output; those of spans do not know yet where trends may end."""
    groups = events.groups
    every = plan.bound.report is Report.ANY
    if plan.bound.window.kind is not WindowKind.SPAN:
        number = np.arange(len(groups))
        return TrendTasks(groups.lo, groups.hi, groups.lo, number, number, False, every)
    starts = np.flatnonzero(events.usable)
    group = np.searchsorted(groups.lo, starts, side="right") - 1
    return TrendTasks(starts, events.until[starts], starts, group, np.arange(len(starts)), True, every)


def with_first_ends(tasks: TrendTasks, events: Slice, latest: Ints) -> TrendTasks:
    """Return the tasks of spans with the first event at which a trend that starts no earlier may end."""
    if not tasks.single:
        return tasks
    return replace(tasks, first_end=first_ends(latest, events.until)[tasks.lo])


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
