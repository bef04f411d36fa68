"""The paths of a pattern's matches: of some groups of a slice at a time, with the operator over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.slice import Groups, Slice
from trellis.kernels.event_graph.edges import latest_predecessors
from trellis.language.bound import BoundQuery
from trellis.operators.batch import Labels, PathBatch, RankRange, label_runs
from trellis.operators.contract import ListRequest
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.order import EventOrder
from trellis.operators.patterns.paths import BoundVertices, Paths, aggregating_plan, plan_over_vertices
from trellis.operators.patterns.positions import NotSeparable, PositionPaths, position_codes
from trellis.operators.patterns.variables import Variables
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.operator import TrendOperator
from trellis.operators.trends.structure import GivenStructure
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.plan import Plan
from trellis.plan.spec import SEARCH
from trellis.properties import cached_property

EDGES_AT_ONCE = 1 << 24  # of the groups whose paths are held together, as those before them have them
MOST_AT_ONCE = 32  # times the plan's `events_at_once`
MANY, FEW = 1 << 10, 16  # events, and those that can follow each of them in a span, on average: counted by graphs

T = TypeVar("T")


class PatternPart:
    """The paths of the groups `[first, last)` and the operator over them."""

    def __init__(self, plan: Plan, paths: Paths, first: int, last: int, threads: int = 1) -> None:
        self.plan, self.paths, self.first, self.last, self._threads = plan, paths, first, last, threads
        self.held = np.ones(last - first, np.bool_)  # groups that were looked into

    def holds(self, wanted: NDArray[np.bool_] | None) -> bool:
        """Return whether all groups of this part that are wanted were looked into."""
        return bool(self.held.all() if wanted is None else self.held[wanted[self.first : self.last]].all())

    @property
    def vertices(self) -> BoundVertices:
        """The events and variables of the vertices."""
        return self.paths.vertices

    @property
    def ends(self) -> tuple[set[str], set[str]]:
        """The variables with which results begin, and with which they end."""
        paths, names = self.paths, [v.name for v in self.plan.bound.variables if not v.absent]
        later = np.zeros(len(paths.events), np.bool_)
        later[paths.successors] = True
        last = np.diff(paths.offsets) == 0
        first, final = (np.unique(self.vertices.variables[which]).tolist() for which in (~later, last))
        return {names[code] for code in first}, {names[code] for code in final}

    @cached_property
    def _structure(self) -> GivenStructure:
        paths = self.paths
        size = len(paths.events)
        groups = Groups(paths.begins[:-1], paths.begins[1:], np.zeros(self.last - self.first, np.int64))
        until = groups.hi.repeat(groups.hi - groups.lo)
        vertices = Slice({}, pa.nulls(size), np.arange(size), np.ones(size, np.bool_), paths.begins, groups, until)
        graph = EventGraph(paths.offsets, paths.successors, latest_predecessors(paths.offsets, paths.successors))
        structure = GivenStructure(plan_over_vertices(self.plan), vertices, self._threads, graph=graph)
        structure.lists = True  # or counted as quickly
        return structure

    def over_vertices(self, bound: BoundQuery, columns: Mapping[str, pa.Array]) -> TrendOperator:
        """Return the operator over the paths, for what a query aggregates of columns of their vertices."""
        structure = self._structure
        plan = aggregating_plan(self.plan, bound)
        return TrendOperator(plan, replace(structure.events, columns=columns), self._threads, structure)

    @cached_property
    def operator(self) -> TrendOperator:
        """The operator over the paths."""
        return TrendOperator(self._structure.plan, self._structure.events, self._threads, self._structure)

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks."""
        if self.paths.ambiguous[group - self.first]:
            wanted = ListRequest([(group, rank, rank + 1) for rank in ranks], lambda batch: batch)
            return PathBatch.concat([*self.list(wanted)])
        return self._bound(self.operator.at(group - self.first, ranks))

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """Yield the results of ranges of ranks as the request makes them; its groups are those of the whole."""
        own = [(group - self.first, begin, end) for group, begin, end in request.ranges]

        def made(batch: PathBatch) -> T:
            return request.made(self._bound(batch))

        ambiguous, counts, few = self.paths.ambiguous, self.operator.counts, self.plan.sizes.ordered_rows
        mixed = bool(ambiguous.any())
        for by_events, run in groupby(own, key=lambda one: bool(mixed and (ambiguous[one[0]] or counts[one[0]] < few))):
            if by_events:
                yield from map(request.made, self._by_events([*run]))
            else:
                vertices, words = self.vertices, None
                if request.words is not None and not request.compact:
                    words = request.words.of(vertices.events, vertices.variables)
                yield from self.operator.list(ListRequest([*run], made, request.threads, words=words))

    def _bound(self, batch: PathBatch) -> PathBatch:
        return batch.on(*self.vertices, self.first)

    def _by_events(self, ranges: Sequence[RankRange]) -> Iterator[PathBatch]:
        """Yield results in the order of their events; groups that follow one another are gone through together."""
        first, last = ranges[0][0], ranges[-1][0]
        ends = list(accumulate(self.operator.counts[first : last + 1], initial=0))  # of the results of each group
        order, lengths = self._order(first, last + 1, ends[-1]), length_bounds(self.plan.bound.having)
        wanted: list[list[int]] = []
        for group, begin, end in ranges:
            begin, end = ends[group - first] + begin, ends[group - first] + end
            if wanted and wanted[-1][1] == begin:
                wanted[-1][1] = end
            else:
                wanted.append([begin, end])
        for begin, end in wanted:
            while begin < end:
                vertices, stops = order.paths(begin, min(self.plan.sizes.ordered_rows, end - begin), *lengths)
                if not len(stops):
                    return
                labels = partial(_labels_of_groups, first, ends, begin, len(stops))
                yield self._bound(PathBatch.of_ends(vertices, stops, labels))
                begin += len(stops)

    def _order(self, first: int, behind: int, total: int) -> EventOrder:
        paths = self.paths
        lo, hi = int(paths.begins[first]), int(paths.begins[behind])
        events = paths.events
        if behind > first + 1:  # those of each group come behind those of the groups before
            own = np.repeat(np.arange(behind - first), np.diff(paths.begins[first : behind + 1]))
            events = events.copy()
            events[lo:hi] += own * (int(events[lo:hi].max(initial=0)) + 1)
        vertices = BoundVertices(events, paths.codes)
        return EventOrder(paths.offsets, paths.successors, vertices, lo, hi, total)


