"""The walk over candidates, on one thread or several."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.kernels import sequences as kernel
from trellis.sequences.candidates import Leaves

Ints = NDArray[np.int64]
WORTH_THREADS = 1 << 12  # first events from which several threads count
NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Tasks:
    """First candidates, where what may follow each ends and the last may begin, and their groups, which never fall."""

    first: Ints
    limit: Ints
    least: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.first)

    def given(self, begin: int = 0, end: int | None = None) -> kernel.Tasks:
        """Return some of them as the kernels take them."""
        return kernel.Tasks(self.first[begin:end], self.limit[begin:end], self.least[begin:end])


class Walker:
    """Counts and lists the matches of tasks."""

    def __init__(self, leaves: Leaves, tasks: Tasks, threads: int = 1) -> None:
        self.leaves, self.tasks, self.threads = leaves, tasks, threads
        self._walks = local()

    @cached_property
    def candidates(self) -> kernel.Candidates:
        """The candidates as the kernels take them."""
        return self.leaves.candidates

    def count(self, zero: Any, modulus: Any) -> NDArray[Any]:
        """Return the number of matches of each task, as floats or modulo a prime."""

        def work(tasks: kernel.Tasks) -> NDArray[Any]:
            scratch = self._scratch(type(zero))
            return kernel.count(self.candidates, tasks, self.leaves.cut, zero, modulus, self._walk(), scratch)

        return self._on_threads(work)

    def weigh(self, weights: NDArray[np.uint64], prime: int) -> NDArray[np.uint64]:
        """Return for each task the sum of the weights of the candidates over all matches, modulo a prime."""

        def work(tasks: kernel.Tasks) -> NDArray[np.uint64]:
            scratch = self._scratch(np.uint64), self._scratch(np.uint64)
            walk = self._walk()
            return kernel.weigh(self.candidates, tasks, self.leaves.cut, np.uint64(prime), weights, walk, *scratch)

        return self._on_threads(work)

    def least(self, values: Ints) -> Ints:
        """Return for each task the least value of a candidate on any match; `NONE` where there is none."""

        def work(tasks: kernel.Tasks) -> Ints:
            scratch = self._scratch(np.int64)
            return kernel.least(self.candidates, tasks, self.leaves.cut, values, NONE, self._walk(), scratch)

        return self._on_threads(work)

    def locate(self, task: int, rank: int, row: Ints) -> None:
        """Write the events of the match of a task that has a rank."""
        kernel.locate(
            self.candidates, self.tasks.given(), task, np.uint64(rank), self.leaves.cut, self._walk(),
            self._scratch(np.uint64), row,
        )  # fmt: skip

    def fill(self, task: int, skip: int, table: NDArray[np.int32], begin: int, end: int) -> None:
        """Write matches from a task on, without the first `skip`, as columns `[begin, end)` of a table."""
        kernel.fill(self.candidates, self.tasks.given(), task, skip, self._walk(), table, begin, end)

    def _on_threads(self, work: Callable[[kernel.Tasks], NDArray[Any]]) -> NDArray[Any]:
        """Do something for all tasks, runs of equal size at once where they are worth it."""
        _ = self.candidates, self._reach  # once, not by each thread
        if self.threads < 2 or len(self.tasks) < WORTH_THREADS:
            return work(self.tasks.given())
        cuts = np.linspace(0, len(self.tasks), 4 * self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(lambda cut: work(self.tasks.given(*cut)), pairwise(cuts))))

    def _walk(self) -> kernel.Walk:
        """Return what a walk of this thread works on."""
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
    def _reach(self) -> tuple[int, int]:
        """The most candidates that all lists of a task have together, and the most that one list has."""
        candidates, tasks = self.candidates, self.tasks
        together, longest = np.zeros(len(tasks), np.int64), 0
        for v in range(1, self.leaves.number):
            events = candidates.events[candidates.begin[v] : candidates.begin[v + 1]]
            sizes = np.searchsorted(events, tasks.limit) - np.searchsorted(events, candidates.later[tasks.first])
            sizes = np.maximum(sizes, 0)
            together += sizes
            longest = max(longest, int(sizes.max(initial=0)))
        return int(together.max(initial=0)), longest
