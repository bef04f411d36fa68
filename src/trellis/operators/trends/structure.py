"""The graph, index, tasks and counts of trends: they do not depend on the output, so variants share them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.language.syntax import Report
from trellis.operators.contract import state_of
from trellis.operators.trends.count import Counter, GraphRelation
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.operators.trends.index import AttributeIndex, build_index
from trellis.operators.trends.tasks import TrendTasks, length_bounds, make_tasks, with_first_ends
from trellis.plan.plan import Plan
from trellis.properties import cached_property

# Counting has to start fast: what else can be asked is imported where it is, since its kernels take their time.
if TYPE_CHECKING:
    from trellis.operators.few import FewPaths
    from trellis.operators.trends.direct import DirectEdges

LARGEST = 1 << 1000  # numbers of trends, as far as they are only compared
BuildGraph = Callable[[Plan, Slice, "DirectEdges | None"], EventGraph]


class TrendStructure:
    """The event graph, the attribute index, the tasks and the counts of a slice, each built when it is needed.

    `build` makes the event graph, for algorithms that ask for a construction of their own.
    """

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, build: BuildGraph = build_graph) -> None:
        self.plan, self.events, self.threads, self._build = plan, events, threads, build
        self.lists = False  # whether what is counted will be listed

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only refers to the rest, and the direct successors, which the graph was made of."""
        return state_of(
            self, "plan", "events", "threads", "_build", "lists", "graph", "index", "tasks", "counts", "task_sizes"
        )  # fmt: skip

    @cached_property
    def graph(self) -> EventGraph:
        """The event graph.

        Raises
        ------
        TrellisError
            If there are too many edges.
        """
        return self._build(self.plan, self.events, self.direct)

    may_have_graph = True  # if there are not too many edges
    given = False  # whether the graph or index was made of something else than the plan's conditions

    @property
    def has_graph(self) -> bool:
        """Whether the graph is already built."""
        return "graph" in vars(self)

    @cached_property
    def direct(self) -> DirectEdges | None:
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

    @property
    def _index(self) -> AttributeIndex:
        assert self.index is not None
        return self.index

    @property
    def _by_graph(self) -> bool:
        """Whether trends are counted on the graph: the index cannot, or the graph is small."""
        return self._is_small or self.index is None

    @property
    def _is_small(self) -> bool:
        """Whether there are so few events that their graph counts sooner than an index; it may be listed as well."""
        if not self.may_have_graph or self.given:  # a given index tells where paths end; edges do not
            return False
        sizes = self.plan.sizes
        return self.events.pairs <= (sizes.counted_pairs if self.lists else sizes.small_pairs)

    def with_having(self, plan: Plan) -> TrendStructure:
        """Return the structure of the trends that another HAVING leaves."""
        return RestrictedStructure(plan, self)

    @cached_property
    def tasks(self) -> TrendTasks:
        """The tasks: windows, or the trends of a span that begin at one event."""
        tasks = make_tasks(self.plan, self.events)
        if not tasks.single:
            return tasks
        latest = self.graph.latest if self._by_graph else self._index.events.latest
        tasks = with_first_ends(tasks, self.events, latest)
        return tasks if self.events.begins is None else tasks.chosen(self.events.begins[tasks.lo])

    def counter(self, events: Slice) -> Counter:
        """Return the counter, which counts without listing, and sums over columns of `events`."""
        if events is self.events:
            return self._own_counter
        return self._direct_counter(events) or self._plain_counter(events)

    @cached_property
    def _own_counter(self) -> Counter:
        return self._direct_counter(self.events) or self._plain_counter(self.events)

    def _direct_counter(self, events: Slice) -> Counter | None:
        """Counts without direct edges, where there are too many of them."""
        if self.direct is None:
            return None
        from trellis.operators.trends.direct_count import DirectCounter, can_count, is_better, most_trends

        if not can_count(self.plan) or not is_better(self.direct):
            return None
        at_most = partial(most_trends, self.plan, self.events, self.tasks)
        return DirectCounter(self.direct, self.tasks, self._late_graph, at_most, self.threads, events, self.plan.sizes)

    def _plain_counter(self, events: Slice) -> Counter:
        relation = GraphRelation(events, self.graph) if self._by_graph else self._index
        bounds = length_bounds(self.plan.bound.having)
        return Counter(
            events, relation, self.tasks, self._late_graph, *bounds, threads=self.threads, sizes=self.plan.sizes
        )

    @property
    def _late_graph(self) -> Callable[[], EventGraph]:
        """The graph for a counter, built when it asks; the counter is held by this, so it holds this weakly."""
        own = proxy(self)
        return lambda: own.graph

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of trends of each group."""
        few = self.few
        return self.counter(self.events).counts() if few is None else few.counts

    @property
    def few(self) -> FewPaths | None:
        """All trends, where these are few, of few events."""
        return self._few if self._is_small else None

    @cached_property
    def _few(self) -> FewPaths | None:
        from trellis.operators.trends.few import find_few

        graph, lengths = self.graph.of_tasks(self.tasks, self.events.usable), length_bounds(self.plan.bound.having)
        return find_few(graph, self.tasks.group, len(self.events.groups), lengths, self.plan.sizes.few_rows)

    def before(self, tasks: Ints) -> NDArray[np.uint64]:
        """Return how many trends of its group come before those of each of some tasks, at most 2**64 - 1."""
        own = self.tasks
        if not own.single or not len(tasks):
            return np.zeros(len(tasks), np.uint64)
        some = np.flatnonzero(np.isin(own.group[: tasks.max() + 1], own.group[tasks]))
        return self.counter(self.events).before(own.chosen(some))[np.searchsorted(some, tasks)]

    @property
    def about(self) -> float:
        """The number of all trends, or about that where it was not counted yet."""
        if "counts" in vars(self):
            return float(min(sum(self.counts), LARGEST))
        return float(self.counter(self.events).approximate().sum())

    @cached_property
    def task_sizes(self) -> list[int]:
        """The exact number of trends of each task."""
        return self.counter(self.events).of_tasks(self.tasks) if self.tasks.single else self.counts


class RestrictedStructure(TrendStructure):
    """The trends of a structure that another HAVING leaves: graph, index and tasks are those of `whole`."""

    def __init__(self, plan: Plan, whole: TrendStructure) -> None:
        super().__init__(plan, whole.events, whole.threads)
        self._whole = whole

    def __getstate__(self) -> dict[str, Any]:
        """Keep the structure of all trends."""
        return super().__getstate__() | {"_whole": self._whole}

    @property
    def graph(self) -> EventGraph:
        """The event graph."""
        return self._whole.graph

    @property
    def has_graph(self) -> bool:
        """Whether the graph is already built."""
        return self._whole.has_graph

    @property
    def direct(self) -> DirectEdges | None:
        """The direct successors, where trends are to be maximal."""
        return self._whole.direct

    @property
    def index(self) -> AttributeIndex | None:
        """The attribute index, or None where edges are needed."""
        return self._whole.index

    @property
    def tasks(self) -> TrendTasks:
        """The tasks."""
        return self._whole.tasks


class GivenStructure(TrendStructure):
    """A structure whose graph or index is known: paths over vertices that are not events.

    Without a graph nothing may be asked that needs edges: HAVING, listing, and the members of trends.
    """

    given = True

    def __init__(
        self, plan: Plan, events: Slice, threads: int = 1, *, graph: EventGraph | None = None,
        index: AttributeIndex | None = None, tasks: TrendTasks | None = None,
    ) -> None:  # fmt: skip
        super().__init__(plan, events, threads)
        self._given = graph, index, tasks

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was given."""
        return super().__getstate__() | {"_given": self._given}

    @property
    def graph(self) -> EventGraph:
        """The graph that was given."""
        if self._given[0] is None:
            raise AssertionError("this structure has an index only")
        return self._given[0]

    @property
    def has_graph(self) -> bool:
        """Whether a graph was given."""
        return self._given[0] is not None

    @property
    def may_have_graph(self) -> bool:  # type: ignore[override]
        """Whether a graph was given."""
        return self.has_graph

    @property
    def direct(self) -> None:
        """There are no direct successors: every path counts."""

    @property
    def index(self) -> AttributeIndex | None:
        """The index that was given."""
        return self._given[1]

    @cached_property
    def tasks(self) -> TrendTasks:
        """The tasks that were given, or those of the slice."""
        return super().tasks if self._given[2] is None else self._given[2]
