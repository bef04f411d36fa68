"""AFTER MATCH SKIP: keeps some of the results of another operator, each beginning where the last one allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from trellis.digits import number_text
from trellis.errors import ListingRefused
from trellis.events.slice import Ints, Slice
from trellis.language.syntax import Skip
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, Counts, ListRequest, QueryOperator
from trellis.plan.plan import Plan

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.ranks import Ranks

FEW = 4096  # results of a group that are listed, rather than looked for among their ranks
MOST = 100_000_000  # results that ORDER BY goes through
T = TypeVar("T")


class SkippingOperator(QueryOperator):
    """The results of an operator that AFTER MATCH keeps, group by group; there is at most one for each first event.

    Ranks go by the first event, so the results that begin too early are one range of ranks: the end of it is looked for
    by bisection, and nothing in it is listed. Under ORDER BY, which chooses among the results of one first event, all
    are gone through.

    Parameters
    ----------
    plan, events, threads
        See `QueryOperator`.
    inner
        The operator of the query without AFTER MATCH.
    results
        The results of each group that are kept, where they are known.
    """

    def __init__(
        self, plan: Plan, events: Slice, threads: int, inner: QueryOperator, results: list[PathBatch] | None = None
    ) -> None:
        super().__init__(plan, events, threads)
        self.inner = inner
        self._known = results

    @property
    def _code(self) -> int:
        """The number of the variable of TO FIRST and TO LAST among those that take events."""
        assert self.plan.bound.after_match is not None
        names = [v.name for v in self.plan.bound.variables if not v.absent]
        return names.index(str(self.plan.bound.after_match.var))

    # --- What is kept -----------------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> list[PathBatch]:
        """The results of each group that are kept."""
        if self._known is not None:
            return self._known
        return [self._of_group(group, count) for group, count in enumerate(self.inner.counts)]

    def _of_group(self, group: int, count: int) -> PathBatch:
        if not count:
            return PathBatch(np.empty(0, np.int32), np.zeros(1, np.int32), (np.empty(0, np.int64),) * 2)
        if self.plan.bound.order_by or count <= FEW:
            kept = self._by_listing(group, count)
        else:
            kept = self._by_bisection(group, count)
        labels = np.arange(len(kept)), np.full(len(kept), group)
        return PathBatch(kept.positions, kept.offsets, labels, kept.codes)

    def _by_listing(self, group: int, count: int) -> PathBatch:
        if count > MOST:
            raise ListingRefused(
                f"AFTER MATCH with ORDER BY goes through all results, and there are {number_text(count)} of them",
                "Leave out ORDER BY, or make fewer results (HAVING, a shorter WITHIN).", count,
            )  # fmt: skip
        request = ListRequest([(group, 0, count)], lambda batch: batch, self.threads)
        whole = PathBatch.concat(list(self.inner.list(request)))
        keys = [-whole.lengths if key.descending else whole.lengths for key in self.plan.bound.order_by]  # LENGTH alone
        order = np.lexsort(np.stack([np.arange(len(whole)), *reversed(keys), whole.firsts.astype(np.int64)]))
        firsts, nexts = whole.firsts[order].tolist(), self._nexts(whole)[order].tolist()
        kept, place = [], -1
        for row, (first, behind) in enumerate(zip(firsts, nexts, strict=True)):
            if first >= place:
                kept.append(int(order[row]))
                place = behind
        return whole.take(np.array(kept, np.int64))

    def _by_bisection(self, group: int, count: int) -> PathBatch:
        kept, rank = [], 0
        while rank < count:
            one = self.inner.at(group, [rank])
            kept.append(one)
            place = int(self._nexts(one)[0])
            low, high = rank, count  # `low` begins too early
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if int(self.inner.at(group, [middle]).firsts[0]) < place else (low, middle)
            rank = high
        return PathBatch.concat(kept)

    def _nexts(self, batch: PathBatch) -> Ints:
        """Return the first event at which a result may begin that is kept after each of these."""
        after = self.plan.bound.after_match
        assert after is not None
        firsts = batch.firsts.astype(np.int64)
        if after.skip is Skip.PAST_LAST:
            return batch.lasts.astype(np.int64) + 1
        if after.skip is Skip.TO_NEXT:
            return firsts + 1
        own = batch if batch.variables is None else batch.of_variable(self._code)[0]
        place = (own.firsts if after.skip is Skip.TO_FIRST else own.lasts).astype(np.int64)
        return np.where(place == firsts, firsts + 1, place)

    # --- Answers ----------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """The number of results of each group that are kept."""
        return [len(batch) for batch in self._results]

    def aggregate(self) -> Sequence[Aggregates]:
        """Results that are kept are aggregated by listing them."""
        raise AssertionError("what AFTER MATCH keeps is listed")

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks."""
        return self._results[group].take(np.array(ranks, np.int64))

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[PathBatch]:
        """Yield the results of groups with given ranks."""
        return (self.at(group, list(ranks)) for group, ranks in chosen.items())

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the results with given ranks."""
        for group, begin, end in request.ranges:
            if begin < end:
                yield request.made(self.at(group, range(begin, end)))

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List all results that are kept: they are few."""
        return self.list(request.all_of(self.counts))

    def variant(self, plan: Plan, events: Slice) -> SkippingOperator:
        """Return an operator for the same results with other output."""
        return SkippingOperator(plan, events, self.threads, self.inner, self._results)

    def describe(self) -> dict[str, str]:
        """Say how the inner operator works, and what is kept of its results."""
        kept = f"{sum(self.counts):,} of {number_text(sum(self.inner.counts))} results"
        return {**self.inner.describe(), "after_match": kept}
