"""The candidates and counts of joins, and results by rank: they do not depend on the output, so variants share them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from math import prod
from typing import Any
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, TrellisError
from trellis.events.choices import choices
from trellis.events.slice import Slice
from trellis.kernels.join import walk as kernel
from trellis.kernels.join.lists import JoinLists
from trellis.memory import allow_more
from trellis.operators.batch import RANK_LIMIT, PathBatch, RankRange, label_runs
from trellis.operators.few import FewPaths
from trellis.operators.joins.counting import JoinCounter, Tasks, make_lists
from trellis.operators.joins.tables import JoinCandidates, SlotArm
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.plan import Plan
from trellis.properties import cached_property

LITTLE_ROOM = 1 << 14  # of which it is not asked whether less would do
BATCH_VALUES = 1 << 18
FEW = 1 << 10  # results of a group that are counted as they are listed
KEPT = 1 << 12  # beginnings of results whose continuations are remembered

Ints = NDArray[np.int64]
Numbered = NDArray[Any]  # whole numbers of 64 bits, or objects of any size
Match = tuple[tuple[int, ...], tuple[int, ...]]  # events, and the codes of their variables


@dataclass(frozen=True)
class Way:
    """A way to bind the events so far: the arm, and the slots that took them with their candidates, in order."""

    arm: SlotArm
    slots: tuple[int, ...] = ()
    cands: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all slots have their events."""
        return len(self.slots) == len(self.arm.slots)


@dataclass(frozen=True)
class Branch:
    """The candidates of a slot with which a way goes on: their events, rising, and how many results each leads to."""

    way: Way
    slot: int
    cands: Ints
    events: Ints
    numbers: Numbered

    def at(self, event: int) -> Iterator[Way]:
        """Yield the way that an event leads to, if there is a result with it."""
        place = int(np.searchsorted(self.events, event))
        if place < len(self.events) and self.events[place] == event and self.numbers[place]:
            yield Way(self.way.arm, (*self.way.slots, self.slot), (*self.way.cands, int(self.cands[place])))


@dataclass(frozen=True)
class Continuations:
    """The events with which a beginning goes on, rising, how many results there are up to each, and the branches."""

    events: Ints
    ends: Numbered
    branches: tuple[Branch, ...]


