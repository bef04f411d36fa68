"""Counting and unranking on attribute indexes, one for each step between positions, without edges.

A vertex is an event together with how it was arrived at: as the first event of a match, or by a step. So it has one
place, in the index of that step, and its successors are ranges in the indexes of the steps that lead on from its
position. All these indexes lie beside each other in one, and the kernels for one variable work on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.adjacency import Adjacency, PairValues, encode_values
from trellis.events.slice import Groups, Slice
from trellis.kernels.count import passes, shapes
from trellis.kernels.count.algebra import lengths
from trellis.kernels.event_graph import edges as edge_kernel
from trellis.kernels.event_graph.positions import StepEdges, join_edges, lay_out, nearest_ends
from trellis.language.bound import BoundQuery
from trellis.language.syntax import Report
from trellis.operators.batch import PathBatch
from trellis.operators.contract import ListRequest
from trellis.operators.patterns.paths import BoundVertices, aggregating_plan, plan_over_vertices
from trellis.operators.patterns.positions import position_codes, stacked_edges
from trellis.operators.patterns.variables import Variables
from trellis.operators.trends.graph import EventGraph, edges_between
from trellis.operators.trends.index import DIVIDED, AttributeIndex, Parts, index_adjacency
from trellis.operators.trends.operator import TrendOperator
from trellis.operators.trends.structure import GivenStructure
from trellis.operators.trends.tasks import TrendTasks
from trellis.plan.plan import Plan
from trellis.plan.positions import PositionGraph
from trellis.plan.sizes import Sizes
from trellis.properties import cached_property

if TYPE_CHECKING:
    from trellis.operators.ranks import Ranks

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.bool_]
T = TypeVar("T")
SPARSE = 4  # attribute vertices for each vertex, from which on those that hold nothing are left out


@dataclass(frozen=True)
class _Arrival:
    """The way an event came to a position, by a step or as the first; `ends` and `goes_on` say what may come next."""

    position: int
    source: int | None
    ends: bool
    goes_on: bool


@dataclass(frozen=True)
class _Step:
    """The index of a step: the place of each event, its own segment, and the ranges of what may follow it."""

    index: AttributeIndex
    adjacency: Adjacency
    place: Small
    own: Small | None
    own_end: Small | None
    ranges: list[tuple[Small, Small]]


@dataclass(frozen=True)
class IndexedPositions:
    """The vertices of a slice on indexes, and what answers questions about them; edges are needed to list spans alone.

    Attributes
    ----------
    plan
        The plan of the pattern.
    vertices, positions
        The event of each vertex, and its variable; and its position in the pattern.
    structure
        The indexes and the tasks.
    in_order
        Whether paths in the order of their vertices are results in the order of their events.
    edges
        Makes the graph of the vertices.
    """

    plan: Plan
    vertices: BoundVertices
    positions: Ints
    structure: GivenStructure
    in_order: bool
    edges: Callable[[], EventGraph]

    @cached_property
    def operator(self) -> TrendOperator:
        """The operator over the vertices."""
        structure = self.structure
        return TrendOperator(structure.plan, structure.events, structure.threads, structure)

    def apart(self, rows: Ints, sizes: Ints, windows: Ints, tied: list[bool]) -> TrendOperator:
        """Return the operator over sets of vertices, each by itself.

        Parameters
        ----------
        rows, sizes, windows
            The vertices of all sets, how many each has, and its window.
        tied
            Whether events of a position may follow one another there, and some of them may be missing.
        """
        given = self.structure.index
        assert given is not None
        assert not isinstance(given.shape, DIVIDED)
        part, ends = given.parts.of_task[windows], np.cumsum(sizes)
        of, begins = np.repeat(np.arange(len(sizes)), sizes), ends - sizes
        at = rows + given.parts.offset[part][of]
        places = [np.take(one, at, axis=-1) for one in given.shape[: 5 if given.tails else 3]]
        width = given.parts.width[part]
        if width.sum() > SPARSE * len(rows):
            places, width = _dense(places, width, of)
        kind = shapes.Tails if given.tails else shapes.Ranges
        shape = kind(*places, *given.shape[len(places) :])
        last = np.append((np.diff(of) != 0) | (np.diff(given.events.later[rows]) != 0), True)
        later = np.repeat(np.flatnonzero(last) + 1, np.diff(np.flatnonzero(last), prepend=-1))
        size, behind = len(rows), self.structure.tasks.hi[windows][of]
        nearest = np.where(given.events.nearest[rows] >= behind, size, -1)
        latest = np.where(given.events.latest[rows] < 0, -1, size)
        known = shapes.EventNeighbours(later, nearest, latest, np.ones(size, np.bool_))
        number = np.arange(len(sizes))
        parts = Parts(begins, ends, np.zeros(len(sizes), np.int64), width, number)
        again = np.array(tied)[self.positions[rows]] & (given.events.nearest[rows] >= 0)
        if again.any():  # what could follow a last event may be missing
            first = np.full(size, size)
            passes.nearest_successors(lengths(False), shape, known, parts.as_tasks(), first)
            nearest[again] = np.where(first[again] < ends[of[again]], -1, size)
        tasks = TrendTasks(begins, ends, begins, number, number, False, every=False)
        groups = Groups(begins, ends, np.zeros(len(sizes), np.int64))
        index = AttributeIndex("steps", True, shape, known, parts)
        structure = _structure(self.plan, np.append(0, ends), groups, self.structure.threads, index, tasks)
        return TrendOperator(structure.plan, structure.events, structure.threads, structure)

    def over_vertices(
        self, bound: BoundQuery, columns: Mapping[str, pa.Array], edges: bool = False
    ) -> TrendOperator:  # fmt: skip
        """Return the operator over the vertices, perhaps with edges, for what a query aggregates of columns of them."""
        structure = self._with_edges if edges else self.structure
        plan = aggregating_plan(self.plan, bound)
        return TrendOperator(plan, replace(structure.events, columns=columns), structure.threads, structure)

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks; only where these are `in_order`."""
        return self.operator.at(group, ranks).on(*self.vertices)

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[PathBatch]:
        """Yield the results of groups with given ranks, in bounded batches; only where these are `in_order`."""
        return (some.on(*self.vertices) for some in self.operator.at_each(chosen))

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List results of spans on a graph that all starts share; only where these are `in_order`."""
        words = None if request.words is None or request.compact else request.words.of(*self.vertices)

        def made(batch: PathBatch) -> T:
            return request.made(batch.on(*self.vertices))

        return self._lister.list(ListRequest(request.ranges, made, request.threads, words=words))

    @cached_property
    def _lister(self) -> TrendOperator:
        """The operator over the vertices that has edges."""
        structure = self._with_edges
        return TrendOperator(structure.plan, structure.events, structure.threads, structure)

    @cached_property
    def _with_edges(self) -> GivenStructure:
        """The structure that has edges as well."""
        given = self.structure
        bounds = given.events.bounds
        events = replace(given.events, until=np.repeat(bounds[1:], np.diff(bounds)))
        return GivenStructure(
            given.plan, events, given.threads, graph=self.edges(), index=given.index, tasks=given.tasks
        )


def index_positions(plan: Plan, events: Slice, variables: Variables, threads: int = 1) -> IndexedPositions | None:
    """Return the vertices of a slice on indexes, or None where values allow no index."""
    graph = plan.positions
    assert graph is not None
    usable = [variables.usable[position.variable] for position in graph.positions]
    every = plan.bound.report is Report.ANY
    arrivals = _arrivals(graph, every)
    lo, hi, group = _tasks(graph, events, [usable[a.position] for a in arrivals if a.source is None])
    steps: dict[tuple[int, int], _Step] = {}
    values = PairValues.of_all(events.columns, len(events))
    known: dict[object, _Step] = {}  # where events of a variable are counted, those of others ask the same
    for source, target in graph.steps:
        names = (graph.positions[source].variable, graph.positions[target].variable)
        key = (*names, *map(id, graph.steps[source, target].conditions))
        step = known.get(key) or _step(graph, events, values, usable, (source, target), lo, hi, threads)
        if step is None:
            return None
        steps[source, target] = known[key] = step
    masks = [usable[a.position] if a.source is None else steps[a.source, a.position].adjacency.takes for a in arrivals]
    of_event, arrival = np.divmod(np.flatnonzero(np.stack(masks, axis=1)), len(masks))
    begins = np.zeros(len(events) + 1, np.int64)
    np.cumsum(np.bincount(of_event, minlength=len(events)), out=begins[1:])
    laid_out = _ArrivalVertices(graph, arrivals, of_event, arrival, begins)
    index = laid_out.index(steps, events, len(lo), every)
    number, behind = np.arange(len(lo)), begins[hi]
    if graph.span:
        first = np.flatnonzero(arrival < sum(a.source is None for a in arrivals))
        first_end = laid_out.first_ends(steps, events, first, every)
    else:
        first = first_end = begins[lo]
    tasks = TrendTasks(first, behind, first_end, group, number, graph.span, every=False)
    if events.begins is not None:
        tasks = tasks.chosen(events.begins[lo])
    positions = np.array([a.position for a in arrivals])[arrival]
    groups = Groups(begins[events.groups.lo], begins[events.groups.hi], events.groups.number)
    structure = _structure(plan, begins[events.bounds], groups, threads, index, tasks)
    vertices = BoundVertices(of_event, position_codes(graph, variables)[positions])
    edges = partial(laid_out.edges, steps, events, index, plan.sizes)
    return IndexedPositions(plan, vertices, positions, structure, is_in_order(graph, variables), edges)


def _structure(
    plan: Plan, bounds: Ints, groups: Groups, threads: int, index: AttributeIndex, tasks: TrendTasks
) -> GivenStructure:
    """Return the structure of a trend operator over vertices without columns, with their index and tasks."""
    size = int(bounds[-1])
    slice_ = Slice(
        {}, pa.nulls(size), np.empty(size, np.int8), np.ones(size, np.bool_), bounds, groups, np.empty(0, np.int64)
    )
    return GivenStructure(plan_over_vertices(plan), slice_, threads, index=index, tasks=tasks)


def _dense(places: list[Small], width: Ints, of: Ints) -> tuple[list[Small], Ints]:
    """Return numbers of attribute vertices among those that hold something, and how many each set has of these.

    The first of `places` has the attribute vertex of each vertex, or -1; the others are borders between them. `of` is
    the set of each vertex.
    """
    begins = np.cumsum(width) - width
    held = places[0] >= 0
    used = np.unique(begins[of[held]] + places[0][held])
    first = np.searchsorted(used, np.append(begins, begins[-1] + width[-1]))
    found = [(np.searchsorted(used, begins[of] + np.maximum(one, 0)) - first[of]).astype(np.int32) for one in places]
    found[0][~held] = -1
    return found, np.diff(first)


def _tasks(graph: PositionGraph, events: Slice, beginning: list[Flags]) -> tuple[Ints, Ints, Ints]:
    """Return the ranges of events in which results are found by themselves, and their groups.

    Those of a span begin at one vertex; `beginning` has for each way to begin which events may.
    """
    groups = events.groups
    if not graph.span:
        return groups.lo, groups.hi, np.arange(len(groups))
    starts, _ = np.nonzero(np.stack(beginning, axis=1))
    return starts, events.until[starts], np.searchsorted(groups.lo, starts, side="right") - 1


def _step(
    graph: PositionGraph, events: Slice, values: PairValues, usable: list[Flags], ends: tuple[int, int], lo: Ints,
    hi: Ints, threads: int,
) -> _Step | None:  # fmt: skip
    """Return the index of a step, or None where it cannot have one."""
    source, target = ends
    every = np.ones(len(events), np.bool_)
    names = {graph.positions[p].variable for p in ends}
    outer = {graph.positions[p].variable for p in (*graph.firsts, *graph.lasts)}
    at_edge = len(names) == 1 and names <= outer  # only there neighbours tell where paths begin and end
    adjacency = encode_values(graph.steps[ends].conditions, values, every)
    adjacency.gives &= usable[source]
    adjacency.takes &= usable[target]
    index = index_adjacency(
        adjacency, replace(events, usable=every), lo, hi, graph.span, threads, neighbours=at_edge, gaps=False
    )
    if index is None or isinstance(index.shape, DIVIDED):
        return None
    shape = index.shape
    if isinstance(shape, shapes.Tails):
        return _Step(index, adjacency, shape.place, shape.own, shape.own_end, [(shape.first, shape.last)])
    return _Step(index, adjacency, shape.place, None, None, list(zip(shape.first, shape.last, strict=True)))


def _arrivals(graph: PositionGraph, every: bool) -> list[_Arrival]:
    """Return the ways to arrive at positions.

    Where every match counts, a vertex that may both end a match and go on stands twice: first the one that ends.
    """
    found = []
    ways = [(p, None) for p in graph.firsts] + [(target, source) for source, target in sorted(graph.steps)]
    for position, source in ways:
        ends, goes_on = position in graph.lasts, bool(graph.after_position(position))
        if every and ends and goes_on:
            found += [_Arrival(position, source, True, False), _Arrival(position, source, False, True)]
        else:
            found.append(_Arrival(position, source, ends, goes_on))
    return found


def is_in_order(graph: PositionGraph, variables: Variables) -> bool:
    """Return whether no event may come next at two positions."""
    usable = [variables.usable[position.variable] for position in graph.positions]
    for choice in [list(graph.firsts), *(graph.after_position(p) for p in range(len(graph.positions)))]:
        if len(choice) > 1 and (np.sum([usable[p] for p in choice], axis=0) > 1).any():
            return False
    return True


class _ArrivalVertices:
    """Events and how they were arrived at, in that order."""

    def __init__(
        self, graph: PositionGraph, arrivals: list[_Arrival], events: Ints, arrival: Ints, begins: Ints
    ) -> None:
        self.graph, self.arrivals, self.events, self.arrival, self.begins = graph, arrivals, events, arrival, begins

    def __len__(self) -> int:
        return len(self.events)

    def index(self, steps: dict[tuple[int, int], _Step], events: Slice, tasks: int, every: bool) -> AttributeIndex:
        """Return the index of all steps."""
        given = next(iter(steps.values())).index.parts if steps else _no_parts(events, tasks)
        widths = np.array([step.index.parts.width for step in steps.values()], np.int64).reshape(len(steps), len(given))
        bases = np.cumsum(widths, axis=0) - widths
        begin, end = self.begins[given.begin], self.begins[given.end]
        sizes = end - begin
        offset = np.cumsum(sizes) - sizes - begin
        total = int(sizes.sum())

        def laid_out(values: Small, wanted: list[bool], base: Ints, out: Small) -> None:
            lay_out(begin, end, offset, given.offset, self.events, self.arrival, np.array(wanted), values, base, out)

        most = max([1, *(self._ranges_from(steps, p) for p in range(len(self.graph.positions)))])
        tails = all(step.own is not None for step in steps.values())
        place = np.full(total, -1, np.int32)
        own, own_end = (np.zeros(total if tails else 0, np.int32) for _ in range(2))
        first, last = (np.zeros((most, total), np.int32) for _ in range(2))
        used = dict.fromkeys(range(len(self.graph.positions)), 0)
        for (key, step), base in zip(steps.items(), bases, strict=True):
            source, target = key
            arrived = [(a.source, a.position) == (source, target) for a in self.arrivals]
            laid_out(step.place, arrived, base, place)
            if tails and step.own is not None and step.own_end is not None:
                laid_out(step.own, arrived, base, own)
                laid_out(step.own_end, arrived, base, own_end)
            leaves = [a.position == source and a.goes_on for a in self.arrivals]
            for low, high in step.ranges:
                laid_out(low, leaves, base, first[used[source]])
                laid_out(high, leaves, base, last[used[source]])
                used[source] += 1
        width = widths.sum(axis=0)
        shape = (
            shapes.Tails(place, first[0], last[0], own, own_end)
            if tails and most == 1
            else shapes.Ranges(place, first, last, np.empty(0, np.int64))
        )
        parts, segments = Parts(begin, end, offset, width, given.of_task), (own, own_end) if tails else (None, None)
        return AttributeIndex("steps", True, shape, self._known(steps, events, every), parts, *segments)

    def edges(
        self, steps: dict[tuple[int, int], _Step], events: Slice, index: AttributeIndex, sizes: Sizes
    ) -> EventGraph:
        """Return the edges of all steps; of a span, whatever start leads to them."""
        keys, every = list(steps), np.ones(len(events), np.bool_)
        known = {
            id(step): edges_between(replace(events, usable=every), step.adjacency, edge_kernel.ANY, sizes)
            for step in {id(step): step for step in steps.values()}.values()
        }
        rows, successors = stacked_edges([known[id(step)] for step in steps.values()], len(events))
        pairs = [
            (i, j, keys.index((one.position, other.position)))
            for i, one in enumerate(self.arrivals)
            for j, other in enumerate(self.arrivals)
            if one.goes_on and other.source == one.position
        ]
        sources, targets, which = np.array(pairs, np.int64).reshape(-1, 3).T
        vertex_of = np.full((len(self.arrivals), len(events)), -1, np.int64)
        vertex_of[self.arrival, self.events] = np.arange(len(self))
        first_step = np.searchsorted(sources, np.arange(len(self.arrivals) + 1))
        own, arrival, targets = (np.ascontiguousarray(one) for one in (self.events, self.arrival, targets))
        offsets, joined = join_edges(own, arrival, StepEdges(first_step, targets, rows[which], successors), vertex_of)
        ends = np.array([arrival.ends for arrival in self.arrivals])[self.arrival]
        return EventGraph(offsets, joined, index.events.latest, nearest_ends(offsets, joined, ends))

    def first_ends(self, steps: dict[tuple[int, int], _Step], events: Slice, starts: Ints, every: bool) -> Ints:
        """Return for vertices that begin a span the first at which what could not also begin earlier may end."""
        found = starts.copy()
        for i, arrival in enumerate(self.arrivals):
            step = self.graph.step_before(arrival.position)
            if arrival.source is not None or step is None or every:
                continue
            again = steps[step]
            here = np.flatnonzero(self.arrival[starts] == i)
            before = again.index.events.latest[self.events[starts[here]]]
            beyond = self.begins[np.where(before < 0, 0, events.until[before])]
            found[here] = np.maximum(found[here], beyond)
        return found

    def _ranges_from(self, steps: dict[tuple[int, int], _Step], position: int) -> int:
        return sum(len(step.ranges) for (source, _), step in steps.items() if source == position)

    def _known(self, steps: dict[tuple[int, int], _Step], events: Slice, every: bool) -> shapes.EventNeighbours:
        """Return where paths may begin and end, as the first successor and the last predecessor that tell it."""
        size = len(self)
        later = self.begins[events.later[self.events]]
        nearest, latest = np.full(size, -1, np.int64), np.full(size, size, np.int64)
        for i, arrival in enumerate(self.arrivals):
            if not arrival.ends and arrival.source is not None:
                continue
            here = np.flatnonzero(self.arrival == i)
            at = self.events[here]
            if arrival.ends:
                step = None if every else self.graph.step_after(arrival.position)
                nearest[here] = size if step is None else self.begins[steps[step].index.events.nearest[at]]
            if arrival.source is None:
                step = None if every else self.graph.step_before(arrival.position)
                before = np.full(len(at), -1) if step is None else steps[step].index.events.latest[at]
                latest[here] = np.where(before < 0, -1, self.begins[before])
        return shapes.EventNeighbours(later, nearest, latest, np.ones(size, np.bool_))


def _no_parts(events: Slice, tasks: int) -> Parts:
    """Return one part for all tasks: a match is one event."""
    none, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    return Parts(none, one * len(events), none, none, np.zeros(tasks, np.int64))
