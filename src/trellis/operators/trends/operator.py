"""The trend operator: counts, aggregates and lists the trends of a slice; it never knows which engine runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.digits import bytes_text
from trellis.errors import TrellisError
from trellis.events.columns.words import text_widths
from trellis.events.slice import Ints, Slice
from trellis.language.bound import BoundQuery
from trellis.limits import can_be_searched, warn_of_all
from trellis.operators.contract import BestRequest, Counts, ListRequest, StructuredOperator
from trellis.operators.trends.count import Counter
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import AttributeIndex
from trellis.operators.trends.structure import TrendStructure
from trellis.operators.trends.tasks import TrendTasks, length_bounds
from trellis.plan.plan import Plan
from trellis.plan.sizes import Sizes
from trellis.properties import cached_property

# Counting has to start fast: what else can be asked is imported where it is, since its kernels take their time.
if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.batch import PathBatch
    from trellis.operators.per_event import EventNumbers
    from trellis.operators.ranks import Ranks
    from trellis.operators.trends.direct import DirectEdges
    from trellis.operators.trends.leading import Places
    from trellis.operators.trends.unrank import IndexUnranker, SliceUnranker

MOST_BYTES = (1 << 31) - 1  # of the texts of a column of a batch, whichever events come out: Arrow's limit
MOST_SEARCHED = 256  # tasks, for the same
MOST_FIRST = 16  # tasks, for the first trends

T = TypeVar("T")


class TrendOperator(StructuredOperator[TrendStructure]):
    """Trends of one Kleene variable whose events are asked about their neighbours only.

    They are counted and unranked on the attribute index where there is one, else on the event graph; they are listed
    on the graph, unless it has too many edges and the trends wanted are few.
    """

    def _make_structure(self) -> TrendStructure:
        return TrendStructure(self.plan, self.events, self.threads)

    def variant(self, plan: Plan, events: Slice) -> Self:
        """Return an operator for the same trends, or for those that HAVING leaves of them, with other output."""
        same = plan.bound.having == self.structure.plan.bound.having
        return type(self)(plan, events, self.threads, self.structure if same else self.structure.with_having(plan))

    def prepare(self) -> None:
        """Build all that listing needs."""
        _ = self.counts, self.structure.task_sizes, self.tasks
        with suppress(TrellisError):  # too many edges: trends are found one by one, or refused
            _ = self.graph

    def lists_at_once(self) -> bool:
        """Build all that listing needs."""
        self.prepare()
        return True

    @property
    def graph(self) -> EventGraph:
        """The event graph."""
        return self.structure.graph

    @property
    def direct(self) -> DirectEdges | None:
        """The direct successors, where trends are to be maximal."""
        return self.structure.direct

    @property
    def index(self) -> AttributeIndex | None:
        """The attribute index, or None where edges are needed."""
        return self.structure.index

    @property
    def tasks(self) -> TrendTasks:
        """The tasks: windows, or the trends of a span that begin at one event."""
        return self.structure.tasks

    @cached_property
    def counter(self) -> Counter:
        """Counts without listing."""
        return self.structure.counter(self.events)

    def aggregate(self) -> Sequence[Aggregates]:
        """Return the states of AGGREGATE of each group."""
        from trellis.operators.trends.aggregate import aggregate

        return aggregate(self.plan, self.counter, self.counts)

    def per_event(self) -> EventNumbers | None:
        """Return the states of AGGREGATE PER EVENT, by a pass in each direction; None under HAVING."""
        if self.plan.bound.having:
            return None
        from trellis.operators.per_event import join_rows
        from trellis.operators.trends.per_event import numbers_through
        from trellis.operators.trends.through import TrendsThrough

        outputs = [named.output for named in self.plan.bound.aggregates]
        through = TrendsThrough(self.structure, self.counts)
        return join_rows(outputs, [numbers_through(through, outputs, self.events.columns)], len(self.events))

    @cached_property
    def unranker(self) -> SliceUnranker:
        """The trends by rank."""
        from trellis.operators.trends.unrank import SliceUnranker

        structure = self.structure  # which does not hold this operator, as the operator holds what asks it
        return SliceUnranker(
            self.events, self.tasks, self.index, lambda: structure.graph, self.plan.bound.having,
            lambda: structure.task_sizes, self.threads, self.plan.sizes,
        )  # fmt: skip

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the trends of a group with given ranks, of any size, in rising order."""
        few = self.structure.few
        return self.unranker.at(group, ranks) if few is None else few.at(group, ranks)

    def rank_ends(self, group: int) -> tuple[Ints, NDArray[Any]]:
        """Return the first events of a group's trends, rising, and how many trends there are up to each of them."""
        if not self.tasks.single or self.structure.few is not None:
            return super().rank_ends(group)
        from trellis.operators.ranks import numbers_of

        own = slice(*np.searchsorted(self.tasks.group, [group, group + 1]))
        sizes = self.structure.task_sizes[own]
        numbers = numbers_of(sizes, sum(sizes))
        some = np.flatnonzero(numbers > 0)
        return self.tasks.lo[own][some], np.cumsum(numbers)[some]

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[PathBatch]:
        """Yield the trends of groups with given ranks, in rising order, in bounded batches."""
        if self.structure.few is not None:
            return super().at_each(chosen)
        return self.unranker.at_each(chosen, batch_values(self.events, self.plan.sizes))

    def counts_before_listing(self) -> Counts:
        """Return the counts; few events are counted on the graph, which to list needs, and not on an index."""
        self.structure.lists = True
        return self.counts

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the trends with given ranks, in bounded batches; threads list parts of any task."""
        all_few = None if request.compact else self.structure.few
        if all_few is not None:
            values = self._values(request.positions_only)
            return map(request.make, all_few.of(request.ranges, values, request.words))
        from trellis.operators.trends.listing import Listing, TraversalInput
        from trellis.operators.trends.task_ranges import TaskRanges

        few = request.rows <= self.plan.sizes.most_picked and not request.compact
        if few and self._picks_sooner(request):
            return self._picked(request)
        try:
            graph = self.graph
        except TrellisError:
            if not few:
                raise
            return self._picked(request)
        least, most = length_bounds(self.plan.bound.having)
        traversal = TraversalInput(self.events, self.tasks, graph, least, most, self._path)
        ranges = TaskRanges(self.tasks, self.structure.task_sizes, request.ranges)
        values = self._values(request.positions_only)
        if request.words is not None:
            values = min(values, self.plan.sizes.word_values)
        listing = Listing(
            traversal, ranges, request.make, values, request.threads, request.compact, request.words, self.plan.sizes
        )
        return iter(listing)

    def first(self, begin: int, end: int) -> PathBatch | None:
        """Return the trends of all groups from one on, if they are few and need not be counted."""
        from trellis.operators.trends.unrank import most_first

        few = end - begin <= self.plan.sizes.found_alone and end <= most_first(len(self.events))
        if not few or not self._picks_sooner(ListRequest([(0, begin, end)], lambda some: some)):
            return None
        return self.first_on_index(begin, end)

    def first_on_index(self, begin: int, end: int) -> PathBatch | None:
        """Return the same by the index, whatever is quicker; None without one, or where many groups have too few."""
        from trellis.operators.batch import PathBatch
        from trellis.operators.ranks import Ranks

        if self.plan.bound.having or self.index is None or self.tasks.single:
            return None
        lots: list[PathBatch] = []
        for seen, task in enumerate(np.flatnonzero(self.tasks.hi > self.tasks.lo).tolist()):
            if begin >= end:
                break
            found = self._first_of(task) if seen < MOST_FIRST else None
            if found is None:
                return None
            ranks = Ranks.of(range(begin, max(begin, min(end, found.total))))
            labels = ranks.shown(), np.full(len(ranks), self.tasks.group[task], np.int64)
            some = PathBatch.of_ends(*found.one_by_one(ranks), labels)
            lots.append(PathBatch(some.positions, some.offsets.astype(np.int32), labels))
            begin, end = max(0, begin - found.total), end - found.total
        return lots[0] if len(lots) == 1 else PathBatch.concat(lots)

    def _first_of(self, task: int) -> IndexUnranker | None:
        """Return the trends of a task by small ranks; None where successors are not ranges of the index."""
        from trellis.operators.trends.unrank import IndexUnranker, window_of

        if task not in self._firsts:
            assert self.index is not None
            window = window_of(self.index, self.tasks, task)
            usable = window is not None and not len(window.reach)
            self._firsts[task] = IndexUnranker.of_first(window) if window is not None and usable else None
        return self._firsts[task]

    @cached_property
    def _firsts(self) -> dict[int, IndexUnranker | None]:
        """The trends of tasks by small ranks, as far as they were asked for."""
        return {}

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List the best trends alone, where they can be searched and that is quicker; else all."""
        found = self.search_best(request)
        return self.list(request.all_of(self.counts)) if found is None else map(request.make, found)

    def search_best(self, request: BestRequest[T]) -> Sequence[PathBatch] | None:
        """Return the best trends, or None where all are to be listed."""
        bound = request.bound
        self.structure.lists = True
        if bound.limit is None or bound.limit_per:
            return None
        most = min(self.plan.sizes.best_few, request.max_trends)
        if most >= 0 and (few := self.structure.few) is not None and len(few.batch) <= most:
            return None
        from trellis.operators.trends.best import BestTrends, may_be_worthwhile
        from trellis.operators.trends.links import links_of

        limit = bound.limit + bound.offset if bound.limit else 0
        by_index = self._search_by_index(request, limit)
        if by_index is not None or not self.structure.may_have_graph:
            return by_index
        total = self.structure.about
        if total <= request.max_trends and not may_be_worthwhile(limit, total, self.plan.sizes):
            return None
        try:
            graph = self.graph
        except TrellisError:
            if total > self.plan.sizes.most_picked:
                raise
            return None
        links, sizes = links_of(graph, self.index), self.plan.sizes
        best, found = BestTrends(bound, self.events, links, self.tasks, sizes, self.structure.before), None
        if best.steps is not None:
            if not best.is_worthwhile(limit, request.per_group, total):
                return None
            found = best.find(limit, request.per_group, self._values(request.positions_only))
        if found is None and can_be_searched(bound):  # else it is known already
            warn_of_all(sum(self.counts), request.max_trends)
        return found

    def leading(self, bound: BoundQuery) -> tuple[PathBatch, Ints] | None:
        """Return the trends that AFTER MATCH keeps, on the graph; None where that has too many edges."""
        assert bound.after_match is not None
        from trellis.operators.trends.leading import Places

        size = len(self.events)
        kept = self.leading_to(bound, Places(bound.after_match.skip, np.arange(size), np.ones(size, np.bool_)))
        return None if kept is None else (kept, np.empty(0, np.int64))

    def leading_to(self, bound: BoundQuery, places: Places) -> PathBatch | None:
        """Return the same for vertices that tell where the next result may begin."""
        from trellis.operators.trends.leading import leading_trends

        by_index = self._leading_by_index(bound, places)
        if by_index is not None:
            return by_index
        if not self.structure.may_have_graph:
            return None
        if not self.structure.has_graph and self.events.pairs > self.plan.sizes.graph_edges:
            return None
        sizes = self.plan.sizes

        def are_few() -> bool:
            return sum(self.counts) <= sizes.skip_few * len(self.events)

        return leading_trends(bound, self.events, self.graph, self.tasks, places, sizes, are_few)

    def _leading_by_index(self, bound: BoundQuery, places: Places) -> PathBatch | None:
        """Return the same, searched without a graph; None where that cannot be, or is no quicker."""
        from trellis.operators.batch import PathBatch
        from trellis.operators.trends.leading import leading_by_index
        from trellis.operators.trends.links import links_by_index

        tasks, structure = self.tasks, self.structure
        if tasks.single or self.plan.bound.having:
            return None
        some = np.flatnonzero(tasks.hi > tasks.lo).tolist()
        small = structure.may_have_graph and self.events.pairs < self.plan.sizes.pairs_of_graph
        if structure.has_graph or small or len(some) > MOST_SEARCHED or self.index is None:
            return None
        found: list[PathBatch] = []
        for task in some:
            links = links_by_index(self.index, tasks, task)
            own = tasks.chosen([task])
            kept = None if links is None else leading_by_index(bound, self.events, links, own, places, self.plan.sizes)
            if kept is None:
                return None
            found.append(kept)
        return PathBatch.concat(found)

    def _search_by_index(self, request: BestRequest[T], limit: int) -> Sequence[PathBatch] | None:
        """Return the best trends, searched without a graph; None where that cannot be, or is no quicker."""
        from trellis.operators.trends.best import BestTrends, may_be_worthwhile
        from trellis.operators.trends.links import links_by_index

        bound, tasks, index = request.bound, self.tasks, self.index
        if index is None or tasks.single or self.plan.bound.having or not can_be_searched(bound):
            return None
        if len(tasks) > MOST_SEARCHED:
            return None
        few = self.plan.sizes.pairs_of_graph
        if self.structure.may_have_graph and (self.structure.has_graph or self.events.pairs < few):
            return None
        some = np.flatnonzero(tasks.hi > tasks.lo).tolist()
        every = [(task, links) for task in some if (links := links_by_index(index, tasks, task)) is not None]
        if len(every) < len(some):
            return None
        total = sum(links.total for _, links in every)
        if total <= request.max_trends and not may_be_worthwhile(limit, total, self.plan.sizes):
            return None
        found: list[PathBatch] = []
        for task, links in every:
            best = BestTrends(bound, self.events, links, tasks.chosen([task]), self.plan.sizes)
            if best.steps is None:
                return None
            paths = best.find(limit, request.per_group, self._values(request.positions_only))
            if paths is None:
                return None
            found += paths
        return found

    def describe(self) -> dict[str, str]:
        """Say how the successors of events are found, and how large that is."""
        from trellis.operators.trends.direct_count import DirectCounter

        index, direct = self.index, self.direct
        if direct is not None and isinstance(self.counter, DirectCounter):
            return {"successors": f"direct successors by {direct.method}, not listed: {direct.complexity}"}
        if index is None:
            graph = self.graph
            size = graph.offsets.nbytes + graph.successors.nbytes + graph.latest.nbytes
            edges = f"{len(graph.successors):,} edges between {len(self.events):,} events, {bytes_text(size)}"
            how = "" if direct is None else f"; direct successors by {direct.method}: {direct.complexity}"
            return {"successors": f"event graph: {edges}{how}"}
        keyed = " within a key" if index.keyed and index.kind != "key" else ""
        parts = f", in {len(index.parts):,} parts" if len(index.parts) > 1 else ""
        return {
            "successors": f"attribute index ({index.kind}{keyed}): {index.vertices:,} attribute vertices for "
            f"{index.parts.size:,} events{parts}, {bytes_text(index.nbytes)}"
        }

    def _values(self, positions_only: bool) -> int:
        """Return how many events a batch may name."""
        return self.plan.sizes.bare_values if positions_only else batch_values(self.events, self.plan.sizes)

    def _path(self, group: int, rank: int) -> NDArray[np.int32]:
        return self.at(group, [rank]).positions

    def _picks_sooner(self, request: ListRequest[T]) -> bool:
        """Return whether trends are found one by one on the index before the edges of a graph are."""
        if self.structure.has_graph or self.index is None or self.index.keyed or self.plan.bound.having:
            return False
        return picks_sooner(self.events, request, self.plan.sizes)

    def _picked(self, request: ListRequest[T]) -> Iterator[T]:
        """List trends by their ranks, without a graph."""
        return map(request.made, self.at_each(request.ranks()))