class JoinStructure:
    """The candidates, counts and walks of joins over a slice.

    Parameters
    ----------
    plan, events, threads
        The plan of a pattern without repetition, the events, and how many threads may count.
    counts
        The counts, if these are known.

    Raises
    ------
    NotComparable
        If a number that a condition computes may leave 64 bits, on the events at hand.
    """

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, counts: list[int] | None = None) -> None:
        self.plan, self.events, self.threads, self._known_counts = plan, events, threads, counts
        assert plan.join is not None
        self.candidates = JoinCandidates.find(plan, plan.join, events)
        _ = self.candidates.programs
        self.counter = JoinCounter(self.candidates, threads, plan.sizes.thread_tasks)
        least, most = length_bounds(plan.bound.having)
        self.arms = [arm for arm in self.candidates.arms if least <= len(arm.slots) <= most]
        self.signed = [arm for arm in (*self.arms, *self.candidates.common) if least <= len(arm.slots) <= most]
        self.codes = {v.name: i for i, v in enumerate(v for v in plan.bound.variables if not v.absent)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the counts; the rest is found again where it is needed."""
        return type(self), (self.plan, self.events, self.threads, vars(self).get("counts", self._known_counts))

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        if self._known_counts is not None:
            return self._known_counts
        if self.few is not None:
            return self.few.counts
        return self.counter.exactly(lambda numbers: self.counter.of_groups(self.signed, numbers))

    @cached_property
    def few(self) -> FewPaths | None:
        """All matches where few events can have few, which are counted as they are listed; None where more can be."""
        groups, longest = self.events.groups, max((len(arm.slots) for arm in self.arms), default=0)
        most = self.plan.sizes.counted_pairs // 8  # what counting takes, about
        if choices(self.events, longest, self.candidates.is_span) > most:
            return None
        with suppress(TrellisError):  # of a walk that counting may do without
            found = list(islice(self.walk([(group, 0, FEW + 1) for group in range(len(groups))]), 2))
            if len(found) < 2:
                every = found[0] if found else PathBatch.of_task(np.empty(0, np.int32), np.empty(0, np.int32), 0)
                counts = np.bincount(every.groups, minlength=len(groups)).tolist()
                return FewPaths(every, counts) if max(counts, default=0) <= FEW else None
        return None

    def counts_of(self, arms: Sequence[SlotArm]) -> list[int]:
        """Return the number of matches of each group that some arms, each with its sign, give together."""
        return self.counter.exactly(lambda numbers: self.counter.of_groups(arms, numbers))

    # --- By rank ----------------------------------------------------------------------------------------------

    @cached_property
    def firsts(self) -> tuple[Ints, Ints, Numbered]:
        """Where the first events of each group begin; the first events; the results of all groups up to each."""
        entries = list(self.counter.first_events(self.signed))
        groups = np.concatenate([np.empty(0, np.int64), *(one.tasks.group for one in entries)])
        events = np.concatenate([np.empty(0, np.int64), *(one.tasks.lo - 1 for one in entries)])
        numbers: list[int] = []
        if entries:
            numbers = self.counter.exactly(
                lambda kind: np.concatenate([self.counter.of_first(one, kind) for one in entries])
            )
        signs = np.repeat([one.arm.arm.sign for one in entries], [len(one.tasks) for one in entries])
        order = np.lexsort((events, groups))
        groups, events = groups[order], events[order]
        ends = _summed((numbered(numbers) * signs)[order], (groups[1:] != groups[:-1]) | (events[1:] != events[:-1]))
        new = np.append(True, (groups[1:] != groups[:-1]) | (events[1:] != events[:-1]))[: len(groups)]
        begins = np.searchsorted(groups[new], np.arange(len(self.events.groups) + 1))
        return begins, events[new], ends

    def counts_sooner_whole(self, times: int) -> bool:
        """Return whether all matches are sooner counted so many times than those of each first event once."""
        shapes, whole, single = self.counter.shapes, 0.0, 0.0
        for arm in self.signed:
            whole += sum(shapes.of_part(part).cost for part in shapes.parts(arm)) * times
            for slot in self.counter.open_slots(arm, ()):
                steps = sum(shapes.cost_with(part, slot) for part in shapes.parts(arm))
                single += steps * len(self.candidates.of_slot[slot])
        return whole < single

    def first_of(self, group: int, rank: int) -> tuple[int, int]:
        """Return the first event of the result of a group with a rank, and its rank among those that begin there."""
        begins, events, ends = self.firsts
        begin, end = int(begins[group]), int(begins[group + 1])
        before = int(ends[begin - 1]) if begin else 0
        place = bisect_right(ends, before + rank, begin, end)
        return int(events[place]), before + rank - (int(ends[place - 1]) if place else 0)

    def unrank(self, group: int, rank: int) -> Match:
        """Return the result of a group that has a rank."""
        event, rank = self.first_of(group, rank)
        ways = self._beginning(group, event)
        events = [event]
        while True:
            complete = sorted({self._variables(way) for way in ways if way.complete and way.arm.arm.sign > 0})
            if rank < len(complete):
                return tuple(events), complete[rank]
            rank -= len(complete)
            more = self._continued(group, tuple(way for way in ways if not way.complete))
            place = bisect_right(more.ends, rank)
            rank -= int(more.ends[place - 1]) if place else 0
            events.append(int(more.events[place]))
            ways = tuple(way for branch in more.branches for way in branch.at(events[-1]))

    def _variables(self, way: Way) -> tuple[int, ...]:
        return tuple(self.codes[self.candidates.variable[slot]] for slot in way.slots)

    def _beginning(self, group: int, event: int) -> tuple[Way, ...]:
        found = []
        for arm in self.signed:
            for slot in self.counter.open_slots(arm, ()):
                place = int(np.searchsorted(self.candidates.of_slot[slot], event))
                own = self.candidates.of_slot[slot]
                if place < len(own) and own[place] == event:
                    found.append(Way(arm, (slot,), (place + int(self.candidates.tables.begin[slot]),)))
        numbers = [self._ways_on(group, way, np.array([way.cands])) for way in found]
        return tuple(way for way, number in zip(found, numbers, strict=True) if number[0])

    def _ways_on(self, group: int, way: Way, fixed: Ints) -> list[int]:
        """Return how many matches there are with each of some bindings of a way's slots."""
        tables, groups = self.candidates.tables, self.events.groups
        last, first = tables.events[fixed[:, -1]], tables.events[fixed[:, 0]]
        lo, hi = np.full(len(last), groups.lo[group]), np.full(len(last), groups.hi[group])
        until = np.minimum(self.events.until[first], hi) if self.candidates.is_span else hi
        tasks = Tasks(last + 1, until, lo, hi, np.full(len(last), group))
        return self.counter.exactly(lambda numbers: self.counter.of_tasks(way.arm, tasks, numbers, way.slots, fixed))

    @cached_property
    def _continued(self) -> Callable[[int, tuple[Way, ...]], Continuations]:
        return lru_cache(KEPT)(partial(JoinStructure._continuations, proxy(self)))  # or it would hold itself

    def _continuations(self, group: int, ways: tuple[Way, ...]) -> Continuations:
        """Return the events with which ways to bind the same events go on."""
        tables, groups = self.candidates.tables, self.events.groups
        found: list[Branch] = []
        for way in ways:
            last, first = int(tables.events[way.cands[-1]]), int(tables.events[way.cands[0]])
            end = int(groups.hi[group])
            end = min(end, int(self.events.until[first])) if self.candidates.is_span else end
            for slot in self.counter.open_slots(way.arm, way.slots):
                own = self.candidates.of_slot[slot]
                low, high = np.searchsorted(own, [last + 1, end])
                cands = np.arange(low, high) + int(tables.begin[slot])
                fixed = np.concatenate([np.tile(np.array(way.cands), (len(cands), 1)), cands.reshape(-1, 1)], axis=1)
                longer = Way(way.arm, (*way.slots, slot), way.cands)
                numbers = numbered(self._ways_on(group, longer, fixed)) * way.arm.arm.sign
                found.append(Branch(way, slot, cands, own[low:high], numbers))
        events = np.concatenate([branch.events for branch in found])
        numbers = np.concatenate([branch.numbers for branch in found])
        order = np.argsort(events, kind="stable")
        differs = events[order][1:] != events[order][:-1]
        new = np.append(True, differs)[: len(events)]
        return Continuations(events[order][new], _summed(numbers[order], differs), tuple(found))

    # --- In order ---------------------------------------------------------------------------------------------

    @cached_property
    def walked_arms(self) -> kernel.Arms:
        """The arms as the walk takes them."""
        number = self.candidates.number
        slots = np.full((max(1, len(self.arms)), len(self.codes)), -1)
        for i, arm in enumerate(self.arms):
            for slot in arm.slots:
                slots[i, self.codes[self.candidates.variable[slot]]] = slot
        earlier = self.candidates.order > 0
        before = [sum(1 << u for u in range(number) if earlier[u, v]) for v in range(number)]
        starts = self.events.begins if self.events.begins is not None else np.empty(0, np.bool_)
        masks = np.array([arm.mask for arm in self.arms], np.uint64)
        return kernel.Arms(masks, slots, np.array(before, np.uint64), starts)

    @cached_property
    def _nodes(self) -> int:
        """How many ways to bind the same events there may be, at all depths of a walk together."""
        arms = self.arms
        slots = [slot for arm in arms for slot in arm.slots]
        alike = max((sum(self.candidates.overlap(u, v) for v in slots) for u in slots), default=1)
        longest = max((len(arm.slots) for arm in arms), default=1)
        total = width = len(arms)
        for depth in range(longest):
            width *= min(alike, (longest - depth) * len(arms))
            total += min(width, len(arms) * prod(range(longest - depth, longest + 1)))
        return total + 2

    def walk(self, ranges: Sequence[RankRange], leading: bool = False) -> Iterator[PathBatch]:
        """Yield the results with given ranks, those of many groups in a batch, or of each first event the `leading`."""
        if not self.arms or not ranges:
            return
        groups, bounds = np.array([group for group, _, _ in ranges]), self.events.groups
        given = self._match_ranges(ranges, bounds.lo[groups], bounds.hi[groups])
        lists, levels = self.scratch(given.lo, given.hi)
        levels.state[2] = leading
        tables, programs, arms = self.candidates.tables, self.candidates.programs.programs, self.walked_arms
        ranks, at, begun = [begin for _, begin, _ in ranges], 0, False
        most = min(self.plan.sizes.match_rows, sum(end - begin for _, begin, end in ranges))
        values = min(BATCH_VALUES, most * len(self.codes))
        while at < len(ranges):
            ends = np.empty(most, np.int32)
            room = kernel.MatchRoom(np.empty(values, np.int32), np.empty(values, np.int8), ends)
            rows, behind = kernel.list_matches(tables, programs, lists, levels, arms, given, at, begun, room)
            self.check_walk(lists, levels)
            here = slice(at, min(behind + 1, len(ranges)))
            if rows:
                end = room.ends[rows - 1]
                labels = partial(label_runs, ranks[here], groups[here], given.written[here].copy())
                variables = room.variables[:end].astype(np.int64)
                yield PathBatch.of_ends(room.positions[:end], room.ends[:rows], labels, variables)
            if behind < len(ranges):
                ranks[behind] += int(given.written[behind])
            at, begun = behind, True

    def _match_ranges(self, ranges: Sequence[RankRange], lo: Ints, hi: Ints) -> kernel.JoinRanges:
        """Return rank ranges as the walk takes them: far ones are begun at the first event of their first result."""
        far, most = self.plan.sizes.match_rows, kernel.MOST_RESULTS
        event, skip = lo.copy(), np.array([min(begin, far) for _, begin, _ in ranges])
        for i in np.flatnonzero(skip == far).tolist():
            event[i], within = self.first_of(*ranges[i][:2])
            skip[i] = min(within, most)
        size = np.array([min(end - begin, most) for _, begin, end in ranges])
        return kernel.JoinRanges(lo, hi, event, skip, size, np.zeros(len(ranges), np.int64))

    def check_walk(self, lists: JoinLists, levels: kernel.JoinLevels) -> None:
        """Refuse to go on where a walk had to stop."""
        if lists.state[0]:
            raise OverflowInCondition("a number that a condition computes leaves 64 bits")
        if levels.state[1]:
            memory = self.plan.sizes.memory
            raise TrellisError(
                f"the same events can be bound to the variables in more than {self.plan.sizes.join_ways:,} ways, or "
                f"their candidates need room for more than {memory // 8:,} numbers",
                f"Use a shorter WITHIN, a partition such as `[id]`, or narrower conditions. {allow_more(memory)}",
            )

    def scratch(self, lo: Ints, hi: Ints) -> tuple[JoinLists, kernel.JoinLevels]:
        """Return the lists and levels of a walk over groups of events, with room for the largest."""
        longest = max(len(arm.slots) for arm in self.arms)
        nodes, number = min(self._nodes, self.plan.sizes.join_ways), self.candidates.number
        size = sum(map(len, self.candidates.of_slot))
        if nodes * size > LITTLE_ROOM:
            sizes = sum(np.searchsorted(own, hi) - np.searchsorted(own, lo) for own in self.candidates.of_slot)
            size = int(np.max(sizes, initial=0))
        lists = make_lists(self.candidates, nodes, min(nodes * size, self.plan.sizes.memory // 8), number)
        return lists, kernel.JoinLevels(
            cursor=np.zeros((nodes, number), np.int64), taken=np.zeros((nodes, number), np.int64),
            remaining=np.zeros(nodes, np.uint64), arm=np.zeros(nodes, np.int64), same=np.zeros(nodes, np.int64),
            bound=np.zeros(nodes, np.int64), parent=np.zeros(nodes, np.int64), base=np.zeros(longest + 3, np.int64),
            emit=np.zeros(longest + 3, np.int64), used=np.zeros(longest + 3, np.int64),
            event=np.zeros(longest + 2, np.int64), state=np.zeros(3, np.int64),
        )  # fmt: skip


def numbered(numbers: list[int]) -> Numbered:
    """Return whole numbers as an array: of 64 bits, where even their sum fits these."""
    return np.array(numbers, np.int64 if sum(map(abs, numbers)) < RANK_LIMIT else object)


def _summed(numbers: Numbered, differs: NDArray[np.bool_]) -> Numbered:
    """Return the sums of numbers up to the end of each run; the next one after a number differs, or does not."""
    if not len(numbers):
        return numbers
    total = np.add.accumulate(numbers)
    return total[np.append(differs, True)]
