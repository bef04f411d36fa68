"""The best matches of joins by the keys of ORDER BY, without the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.kernels.join import best as kernel
from trellis.kernels.join.bounds import Extremes, MatchKeys, bound_tasks
from trellis.language.bound import BoundQuery, Constant, Ordering, Output, OutputKind
from trellis.language.schema import INTEGER
from trellis.language.syntax import Skip
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, NotComparable
from trellis.operators.joins.counting import FirstEvents
from trellis.operators.joins.keys import codes_of_first, match_keys
from trellis.operators.joins.ranks import Before, ranks_of
from trellis.operators.joins.structure import JoinStructure
from trellis.plan.plan import Plan

MOST_ROWS = 1 << 24  # of all heaps together
ALIKE = (Ordering(Output(OutputKind.CONSTANT, INTEGER, constant=Constant(0, INTEGER)), False),)


class BestMatches:
    """Searches the best matches of a slice: branch and bound over the first events, those that promise most first.

    Parameters
    ----------
    structure
        The candidates and counts.
    events
        The events, with the columns that keys read.
    orderings
        The keys of ORDER BY; without any all matches are as good.
    """

    def __init__(self, structure: JoinStructure, events: Slice, orderings: Sequence[Ordering]) -> None:
        self.structure, self._events = structure, events
        self.keys = match_keys(orderings or ALIKE, structure.arms, events) if structure.arms else None

    def find(
        self, limit: int, per_group: bool, before: Before | None = None, items: Sequence[Output] = ()
    ) -> PathBatch | None:
        """Return the best matches in the order of groups and ranks; None where they cannot be searched.

        Parameters
        ----------
        limit
            How many.
        per_group
            Whether so many of each group, or of all groups together.
        before
            Gives how many matches begin before an event; by default they are counted.
        items
            So many are wanted of each value of these, if they are of the first event.
        """
        if self.keys is None:
            return None
        groups, events, words = self._tasks(self.keys)
        bucket = np.unique(groups, return_inverse=True)[1] if per_group else np.zeros(len(groups), np.int64)
        if items:
            firsts = {(id(first.arm), first.slot) for first in self.structure.counter.first_events(self.structure.arms)}
            codes = None
            if len(self.structure.arms) == len(firsts) == 1:
                codes = codes_of_first(items, self.structure.arms[0], firsts.pop()[1], self._events)
            if codes is None:
                return None
            bucket = np.unique([bucket, codes[events]], axis=1, return_inverse=True)[1].ravel()
        if limit * (int(bucket.max(initial=-1)) + 1) > MOST_ROWS:
            return None
        number = np.lexsort((np.arange(len(groups)), *(~words[:, i] for i in reversed(range(words.shape[1])))))
        tasks = self._given(groups, events, words, number, bucket)
        return self._batch(groups, self._search(tasks, limit, np.zeros(2, np.int64)), before)

    def leading(self, skip: Skip, variable: int) -> PathBatch | None:
        """Return the matches that AFTER MATCH keeps, in order and without ranks: of each first event the best one.

        None where they cannot be searched.
        """
        if self.keys is None:
            return None
        groups, events, words = self._tasks(self.keys)
        number = np.arange(len(groups))
        tasks = self._given(groups, events, words, number, number)
        by = np.array([skip is not Skip.TO_NEXT, -1 if skip is Skip.PAST_LAST else variable])
        return self._batch(groups, self._search(tasks, 1, by), None).without_ranks()

    def _given(self, groups: Ints, events: Ints, words: Ints, number: Ints, bucket: Ints) -> kernel.BestTasks:
        """Return tasks in the order of their numbers."""
        bounds, chosen = self.structure.events.groups, groups[number]
        return kernel.BestTasks(
            bounds.lo[chosen], bounds.hi[chosen], events[number], number, chosen, bucket[number], words[number]
        )

    def _search(self, tasks: kernel.BestTasks, limit: int, skip: Ints) -> kernel.BestRows:
        """Search all first events, and return the rows that were kept."""
        structure, keys = self.structure, self.keys
        assert keys is not None
        number, longest = int(tasks.bucket.max(initial=-1)) + 1, max(len(arm.slots) for arm in structure.arms)
        rows = number * limit
        room = kernel.BestRows(
            np.zeros((number, limit), np.int64), np.zeros(number, np.int64),
            np.zeros((rows, len(keys.falling)), np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64),
            np.full(rows * longest, -1, np.int32), np.full(rows * longest, -1, np.int8), np.zeros(rows, np.int64),
            np.zeros(1, np.int64),
        )  # fmt: skip
        if rows:
            lists, levels = structure.scratch(tasks.lo, tasks.hi)
            shape, candidates = (len(keys.slot), len(lists.pool)), structure.candidates
            extremes = Extremes(np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.bool_))
            kernel.best_matches(
                candidates.tables, candidates.programs.programs, lists, levels, structure.walked_arms, keys, extremes,
                tasks, room, skip,
            )  # fmt: skip
            if lists.state[0]:  # also where a program does not tell which decimal a double is rounded as
                raise NotComparable
            structure.check_walk(lists, levels)
        return room

    def _tasks(self, keys: MatchKeys) -> tuple[Ints, Ints, Ints]:
        """Return the group and the first event of all that may begin a match, and the greatest words of such matches.

        These are in the order of ranks. The bounds heed time alone, no condition between two variables.
        """
        structure = self.structure
        parts: list[tuple[Ints, Ints, Ints]] = []
        arms = {id(arm): number for number, arm in enumerate(structure.arms)}
        for first in structure.counter.first_events(structure.arms):
            keep, least, greatest, null = self._extremes_of(first, keys)
            group, events = first.tasks.group[keep], first.tasks.lo[keep] - 1
            words = np.empty((len(events), len(keys.falling)), np.int64)
            bound_tasks(keys, arms[id(first.arm)], first.slot, events, least, greatest, null, words)
            parts.append((group, events, words))
        groups, events, words = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((*(~words[:, i] for i in reversed(range(words.shape[1]))), events, groups))
        groups, events, words = groups[order], events[order], words[order]
        new = np.append(True, (groups[1:] != groups[:-1]) | (events[1:] != events[:-1]))[: len(groups)]
        return groups[new], events[new], words[new]

    def _extremes_of(
        self, first: FirstEvents, keys: MatchKeys
    ) -> tuple[NDArray[np.bool_], Ints, Ints, NDArray[np.bool_]]:
        """Return which first events leave other slots candidates, and the extremes of what loads read of these."""
        structure, tasks = self.structure, first.tasks
        candidates = structure.candidates
        keep = np.ones(len(tasks), np.bool_)
        if structure.events.begins is not None:
            keep &= structure.events.begins[tasks.lo - 1]
        ranges: dict[int, tuple[Ints, Ints]] = {}
        for slot in first.arm.slots:
            if slot != first.slot:
                ordered = candidates.order[first.slot, slot] > 0
                start = candidates.later[tasks.lo - 1] if ordered else tasks.lo
                own = candidates.of_slot[slot]
                ranges[slot] = np.searchsorted(own, start), np.searchsorted(own, tasks.hi)
                keep &= ranges[slot][0] < ranges[slot][1]
        shape = len(keys.slot), int(keep.sum())
        least, greatest, null = np.full(shape, -1), np.full(shape, -1), np.ones(shape, np.bool_)
        for load, slot in enumerate(keys.slot.tolist()):
            if slot in ranges:
                own, (begin, end) = candidates.of_slot[slot], ranges[slot]
                codes = keys.code[load][own]
                nulls = np.append(0, np.cumsum(codes < 0))
                begin, end = begin[keep], end[keep]
                null[load] = nulls[end] > nulls[begin]
                high = np.iinfo(np.int64).max
                lows = range_least(np.where(codes < 0, high, codes), begin, end)
                highs = range_least(-codes, begin, end)
                known = nulls[end] - nulls[begin] < end - begin
                least[load] = np.where(known, own[lows], -1)
                greatest[load] = np.where(known, own[highs], -1)
        return keep, least, greatest, null

    def _batch(self, of_task: Ints, rows: kernel.BestRows, before: Before | None) -> PathBatch:
        """Return the matches of heaps in the order of groups and ranks; `of_task` has the group of each task."""
        kept = rows.heap[np.arange(rows.heap.shape[1]) < rows.size[:, None]]
        longest = max(len(arm.slots) for arm in self.structure.arms)
        positions, variables = (
            one.reshape(len(rows.length), longest)[kept].astype(np.int64) for one in (rows.positions, rows.variables)
        )
        groups, lengths = of_task[rows.task[kept]], rows.length[kept]
        positions[np.arange(longest) >= lengths[:, None]] = -1  # a match comes before those that it begins
        order = np.lexsort((*variables.T[::-1], *positions.T[::-1], groups))
        groups, positions, variables, lengths = (one[order] for one in (groups, positions, variables, lengths))
        inside = np.arange(positions.shape[1]) < lengths[:, None]

        def labels() -> tuple[Ints, Ints]:
            return ranks_of(self.structure, groups, positions, variables, lengths, before), groups

        ends = np.cumsum(lengths).astype(np.int32)
        return PathBatch.of_ends(positions[inside].astype(np.int32), ends, labels, variables[inside])


def range_least(values: Ints, begin: Ints, end: Ints) -> Ints:
    """Return where the least value of each range lies; ranges are not empty."""
    found = begin.copy()
    level = (
        np.frexp((end - begin).astype(np.float64))[1] - 1
    )  # two ranges of so many places, as a power of two, cover it
    best, width = np.arange(len(values)), 1
    for power in range(int(level.max(initial=-1)) + 1):
        own = np.flatnonzero(level == power)
        one, other = best[begin[own]], best[end[own] - width]
        found[own] = np.where(values[other] < values[one], other, one)
        left, right = best[: max(0, len(best) - width)], best[width:]
        best, width = np.where(values[right] < values[left], right, left), 2 * width
    return found


def search_best_of_plan(
    request: BestRequest[Any], plan: Plan, events: Slice, before: Before | None = None
) -> PathBatch | None:
    """Return the same for a plan whose pattern is searched as joins; None where it is none, or overflows."""
    if plan.join is None:
        return None
    with suppress(NotComparable):
        return search_best(request, JoinStructure(plan, events), events, before)
    return None


def leading_of_plan(bound: BoundQuery, plan: Plan, events: Slice) -> tuple[PathBatch, Ints] | None:
    """Return the matches of a plan that AFTER MATCH keeps, as `QueryOperator.leading` does; None where it cannot."""
    with suppress(NotComparable):
        return leading_matches(bound, JoinStructure(plan, events), events) if plan.join is not None else None
    return None


def leading_matches(bound: BoundQuery, structure: JoinStructure, events: Slice) -> tuple[PathBatch, Ints] | None:
    """Return the matches that AFTER MATCH keeps, as `QueryOperator.leading` does; None where it cannot."""
    after = bound.after_match
    assert after is not None
    found = None
    with suppress(NotComparable):
        search = BestMatches(structure, events, bound.order_by)
        found = search.leading(after.skip, structure.codes.get(after.var or "", -1))
    return None if found is None else (found, np.empty(0, np.int64))


def search_best(
    request: BestRequest[Any], structure: JoinStructure, events: Slice, before: Before | None = None
) -> PathBatch | None:
    """Return the best matches that a request asks for; None where they cannot be searched."""
    bound = request.bound
    if bound.limit is None:
        return None
    limit = bound.limit + bound.offset if bound.limit else 0
    with suppress(NotComparable):
        return BestMatches(structure, events, bound.order_by).find(limit, request.per_group, before, bound.limit_per)
    return None
