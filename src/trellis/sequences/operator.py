"""The operator for fixed sequences: the same questions as `trellis.trends.operator` answers.

What can be in no match is left out first. The rest is walked depth first, with a list of candidates for each later
variable; counting stops where variables are asked of time alone, and adds up over lists from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import ceil, log2
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.columns.ordering import rank_codes
from trellis.errors import TrellisError
from trellis.kernels import sequences as kernel
from trellis.language.bound import BoundQuery, Output, WindowKind
from trellis.limits import warn_of_all
from trellis.plan.plan import Plan
from trellis.plan.sequence import sequence_of
from trellis.sequences.candidates import Leaves
from trellis.trends.aggregate import Numbers, Sum
from trellis.trends.exact import LARGE, SMALL, reconstruct
from trellis.trends.listing import Matches
from trellis.trends.slice import Slice
from trellis.trends.tasks import length_bounds
from trellis.trends.weights import weigh

if TYPE_CHECKING:
    from trellis.trends.listing import Range
    from trellis.trends.ranks import Ranks

EXACT = 2.0**53
ADDRESSABLE = 1 << 63  # matches that begin at one event, at most, for one of them to be found by its rank
BATCH_ROWS = 1 << 16
WORTH_THREADS = 1 << 12  # first events from which several threads count
NONE = np.iinfo(np.int64).max
MISSING = NONE - 1

Ints = NDArray[np.int64]
T = TypeVar("T")
Piece = tuple[int, int, int]  # a group, the first rank, and how many matches


@dataclass(frozen=True)
class _Tasks:
    """First candidates, where what may follow each ends, and the group of each, which never falls."""

    first: Ints
    limit: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.first)

    def given(self, begin: int = 0, end: int | None = None) -> kernel.Tasks:
        """Return some of them as the kernels take them."""
        return kernel.Tasks(self.first[begin:end], self.limit[begin:end])


class SequenceOperator:
    """What can be asked of the matches of one slice."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, leaves: Leaves | None = None) -> None:
        self.plan, self.events, self.threads = plan, events, threads
        sequence = sequence_of(plan)
        assert sequence is not None
        self.leaves = leaves or Leaves(plan, sequence, events)
        self._walks = local()

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is made again where it is needed."""
        return {name: value for name, value in self.__dict__.items() if name in ("plan", "events", "threads", "counts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the candidates again."""
        self.__init__(state["plan"], state["events"], state["threads"])  # type: ignore[misc]
        self.__dict__.update(state)

    def variant(self, plan: Plan, events: Slice) -> SequenceOperator:
        """Return an operator for the same matches with other output; what is already known is shared."""
        other = SequenceOperator(plan, events, self.threads, self.leaves)
        other.__dict__ |= {n: self.__dict__[n] for n in ("_tasks", "_task_counts", "counts") if n in self.__dict__}
        return other

    def make_ready(self) -> None:
        """Count, before copies of this are given to others."""
        _ = self.counts

    @property
    def length(self) -> int:
        """The number of events of every match."""
        return self.leaves.number

    # --- Numbers ----------------------------------------------------------------------------------------------

    @cached_property
    def _tasks(self) -> _Tasks:
        """All that begins at one event in one window."""
        groups, candidates = self.events.groups, self.leaves.candidates
        firsts = candidates.events[: candidates.begin[1]]
        least, most = length_bounds(self.plan.bound.having)
        if not least <= self.length <= most:
            none = np.empty(0, np.int64)
            return _Tasks(none, none, none)
        if self.plan.bound.window.kind is WindowKind.SPAN:
            group = np.searchsorted(groups.lo, firsts, side="right") - 1
            return _Tasks(np.arange(len(firsts)), candidates.until[: len(firsts)], group)
        begin, end = np.searchsorted(firsts, groups.lo), np.searchsorted(firsts, groups.hi)
        sizes = end - begin
        group = np.repeat(np.arange(len(groups)), sizes)
        first = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[group]
        return _Tasks(first, groups.hi[group], group)

    def _walk(self) -> kernel.Walk:
        """Return what a walk of this thread works on."""
        if not hasattr(self._walks, "walk"):
            candidates, number = self.leaves.candidates, self.length
            pool = np.empty(len(candidates.events) + (number - 1) * self._reach[0] + 1, np.int64)
            pool[: len(candidates.events)] = np.arange(len(candidates.events))
            shape = (number, number)
            made = kernel.Walk(
                np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(number + 1, np.int64), pool,
                np.zeros(number + 2, np.int64),
            )  # fmt: skip
            self._walks.walk = made
        walk: kernel.Walk = self._walks.walk
        return walk

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """The most candidates that all lists of a task have together, and the most that one list has."""
        candidates, tasks = self.leaves.candidates, self._tasks
        together, longest = np.zeros(len(tasks), np.int64), 0
        for v in range(1, self.length):
            events = candidates.events[candidates.begin[v] : candidates.begin[v + 1]]
            sizes = np.searchsorted(events, tasks.limit) - np.searchsorted(events, candidates.later[tasks.first])
            sizes = np.maximum(sizes, 0)
            together += sizes
            longest = max(longest, int(sizes.max(initial=0)))
        return int(together.max(initial=0)), longest

    def _scratch(self, kind: Any) -> NDArray[Any]:
        return np.empty((self.length, self._reach[1]), kind)

    def _on_threads(self, work: Callable[[kernel.Tasks], NDArray[Any]]) -> NDArray[Any]:
        """Do something for all tasks, runs of equal size at once where they are worth it."""
        if self.threads < 2 or len(self._tasks) < WORTH_THREADS:
            return work(self._tasks.given())
        cuts = np.linspace(0, len(self._tasks), 4 * self.threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(lambda cut: work(self._tasks.given(*cut)), pairwise(cuts))))

    def _counted(self, zero: Any, modulus: Any) -> NDArray[Any]:
        _ = self._reach, self.leaves.candidates  # once, not by each thread

        def work(tasks: kernel.Tasks) -> NDArray[Any]:
            walk = self._walk()
            scratch = self._scratch(type(zero))
            return kernel.count(self.leaves.candidates, tasks, self.leaves.cut, zero, modulus, walk, scratch)

        return self._on_threads(work)

    @cached_property
    def _task_counts(self) -> list[int]:
        """The exact number of matches of each task."""
        approximate = self._counted(0.0, 0.0)
        largest = float(approximate.max(initial=0.0))
        if largest < EXACT:
            return approximate.astype(np.int64).tolist()
        bits = int(np.frexp(largest)[1]) + 2
        return reconstruct(
            bits, lambda prime: self._counted(np.uint64(0), np.uint64(prime)).reshape(1, -1), size=LARGE
        )[0]

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        counts, tasks = self._task_counts, self._tasks
        if sum(counts) < ADDRESSABLE:
            sums = np.zeros(len(self.events.groups), np.int64)
            np.add.at(sums, tasks.group, np.array(counts, np.int64))
            return sums.tolist()
        totals = [0] * len(self.events.groups)
        for group, count in zip(tasks.group.tolist(), counts, strict=True):
            totals[group] += count
        return totals

    @property
    def size(self) -> tuple[int, int]:
        """The number of candidates that are left, and of those there were."""
        return len(self.leaves.candidates.events), sum(self.leaves.sizes)

    # --- Aggregates -------------------------------------------------------------------------------------------

    def aggregate(self) -> list[Numbers]:
        """Return what AGGREGATE says of each group."""
        columns = [self._states(named.output) for named in self.plan.bound.aggregates]
        return [Numbers(count, tuple(column[g] for column in columns)) for g, count in enumerate(self.counts)]

    def _states(self, output: Output) -> list[Any]:
        counts = self.counts
        if output.function == "COUNT":
            return list(counts)
        if output.column is None:  # LENGTH
            if output.function == "AVG":
                return [Sum(Fraction(self.length * count), count) for count in counts]
            return [self.length if count else None for count in counts]
        variable = self.leaves.sequence.variables.index(output.column.var)
        column = self.events.columns[output.column.name]
        if output.function in ("SUM", "AVG"):
            return self._sums(column, variable)
        return self._extremes(column, variable, output.function == "MAX")

    def _sums(self, column: pa.Array, variable: int) -> list[Any]:
        weight = weigh(column)
        largest = max(self.counts, default=0)
        bits = largest.bit_length() + weight.bits + 2 + ceil(log2(len(self.events) + 1))

        def totals(values: Callable[[int], NDArray[np.uint64]], bits: int) -> list[int]:
            return reconstruct(bits, lambda prime: self._weighed(values(prime), variable, prime), True, SMALL)[0]

        present = weight.present.astype(np.uint64)
        sums, numbers = totals(weight.modulo, bits), totals(lambda _: present, bits)
        infinite = [[False] * len(sums), [False] * len(sums)]
        if weight.infinite.any():
            for i, sign in enumerate((1, -1)):
                found = totals(lambda _, sign=sign: (weight.infinite == sign).astype(np.uint64), bits)  # type: ignore[misc]
                infinite[i] = [number > 0 for number in found]
        return [
            Sum(total * weight.unit, number, plus, minus)
            for total, number, plus, minus in zip(sums, numbers, *infinite, strict=True)
        ]

    def _weighed(self, weights: NDArray[np.uint64], variable: int, prime: int) -> NDArray[np.uint64]:
        """Return for each group the sum of the weights of a variable's events over all matches, modulo a prime."""
        candidates = self.leaves.candidates
        here = slice(int(candidates.begin[variable]), int(candidates.begin[variable + 1]))
        own = np.zeros(len(candidates.events), np.uint64)
        own[here] = weights[candidates.events[here]]
        _ = self._reach

        def work(tasks: kernel.Tasks) -> NDArray[np.uint64]:
            scratch = self._scratch(np.uint64), self._scratch(np.uint64)
            return kernel.weigh(candidates, tasks, self.leaves.cut, np.uint64(prime), own, self._walk(), *scratch)

        sums = np.zeros(len(self.events.groups), np.uint64)
        np.add.at(sums, self._tasks.group, self._on_threads(work))
        return (sums % np.uint64(prime)).reshape(1, -1)

    def _extremes(self, column: pa.Array, variable: int, greatest: bool) -> list[Any]:
        """Return the least or greatest value of a variable's events on any match of each group."""
        candidates = self.leaves.candidates
        codes = rank_codes([column])[0]
        values = np.full(len(candidates.events), MISSING)
        here = slice(int(candidates.begin[variable]), int(candidates.begin[variable + 1]))
        own = codes[candidates.events[here]]
        values[here] = np.where(own < 0, MISSING, len(codes) - own if greatest else own)
        _ = self._reach

        def work(tasks: kernel.Tasks) -> Ints:
            return kernel.least(candidates, tasks, self.leaves.cut, values, NONE, self._walk(), self._scratch(np.int64))

        best = np.full(len(self.events.groups), NONE)
        np.minimum.at(best, self._tasks.group, self._on_threads(work))
        place = {int(code): i for i, code in enumerate(codes.tolist())}
        found = [len(codes) - b if greatest else b for b in best.tolist()]
        return [
            None if b >= MISSING else column[place[code]].as_py() for b, code in zip(best.tolist(), found, strict=True)
        ]

    # --- Results ----------------------------------------------------------------------------------------------

    @cached_property
    def _ends(self) -> tuple[list[int], list[int]]:
        """For each group the first of its tasks; for each task how many matches there are of its group up to it."""
        first = np.searchsorted(self._tasks.group, np.arange(len(self.events.groups) + 1)).tolist()
        ends: list[int] = []
        for begin, end in pairwise(first):
            ends += accumulate(self._task_counts[begin:end])
        return first, ends

    def at(self, group: int, ranks: Sequence[int]) -> Matches:
        """Return the matches of a group with given ranks, in rising order, without those before them."""
        first, ends = self._ends
        table = np.empty((self.length, len(ranks)), np.int32)
        row = np.empty(self.length, np.int64)
        walk, scratch = self._walk(), self._scratch(np.uint64)
        for i, rank in enumerate(ranks):
            task = bisect_right(ends, rank, first[group], first[group + 1])
            inner = rank - (ends[task - 1] if task > first[group] else 0)
            if self._task_counts[task] >= ADDRESSABLE:
                raise TrellisError(
                    f"{self._task_counts[task]:,} results begin at one event: too many to find one by its rank",
                    "Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition.",
                )
            kernel.locate(
                self.leaves.candidates, self._tasks.given(), task, np.uint64(inner), self.leaves.cut, walk, scratch, row
            )
            table[:, i] = row
        shown = np.array([rank if rank < ADDRESSABLE else -1 for rank in ranks], np.int64)
        return Matches(table, shown, np.full(len(ranks), group))

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[Matches]:
        """Yield the matches of groups with given ranks, in rising order."""
        for group, ranks in chosen.items():
            yield self.at(group, list(ranks))

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Any], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the matches with given ranks, in bounded batches, in order."""
        _ = self._reach, self._ends

        def work(piece: list[Piece]) -> T:
            return make(self._filled(piece))

        if threads < 2:
            yield from map(work, self._pieces(ranges))
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[Future[T]] = []
            for piece in self._pieces(ranges):
                waiting.append(pool.submit(work, piece))
                if len(waiting) > 2 * threads:
                    yield waiting.pop(0).result()
            yield from (future.result() for future in waiting)

    def _pieces(self, ranges: Sequence[Range]) -> Iterator[list[Piece]]:
        """Yield what makes a batch each."""
        some: list[Piece] = []
        room = BATCH_ROWS
        for group, begin, end in ranges:
            while begin < end:
                number = min(room, end - begin)
                some.append((group, begin, number))
                begin, room = begin + number, room - number
                if not room:
                    yield some
                    some, room = [], BATCH_ROWS
        if some:
            yield some

    def _filled(self, some: list[Piece]) -> Matches:
        """Return the matches of a batch."""
        first, ends = self._ends
        total = sum(number for _, _, number in some)
        table = np.empty((self.length, total), np.int32)
        ranks, groups = np.empty(total, np.int64), np.empty(total, np.int64)
        at = 0
        for group, begin, number in some:
            task = bisect_right(ends, begin, first[group], first[group + 1])
            skip = begin - (ends[task - 1] if task > first[group] else 0)
            here = slice(at, at + number)
            kernel.fill(self.leaves.candidates, self._tasks.given(), task, skip, self._walk(), table, at, at + number)
            ranks[here] = np.arange(number) + begin if begin + number < ADDRESSABLE else -1
            groups[here] = group
            at += number
        return Matches(table, ranks, groups)

    def ordered(
        self, bound: BoundQuery, make: Callable[[Any], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the matches that ORDER BY brings into order: all of them."""
        warn_of_all(sum(self.counts), max_trends)
        return self.listed([(group, 0, count) for group, count in enumerate(self.counts)], make, threads)
