"""One read of the events: the rows for the operator, and what Spark observes of the events on their way.

Rows are counted, bad ones counted or refused, and types looked for while the job runs that gives the answer, so that
an answer reads its source once. Spark gives these numbers when the job is done (`Observation`); the tasks report which
windows and partitions they met.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from trellis.engines.spark.batch.groups_met import GroupCounts
from trellis.engines.spark.session.failures import in_driver, refuse_stopped
from trellis.engines.spark.session.raised import raise_data_error
from trellis.engines.spark.sources.frames import EventFrame
from trellis.engines.spark.split.split import Split, split
from trellis.errors import DataError
from trellis.events.prepare import bad_rows, warn_of_types
from trellis.language.bound import BoundQuery
from trellis.plan.plan import Plan

BAD_ROW = "an event has no readable time or id"
HINT = "Fix it, or leave such rows out with on_bad_rows='drop' or --on-bad-rows drop."
BEFORE, AFTER = "before", "after"  # rows before and after repeated ids are left out


@dataclass(frozen=True)
class SourceFacts:
    """Facts about the events from one read; `groups`: the windows and partitions, where the tasks reported them."""

    read: int
    dropped: int
    groups: GroupCounts | None = None


@dataclass
class Scan:
    """The rows of a plan over events, to be read once.

    Attributes
    ----------
    split
        The rows for the operator.
    events
        The events, as they were given.
    bound
        The query.
    drop
        Whether bad rows are left out; else they are an error.
    """

    split: Split
    events: EventFrame
    bound: BoundQuery
    drop: bool
    _events_seen: Observation
    _repeats_seen: list[tuple[str, Observation]] = field(default_factory=list)

    def collect(self, frame: DataFrame) -> pa.Table:
        """Return the rows of a frame that is made of the split, in this process.

        Raises
        ------
        DataError
            If events have no readable time or id and are not to be dropped; with their number, and one of them.
        """
        try:
            with in_driver():
                return frame.toArrow()
        except DataError as problem:
            if problem.what == BAD_ROW:
                self._refuse_bad_rows()
            raise

    def facts(self, groups: GroupCounts | None = None) -> SourceFacts:
        """Return the facts about the events after a job has ended; warn of types that no event has."""
        row = self._observed()
        _warn_of_types(self.bound, row)
        bad = int(row["bad"])
        numbers = {name: _metrics(seen) for name, seen in self._repeats_seen}
        repeated = numbers[BEFORE]["rows"] - numbers[AFTER]["rows"] if all(numbers.values()) and numbers else 0
        return SourceFacts(int(row["rows"]), bad + int(repeated), groups)

    def _observed(self) -> dict[str, Any]:
        """Return Spark's observations; where it left out the whole read, since no row can come, those of a read."""
        seen = _metrics(self._events_seen)
        if seen:
            return seen
        with in_driver():
            row = self.events.frame.agg(*_checks(self.bound, self.events)).first()
        assert row is not None
        return row.asDict()

    def _refuse_bad_rows(self) -> None:
        """Raise the error that says how many rows are bad and shows one; this reads the events again."""
        for role, name in _roles(self.bound):
            bad = ~readable(self.events, name)
            with in_driver():
                number = self.events.frame.where(bad).count()
                example = self.events.frame.where(bad).first()
            if number and example is not None:
                raise bad_rows(number, role, name, dict(zip(self.events.types, example, strict=True)))


