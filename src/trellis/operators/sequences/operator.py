"""The operator for fixed sequences.

Events that can be in no match are left out first. The rest is walked depth first, with a list of candidates for each
later variable; counting stops where variables are asked of time alone, and adds up over lists from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from math import ceil, log2
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import plain_value
from trellis.events.slice import Slice
from trellis.language.bound import Output
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.batch import PathBatch, RankRange, rank_labels
from trellis.operators.contract import Counts, ListRequest, QueryOperator, state_of
from trellis.operators.exact import SMALL, reconstruct
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.structure import RANK_LIMIT, SequenceStructure, TreeStructure
from trellis.operators.sequences.tree import drawn
from trellis.operators.sequences.walk import NONE
from trellis.operators.weights import weigh
from trellis.plan.plan import Plan

MISSING = NONE - 1
RUN_TREE = 1e6  # expected rows of a node up to which a tree plan is run to see what it does
RUN_TILES = 500  # tiles, likewise

Ints = NDArray[np.int64]
T = TypeVar("T")
Pieces = list[tuple[int, int, int]]  # of a batch: a group, the first rank, and how many matches


class SequenceOperator(QueryOperator):
    """Matches of a fixed sequence, by a walk over candidates.

    Parameters
    ----------
    plan, events, threads
        See `QueryOperator`.
    structure
        What was built before for the same matches.

    Raises
    ------
    NotComparable
        If a condition cannot be decided by comparing two codes, on the events at hand.
    """

    lists_at_once = True

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, structure: SequenceStructure | None = None) -> None:
        super().__init__(plan, events, threads)
        self.structure = structure or self._make_structure()

    def _make_structure(self) -> SequenceStructure:
        return SequenceStructure(self.plan, self.events, self.threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return state_of(self, "plan", "events", "threads", "structure")

    def variant(self, plan: Plan, events: Slice) -> SequenceOperator:
        """Return an operator for the same matches with other output."""
        return type(self)(plan, events, self.threads, self.structure)

    @property
    def leaves(self) -> SequenceCandidates:
        """The candidates of each variable, and the conditions between them."""
        return self.structure.leaves

    @property
    def length(self) -> int:
        """The number of events of every match."""
        return self.structure.length

    @property
    def counts(self) -> Counts:
        """The exact number of matches of each group."""
        return self.structure.counts

    def prepare(self) -> None:
        """Build all that listing needs."""
        _ = self.structure.rank_ends, self.structure.walker.candidates

    def describe(self) -> dict[str, str]:
        """Say what is left of the candidates, and draw the tree plan with the numbers that its nodes had."""
        leaves = self.leaves
        kept = zip(leaves.names, leaves.of_variable, leaves.sizes, strict=True)
        left = ", ".join(f"{name} {len(some):,} of {size:,}" for name, some, size in kept)
        tree = self.structure.tree()
        rows = max((node.estimate for node in tree.root.walk() if node is not tree.root), default=0.0)
        ran = rows <= RUN_TREE and len(tree.tiles) <= RUN_TILES
        if ran:
            _ = [*tree.counts()]
        return {"candidates": left, "tree_plan": "\n".join(["", *drawn(tree.root, leaves.names, ran, 1)])}

    # --- Aggregates -------------------------------------------------------------------------------------------

    def aggregate(self) -> Sequence[Aggregates]:
        """Return the states of AGGREGATE of each group."""
        columns = [self._states(named.output) for named in self.plan.bound.aggregates]
        return [Aggregates(count, tuple(column[g] for column in columns)) for g, count in enumerate(self.counts)]

    def _states(self, output: Output) -> Sequence[Any]:
        counts = self.counts
        if output.function == "COUNT":
            return list(counts)
        if output.column is None:  # LENGTH
            if output.function in ("AVG", "SUM"):
                return [Sum(Fraction(self.length * count), count) for count in counts]
            return [self.length if count else None for count in counts]
        variable = self.leaves.names.index(output.column.var)
        column = self.events.columns[output.column.name]
        if output.function in ("SUM", "AVG"):
            return self._sums(column, variable)
        return self._extremes(column, variable, output.function == "MAX")

    def _sums(self, column: pa.Array, variable: int) -> Sequence[Any]:
        weight = weigh(column)
        largest = max(self.counts, default=0)
        bits = largest.bit_length() + weight.bits + 2 + ceil(log2(len(self.events) + 1))

        def totals(values: Callable[[int], NDArray[np.uint64]], bits: int) -> Sequence[int]:
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
        np.add.at(sums, self.structure.tasks.group, self.structure.walker.weigh(own, prime))
        return (sums % np.uint64(prime)).reshape(1, -1)

    def _extremes(self, column: pa.Array, variable: int, greatest: bool) -> Sequence[Any]:
        """Return the least or greatest value of a variable's events on any match of each group."""
        candidates = self.leaves.candidates
        codes = rank_codes([column])[0]
        values = np.full(len(candidates.events), MISSING)
        here = slice(int(candidates.begin[variable]), int(candidates.begin[variable + 1]))
        own = codes[candidates.events[here]]
        values[here] = np.where(own < 0, MISSING, len(codes) - own if greatest else own)
        best = np.full(len(self.events.groups), NONE)
        np.minimum.at(best, self.structure.tasks.group, self.structure.walker.least(values))
        place = {int(code): i for i, code in enumerate(codes.tolist())}
        found = [len(codes) - b if greatest else b for b in best.tolist()]
        return [
            None if b >= MISSING else plain_value(column[place[code]])
            for b, code in zip(best.tolist(), found, strict=True)
        ]

    # --- Results ----------------------------------------------------------------------------------------------

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the matches of a group with given ranks, in rising order.

        Raises
        ------
        TrellisError
            If 2**63 matches or more begin at the same event.
        """
        structure = self.structure
        first, ends = structure.rank_ends
        table = np.empty((self.length, len(ranks)), np.int32)
        row = np.empty(self.length, np.int64)
        for i, rank in enumerate(ranks):
            task = bisect_right(ends, rank, first[group], first[group + 1])
            inner = rank - (ends[task - 1] if task > first[group] else 0)
            if structure.task_counts[task] >= RANK_LIMIT:
                raise TrellisError(
                    f"{structure.task_counts[task]:,} results begin at one event: too many to find one by its rank",
                    "Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition.",
                )
            structure.walker.unrank(task, inner, row)
            table[:, i] = row
        return PathBatch.of_table(table, partial(rank_labels, [(group, rank, 1) for rank in ranks]))

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, in bounded batches, in order."""
        self.prepare()

        def work(pieces: Pieces) -> T:
            return request.made(self._filled(pieces))

        if request.threads < 2:
            yield from map(work, self._pieces(request.ranges))
            return
        with ThreadPoolExecutor(request.threads) as pool:
            waiting: list[Future[T]] = []
            for pieces in self._pieces(request.ranges):
                waiting.append(pool.submit(work, pieces))
                if len(waiting) > 2 * request.threads:
                    yield waiting.pop(0).result()
            yield from (future.result() for future in waiting)

    def _pieces(self, ranges: Sequence[RankRange]) -> Iterator[Pieces]:
        """Yield the pieces of each batch."""
        some: Pieces = []
        room = self.plan.sizes.match_rows
        for group, begin, end in ranges:
            while begin < end:
                number = min(room, end - begin)
                some.append((group, begin, number))
                begin, room = begin + number, room - number
                if not room:
                    yield some
                    some, room = [], self.plan.sizes.match_rows
        if some:
            yield some

    def _filled(self, some: Pieces) -> PathBatch:
        """Return the matches of a batch."""
        first, ends = self.structure.rank_ends
        total = sum(number for _, _, number in some)
        table = np.empty((self.length, total), np.int32)
        at = 0
        for group, begin, number in some:
            task = bisect_right(ends, begin, first[group], first[group + 1])
            skip = begin - (ends[task - 1] if task > first[group] else 0)
            self.structure.walker.fill(task, skip, table, at, at + number)
            at += number
        return PathBatch.of_table(table, partial(rank_labels, some))


class TreeOperator(SequenceOperator):
    """Counts and lists by a tree plan, whose partial matches it holds; sums and single matches come from the walk."""

    structure: TreeStructure
    lists_at_once = False  # each would hold the partial matches

    def _make_structure(self) -> TreeStructure:
        return TreeStructure(self.plan, self.events, self.threads)

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, those of a window or tile at a time, on one thread."""
        wanted: dict[int, Pieces] = {}
        for one in request.ranges:
            wanted.setdefault(one[0], []).append(one)
        tree = self.structure.tree_plan
        before, last = 0, -1
        for i, (table, tile) in enumerate(zip(tree.matches(), tree.tiles, strict=True)):
            group, number = self.structure.group_of(i, tile[0]), table.shape[1]
            before, last = before if group == last else 0, group
            for _, begin, end in wanted.get(group, ()):
                for low in range(max(begin, before), min(end, before + number), self.plan.sizes.match_rows):
                    high = min(low + self.plan.sizes.match_rows, end, before + number)
                    some = np.ascontiguousarray(table[:, low - before : high - before])
                    labels = partial(rank_labels, [(group, low, high - low)])
                    yield request.made(PathBatch.of_table(some, labels))
            before += number
