"""Patterns whose conditions look at neighbours only: their results without going through matches.

Such a pattern is a graph of positions (`trellis.plan.positions`). An event bound to a position is a vertex; which
vertices may follow one another is decided by the same kernels as for one Kleene variable, with one set of conditions
for each step. Windows that overlap share these edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.adjacency import HIGHEST, LOWEST, PairValues, encode_values
from trellis.events.slice import Slice, last_of, next_of, until_forbidden
from trellis.kernels.event_graph import edges as edge_kernel
from trellis.kernels.event_graph import positions as kernel
from trellis.language.once import once
from trellis.language.syntax import Report, Select
from trellis.memory import allow_more, fits_memory, limit_text
from trellis.operators.patterns.paths import Paths
from trellis.operators.patterns.variables import Variables
from trellis.operators.trends.graph import consecutive_edges, edges_between, reduced
from trellis.plan.plan import Plan
from trellis.plan.positions import PositionGraph
from trellis.plan.sizes import EDGE_BYTES

Ints = NDArray[np.int64]
Edges = tuple[Ints, NDArray[np.int32]]


class _PositionLayout(NamedTuple):
    """The arrays of a graph of positions that kernels take: see `trellis.kernels.event_graph.positions`.

    `steps` are in the order of their sources; `order`, `roles`, `first_step` and `step_target` are arrays of kernels.
    """

    steps: Sequence[tuple[int, int]]
    order: Ints
    roles: NDArray[np.uint8]
    first_step: Ints
    step_target: Ints


@once
def _layout(graph: PositionGraph) -> _PositionLayout:
    roles, steps = np.zeros(len(graph.positions), np.uint8), sorted(graph.steps)
    for flag, places in ((kernel.BEGINS, graph.firsts), (kernel.ENDS, graph.lasts), (kernel.INNER, graph.entered)):
        roles[[*places]] |= flag
    first_step = np.searchsorted([source for source, _ in steps], np.arange(len(roles) + 1))
    step_target = np.array([target for _, target in steps], np.int64)
    return _PositionLayout(steps, np.array(graph.ends_first, np.int64), roles, first_step, step_target)


class NotSeparable(Exception):
    """A condition on the first event is no comparison of two values, on these events, or what precedes it no vertex."""


def position_codes(graph: PositionGraph, variables: Variables) -> Ints:
    """Return the number of each position's variable."""
    return np.array([variables.codes[position.variable] for position in graph.positions], np.int64)


