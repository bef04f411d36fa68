"""The cost of counting, told from some of the events: more and more are counted in, as long as that is quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Groups, Ints, Slice, first_of_time
from trellis.memory import limit_text
from trellis.operators.contract import Explored
from trellis.plan.plan import Plan

LEAST_EVENTS = 8  # that are tried first
ENOUGH = 0.15  # seconds that all tries together take, about
AROUND = 4  # times the events of a span that are tried, in spans that are made shorter
QUICK = 1e-3  # seconds that tell nothing of how they grow
STEEPEST = 6.0  # power of the events around it with which the work for an event is told to grow
LONG = 60.0  # seconds from which on it is said what would make counting quicker
YEAR = 365 * 24 * 3600  # seconds
MOST_VERTICES, MOST_STEPS, MOST_EDGES, MOST_NODES = 1 << 16, 1 << 21, 1 << 21, 1 << 16  # of one try
REACH_STEPS = 1 << 24

NOTHING = Explored()


@dataclass(frozen=True)
class Try:
    """The cost of counting in some events.

    Attributes
    ----------
    seconds
        The time, on one core.
    limbs
        How many words of 64 bits the numbers took; 0 where it was refused.
    explored
        What was explored.
    """

    seconds: float
    limbs: int = 1
    explored: Explored = NOTHING


@dataclass(frozen=True)
class Cost:
    """The cost of counting in all events, about.

    Attributes
    ----------
    seconds
        The time, on one core; infinite where even few events take too long.
    vertices, bytes
        The matches so far of the largest group that an exploration tells apart, and their bytes; 0 where there is none.
    share
        How much of the work was done to tell.
    """

    seconds: float
    vertices: float = 0.0
    bytes: float = 0.0
    share: float = 1.0

    def texts(self, memory: int) -> dict[str, str]:
        """Say it, for `explain`; beyond so many bytes counting is refused."""
        told = {}
        if self.vertices:
            number = f"{self.vertices:,.0f}" if self.vertices < 1e15 else f"{self.vertices:.0e}"
            told["vertices"] = f"about {number} matches so far in the largest window and partition, by a sample"
        if self.seconds == inf:
            told["time"] = "not known: some ten events are more than a sample may take, and counting will be refused"
        elif self.bytes > memory:
            told["time"] = f"none: counting will be refused, since these take more than {limit_text(memory)}B"
        else:
            told["time"] = f"about {duration(self.seconds)} to count, by a sample"
            if self.seconds > LONG:
                told["quicker"] = "with a shorter WITHIN, a partition such as `[id]`, or narrower conditions"
        return told


Attempt = Callable[[Slice], Try]


def cost_of(events: Slice, in_spans: bool, attempt: Attempt) -> Cost:
    """Return the cost of counting in all events.

    A few events are tried, then twice as many, as long as that is quick: those of the largest group from its first one
    on, in spans from where most events are in reach, and then those of other groups, too. So how the work for an event
    grows with the events around it tells how it goes on; in spans these are made as much shorter as there are fewer
    events. Where exact numbers grow with the events, so do the passes over them, which few events do not show yet.

    Parameters
    ----------
    events
        All events.
    in_spans
        Whether matches lie in spans.
    attempt
        Counts in some; what that takes where it is not refused.
    """
    if not len(events) or not (events.groups.hi > events.groups.lo).any():
        return Cost(0.0)
    sample = Sample(events, in_spans)
    tried, refused = _tries(sample, attempt)
    if not tried:
        return Cost(inf)
    (number, last), least = tried[-1], min(one.seconds for _, one in tried)
    growth = partial(_growth, [(sample.around(size), size, one) for size, one in tried])
    if last.explored.steps:
        power = growth(lambda one: float(one.explored.steps), STEEPEST)
        longest = max((last, *refused), key=lambda one: one.explored.steps)
        spent = last.explored.steps * (longest.seconds - least) / longest.explored.steps
    else:
        passes = growth(lambda one: float(one.limbs), 0.0) + 2 if last.limbs > 2 else 0.0
        power = max(growth(lambda one: one.seconds - least if one.seconds > QUICK else 0.0, 1.0), passes)
        spent = last.seconds - least
    share = sample.share(number, power)
    vertices = growth(lambda one: float(one.explored.vertices), STEEPEST)
    most = last.explored.vertices * sample.times(number, vertices)
    taken = last.explored.bytes * sample.times(number, growth(lambda one: float(one.explored.bytes), STEEPEST))
    return Cost(least + spent / share, most, taken, share)


def _tries(sample: Sample, attempt: Attempt) -> tuple[list[tuple[int, Try]], list[Try]]:
    """Return numbers of events, each with what counting in so many of them took, and what was refused."""
    tried: list[tuple[int, Try]] = []
    refused: list[Try] = []
    spent, number = 0.0, min(LEAST_EVENTS, sample.all)
    while True:
        ratio = min(tried[-1][1].seconds / max(tried[-2][1].seconds, QUICK), 2**STEEPEST) if len(tried) > 1 else 4.0
        expected = max(tried[-1][1].seconds, QUICK / 4) * max(ratio, 1.0) if tried else 0.0
        if spent + expected > ENOUGH:
            return tried, refused
        part = sample.part(number)
        one = attempt(part)
        spent += one.seconds
        if one.limbs and one.seconds > max(2 * expected, 5 * QUICK):
            again = attempt(part)  # a kernel may have been loaded, and then that was nothing
            spent -= one.seconds
            spent += again.seconds
            one = min(one, again, key=lambda some: some.seconds)
        done = bool(refused) or number == sample.all
        if one.limbs:
            tried.append((number, one))
        else:
            refused.append(one)
            done = len(refused) > 1 or not tried
        if done:
            return tried, refused
        number = 3 * number // 4 if refused else min(2 * number, sample.all)


def _growth(tried: list[tuple[float, int, Try]], of: Callable[[Try], float], unknown: float) -> float:
    """Return the power of the events around one with which something for each event grows, by the last tries."""
    around, size, last = tried[-1]
    earlier = [(near, number, of(one)) for near, number, one in tried if near < around and of(one) > 0]
    if around == tried[0][0] and len(tried) > 1:
        return 0.0
    if not earlier or of(last) <= 0:
        return unknown
    near, number, before = earlier[-2 if len(earlier) > 1 and earlier[-2][0] * 4 >= around else -1]
    return min(STEEPEST, max(0.0, log2(of(last) / size * number / before) / log2(around / near)))


class Sample:
    """Events of the largest group, in spans from where they lie closest together, and then other groups beside it."""

    def __init__(self, events: Slice, in_spans: bool) -> None:
        self._events = events
        self._sizes = (events.groups.hi - events.groups.lo).astype(np.float64)
        self._first = int(np.argmax(self._sizes))
        self._ends = np.cumsum(self._sizes)
        begin, end = int(events.groups.lo[self._first]), int(events.groups.hi[self._first])
        reaches = (events.until - np.arange(len(events))).astype(np.float64)
        self._densest = begin + int(np.argmax(reaches[begin:end]))
        self._reaches = reaches if in_spans and 2.5 * reaches[begin:end].mean() < end - begin else None

    @property
    def all(self) -> int:
        """The number of all events of all groups."""
        return int(self._ends[-1])

    def around(self, number: int) -> float:
        """Return how many events are in the reach of one, among so many events: those of its group, or of its span."""
        if self._reaches is None:
            return float(min(number, self._sizes[self._first]))
        return float(self._near(number).mean())

    def share(self, number: int, power: float) -> float:
        """Return how much so many events take of what all do, if each takes some power of the events around it."""
        if self._reaches is not None:
            return float((self._near(number) ** power).sum() / (self._reaches**power).sum())
        first, last = self._groups(number)
        tried = np.minimum(self._sizes[first:last], number)
        return float((tried ** (power + 1)).sum() / (self._sizes ** (power + 1)).sum())

    def times(self, number: int, power: float) -> float:
        """Return how many times as much the largest group takes as it does among so many events."""
        size = float(self._sizes[self._first])
        if self._reaches is None:
            return size / min(number, size) * (size / self.around(number)) ** power
        lo, hi = self._events.groups.lo[self._first], self._events.groups.hi[self._first]
        tried = (self._near(number) ** power).sum() * min(1.0, size / number)
        return max(1.0, float((self._reaches[lo:hi] ** power).sum() / tried))

    def _longest(self, number: int) -> float:
        """Return how many events a span may have among so many."""
        return np.inf if number == self.all else max(number // AROUND, 1)

    def _near(self, number: int) -> NDArray[np.float64]:
        """Return how many events are in the reach of each of so many, in spans that are made shorter."""
        assert self._reaches is not None
        lo, hi = self._borders(number)
        return np.minimum(self._reaches[lo.min() : hi.max()], self._longest(number))

    def _groups(self, number: int) -> tuple[int, int]:
        """Return which groups have so many events: the largest, those behind it, and then those before it."""
        first = self._first
        before = self._ends[first] - self._sizes[first]
        last = min(int(np.searchsorted(self._ends, before + number)) + 1, len(self._ends))
        missing = number - (self._ends[last - 1] - before)
        if missing > 0:
            first = max(int(np.searchsorted(self._ends, before - missing, side="right")), 0)
        return first, last

    def _borders(self, number: int) -> tuple[Ints, Ints]:
        """Return where the events lie that are tried of each group."""
        first, last = self._groups(number)
        lo, hi = self._events.groups.lo[first:last], self._events.groups.hi[first:last]
        if last == first + 1:
            if self._reaches is not None:
                lo = np.maximum(np.minimum(self._densest, hi - number), lo)
            hi = np.minimum(hi, lo + number)
        return lo, hi

    def part(self, number: int) -> Slice:
        """Return so many events, or up to a group more, as a slice of their own."""
        first, last = self._groups(number)
        lo, hi = self._borders(number)
        part = _part(self._events, Groups(lo, hi, self._events.groups.number[first:last]))
        if self._reaches is None or number == self.all:
            return part
        near = first_of_time(part.later) + int(self._longest(number))
        return replace(part, until=part.later[np.minimum(near, part.until) - 1])


def _part(events: Slice, groups: Groups) -> Slice:
    """Return the events between the first and the last one of some groups."""
    begin, end = int(groups.lo.min()), int(groups.hi.max())
    own, cut = np.arange(begin, end), slice(begin, end)
    columns: dict[str, Any] = {name: column.take(own) for name, column in events.columns.items()}
    inside = events.bounds[(events.bounds > begin) & (events.bounds < end)]
    return Slice(
        columns, events.ids.take(own), events.times[cut], events.usable[cut],
        np.concatenate([[begin], inside, [end]]) - begin,
        Groups(groups.lo - begin, groups.hi - begin, groups.number), np.minimum(events.until[cut], end) - begin,
        None if events.begins is None else events.begins[cut], None if events.order is None else events.order[cut],
    )  # fmt: skip


def sampling_plan(plan: Plan) -> Plan:
    """Return a plan that is refused early where it explodes, and whose ways are those of many events."""
    sizes = plan.sizes
    return replace(
        plan, sizes=replace(
            sizes, small_pairs=0, most_vertices=min(sizes.most_vertices, MOST_VERTICES),
            most_steps=min(sizes.most_steps, MOST_STEPS), graph_edges=min(sizes.graph_edges, MOST_EDGES),
            best_nodes=min(sizes.best_nodes, MOST_NODES), reach_steps=min(sizes.reach_steps, REACH_STEPS),
        ),
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Return a time that is about so long."""
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{seconds:,.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} minutes"
    return f"{seconds / 3600:,.0f} hours" if seconds < YEAR else f"{seconds / YEAR:,.0f} years"
