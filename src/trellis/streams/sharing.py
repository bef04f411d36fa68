"""Work that standing queries share when a watermark decides: sorted events, the index of equal conditions, numbers.

Queries of one group that look at the same windows and select the same single events have one slice; those whose
conditions are equal besides have one operator, with its index, graph and counts; and those that aggregate the same
trends have one table of numbers, of which each takes its columns. Queries that share come one after another, so that no
more is held at a time than for one query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.prepare import PreparedEvents, prepare, with_columns
from trellis.events.slice import Slice
from trellis.language.bound import NamedOutput, Output
from trellis.make import make_operator
from trellis.operators.contract import QueryOperator
from trellis.plan.plan import Plan
from trellis.results.aggregated import needs_listing
from trellis.results.numbers import is_exact
from trellis.streams.query import StandingQuery, WorkKey, may_share

if TYPE_CHECKING:
    from trellis.streams.calendar import Calendar, Number

T = TypeVar("T")


@dataclass(frozen=True)
class WideOutput:
    """The items of AGGREGATE that several queries ask of the same trends, each once, and the columns that they read."""

    items: tuple[NamedOutput, ...]
    columns: tuple[str, ...]

    def places(self, rows: pa.Table) -> dict[Output, tuple[int, int]]:
        """Return from which column to which the rows have each item."""
        begin = rows.num_columns - sum(_width(named.output) for named in self.items)
        found = {}
        for named in self.items:
            found[named.output] = begin, begin + _width(named.output)
            begin += _width(named.output)
        return found


def wide_outputs(queries: Sequence[StandingQuery]) -> dict[WorkKey, WideOutput]:
    """Return the items that several queries aggregate of the same trends, by their key."""
    found: dict[WorkKey, list[StandingQuery]] = {}
    for one in queries:
        if one.bound.aggregates and not one.summed and may_share(one.plan) and not needs_listing(one.bound):
            found.setdefault(one.work, []).append(one)
    wide = {}
    for key, some in found.items():
        if len(some) > 1:
            outputs = dict.fromkeys(named.output for one in some for named in one.bound.aggregates)
            columns = dict.fromkeys(name for one in some for name in one.columns)
            items = tuple(NamedOutput(f"_{i}", output) for i, output in enumerate(outputs))
            wide[key] = WideOutput(items, tuple(columns))
    return wide


class SharedWork:
    """The work over the events that a bucket holds at one watermark, each part done once for queries in order.

    Parameters
    ----------
    chunks
        The events.
    wide
        See `wide_outputs`.
    """

    def __init__(self, chunks: Sequence[pa.Table], wide: Mapping[WorkKey, WideOutput] | None = None) -> None:
        self._chunks, self._wide = chunks, wide or {}
        self._last: dict[str, tuple[Any, Any]] = {}

    def _once(self, part: str, key: Any, make: Callable[[], T]) -> T:
        """Return a part of the work that was done last, or do it."""
        known = self._last.get(part)
        if known is None or known[0] != key:
            self._last.pop(part, None)  # let go before the next is made
            known = self._last[part] = key, make()
        return known[1]

    # --- Events -------------------------------------------------------------------------------------------------

    def events(self, columns: Sequence[str]) -> pa.Table:
        """Return the events that have all columns: others came before a query needed these."""
        fitting = self._fitting(columns)
        return self._once("events", fitting, lambda: _joined(self._chunks, fitting))

    def _fitting(self, columns: Sequence[str]) -> tuple[int, ...]:
        wanted = set(columns)
        return tuple(i for i, table in enumerate(self._chunks) if wanted <= set(table.column_names))

    def times(self, columns: Sequence[str], calendar: Calendar, name: str) -> NDArray[Any]:
        """Return the times of these events on the line of a calendar."""
        key = (self._fitting(columns), calendar.line.unit, calendar.line.clock.digits)
        return self._once("times", key, lambda: calendar.line.numbers(self.events(columns), name))

    def prepared(
        self, query: StandingQuery, calendar: Calendar, low: Number, high: Number
    ) -> tuple[Plan, PreparedEvents]:
        """Return the slice of a query's events from one time to another, and the plan that reads it."""
        schema = query.bound.known_schema
        plan, event_id = query.plan, schema.event_id
        numbered = query.without_ids and event_id is not None
        if numbered:
            plan = replace(plan, columns=(*query.columns, str(event_id)))

        def make() -> PreparedEvents:
            times = self.times(query.columns, calendar, schema.time)
            table = self.events(query.columns).filter(pa.array((times >= low) & (times < high)))
            if numbered:
                names = [name for name in table.column_names if name != event_id]
                table = table.select(names).append_column(event_id, pa.array(np.arange(table.num_rows)))
            return prepare(plan, table, query.on_bad_rows)

        self._slice = (query.work[0], self._fitting(query.columns), low, high)
        found = self._once("slice", self._slice, make)
        return plan, replace(found, events=with_columns(found, plan))

    # --- Operators ----------------------------------------------------------------------------------------------

    def operator(self, query: StandingQuery, plan: Plan, events: Slice, restriction: Any) -> QueryOperator:
        """Return the operator of a query over the slice that was prepared last, restricted in some way."""
        whole = (self._slice, query.work[1], restriction)
        of, first = self._once("trends", whole, lambda: (events, make_operator(plan, events)))
        if of is events:
            return first
        of, alike = self._once("counted", (whole, query.work[2]), lambda: (events, first.variant(plan, events)))
        return alike if of is events else alike.variant(plan, events)

    # --- Numbers ------------------------------------------------------------------------------------------------

    def aggregated(
        self, query: StandingQuery, plan: Plan, restriction: Any,
        make: Callable[[Plan, PreparedEvents], tuple[pa.Table, pa.Table]],
    ) -> tuple[pa.Table, pa.Table] | None:  # fmt: skip
        """Return the rows and the windows of AGGREGATE of a query, from those of all that aggregate the same trends.

        None where no other does. `make` makes rows and windows of a plan with the items of all of them.
        """
        wide = self._wide.get(query.work)
        if wide is None:
            return None
        bound = replace(plan.bound, aggregates=wide.items)
        whole = replace(plan, bound=bound, columns=tuple(dict.fromkeys([*plan.columns, *wide.columns])))
        prepared = self._last["slice"][1]
        rows, windows = self._once("rows", (self._slice, query.work, restriction), lambda: make(whole, prepared))
        places = wide.places(rows)
        columns = list(rows.columns[: places[wide.items[0].output][0]])
        for named in plan.bound.aggregates:
            begin, end = places[named.output]
            columns += rows.columns[begin:end]
        return pa.Table.from_arrays(columns, schema=query.schema), windows


def _width(output: Output) -> int:
    return 2 if is_exact(output) else 1


def _joined(chunks: Sequence[pa.Table], chosen: Sequence[int]) -> pa.Table:
    if not chosen:
        return chunks[0].slice(0, 0).select([])
    return pa.concat_tables([chunks[i] for i in chosen], promote_options="permissive")
