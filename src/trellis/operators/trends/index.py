"""The attribute index: from the values of events to ranges of attribute vertices that hold all that may follow them.

It takes the place of edges where the adjacent conditions are equalities (the key) and comparisons of one value of the
later event, or of two. An attribute vertex stands for the values between two neighbouring cuts, the values with which
events are compared. A from-edge leads from a vertex to each event whose value it holds; the to-edges of an event lead
to a range of vertices, so that two numbers are enough. All windows of a slice share one sort; windows that overlap are
served by common parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.adjacency import HIGHEST, LOWEST, Adjacency, encode
from trellis.events.columns.ordering import small_argsort
from trellis.events.gaps import gap_of
from trellis.events.slice import Ints, Slice
from trellis.kernels.count import passes, shapes
from trellis.kernels.count.algebra import lengths
from trellis.kernels.count.triples import Triples
from trellis.kernels.events.partitions import later_times, partition_ends
from trellis.kernels.index import vertices
from trellis.language.syntax import Report, Select
from trellis.operators.trends.tasks import TrendTasks
from trellis.operators.trends.value_cuts import ValueCuts, cuts_of, tails_of
from trellis.plan.plan import Plan
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

Small = NDArray[np.int32]
Flags = NDArray[np.bool_]
Shape = shapes.Tails | shapes.Ranges | shapes.Pairs | Triples
DIVIDED = shapes.Pairs | Triples  # shapes of divide and conquer: successors are not ranges of vertices
LEAST = 512  # events of a part at least, where tasks overlap


@dataclass(frozen=True)
class Parts:
    """Ranges of events that are indexed together; event x of part p stands at `x + offset[p]` in the index."""

    begin: Ints
    end: Ints
    offset: Ints
    width: Ints
    of_task: Ints

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def size(self) -> int:
        """How many events stand in the index, those of several parts as often."""
        return int((self.end - self.begin).sum())

    def as_tasks(self) -> shapes.PassTasks:
        """Each part as a task of its own."""
        return shapes.PassTasks(
            self.begin, self.end, self.begin, self.begin, self.end, self.offset, self.width, np.empty(0, np.int64),
            False, True,
        )  # fmt: skip


@dataclass(frozen=True)
class AttributeIndex:
    """The index of the tasks of a slice.

    Attributes
    ----------
    kind
        What the conditions are: `key`, `inequality`, `range`, `two inequalities`, `three inequalities`,
        `either of two`; an inequality and a range also `within a gap`.
    keyed
        Whether equalities form a key.
    shape
        The arrays that the passes work on.
    events
        What the passes know of each event.
    parts
        The parts of the index.
    own, own_end
        Begin and end of the segments of events, where the shape is `Ranges` that reach to the end of segments.
    """

    kind: str
    keyed: bool
    shape: Shape
    events: shapes.EventNeighbours
    parts: Parts
    own: Small | None = None
    own_end: Small | None = None

    def tasks(self, tasks: TrendTasks) -> shapes.PassTasks:
        """Return tasks, all or some of those that the index was built for, as the passes take them."""
        part = self.parts.of_task[tasks.number]
        parts = self.parts
        return shapes.PassTasks(
            tasks.lo, tasks.hi, tasks.first_end, parts.begin[part], parts.end[part], parts.offset[part],
            parts.width[part], tasks.starting(len(self.events.usable)), tasks.single, tasks.every,
        )  # fmt: skip

    @property
    def vertices(self) -> int:
        """The number of attribute vertices of all parts."""
        return int(self.parts.width.sum())

    @property
    def tails(self) -> bool:
        """Whether the successors of every event reach to the end of a segment."""
        return isinstance(self.shape, shapes.Tails)

    @property
    def segments(self) -> shapes.Segments | None:
        """The shape, where the successors of every event reach to the ends of segments."""
        shape = self.shape
        if isinstance(shape, shapes.Tails):
            return shapes.Segments(shape.place, shape.first[None], shape.last[None], shape.own, shape.own_end)
        if self.own is None or self.own_end is None or not isinstance(shape, shapes.Ranges):
            return None
        return shapes.Segments(shape.place, shape.first, shape.last, self.own, self.own_end)

    @property
    def one_segment(self) -> bool:
        """Whether the shape is `Tails`, with the vertices of a part in one segment."""
        return self.tails and not self.keyed and self.kind != "key"

    def from_edges(self, part: int) -> tuple[Ints, Small]:
        """Return the from-edges of a part: for each vertex where its events begin, and the events, by time."""
        begin, end, offset = (int(a[part]) for a in (self.parts.begin, self.parts.end, self.parts.offset))
        place = self.shape.place[begin + offset : end + offset]
        held = np.flatnonzero(place >= 0)
        order = held[np.argsort(place[held], kind="stable")]
        offsets = np.searchsorted(place[order], np.arange(self.parts.width[part] + 1))
        return offsets, (begin + order).astype(np.int32)

    @cached_property
    def nbytes(self) -> int:
        """The memory of the index."""
        arrays = {id(a): a.nbytes for a in (*self.shape, *self.events) if isinstance(a, np.ndarray)}
        return sum(arrays.values())


def build_index(plan: Plan, events: Slice, lo: Ints, hi: Ints, single: bool, threads: int = 1) -> AttributeIndex | None:
    """Return the index for tasks `[lo, hi)` of a slice, or None where the conditions, or the report, need edges.

    `single` tells that a task is all that starts at one event, not a window; `threads` how many may work.
    """
    if not can_index(plan):
        return None
    adjacency = encode(plan.adjacent, events.columns, events.usable)
    return index_adjacency(adjacency, events, lo, hi, single, threads, sizes=plan.sizes)


def index_adjacency(
    adjacency: Adjacency, events: Slice, lo: Ints, hi: Ints, single: bool, threads: int = 1, neighbours: bool = True,
    gaps: bool = True, sizes: Sizes = USUAL,
) -> AttributeIndex | None:  # fmt: skip
    """Return the index of what may follow what for tasks `[lo, hi)`, or None where only edges can tell.

    Events that lack a value or a key are taken out of those that give and take. Without `neighbours` the first
    successors and last predecessors are not found; without `gaps` a gap in time is an inequality like others.
    """
    relation = _relation(adjacency, events, gaps)
    if relation is None:
        return None
    layout = _Layout(relation, lo, hi, partition_ends(events.bounds, len(events)), threads, sizes)
    shape, width, target = layout.shape()
    parts = Parts(layout.begin, layout.end, layout.offset, width, layout.of_task)
    mirrored = relation.mirrored() if isinstance(shape, DIVIDED) else None
    kind, keyed = relation.kind, relation.keyed
    del layout, relation, adjacency  # the codes of all events: what follows needs as much memory again
    if neighbours:
        known = _with_neighbours(events, mirrored, shape, parts, target, single)
    else:
        none = np.empty(0, np.int64)
        known = shapes.EventNeighbours(none, none, none, events.usable)
    return AttributeIndex(kind, keyed, shape, known, parts)


def mirrored_index(plan: Plan, events: Slice, lo: Ints, hi: Ints, threads: int = 1) -> AttributeIndex | None:
    """Return the index of a slice with time running backwards; None where it is not keys and plain inequalities.

    Event x stands at `n - 1 - x`, and the task `[lo, hi)` is `[n - hi, n - lo)`.
    """
    if not can_index(plan):
        return None
    relation = _relation(encode(plan.adjacent, events.columns, events.usable), events, gaps=True)
    if relation is None or relation.reach is not None or not all(order.is_tail for order in relation.orders):
        return None
    n, turned = len(events), relation.mirrored()
    bounds = n - events.bounds[::-1]
    times = events.ticks[::-1]
    back = replace(
        events, times=-times if times.dtype.kind == "f" else ~times, usable=events.usable[::-1].copy(), bounds=bounds,
        order=None,
    )  # fmt: skip
    layout = _Layout(turned, n - hi, n - lo, partition_ends(bounds, n), threads, plan.sizes)
    shape, width, target = layout.shape()
    parts = Parts(layout.begin, layout.end, layout.offset, width, layout.of_task)
    again = relation if isinstance(shape, DIVIDED) else None
    return AttributeIndex(
        relation.kind, relation.keyed, shape, _with_neighbours(back, again, shape, parts, target, False), parts
    )  # fmt: skip


def can_index(plan: Plan) -> bool:
    """Whether what is asked for can be answered on an index at all."""
    return plan.bound.select is Select.ANY and plan.bound.report is not Report.MAXIMAL


def _relation(adjacency: Adjacency, events: Slice, gaps: bool) -> _Relation | None:
    """Return the relation of successors as codes, or None where an index cannot express it."""
    if adjacency.residual:
        return None
    reach, given = (gap_of(adjacency, events) if gaps else None) or (None, adjacency.orders)
    if len(given) > 1:  # beside a gap there is room for one order; as an order like the others it may find a place
        reach, given = None, adjacency.orders
    orders = [cuts_of(order) for order in given]
    either = len(adjacency.either) == 1 and len(adjacency.either[0]) == 2 and not orders
    if adjacency.either and not either:
        return None
    if either:
        orders = [ValueCuts(above, ((below, None),)) for above, below in adjacency.either[0]]
    if len(orders) > 1:
        orders = [tail for order in orders for tail in tails_of(order)]
        if reach is not None or len(orders) > 3 or not all(order.is_tail for order in orders):
            return None
    gives, takes, next_, prev = adjacency.gives, adjacency.takes, adjacency.key_next, adjacency.key_prev
    for order in orders if not either else ():
        takes &= order.value != LOWEST
        gives &= order.cuts[0] != LOWEST
    if next_ is not None and prev is not None:
        takes &= next_ >= 0
        gives &= prev >= 0
    return _Relation(gives, takes, next_, prev, orders, reach, either)


def _with_neighbours(
    events: Slice, mirrored: _Relation | None, shape: Shape, parts: Parts, target: Small, single: bool
) -> shapes.EventNeighbours:
    """Find the first successor and the last predecessor of every event."""
    n = len(events)
    later = events.later
    nearest, latest = np.full(n, n, np.int64), np.full(n, -1, np.int64)
    known = shapes.EventNeighbours(later, nearest, latest, events.usable)
    arrays = vertices.IndexParts(parts.begin, parts.end, parts.offset, parts.width)
    if isinstance(shape, shapes.Tails) and not single and len(parts) == len(parts.of_task):
        vertices.neighbours_of_tails(arrays, later, shape, target, nearest, latest)
        return known
    passes.nearest_successors(lengths(False), shape, known, parts.as_tasks(), nearest)
    if isinstance(shape, DIVIDED):
        assert mirrored is not None
        latest[:] = n - 1 - _mirrored_nearest(events, mirrored, parts)[::-1]
    elif isinstance(shape, shapes.Tails):
        vertices.latest_of_tails(arrays, later, shape, target, latest)
    else:
        vertices.latest_of_ranges(arrays, later, shape, latest)
        if len(shape.reach):  # if the last one in range is too early, all are
            latest[shape.reach[latest] <= np.arange(n)] = -1
    return known


@dataclass(frozen=True)
class _Relation:
    """The relation of successors as codes; an event that lacks a value or key neither gives nor takes."""

    gives: Flags
    takes: Flags
    key_next: Ints | None
    key_prev: Ints | None
    orders: list[ValueCuts]
    reach: Ints | None = None  # the first event that is too late to follow
    either: bool = False  # one of two orders is enough; LOWEST and HIGHEST then are values like others

    @property
    def keyed(self) -> bool:
        return self.key_next is not None

    @property
    def kind(self) -> str:
        """The kind of the conditions, as in `AttributeIndex`."""
        if len(self.orders) > 1:
            return "either of two" if self.either else f"{('two', 'three')[len(self.orders) - 2]} inequalities"
        if not self.orders:
            return "key"
        kind = "inequality" if self.orders[0].is_tail else "range"
        return kind if self.reach is None else f"{kind} within a gap"

    def mirrored(self) -> _Relation:
        """Return the relation of the same events with time running backwards; for plain inequalities."""
        back = slice(None, None, -1)
        orders = [
            ValueCuts(_turned(o.cuts[0], self.gives)[back], ((_turned(o.value, self.takes)[back], None),))
            for o in self.orders
        ]
        next_, prev = (None if key is None else key[back].copy() for key in (self.key_prev, self.key_next))
        return _Relation(self.takes[back].copy(), self.gives[back].copy(), next_, prev, orders, either=self.either)


def _turned(codes: Ints, known: Flags) -> Ints:
    return np.where(known, ~codes, LOWEST)


def _in_a_row(codes: Ints) -> Ints:
    """Return codes one after another in memory: kernels are compiled for these, and would be again for others."""
    return np.ascontiguousarray(codes)


class _Layout:
    """The parts of the index, and what is laid out in them."""

    def __init__(
        self, relation: _Relation, lo: Ints, hi: Ints, partition_end: Ints, threads: int = 1, sizes: Sizes = USUAL
    ) -> None:
        self.n, self.threads, self._sizes = len(partition_end), threads, sizes
        self.relation = relation
        order = np.lexsort((hi, lo))
        of_sorted, self.begin, self.end, self.offset = vertices.make_parts(lo[order], hi[order], partition_end, LEAST)
        self.of_task = np.empty(len(order), np.int64)
        self.of_task[order] = of_sorted
        self.total = int((self.end - self.begin).sum())
        next_, prev = relation.key_next, relation.key_prev
        if next_ is not None and prev is not None:
            keys = max(int(next_.max(initial=-1)), int(prev.max(initial=-1))) + 1
            self.own, self.target, self.number = vertices.segments_of_keys(
                self.begin, self.end, self.offset, self.total, keys, next_, prev, relation.gives, relation.takes
            )
        else:
            self.own = self.target = np.empty(0, np.int32)
            self.number = np.ones(len(self.begin), np.int64)

    def shape(self) -> tuple[Shape, Ints, Small]:
        """Return the arrays for the passes, the vertices of each part, and where segments of successors begin."""
        if not self.relation.orders:
            return self._by_key()
        cuts, *others = self.relation.orders
        by_value, by_cut = _orders(cuts)
        _ = self._parts_of_events if len(self.begin) > 1 else None  # both need it
        (values, value_bounds), (entries, entry_bounds) = self._both(
            self._spread, (by_value, by_cut), (self.relation.takes, self.relation.gives)
        )
        del by_value, by_cut
        place = np.full(self.total, -1, np.int32)
        own, own_end, target, target_end = (np.zeros(self.total, np.int32) for _ in range(4))
        at_cut = np.zeros((len(cuts.cuts), self.total), np.int32)
        plain = len(self.begin) == len(cuts.cuts) == 1 and not others and not self.relation.keyed
        plain = plain and self.relation.reach is None
        if plain and self.threads > 1 and self.n >= self._sizes.thread_part:
            return self._one_large(cuts, values, entries, place, at_cut[0], own, own_end, target, target_end)
        cut = np.concatenate(cuts.cuts) if len(cuts.cuts) > 1 else _in_a_row(cuts.cuts[0])
        width = vertices.cut_values(
            vertices.IndexParts(self.begin, self.end, self.offset, self.number),
            vertices.KeySegments(self.own, self.target, self.number),
            vertices.SortedCuts(values, value_bounds, entries, entry_bounds, _in_a_row(cuts.value), cut),
            self.relation.gives,
            self.relation.keyed,
            self.n,
            vertices.VertexPlaces(place, own, own_end, at_cut, target, target_end),
        )
        if not cuts.is_tail or self.relation.reach is not None:
            bound = iter(at_cut)
            low, high = zip(
                *(
                    (target if a is None else next(bound), target_end if b is None else next(bound))
                    for a, b in cuts.ranges
                ),
                strict=True,
            )
            return self._ranges(place, np.stack(low), np.stack(high)), width, target
        if not others:
            return shapes.Tails(place, at_cut[0], target_end, own, own_end), width, target
        above = _in_a_row(others[0].value)
        below = np.where(self.relation.gives, others[0].cuts[0], HIGHEST)
        every = np.ones(self.n, np.bool_)
        by_above, by_below = (self._spread(_falling(codes), every)[0] for codes in (above, below))
        shared = (place, at_cut[0], target_end, own, own_end, above, below, by_above, by_below)
        if len(others) == 1:
            return shapes.Pairs(*shared, target, self.relation.either), width, target
        third = np.where(self.relation.gives, others[1].cuts[0], HIGHEST)
        return Triples(*shared, _in_a_row(others[1].value), third), width, target

    def _one_large(
        self, cuts: ValueCuts, values: Small, entries: Small, place: Small, at_cut: Small, own: Small, own_end: Small,
        target: Small, target_end: Small,
    ) -> tuple[Shape, Ints, Small]:  # fmt: skip
        """Lay out one part without a key as `shape` does, with two threads that each look up half of it."""
        shift = int(self.offset[0])
        sorted_value, sorted_cut = self._both(vertices.looked_up, (values, entries), (cuts.value, cuts.cuts[0]))
        number, _ = self._both(
            lambda work: work(),
            (
                lambda: vertices.place_cuts(entries, sorted_cut, shift, at_cut),
                lambda: vertices.place_values(values, sorted_value, sorted_cut, shift, place),
            ),
        )
        begin, end = int(self.begin[0]) + shift, int(self.end[0]) + shift
        own_end[begin:end] = number
        target_end[begin:end] = np.where(self.relation.gives[int(self.begin[0]) : int(self.end[0])], number, 0)
        return shapes.Tails(place, at_cut, target_end, own, own_end), np.array([number]), target

    def _both(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return the results of a function for two arguments, at once where they are large."""
        if self.threads < 2 or self.total < self._sizes.thread_events:
            return list(map(function, *arguments))
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(function, *arguments))

    def _by_key(self) -> tuple[shapes.Tails, Ints, Small]:
        """A vertex for each key; without keys one for all."""
        place, first = self.own, self.target
        if not self.relation.keyed:
            place, first = (self._copied(flags) for flags in (self.relation.takes, self.relation.gives))
        return shapes.Tails.of_keys(place, first), self.number, first

    def _ranges(self, place: Small, first: Small, last: Small) -> shapes.Ranges:
        """Return ranges of vertices; nothing that is out of reach follows."""
        none = np.empty(0, np.int64)
        return shapes.Ranges(place, first, last, none if self.relation.reach is None else self.relation.reach)

    def _copied(self, flags: Flags) -> Small:
        """Return 0 where a flag is set and -1 elsewhere, for each event of each part."""
        sizes = self.end - self.begin
        begins = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(self.begin - begins, sizes)
        return np.where(flags[places], 0, -1).astype(np.int32)

    def _spread(self, order: Small, wanted: Flags) -> tuple[Small, Ints]:
        if len(self.begin) == 1 and self.end[0] - self.begin[0] == self.n == len(order):
            some = order if wanted.all() else order[wanted[order]]
            return some, np.array([0, len(some)])
        return vertices.spread(order, *self._parts_of_events, len(self.begin), wanted, self.n)

    @cached_property
    def _parts_of_events(self) -> tuple[Small, Small]:
        return vertices.parts_of_events(self.begin, self.end, self.n)


