"""The operator for fixed sequences: the same questions as `trellis.operators.trends.operator` answers.

What can be in no match is left out first. The rest is walked depth first, with a list of candidates for each later
variable; counting stops where variables are asked of time alone, and adds up over lists from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import ceil, log2
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.ordering import rank_codes
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Output, WindowKind
from trellis.limits import warn_of_all
from trellis.operators.batch import Matches
from trellis.operators.exact import SMALL, reconstruct
from trellis.operators.patterns.positions import next_of
from trellis.operators.sequences.candidates import Leaves
from trellis.operators.sequences.tree import PLAIN, SWITCHED, TILE, Stretch, TreePlan
from trellis.operators.sequences.walk import NONE, Tasks, Walker
from trellis.operators.trends.aggregate import Numbers, Sum
from trellis.operators.trends.tasks import length_bounds
from trellis.operators.weights import weigh
from trellis.plan.plan import Plan
from trellis.plan.sequence import CONDENSED, sequence_of

if TYPE_CHECKING:
    from trellis.operators.batch import Range
    from trellis.operators.ranks import Ranks

EXACT = 2.0**53
ADDRESSABLE = 1 << 63  # matches that begin at one event, at most, for one of them to be found by its rank
BATCH_ROWS = 1 << 16
SHARED = ("walker", "plan_tree", "_tasks", "_task_counts", "counts")  # what does not depend on the output
MISSING = NONE - 1

Ints = NDArray[np.int64]
T = TypeVar("T")
Piece = tuple[int, int, int]  # a group, the first rank, and how many matches


class SequenceOperator:
    """What can be asked of the matches of one slice."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, leaves: Leaves | None = None) -> None:
        self.plan, self.events, self.threads = plan, events, threads
        sequence = sequence_of(plan)
        assert sequence is not None
        self.leaves = leaves or Leaves(plan, sequence, events)

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
        other.__dict__ |= {
            n: self.__dict__[n] for n in ("walker", "_tasks", "_task_counts", "counts") if n in self.__dict__
        }
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
    def _tasks(self) -> Tasks:
        """All that begins at one event in one window."""
        groups, candidates = self.events.groups, self.leaves.candidates
        firsts = candidates.events[: candidates.begin[1]]
        least, most = length_bounds(self.plan.bound.having)
        if not least <= self.length <= most:
            none = np.empty(0, np.int64)
            return Tasks(none, none, none, none)
        if self.plan.bound.window.kind is WindowKind.SPAN:
            wanted = np.arange(len(firsts))
            if self.events.begins is not None:
                wanted = wanted[self.events.begins[firsts]]
            group = np.searchsorted(groups.lo, firsts[wanted], side="right") - 1
            return self._without_forbidden(wanted, candidates.until[wanted], group)
        begin, end = np.searchsorted(firsts, groups.lo), np.searchsorted(firsts, groups.hi)
        sizes = end - begin
        group = np.repeat(np.arange(len(groups)), sizes)
        first = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begin[group]
        return self._without_forbidden(first, groups.hi[group], group)

    def _without_forbidden(self, first: Ints, limit: Ints, group: Ints) -> Tasks:
        """Return tasks that heed NOT before the first and after the last variable."""
        candidates, leaves, groups = self.leaves.candidates, self.leaves, self.events.groups
        events, least = candidates.events[first], np.zeros(len(first), np.int64)
        span = self.plan.bound.window.kind is WindowKind.SPAN
        keep = np.ones(len(first), np.bool_)
        before, after = leaves.forbidden[0], leaves.forbidden[-1]
        if before is not None and span:  # the last one before the first event must be out of the last event's reach
            found = _last_of(before)[self._begins_of_time[events]]
            has = found >= groups.lo[group]
            least[has] = leaves.until[found[has]]
        elif before is not None:  # no event of the window may be forbidden before the first
            found = np.append(next_of(before), len(before))[groups.lo[group]]
            has = found < groups.hi[group]
            keep[has] = events[has] < leaves.later[found[has]]
        if after is not None:  # the last one in reach must not be after the last event
            found = _last_of(after)[limit]
            has = found >= (events if span else groups.lo[group])
            least[has] = np.maximum(least[has], self._begins_of_time[found[has]])
        if self.length == 1:
            keep &= events >= least
        return Tasks(first[keep], limit[keep], least[keep], group[keep])

    @cached_property
    def _begins_of_time(self) -> Ints:
        """For each event the first one of its time and partition."""
        later = self.leaves.later
        places = np.arange(len(later))
        begins = np.ones(len(later), np.bool_)
        begins[1:] = later[1:] != later[:-1]
        return np.maximum.accumulate(np.where(begins, places, 0))

    @cached_property
    def walker(self) -> Walker:
        """What counts and lists."""
        return Walker(self.leaves, self._tasks, self.threads)

    @cached_property
    def _task_counts(self) -> list[int]:
        """The exact number of matches of each task."""
        approximate = self.walker.count(0.0, 0.0)
        largest = float(approximate.max(initial=0.0))
        if largest < EXACT:
            return approximate.astype(np.int64).tolist()
        bits = int(np.frexp(largest)[1]) + 2
        return reconstruct(
            bits,
            lambda prime: self.walker.count(np.uint64(0), np.uint64(prime)).reshape(1, -1),
            size=self.walker.prime_bits,
        )[0]

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        return self._walked_counts()

    def _walked_counts(self) -> list[int]:
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
        variable = self.leaves.names.index(output.column.var)
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
        sums = np.zeros(len(self.events.groups), np.uint64)
        np.add.at(sums, self._tasks.group, self.walker.weigh(own, prime))
        return (sums % np.uint64(prime)).reshape(1, -1)

    def _extremes(self, column: pa.Array, variable: int, greatest: bool) -> list[Any]:
        """Return the least or greatest value of a variable's events on any match of each group."""
        candidates = self.leaves.candidates
        codes = rank_codes([column])[0]
        values = np.full(len(candidates.events), MISSING)
        here = slice(int(candidates.begin[variable]), int(candidates.begin[variable + 1]))
        own = codes[candidates.events[here]]
        values[here] = np.where(own < 0, MISSING, len(codes) - own if greatest else own)
        best = np.full(len(self.events.groups), NONE)
        np.minimum.at(best, self._tasks.group, self.walker.least(values))
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
        for i, rank in enumerate(ranks):
            task = bisect_right(ends, rank, first[group], first[group + 1])
            inner = rank - (ends[task - 1] if task > first[group] else 0)
            if self._task_counts[task] >= ADDRESSABLE:
                raise TrellisError(
                    f"{self._task_counts[task]:,} results begin at one event: too many to find one by its rank",
                    "Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition.",
                )
            self.walker.locate(task, inner, row)
            table[:, i] = row
        return Matches(table, [(group, rank, 1) for rank in ranks])

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[Matches]:
        """Yield the matches of groups with given ranks, in rising order."""
        for group, ranks in chosen.items():
            yield self.at(group, list(ranks))

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Any], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the matches with given ranks, in bounded batches, in order."""
        _ = self._ends, self.walker.candidates

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
        at = 0
        for group, begin, number in some:
            task = bisect_right(ends, begin, first[group], first[group + 1])
            skip = begin - (ends[task - 1] if task > first[group] else 0)
            self.walker.fill(task, skip, table, at, at + number)
            at += number
        return Matches(table, some)

    def ordered(
        self, bound: BoundQuery, make: Callable[[Any], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the matches that ORDER BY brings into order: all of them."""
        warn_of_all(sum(self.counts), max_trends)
        return self.listed([(group, 0, count) for group, count in enumerate(self.counts)], make, threads)

    # --- Tree plans -------------------------------------------------------------------------------------------

    def tree(self, way: str = SWITCHED, shape: str = "best", hashed: bool = True) -> TreePlan:
        """Return a tree plan over the candidates."""
        return TreePlan(self.leaves, way, shape, hashed, list(self._stretches()))

    def _stretches(self) -> Iterator[Stretch]:
        """Yield where a tree plan works: windows, or tiles of what begins at so many spans' worth of events."""
        groups, size = self.events.groups, len(self.events)
        least, most = length_bounds(self.plan.bound.having)
        if not least <= self.length <= most:
            return
        if self.plan.bound.window.kind is not WindowKind.SPAN:
            for lo, hi in zip(groups.lo.tolist(), groups.hi.tolist(), strict=True):
                yield lo, hi, hi, np.broadcast_to(np.int64(hi), size)
            return
        until = self.events.until
        for lo, hi in zip(groups.lo.tolist(), groups.hi.tolist(), strict=True):
            step = TILE * max(1, int((until[lo:hi] - np.arange(lo, hi)).mean())) if lo < hi else 1
            for begin in range(lo, hi, step):
                end = min(begin + step, hi)
                yield begin, int(until[end - 1]), end, until

    def _group_of(self, stretch: int, begins: int) -> int:
        """Return the group of a stretch that begins at an event."""
        if self.plan.bound.window.kind is not WindowKind.SPAN:
            return stretch
        return int(np.searchsorted(self.events.groups.lo, begins, side="right")) - 1


