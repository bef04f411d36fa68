"""A query that is bound to the columns of its events once, for whoever asks it of many small sets of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trellis.engines.options import Plannable, RunOptions
from trellis.errors import UsageError
from trellis.language.schema import Schema
from trellis.plan.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from trellis.engines.local.detect import LastPlan
    from trellis.results.results import Results


class PreparedQuery:
    """A query bound to a schema; make one with `query.prepare(schema)`.

    Parameters
    ----------
    query
        The query.
    schema
        The schema of all events that it will be asked of.
    options
        The options of all its runs.
    """

    def __init__(self, query: Plannable, schema: Schema, options: RunOptions) -> None:
        self.query, self.schema, self.options = query, schema, options
        self._plan = query.plan(schema, options.params, options.report_mode)
        self.last: LastPlan | None = None

    def plan(
        self, schema: Schema | None = None, params: Mapping[str, Any] | None = None, report_mode: str | None = None
    ) -> Plan:
        """Return the plan, which is there already.

        Raises
        ------
        UsageError
            If the events have another schema.
        """
        if schema is not None and schema != self.schema:
            raise UsageError(
                f"the query is prepared for events with other columns: {_difference(self.schema, schema)}",
                "Prepare it for these, or use query.detect, which looks at the columns each time.",
            )
        if schema is not None and schema.time_type.naive != self.schema.time_type.naive:  # text: only rows tell a zone
            self.schema, self._plan = schema, self.query.plan(schema, self.options.params, self.options.report_mode)
        return self._plan

    def detect(self, data: Any, *, engine: str | None = None, spark: Any = None) -> Results:
        """Find the trends of events of the schema: as `Query.detect`, but nothing is bound again."""
        from trellis.api.dispatch import detect

        return detect(self, data, self.options, engine, spark)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that finding results reads."""
        return self._plan.columns

    def detect_narrow(self, table: pa.Table, whole: Callable[[], pa.Table]) -> Results:
        """Find the trends of events of which only `columns` are there; `whole` gives all columns of the same rows."""
        from trellis.engines.local.detect import bound_plan
        from trellis.engines.local.results import LocalResults
        from trellis.events.source import EventSource
        from trellis.methods import with_methods

        def all_columns() -> pa.Table:
            return bound_plan(self, EventSource.of(whole()), self.options)[1]

        plan = with_methods(self._plan, self.options.methods, self.options.max_trends)
        return LocalResults(plan, table, self.options, warns_of_ties=True, whole=all_columns)

    def __repr__(self) -> str:
        return f"{self.query!r}.prepare(...)"


def schema_for(given: Any, options: RunOptions) -> Schema:
    """Return the schema that an Arrow schema or a table stands for, or several of them by type."""
    from trellis.events.tables import as_tables, schema_of, with_fields, with_readable_times

    if isinstance(given, Schema):
        return given
    tables, time = with_readable_times(with_fields(as_tables(_without_rows(given))), options.time)
    return schema_of(tables, time, options.type, options.event_id, options.tie_breakers)


def _without_rows(given: Any) -> Any:
    import pyarrow as pa

    if isinstance(given, Mapping):
        return {name: _without_rows(one) for name, one in given.items()}
    return given.empty_table() if isinstance(given, pa.Schema) else given


def _difference(ours: Schema, theirs: Schema) -> str:
    """Return the first difference between two schemas, in a few words."""
    for mine, other in zip(ours.tables, theirs.tables, strict=False):
        for name in [*mine.columns, *other.columns]:
            if mine.columns.get(name) != other.columns.get(name):
                before, now = mine.columns.get(name, "missing"), other.columns.get(name, "missing")
                return f"`{name}` was {before} and is {now}"
    return "the tables, or the columns of time, type and id, are others"
