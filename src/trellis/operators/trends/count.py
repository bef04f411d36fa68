"""Exact numbers of trends, without listing them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.kernels.count import passes, paths, shapes
from trellis.kernels.count.abreast import ABREAST, count_abreast
from trellis.kernels.count.algebra import NO_PATH, Floats, Logs, Modulo, lengths, modulo, wrapping
from trellis.kernels.event_graph.edges import EdgeLists
from trellis.operators.exact import ADDED, LARGE, SMALL, Residues, prime_below, primes_for, reconstruct
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

MOST_BEFORE = 0.95 * 2**64  # trends, about, of which the number is told: it is above all ranks
Weights = Callable[[int], Residues]


class SuccessorRelation(Protocol):
    """The relation of events to their successors, in one of `trellis.kernels.count.shapes`."""

    @property
    def shape(self) -> tuple[object, ...]:
        """The arrays by which successors are found."""

    @property
    def events(self) -> shapes.EventNeighbours:
        """The neighbours of each event, and whether it is usable."""

    @property
    def one_segment(self) -> bool:
        """Whether the shape is `Tails`, with the vertices of a part in one segment."""

    @property
    def segments(self) -> shapes.Segments | None:
        """The shape, where the successors of every event reach to the ends of segments."""

    def tasks(self, tasks: TrendTasks) -> shapes.PassTasks:
        """Return tasks as the passes take them."""


class GraphRelation:
    """The relation of an event graph."""

    one_segment, segments = False, None

    def __init__(self, events: Slice, graph: EventGraph) -> None:
        self.shape = EdgeLists(graph.offsets, graph.successors)
        none = np.empty(0, np.int64)
        nearest = passes.first_successors(graph.offsets, graph.successors)
        self.events = shapes.EventNeighbours(none, nearest, graph.latest, events.usable)

    def tasks(self, tasks: TrendTasks) -> shapes.PassTasks:
        """Return tasks as the passes take them; there is no index to find parts of."""
        none = np.empty(0, np.int64)
        starts = tasks.starting(len(self.events.usable))
        return shapes.PassTasks(
            tasks.lo, tasks.hi, tasks.first_end, none, none, none, none, starts, tasks.single, tasks.every
        )


class Counter:
    """Counts the trends of tasks; HAVING allows the lengths `least` to `most`."""

    def __init__(
        self, events: Slice, relation: SuccessorRelation, tasks: TrendTasks, graph: Callable[[], EventGraph],
        least: int = 1, most: int = NO_BOUND, groups: int | None = None, threads: int = 1, sizes: Sizes = USUAL,
    ) -> None:  # fmt: skip
        self.events, self.relation, self._graph, self.sizes = events, relation, graph, sizes
        self.least, self.most, self.each = least, most, tasks
        chains = _is_of_chains(relation, tasks)
        self._by_start = chains and not tasks.every  # whether a start has one trend, whose length is told before
        some = _of_lengths(relation, tasks, least, most) if chains else _beginning(relation, tasks)
        self.tasks = some.together(len(events))
        self.groups = len(events.groups) if groups is None else groups
        self.threads = threads
        self._known: tuple[Any, ...] | None = None

    @property
    def restricted(self) -> bool:
        """Whether HAVING leaves out any length."""
        return self.least > 1 or self.most < NO_BOUND

    def _arguments(self, tasks: TrendTasks) -> tuple[tuple[object, ...], shapes.EventNeighbours, shapes.PassTasks]:
        return (self.relation.shape, self.relation.events, self.relation.tasks(tasks))

    def approximate(self) -> NDArray[np.float64]:
        """Return the number of trends of each group whatever their length: exact below 2**53, else rounded or inf."""
        self._about = self._numbers(Floats(), self.tasks)
        return np.bincount(self.tasks.group, self._about, self.groups).astype(np.float64)

    def _numbers(self, algebra: Floats | Logs | Modulo, tasks: TrendTasks) -> np.ndarray:
        """Return the number of trends of each task; tasks that overlap are counted several at a time."""
        shape, events = self.relation.shape, self.relation.events
        known = self._known  # another thread may put what it needs in place of this
        if known is None or known[0] is not tasks:
            known = self._known = tasks, *self._in_order(tasks)  # there is a pass for each prime
        _, order, sorted_, divided = known
        if order is None:
            return self._on_threads(tasks, lambda some: passes.count(algebra, shape, events, some))
        totals = np.empty(len(tasks), type(algebra.zero))
        if divided is None:
            segments = self.relation.segments
            totals[order] = self._on_threads(sorted_, lambda some: count_abreast(algebra, segments, events, some))
        else:
            from trellis.kernels.count.divided import count_divided  # windows never need it

            totals[order] = count_divided(algebra, *divided[:3], events, divided[3])
        return totals

    def _in_order(self, tasks: TrendTasks) -> tuple[NDArray[np.int64] | None, TrendTasks, tuple[Any, ...] | None]:
        """Return the order in which tasks are counted several at a time, if so, these, and what divided take."""
        given = self.relation.tasks(tasks)
        divided = self._by_division(given)
        segments = self.relation.segments
        nodes = 0 if segments is None else len(segments.first) * int(given.width.max(initial=0)).bit_length()
        if divided is None and not 0 < nodes <= ADDED:
            return None, tasks, None
        order = np.lexsort((given.lo, given.part, given.offset))
        parts = 1 + np.count_nonzero(np.diff(given.part[order]) | np.diff(given.offset[order])) if len(order) else 0
        if divided is None and not 2 <= 2 * parts <= len(tasks):
            return None, tasks, None
        sorted_ = tasks.chosen(order)
        return order, sorted_, None if divided is None else (*divided, self.relation.tasks(sorted_))

    def _by_division(self, tasks: shapes.PassTasks) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return places and ranges of successors, where spans are long beside the attribute vertices that there are."""
        shape, size = self.relation.shape, len(self.relation.events.usable)
        if not tasks.single or not len(tasks.lo) or not isinstance(shape, shapes.Tails | shapes.Ranges):
            return None
        if isinstance(shape, shapes.Ranges) and len(shape.reach):
            return None
        if self.sizes.divided_events * int(tasks.width.max()) > float((tasks.hi - tasks.lo).mean()):
            return None
        nearest = self.relation.events.nearest
        if not tasks.every and ((nearest >= 0) & (nearest < size)).any():  # where paths may end depends on the span
            return None
        return shape.place, np.atleast_2d(shape.first), np.atleast_2d(shape.last)

    def _on_threads(self, tasks: TrendTasks, count: Callable[[shapes.PassTasks], np.ndarray]) -> np.ndarray:
        """Count tasks, runs of equal size at once where they are worth it."""
        sizes = np.cumsum(tasks.hi - tasks.lo)
        if self.threads < 2 or len(tasks) < 2 * self.threads or sizes[-1] < self.sizes.thread_events:
            return count(self.relation.tasks(tasks))
        cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, self.threads) // self.threads) // ABREAST * ABREAST
        bounds = [0, *cuts.tolist(), len(tasks)]
        with ThreadPoolExecutor(self.threads) as pool:
            runs = [self.relation.tasks(tasks.chosen(slice(a, b))) for a, b in pairwise(bounds)]
            return np.concatenate(list(pool.map(count, runs)))

    def log2(self, tasks: TrendTasks) -> float:
        """Return the binary logarithm of the greatest number of trends of any group of the tasks."""
        logs = self._numbers(Logs(), tasks)
        if not len(logs):
            return 0.0
        largest = float(logs.max())
        return largest + np.log2(len(logs)) if tasks.single else largest

    def counts(self) -> list[int]:
        """Return the exact number of trends of each group."""
        if self.in_blocks:
            return self._counts_in_blocks()
        approximate = self.approximate()
        sure = self.sizes.exact
        large = np.flatnonzero(approximate >= sure) if not self.restricted else np.flatnonzero(approximate > 0)
        counts = [int(c) if c < sure else 0 for c in approximate.tolist()]
        if len(large):
            exact = self._wrapped(large)
            if exact is None:
                exact = self.sums(large, None, self.count_bits(approximate[large], large))[0]
            for group, number in zip(large.tolist(), exact, strict=True):
                counts[group] = number
        return counts

    @property
    def in_blocks(self) -> bool:
        """Whether all tasks are so large, and of such a shape, that `kernels.count.large` counts them faster."""
        if self.restricted or self.tasks.single or not len(self.tasks) or not self.relation.one_segment:
            return False
        return int((self.tasks.hi - self.tasks.lo).min()) >= self.sizes.count_events

    def _counts_in_blocks(self) -> list[int]:
        """Count as `counts` does, in blocks: floats decide how many primes it takes, and a pass gives residues."""
        from trellis.kernels.count.large import PRIMES, count_large  # little work needs it

        arguments, tables, block = self._arguments(self.tasks), {}, self.sizes.count_block

        def one_pass(index: int) -> NDArray[np.float64]:
            primes = [prime_below(LARGE, PRIMES * index + i) for i in range(PRIMES)]
            modules = np.array(primes, np.uint64)
            found = [count_large(modules, *arguments, t, block) for t in range(len(self.tasks))]
            for i, prime in enumerate(primes):
                residues = np.array([[row[1 + i] for row in found]], np.uint64)
                tables[prime] = _by_group(residues, self.tasks.group, self.groups, prime)
            return np.bincount(self.tasks.group, [row[0] for row in found], self.groups).astype(np.float64)

        # So many events hardly ever have a number that three primes are enough for: a second thread need not wait.
        ahead = 2 if self.threads > 1 and len(self.events) >= 8 * self.sizes.count_events else 1
        with ThreadPoolExecutor(self.threads) as pool:
            approximate, *_ = pool.map(one_pass, range(ahead))
            bits = self.count_bits(approximate, np.arange(self.groups))
            list(pool.map(one_pass, range(ahead, ceil(len(primes_for(bits, LARGE)) / PRIMES))))
        return reconstruct(bits, tables.__getitem__, size=LARGE)[0]

    @property
    def _most_wrapping_bits(self) -> int:
        """The bits of numbers of tasks of which floats tell what their lowest 64 bits do not.

        A sum of n floats that are not negative is off by less than n rounding errors, and a trend has at most n events.
        """
        if self.restricted:
            return 0
        largest = int((self.tasks.hi - self.tasks.lo).max(initial=1))
        return min(62 + max(0, 51 - 2 * (largest + 1).bit_length()), self.sizes.wrapping_bits)

    def _wrapped(self, groups: NDArray[np.int64]) -> list[int] | None:
        """Return exact numbers of trends from the lowest 64 bits of tasks and from floats; None if too little."""
        here = np.isin(self.tasks.group, groups)
        if not self._most_wrapping_bits or not float(self._about[here].max()) < 2.0 ** (self._most_wrapping_bits - 1):
            return None
        tasks, about = self.tasks.chosen(here), self._about[here]
        lowest = self._numbers(wrapping(), tasks)
        higher = np.rint((about - lowest) / 2.0**64).astype(np.int64)
        sums = np.zeros((3, len(groups)), np.int64)
        for row, numbers in zip(sums, (lowest & np.uint64(2**32 - 1), lowest >> np.uint64(32), higher), strict=True):
            np.add.at(row, np.searchsorted(groups, tasks.group), numbers.astype(np.int64))
        return [low + (middle << 32) + (high << 64) for low, middle, high in sums.T.tolist()]

    def of_tasks(self, tasks: TrendTasks) -> list[int]:
        """Return the exact number of trends of each of some tasks."""
        return self._of_each(tasks).counts()

    def _of_each(self, tasks: TrendTasks) -> Counter:
        each = replace(tasks, group=np.arange(len(tasks)))
        return Counter(
            self.events, self.relation, each, self._graph, self.least, self.most, len(tasks), self.threads, self.sizes
        )

    def before(self, tasks: TrendTasks) -> NDArray[np.uint64]:
        """Return how many trends the tasks of its group before each of some have, at most 2**64 - 1."""
        sizes = np.zeros(len(tasks), np.uint64)
        if self.restricted:  # approximate numbers are of all lengths
            sizes[:] = [min(size, 2**64 - 1) for size in self.of_tasks(tasks)]
        about = np.minimum(sizes if self.restricted else self._of_each(tasks).approximate(), float(2**64))
        new = np.append(True, tasks.group[1:] != tasks.group[:-1])
        begins = np.flatnonzero(new)[np.cumsum(new) - 1]
        total = np.cumsum(about) - about
        total -= total[begins]
        if not self.restricted:
            few = (total < MOST_BEFORE) & (about < MOST_BEFORE)  # others are behind too many, or have them
            sizes[few] = self.of_tasks(tasks.chosen(few))
        found = np.cumsum(sizes) - sizes
        return np.where(total < MOST_BEFORE, found - found[begins], np.uint64(2**64 - 1))

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

        return reconstruct(bits, residues, signed, LARGE if weights is None else SMALL, self.threads)

    def _residues(self, prime: np.uint64, tasks: TrendTasks, weights: np.ndarray) -> Residues:
        algebra, arguments = modulo(int(prime)), self._arguments(tasks)
        if self.least > self.most:
            return np.zeros((1 + len(weights), len(tasks)), np.uint64)
        if self.most < self._longest and not self._by_start:
            return passes.weigh_lengths(algebra, *arguments, weights, self.least, self.most)
        whole = (
            passes.weigh(algebra, *arguments, weights) if len(weights) else self._numbers(algebra, tasks).reshape(1, -1)
        )
        if self.least <= 1 or self._by_start:
            return whole
        shorter = passes.weigh_lengths(algebra, *arguments, weights, 1, self.least - 1)
        return (whole + prime - shorter) % prime

    @cached_property
    def _longest(self) -> int:
        """The length of the longest path of any task: an upper bound on lengths from here on is none."""
        if self.most >= NO_BOUND:
            return 0
        return int(passes.count(lengths(True), *self._arguments(self.tasks)).max(initial=0))

    def length_range(self) -> tuple[list[int], list[int]]:
        """Return the shortest and longest lengths of the trends of each group (0 where there are none)."""
        if self.restricted:
            return self._restricted_range()
        arguments = self._arguments(self.tasks)
        least, most = np.full(self.groups, NO_PATH, np.int64), np.zeros(self.groups, np.int64)
        np.minimum.at(least, self.tasks.group, passes.count(lengths(False), *arguments))
        np.maximum.at(most, self.tasks.group, passes.count(lengths(True), *arguments))
        least[least == NO_PATH] = 0
        return least.tolist(), most.tolist()

    def _restricted_range(self) -> tuple[list[int], list[int]]:
        low, high = [0] * self.groups, [0] * self.groups
        if self.most < 1:
            return low, high
        arguments = self._arguments(self.tasks)
        highest = passes.count(lengths(True), *arguments)
        for t, (group, greatest) in enumerate(zip(self.tasks.group.tolist(), highest.tolist(), strict=True)):
            totals = passes.lengths(Floats(), *arguments, t, min(self.most, greatest))
            found = np.flatnonzero(totals > 0) + 1
            found = found[found >= self.least]
            if len(found):
                low[group] = min(low[group] or NO_BOUND, int(found[0]))
                high[group] = max(high[group], int(found[-1]))
        return low, high

    def members(self, group: int) -> NDArray[np.int64]:
        """Return the events that lie on a trend of a group."""
        lo, hi = int(self.events.groups.lo[group]), int(self.events.groups.hi[group])
        if not self.restricted:
            return lo + np.flatnonzero(self.events.usable[lo:hi])
        found = np.zeros(len(self.events), np.bool_)
        tasks = self.each.of_groups(np.array([group]))
        if self.least <= self.most:
            paths.members(self._graph().of_tasks(tasks, self.events.usable), self.least, self.most, found)
        return lo + np.flatnonzero(found[lo:hi])


