"""AFTER MATCH SKIP: keeps some of the results of another operator, each beginning where the last one allows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from trellis.digits import number_text
from trellis.errors import ListingRefused
from trellis.events.slice import Ints, Slice
from trellis.language.printer import value_text
from trellis.operators.after_match import Keeper, next_places
from trellis.operators.batch import PathBatch, RankRange
from trellis.operators.contract import BestRequest, Counts, Explored, ListRequest, QueryOperator
from trellis.operators.ranks import ranks_of
from trellis.plan.plan import Plan
from trellis.properties import cached_property
from trellis.providers import provided

AT_ONCE, MOST_AT_ONCE = 1 << 12, 1 << 18  # results that are listed together: more, as long as none are skipped
FIRSTS_AT_ONCE = 1 << 8
MOST = 100_000_000  # results of one first event that are listed to choose one
T = TypeVar("T")


class SkippingOperator(QueryOperator):
    """The results of an operator that AFTER MATCH keeps, group by group; there is at most one for each first event.

    A join or sequence walks to the first result of each first event, or searches the best of it by ORDER BY. Where the
    results are paths of a graph, or of the index, those that are kept are followed one after another, and no other is
    looked at. Elsewhere the results are listed, unless a group has very many. Then ranks tell: as they go by the first
    event, the results that begin too early are one range of ranks. Only where ORDER BY has keys that cannot be searched
    by are the results of the other first events listed to choose the one.

    Parameters
    ----------
    plan, events, threads
        See `QueryOperator`.
    inner
        The operator of the query without AFTER MATCH.
    results
        The results that are kept, group by group, where they are known.
    """

    def __init__(
        self, plan: Plan, events: Slice, threads: int, inner: QueryOperator, results: PathBatch | None = None
    ) -> None:
        super().__init__(plan, events, threads)
        self.inner = inner
        self._known = results

    # --- What is kept -----------------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> PathBatch:
        """The results that are kept, group by group."""
        if self._known is not None:
            return self._known
        firsts = None if self.plan.bound.order_by else self.inner.leading_of_firsts()
        if firsts is None:
            found = self.inner.leading(self.plan.bound)
        else:
            keeper = Keeper()
            found = PathBatch.concat([self._leading_of(batch, keeper) for batch in firsts]), np.empty(0, np.int64)
        kept, groups = (PathBatch.concat([]), range(len(self.events.groups))) if found is None else found
        counts = self.inner.counts if len(groups) else []
        sizes = (self.events.groups.hi - self.events.groups.lo) * self.plan.sizes.skip_few
        some = [(int(group), 0, counts[group]) for group in groups if counts[group]]
        few = [one for one in some if one[2] <= sizes[one[0]]]
        many = [one for one in some if one[2] > sizes[one[0]]]
        parts = [kept, *self._listed(few, Keeper()), *(one for group, _, _ in many for one in self._by_ranks(group))]
        whole = PathBatch.concat([part for part in parts if len(part)])
        order = np.argsort(whole.groups, kind="stable")
        whole = whole if (np.diff(order) == 1).all() else whole.take(order)
        begins = np.searchsorted(whole.groups, whole.groups)
        return PathBatch(whole.positions, whole.offsets, (np.arange(len(whole)) - begins, whole.groups), whole.codes)

    @cached_property
    def _begins(self) -> Ints:
        """Where the results of each group begin, and where the last ones end."""
        return np.searchsorted(self._results.groups, np.arange(len(self.events.groups) + 1))

    def _listed(self, ranges: list[RankRange], keeper: Keeper) -> Iterator[PathBatch]:
        """Yield those that are kept of the results with given ranks: these are listed, those of many groups at once."""
        ordered = bool(self.plan.bound.order_by)
        waiting: list[PathBatch] = []  # of the last first event, of which more may come
        listed = self.inner.list(ListRequest(ranges, lambda batch: batch, self.threads)) if ranges else iter(())
        for batch in listed:
            if not ordered:
                yield self._leading_of(batch, keeper)
                continue
            begin = int(np.argmax((batch.firsts == batch.firsts[-1]) & (batch.groups == batch.groups[-1])))
            before = waiting[-1:]
            if begin or any(one.firsts[-1] != batch.firsts[0] or one.groups[-1] != batch.groups[0] for one in before):
                yield self._leading_of(PathBatch.concat([*waiting, batch.take(np.arange(begin))]), keeper)
                waiting, batch = [], batch.take(np.arange(begin, len(batch)))
            waiting.append(batch)
            self._check_number(sum(map(len, waiting)))
        if waiting:
            yield self._leading_of(PathBatch.concat(waiting), keeper)

    def _leading_of(self, batch: PathBatch, keeper: Keeper) -> PathBatch:
        """Return those that are kept of the next results: of one first event the one that comes first by ORDER BY."""
        groups, firsts, places = batch.groups, batch.firsts.astype(np.int64), self._places(batch)
        if not self.plan.bound.order_by:
            return batch.take(keeper.rows_of(groups, firsts, places))
        keys = provided("keys of ORDER BY")(self.plan, self.events, batch)
        order = np.lexsort([np.arange(len(batch)), *reversed(keys), firsts, groups])
        return batch.take(order[keeper.rows_of(groups[order], firsts[order], places[order])])

    def _by_ranks(self, group: int) -> Iterator[PathBatch]:
        """Yield those that are kept of many results: those of some first events at a time are listed, or the first."""
        events, ends = self.inner.rank_ends(group)
        begins = np.append(ends[:1] * 0, ends[:-1])
        keeper, at, ordered, few = Keeper(), 0, bool(self.plan.bound.order_by), AT_ONCE
        while at < len(events):
            if ordered:
                behind = max(at + 1, int(np.searchsorted(ends, begins[at] + few, side="right")))
                self._check_number(int(ends[at] - begins[at]))
                found = PathBatch.concat([*self._listed([(group, int(begins[at]), int(ends[behind - 1]))], keeper)])
            else:
                behind = min(at + FIRSTS_AT_ONCE, len(events))
                found = self._leading_of(self.inner.at(group, ranks_of(begins[at:behind])), keeper)
            if len(found):
                yield found
                place = int(np.searchsorted(events, self._places(found)[-1]))
                few = min(2 * few, MOST_AT_ONCE) if place <= behind else AT_ONCE
                behind = max(behind, place)
            at = behind

    def _check_number(self, results: int) -> None:
        """Refuse to go through more results of one first event than can be held."""
        if results > MOST:
            keys = ", ".join(value_text(key.expression) for key in self.plan.bound.syntax.order_by)
            raise ListingRefused(
                f"AFTER MATCH goes through all results of one first event by ORDER BY {keys}, and there are "
                f"{number_text(results)} of them",
                "Order by LENGTH, a SUM, or an attribute of the first or last event; or make fewer results (HAVING, a "
                "shorter WITHIN).", results,
            )  # fmt: skip

    def _places(self, batch: PathBatch) -> Ints:
        """Return the first event at which a result may begin that is kept after each of these."""
        after = self.plan.bound.after_match
        assert after is not None
        names = [v.name for v in self.plan.bound.variables if not v.absent]
        return next_places(batch, after.skip, names.index(after.var) if after.var in names else -1)

    def next_place(self, group: int) -> int:
        """Return the first event at which a result may begin after the last of a group, which has some."""
        return int(self._places(self.at(group, [self.counts[group] - 1]))[0])

    # --- Answers ----------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """The number of results of each group that are kept."""
        return np.diff(self._begins).tolist()

    def aggregate(self) -> None:
        """Return None: results that are kept are few, and listed."""

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks."""
        return self._results.take(self._begins[group] + np.array(ranks, np.int64))

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the results with given ranks, those of many groups at once."""
        groups, begins, ends = np.array(request.ranges, np.int64).reshape(-1, 3).T
        lengths = np.maximum(ends - begins, 0)
        behind = self._begins[groups] + begins + lengths
        found = self._results.take(np.arange(lengths.sum()) + np.repeat(behind - np.cumsum(lengths), lengths))
        return map(request.made, found.pieces(self.plan.sizes.batch_values))

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List all results that are kept: they are few."""
        return self.list(request.all_of(self.counts))

    def variant(self, plan: Plan, events: Slice) -> SkippingOperator:
        """Return an operator for the same results with other output."""
        return SkippingOperator(plan, events, self.threads, self.inner, self._results)

    def explored(self) -> Explored:
        """Return the work of the exploration that counted, or tried to."""
        return self.inner.explored()

    def describe(self) -> dict[str, str]:
        """Say how many results are kept; the others are mostly not counted."""
        return {"after_match": f"{sum(self.counts):,} results are kept"}