class PositionPaths:
    """The results of the groups `[first, last)` of a slice."""

    def __init__(
        self, plan: Plan, graph: PositionGraph, events: Slice, variables: Variables, first: int, last: int
    ) -> None:
        self.plan, self.graph, self.variables = plan, graph, variables
        groups = events.groups
        self.rows, bounds, self.lo, self.hi, until = kernel.cover(
            groups.lo[first:last], groups.hi[first:last], events.until
        )
        self.slice = replace(events, usable=np.ones(len(self.rows), np.bool_), bounds=bounds, until=until)
        self.usable = dict(variables.usable)
        if len(self.rows) < len(events):
            rows = pa.array(self.rows)
            self.slice = replace(
                self.slice,
                columns={name: column.take(rows) for name, column in events.columns.items()},
                times=np.ascontiguousarray(events.times[self.rows]),
                order=None if events.order is None else events.order[self.rows],
                begins=None if events.begins is None else events.begins[self.rows],
            )
            self.usable = {name: mask[self.rows] for name, mask in variables.usable.items()}
        self._values = PairValues.of_all(self.slice.columns, len(self.rows))

    def paths(self) -> Paths:
        """Return the results as paths, whose codes are positions."""
        if self.graph.counts_first and self.plan.bound.report is not Report.ANY:
            raise NotSeparable
        graph, carried, groups = self._vertices(), self._carried(), len(self.lo)
        ranges, group = (self._anchored_ranges if self.graph.anchored else self._plain_ranges)(graph, carried)
        given = (graph, ranges, carried, self.plan.bound.report is Report.ANY)
        size = len(graph.events)
        scratch = np.zeros(size, np.uint8), np.empty(size, np.int64)
        vertices, edges = _most_copies(graph, ranges)
        if edges > self.plan.sizes.unmeasured_edges:
            vertices, edges = kernel.measure(*given, *scratch)
            most = self.plan.sizes.graph_edges * EDGE_BYTES
            if 2 * edges * EDGE_BYTES > most or not fits_memory(16 * edges):  # they are written, and brought into order
                raise TrellisError(
                    f"{len(self.rows):,} events have {edges:,} pairs that may follow one another in results; "
                    f"their graph would take {limit_text(2 * edges * EDGE_BYTES)}B",
                    f"Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition. {allow_more(most)}",
                )
        events, positions = np.empty(vertices, np.int64), np.empty(vertices, np.int64)
        offsets, targets = np.zeros(vertices + 1, np.int64), np.empty(edges, np.int32)
        begins = np.empty(groups + 1, np.int64)
        ambiguous, out = np.zeros(groups, np.bool_), (events, positions, offsets, targets)
        vertices, edges = kernel.write(*given, *scratch, np.empty(size, np.int64), group, ambiguous, begins, out)
        rows = self.rows[events[:vertices]]
        paths = Paths(rows, positions[:vertices], offsets[: vertices + 1], targets[:edges], begins, ambiguous)
        return _in_order(paths) if self._joins_starts and not _rise(ranges, group) else paths

    @property
    def _joins_starts(self) -> bool:
        """Whether starts of which later events are asked the same share a range."""
        return self.graph.anchored and not self.graph.span and not self.graph.is_preceded

    def _plain_ranges(self, graph: kernel.VertexGraph, _: kernel.AnchorConditions) -> tuple[kernel.MatchRanges, Ints]:
        """Return a range of vertices for each window, and these."""
        lo, hi = (graph.events.searchsorted(at) for at in (self.lo, self.hi))
        none = np.full(len(lo), -1)
        times, no_starts = (self._first_times(), self._last_times()), (none, np.empty(0, np.int64))
        return kernel.MatchRanges(lo, hi, none, *times, *no_starts), np.arange(len(lo))

    def _anchored_ranges(
        self, graph: kernel.VertexGraph, carried: kernel.AnchorConditions
    ) -> tuple[kernel.MatchRanges, Ints]:
        """Return a range of vertices for each event that may begin a result in each window, and its window.

        In windows those of which later events are asked the same share one.
        """
        events, may_begin = graph.events, graph.may_begin
        lo, hi = (events.searchsorted(at) for at in (self.lo, self.hi))
        earliest = self._first_times()
        firsts = np.flatnonzero(may_begin if self.slice.begins is None else may_begin & self.slice.begins[events])
        begin, end = firsts.searchsorted(lo), firsts.searchsorted(hi)
        group = np.arange(len(lo)).repeat(end - begin)
        only = starts = firsts[_places(begin, end)]
        first = np.arange(len(only) + 1)
        if self._joins_starts:
            order, first = _alike(carried, events[only], group)
            starts = only[order]
            only, group = starts[first[:-1]], group[order][first[:-1]]
        last = hi[group]
        ends = self.hi[group]
        if self.graph.span:
            ends = np.minimum(ends, self.slice.until[events[only]])
            last = events.searchsorted(ends)
        latest = self._last_times(self.lo[group], ends)
        if self.plan.bound.report is not Report.ANY and self.graph.is_preceded:
            before = kernel.latest_begins(events, graph.offsets, graph.targets, may_begin)[only]
            beyond = np.where(before < 0, 0, self.slice.until[before])  # what ends earlier could also begin earlier
            last = np.where((before >= 0) & (beyond >= ends), only, last)
            least = self.slice.ticks[np.minimum(beyond, len(self.rows) - 1)]
            latest = np.where(before < 0, latest, np.maximum(latest, least))
        return kernel.MatchRanges(only, last, only, earliest[group], latest, first, starts), group

    def apart(self, events: Ints, positions: Ints, most: int) -> tuple[Ints, Ints, Ints] | None:
        """Return the vertices for the starts of each window of which later events are asked the same, set by set.

        These are the vertices that meet the conditions on the first event, so that nothing else is asked of that; with
        them the size of each set that has any, and its window. None if there are more than so many in all.

        Parameters
        ----------
        events, positions
            The event of each vertex, as a position in the slice, and its position in the pattern.
        most
            How many vertices there may be.
        """
        guarded, first, carried = self.graph.positions, self.graph.firsts[0], self._carried()
        begins = np.flatnonzero(self.usable[guarded[first].variable])
        begin, end = np.searchsorted(begins, self.lo), np.searchsorted(begins, self.hi)
        group, starts = np.repeat(np.arange(len(self.lo)), end - begin), begins[_places(begin, end)]
        order, places = _alike(carried, starts, group)
        starts, group = starts[order], group[order][places[:-1]]
        only, own = starts[places[:-1]], np.searchsorted(self.rows, events)
        lo, hi = np.searchsorted(own, only), np.searchsorted(own, self.hi)[group]
        ranges = kernel.MatchRanges(lo, hi, only, only, only, places, starts)
        free = np.array([not position.anchored for position in guarded])
        lasts = np.isin(np.arange(len(guarded)), self.graph.lasts)
        rows, sizes = np.empty(min(most, int((hi - lo).sum())), np.int64), np.empty(len(only), np.int64)
        total = kernel.spread_vertices(ranges, own, positions, free, first, lasts, carried, rows, sizes)
        return None if total > most else (rows[:total], sizes[sizes > 0], group[sizes > 0])

    def _carried(self) -> kernel.AnchorConditions:
        """Return the conditions on the first event and each of a position as codes that are compared."""
        size = len(self.rows)
        keys: list[np.ndarray] = []
        above: list[Ints] = []
        below: list[Ints] = []
        differ: list[np.ndarray] = []
        due: list[list[int]] = [[], [], []]
        for place, position in enumerate(self.graph.positions):
            for condition in position.anchored:
                one = encode_values((condition,), self._values, self.slice.usable, holes=False)
                if one.residual or not (one.gives.all() and one.takes.all()):
                    raise NotSeparable
                if one.key_next is not None and one.key_prev is not None:
                    keys.append(np.array([one.key_next, one.key_prev], np.int64))
                    due[0].append(place)
                above += one.above
                below += one.below
                due[1] += [place] * len(one.above)
                differ += [np.array(pair) for pair in zip(one.differ_next, one.differ_prev, strict=True)]
                due[2] += [place] * len(one.differ_next)
        table = np.full((3, max(map(len, due), default=0) + 1), -1)
        for kind, places in enumerate(due):
            table[kind, : len(places)] = places
        return kernel.AnchorConditions(
            table, _stack(keys, (0, 2, size)), _stack(above, (0, size)), _stack(below, (0, size)),
            _stack(differ, (0, 2, size)),
        )  # fmt: skip

    # --- Edges ------------------------------------------------------------------------------------------------

    def _vertices(self) -> kernel.VertexGraph:
        """Return events bound to positions, and their successors."""
        layout = _layout(self.graph)
        usable = np.array([self.usable[position.variable] for position in self.graph.positions])
        edges = stacked_edges(self._edges_of(layout.steps), len(self.rows))
        steps = kernel.StepEdges(layout.first_step, layout.step_target, *edges)
        events, positions, begin, end, offsets, targets, inner = kernel.bind_events(
            usable, layout.order, layout.roles, steps
        )
        if self.plan.bound.report is Report.MAXIMAL:
            offsets, targets = self._reduced(events, offsets, targets)
        return kernel.VertexGraph(events, positions, self.slice.ticks[events], begin, end, offsets, targets, inner)

    def _edges_of(self, steps: Sequence[tuple[int, int]]) -> list[Edges]:
        """Return the edges of steps; those between the same events, if nothing is asked of these, are found once."""
        known: dict[object, Edges] = {}
        found = []
        for source, target in steps:
            step, names = self.graph.steps[source, target], (self.graph.positions[p].variable for p in (source, target))
            key = (source, target) if step.conditions else (step.absent, *(self.usable[n].tobytes() for n in names))
            if key not in known:
                known[key] = self._edges(source, target)
            found.append(known[key])
        return found

    def _edges(self, source: int, target: int) -> Edges:
        """Return the edges between events at two positions."""
        step = self.graph.steps[source, target]
        cuts = self.slice.pairs > self.plan.sizes.small_pairs
        adjacency = encode_values(step.conditions, self._values, self.slice.usable, cuts=cuts)
        adjacency.gives &= self.usable[self.graph.positions[source].variable]
        adjacency.takes &= self.usable[self.graph.positions[target].variable]
        events = self.slice
        if step.absent:
            events = replace(events, until=np.minimum(events.until, self._until_forbidden(step.absent)))
        if self.plan.bound.select is Select.CONTIGUOUS:
            return consecutive_edges(events, adjacency)
        return edges_between(events, adjacency, edge_kernel.ANY, self.plan.sizes)

    def _until_forbidden(self, absent: tuple[str, ...]) -> Ints:
        later = self.slice.later
        return until_forbidden(later, self._forbidden(absent))

    def _forbidden(self, absent: tuple[str, ...]) -> NDArray[np.bool_]:
        return np.logical_or.reduce([self.usable[name] for name in absent])

    def _reduced(self, events: Ints, offsets: Ints, targets: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32]]:
        bounds = np.searchsorted(events, self.slice.bounds)
        until = np.searchsorted(events, self.slice.until[events])
        size = len(events)
        parts = replace(self.slice, bounds=bounds, until=until, times=np.empty(size), usable=np.empty(size, np.bool_))
        return reduced(parts, offsets, targets, self.plan.sizes)

    # --- NOT at the edges -------------------------------------------------------------------------------------

    def _first_times(self) -> NDArray[Any]:
        """Return for each window the time after which no result may begin: that of the first forbidden event."""
        times, absent = self.slice.ticks, self.graph.before
        most = np.full(len(self.lo), _extreme(times, 1), times.dtype)
        if absent and len(times):
            found = next_of(self._forbidden(absent))[self.lo]
            has = found < self.hi
            most[has] = times[found[has]]
        return most

    def _last_times(self, lo: Ints | None = None, hi: Ints | None = None) -> NDArray[Any]:
        """Return for each window the time before which no result may end: that of the last forbidden event."""
        lo, hi = self.lo if lo is None else lo, self.hi if hi is None else hi
        times, absent = self.slice.ticks, self.graph.after
        least = np.full(len(hi), _extreme(times, -1), times.dtype)
        if absent and len(times):
            found = last_of(self._forbidden(absent))[hi]
            has = found >= lo
            least[has] = times[found[has]]
        return least