class TreeOperator(SequenceOperator):
    """Counts and lists by a tree plan, whose partial matches it holds; sums and single matches come from the walk."""

    @cached_property
    def plan_tree(self) -> TreePlan:
        """The tree plan."""
        return self.tree(SWITCHED if self.plan.algorithm == CONDENSED else PLAIN)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        tree, totals = self.plan_tree, [0.0] * len(self.events.groups)
        for i, (number, stretch) in enumerate(zip(tree.counts(), tree.stretches, strict=True)):
            totals[self._group_of(i, stretch[0])] += number
        if max(totals, default=0.0) >= EXACT:
            return self._walked_counts()
        return [int(number) for number in totals]

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Any], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the matches with given ranks, those of a window or tile at a time."""
        wanted: dict[int, list[tuple[int, int]]] = {}
        for group, begin, end in ranges:
            wanted.setdefault(group, []).append((begin, end))
        tree = self.plan_tree
        before, last = 0, -1
        for i, (table, stretch) in enumerate(zip(tree.matches(), tree.stretches, strict=True)):
            group, number = self._group_of(i, stretch[0]), table.shape[1]
            before, last = before if group == last else 0, group
            for begin, end in wanted.get(group, []):
                for low in range(max(begin, before), min(end, before + number), BATCH_ROWS):
                    high = min(low + BATCH_ROWS, end, before + number)
                    some = np.ascontiguousarray(table[:, low - before : high - before])
                    yield make(Matches(some, [(group, low, high - low)]))
            before += number


def _last_of(flags: NDArray[np.bool_]) -> Ints:
    """Return for each place, and the one behind the last, the last one before it that has the flag; -1 without."""
    found = np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1)) if len(flags) else np.empty(0, np.int64)
    return np.append(-1, found)