def _orders(cuts: ValueCuts) -> tuple[Small, Small]:
    """Return the events by value and the entries by cut; one sort serves both where cuts rise with values."""
    by_value = small_argsort(cuts.value)
    if len(cuts.cuts) > 1:
        return by_value, small_argsort(np.concatenate(cuts.cuts))
    cut = cuts.cuts[0][by_value]
    if (cut[1:] >= cut[:-1]).all():
        return by_value, by_value
    return by_value, small_argsort(cuts.cuts[0])


def _falling(codes: Ints) -> Small:
    return small_argsort(codes)[::-1].copy()


def _mirrored_nearest(events: Slice, mirrored: _Relation, parts: Parts) -> Ints:
    """Return the first successors of the events with time running backwards, by the relation that is mirrored so."""
    n = len(events)
    bounds = n - events.bounds[::-1]
    times = events.ticks[::-1]
    later = later_times(-times if times.dtype.kind == "f" else ~times, bounds)
    layout = _Layout(mirrored, n - parts.end[::-1], n - parts.begin[::-1], partition_ends(bounds, n))
    shape, width, _ = layout.shape()
    nearest = np.full(n, n, np.int64)
    known = shapes.EventNeighbours(later, nearest, nearest, events.usable[::-1].copy())
    turned = Parts(layout.begin, layout.end, layout.offset, width, layout.of_task)
    passes.nearest_successors(lengths(False), shape, known, turned.as_tasks(), nearest)
    return nearest
