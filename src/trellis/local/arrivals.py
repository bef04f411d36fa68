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
from trellis.events.prepare import prepare
from trellis.events.sorting import column_of
from trellis.events.variables import usable_events
from trellis.language.bound import WindowKind
from trellis.limits import refuse_rows
from trellis.operators.batch import TOO_LARGE, Matches
from trellis.operators.sequences.candidates import Leaves, NotComparable
from trellis.operators.sequences.operator import SequenceOperator
from trellis.plan.plan import Plan
from trellis.plan.sequence import Sequence, sequence_of
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
    max_trends
        The bound on the matches that one batch completes.
    """

    def __init__(self, bind: Callable[[pa.Table], Plan], max_trends: int) -> None:
        self._bind, self.max_trends = bind, max_trends
        self.plan: Plan | None = None
        self._sequence: Sequence | None = None
        self._held: list[pa.Table] = []
        self._needed_last = 0  # events that were needed when those not needed were last dropped
        self._newest: Any = None

    @property
    def held(self) -> int:
        """How many events are held: at most twice as many as can be in a match with later ones, and the last batch."""
        return sum(table.num_rows for table in self._held)

    def take(self, events: pa.Table) -> pa.Table:
        """Take the next events, in any order among themselves; return the matches that they complete, without ranks.

        Raises
        ------
        DataError
            If an event is earlier than one that came in an earlier batch.
        """
        if self.plan is None:
            self.plan = self._checked(self._bind(events))
        plan = self.plan
        assert plan.bound.schema is not None
        if not events.num_rows:
            return row_schema(plan.bound).empty_table()
        clock = Clock(plan.bound.window, plan.bound.schema.time_type)
        times = clock.numbers(self._times(events))
        if self._newest is not None and times.min() < self._newest:
            raise DataError(
                "an event is earlier than one of an earlier batch", "Hold events back until none before them can come."
            )
        self._newest = times.max()
        self._held.append(events.append_column(NEW, pa.repeat(True, events.num_rows)))
        found = self._completed() if self._may_end(events) else row_schema(plan.bound).empty_table()
        self._held[-1] = events.append_column(NEW, pa.repeat(False, events.num_rows))
        if self.held > 2 * self._needed_last:
            self._held = [self._needed(self._together(), clock)]
            self._needed_last = self.held
        return found

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
        sequence = sequence_of(plan)
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
            leaves = Leaves(plan, self._sequence, events, ending=new)
        except NotComparable:
            raise DataError(
                "a number that a condition computes is too large for 64 bits", "Compare smaller numbers."
            ) from None
        operator, maker = SequenceOperator(plan, events, leaves=leaves), RowMaker(self.plan, events)
        counts = operator.counts
        refuse_rows(sum(counts), self.max_trends)
        batches = operator.listed(
            [(group, 0, count) for group, count in enumerate(counts)],
            lambda matches: maker.batch(Matches(matches.table, [(g, TOO_LARGE, n) for g, _, n in matches.runs])),
        )
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
