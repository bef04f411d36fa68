"""AFTER MATCH SKIP: keeps some of the results of another operator, each beginning where the last one allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from trellis.digits import number_text
from trellis.errors import ListingRefused
from trellis.events.slice import Ints, Slice
from trellis.language.printer import value_text
from trellis.language.syntax import Skip
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, Counts, ListRequest, QueryOperator
from trellis.plan.plan import Plan
from trellis.providers import provided

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.ranks import Ranks

MOST = 100_000_000  # results of one first event that are listed to choose one
T = TypeVar("T")


class SkippingOperator(QueryOperator):
    """The results of an operator that AFTER MATCH keeps, group by group; there is at most one for each first event.

    Where the results are paths of a graph, those that are kept are followed one after another, and no other is looked
    at. Elsewhere ranks tell: as they go by the first event, the results that begin too early are one range of ranks,
    the end of which is looked for by bisection. Only where ORDER BY has keys that cannot be searched by are the results
    of one first event listed to choose the one.

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
        found = self.inner.leading(self.plan.bound) or [None] * len(self.events.groups)
        kept = (self._by_ranks(group) if one is None else one for group, one in enumerate(found))
        return [
            PathBatch(one.positions, one.offsets, (np.arange(len(one)), np.full(len(one), group)), one.codes)
            for group, one in enumerate(kept)
        ]

    def _by_ranks(self, group: int) -> PathBatch:
        count = self.inner.counts[group]
        if not count:
            return PathBatch(np.empty(0, np.int32), np.zeros(1, np.int32), (np.empty(0, np.int64),) * 2)
        if count <= self.plan.sizes.skip_few:
            return self._skipped(self._listed(group, 0, count))
        kept, rank = [], 0
        while rank < count:
            one = self.inner.at(group, [rank])
            if self.plan.bound.order_by:
                behind = self._first_rank(group, rank, count, int(one.firsts[0]) + 1)
                one = self._skipped(self._listed(group, rank, behind)) if behind > rank + 1 else one
            kept.append(one)
            rank = self._first_rank(group, rank, count, int(self._nexts(one)[0]))
        return PathBatch.concat(kept)

    def _first_rank(self, group: int, rank: int, count: int, place: int) -> int:
        """Return the first rank of a result that begins at a place or later, where the one at `rank` does not."""
        low, high = rank, count
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if int(self.inner.at(group, [middle]).firsts[0]) < place else (low, middle)
        return high

    def _listed(self, group: int, begin: int, end: int) -> PathBatch:
        if end - begin > MOST:
            keys = ", ".join(value_text(key.expression) for key in self.plan.bound.syntax.order_by)
            raise ListingRefused(
                f"AFTER MATCH goes through all results of one first event by ORDER BY {keys}, and there are "
                f"{number_text(end - begin)} of them",
                "Order by LENGTH, a SUM, or an attribute of the first or last event; or make fewer results (HAVING, a "
                "shorter WITHIN).", end - begin,
            )  # fmt: skip
        return PathBatch.concat(
            list(self.inner.list(ListRequest([(group, begin, end)], lambda batch: batch, self.threads)))
        )

    def _skipped(self, whole: PathBatch) -> PathBatch:
        """Return the results that are kept of all that there are from some place on."""
        keys = provided("keys of ORDER BY")(self.plan, self.events, whole) if self.plan.bound.order_by else []
        order = np.lexsort([np.arange(len(whole)), *reversed(keys), whole.firsts.astype(np.int64)])
        firsts, nexts = whole.firsts[order].tolist(), self._nexts(whole)[order].tolist()
        kept, place = [], -1
        for row, (first, behind) in enumerate(zip(firsts, nexts, strict=True)):
            if first >= place:
                kept.append(int(order[row]))
                place = behind
        return whole.take(np.array(kept, np.int64))

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

    def next_place(self, group: int) -> int:
        """Return the first event at which a result may begin after the last of a group, which has some."""
        return int(self._nexts(self.at(group, [self.counts[group] - 1]))[0])

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
