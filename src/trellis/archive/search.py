"""The search in the leaves of a history: whether a pattern happened (no, maybe or likely), and in which leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trellis.archive.leaves import Answer, Flags, Ints, LeafIntervals, Policy, Reading, SearchedLeaves
from trellis.archive.runs import Run, Steps
from trellis.archive.step_sequences import Names, StepSequence
from trellis.kernels.bloom import chains as kernel


class LeafSearch(SearchedLeaves):
    """A search for the answers of a question in leaves."""

    def simple(self) -> Answer:
        """Return whether it happened: a `no` is certain."""
        if not len(self.intervals()):
            return Answer.NO
        if self.question.policy is Policy.CONTIGUOUS:
            return Answer.MAYBE  # leaves do not tell which events are neighbours
        sure = LeafSearch(replace(self.question, reading=Reading.NO), self.leaves)
        return Answer.LIKELY if sure.intervals(strictly=True).clear.any() else Answer.MAYBE

    def intervals(self, strictly: bool = False) -> LeafIntervals:
        """Return starts and ends; `strictly`: each leaf of a chain later than the one before, in time too."""
        if not len(self.leaves):
            none = np.empty(0, np.int64)
            return LeafIntervals(none, none, none, none, np.empty(0, np.bool_))
        if self.question.by_steps:
            return self._by_steps(strictly)
        if not strictly and len(self.question.sequences) == 1 and self.question.sequences[0].plain:
            return self._plain(self.question.sequences[0])
        runs = [Run(self, sequence, strictly) for sequence in self.question.sequences]
        size = len(self.leaves)
        firsts = np.stack([run.first for run in runs])
        first = np.where(firsts < 0, size, firsts).min(axis=0)
        starts = np.flatnonzero(first < size)
        first = np.where(first < size, first, -1).astype(np.int32)
        is_next = self.question.policy is Policy.NEXT
        clear = np.zeros(size, np.bool_)
        last, number = first.astype(np.int64), np.ones(size, np.int64)
        for run in runs:
            run.tell_clear(first, is_next, clear)
        if not is_next:
            last, number = self._ends(runs, starts)
        return LeafIntervals(starts, first[starts].astype(np.int64), last[starts], number[starts], clear[starts])

    def _plain(self, sequence: StepSequence) -> LeafIntervals:
        """Return starts and ends of single steps one after another, by lists of their leaves."""
        lists = [self._places(block[0]) for block in sequence.blocks]
        start, end = lists[0].copy(), lists[0].copy()
        apart = int(self.question.reading is Reading.NO)
        for leaves, loose in zip(lists[1:], sequence.loose, strict=True):
            number = kernel.go_on(start, end, leaves, 0 if loose else apart)
            start, end = start[:number], end[:number]
        limited = self.question.within is not None or self.question.spread is not None
        if limited:
            chosen = end <= self.limit[start]
            start, end = start[chosen], end[chosen]
        last, number = end, np.ones(len(end), np.int64)
        if self.question.policy is not Policy.NEXT:
            own = lists[-1] if len(lists) > 1 else start
            reach = self.limit[start] if limited else np.full(len(start), len(self.leaves))
            behind = np.searchsorted(own, reach, side="right") if len(lists) > 1 else np.arange(len(start)) + 1
            last, number = own[behind - 1], behind - np.searchsorted(own, end)
        return LeafIntervals(start, end, last, number, np.ones(len(start), np.bool_))

    def _places(self, names: Names) -> Ints:
        """Return the leaves in which a step may be."""
        question = self.question
        if all(bound is None for bound in (question.begin, question.end, question.first, question.last)):
            return self.leaves.places(names)
        return np.flatnonzero(self.leaves.has(names) & self.usable)

    def pairs(self, limit: int | None = None) -> LeafIntervals:
        """Return the distinct pairs of a start and an end, the first of them up to a limit, under skip-till-any."""
        if self.question.by_steps or not len(self.leaves):
            return self.intervals().some(slice(0, limit))
        runs = [Run(self, sequence, False) for sequence in self.question.sequences]
        starts: list[int] = []
        ends: list[int] = []
        clear: list[bool] = []
        for a in np.flatnonzero(np.max([run.first for run in runs], axis=0) >= 0).tolist():
            reached, free = np.zeros((2, len(self.leaves)), np.bool_)
            for run in runs:
                run.add_ends(a, reached, free)
            places = np.flatnonzero(reached)
            starts += [a] * len(places)
            ends += places.tolist()
            clear += free[places].tolist()
            if limit is not None and len(starts) >= limit:
                break
        end = np.array(ends, np.int64)
        rows = LeafIntervals(
            np.array(starts, np.int64), end, end, np.ones(len(end), np.int64), np.array(clear, np.bool_)
        )
        return rows.some(slice(0, limit))

    def minimal(self) -> LeafIntervals:
        """Return the pairs of a start and an end that contain no other pair."""
        if self.question.policy is Policy.ANY:
            return LeafSearch(replace(self.question, policy=Policy.NEXT), self.leaves).minimal()
        intervals = self.intervals()
        chosen, least = [], len(self.leaves)
        for i in range(len(intervals) - 1, -1, -1):
            if i and intervals.start[i - 1] == intervals.start[i]:
                continue  # the start has a smaller end
            if intervals.end[i] < least:
                chosen.append(i)
                least = int(intervals.end[i])
        return intervals.some(np.array(chosen[::-1], np.int64))

    def after(self) -> LeafIntervals:
        """Return the thesis's list of skip-till-next: each row starts where the one before ends, or later."""
        intervals = self.intervals()
        chosen, i = [], 0
        while i < len(intervals):
            chosen.append(i)
            i = max(i + 1, int(np.searchsorted(intervals.start, intervals.end[i])))
        return intervals.some(np.array(chosen, np.int64))

    def _ends(self, runs: Sequence[Run], starts: Ints) -> tuple[Ints, Ints]:
        size = len(self.leaves)
        last, number = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        if len(runs) == 1:
            (run,) = runs
            kernel.ends_of(run.has, run.after, run.blocks, run.first, self.limit, last, number)
            return last, number
        for a in starts.tolist():
            ends = np.zeros(size, np.bool_)
            for run in runs:
                kernel.add_ends(run.has, run.after, run.blocks, run.first, self.limit, a, ends)
            places = np.flatnonzero(ends)
            last[a], number[a] = places[-1], len(places)
        return last, number

    def needed(self) -> Flags:
        """Return the leaves that lie, as some step, on some chain, whatever NOT forbids."""
        marks = np.zeros(len(self.leaves), np.bool_)
        for sequence in self.question.sequences if len(self.leaves) else ():
            run = Run(self, sequence, False)
            before = kernel.befores(run.has)
            kernel.mark(run.has, run.after, before, run.blocks, run.gaps, run.strict, run.first, self.limit, marks)
        return marks

    # --- Steps in the same leaf or the next -------------------------------------------------------------------

    def _by_steps(self, strictly: bool) -> LeafIntervals:
        steps = [Steps(self, sequence, strictly) for sequence in self.question.sequences]
        reached, clear = np.zeros((2, max(one.most for one in steps) + 1, len(self.leaves)), np.bool_)
        for one in steps:
            for flags, heed in ((reached, False), (clear, True)):
                for behind, starts in enumerate(one.offsets(heed)):
                    flags[behind] |= starts
        start, offset = np.nonzero(reached.T)
        end = start + offset
        return LeafIntervals(start, end, end, np.ones(len(start), np.int64), clear[offset, start])
