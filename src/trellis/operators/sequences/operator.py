"""The operator for fixed sequences.

Events that can be in no match are left out first. The rest is walked depth first, with a list of candidates for each
later variable; counting stops where variables are asked of time alone, and adds up over lists from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Ints
from trellis.language.bound import BoundQuery
from trellis.operators.aggregates import Sum
from trellis.operators.batch import NO_RANK, PathBatch, RankRange, rank_labels
from trellis.operators.contract import BestRequest, Counts, ListRequest
from trellis.operators.joins.best import leading_of_plan, search_best_of_plan
from trellis.operators.matches import MISSING, NONE, MatchOperator
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.structure import RANK_LIMIT, SequenceStructure
from trellis.operators.sequences.tree import drawn
from trellis.operators.threads import made_on_threads

RUN_TREE = 1e6  # expected rows of a node up to which a tree plan is run to see what it does
RUN_TILES = 500  # tiles, likewise

T = TypeVar("T")
Pieces = list[tuple[int, int, int]]  # of a batch: a group, the first rank, and how many matches


class SequenceOperator(MatchOperator[SequenceStructure]):
    """Matches of a fixed sequence, by a walk over candidates.

    Raises
    ------
    NotComparable
        If a condition cannot be decided by comparing two codes, on the events at hand.
    """

    def _make_structure(self) -> SequenceStructure:
        return SequenceStructure(self.plan, self.events, self.threads)

    @property
    def leaves(self) -> SequenceCandidates:
        """The candidates of each variable, and the conditions between them."""
        return self.structure.leaves

    @property
    def length(self) -> int:
        """The number of events of every match."""
        return self.structure.length

    def prepare(self) -> None:
        """Build all that listing needs."""
        _ = self.structure.rank_ends, self.structure.walker.candidates

    def lists_at_once(self) -> bool:
        """Build all that listing needs."""
        self.prepare()
        return True

    def describe(self) -> dict[str, str]:
        """Say what is left of the candidates, and draw the tree plan with the numbers that its nodes had."""
        leaves = self.structure.reduced
        kept = zip(leaves.names, leaves.of_variable, leaves.sizes, strict=True)
        left = ", ".join(f"{name} {len(some):,} of {size:,}" for name, some, size in kept)
        tree = self.structure.tree()
        rows = max((node.estimate for node in tree.root.walk() if node is not tree.root), default=0.0)
        ran = rows <= RUN_TREE and len(tree.tiles) <= RUN_TILES
        if ran:
            _ = [*tree.counts()]
        return {"candidates": left, "tree_plan": "\n".join(["", *drawn(tree.root, leaves.names, ran, 1)])}

    # --- Aggregates -------------------------------------------------------------------------------------------

    def _counts_with(self, variable: str) -> Counts:
        return list(self.counts)

    def _lengths(self, function: str) -> Sequence[Any]:
        if function in ("AVG", "SUM"):
            return [Sum(Fraction(self.length * count), count) for count in self.counts]
        return [self.length if count else None for count in self.counts]

    def _weighed(self, weights: NDArray[np.uint64], variable: str, prime: int) -> NDArray[np.uint64]:
        sums = np.zeros(len(self.events.groups), np.uint64)
        own = self._of_variable(weights, variable, np.uint64(0))
        np.add.at(sums, self.structure.tasks.group, self.structure.walker.weigh(own, prime))
        return (sums % np.uint64(prime)).reshape(1, -1)

    def _least(self, values: Ints, variable: str) -> Ints:
        best = np.full(len(self.events.groups), NONE)
        own = self._of_variable(values, variable, np.int64(MISSING))
        np.minimum.at(best, self.structure.tasks.group, self.structure.walker.least(own))
        return best

    def _of_variable(self, values: NDArray[Any], variable: str, other: Any) -> NDArray[Any]:
        """Return for each candidate the value of its event, if it is one of a variable, else `other`."""
        candidates, place = self.leaves.candidates, self.leaves.names.index(variable)
        here = slice(int(candidates.begin[place]), int(candidates.begin[place + 1]))
        own = np.full(len(candidates.events), other)
        own[here] = values[candidates.events[here]]
        return own

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

        def made(pieces: Pieces) -> T:
            return request.made(self._filled(pieces))

        yield from made_on_threads(made, self._pieces(request.ranges), request.threads)

    def _search_best(self, request: BestRequest[T]) -> PathBatch | None:
        return search_best_of_plan(request, self.plan, self.events, self.structure.before)

    def leading(self, bound: BoundQuery) -> tuple[PathBatch, Ints] | None:
        """Return the matches that AFTER MATCH keeps: the best one of each first event; None where it cannot."""
        return leading_of_plan(bound, self.plan, self.events)

    def leading_of_firsts(self) -> Iterator[PathBatch]:
        """Yield the first match of each first event, by a walk; the counts tell which events have one."""
        some = np.flatnonzero(np.array(self.structure.task_counts) > 0)
        table = np.empty((self.length, len(some)), np.int32)
        self.structure.walker.fill(0, 0, table, 0, len(some), each=1)
        yield PathBatch.of_table(table, (np.full(len(some), NO_RANK), self.structure.tasks.group[some]))

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
