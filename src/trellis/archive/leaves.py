"""Questions, the leaves of a history in which they are searched, and the intervals of leaves that answer them.

A leaf tells which names may be in it, not in which order. So there are two readings: under `maybe` two steps may be in
one leaf, and no match is missed; under `no`, that of the thesis, they are in different leaves, and every interval
holds a match as far as the filters are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.archive.filters import Filters
from trellis.archive.step_sequences import Names, StepSequence
from trellis.archive.values import ChosenValues, LeafValues, ValuedName
from trellis.events.columns.windows import DoubleWindows
from trellis.properties import cached_property

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
    """Whether a pattern happened: `no` is certain."""

    NO = "no"
    MAYBE = "maybe"
    LIKELY = "likely"


@dataclass(frozen=True)
class Leaves:
    """The leaves of a history: what they may hold, and when and where they are.

    Attributes
    ----------
    index
        Tells which leaves may hold a name of a set.
    capacity
        How many events a closed leaf has.
    first, last
        The positions of the first and the last event of each leaf.
    since, until
        The times of these.
    values
        Tells which leaves may hold events with wanted values; None if nothing is known.
    """

    index: NameIndex
    capacity: int
    first: Ints
    last: Ints
    since: NDArray[Any]
    until: NDArray[Any]
    values: LeafValues | ChosenValues | None = None

    def __len__(self) -> int:
        return len(self.first)

    def has(self, names: Names) -> Flags:
        """Return which leaves may hold a name."""
        if names is None:
            return np.ones(len(self), np.bool_)
        if isinstance(self.index, _Blocks):
            return self.index.has(names)
        plain = frozenset(name for name in names if isinstance(name, str))
        flags = self.index.has(plain) if plain or not names else np.zeros(len(self), np.bool_)
        for name in names:
            if isinstance(name, ValuedName):
                held = self.index.has(frozenset({name.name}))
                flags = flags | (held if self.values is None else held & self.values.may_hold(name))
        return flags

    def places(self, names: Names) -> Ints:
        """Return the leaves that may hold a name, in order."""
        if isinstance(self.index, Filters) and names is not None:
            plain = [name for name in names if isinstance(name, str)]
            if len(plain) == len(names):
                return self.index.places(plain)
        return np.flatnonzero(self.has(names))

    def coarser(self, factor: int) -> Leaves:
        """Return blocks of leaves in place of leaves; one that stands for as many, or more, is a block of its own."""
        size = min(self.capacity * factor, 1 << 62)  # one block for all
        begins = np.flatnonzero(np.diff(self.first // size, prepend=-1))
        ends = np.append(begins[1:], len(self)) - 1 if len(begins) else begins
        return Leaves(
            _Blocks(self, begins), self.capacity * factor, self.first[begins], self.last[ends], self.since[begins],
            self.until[ends],
        )  # fmt: skip


class NameIndex(Protocol):
    """An index of the leaves that may hold a name."""

    def has(self, names: frozenset[str]) -> Flags:
        """Return which leaves may hold one of some names; never wrongly that one does not."""


@dataclass(frozen=True)
class _Blocks:
    leaves: Leaves
    begins: Ints

    def has(self, names: Names) -> Flags:
        flags = self.leaves.has(names)
        return np.logical_or.reduceat(flags, self.begins) if len(self.begins) else flags


@dataclass(frozen=True)
class SpanLimit:
    """A span, or windows of a size with a slide, in positions or in times."""

    size: int | float
    slide: int | float | None = None
    in_positions: bool = False
    doubles: DoubleWindows | None = None

    def last_ends(self, times: NDArray[Any]) -> NDArray[Any]:
        """Return where the last windows end that hold some times."""
        if self.doubles is not None:
            return self.doubles.ends(self.doubles.of(times)[1])
        assert self.slide is not None
        ends: NDArray[Any] = times // self.slide * self.slide + self.size
        return ends


@dataclass(frozen=True)
class Question:
    """A question: the steps of a pattern, and where and how far apart they may be.

    Attributes
    ----------
    sequences
        The step sequences of the pattern.
    policy, reading
        How steps follow one another, and whether two may be in one leaf.
    within
        How far apart they may be.
    begin, end
        Times between which they lie, both included; None for any.
    first, last
        Positions between which they lie, both included; None for any.
    partitioned
        Whether neighbours are those of a key, so that they may be far apart.
    spread
        How many leaves a chain may end behind its start; None for any.
    """

    sequences: tuple[StepSequence, ...]
    policy: Policy = Policy.NEXT
    reading: Reading = Reading.MAYBE
    within: SpanLimit | None = None
    begin: Any = None
    end: Any = None
    first: int | None = None
    last: int | None = None
    partitioned: bool = False
    spread: int | None = None

    def bounds(self, leaves: Leaves) -> tuple[tuple[Any, Any, NDArray[Any], NDArray[Any]], ...]:
        """Return the times, and the positions, between which steps lie, with those of leaves."""
        times = (self.begin, self.end, leaves.since, leaves.until)
        return times, (self.first, self.last, leaves.first, leaves.last)

    @property
    def by_steps(self) -> bool:
        """Whether steps are in the same leaf or the next, and not anywhere later."""
        if self.policy is Policy.ADJACENT_LEAVES:
            return True
        runs_on = self.partitioned or any(sequence.kleene for sequence in self.sequences)
        return self.policy is Policy.CONTIGUOUS and not runs_on


class SearchedLeaves:
    """The leaves in which a question is searched: which of them count, and how far a chain from each may go."""

    def __init__(self, question: Question, leaves: Leaves) -> None:
        self.question, self.leaves = question, leaves

    @cached_property
    def usable(self) -> Flags:
        """The leaves that lie in, or under the reading `maybe` meet, the times of the question."""
        question, leaves = self.question, self.leaves
        inner = question.reading is Reading.NO
        usable = np.ones(len(leaves), np.bool_)
        for low, high, begins, ends in question.bounds(leaves):
            if low is not None:
                usable &= (begins if inner else ends) >= low
            if high is not None:
                usable &= (ends if inner else begins) <= high
        return usable

    @cached_property
    def limit(self) -> Ints:
        """For each leaf the last one that a chain from it may end in."""
        size, spread = len(self.leaves), self.question.spread
        limit = self._limit()
        return limit if spread is None else np.minimum(limit, np.arange(size) + spread)

    def _limit(self) -> Ints:
        leaves, within = self.leaves, self.question.within
        size = len(leaves)
        if within is None:
            return np.full(size, size - 1)
        begin, end = (leaves.first, leaves.last) if within.in_positions else (leaves.since, leaves.until)
        near, far = (begin, end) if self.question.reading is Reading.NO else (end, begin)
        if within.slide is None:
            return np.searchsorted(far, near + within.size, side="right") - 1
        return np.searchsorted(far, within.last_ends(near), side="left") - 1


@dataclass(frozen=True)
class LeafIntervals:
    """Intervals of leaves in which a pattern may have happened, sorted by their starts.

    Under skip-till-any a start has several ends, which are given by the first, the last and their number. `clear`:
    some chain has nothing in it that NOT forbids, by the filters.
    """

    start: Ints
    end: Ints
    last_end: Ints
    ends: Ints
    clear: Flags

    def __len__(self) -> int:
        return len(self.start)

    def some(self, which: Any) -> LeafIntervals:
        """Return some of the intervals, by an index or a mask."""
        return LeafIntervals(
            self.start[which], self.end[which], self.last_end[which], self.ends[which], self.clear[which]
        )
