"""From events in this process to results: tables are read, bound and planned here, and nothing is sorted yet."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from trellis.engines.local.results import LocalResults
from trellis.engines.options import Plannable, RunOptions
from trellis.events.source import EventSource, is_spark_frame, paths_of
from trellis.events.tables import (
    Tables,
    as_tables,
    schema_of,
    union,
    with_columns_named,
    with_fields,
    with_readable_times,
)
from trellis.language.schema import TIME_NAMES
from trellis.methods import with_methods
from trellis.plan.plan import Plan


class LastPlan(NamedTuple):
    """The plan of a query for tables of the very same columns, by event type."""

    columns: dict[str | None, pa.Schema]
    options: RunOptions
    plan: Plan

    def fits(self, tables: Tables, options: RunOptions) -> bool:
        """Return whether the plan is that of these tables; values of parameters may have changed since."""
        if options is not self.options and (options.params or options != self.options):
            return False
        if [*tables] != [*self.columns]:
            return False
        return all(table.schema.equals(self.columns[name], check_metadata=True) for name, table in tables.items())


class Askable(Plannable, Protocol):
    """A query that keeps its last plan."""

    last: LastPlan | None


def detect(query: Askable, source: EventSource, options: RunOptions) -> LocalResults:
    """Return the results of a query over events that are brought into this process."""
    plan, table = bound_plan(query, source, options)
    return LocalResults(plan, table, options, warns_of_ties=True)


def bound_plan(query: Askable, source: EventSource, options: RunOptions) -> tuple[Plan, pa.Table]:
    """Return the plan of a query for the columns that events have, and the events as one table."""
    given = {name: _in_this_process(table, options.time) for name, table in source.tables.items()}
    read = as_tables(given.get(None, given))
    if not all(table.num_columns for table in read.values()):
        read = with_columns_named(read, _named(query, options))
    tables, time = with_readable_times(with_fields(read), options.time)
    last = query.last  # read once: another thread may ask the same query of other columns meanwhile
    if last is None or not last.fits(tables, options):
        schema = schema_of(tables, time, options.type, options.event_id, options.tie_breakers)
        plan = query.plan(schema, options.params, options.report_mode)
        plan = with_methods(plan, options.methods, options.max_trends)
        last = query.last = LastPlan({name: table.schema for name, table in tables.items()}, options, plan)
    return last.plan, union(tables)


def _named(query: Askable, options: RunOptions) -> list[str]:
    """Return the columns that a query and its options name."""
    named = [options.time or TIME_NAMES[0], options.type, options.event_id, *options.tie_breakers]
    read = query.plan(None, options.params, options.report_mode).columns
    return [*dict.fromkeys(name for name in (*named, *read) if name is not None)]


def _in_this_process(data: Any, time: str | None) -> Any:
    """Bring events from files or from Spark into this process."""
    paths = paths_of(data)
    if paths is not None:
        from trellis.io.read import read_table

        return read_table(paths, time=time)
    return data.toArrow() if is_spark_frame(data) else data