def _labels_of_groups(first: int, ends: Sequence[int], begin: int, number: int) -> Labels:
    """Return ranks and groups of some results of groups from `first` on, whose results end at `ends`, after a 0."""
    here, last = bisect_right(ends, begin) - 1, bisect_left(ends, begin + number)
    borders = [begin, *ends[here + 1 : last], begin + number]
    lengths = np.diff(np.array([border - begin for border in borders]))
    return label_runs([begin - ends[here], *[0] * (len(lengths) - 1)], np.arange(here, last) + first, lengths)


class GroupParts(ABC):
    """The paths of the groups of a slice, some at a time; those of the last ones asked for are kept."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        self.plan, self.events, self.threads = plan, events, threads
        self.known: PatternPart | None = None

    @property
    @abstractmethod
    def variables(self) -> Variables:
        """Which events may fill which variable."""

    @cached_property
    def is_short(self) -> bool:
        """Whether the events are many, and few can follow each: then graphs are small, and serve for listing, too."""
        reach = self.events.until - np.arange(len(self.events))
        return len(reach) >= MANY and bool(reach.max() <= 4 * FEW and reach.mean() <= FEW)

    @cached_property
    def is_explored(self) -> bool:
        """Whether short spans are listed together: their starts follow one another, and each would have a graph."""
        graph = self.plan.positions
        return graph is not None and graph.span and graph.is_preceded and self.is_short

    def parts(self, groups: Sequence[int]) -> Iterator[PatternPart]:
        """Yield the paths of groups, in rising order: of as many together as the edges of those before allow."""
        usual, every = self.plan.sizes.events_at_once, self.events.groups
        if self.known is None and 0 < len(groups) == len(every) and int((every.hi - every.lo).sum()) <= usual:
            self.part(0, len(groups))
        known = self.known
        at_hand = known is not None and len(groups) and known.first <= groups[0] <= groups[-1] < known.last
        if known is not None and at_hand and known.holds(None):
            yield known
            return
        wanted = np.zeros(len(every), np.bool_)
        wanted[np.asarray(groups, np.int64)] = True
        sizes = np.cumsum((every.hi - every.lo) * wanted)
        at, size = 0, usual
        while at < len(groups):
            first = groups[at]
            before = int(sizes[first - 1]) if first else 0
            last = int(np.searchsorted(sizes, before + size, side="right"))
            part = self.part(first, min(max(first + 1, last), groups[-1] + 1), wanted)
            yield part
            events, edges = int(sizes[part.last - 1]) - before, len(part.paths.successors)
            size = max(min(events * EDGES_AT_ONCE // max(edges, 1), MOST_AT_ONCE * usual), usual // 8)
            at = bisect_left(groups, part.last)

    def part(self, first: int, last: int, wanted: NDArray[np.bool_] | None = None) -> PatternPart:
        """Return the paths of groups `[first, last)`, or of others from `first` on that are at hand.

        Groups that are not `wanted` may have none: where results are rare, most windows are not looked into.
        """
        known = self.known
        if known is None or not known.first <= first < known.last or not known.holds(wanted):
            groups, held = self.events.groups, np.ones(last - first, np.bool_)
            if wanted is not None and not wanted[first:last].all():
                held = wanted[first:last]
                groups = _emptied(groups, first, held)
            paths = self._paths(groups, first, last)
            last = first + len(paths.begins) - 1  # or fewer groups, if they take much memory
            known = PatternPart(self.plan, paths, first, last, self.threads)
            known.held = held[: last - first]
            self.known = known
        return known

    def _paths(self, groups: Groups, first: int, last: int) -> Paths:
        """Return the results of the groups `[first, last)`, or of the first of them."""
        plan = self.plan
        if plan.positions is not None and plan.operator.method != SEARCH and not self.is_explored:
            events = self.events if groups is self.events.groups else replace(self.events, groups=groups)
            with suppress(NotSeparable):
                paths = PositionPaths(plan, plan.positions, events, self.variables, first, last).paths()
                return replace(paths, codes=position_codes(plan.positions, self.variables)[paths.codes])
        return self.exploration.paths(groups, first, last)

    @cached_property
    def exploration(self) -> Exploration:
        """The exploration of matches by tables."""
        return Exploration(self.plan, self.events, self.variables)

    def all_parts(self) -> Iterator[PatternPart]:
        """Yield the paths of all groups, each once."""
        return self.parts(range(len(self.events.groups)))


def _emptied(groups: Groups, first: int, held: NDArray[np.bool_]) -> Groups:
    """Return groups of which some, from `first` on, have no events: they lie where the first of the others begins."""
    lo, hi = groups.lo.copy(), groups.hi.copy()
    here = slice(first, first + len(held))
    base = lo[here][held][0]
    lo[here], hi[here] = np.where(held, lo[here], base), np.where(held, hi[here], base)
    return Groups(lo, hi, groups.number)