def scan(plan: Plan, events: EventFrame, drop: bool, length: int, counting: bool = False) -> Scan:
    """Return one read of events for a plan.

    Parameters
    ----------
    plan, events
        The plan and its events.
    drop
        Whether bad rows and repeated ids are left out; else they are an error.
    length
        The number of windows in a window batch.
    counting
        Whether events are only counted, so that they need no numbers where they have no ids.
    """
    refuse_stopped(events.frame.sparkSession)
    bound, seen = plan.bound, Observation()
    watched = events.watched(seen, _checks(bound, events) + ([] if drop else [_refusal(bound, events)]))
    repeats: list[tuple[str, Observation]] = []

    def watch(frame: DataFrame, moment: str) -> DataFrame:
        repeats.append((moment, Observation()))
        return frame.observe(repeats[-1][1], f.count(f.lit(1)).alias("rows"))

    rows = split(plan, _readable_only(bound, watched) if drop else watched, drop, length, counting, watch)
    return Scan(rows, events, bound, drop, seen, repeats)


def lazy_split(plan: Plan, events: EventFrame, drop: bool, length: int) -> Split:
    """Return the rows of a plan for a frame that users run themselves: bad rows end it, or are left out.

    Nothing is observed, so that Spark can skip by the conditions what cannot be in a result; a bad row among that is
    not seen.
    """
    refuse_stopped(events.frame.sparkSession)
    if drop:
        return split(plan, _readable_only(plan.bound, events), drop, length)

    def guard(name: str, column: Column) -> Column:
        return f.when(readable(events, name), column).otherwise(raise_data_error(BAD_ROW, HINT))

    return split(plan, events, drop, length, guard=guard)


def readable(events: EventFrame, name: str) -> Column:
    """Return whether a column has a value that can be a time, a tie-breaker or an id."""
    column = events.column(name)
    if events.types[name].typeName() in ("double", "float"):
        return column.isNotNull() & ~f.isnan(column) & (f.abs(column) != f.lit(float("inf")))
    return column.isNotNull()


def _roles(bound: BoundQuery) -> list[tuple[str, str]]:
    return bound.known_schema.required


def _all_readable(bound: BoundQuery, events: EventFrame) -> Column:
    good = f.lit(True)
    for _, name in _roles(bound):
        good = good & readable(events, name)
    return good


def _readable_only(bound: BoundQuery, events: EventFrame) -> EventFrame:
    return events.where(_all_readable(bound, events))


def _refusal(bound: BoundQuery, events: EventFrame) -> Column:
    """Return an observed number that is never told: a bad row raises, whatever the rest of the plan does with it."""
    raised = f.when(~_all_readable(bound, events), raise_data_error(BAD_ROW, HINT))
    return f.max(raised).alias("refused")


def _typed_variables(bound: BoundQuery) -> dict[int, str]:
    known = bound.schema is not None and bound.schema.type_column is not None
    return {i: v.type for i, v in enumerate(bound.variables) if v.type is not None} if known else {}


def _checks(bound: BoundQuery, events: EventFrame) -> list[Column]:
    """Return the numbers that are observed: of rows, of bad rows, and of rows that have the types of variables."""
    checks = [f.count(f.lit(1)).alias("rows"), f.count_if(~_all_readable(bound, events)).alias("bad")]
    for i, type_ in _typed_variables(bound).items():
        assert bound.known_schema.type_column is not None
        types = events.column(bound.known_schema.type_column)
        same, alike = types == f.lit(type_), f.lower(types) == f.lit(type_.lower())
        checks += [f.count_if(same).alias(f"typed{i}"), f.collect_set(f.when(alike & ~same, types)).alias(f"alike{i}")]
    return checks


def _warn_of_types(bound: BoundQuery, row: dict[str, Any]) -> None:
    variables = _typed_variables(bound)
    missing = [type_ for i, type_ in variables.items() if not row[f"typed{i}"]]
    if row["rows"] and missing:
        alike = [type_ for i in variables for type_ in row[f"alike{i}"]]
        warn_of_types(str(bound.known_schema.type_column), list(variables.values()), missing, alike)


def _metrics(seen: Observation) -> dict[str, Any]:
    """Return the observed numbers; none where Spark saw that no row can come and did not run that part."""
    with suppress(Exception):  # py4j's and Spark's own assertion
        return dict(seen.get)
    return {}
