"""The operator for patterns of several variables: the same questions as `trellis.operators.trends.operator` answers.

Where conditions look at neighbours only, results are counted and addressed on the attribute indexes of the steps
between variables (`trellis.operators.patterns.indexed`). For the rest the results of some groups at a time become paths
of a graph whose vertices are events bound to variables, and that graph is what the trend operator counts, aggregates
and lists. What comes out are events again, with their variables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.slice import Groups, Slice
from trellis.kernels.edges import latest_predecessors
from trellis.language.bound import BoundQuery, Column, NamedOutput, Output, OutputKind, Window, WindowKind
from trellis.language.schema import Kind, Type
from trellis.language.syntax import Report, Select, Which
from trellis.limits import warn_of_all
from trellis.operators.batch import Bound
from trellis.operators.patterns.indexed import IndexedPositions, index_positions
from trellis.operators.patterns.order import EventOrder
from trellis.operators.patterns.paths import Paths, find_paths
from trellis.operators.patterns.variables import Variables, make_variables
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.operator import TrendOperator
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.plan import Plan
from trellis.plan.positions import network_of

if TYPE_CHECKING:
    from trellis.operators.batch import Range, Trends
    from trellis.operators.ranks import Ranks
    from trellis.operators.trends.aggregate import Numbers

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
        return _bound(trends, self.paths, self.first)

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
    """What can be asked of the results of one slice; see `trellis.operators.trends.operator.TrendOperator`."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        self.plan, self.events, self.threads = plan, events, threads
        self._known: _Part | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is made again where it is needed."""
        kept = {"plan", "events", "threads", "counts"}
        return {"_known": None} | {name: value for name, value in self.__dict__.items() if name in kept}

    def variant(self, plan: Plan, events: Slice) -> PatternOperator:
        """Return an operator for the same results with other output; what is already known is shared."""
        other = PatternOperator(plan, events, self.threads)
        other._known = self._known
        other.__dict__ |= {
            name: self.__dict__[name] for name in ("counts", "variables", "indexed") if name in self.__dict__
        }
        return other

    def make_ready(self) -> None:
        """Count, before copies of this are given to others."""
        _ = self.counts

    @cached_property
    def variables(self) -> Variables:
        """Which events may fill which variable."""
        return make_variables(self.plan, self.events)

    @cached_property
    def indexed(self) -> IndexedPositions | None:
        """The attribute indexes of the pattern's steps, or None where edges are needed."""
        network = network_of(self.plan)
        if network is None:
            return None
        return index_positions(self.plan, network, self.events, self.variables, self.threads)

    @property
    def _addressed(self) -> IndexedPositions | None:
        """The indexes, if results are found on them by their ranks."""
        indexed = None if self.plan.bound.having else self.indexed
        return indexed if indexed is not None and indexed.in_order else None

    # --- Parts ------------------------------------------------------------------------------------------------

    def _parts(self, groups: Sequence[int]) -> Iterator[_Part]:
        """Yield the paths of groups, in rising order: of as many together as the edges of those before allow."""
        sizes = np.cumsum(self.events.groups.hi - self.events.groups.lo)
        at, size = 0, EVENTS_AT_ONCE
        while at < len(groups):
            first = groups[at]
            before = int(sizes[first - 1]) if first else 0
            last = int(np.searchsorted(sizes, before + size, side="right"))
            part = self._part(first, min(max(first + 1, last), groups[-1] + 1))
            yield part
            events, edges = int(sizes[part.last - 1]) - before, len(part.paths.successors)
            size = max(min(events * EDGES_AT_ONCE // max(edges, 1), MOST_AT_ONCE * EVENTS_AT_ONCE), EVENTS_AT_ONCE // 8)
            at = bisect_left(groups, part.last)

    def _part(self, first: int, last: int) -> _Part:
        """Return the paths of groups `[first, last)`, or of others from `first` on that are at hand."""
        known = self._known
        if known is None or not known.first <= first < known.last:
            known = self._known = _Part(self, first, last)
        return known

    def _all_parts(self) -> Iterator[_Part]:
        """Yield the paths of all groups, each once."""
        return self._parts(range(len(self.events.groups)))

    # --- Numbers ----------------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of results of each group."""
        if self.indexed is not None:
            return self.indexed.operator().counts
        return [count for part in self._all_parts() for count in part.operator.counts]

    @property
    def size(self) -> tuple[int, int]:
        """The number of vertices and edges of all groups."""
        sizes = [(len(part.paths.events), len(part.paths.successors)) for part in self._all_parts()]
        return sum(vertices for vertices, _ in sizes), sum(edges for _, edges in sizes)

    def aggregate(self) -> list[Numbers]:
        """Return what AGGREGATE says of each group."""
        outputs = [named.output for named in self.plan.bound.aggregates]
        inner = replace(self.plan.bound, aggregates=tuple(NamedOutput("", _inner_output(o)) for o in outputs))
        indexed = None if self._asks_for_members(outputs) else self.indexed
        if indexed is not None:
            operators = [indexed.operator(inner, self._columns(indexed, outputs))]
        else:
            operators = [part.inner(inner, self._columns(part.paths, outputs)) for part in self._all_parts()]
        return [_outer_numbers(outputs, numbers) for operator in operators for numbers in operator.aggregate()]

    def _asks_for_members(self, outputs: list[Output]) -> bool:
        """Return whether it must be known which events lie on results, which an index does not tell."""
        if self.plan.bound.having:
            return True
        columns = [(o.function, self.events.columns[o.column.name]) for o in outputs if o.column is not None]
        return any(
            function in ("MIN", "MAX") or (pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py())
            for function, column in columns
        )

    def _columns(self, paths: Paths | IndexedPositions, outputs: list[Output]) -> dict[str, pa.Array]:
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
        indexed = self._addressed
        if indexed is not None:
            return _bound(self._index_operator.at(group, ranks), indexed)
        part = self._part(group, group + 1)
        if not part.paths.ambiguous[group - part.first]:
            return part.bound(part.operator.at(group - part.first, ranks))
        return _joined([one for rank in ranks for one in part.listed([(group, rank, rank + 1)], 1)])

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[Bound]:
        """Yield the results of groups with given ranks, in rising order."""
        indexed = self._addressed
        if indexed is not None:
            yield from (_bound(some, indexed) for some in self._index_operator.at_each(chosen))
            return
        for group, ranks in chosen.items():
            yield self.at(group, list(ranks))

    @cached_property
    def _index_operator(self) -> TrendOperator:
        assert self.indexed is not None
        operator = self.indexed.operator()
        if not self.indexed.tasks.single:
            operator.__dict__["counts"] = self.counts
        return operator

    def listed(
        self, ranges: Sequence[Range], make: Callable[[Any], T], threads: int = 1, compact: bool = False,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the results with given ranks, in bounded batches."""
        waiting = [one for one in ranges if one[1] < one[2]]
        for part in self._parts(sorted({group for group, _, _ in waiting})):
            own = [one for one in waiting if part.first <= one[0] < part.last]
            yield from map(make, part.listed(own, threads))

    def ordered(
        self, bound: BoundQuery, make: Callable[[Any], T], max_trends: int, per_group: bool, threads: int = 1,
        bare: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """Yield what `make` makes of the results that ORDER BY brings into order: all of them."""
        warn_of_all(sum(self.counts), max_trends)
        return self.listed([(group, 0, count) for group, count in enumerate(self.counts)], make, threads)


def _bound(trends: Trends, vertices: Paths | IndexedPositions, first: int = 0) -> Bound:
    """Return the events and variables of paths over vertices, of groups from `first` on."""
    places = np.asarray(trends.positions)
    return Bound(
        vertices.events[places].astype(np.int32), trends.ends, trends.ranks, np.asarray(trends.groups) + first,
        vertices.variables[places],
    )  # fmt: skip


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