def _most_copies(graph: kernel.VertexGraph, ranges: kernel.MatchRanges) -> tuple[int, int]:
    """Return how many vertices and edges the results of ranges take at most: four of each that lies in one."""
    offsets = graph.offsets
    return 4 * int((ranges.hi - ranges.lo).sum()), 4 * int((offsets[ranges.hi] - offsets[ranges.lo]).sum())


def _rise(ranges: kernel.MatchRanges, group: Ints) -> bool:
    """Return whether ranges, none of several starts, are in the order of these."""
    rise = (group[1:] > group[:-1]) | (ranges.only[1:] > ranges.only[:-1])
    return len(ranges.starts) == len(group) and bool(rise.all())


def _alike(carried: kernel.AnchorConditions, starts: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Return the order of starts in which those that are alike follow one another, and where these begin, and end."""
    read = np.concatenate([carried.keys[:, 1], carried.below, carried.differ[:, 1]])[:, starts]
    order = np.lexsort((starts, *read, group))
    new = np.diff(np.concatenate([[group], read])[:, order], axis=1, prepend=-2).any(axis=0)
    return order, np.append(np.flatnonzero(new), len(starts))


def _in_order(paths: Paths) -> Paths:
    """Return paths of groups with the vertices at which they begin before the others, by their events."""
    inner = np.zeros(len(paths.events), np.bool_)
    inner[paths.successors] = True
    group = np.repeat(np.arange(len(paths.begins) - 1), np.diff(paths.begins))
    order = np.lexsort((np.where(inner, 0, paths.events), inner, group))
    offsets, successors = kernel.reordered(order, paths.offsets, paths.successors)
    return replace(paths, events=paths.events[order], codes=paths.codes[order], offsets=offsets, successors=successors)


def _places(begin: Ints, end: Ints) -> Ints:
    """Return the numbers of all ranges, one after another."""
    sizes = end - begin
    found: Ints = (end - sizes.cumsum()).repeat(sizes)
    found += np.arange(len(found))
    return found


def _stack(arrays: list[np.ndarray], empty: tuple[int, ...]) -> np.ndarray:
    return np.array(arrays) if arrays else np.empty(empty, np.int64)


def _extreme(times: NDArray[Any], sign: int) -> Any:
    if times.dtype.kind == "f":
        return sign * np.inf
    return HIGHEST if sign > 0 else LOWEST


def stacked_edges(edges: list[tuple[Ints, NDArray[np.int32]]], size: int) -> tuple[Ints, NDArray[np.int32]]:
    """Return the edges of all steps one after another, and for each step where those of its events begin."""
    rows = np.zeros((len(edges), size + 1), np.int64)
    if not edges or not size:
        return rows, np.empty(0, np.int32)
    rows[:, 1:] = np.concatenate([degrees for degrees, _ in edges]).cumsum().reshape(len(edges), size)
    rows[1:, 0] = rows[:-1, -1]
    return rows, np.concatenate([targets for _, targets in edges])
