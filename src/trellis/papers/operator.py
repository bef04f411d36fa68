"""The operator of named algorithms: the trends that they find, with the ranks that any other algorithm would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from trellis.digits import number_text
from trellis.errors import ListingRefused, UsageError
from trellis.events.slice import Ints, Slice
from trellis.kernels.best.ranks import rank_order
from trellis.kernels.unrank import ranks as kernel
from trellis.operators.batch import PathBatch, RankRange
from trellis.operators.contract import BestRequest, ListRequest
from trellis.operators.trends.direct import DirectEdges
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.operator import TrendOperator, batch_values
from trellis.operators.trends.structure import TrendStructure
from trellis.papers.contract import AlgorithmInput, Meter
from trellis.papers.registry import load
from trellis.plan.plan import Plan

T = TypeVar("T")
AUTO = "auto"
SORTED = 1_000_000  # results of some ranks that are put in order; more come as they are found


class NamedOperator(TrendOperator):
    """Lists by a named algorithm; counts, aggregates and single ranks are those of the trend operator.

    Algorithms have an order of their own: all trends come in the order in which they are found, with their ranks. Some
    of all trends are put in order, unless they are very many. There is no compact form. `meter` tells what the last
    listing stored.
    """

    meter: Meter | None = None

    def _make_structure(self) -> TrendStructure:
        """Return a structure whose graph is built the way that was asked for."""
        construction = self.plan.settings.construction
        if construction == AUTO:
            return super()._make_structure()
        build = partial(_constructed, construction=construction, threads=self.threads)
        return TrendStructure(self.plan, self.events, self.threads, build)

    def algorithm_input(self, threads: int | None = None) -> AlgorithmInput:
        """Return the input of the algorithm, with a new meter."""
        given = self.plan.settings
        settings = replace(given, threads=threads or self.threads)
        meter = Meter(self.plan.algorithm, settings.memory_limit)
        return AlgorithmInput(self.plan, self.events, self.tasks, lambda: self.graph, settings, meter)

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """Yield the trends with given ranks, made by the request, in bounded batches, in the order they are found.

        Where some of all trends are asked for, all are found, and those are put in order unless they are very many.
        """
        if request.compact:
            raise UsageError(
                f"the algorithm `{self.plan.algorithm}` does not find trends in the order that compact rows need",
                "Leave the algorithm out.",
            )
        whole = [(group, 0, count) for group, count in enumerate(self.counts) if count]
        if [r for r in request.ranges if r[1] < r[2]] == whole and self.plan.bound.limit is None:
            return map(request.make, self._all_trends(request.threads))
        self._refuse_too_many()
        kept = self._within(request.ranges, request.threads)
        return map(request.make, self._in_order(kept) if request.rows <= SORTED else kept)

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """Yield all trends, made by the request, in the order (group, rank): ORDER BY keeps it among equals."""
        self._refuse_too_many()
        return map(request.make, self._in_order(self._all_trends(request.threads)))

    def _refuse_too_many(self) -> None:
        total = sum(self.counts)
        if total > self.plan.settings.max_trends:
            raise ListingRefused(
                f"the algorithm `{self.plan.algorithm}` would find all {number_text(total)} trends, more than the "
                f"bound of {self.plan.settings.max_trends:,} on listing; it knows LIMIT and OFFSET only in the end",
                "Leave out the algorithm, or raise max_trends.",
                total,
            )

    def _all_trends(self, threads: int) -> Iterator[PathBatch]:
        """Yield all trends with their ranks; there must be as many as are counted."""
        given = self.algorithm_input(threads)
        self.meter = given.meter
        ranking = _Ranking(given)
        number = 0
        for found in load(self.plan.algorithm)(given):
            number += len(found)
            if len(found):
                groups = self.tasks.group[found.groups]
                yield PathBatch(found.positions, found.offsets, (ranking.of(found), groups))
        if number != sum(self.counts):
            raise AssertionError(f"{self.plan.algorithm} found {number} trends of {sum(self.counts)}")

    def _within(self, ranges: Sequence[RankRange], threads: int) -> Iterator[PathBatch]:
        """Yield the trends whose ranks lie in ranges."""
        first, last = np.zeros((2, len(self.events.groups)), np.int64)
        for group, begin, end in ranges:
            first[group], last[group] = begin, end
        for found in self._all_trends(threads):
            keep = (found.ranks >= first[found.groups]) & (found.ranks < last[found.groups])
            if keep.any():
                yield found.take(np.flatnonzero(keep))

    def _in_order(self, batches: Iterator[PathBatch]) -> Iterator[PathBatch]:
        """Yield all trends in the order (group, rank), in batches of bounded size."""
        whole = PathBatch.concat([*batches])
        if not len(whole):
            return iter(())
        order = rank_order(whole.positions, whole.ends.astype(np.int64), whole.groups)
        return whole.take(order).pieces(batch_values(self.events, self.plan.sizes))


def _constructed(plan: Plan, events: Slice, direct: DirectEdges | None, construction: str, threads: int) -> EventGraph:
    from trellis.papers.abi.event_graph import constructed_graph

    return constructed_graph(plan, events, construction, threads)


class _Ranking:
    """Ranks of the trends of one task after another."""

    def __init__(self, given: AlgorithmInput) -> None:
        self.given, self.task = given, -1

    def of(self, trends: PathBatch) -> Ints:
        """Return the ranks of trends in their group.

        Raises
        ------
        AssertionError
            If one is not a trend.
        """
        tasks, graph, task = self.given.tasks, self.given.graph, int(trends.groups[0])
        lo, hi = int(tasks.lo[task]), int(tasks.hi[task])
        if task != self.task:
            self.task = task
            self._ends = self.given.may_start(task), self.given.may_end(task)
            self._before = kernel.paths_before(lo, hi, graph.offsets, graph.successors, *self._ends)
        ranks = kernel.ranks_of_paths(
            lo, hi, trends.positions, trends.ends, graph.offsets, graph.successors, *self._ends, *self._before
        )
        if (ranks == kernel.ASTRAY).any():
            raise AssertionError(f"{self.given.meter.algorithm} found what is not a trend")
        return ranks