def picks_sooner(events: Slice, request: ListRequest[Any], sizes: Sizes) -> bool:
    """Return whether results are found by their ranks on an index before all pairs of events are tested."""
    ranges = [one for one in request.ranges if one[1] < one[2]]
    if request.rows > sizes.most_picked or request.compact or not ranges:
        return False
    begin, end = events.groups.lo[ranges[0][0]], events.groups.hi[ranges[-1][0]]
    pairs = events.pairs_between(begin, end)
    if pairs > sizes.graph_edges and len(ranges) == 1:
        return True
    each = sizes.pairs_of_one if request.rows <= sizes.found_alone else sizes.pairs_of_many
    ready = sum(int(events.groups.hi[g] - events.groups.lo[g]) for g, _, _ in ranges) * sizes.pairs_of_event
    return request.rows * each + len(ranges) * sizes.pairs_of_group + ready < pairs


def batch_values(events: Slice, sizes: Sizes) -> int:
    """Return how many events a batch may name: fewer where texts are long."""
    most = sizes.batch_values
    for column in [*events.columns.values(), events.ids]:
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            widths = text_widths(column)
            widest, total = int(widths.max(initial=1)), int(widths.sum())
            most = min(most, sizes.batch_bytes * len(column) // max(total, 1), MOST_BYTES // max(widest, 1))
    return most
