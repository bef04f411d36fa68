"""Exact numbers of trends, without listing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from trellis.kernels import indexed, paths
from trellis.trends.exact import LARGE, SMALL, Residues, reconstruct
from trellis.trends.graph import EventGraph
from trellis.trends.index import AttributeIndex
from trellis.trends.slice import Slice
from trellis.trends.tasks import NO_BOUND, Tasks

EXACT = 2.0**53
Weights = Callable[[int], Residues]


class Counter:
    """Counts the trends of tasks over one graph; HAVING allows the lengths `least` to `most`."""

    def __init__(
        self, events: Slice, graph: Callable[[], EventGraph], tasks: Tasks, least: int = 1, most: int = NO_BOUND,
        groups: int | None = None,
    ) -> None:  # fmt: skip
        self.events, self._graph, self.tasks = events, graph, tasks
        self.least, self.most = least, most
        self.groups = len(events.groups) if groups is None else groups

    @property
    def restricted(self) -> bool:
        """Whether HAVING leaves out any length."""
        return self.least > 1 or self.most < NO_BOUND

    def _arguments(self, tasks: Tasks) -> tuple[object, ...]:
        graph = self._graph()
        return (
            tasks.lo, tasks.hi, tasks.first_end, tasks.single, tasks.every,
            graph.offsets, graph.successors, graph.latest, self.events.usable,
        )  # fmt: skip

    def approximate(self) -> NDArray[np.float64]:
        """Return the number of trends of each group whatever their length: exact below 2**53, else rounded or inf."""
        totals = paths.count_float(*self._arguments(self.tasks), np.empty(len(self.events), np.float64))
        return np.bincount(self.tasks.group, totals, self.groups).astype(np.float64)

    def log2(self, tasks: Tasks) -> float:
        """Return the binary logarithm of the greatest number of trends of any group of the tasks."""
        logs = paths.count_log2(*self._arguments(tasks), np.empty(len(self.events), np.float64))
        if not len(logs):
            return 0.0
        largest = float(logs.max())
        return largest + np.log2(len(logs)) if tasks.single else largest

    def counts(self) -> list[int]:
        """Return the exact number of trends of each group."""
        approximate = self.approximate()
        large = np.flatnonzero(approximate >= EXACT) if not self.restricted else np.flatnonzero(approximate > 0)
        counts = [int(c) if c < EXACT else 0 for c in approximate.tolist()]
        if len(large):
            exact = self.sums(large, None, self.count_bits(approximate[large], large))[0]
            for group, number in zip(large.tolist(), exact, strict=True):
                counts[group] = number
        return counts

    def of_tasks(self, tasks: Tasks) -> list[int]:
        """Return the exact number of trends of each of some tasks."""
        each = replace(tasks, group=np.arange(len(tasks.lo)))
        return Counter(self.events, self._graph, each, self.least, self.most, len(tasks.lo)).counts()

    def count_bits(self, approximate: NDArray[np.float64], groups: NDArray[np.int64]) -> int:
        """Return how many bits the numbers of trends of some groups have at most."""
        largest = float(approximate.max(initial=1.0))
        if np.isfinite(largest):
            return max(1, int(np.frexp(largest)[1]) + 1)
        return ceil(self.log2(self.tasks.of_groups(groups))) + 2

    def sums(
        self, groups: NDArray[np.int64], weights: Weights | None, bits: int, signed: bool = False
    ) -> list[list[int]]:
        """Return exact sums over all trends of each of some groups: first their number, then one row a weight.

        `weights` gives for a prime the weights of all events modulo it, one row a kind of weight.
        """
        tasks = self.tasks.of_groups(groups)
        place = np.searchsorted(groups, tasks.group)

        def residues(prime: int) -> Residues:
            table = np.zeros((0, len(self.events)), np.uint64) if weights is None else weights(prime)
            return _by_group(self._residues(np.uint64(prime), tasks, table), place, len(groups), prime)

        return reconstruct(bits, residues, signed, self._prime_size(weights))

    def _prime_size(self, weights: Weights | None) -> int:
        return SMALL

    def _residues(self, prime: np.uint64, tasks: Tasks, weights: np.ndarray) -> Residues:
        arguments = self._arguments(tasks)
        if self.least > self.most:
            return np.zeros((1 + len(weights), len(tasks.lo)), np.uint64)
        if self.most < self._longest:
            return paths.lengths_modulo(prime, self.least, self.most, *arguments, weights)
        scratch = np.empty((1 + len(weights), len(self.events)), np.uint64)
        whole = paths.count_modulo(prime, *arguments, weights, scratch)
        if self.least <= 1:
            return whole
        shorter = paths.lengths_modulo(prime, 1, self.least - 1, *arguments, weights)
        return (whole + prime - shorter) % prime

    @cached_property
    def _longest(self) -> int:
        """The length of the longest path of any task: an upper bound on lengths from here on is none."""
        if self.most >= NO_BOUND:
            return 0
        return int(paths.length_range(*self._arguments(self.tasks))[1].max(initial=0))

    def length_range(self) -> tuple[list[int], list[int]]:
        """Return the shortest and longest lengths of the trends of each group (0 where there are none)."""
        if self.restricted:
            return self._restricted_range()
        low, high = paths.length_range(*self._arguments(self.tasks))
        shortest = np.full(self.groups, NO_BOUND, np.int64)
        longest = np.zeros(self.groups, np.int64)
        np.minimum.at(shortest, self.tasks.group, np.where(low > 0, low, NO_BOUND))
        np.maximum.at(longest, self.tasks.group, high)
        shortest[shortest == NO_BOUND] = 0
        return shortest.tolist(), longest.tolist()

    def _restricted_range(self) -> tuple[list[int], list[int]]:
        shortest, longest = [0] * self.groups, [0] * self.groups
        tasks = self.tasks
        for i in range(len(tasks.lo)):
            size = int(tasks.hi[i] - tasks.lo[i])
            one = slice(i, i + 1)
            totals = np.zeros((1, max(size, 1)), np.float64)
            part = Tasks(
                tasks.lo[one], tasks.hi[one], tasks.first_end[one], tasks.group[one], tasks.single, tasks.every
            )
            paths.lengths_float(min(self.most, size), *self._arguments(part), totals)
            lengths = np.flatnonzero(totals[0] > 0) + 1
            lengths = lengths[(lengths >= self.least) & (lengths <= self.most)]
            if len(lengths):
                group = int(tasks.group[i])
                shortest[group] = min(shortest[group] or NO_BOUND, int(lengths[0]))
                longest[group] = max(longest[group], int(lengths[-1]))
        return shortest, longest

    def members(self, group: int) -> NDArray[np.int64]:
        """Return the events that lie on a trend of a group."""
        lo, hi = int(self.events.groups.lo[group]), int(self.events.groups.hi[group])
        if not self.restricted:
            return lo + np.flatnonzero(self.events.usable[lo:hi])
        found = np.zeros(len(self.events), np.bool_)
        tasks = self.tasks.of_groups(np.array([group]))
        if self.least <= self.most:
            paths.members(self.least, self.most, *self._arguments(tasks), found)
        return lo + np.flatnonzero(found[lo:hi])


def _by_group(table: Residues, place: NDArray[np.int64], groups: int, prime: int) -> Residues:
    sums = np.zeros((len(table), groups), np.uint64)
    for row, values in zip(sums, table, strict=True):
        np.add.at(row, place, values)
    return sums % np.uint64(prime)


class IndexedCounter(Counter):
    """Counts on the attribute index: time n log n, and no edges in memory; for windows without HAVING."""

    def __init__(self, events: Slice, graph: Callable[[], EventGraph], tasks: Tasks, index: AttributeIndex) -> None:
        super().__init__(events, graph, tasks)
        self.index = index

    def _indexed(self, tasks: Tasks) -> tuple[object, ...]:
        return (tasks.lo, tasks.hi, tasks.every, *self.index.arrays, self.events.usable)

    def approximate(self) -> NDArray[np.float64]:
        """Return the number of trends of each group: exact below 2**53, else rounded or inf."""
        return indexed.count_float(*self._indexed(self.tasks), np.zeros(len(self.events), np.float64))

    def log2(self, tasks: Tasks) -> float:
        """Return the binary logarithm of the greatest number of trends of any group of the tasks."""
        logs = indexed.count_log2(*self._indexed(tasks), np.full(len(self.events), -np.inf))
        return float(logs.max(initial=0.0))

    def _residues(self, prime: np.uint64, tasks: Tasks, weights: np.ndarray) -> Residues:
        if not len(weights):
            tree = np.zeros(len(self.events), np.uint64)
            return indexed.count_modulo_large(prime, *self._indexed(tasks), tree).reshape(1, -1)
        columns = np.zeros((len(self.events), 1 + len(weights)), np.uint64)
        return indexed.count_modulo(prime, *self._indexed(tasks), weights, columns)

    def _prime_size(self, weights: Weights | None) -> int:
        return LARGE if weights is None else SMALL
