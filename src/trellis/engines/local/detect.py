"""From events in this process to results: tables are read, bound and planned here, and nothing is sorted yet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from trellis.engines.local.results import LocalResults
from trellis.engines.options import Plannable, RunOptions
from trellis.events.source import EventSource, is_spark_frame, paths_of
from trellis.events.tables import as_tables, schema_of, union, with_fields, with_readable_times
from trellis.methods import with_methods
from trellis.plan.plan import Plan


def detect(query: Plannable, source: EventSource, options: RunOptions) -> LocalResults:
    """Return the results of a query over events that are brought into this process."""
    plan, table = bound_plan(query, source, options)
    planned = with_methods(plan, options.methods, options.max_trends)
    return LocalResults(planned, table, options, warns_of_ties=True)


def bound_plan(query: Plannable, source: EventSource, options: RunOptions) -> tuple[Plan, pa.Table]:
    """Return the plan of a query for the columns that events have, and the events as one table."""
    given = {name: _in_this_process(table, options.time) for name, table in source.tables.items()}
    tables, time = with_readable_times(with_fields(as_tables(given.get(None, given))), options.time)
    schema = schema_of(tables, time, options.type, options.event_id, options.tie_breakers)
    return query.plan(schema, options.params, options.report_mode), union(tables)


def _in_this_process(data: Any, time: str | None) -> Any:
    """Bring events from files or from Spark into this process."""
    paths = paths_of(data)
    if paths is not None:
        from trellis.io.read import read_table

        return read_table(paths, time=time)
    return data.toArrow() if is_spark_frame(data) else data
