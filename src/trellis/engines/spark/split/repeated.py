"""Dropping repeated ids in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import TIME, group_begins, whole_groups
from trellis.events.clock import Clock
from trellis.kernels.events.partitions import drop_repeated
from trellis.language.bound import WindowKind
from trellis.plan.plan import Plan


@dataclass(frozen=True)
class FirstOfIds:
    """Keeps of rows that are sorted by `keys` and time those that share no window with one kept before."""

    plan: Plan
    keys: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take sorted rows and give those that are kept."""
        bound = self.plan.bound
        clock = Clock(bound.window, bound.known_schema.time_type)
        with in_task():
            for table in whole_groups(batches, self.keys):
                bounds = np.concatenate([group_begins(table, self.keys), [table.num_rows]])
                first = last = np.zeros(table.num_rows, np.int64)
                if bound.window.kind is WindowKind.SLIDING:
                    first, last = clock.windows(table[TIME].to_numpy())
                yield from table.filter(pa.array(drop_repeated(first, last, bounds))).to_batches()
