"""The constant conditions that Spark cannot compute exactly, asked in its workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import USABLE
from trellis.events.adjacency import meets_condition
from trellis.events.columns.types import from_arrow, normalise
from trellis.language.bound import Condition, columns_of
from trellis.plan.plan import Plan


class RowFilter(ABC):
    """Leaves out the rows that may be in no result or, where rows have a flag, takes it from them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows in any order and give those that are left."""
        with in_task():
            for batch in batches:
                meets = pa.array(self._meets(batch))
                if USABLE in batch.schema.names:
                    yield batch.set_column(batch.schema.names.index(USABLE), USABLE, meets)
                else:
                    yield batch.filter(meets)

    @abstractmethod
    def _meets(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which rows are left."""


@dataclass(frozen=True)
class LateConditions(RowFilter):
    """Leaves out the rows that fail a condition; `names` tells the columns of the rows by those of the events."""

    conditions: tuple[Condition, ...]
    names: Mapping[str, str]

    def _meets(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        meets = np.ones(batch.num_rows, np.bool_)
        if USABLE in batch.schema.names:
            meets = batch.column(USABLE).to_numpy(zero_copy_only=False).astype(np.bool_)
        for condition in self.conditions:
            columns = {c.name: normalise(batch.column(self.names[c.name]), c.type) for c in columns_of(condition.value)}
            meets = meets & meets_condition(condition, columns, meets)
        return meets


@dataclass(frozen=True)
class SomeVariable(RowFilter):
    """Leaves out the rows that may fill no variable of a pattern; `names` as in `LateConditions`."""

    plan: Plan
    names: Mapping[str, str]

    def _meets(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        from trellis.events.variables import usable_events

        bound = self.plan.bound
        needed = {c.name: c.type for condition in self.plan.constant for c in columns_of(condition.value)}
        columns = {name: normalise(batch.column(self.names[name]), type_) for name, type_ in needed.items()}
        type_name = bound.known_schema.type_column
        if type_name is not None and type_name not in columns:
            column = batch.column(self.names[type_name])
            columns[type_name] = normalise(column, from_arrow(column.type))
        usable = usable_events(bound, self.plan.constant, columns, batch.num_rows)
        return np.asarray(np.logical_or.reduce(list(usable.values())))
