"""The operator of named algorithms: what they find, with the ranks that any other algorithm would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from trellis.algorithms.contract import Found, Meter, Stage
from trellis.algorithms.registry import NAMED, Named
from trellis.digits import number_text
from trellis.errors import ListingRefused, UsageError
from trellis.events.slice import Ints
from trellis.kernels import path_ranks as kernel
from trellis.kernels.ranks import rank_order
from trellis.language.bound import BoundQuery
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.operator import TrendOperator

if TYPE_CHECKING:
    from trellis.operators.batch import Range, Trends, Walked

T = TypeVar("T")
AUTO = "auto"
SORTED = 1_000_000  # results of some ranks that are put in order; more come as they are found


class NamedOperator(TrendOperator):
    """Lists by a named algorithm; counts, aggregates and single ranks are those of any operator.

    `meter` tells what the last listing stored.
    """

    meter: Meter | None = None

    @property
    def named(self) -> Named:
        """The algorithm."""
        return NAMED[self.plan.algorithm]

    def stage(self, threads: int | None = None) -> Stage:
        """Return what the algorithm works on, with a new meter."""
        given = self.plan.settings
        settings = replace(given, threads=threads or self.threads)
        meter = Meter(self.plan.algorithm, settings.memory_limit)
        return Stage(self.plan, self.events, self.tasks, lambda: self.graph, settings, meter)

    @cached_property
    def graph(self) -> EventGraph:
        """The event graph, built the way that was asked for."""
        construction = self.plan.settings.construction
        if construction == AUTO:
            return super().graph
        from trellis.algorithms.abi.event_graph import constructed_graph

        return constructed_graph(self.plan, self.events, construction, self.threads)

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Trends], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the trends with given ranks, in bounded batches, in the order they are found.

        Where some of all trends are asked for, all are found, and those are put in order unless they are very many.
        """
        if compact:
            raise UsageError(
                f"the algorithm `{self.plan.algorithm}` does not find trends in the order that compact rows need",
                "Leave the algorithm out.",
            )
        counts = self.counts
        whole = [(group, 0, count) for group, count in enumerate(counts) if count]
        if [r for r in ranges if r[1] < r[2]] == whole and self.plan.bound.limit is None:
            return map(make, self._found(threads))
        self._refuse_too_many()
        kept = self._within(ranges, threads)
        rows = sum(end - begin for _, begin, end in ranges)
        return map(make, self._in_order(kept) if rows <= SORTED else kept)

    def ordered(
        self, bound: BoundQuery, make: Callable[[Trends], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of all trends, in the order (group, rank): ORDER BY keeps it among equals."""
        self._refuse_too_many()
        return map(make, self._in_order(self._found(threads)))

    def _refuse_too_many(self) -> None:
        total = sum(self.counts)
        if total > self.plan.settings.max_trends:
            raise ListingRefused(
                f"the algorithm `{self.plan.algorithm}` would find all {number_text(total)} trends, more than the "
                f"bound of {self.plan.settings.max_trends:,} on listing; it knows LIMIT and OFFSET only in the end",
                "Leave out the algorithm, or raise max_trends.",
                total,
            )

    def _found(self, threads: int) -> Iterator[Walked]:
        """Yield all trends with their ranks; there must be as many as are counted."""
        from trellis.operators.batch import Walked

        stage = self.stage(threads)
        self.meter = stage.meter
        ranking = _Ranking(stage)
        number = 0
        for found in self.named.load()(stage):
            number += len(found)
            groups = np.full(len(found), self.tasks.group[found.task], np.int64)
            if len(found):
                yield Walked(found.positions, found.ends, ranking.of(found), groups)
        if number != sum(self.counts):
            raise AssertionError(f"{self.plan.algorithm} found {number} trends of {sum(self.counts)}")

    def _within(self, ranges: Sequence[Range], threads: int) -> Iterator[Walked]:
        """Yield the trends whose ranks lie in ranges."""
        first, last = np.zeros((2, len(self.events.groups)), np.int64)
        for group, begin, end in ranges:
            first[group], last[group] = begin, end
        for walked in self._found(threads):
            keep = (walked.ranks >= first[walked.groups]) & (walked.ranks < last[walked.groups])
            if keep.any():
                yield _chosen(walked, np.flatnonzero(keep))

    def _in_order(self, found: Iterator[Walked]) -> Iterator[Walked]:
        """Yield all trends in the order (group, rank), in batches of bounded size."""
        lots = list(found)
        if not lots:
            return
        whole = _joined(lots)
        order = rank_order(whole.positions, whole.ends, whole.groups)
        lengths = np.diff(whole.ends, prepend=0)[order]
        batch = np.cumsum(lengths) // self._batch_values(False)
        cuts = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(order)]
        for begin, end in pairwise(cuts):
            yield _chosen(whole, order[begin:end])


class _Ranking:
    """Ranks of the trends of one task after another."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.task = stage, -1

    def of(self, found: Found) -> Ints:
        """Return the ranks of trends in their group.

        Raises
        ------
        AssertionError
            If one is no trend.
        """
        tasks, graph = self.stage.tasks, self.stage.graph
        lo, hi = int(tasks.lo[found.task]), int(tasks.hi[found.task])
        if found.task != self.task:
            self.task = found.task
            self._ends = self.stage.may_start(found.task), self.stage.may_end(found.task)
            self._before = kernel.paths_before(lo, hi, graph.offsets, graph.successors, *self._ends)
        ranks = kernel.ranks_of_paths(
            lo, hi, found.positions, found.ends, graph.offsets, graph.successors, *self._ends, *self._before
        )
        if (ranks == kernel.ASTRAY).any():
            raise AssertionError(f"{self.stage.meter.algorithm} found what is no trend")
        return ranks


def _chosen(walked: Walked, rows: Ints) -> Walked:
    """Return some trends, in the order in which they are named."""
    from trellis.operators.batch import Walked

    ends = walked.ends.astype(np.int64)
    begins = np.concatenate([[0], ends[:-1]])[rows]
    lengths = ends[rows] - begins
    behind = np.cumsum(lengths)
    places = np.arange(behind[-1] if len(behind) else 0) + np.repeat(begins - (behind - lengths), lengths)
    return Walked(walked.positions[places], behind.astype(np.int32), walked.ranks[rows], walked.groups[rows])


def _joined(lots: Sequence[Walked]) -> Walked:
    """Return several lots of trends as one."""
    from trellis.operators.batch import Walked

    shifts = accumulate((len(lot.positions) for lot in lots), initial=0)
    ends = [lot.ends.astype(np.int64) + shift for lot, shift in zip(lots, shifts, strict=False)]
    positions, ranks, groups = (
        np.concatenate(arrays) for arrays in zip(*((lot.positions, lot.ranks, lot.groups) for lot in lots), strict=True)
    )
    return Walked(positions, np.concatenate(ends), ranks, groups)
