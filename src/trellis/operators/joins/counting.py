"""Numbers of the matches of joins: of groups, of first events, of bindings that are given; exact, of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.kernels.join import count as kernel
from trellis.kernels.join.block import BLOCK, BlockScratch
from trellis.kernels.join.lists import JoinLists
from trellis.kernels.join.placed import PlacedSums
from trellis.operators.exact import SMALL, reconstruct
from trellis.operators.joins.shape import CountedShape, Shapes, Slots
from trellis.operators.joins.tables import JoinCandidates, SlotArm
from trellis.operators.matches import NONE
from trellis.plan.sizes import USUAL
from trellis.properties import cached_property

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
EXACT = kernel.MOST / 2  # below it, numbers without a prime are what they are


@dataclass(frozen=True)
class Numbers:
    """The numbers to count with: modulo a `prime` or, without one, up to `kernel.MOST`.

    Attributes
    ----------
    weights
        For each candidate what a match with it counts; 1 by default. With a prime only.
    clip
        Whether it is only asked if there is a match.
    peaks
        The greatest numbers that parts of the counting met: each adds its own, since threads count together.
    """

    prime: int = 0
    weights: Words | None = None
    clip: bool = False
    peaks: list[float] = field(default_factory=list)

    def meet(self, sums: NDArray[np.float64]) -> None:
        """Note the greatest of some numbers."""
        self.peaks.append(float(sums.max(initial=0)))


@dataclass(frozen=True)
class Tasks:
    """Where to count: see `kernel.JoinTasks`; `group` of each task."""

    lo: Ints
    hi: Ints
    from_: Ints
    to: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.lo)


@dataclass(frozen=True)
class FirstEvents:
    """The tasks of all that begins at one event: an arm, the slot that takes it, and the candidate for each task."""

    arm: SlotArm
    slot: int
    cand: Ints
    tasks: Tasks


class JoinCounter:
    """Counts the matches of joins over the candidates of a slice."""

    def __init__(self, candidates: JoinCandidates, threads: int = 1, worth: int = USUAL.thread_tasks) -> None:
        self.candidates, self.threads, self._worth = candidates, threads, worth

    @cached_property
    def most(self) -> int:
        """No more matches than this, nor partial sums, whatever conditions say."""
        arms = (*self.candidates.arms, *self.candidates.common)
        return sum(prod(len(self.candidates.of_slot[slot]) for slot in arm.slots) for arm in arms)

    @cached_property
    def shapes(self) -> Shapes:
        """How parts are counted."""
        return Shapes(self.candidates)

    # --- Parts ------------------------------------------------------------------------------------------------

    def part(
        self, shape: CountedShape, tasks: Tasks, numbers: Numbers, fixed: Ints | None = None, target: int = -1,
        codes: Ints | None = None, best: Ints | None = None,
    ) -> Words:  # fmt: skip
        """Return the number of matches of a part in each task.

        Parameters
        ----------
        shape, tasks, numbers
            How, where and in which numbers to count.
        fixed
            For each task the candidates of the slots that are given, in their order.
        target, codes, best
            A slot whose candidates have codes, the least of which on any match is noted in `best`, for each task.
        """
        given = np.empty((len(tasks), 0), np.int64) if fixed is None else np.ascontiguousarray(fixed)
        all_codes = np.empty(0, np.int64) if codes is None else codes
        all_best = np.full(len(tasks), NONE) if best is None else best

        def work(begin: int, end: int) -> Words:
            some = slice(begin, end)
            own = kernel.JoinTasks(tasks.lo[some], tasks.hi[some], tasks.from_[some], tasks.to[some], given[some])
            lists, sums = self._lists(shape, tasks), self._sums(numbers)
            tables, programs = self.candidates.tables, self.candidates.programs.programs
            found = np.zeros(end - begin, np.uint64)
            kernel.count_join(
                tables, programs, lists, shape.shape, own, sums, self._placed(shape),
                self._bindings(shape), target, all_codes, all_best[some], found,
            )  # fmt: skip
            if lists.state[0]:
                raise OverflowInCondition("a number that a condition computes leaves 64 bits")
            numbers.meet(sums.peak)
            return found

        _ = self.candidates.tables, self.candidates.programs
        if self.threads < 2 or len(tasks) < self._worth:
            return work(0, len(tasks))
        cuts = np.linspace(0, len(tasks), 4 * self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(lambda cut: work(*cut), pairwise(cuts))))

    def _lists(self, shape: CountedShape, tasks: Tasks) -> JoinLists:
        number = self.candidates.number
        nodes = len(shape.shape.cut) + 1
        return make_lists(self.candidates, nodes, (nodes + 1) * self._reach(tasks), number)

    def _bindings(self, shape: CountedShape) -> kernel.Bindings:
        size = len(shape.shape.cut) + 1
        whole, words = (lambda: np.zeros(size, np.int64)), (lambda: np.zeros(size, np.uint64))
        due = np.zeros(len(self.candidates.due), np.int64)
        return kernel.Bindings(whole(), whole(), whole(), words(), words(), words(), due)

    def _placed(self, shape: CountedShape) -> PlacedSums:
        edges, size = len(shape.shape.edges), len(self.candidates.tables.events)
        order, place = np.empty((edges, size), np.int64), np.empty((edges, size), np.int64)
        spare, running = np.empty(size, np.int64), np.zeros(size + 1, np.uint64)
        return PlacedSums(order, np.zeros(edges, np.int64), place, spare, running)

    def _reach(self, tasks: Tasks) -> int:
        """Return the most candidates that all lists of a task have together."""
        together = np.zeros(len(tasks), np.int64)
        for events in self.candidates.of_slot:
            together += np.searchsorted(events, tasks.hi) - np.searchsorted(events, np.minimum(tasks.lo, tasks.from_))
        return int(together.max(initial=0))

    def _sums(self, numbers: Numbers) -> kernel.Sums:
        tables = self.candidates.tables
        size = len(tables.events)
        values = np.ones(size, np.uint64) if numbers.weights is None else numbers.weights
        cells = np.zeros(int(tables.codes.max(initial=0)) + 2, np.uint64)
        return kernel.Sums(
            values, np.zeros(size, np.uint64), cells, np.array([0, 1, 0], np.uint64),
            np.array([numbers.prime], np.uint64), np.array([numbers.weights is None]), np.array([numbers.clip]),
            np.zeros(1),
        )  # fmt: skip

    # --- Groups and first events ------------------------------------------------------------------------------

    def of_tasks(
        self, arm: SlotArm, tasks: Tasks, numbers: Numbers, given: Slots = (), fixed: Ints | None = None
    ) -> Words:
        """Return the number of matches of an arm in each task, some slots having their events: a product over parts."""
        total = np.ones(len(tasks), np.uint64)
        for part in self.shapes.parts(arm):
            own = tuple(slot for slot in given if slot in part)
            chosen = None if fixed is None else fixed[:, [given.index(slot) for slot in own]]
            found = self.part(self.shapes.of_part(part, own), tasks, numbers, chosen)
            if numbers.prime:
                total = total * found % np.uint64(numbers.prime)
            else:
                near = total.astype(np.float64) * found
                numbers.meet(near)
                total = np.where(near < kernel.MOST, total * found, np.uint64(kernel.MOST))
        return total

    @cached_property
    def groups(self) -> Tasks:
        """One task for each window."""
        groups = self.candidates.events.groups
        return Tasks(groups.lo, groups.hi, groups.lo, groups.hi, np.arange(len(groups)))

    def first_events(self, arms: Sequence[SlotArm]) -> Iterator[FirstEvents]:
        """Yield the tasks of all that begins at one event in one window."""
        events, candidates = self.candidates.events, self.candidates
        groups = events.groups
        for arm in arms:
            for slot in self.open_slots(arm, ()):
                own = candidates.of_slot[slot]
                begin = int(candidates.tables.begin[slot])
                if candidates.is_span:
                    wanted = np.arange(len(own))
                    if events.begins is not None:
                        wanted = wanted[events.begins[own]]
                    group = np.searchsorted(groups.lo, own[wanted], side="right") - 1
                    hi = np.minimum(events.until[own[wanted]], groups.hi[group])
                else:
                    first, last = np.searchsorted(own, groups.lo), np.searchsorted(own, groups.hi)
                    sizes = last - first
                    group = np.repeat(np.arange(len(groups)), sizes)
                    wanted = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[group]
                    hi = groups.hi[group]
                tasks = Tasks(own[wanted] + 1, hi, groups.lo[group], groups.hi[group], group)
                yield FirstEvents(arm, slot, wanted + begin, tasks)

    def open_slots(self, arm: SlotArm, taken: Slots) -> list[int]:
        """Return the slots of an arm that may take the next event."""
        order = self.candidates.order
        waiting = [slot for slot in arm.slots if slot not in taken]
        return [slot for slot in waiting if not any(order[other, slot] > 0 for other in waiting)]

    def of_first(self, first: FirstEvents, numbers: Numbers) -> Words:
        """Return the number of matches of each task of first events."""
        return self.of_tasks(first.arm, first.tasks, numbers, (first.slot,), first.cand.reshape(-1, 1))

    def of_groups(self, arms: Sequence[SlotArm], numbers: Numbers) -> Words:
        """Return the number of matches of each group: those of arms, each with its sign; right where all are small."""
        size = len(self.groups)
        total, near = np.zeros(size, np.uint64), np.zeros(size)
        for arm in arms:
            if not self.candidates.is_span:
                found = self.of_tasks(arm, self.groups, numbers)
                total, near = _add(total, found, arm.arm.sign, numbers), near + found
                continue
            for first in self.first_events([arm]):
                found = self.of_first(first, numbers)
                sums = np.zeros(size, np.uint64)
                np.add.at(sums, first.tasks.group, found)  # residues of 31 bits: 2**33 of them fit
                sums = sums % np.uint64(numbers.prime) if numbers.prime else sums
                total = _add(total, sums, arm.arm.sign, numbers)
                near += np.bincount(first.tasks.group, found, size) if len(found) else 0
        if not numbers.prime:
            numbers.meet(near)
        return total

    def least(self, arm: SlotArm, slot: int, codes: Ints) -> Ints:
        """Return for each group the least code of a slot's candidates on any match of an arm; `NONE` without one."""
        found = np.full(len(self.groups), NONE)
        if not self.candidates.is_span:
            np.minimum.at(found, self.groups.group, self._least(arm, slot, codes, self.groups, (), None))
            return found
        for first in self.first_events([arm]):
            own = self._least(arm, slot, codes, first.tasks, (first.slot,), first.cand.reshape(-1, 1))
            np.minimum.at(found, first.tasks.group, own)
        return found

    def _least(self, arm: SlotArm, slot: int, codes: Ints, tasks: Tasks, given: Slots, fixed: Ints | None) -> Ints:
        """Return for each task the least code of a slot; every part must have a match."""
        best, any_match = np.full(len(tasks), NONE), np.ones(len(tasks), np.bool_)
        for part in self.shapes.parts(arm):
            own = tuple(one for one in given if one in part)
            chosen = None if fixed is None else fixed[:, [given.index(one) for one in own]]
            target = slot if slot in part else -1
            shape = self.shapes.of_part(part, own, target)
            found = self.part(shape, tasks, Numbers(clip=True), chosen, target, codes, best)
            any_match &= found > 0
        return np.where(any_match, best, NONE)

    def exactly(self, count: Callable[[Numbers], Words]) -> list[int]:
        """Return whole numbers of any size that a function gives if they are small, or modulo a prime."""
        numbers = Numbers()
        found = count(numbers)
        if max(numbers.peaks, default=0.0) < EXACT:
            return found.tolist()
        bits = self.most.bit_length() + 1
        return reconstruct(bits, lambda prime: count(Numbers(prime)).reshape(1, -1), size=SMALL)[0]


def _add(total: Words, more: Words, sign: int, numbers: Numbers) -> Words:
    if not numbers.prime:
        return total + more if sign > 0 else total - more
    prime = np.uint64(numbers.prime)
    return (total + (more if sign > 0 else prime - more)) % prime


def make_lists(candidates: JoinCandidates, nodes: int, room: int, number: int) -> JoinLists:
    """Return lists for some nodes, with room for candidates besides those of all slots."""
    size = len(candidates.tables.events)
    pool = np.empty(size + room + 1, np.int64)
    pool[:size] = np.arange(size)
    low, high = (np.zeros((nodes, number), np.int64) for _ in range(2))
    longest = candidates.programs.longest
    block = BlockScratch(
        np.zeros((longest, BLOCK), np.int64), np.zeros((longest, BLOCK)), np.zeros((longest, BLOCK), np.bool_),
        np.zeros(longest, np.int64), np.zeros(BLOCK, np.int64),
    )  # fmt: skip
    return JoinLists(low, high, pool, np.full(number + 1, -1), block, np.zeros(BLOCK, np.bool_), np.zeros(1, np.int64))
