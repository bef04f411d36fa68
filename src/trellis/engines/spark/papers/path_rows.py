"""Ranked paths as rows of results, in Spark's workers, which import this module and have no parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trellis.engines.spark.batch.operate import PLACE, for_spark, without_group
from trellis.engines.spark.papers.indexed import EVENT, GROUP, WINDOW
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import ID, TIME
from trellis.engines.spark.split.split import row_names
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.slice import Groups, Ints, Slice
from trellis.operators.batch import PathBatch
from trellis.plan.plan import Plan
from trellis.results.rows import RowMaker

PATH, RANK = "path", "rank"


@dataclass(frozen=True)
class PathRows:
    """Makes rows of ranked paths, with the events and groups that they name: `list`, or `explode` to one an event."""

    plan: Plan
    what: str
    events: pa.Table
    groups: pa.Table

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take paths with their groups and ranks, and give the rows of results."""
        with in_task():
            events, numbers = self._slice(), self.events[EVENT].to_numpy()
            groups = self.groups[GROUP].to_numpy()
            exploded = self.what == "explode"
            maker = RowMaker(self.plan, events, positions=exploded, plain=exploded)
            for batch in batches:
                trends = _trends(batch, numbers, groups)
                rows = maker.exploded(maker.batch(trends)) if exploded else self._arranged(maker.batch(trends), trends)
                yield for_spark(rows)

    def _slice(self) -> Slice:
        columns = {n: _normalised(self.events[c]) for n, c in row_names(self.plan).items()}
        n = self.events.num_rows
        lo = np.searchsorted(self.events[EVENT].to_numpy(), self.groups[EVENT].to_numpy())
        groups = Groups(lo, lo + 1, self.groups[WINDOW].to_numpy())
        ids, times = _normalised(self.events[ID]), self.events[TIME].to_numpy()
        return Slice(columns, ids, times, np.ones(n, np.bool_), np.array([0, n]), groups, np.full(n, n))

    def _arranged(self, rows: pa.RecordBatch, trends: PathBatch) -> pa.RecordBatch:
        """Leave out the number of the group, and put the place of each row behind what orders them."""
        bound = self.plan.bound
        rows = without_group(bound, rows)
        return rows.append_column(PLACE, pa.array(trends.ranks)) if bound.order_by or bound.per_window else rows


def _normalised(column: pa.ChunkedArray) -> pa.Array:
    return normalise(column, from_arrow(column.type))


def _trends(batch: pa.RecordBatch, numbers: Ints, groups: Ints) -> PathBatch:
    """Return paths as trends: the numbers of events and groups become positions among those that are known."""
    paths = batch.column(PATH)
    positions = np.searchsorted(numbers, paths.flatten().to_numpy()).astype(np.int32)
    ends = np.cumsum(paths.value_lengths().to_numpy()).astype(np.int32)
    group = np.searchsorted(groups, batch.column(GROUP).to_numpy())
    return PathBatch.of_ends(positions, ends, (batch.column(RANK).to_numpy(), group))
