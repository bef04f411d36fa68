"""The walk over candidates, on one thread or several."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.kernels.sequence import walk as kernel
from trellis.kernels.sequence.sweep import sweep
from trellis.operators.exact import LARGE, SMALL
from trellis.operators.matches import NONE
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.plan.sizes import USUAL
from trellis.properties import cached_property

Ints = NDArray[np.int64]
WORTH_SWEEP = 1 << 28  # candidates of all lists of all tasks from which a sweep may be sooner done
MOST_SWEPT = 6  # variables of a sequence that is counted by a sweep


@dataclass(frozen=True)
class MatchTasks:
    """Tasks of a walk: all matches that begin at one event in one window.

    Attributes
    ----------
    first
        The first candidate of each.
    limit
        Where the candidates that may follow it end.
    least
        The first event at which a match may end.
    group
        The group of each, never falling.
    """

    first: Ints
    limit: Ints
    least: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.first)

    def given(self, begin: int = 0, end: int | None = None) -> kernel.SequenceTasks:
        """Return some of them as the kernels take them."""
        return kernel.SequenceTasks(self.first[begin:end], self.limit[begin:end], self.least[begin:end])


class Walker:
    """Counts and lists the matches of tasks."""

    def __init__(
        self, leaves: SequenceCandidates, tasks: MatchTasks, threads: int = 1, worth: int = USUAL.thread_firsts
    ) -> None:
        self.leaves, self.tasks, self.threads, self._worth = leaves, tasks, threads, worth
        self._walks = local()

    @cached_property
    def candidates(self) -> kernel.WalkCandidates:
        """The candidates as the kernels take them."""
        return self.leaves.candidates

    def count(self, zero: Any, modulus: Any) -> NDArray[Any]:
        """Return the number of matches of each task, as floats or modulo a prime."""
        if self.sweeps:
            assert self.star is not None
            return sweep(*self.star, zero, modulus)

        def work(tasks: kernel.SequenceTasks) -> NDArray[Any]:
            scratch = self._scratch(type(zero))
            return kernel.count(self.candidates, tasks, self.leaves.cut, zero, modulus, self._walk(), scratch)

        return self._on_threads(work)

    @property
    def prime_bits(self) -> int:
        """The bits of the primes that counts are taken modulo: numbers are multiplied in a sweep, else only added."""
        return SMALL if self.sweeps else LARGE

    @cached_property
    def sweeps(self) -> bool:
        """Whether counting by a sweep over values is sooner done than by a walk, which goes over every list."""
        if self._reach[2] < WORTH_SWEEP or self.star is None:
            return False
        size = len(self.candidates.events)
        return self._reach[2] > size * size.bit_length() * self.leaves.number**3

    @cached_property
    def star(self) -> tuple[Any, ...] | None:
        """The arguments of a sweep; None unless one value of the first event is compared, always in one direction."""
        leaves, tasks, candidates = self.leaves, self.tasks, self.candidates
        number, conditions = leaves.number, leaves.conditions
        if not 3 <= number <= MOST_SWEPT or any(forbidden is not None for forbidden in leaves.forbidden):
            return None
        if any(c.first or c.kind != kernel.GREATER for c in conditions) or not conditions:
            return None
        asked = {c.second: c for c in conditions}
        if len(asked) < len(conditions) or any(not np.array_equal(c.left, conditions[0].left) for c in conditions):
            return None
        begins = np.ones(len(leaves.later) + 1, np.bool_)  # of a time; the last one is behind all
        begins[1:-1] = leaves.later[1:] != leaves.later[:-1]
        time = np.cumsum(begins) - 1
        others = range(1, number)
        codes = np.concatenate(
            [asked[v].right if v in asked else np.full(len(leaves.of_variable[v]), NONE) for v in others]
        )
        variables = np.repeat(np.arange(number - 1), [len(leaves.of_variable[v]) for v in others])
        places = time[np.concatenate([leaves.of_variable[v] for v in others])]
        falling = np.argsort(codes)[::-1]
        values = conditions[0].left[tasks.first]
        low, high = time[candidates.later[tasks.first]], time[tasks.limit]
        return (
            int(time[-1]) + 1, number - 1, np.argsort(values)[::-1], values, low, np.maximum(low, high), codes[falling],
            places[falling], variables[falling],
        )  # fmt: skip

    def weigh(self, weights: NDArray[np.uint64], prime: int) -> NDArray[np.uint64]:
        """Return for each task the sum of the weights of the candidates over all matches, modulo a prime."""

        def work(tasks: kernel.SequenceTasks) -> NDArray[np.uint64]:
            scratch = self._scratch(np.uint64), self._scratch(np.uint64)
            walk = self._walk()
            return kernel.weigh(self.candidates, tasks, self.leaves.cut, np.uint64(prime), weights, walk, *scratch)

        return self._on_threads(work)

    def least(self, values: Ints) -> Ints:
        """Return for each task the least value of a candidate on any match; `NONE` where there is none."""

        def work(tasks: kernel.SequenceTasks) -> Ints:
            scratch = self._scratch(np.int64)
            return kernel.least(self.candidates, tasks, self.leaves.cut, values, NONE, self._walk(), scratch)

        return self._on_threads(work)

    def unrank(self, task: int, rank: int, row: Ints) -> None:
        """Write the events of the match of a task that has a rank."""
        kernel.unrank_match(
            self.candidates, self.tasks.given(), task, np.uint64(rank), self.leaves.cut, self._walk(),
            self._scratch(np.uint64), row,
        )  # fmt: skip

    def fill(self, task: int, skip: int, table: NDArray[np.int32], begin: int, end: int, each: int = NONE >> 1) -> None:
        """Write matches from a task on, without the first `skip`, as columns `[begin, end)` of a table.

        No more than `each` come of a task.
        """
        kernel.fill(self.candidates, self.tasks.given(), task, skip, self._walk(), table, begin, end, each)

    def _on_threads(self, work: Callable[[kernel.SequenceTasks], NDArray[Any]]) -> NDArray[Any]:
        """Do something for all tasks, runs of equal size at once where they are worth it."""
        _ = self.candidates, self._reach  # once, not by each thread
        if self.threads < 2 or len(self.tasks) < self._worth:
            return work(self.tasks.given())
        cuts = np.linspace(0, len(self.tasks), 4 * self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(lambda cut: work(self.tasks.given(*cut)), pairwise(cuts))))

    def _walk(self) -> kernel.Walk:
        """Return the state of the walk of this thread."""
        if not hasattr(self._walks, "walk"):
            number, size = self.leaves.number, len(self.candidates.events)
            pool = np.empty(size + (number - 1) * self._reach[0] + 1, np.int64)
            pool[:size] = np.arange(size)
            low, high = (np.zeros((number, number), np.int64) for _ in range(2))
            at, state = np.zeros(number + 1, np.int64), np.zeros(number + 2, np.int64)
            self._walks.walk = kernel.Walk(low, high, at, pool, state)
        walk: kernel.Walk = self._walks.walk
        return walk

    def _scratch(self, kind: Any) -> NDArray[Any]:
        return np.empty((self.leaves.number, self._reach[1]), kind)

    @cached_property
    def _reach(self) -> tuple[int, int, int]:
        """The most candidates that the lists of a task have together, that one list has, and that all lists have.

        Of few the former are bounds, and the last is not known to be more than 0.
        """
        candidates, tasks, size = self.candidates, self.tasks, len(self.candidates.events)
        if size * len(tasks) < WORTH_SWEEP:  # so few have room: to find how many there are takes longer
            return size, size, 0
        together, longest = np.zeros(len(tasks), np.int64), 0
        for v in range(1, self.leaves.number):
            events = candidates.events[candidates.begin[v] : candidates.begin[v + 1]]
            sizes = np.searchsorted(events, tasks.limit) - np.searchsorted(events, candidates.later[tasks.first])
            sizes = np.maximum(sizes, 0)
            together += sizes
            longest = max(longest, int(sizes.max(initial=0)))
        return int(together.max(initial=0)), longest, int(together.sum())
