"""The constant conditions that Spark cannot compute exactly, asked in its workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import USABLE
from trellis.events.adjacency import meets_condition
from trellis.events.columns.types import from_arrow, normalise
from trellis.language.bound import Condition, columns_of
from trellis.plan.plan import Plan


@dataclass(frozen=True)
class LateConditions:
    """Leaves out the rows that fail a condition or, where rows have a flag, takes it from them.

    `names` tells the columns of the rows by those of the events.
    """

    conditions: tuple[Condition, ...]
    names: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows in any order and give those that are left."""
        with in_task():
            yield from map(self._passing, batches)

    def _passing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        flagged = USABLE in batch.schema.names
        meets = np.ones(batch.num_rows, np.bool_)
        if flagged:
            meets = batch.column(USABLE).to_numpy(zero_copy_only=False).astype(np.bool_)
        for condition in self.conditions:
            columns = {c.name: normalise(batch.column(self.names[c.name]), c.type) for c in columns_of(condition.value)}
            meets = meets & meets_condition(condition, columns, meets)
        if not flagged:
            return batch.filter(pa.array(meets))
        return batch.set_column(batch.schema.names.index(USABLE), USABLE, pa.array(meets))


@dataclass(frozen=True)
class SomeVariable:
    """Leaves out the rows that may fill no variable of a pattern or, where rows have a flag, takes it from them.

    `names` tells the columns of the rows by those of the events.
    """

    plan: Plan
    names: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows in any order and give those that are left."""
        with in_task():
            yield from map(self._passing, batches)

    def _passing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        from trellis.events.variables import usable_events

        bound = self.plan.bound
        assert bound.schema is not None
        needed = {c.name: c.type for condition in self.plan.constant for c in columns_of(condition.value)}
        columns = {name: normalise(batch.column(self.names[name]), type_) for name, type_ in needed.items()}
        type_name = bound.schema.type_column
        if type_name is not None and type_name not in columns:
            column = batch.column(self.names[type_name])
            columns[type_name] = normalise(column, from_arrow(column.type))
        usable = usable_events(bound, self.plan.constant, columns, batch.num_rows)
        meets = np.logical_or.reduce(list(usable.values()))
        if USABLE not in batch.schema.names:
            return batch.filter(pa.array(meets))
        return batch.set_column(batch.schema.names.index(USABLE), USABLE, pa.array(meets))
