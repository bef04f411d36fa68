"""Matches of fixed sequences as their events arrive: in batches of any size, each no earlier than those before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.errors import DataError, UsageError
from trellis.events.adjacency import meets_condition
from trellis.events.clock import Clock
from trellis.events.columns.ordering import row_codes
from trellis.events.prepare import prepare
from trellis.events.sorting import column_of
from trellis.events.tables import Tables, as_tables, with_readable_times
from trellis.events.variables import usable_events
from trellis.language.bound import WindowKind
from trellis.limits import refuse_rows
from trellis.operators.contract import ListRequest, NotComparable
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.sequences.structure import SequenceStructure
from trellis.plan.plan import Plan
from trellis.plan.sequence import FixedSequence
from trellis.results.rows import RowMaker, row_schema

NEW = "__arrived"


class Arrivals:
    """Takes events as they arrive, and gives the matches that they complete.

    A match is complete when its last event is there. What is too old to be in a match with events to come is dropped;
    without WITHIN nothing is.

    Parameters
    ----------
    bind
        Makes the plan from the first batch of events.
    time
        The column of times, where it is named.
    max_trends
        The bound on the matches that one batch completes.
    """

    def __init__(self, bind: Callable[[Tables], Plan], time: str | None, max_trends: int) -> None:
        self._bind, self._time, self.max_trends = bind, time, max_trends
        self.plan: Plan | None = None
        self._sequence: FixedSequence | None = None
        self._fields = pa.schema([])
        self._held: list[pa.Table] = []
        self._needed_last = 0  # events that were needed when those not needed were last dropped
        self._newest: Any = None
        self._last: pa.Table | None = None  # the latest event, where columns break ties

    @property
    def held(self) -> int:
        """How many events are held: at most twice as many as can be in a match with later ones, and the last batch."""
        return sum(table.num_rows for table in self._held)

    def take(self, events: Any) -> pa.Table:
        """Take the next events, in any order among themselves; return the matches that they complete, without ranks.

        Parameters
        ----------
        events
            An Arrow table, or a pandas or polars frame, with the columns and types of the first one.

        Raises
        ------
        DataError
            If an event is earlier than one that came in an earlier batch, a column is missing or has other values, or
            an id comes again. Such a batch is left out as a whole; later ones are taken as if it had not come.
        """
        before = vars(self).copy()
        try:
            return self._take(events)
        except BaseException:
            vars(self).update(before)  # a batch that is refused leaves nothing behind
            raise

    def _take(self, events: Any) -> pa.Table:
        table = self._read(events)
        plan = self.plan
        assert plan is not None
        assert plan.bound.schema is not None
        if not table.num_rows:
            return row_schema(plan.bound).empty_table()
        clock = Clock(plan.bound.window, plan.bound.schema.time_type)
        times = clock.numbers(self._times(table))
        if self._newest is not None and (times.min() < self._newest or not self._in_order(table)):
            raise DataError(
                "an event is earlier than one of an earlier batch", "Hold events back until none before them can come."
            )
        self._newest, self._last = times.max(), self._last_of(table)
        self._held = [*self._held, table.append_column(NEW, pa.repeat(True, table.num_rows))]
        found = self._completed() if self._may_end(table) else row_schema(plan.bound).empty_table()
        self._held[-1] = table.append_column(NEW, pa.repeat(False, table.num_rows))
        if self.held > 2 * self._needed_last:
            self._held = [self._needed(self._together(), clock)]
            self._needed_last = self.held
        return found

    def _in_order(self, table: pa.Table) -> bool:
        """Return whether no event is before the latest one of earlier batches by what breaks ties."""
        if self._last is None:
            return True
        order = self._order(pa.concat_tables([self._last, table]))
        return bool(order.min() == order[0])

    def _last_of(self, table: pa.Table) -> pa.Table | None:
        """Return the latest of some events; None where nothing breaks ties."""
        assert self.plan is not None
        assert self.plan.bound.schema is not None
        return table.slice(int(self._order(table).argmax()), 1) if self.plan.bound.schema.tie_breakers else None

    def _order(self, table: pa.Table) -> np.ndarray:
        assert self.plan is not None
        schema = self.plan.bound.schema
        assert schema is not None
        return row_codes([column_of(table, name) for name in (schema.time, *schema.tie_breakers)])

    def _read(self, events: Any) -> pa.Table:
        """Return the columns of a batch that the query reads, in the types that the first batch has."""
        given = as_tables(events)
        if None not in given:
            raise UsageError("a batch is one table of events", "Give one, with a column that tells the types.")
        if self.plan is None:
            tables, _ = with_readable_times(given, self._time)
            self.plan = self._checked(self._bind(tables))
            schema = self.plan.bound.schema
            assert schema is not None
            roles = {name for _, name in schema.required} | {schema.type_column, *self.plan.columns}
            self._fields = pa.schema([field for field in tables[None].schema if field.name in roles])
            return tables[None].select(self._fields.names)
        for name in self._fields.names:
            if name not in given[None].column_names:
                raise DataError(
                    f"a batch has no column `{name}`, which earlier ones have", "Give each batch the same columns."
                )
        assert self.plan.bound.schema is not None
        table = with_readable_times(given, self.plan.bound.schema.time)[0][None].select(self._fields.names)
        columns = [_like(table[field.name], field) for field in self._fields]
        return pa.Table.from_arrays(columns, schema=self._fields)

    def _together(self) -> pa.Table:
        return pa.concat_tables(self._held, promote_options="permissive") if len(self._held) > 1 else self._held[0]

    def _may_end(self, events: pa.Table) -> bool:
        """Return whether one of the events may be the last of a match, as far as it alone tells."""
        assert self.plan is not None
        assert self._sequence is not None
        bound, last = self.plan.bound, self._sequence.variables[-1]
        only = replace(bound, variables=tuple(v for v in bound.variables if v.name == last))
        columns = {name: column_of(events, name) for name in self.plan.columns}
        usable = usable_events(only, self.plan.constant, columns, events.num_rows)[last]
        for condition in self._sequence.inferred:
            if condition.variables == (last,):
                usable = usable & meets_condition(condition, columns, usable)
        return bool(usable.any())

    def _checked(self, plan: Plan) -> Plan:
        sequence = plan.sequence
        if sequence is not None and sequence.absent[-1]:
            raise UsageError(
                "NOT after the last event is known when no such event can come any more, and events are still to come",
                "Put an event behind it, or use detect.",
            )
        if sequence is None:
            raise UsageError(
                "events are taken as they arrive for fixed sequences such as SEQ(A a, B b), whose conditions compare "
                "two variables each",
                "Use detect for other patterns.",
            )
        schema = plan.bound.schema
        if schema is None or schema.event_id is None:
            raise UsageError("events that arrive in batches need an id", "Name its column with event_id=.")
        bound = plan.bound
        if bound.aggregates or bound.order_by or bound.limit is not None or bound.offset:
            raise UsageError(
                "AGGREGATE, ORDER BY, LIMIT and OFFSET need all results, and events are still to come",
                "Leave them out of the query.",
            )
        self._sequence = sequence
        return plan

    def _completed(self) -> pa.Table:
        """Return the matches whose last event is new."""
        assert self.plan is not None
        assert self._sequence is not None
        plan = replace(self.plan, columns=(*self.plan.columns, NEW))
        events = prepare(plan, self._together()).events
        new = events.columns[NEW].to_numpy(zero_copy_only=False)
        try:
            leaves = SequenceCandidates.find(plan, self._sequence, events, ending=new)
        except NotComparable:
            raise DataError(
                "a number that a condition computes is too large for 64 bits", "Compare smaller numbers."
            ) from None
        structure = SequenceStructure(plan, events, leaves=leaves)
        operator, maker = SequenceOperator(plan, events, structure=structure), RowMaker(self.plan, events)
        counts = operator.counts
        refuse_rows(sum(counts), self.max_trends)
        ranges = [(group, 0, count) for group, count in enumerate(counts)]
        batches = operator.list(ListRequest(ranges, lambda matches: maker.batch(matches.without_ranks())))
        return pa.Table.from_batches(batches, schema=maker.schema)

    def _needed(self, every: pa.Table, clock: Clock) -> pa.Table:
        """Return the events that can be in a match with later ones."""
        assert self.plan is not None
        window, schema = self.plan.bound.window, self.plan.bound.schema
        assert schema is not None
        if window.kind is WindowKind.WHOLE:
            return every
        times = clock.numbers(self._times(every))
        if times.dtype.kind == "f":
            return every.filter(pa.array(self._newest - times <= clock.size))
        oldest = max(int(self._newest) - int(clock.size), int(np.iinfo(np.int64).min))
        return every.filter(pa.array(times >= oldest))

    def _times(self, events: pa.Table) -> pa.Array:
        """Return the times, normalised; where some are missing, say so as `detect` does."""
        assert self.plan is not None
        assert self.plan.bound.schema is not None
        times = column_of(events, self.plan.bound.schema.time)
        if times.null_count:
            prepare(self.plan, events)
        return times


def _like(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column in the type that it has in the first batch."""
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise DataError(
            f"the column `{field.name}` of a batch is {column.type}, and of earlier ones {field.type}",
            "Give each batch the same types.",
        ) from None
