"""Exact numbers of maximal trends where there are too many direct edges to list them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import log2

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.kernels.count import passes
from trellis.kernels.count.algebra import Floats
from trellis.kernels.maximal import counting as kernel
from trellis.kernels.maximal.bisection import LEAF
from trellis.language.bound import WindowKind
from trellis.language.syntax import Report
from trellis.operators.exact import LARGE, SMALL, Residues, primes_for, reconstruct
from trellis.operators.trends.count import Counter, Weights
from trellis.operators.trends.direct import DirectEdges, Method
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import build_index
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks, length_bounds
from trellis.plan.plan import Plan
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

WORTH = 32  # direct edges an event up to which a graph is as good
COLUMNS = 16  # columns that are counted together
Layout = tuple[Ints, Ints, NDArray[np.int32]]


def can_count(plan: Plan) -> bool:
    """Return whether what is asked for can be counted without direct edges: windows, no bound on lengths."""
    return plan.bound.window.kind is not WindowKind.SPAN and length_bounds(plan.bound.having) == (1, NO_BOUND)


def is_better(direct: DirectEdges) -> bool:
    """Return whether there are so many direct edges that counting is better done without them."""
    return direct.method is Method.BISECTION and direct.exceeds(WORTH * len(direct.events) + (1 << 20))


def most_trends(plan: Plan, events: Slice, tasks: TrendTasks) -> float:
    """Return a number that no task has more maximal trends than: all of them are unextendable, which count fast."""
    plan = replace(plan, bound=replace(plan.bound, report=Report.UNEXTENDABLE))
    index = build_index(plan, events, tasks.lo, tasks.hi, single=False)
    if index is None:
        return np.inf
    totals = passes.count(Floats(), index.shape, index.events, index.tasks(tasks))
    return float(totals.max(initial=1.0))


class DirectCounter(Counter):
    """Counts the maximal trends of windows under one inequality in n log^2 n, without edges and without HAVING.

    Memory is 12 n log n bytes, and up to 400 per event. `at_most` tells what no window has more trends than, or inf.
    """

    def __init__(
        self, direct: DirectEdges, tasks: TrendTasks, graph: Callable[[], EventGraph], at_most: Callable[[], float],
        threads: int = 1, events: Slice | None = None, sizes: Sizes = USUAL,
    ) -> None:  # fmt: skip
        """Sum over columns of `events`, by default of those that the direct successors were found among."""
        self.events, self._graph, self.threads = events or direct.events, graph, threads
        self.tasks = self.each = tasks
        self.least, self.most, self.groups = 1, NO_BOUND, len(direct.events.groups)
        self.direct, self._at_most, self.sizes = direct, at_most, sizes

    in_blocks, _most_wrapping_bits = False, 0

    def counts(self) -> list[int]:
        """Return the exact number of trends of each group: in one pass, if `at_most` says that this is enough."""
        most = self._at_most()
        bits = int(np.frexp(most)[1]) + 1
        if not np.isfinite(most) or bits > COLUMNS * (LARGE - 1):
            return super().counts()
        return self.sums(np.arange(self.groups), None, bits)[0]

    def approximate(self) -> NDArray[np.float64]:
        """Return the number of trends of each group: exact below 2**53, else rounded or inf."""
        totals = self._count(kernel.NUMBER, self.tasks, np.zeros((len(self.tasks), 1)))[:, 0]
        return np.bincount(self.tasks.group, totals, self.groups).astype(np.float64)

    def log2(self, tasks: TrendTasks) -> float:
        """Return the binary logarithm of the greatest number of trends of any group of the tasks."""
        totals = self._count(kernel.SCALED, tasks, np.zeros((len(tasks), 2)))
        return max((log2(number) + kernel.STEP * scale for number, scale in totals.tolist() if number), default=0.0)

    def length_range(self) -> tuple[list[int], list[int]]:
        """Return the shortest and longest lengths of the trends of each group (0 where there are none)."""
        totals = np.zeros((self.groups, 2))
        totals[:, 0] = np.inf
        totals = self._count(kernel.LENGTHS, self.tasks, totals)
        totals[np.isinf(totals)] = 0
        shortest, longest = totals.T.astype(np.int64).tolist()
        return shortest, longest

    def sums(
        self, groups: NDArray[np.int64], weights: Weights | None, bits: int, signed: bool = False
    ) -> list[list[int]]:
        """Return exact sums over all trends of each of some groups: first their number, then one row a weight."""
        tasks = self.tasks.of_groups(groups)
        size = LARGE if weights is None else SMALL
        tables = self._tables(primes_for(bits, size), tasks, weights)
        return reconstruct(bits, tables.__getitem__, signed, size)

    def _tables(self, primes: list[int], tasks: TrendTasks, weights: Weights | None) -> dict[int, Residues]:
        """Return the residues modulo each prime, several primes counted together."""
        none = np.zeros((0, len(self.events)), np.uint64)
        kinds = 0 if weights is None else len(weights(primes[0]))
        together = max(1, COLUMNS // (1 + kinds))

        def tables(some: list[int]) -> Iterator[tuple[int, Residues]]:
            table = np.stack([none if weights is None else weights(p) for p in some])
            totals = np.zeros((len(tasks), len(some) * (1 + kinds)), np.uint64)
            self._count(kernel.RESIDUE, tasks, totals, np.repeat(np.array(some, np.uint64), 1 + kinds), table)
            return zip(some, np.split(totals.T, len(some)), strict=True)

        batches = [primes[i : i + together] for i in range(0, len(primes), together)]
        with ThreadPoolExecutor(self.threads) as pool:
            return dict(pair for pairs in pool.map(tables, batches) for pair in pairs)

    def _count(
        self, kind: int, tasks: TrendTasks, totals: np.ndarray, primes: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Count into `totals`, a row per task."""
        parts, (above, below) = self.direct.key_partitions, self.direct.codes
        primes = np.ones(1, np.uint64) if primes is None else primes
        weights = np.zeros((1, 0, 0), np.uint64) if weights is None else weights
        for pieces, layout in self._laid_out(tasks):
            kernel.count_direct(kind, pieces, parts.first, above, below, parts.order, *layout, primes, weights, totals)
        return totals

    # --- What is counted together ---------------------------------------------------------------------------------

    def _laid_out(self, tasks: TrendTasks) -> Iterator[tuple[Ints, Layout]]:
        """Yield the pieces of tasks, those that fit memory together, with their layout."""
        if len(tasks) == len(self.tasks):
            yield from ((p, self._layout(p) if kept is None else kept) for p, kept in self._batches)
        else:
            yield from ((pieces, self._layout(pieces)) for pieces in self._together(tasks))

    @cached_property
    def _batches(self) -> list[tuple[Ints, Layout | None]]:
        """The pieces of all tasks, with a layout if there is but one and it may stay in memory."""
        batches = list(self._together(self.tasks))
        keep = len(batches) == 1 and _rows(batches[0]).sum() <= self.sizes.direct_rows
        return [(pieces, self._layout(pieces) if keep else None) for pieces in batches]

    def _together(self, tasks: TrendTasks) -> Iterator[Ints]:
        """Yield pieces of tasks that may be laid out together."""
        pieces, begin = self._pieces(tasks), 0
        rows = np.cumsum(_rows(pieces))
        while begin < len(pieces):
            before = rows[begin - 1] if begin else 0.0
            end = max(begin + 1, int(np.searchsorted(rows, before + self.sizes.direct_rows, side="right")))
            yield pieces[begin:end]
            begin = end

    def _layout(self, pieces: Ints) -> Layout:
        parts = self.direct.key_partitions
        return kernel.lay_out(pieces, parts.first, parts.after, *self.direct.codes)

    def _pieces(self, tasks: TrendTasks) -> Ints:
        """Return rows (begin, end, task): what each task has of each key partition, as places."""
        order, bounds = self.direct.key_partitions.order, self.direct.key_partitions.bounds
        number = np.arange(len(tasks))
        if self.direct.adjacency.key_next is None:
            rows = np.stack([np.searchsorted(order, tasks.lo), np.searchsorted(order, tasks.hi), number], axis=1)
            return rows[rows[:, 0] < rows[:, 1]]
        place = np.full(len(self.events), -1)
        place[order] = np.arange(len(order))
        found = [np.empty((0, 3), np.int64)]
        for lo, hi, task in zip(tasks.lo.tolist(), tasks.hi.tolist(), number.tolist(), strict=True):
            places = np.sort(place[lo:hi])
            places = places[np.searchsorted(places, 0) :]
            which = np.searchsorted(bounds, places, side="right")
            begins = np.flatnonzero(np.diff(which, prepend=-1))
            sizes = np.diff(np.append(begins, len(places)))
            found.append(np.stack([places[begins], places[begins] + sizes, np.full(len(begins), task)], axis=1))
        return np.concatenate(found)


def _rows(pieces: Ints) -> NDArray[np.float64]:
    """Return about how many rows lay out each piece."""
    sizes = (pieces[:, 1] - pieces[:, 0]).astype(np.float64)
    return sizes * np.ceil(np.log2(np.maximum(sizes / LEAF, 1)))
