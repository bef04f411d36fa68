"""A job: a splitter, an operator and a merger over events of a certain shape; the same in every place it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trellis.errors import DataError, UsageError
from trellis.graphs.events import EventShape, check_columns
from trellis.graphs.merger import Merger, MergeRun
from trellis.graphs.operator import Operator, output_schema
from trellis.graphs.splitter import Splitter
from trellis.properties import cached_property

END, TIME, EVENT, PARTITION, PLACE = "end", "time", "event", "partition", "place"
LEAD = (END, TIME, EVENT, PARTITION, PLACE)

LOCAL, DISTRIBUTED = "local", "distributed"
"""Where the graph of a partition is: in one process, or on the cluster as data frames."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Job:
    """A graph pipeline: its splitter, operator and merger, and the columns of its events and results.

    Attributes
    ----------
    splitter, operator, merger
        The user's; `operator` makes a fresh one.
    shape
        What times and ids of events are.
    """

    splitter: Splitter
    operator: Callable[[], Operator]
    merger: Merger
    shape: EventShape
    results: pa.Schema = field(init=False)
    merged: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        results = output_schema(self.fresh())
        taken = sorted({TIME, EVENT, PARTITION, PLACE} & set(results.names))
        if taken:
            raise UsageError(f"the operator gives a column `{taken[0]}`, which results have anyway", "Rename it.")
        object.__setattr__(self, "results", results)
        object.__setattr__(self, "merged", self.merger.schema(results))

    @classmethod
    def over(
        cls,
        schema: pa.Schema,
        splitter: Splitter,
        operator: Any,
        merger: Merger | None,
        time: str,
        event_id: str | None,
    ) -> Job:
        """Return a job over events with certain columns.

        Raises
        ------
        UsageError
            If a column is missing, the operator gives no columns, or the merger does not fit these.
        """
        shape = EventShape.of(schema, time, event_id)
        if splitter.key is not None:
            check_columns([splitter.key], schema.names, " to split them by")
        if isinstance(operator, Operator) or not callable(operator):
            raise UsageError(
                "the operator is not a class",
                "Give the class, or what makes a fresh operator for each partition: `partial(MyOperator, window=60)`.",
            )
        return cls(splitter, operator, merger or Merger(), shape)

    def fresh(self) -> Operator:
        """Return a new operator."""
        made = self.operator()
        if not isinstance(made, Operator):
            raise UsageError(f"the operator is a {type(made).__name__}", "Derive it from trellis.graphs.Operator.")
        return made

    @property
    def is_timed(self) -> bool:
        """Whether operators may be called at times, and not only at events."""
        return self.splitter.every is not None or type(self.fresh()).on_time is not Operator.on_time

    @cached_property
    def time_runs_on(self) -> bool:
        """Whether calls are made that are due only after the last event."""
        return self.fresh().time_runs_on

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.operator.__name__ if inspect.isclass(self.operator) else type(self.operator()).__name__

    def merging(self) -> MergeRun:
        """Return a fresh run of the merger, for sorted results."""
        return MergeRun(self.merger, self.results.names, len(LEAD))

    # --- Rows as tables -------------------------------------------------------------------------------------------

    @property
    def inner(self) -> pa.Schema:
        """The columns of results before they are merged."""
        lead = [(END, pa.bool_()), (TIME, self.shape.time_type), (EVENT, self.shape.id_type)]
        return pa.schema([*lead, (PARTITION, pa.string()), (PLACE, pa.int64()), *self.results])

    @property
    def outer(self) -> pa.Schema:
        """The columns of what comes out."""
        if self.merger.combine is not None:
            return pa.schema([(TIME, self.shape.time_type), (EVENT, self.shape.id_type), *self.merged])
        return pa.schema(list(self.inner)[1:])

    def inner_table(self, rows: Sequence[Row]) -> pa.Table:
        """Return results as a table."""
        return self._table(rows, self.inner)

    def merged_table(self, rows: Iterable[Row], merging: MergeRun | None = None) -> pa.Table:
        """Merge sorted results into a table; `merging` has seen those before them."""
        return self.outer_table(list((merging or self.merging()).merged(rows)))

    def outer_table(self, merged: Sequence[Row]) -> pa.Table:
        """Return merged results as a table."""
        if self.merger.combine is None:
            return self._table([row[1:] for row in merged], self.outer)
        names = self.merged.names
        return self._table([(*row[1:3], *(row[3].get(name) for name in names)) for row in merged], self.outer)

    def _table(self, rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        return pa.table([self._column(column, fld) for column, fld in zip(columns, schema, strict=True)], schema=schema)

    def _column(self, values: Sequence[Any], fld: pa.Field) -> pa.Array:
        try:
            if fld.name == TIME and self.shape.temporal:
                return pa.array(values, pa.int64()).cast(self.shape.time_type)
            if pa.types.is_integer(fld.type):
                for value in values:
                    if isinstance(value, float) and not value.is_integer():
                        raise pa.ArrowInvalid(f"{value} is not whole")
            return pa.array(values, fld.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as problem:
            raise DataError(
                f"the operator {self.name} gave a `{fld.name}` that is not of type {fld.type}: {problem}",
                "Give it another type in `output`, or convert the value.",
            ) from None


def sort_key(row: Row) -> Row:
    """Return the sort key of a result: the event that led to it, the partition, and its place there.

    The results of a call, which have no event, come before those of the events of the same time.
    """
    return (*row[:2], row[2] is not None, *row[2 : len(LEAD)])