def _beginning(relation: SuccessorRelation, tasks: TrendTasks) -> TrendTasks:
    """Return the tasks of spans without those at whose start no complete trend begins, as far as that is soon told."""
    shape = relation.shape
    if not tasks.single or tasks.every or not relation.one_segment or not isinstance(shape, shapes.Tails):
        return tasks
    if not ((shape.place < 0) | (shape.first >= shape.last) | (shape.first > shape.place)).all():
        return tasks  # an event could follow itself, but for its time: the relation may not be transitive
    from trellis.kernels.count.spans import begin_trends

    return tasks.chosen(begin_trends(shape, relation.events, relation.tasks(tasks)))


def _is_of_chains(relation: SuccessorRelation, tasks: TrendTasks) -> bool:
    """Return whether tasks are of spans in which one event at most follows each: a start has one longest trend."""
    shape = relation.shape
    if not isinstance(shape, EdgeLists) or not tasks.single or tasks.starts is not None:
        return False
    return len(shape.successors) < len(shape.offsets) and bool((np.diff(shape.offsets) <= 1).all())


def _of_lengths(relation: SuccessorRelation, tasks: TrendTasks, least: int, most: int) -> TrendTasks:
    """Return the tasks of chains up to the last event of their longest trend, if it can have an allowed length."""
    assert isinstance(relation.shape, EdgeLists)
    offsets, successors = relation.shape
    behind = len(offsets) - 1
    jumps = [np.full(len(offsets), behind)]  # over 1, 2, 4, ... events, or behind the last one
    jumps[0][:-1][np.diff(offsets) == 1] = successors
    while (jumps[-1] < behind).any():
        jumps.append(jumps[-1][jumps[-1]])
    last, length = tasks.lo.copy(), np.ones(len(tasks), np.int64)
    for power in reversed(range(len(jumps))):
        farther = jumps[power][last]
        goes_on = farther < tasks.hi
        last[goes_on] = farther[goes_on]
        length[goes_on] += 1 << power
    return replace(tasks, hi=last + 1).chosen((length >= least) & (tasks.every | (length <= most)))


def _by_group(table: Residues, place: NDArray[np.int64], groups: int, prime: int) -> Residues:
    """Return the sums of residues by group; no more are added at once than 64 bits hold."""
    if (place[1:] < place[:-1]).any():
        order = np.argsort(place, kind="stable")
        table, place = table[:, order], place[order]
    sums = np.zeros((len(table), groups), np.uint64)
    while len(place):
        begins = np.flatnonzero(np.diff(place, prepend=-1))
        within = np.arange(len(place)) - np.repeat(begins, np.diff(begins, append=len(place)))
        cuts = np.flatnonzero(within % ADDED == 0)
        table, place = np.add.reduceat(table, cuts, axis=1) % np.uint64(prime), place[cuts]
        if len(cuts) == len(begins):
            sums[:, place] = table
            break
    return sums
