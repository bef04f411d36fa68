"""Rows, windows and partitions that the tasks of a job met, reported beside an answer: no other job counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.clock import Clock
from trellis.events.columns.ordering import group_codes
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.slice import Slice
from trellis.events.table_bytes import packed, unpacked
from trellis.events.ties import TieCount, count_ties
from trellis.language.bound import BoundQuery, WindowKind

MOST_REPORTED = 1 << 20  # windows, or partitions, that one task reports


@dataclass(frozen=True)
class GroupCounts:
    """Numbers of windows and of partitions; None: they were too many for the tasks to report.

    `rows`: how many rows were shuffled to the tasks, copies for overlapping window batches among them. `ties`: of the
    events, each counted once.
    """

    windows: int | None
    partitions: int | None
    rows: int | None = None
    ties: TieCount | None = None


class TaskReport(NamedTuple):
    """Report of one task: windows and partitions as Arrow streams, None where they are too many, its rows, its ties."""

    windows: bytes | None
    partitions: bytes | None
    rows: int
    events: int
    tied: int


REPORT_OF_TASK = pa.struct([
    ("windows", pa.binary()), ("partitions", pa.binary()), ("rows", pa.int64()), ("events", pa.int64()),
    ("tied", pa.int64()),
])  # fmt: skip


class GroupCollector:
    """Collects the windows and partitions that a task meets, and counts its rows.

    Parameters
    ----------
    bound
        The query.
    partition
        The partition's attributes.
    """

    def __init__(self, bound: BoundQuery, partition: Sequence[str]) -> None:
        self.clock = (
            Clock(bound.window, bound.known_schema.time_type) if bound.window.kind is WindowKind.SLIDING else None
        )
        self.partition = list(partition)
        self.ties = TieCount()
        self._windows: list[np.ndarray] = []
        self._partitions: list[pa.Table] = []
        self._rows = 0

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a task, counting their rows."""
        for batch in batches:
            self._rows += batch.num_rows
            yield batch

    def add(self, events: Slice) -> None:
        """Note the groups of a slice."""
        self.ties += self.ties_of(events)
        self._windows = [np.unique(np.concatenate([*self._windows, events.groups.number]))]
        if not self.partition:
            return
        firsts = pa.array(events.bounds[:-1])
        met = pa.table({f"p{i}": events.columns[name].take(firsts) for i, name in enumerate(self.partition)})
        self._partitions.append(met)

    def ties_of(self, events: Slice) -> TieCount:
        """Return the ties of a slice, each event counted once."""
        return count_ties(events, self._counted(events))

    def _counted(self, events: Slice) -> NDArray[np.bool_] | None:
        """Return which events are counted here: of the copies of an event that in the batch of its last window."""
        if self.clock is None or not self.clock.overlaps:
            return None
        latest = np.full(len(events.bounds), np.iinfo(np.int64).min)
        np.maximum.at(latest, np.searchsorted(events.bounds, events.groups.lo, "right") - 1, events.groups.number)
        return self.clock.windows(events.times)[1] <= np.repeat(latest[:-1], np.diff(events.bounds))

    def report(self) -> TaskReport:
        """Return the report for the driver."""
        windows = np.concatenate([*self._windows, np.zeros(0, np.int64)])
        windows_met = pa.table({"window": windows})
        partitions = distinct(pa.concat_tables(self._partitions)) if self._partitions else pa.table({})
        return TaskReport(_bytes(windows_met), _bytes(partitions), self._rows, self.ties.events, self.ties.tied)


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table, each once."""
    if not table.num_columns or not table.num_rows:
        return table
    columns = [normalise(column, from_arrow(column.type)) for column in table.columns]
    _, first = np.unique(group_codes(columns)[0], return_index=True)
    return table.take(pa.array(first))


def groups_met(reports: Sequence[TaskReport], has_partition: bool) -> GroupCounts:
    """Return how many windows, partitions and rows there are by the reports of tasks."""
    windows = [_table(report.windows) for report in reports]
    partitions = [_table(report.partitions) for report in reports]
    rows = sum(report.rows for report in reports)
    ties = sum((TieCount(report.events, report.tied) for report in reports), TieCount())
    number = None if any(one is None for one in windows) else _distinct_rows([t for t in windows if t is not None])
    if not has_partition:
        return GroupCounts(number, min(1, number) if number is not None else 1, rows, ties)
    if any(one is None for one in partitions):
        return GroupCounts(number, None, rows, ties)
    return GroupCounts(number, _distinct_rows([t for t in partitions if t is not None and t.num_columns]), rows, ties)


def _distinct_rows(tables: list[pa.Table]) -> int:
    return distinct(pa.concat_tables(tables)).num_rows if tables else 0


def _bytes(table: pa.Table) -> bytes | None:
    return None if table.num_rows > MOST_REPORTED else packed(table, compressed=False)


def _table(report: bytes | None) -> pa.Table | None:
    return None if report is None else unpacked(report)
