"""The trend operator: counts, aggregates and lists the trends of a slice; it never knows which engine runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery
from trellis.language.syntax import Report
from trellis.limits import can_be_searched, warn_of_all
from trellis.operators.trends.count import Counter, GraphRelation
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.operators.trends.index import AttributeIndex, build_index
from trellis.operators.trends.tasks import Tasks, length_bounds, make_tasks, with_first_ends
from trellis.plan.plan import Plan

# Counting has to start fast: what else can be asked is imported where it is, since its kernels take their time.
if TYPE_CHECKING:
    from trellis.operators.batch import Range, Trends, Walked
    from trellis.operators.ranks import Ranks
    from trellis.operators.trends.address import AddressBook
    from trellis.operators.trends.aggregate import Numbers
    from trellis.operators.trends.direct import Direct

BATCH_VALUES = 1 << 18  # events that the trends of a batch name
BARE_VALUES = 3 << 19  # the same, where nothing but positions comes out
BATCH_BYTES = 1 << 26  # of the texts of a column, if those of all events come out equally often
MOST_BYTES = (1 << 31) - 1  # of the texts of a column of a batch, whichever events come out: Arrow's limit
MOST_PICKED = 1_000_000  # trends that are found one by one where there are too many edges for a graph
PAIRS_WORTH = 1 << 15  # pairs of events that are tested in the time in which one trend is found by its rank
SHARED = ("graph", "direct", "index", "tasks", "counts")  # what does not depend on the output

T = TypeVar("T")


class TrendOperator:
    """What can be asked of the trends of one slice."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        self.plan, self.events, self.threads = plan, events, threads

    def variant(self, plan: Plan, events: Slice) -> TrendOperator:
        """Return an operator for the same trends with other output; what is already built is shared."""
        other = type(self)(plan, events, self.threads)
        other.__dict__ |= {name: self.__dict__[name] for name in SHARED if name in self.__dict__}
        return other

    def make_ready(self) -> None:
        """Build all that listing needs, before copies of this are given to others."""
        _ = self.counts, self._task_sizes, self.tasks
        with suppress(TrellisError):  # too many edges: trends are found one by one, or refused
            _ = self.graph

    def __getstate__(self) -> dict[str, object]:
        """Leave out what only refers to the rest."""
        kept = {"plan", "events", "threads", "graph", "index", "tasks", "counts", "_task_sizes"}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    @cached_property
    def graph(self) -> EventGraph:
        """The event graph."""
        return build_graph(self.plan, self.events, self.direct)

    @cached_property
    def direct(self) -> Direct | None:
        """The direct successors, where trends are to be maximal."""
        if self.plan.bound.report is not Report.MAXIMAL:
            return None
        from trellis.operators.trends.direct import find_direct

        return find_direct(self.plan, self.events)

    @cached_property
    def index(self) -> AttributeIndex | None:
        """The attribute index, or None where edges are needed."""
        tasks = make_tasks(self.plan, self.events)
        return build_index(self.plan, self.events, tasks.lo, tasks.hi, tasks.single, self.threads)

    @cached_property
    def tasks(self) -> Tasks:
        """What is counted and walked together."""
        tasks = make_tasks(self.plan, self.events)
        if not tasks.single:
            return tasks
        latest = self.graph.latest if self.index is None else self.index.events.latest
        tasks = with_first_ends(tasks, self.events, latest)
        return tasks if self.events.begins is None else tasks.chosen(self.events.begins[tasks.lo])

    @cached_property
    def counter(self) -> Counter:
        """Counts without listing."""
        return self._direct_counter or self._plain_counter

    @property
    def _direct_counter(self) -> Counter | None:
        """Counts without direct edges, where there are too many of them."""
        if self.direct is None:
            return None
        from trellis.operators.trends.direct_count import DirectCounter, can_count, is_better, most_trends

        if not can_count(self.plan) or not is_better(self.direct):
            return None
        at_most = partial(most_trends, self.plan, self.events, self.tasks)
        return DirectCounter(self.direct, self.tasks, lambda: self.graph, at_most, self.threads)

    @property
    def _plain_counter(self) -> Counter:
        relation = GraphRelation(self.events, self.graph) if self.index is None else self.index
        bounds = length_bounds(self.plan.bound.having)
        return Counter(self.events, relation, self.tasks, lambda: self.graph, *bounds, threads=self.threads)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of trends of each group."""
        return self.counter.counts()

    def aggregate(self) -> list[Numbers]:
        """Return what AGGREGATE says of each group."""
        from trellis.operators.trends.aggregate import aggregate

        return aggregate(self.plan, self.counter)

    @cached_property
    def addresses(self) -> AddressBook:
        """The trends by rank."""
        from trellis.operators.trends.address import AddressBook

        return AddressBook(
            self.events, self.tasks, self.index, lambda: self.graph, self.plan.bound.having, lambda: self._task_sizes,
            self.threads,
        )  # fmt: skip

    def at(self, group: int, ranks: Sequence[int]) -> Walked:
        """Return the trends of a group with given ranks, in rising order, without those before them."""
        return self.addresses.at(group, ranks)

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[Walked]:
        """Yield the trends of groups with given ranks, in rising order, in bounded batches."""
        return self.addresses.at_each(chosen, _batch_values(self.events))

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Trends], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the trends with given ranks, in bounded batches, without the trends before them.

        Parameters
        ----------
        ranges
            Groups in their order, and for each the first rank and the one after the last.
        make
            Gets each batch, on the thread that listed it.
        threads
            How many threads list.
        compact
            Whether each trend is only told as far as it differs from the one before it: see `Listed`.
        bare
            Whether nothing of the events but their positions comes out, so that batches can be larger.
        """
        from trellis.operators.trends.listing import Ground, Listing
        from trellis.operators.trends.stretches import Stretches

        rows = sum(end - begin for _, begin, end in ranges)
        few = rows <= MOST_PICKED and not compact
        if few and self._picks_sooner(rows):
            return self._picked(ranges, make)
        try:
            graph = self.graph
        except TrellisError:
            if not few:
                raise
            return self._picked(ranges, make)
        least, most = length_bounds(self.plan.bound.having)
        ground = Ground(self.events, self.tasks, graph, least, most, self._path)
        stretches = Stretches(self.tasks, self._task_sizes, ranges)
        values = self._batch_values(bare)
        return iter(Listing(ground, stretches, make, values, threads, compact))

    def ordered(
        self, bound: BoundQuery, make: Callable[[Trends], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the trends that can be in the result of ORDER BY, in the order (group, rank).

        With LIMIT these are the best ones alone, of all groups or of each group, where they can be searched.

        Parameters
        ----------
        bound
            The query, whose ORDER BY, LIMIT and OFFSET count.
        make, threads, bare
            As in `listed`.
        max_trends
            The bound on listing: a warning tells where more results have to be listed.
        per_group
            Whether the best of each group are wanted.
        """
        values = self._batch_values(bare)
        found = self._best(bound, max_trends, per_group, values)
        if found is not None:
            return map(make, found)
        return self.listed([(group, 0, count) for group, count in enumerate(self.counts)], make, threads, bare=bare)

    def _best(self, bound: BoundQuery, max_trends: int, per_group: bool, values: int) -> list[Walked] | None:
        """Return the best trends, or None where all are to be listed."""
        if bound.limit is None:
            return None
        from trellis.operators.trends.best import BestTrends, may_be_worthwhile
        from trellis.operators.trends.search import links_of

        total, limit = sum(self.counts), bound.limit + bound.offset if bound.limit else 0
        if total <= max_trends and not may_be_worthwhile(limit, total):
            return None
        try:
            graph = self.graph
        except TrellisError:
            if total > MOST_PICKED:
                raise
            return None
        best, found = BestTrends(bound, self.events, links_of(graph), self.tasks), None
        if best.steps is not None:
            if not best.is_worthwhile(limit, per_group, total):
                return None
            found = best.find(limit, per_group, values)
        if found is None and can_be_searched(bound):  # else it is known already
            warn_of_all(total, max_trends)
        return found

    def _batch_values(self, bare: bool) -> int:
        return BARE_VALUES if bare else _batch_values(self.events)

    def _path(self, group: int, rank: int) -> NDArray[np.int32]:
        return self.at(group, [rank]).positions

    @cached_property
    def _task_sizes(self) -> list[int]:
        """The exact number of trends of each task."""
        return self.counter.of_tasks(self.tasks) if self.tasks.single else self.counts

    def _picks_sooner(self, rows: int) -> bool:
        """Return whether trends are found one by one on the index before the edges of a graph are."""
        if "graph" in self.__dict__ or self.index is None or self.index.keyed or self.plan.bound.having:
            return False
        pairs = int((self.events.until - np.arange(1, len(self.events) + 1)).sum())
        return rows * PAIRS_WORTH < pairs

    def _picked(self, ranges: Sequence[Range], make: Callable[[Trends], T]) -> Iterator[T]:
        """List trends by their ranks, without a graph."""
        from trellis.operators.ranks import Ranks

        return map(make, self.at_each({group: Ranks.of(range(begin, end)) for group, begin, end in ranges}))


def _batch_values(events: Slice) -> int:
    """Return how many events a batch may name: fewer where texts are long."""
    most = BATCH_VALUES
    for column in [*events.columns.values(), events.ids]:
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            widths = pc.binary_length(column)
            widest, total = pc.max(widths).as_py() or 0, pc.sum(widths).as_py() or 0
            most = min(most, BATCH_BYTES * len(column) // max(total, 1), MOST_BYTES // max(widest, 1))
    return most
