"""The candidates, tasks and counts of a fixed sequence: they do not depend on the output, so variants share them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.choices import are_few
from trellis.events.slice import Slice, first_of_time, last_of, next_of
from trellis.language.bound import WindowKind
from trellis.operators.exact import reconstruct
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.tree import EXACT, SWITCHED, TILE, Tile, TreePlan
from trellis.operators.sequences.walk import MatchTasks, Walker
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.plan import Plan
from trellis.properties import cached_property

RANK_LIMIT = 1 << 63  # matches that begin at one event, at most, for one of them to be found by its rank

Ints = NDArray[np.int64]


class SequenceStructure:
    """The candidates of each variable, the tasks and the counts of a slice.

    Parameters
    ----------
    plan, events, threads
        The plan of a fixed sequence, the events, and how many threads may count.
    leaves
        The candidates, if these are known; by default they are found at once.
    counts
        The counts, if these are known.

    Raises
    ------
    NotComparable
        If a condition cannot be decided by comparing two codes, on the events at hand.
    """

    def __init__(
        self, plan: Plan, events: Slice, threads: int = 1, leaves: SequenceCandidates | None = None,
        counts: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.events, self.threads, self._known_counts = plan, events, threads, counts
        self._is_reduced = leaves is not None or not are_few(plan, events)
        self.leaves = leaves or self._find(self._is_reduced)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the counts; the candidates are found again where they are needed."""
        return type(self), (self.plan, self.events, self.threads, None, vars(self).get("counts", self._known_counts))

    def _find(self, reduce: bool) -> SequenceCandidates:
        assert self.plan.sequence is not None
        return SequenceCandidates.find(self.plan, self.plan.sequence, self.events, reduce)

    @cached_property
    def reduced(self) -> SequenceCandidates:
        """The candidates without those that can be in no match, which a walk over few events does not leave out."""
        return self.leaves if self._is_reduced else self._find(True)

    @property
    def length(self) -> int:
        """The number of events of every match."""
        return self.leaves.number

    @cached_property
    def tasks(self) -> MatchTasks:
        """All that begins at one event in one window."""
        groups, candidates = self.events.groups, self.leaves.candidates
        firsts = candidates.events[: candidates.begin[1]]
        least, most = length_bounds(self.plan.bound.having)
        if not least <= self.length <= most:
            none = np.empty(0, np.int64)
            return MatchTasks(none, none, none, none)
        if self.plan.bound.window.kind is WindowKind.SPAN:
            wanted = np.arange(len(firsts))
            if self.events.begins is not None:
                wanted = wanted[self.events.begins[firsts]]
            group = np.searchsorted(groups.lo, firsts[wanted], side="right") - 1
            return self._without_forbidden(wanted, candidates.until[wanted], group)
        begin, end = np.searchsorted(firsts, groups.lo), np.searchsorted(firsts, groups.hi)
        sizes = end - begin
        group = np.repeat(np.arange(len(groups)), sizes)
        first = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[group]
        return self._without_forbidden(first, groups.hi[group], group)

    def _without_forbidden(self, first: Ints, limit: Ints, group: Ints) -> MatchTasks:
        """Return tasks that heed NOT before the first and after the last variable."""
        candidates, leaves, groups = self.leaves.candidates, self.leaves, self.events.groups
        before, after, least = leaves.forbidden[0], leaves.forbidden[-1], np.zeros(len(first), np.int64)
        if before is None and after is None:
            return MatchTasks(first, limit, least, group)
        events, keep = candidates.events[first], np.ones(len(first), np.bool_)
        span = self.plan.bound.window.kind is WindowKind.SPAN
        if before is not None and span:  # the last one before the first event must be out of the last event's reach
            found = last_of(before)[self._begins_of_time[events]]
            has = found >= groups.lo[group]
            least[has] = leaves.until[found[has]]
        elif before is not None:  # no event of the window may be forbidden before the first
            found = next_of(before)[groups.lo[group]]
            has = found < groups.hi[group]
            keep[has] = events[has] < leaves.later[found[has]]
        if after is not None:  # the last one in reach must not be after the last event
            found = last_of(after)[limit]
            has = found >= (events if span else groups.lo[group])
            least[has] = np.maximum(least[has], self._begins_of_time[found[has]])
        if self.length == 1:
            keep &= events >= least
        return MatchTasks(first[keep], limit[keep], least[keep], group[keep])

    @cached_property
    def _begins_of_time(self) -> Ints:
        """For each event the first one of its time and partition."""
        return first_of_time(self.leaves.later)

    @cached_property
    def walker(self) -> Walker:
        """The walker that counts and lists."""
        return Walker(self.leaves, self.tasks, self.threads, self.plan.sizes.thread_firsts)

    @cached_property
    def task_counts(self) -> list[int]:
        """The exact number of matches of each task."""
        approximate = self.walker.count(0.0, 0.0)
        largest = float(approximate.max(initial=0.0))
        if largest < EXACT:
            return approximate.astype(np.int64).tolist()
        bits = int(np.frexp(largest)[1]) + 2
        return reconstruct(
            bits,
            lambda prime: self.walker.count(np.uint64(0), np.uint64(prime)).reshape(1, -1),
            size=self.walker.prime_bits,
        )[0]

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        return self.counts_by_walk() if self._known_counts is None else self._known_counts

    def counts_by_walk(self) -> list[int]:
        """Return the counts that a walk gives."""
        counts, tasks = self.task_counts, self.tasks
        if sum(counts) < RANK_LIMIT:
            sums = np.zeros(len(self.events.groups), np.int64)
            np.add.at(sums, tasks.group, np.array(counts, np.int64))
            return sums.tolist()
        totals = [0] * len(self.events.groups)
        for group, count in zip(tasks.group.tolist(), counts, strict=True):
            totals[group] += count
        return totals

    @cached_property
    def rank_ends(self) -> tuple[list[int], list[int]]:
        """For each group the first of its tasks; for each task how many matches there are of its group up to it."""
        first = np.searchsorted(self.tasks.group, np.arange(len(self.events.groups) + 1)).tolist()
        ends: list[int] = []
        for begin, end in pairwise(first):
            ends += accumulate(self.task_counts[begin:end])
        return first, ends

    def before(self, groups: Ints, events: Ints) -> NDArray[Any]:
        """Return how many matches of each of some groups begin before an event."""
        first, ends = self.rank_ends
        firsts, size = self.leaves.candidates.events[self.tasks.first], len(self.events) + 1
        place = np.searchsorted(self.tasks.group * size + firsts, groups * size + events)
        return np.where(place > np.array(first)[groups], np.array([*ends, 0], object)[place - 1], 0)

    def tree(self, way: str = SWITCHED, shape: str = "best", hashed: bool = True) -> TreePlan:
        """Return a tree plan over the candidates."""
        return TreePlan(self.reduced, way, shape, hashed, self._tiles(), self.plan.sizes.memory)

    def _tiles(self) -> list[Tile]:
        """Return where a tree plan works; nowhere if HAVING leaves no match."""
        least, most = length_bounds(self.plan.bound.having)
        return list(tiles_of(self.plan, self.events)) if least <= self.length <= most else []


def tiles_of(plan: Plan, events: Slice) -> Iterator[Tile]:
    """Yield where a tree plan works: windows, or tiles of what begins at so many spans' worth of events."""
    groups, size = events.groups, len(events)
    if plan.bound.window.kind is not WindowKind.SPAN:
        for lo, hi in zip(groups.lo.tolist(), groups.hi.tolist(), strict=True):
            yield lo, hi, hi, np.broadcast_to(np.int64(hi), size)
        return
    until = events.until
    for lo, hi in zip(groups.lo.tolist(), groups.hi.tolist(), strict=True):
        step = TILE * max(1, int((until[lo:hi] - np.arange(lo, hi)).mean())) if lo < hi else 1
        for begin in range(lo, hi, step):
            end = min(begin + step, hi)
            yield begin, int(until[end - 1]), end, until
