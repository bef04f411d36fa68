"""Questions of a history by its leaves: no, maybe or likely; and in which leaves.

A leaf tells which names may be in it, not in which order. So there are two readings: under `maybe` two steps may be in
one leaf, and what is true is always found; under `no`, that of the thesis, they are in different leaves, and what is
found is true as far as the filters are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.archive.words import Names, Word
from trellis.kernels import chains as kernel

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Policy(StrEnum):
    """How steps follow one another."""

    ANY = "skip-till-any"
    NEXT = "skip-till-next"
    CONTIGUOUS = "contiguous"
    ADJACENT_LEAVES = "adjacent-leaves"


class Reading(StrEnum):
    """Whether two steps may be in one leaf."""

    MAYBE = "maybe"
    NO = "no"


class Answer(StrEnum):
    """What a history says to a question: `no` is certain."""

    NO = "no"
    MAYBE = "maybe"
    LIKELY = "likely"


@dataclass(frozen=True)
class Leaves:
    """The leaves of a history: what they may hold, and when and where they are.

    Attributes
    ----------
    holder
        Tells which leaves may hold a name of a set.
    capacity
        How many events a closed leaf has.
    first, last
        The positions of the first and the last event of each leaf.
    since, until
        The times of these.
    """

    holder: Holder
    capacity: int
    first: Ints
    last: Ints
    since: NDArray[Any]
    until: NDArray[Any]

    def __len__(self) -> int:
        return len(self.first)

    def has(self, names: Names) -> Flags:
        """Return which leaves may hold a name."""
        return np.ones(len(self), np.bool_) if names is None else self.holder.has(names)

    def coarser(self, factor: int) -> Leaves:
        """Return blocks of leaves in place of leaves."""
        begins = np.arange(0, len(self), factor)
        ends = np.minimum(begins + factor, len(self)) - 1
        return Leaves(
            _Blocks(self, begins), self.capacity * factor, self.first[begins], self.last[ends], self.since[begins],
            self.until[ends],
        )  # fmt: skip


class Holder(Protocol):
    """What tells where names may be."""

    def has(self, names: frozenset[str]) -> Flags:
        """Return which leaves may hold one of some names; never wrongly that one does not."""


@dataclass(frozen=True)
class _Blocks:
    leaves: Leaves
    begins: Ints

    def has(self, names: frozenset[str]) -> Flags:
        found = self.leaves.has(names)
        return np.logical_or.reduceat(found, self.begins) if len(self.begins) else found


@dataclass(frozen=True)
class Within:
    """A span, or windows of a size with a slide, in positions or in times."""

    size: int | float
    slide: int | float | None = None
    in_positions: bool = False


@dataclass(frozen=True)
class Asked:
    """What is asked.

    Attributes
    ----------
    words
        The words of the pattern.
    policy, reading
        How steps follow one another, and whether two may be in one leaf.
    within
        How far apart they may be.
    begin, end
        Times between which they lie, both included; None for any.
    partitioned
        Whether neighbours are those of a key, so that they may be far apart.
    """

    words: tuple[Word, ...]
    policy: Policy = Policy.NEXT
    reading: Reading = Reading.MAYBE
    within: Within | None = None
    begin: Any = None
    end: Any = None
    partitioned: bool = False

    @property
    def by_steps(self) -> bool:
        """Whether steps are in the same leaf or the next, and not anywhere later."""
        if self.policy is Policy.ADJACENT_LEAVES:
            return True
        runs_on = self.partitioned or any(word.kleene for word in self.words)
        return self.policy is Policy.CONTIGUOUS and not runs_on


@dataclass(frozen=True)
class Found:
    """Starts and ends of what was found, in leaves, sorted.

    Under skip-till-any a start has several ends, of which the first, the last and their number are told. `clear`: some
    chain has nothing in it that NOT forbids, by the filters.
    """

    start: Ints
    end: Ints
    last_end: Ints
    ends: Ints
    clear: Flags

    def __len__(self) -> int:
        return len(self.start)


class Question:
    """A question of some leaves."""

    def __init__(self, asked: Asked, leaves: Leaves) -> None:
        self.asked, self.leaves = asked, leaves

    @cached_property
    def usable(self) -> Flags:
        """The leaves that lie in, or under the reading `maybe` meet, the times that are asked for."""
        asked, leaves = self.asked, self.leaves
        inner = asked.reading is Reading.NO
        usable = np.ones(len(leaves), np.bool_)
        if asked.begin is not None:
            usable &= (leaves.since if inner else leaves.until) >= asked.begin
        if asked.end is not None:
            usable &= (leaves.until if inner else leaves.since) <= asked.end
        return usable

    @cached_property
    def limit(self) -> Ints:
        """For each leaf the last one that a chain from it may end in."""
        leaves, within = self.leaves, self.asked.within
        size = len(leaves)
        if within is None:
            return np.full(size, size - 1)
        begin, end = (leaves.first, leaves.last) if within.in_positions else (leaves.since, leaves.until)
        near, far = (begin, end) if self.asked.reading is Reading.NO else (end, begin)
        if within.slide is None:
            return np.searchsorted(far, near + within.size, side="right") - 1
        bound = near // within.slide * within.slide + within.size
        return np.searchsorted(far, bound, side="left") - 1

    def simple(self) -> Answer:
        """Return whether it happened: a `no` is certain."""
        if not len(self.found()):
            return Answer.NO
        sure = Question(replace(self.asked, reading=Reading.NO), self.leaves)
        return Answer.LIKELY if sure.found(strictly=True).clear.any() else Answer.MAYBE

    def found(self, strictly: bool = False) -> Found:
        """Return starts and ends; `strictly`: each leaf of a chain later than the one before, in time too."""
        if not len(self.leaves):
            none = np.empty(0, np.int64)
            return Found(none, none, none, none, np.empty(0, np.bool_))
        if self.asked.by_steps:
            return self._by_steps(strictly)
        runs = [_Run(self, word, strictly) for word in self.asked.words]
        size = len(self.leaves)
        firsts = np.stack([run.first for run in runs])
        first = np.where(firsts < 0, size, firsts).min(axis=0)
        starts = np.flatnonzero(first < size)
        first = np.where(first < size, first, -1).astype(np.int32)
        is_next = self.asked.policy is Policy.NEXT
        clear = np.zeros(size, np.bool_)
        last, number = first.astype(np.int64), np.ones(size, np.int64)
        for run in runs:
            run.tell_clear(first, is_next, clear)
        if not is_next:
            last, number = self._ends(runs, starts)
        return Found(starts, first[starts].astype(np.int64), last[starts], number[starts], clear[starts])

    def _ends(self, runs: Sequence[_Run], starts: Ints) -> tuple[Ints, Ints]:
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
            found = np.flatnonzero(ends)
            last[a], number[a] = found[-1], len(found)
        return last, number

    def needed(self) -> Flags:
        """Return the leaves that lie, as some step, on some chain, whatever NOT forbids."""
        marks = np.zeros(len(self.leaves), np.bool_)
        for word in self.asked.words if len(self.leaves) else ():
            run = _Run(self, word, False)
            before = kernel.befores(run.has)
            kernel.mark(run.has, run.after, before, run.blocks, run.gaps, run.strict, run.first, self.limit, marks)
        return marks

    # --- Steps in the same leaf or the next -------------------------------------------------------------------

    def _by_steps(self, strictly: bool) -> Found:
        pairs: dict[tuple[int, int], bool] = {}
        for word in self.asked.words:
            reached, clear = (_Steps(self, word, strictly, heed).offsets() for heed in (False, True))
            for offset, starts in enumerate(reached):
                for a in np.flatnonzero(starts).tolist():
                    pairs[a, a + offset] = pairs.get((a, a + offset), False) or bool(clear[offset][a])
        rows = sorted(pairs)
        start, end = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        return Found(start, end, end, np.ones(len(rows), np.int64), np.array([pairs[row] for row in rows], np.bool_))


class _Run:
    """A word over the leaves of a question."""

    def __init__(self, question: Question, word: Word, strictly: bool) -> None:
        self.question, self.word = question, word
        leaves, size = question.leaves, len(question.leaves)
        sets = [some for block in word.blocks for some in block]
        self.has = np.stack([leaves.has(some) & question.usable for some in sets])
        self.blocks = np.concatenate([[0], np.cumsum([len(block) for block in word.blocks])]).astype(np.int64)
        apart = int(question.asked.reading is Reading.NO)
        self.gaps = np.array([0 if loose else apart for loose in word.loose], np.int64)
        self.strict = np.zeros(size + 1, np.int64)
        if strictly:
            self.strict[:size] = np.searchsorted(leaves.since, leaves.until, side="right")
        self.after = kernel.nexts(self.has)
        self.first = np.empty(size, np.int32)
        kernel.first_ends(self.has, self.after, self.blocks, self.gaps, self.strict, question.limit, self.first)

    def tell_clear(self, first: Small, only_first: bool, out: Flags) -> None:
        """Note the rows that a chain of this word has without what is forbidden."""
        mine = np.where((self.first >= 0) & ((self.first <= first) | (not only_first)), first, -1).astype(np.int32)
        if not any(self.word.forbidden):
            if only_first:  # a chain may end in any later leaf that holds the last step, in the row's too if it does
                out |= (mine >= 0) & (self.first == mine)
            else:
                out |= mine >= 0
            mine[out] = -1
            if not only_first or not (mine >= 0).any():
                return
        size = len(self.question.leaves)
        forbidden = np.full((max(1, len(self.word.forbidden)), size + 1), size, np.int32)
        for gap, names in enumerate(self.word.forbidden):
            if names:
                forbidden[gap] = kernel.nexts(self.question.leaves.has(names)[None])[0][: size + 1]
        kernel.clear_rows(
            self.has, self.after, self.blocks, self.gaps, self.strict, forbidden, mine, self.question.limit, only_first,
            out,
        )  # fmt: skip


class _Steps:
    """A word whose steps are in the same leaf as the one before, or in the next."""

    def __init__(self, question: Question, word: Word, strictly: bool, heed: bool) -> None:
        self.question, self.word, self.heed = question, word, heed
        leaves = question.leaves
        self.size = len(leaves)
        self.adjacent = question.asked.policy is Policy.ADJACENT_LEAVES
        apart = self.adjacent or question.asked.reading is Reading.NO
        self.gaps = (1,) if apart else (0, 1)
        self.most = word.steps - 1 if apart else min(word.steps - 1, ceil((word.steps - 1) / leaves.capacity))
        self.later = np.zeros(self.size, np.bool_)  # whether a leaf is later than the one before, in time too
        self.later[1:] = leaves.since[1:] > leaves.until[:-1]
        self.strictly = strictly

    def offsets(self) -> list[Flags]:
        """Return for each distance the leaves at which a chain starts that ends so far behind."""
        leaves = self.question.leaves
        current: list[Flags] | None = None
        for b, block in enumerate(self.word.blocks):
            has = [leaves.has(some) & self.question.usable for some in block]
            forbidden = self.word.forbidden[b - 1] if b else frozenset()
            loose = bool(b and self.word.loose[b - 1])
            current = self._block(current, has, leaves.has(forbidden) if forbidden and self.heed else None, loose)
        assert current is not None
        found = []
        for offset, starts in enumerate(current):
            ends = np.arange(self.size) + offset
            found.append(starts & (ends <= self.question.limit))
        return found

    def _block(self, before: list[Flags] | None, has: list[Flags], forbidden: Flags | None, loose: bool) -> list[Flags]:
        """Go through a block in all orders of its steps, by the subsets that are done."""
        none = [np.zeros(self.size, np.bool_) for _ in range(self.most + 1)]
        done: dict[int, list[Flags]] = {}
        for e, here in enumerate(has):
            if before is None:
                done[1 << e] = [here.copy(), *none[1:]]
            else:
                done[1 << e] = self._stepped(before, here, (0, 1) if loose else self.gaps, forbidden)
        for mask in range(1, 1 << len(has)):
            if mask not in done:
                done[mask] = [flags.copy() for flags in none]
            for e, here in enumerate(has):
                bit = 1 << e
                if mask & bit and mask != bit and (mask ^ bit) in done:
                    more = self._stepped(done[mask ^ bit], here, (0, 1), None)
                    done[mask] = [one | other for one, other in zip(done[mask], more, strict=True)]
        return done[(1 << len(has)) - 1]

    def _stepped(self, before: list[Flags], here: Flags, gaps: tuple[int, ...], forbidden: Flags | None) -> list[Flags]:
        found = []
        for offset in range(self.most + 1):
            reached = np.zeros(self.size, np.bool_)
            for gap in gaps:
                if offset - gap < 0:
                    continue
                come = before[offset - gap]
                if forbidden is not None:
                    come = come & ~_shifted(forbidden, offset - gap) & ~_shifted(forbidden, offset)
                if self.strictly and gap:
                    come = come & _shifted(self.later, offset)
                reached |= come
            found.append(reached & _shifted(here, offset))
        return found


def _shifted(flags: Flags, offset: int) -> Flags:
    """Return for each leaf the flag of the one so far behind it."""
    out = np.zeros(len(flags), np.bool_)
    if offset < len(flags):
        out[: len(flags) - offset] = flags[offset:]
    return out
