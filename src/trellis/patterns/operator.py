"""The operator for patterns of several variables: the same questions as `trellis.trends.operator` answers.

The results of some groups at a time become paths of a graph whose vertices are events bound to variables. That graph
is what the trend operator counts, aggregates and lists; what comes out are events again, with their variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.kernels.edges import latest_predecessors
from trellis.language.bound import BoundQuery, Column, NamedOutput, Output, OutputKind, Window, WindowKind
from trellis.language.schema import Kind, Type
from trellis.language.syntax import Report, Select, Which
from trellis.limits import warn_of_all
from trellis.patterns.order import EventOrder
from trellis.patterns.paths import Paths, find_paths
from trellis.patterns.variables import Variables, make_variables
from trellis.plan.plan import Plan
from trellis.trends.graph import EventGraph
from trellis.trends.listing import Bound
from trellis.trends.operator import TrendOperator
from trellis.trends.slice import Groups, Slice
from trellis.trends.tasks import length_bounds

if TYPE_CHECKING:
    from trellis.trends.aggregate import Numbers
    from trellis.trends.listing import Range, Trends
    from trellis.trends.ranks import Ranks

EVENTS_AT_ONCE = 1 << 17  # of the groups whose paths are held together, before it is known how many edges they have
EDGES_AT_ONCE = 1 << 24  # of the groups whose paths are held together, as those before them have them
MOST_AT_ONCE = 32  # times `EVENTS_AT_ONCE`
ROWS_AT_ONCE = 1 << 14  # of a batch of results that are ordered by their events first

Ints = NDArray[np.int64]
T = TypeVar("T")


class _Part:
    """The paths of the groups `[first, last)` and the operator over them."""

    def __init__(self, operator: PatternOperator, first: int, last: int) -> None:
        self.first, self.last, self._outer = first, last, operator
        self.paths: Paths = find_paths(operator.plan, operator.events, operator.variables, first, last)

    def inner(self, bound: BoundQuery | None = None, columns: Mapping[str, pa.Array] | None = None) -> TrendOperator:
        """Return the operator over the paths, for what a query aggregates."""
        paths, plan = self.paths, self._outer.plan
        size = len(paths.events)
        groups = Groups(paths.begins[:-1], paths.begins[1:], np.zeros(self.last - self.first, np.int64))
        until = np.repeat(paths.begins[1:], np.diff(paths.begins))
        slice_ = Slice(
            columns or {}, pa.array(np.arange(size)), np.arange(size), np.ones(size, np.bool_), paths.begins, groups,
            until,
        )  # fmt: skip
        bound = replace(
            bound or plan.bound, report=Report.UNEXTENDABLE, select=Select.ANY, window=Window(WindowKind.WHOLE)
        )
        operator = TrendOperator(replace(plan, bound=bound, adjacent=()), slice_, self._outer.threads)
        latest = latest_predecessors(paths.offsets, paths.successors)
        graph = EventGraph(paths.offsets, paths.successors, latest)
        operator.__dict__ |= {"graph": graph, "index": None, "direct": None}
        return operator

    @cached_property
    def operator(self) -> TrendOperator:
        """The operator over the paths."""
        return self.inner()

    def bound(self, trends: Trends) -> Bound:
        """Return the events and variables of paths."""
        vertices = np.asarray(trends.positions)
        return Bound(
            self.paths.events[vertices].astype(np.int32), trends.ends, trends.ranks,
            np.asarray(trends.groups) + self.first, self.paths.variables[vertices],
        )  # fmt: skip

    def listed(self, ranges: Sequence[Range], threads: int) -> Iterator[Bound]:
        """Yield the results of ranges of ranks; their groups are those of the whole."""
        own = [(group - self.first, begin, end) for group, begin, end in ranges]
        for by_events, run in groupby(own, key=lambda one: bool(self.paths.ambiguous[one[0]])):
            if not by_events:
                yield from self.operator.listed(list(run), self.bound, threads)
                continue
            for group, begin, end in run:
                yield from self._by_events(group, begin, end)

    def _by_events(self, group: int, begin: int, end: int) -> Iterator[Bound]:
        paths = self._order(group).paths(begin, end, *length_bounds(self._outer.plan.bound.having))
        while begin < end:
            some = list(islice(paths, min(ROWS_AT_ONCE, end - begin)))
            if not some:
                return
            vertices = np.array([v for path in some for v in path], np.int64)
            ranks = np.array([r if r < 1 << 63 else -1 for r in range(begin, begin + len(some))], np.int64)
            yield Bound(
                self.paths.events[vertices].astype(np.int32), np.cumsum([len(path) for path in some]), ranks,
                np.full(len(some), group + self.first), self.paths.variables[vertices],
            )  # fmt: skip
            begin += len(some)

    def _order(self, group: int) -> EventOrder:
        paths = self.paths
        lo, hi = paths.begins[group], paths.begins[group + 1]
        return EventOrder(paths.offsets, paths.successors, paths.events, int(lo), int(hi))


class PatternOperator:
    """What can be asked of the results of one slice; see `trellis.trends.operator.TrendOperator`."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        self.plan, self.events, self.threads = plan, events, threads
        self._known: _Part | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is made again where it is needed."""
        kept = {"plan", "events", "threads", "_counted"}
        return {"_known": None} | {name: value for name, value in self.__dict__.items() if name in kept}

    def variant(self, plan: Plan, events: Slice) -> PatternOperator:
        """Return an operator for the same results with other output; what is already known is shared."""
        other = PatternOperator(plan, events, self.threads)
        other._known = self._known
        other.__dict__ |= {name: self.__dict__[name] for name in ("_counted", "variables") if name in self.__dict__}
        return other

    def make_ready(self) -> None:
        """Count, before copies of this are given to others."""
        _ = self.counts

    @cached_property
    def variables(self) -> Variables:
        """Which events may fill which variable."""
        return make_variables(self.plan, self.events)

    # --- Parts ------------------------------------------------------------------------------------------------

    @cached_property
    def _counted(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The number of results of each group, and the groups whose paths are held together."""
        groups = self.events.groups
        sizes = np.cumsum(groups.hi - groups.lo)
        counts: list[int] = []
        bounds: list[tuple[int, int]] = []
        first, size = 0, EVENTS_AT_ONCE
        while first < len(groups):
            before = int(sizes[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(sizes, before + size, side="right")))
            part = self._part(first, last)
            counts += part.operator.counts
            bounds.append((first, last))
            events, edges = int(sizes[last - 1]) - before, len(part.paths.successors)
            size = max(min(events * EDGES_AT_ONCE // max(edges, 1), MOST_AT_ONCE * EVENTS_AT_ONCE), EVENTS_AT_ONCE // 8)
            first = last
        return counts, bounds

    @property
    def _bounds(self) -> list[tuple[int, int]]:
        return self._counted[1]

    def _part(self, first: int, last: int) -> _Part:
        if self._known is None or (self._known.first, self._known.last) != (first, last):
            self._known = _Part(self, first, last)
        return self._known

    def _parts(self) -> Iterator[_Part]:
        return (self._part(first, last) for first, last in self._bounds)

    # --- Numbers ----------------------------------------------------------------------------------------------

    @property
    def counts(self) -> list[int]:
        """The exact number of results of each group."""
        return self._counted[0]

    @property
    def size(self) -> tuple[int, int]:
        """The number of vertices and edges of all groups."""
        sizes = [(len(part.paths.events), len(part.paths.successors)) for part in self._parts()]
        return sum(vertices for vertices, _ in sizes), sum(edges for _, edges in sizes)

    def aggregate(self) -> list[Numbers]:
        """Return what AGGREGATE says of each group."""
        outputs = [named.output for named in self.plan.bound.aggregates]
        inner = replace(self.plan.bound, aggregates=tuple(NamedOutput("", _inner_output(o)) for o in outputs))
        found: list[Numbers] = []
        for part in self._parts():
            operator = part.inner(inner, self._columns(part.paths, outputs))
            found += [_outer_numbers(outputs, numbers) for numbers in operator.aggregate()]
        return found

    def _columns(self, paths: Paths, outputs: list[Output]) -> dict[str, pa.Array]:
        """Return the values of the vertices' events for each variable alone: NULL at those of other variables."""
        columns: dict[str, pa.Array] = {}
        for output in outputs:
            var, name = _named(output)
            if var is None:
                continue
            other = paths.variables != self.variables.codes[var]
            if name is None:
                columns[_key(var, name)] = pa.array(np.ones(len(other), np.int64), mask=other)
            else:
                columns[_key(var, name)] = self.events.columns[name].take(pa.array(paths.events, mask=other))
        return columns

    # --- Results ----------------------------------------------------------------------------------------------

    def at(self, group: int, ranks: Sequence[int]) -> Bound:
        """Return the results of a group with given ranks, in rising order, without those before them."""
        part = self._part(*next(bounds for bounds in self._bounds if bounds[0] <= group < bounds[1]))
        if not part.paths.ambiguous[group - part.first]:
            return part.bound(part.operator.at(group - part.first, ranks))
        return _joined([one for rank in ranks for one in part.listed([(group, rank, rank + 1)], 1)])

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[Bound]:
        """Yield the results of groups with given ranks, in rising order."""
        for group, ranks in chosen.items():
            yield self.at(group, list(ranks))

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Any], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the results with given ranks, in bounded batches."""
        waiting = list(ranges)
        for first, last in self._bounds:
            own = [one for one in waiting if first <= one[0] < last and one[1] < one[2]]
            if own:
                yield from map(make, self._part(first, last).listed(own, threads))

    def ordered(
        self, bound: BoundQuery, make: Callable[[Any], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the results that ORDER BY brings into order: all of them."""
        warn_of_all(sum(self.counts), max_trends)
        return self.listed([(group, 0, count) for group, count in enumerate(self.counts)], make, threads)


def _joined(parts: list[Bound]) -> Bound:
    ends = np.cumsum(np.concatenate([np.diff(part.ends, prepend=0) for part in parts]))
    return Bound(
        np.concatenate([part.positions for part in parts]), ends, np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.groups for part in parts]), np.concatenate([part.variables for part in parts]),
    )  # fmt: skip


# --- AGGREGATE --------------------------------------------------------------------------------------------------


def _named(output: Output) -> tuple[str | None, str | None]:
    """Return the variable and the attribute that an aggregate speaks of."""
    if output.column is not None:
        return output.column.var, output.column.name
    return (output.variable, None) if output.function == "COUNT" else (None, None)


def _key(var: str, name: str | None) -> str:
    return var if name is None else f"{var}.{name}"


def _inner_output(output: Output) -> Output:
    """Return an aggregate over the vertices of one variable; COUNT(v) is the number of ones that are added."""
    var, name = _named(output)
    if var is None:
        return output
    if name is None:
        column = Column(var, _key(var, None), Which.EACH, None, Type(Kind.INTEGER))
        return Output(OutputKind.AGGREGATE, Type(Kind.INTEGER), function="SUM", column=column)
    assert output.column is not None
    return replace(output, column=replace(output.column, name=_key(var, name)))


def _outer_numbers(outputs: list[Output], numbers: Numbers) -> Numbers:
    states = [
        state.number if output.function == "COUNT" and output.variable is not None else state
        for output, state in zip(outputs, numbers.states, strict=True)
    ]
    return replace(numbers, states=tuple(states))
