"""Which windows and partitions the tasks of a job met: reported beside an answer, so that no other job counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.clock import Clock
from trellis.events.columns.ordering import group_codes
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.slice import Slice
from trellis.events.ties import TieCount, count_ties
from trellis.language.bound import BoundQuery, WindowKind

MOST_REPORTED = 1 << 20  # windows, or partitions, that one task reports


@dataclass(frozen=True)
class GroupsMet:
    """Numbers of windows and of partitions, and of ties; None: they were too many for the tasks to report."""

    windows: int | None
    partitions: int | None
    ties: TieCount | None = None


class GroupCollector:
    """Collects the windows and partitions that a task meets.

    Parameters
    ----------
    bound
        The query.
    partition
        The partition's attributes.
    """

    def __init__(self, bound: BoundQuery, partition: Sequence[str]) -> None:
        assert bound.schema is not None
        self.clock = Clock(bound.window, bound.schema.time_type) if bound.window.kind is WindowKind.SLIDING else None
        self.partition = list(partition)
        self.ties = TieCount()
        self._windows: list[np.ndarray] = []
        self._partitions: list[pa.Table] = []

    def add(self, events: Slice) -> None:
        """Note the groups of a slice."""
        self.ties += count_ties(events, self._counted(events))
        self._windows = [np.unique(np.concatenate([*self._windows, events.groups.number]))]
        if not self.partition:
            return
        firsts = pa.array(events.bounds[:-1])
        met = pa.table({f"p{i}": events.columns[name].take(firsts) for i, name in enumerate(self.partition)})
        self._partitions.append(met)

    def _counted(self, events: Slice) -> NDArray[np.bool_] | None:
        """Return which events are counted here: of the copies of an event that in the batch of its last window."""
        if self.clock is None or not self.clock.overlaps:
            return None
        latest = np.full(len(events.bounds), np.iinfo(np.int64).min)
        np.maximum.at(latest, np.searchsorted(events.bounds, events.groups.lo, "right") - 1, events.groups.number)
        return self.clock.windows(events.times)[1] <= np.repeat(latest[:-1], np.diff(events.bounds))

    def report(self) -> tuple[bytes | None, bytes | None]:
        """Return windows and partitions for the driver; None for what is too much to report, or not there."""
        windows = np.concatenate([*self._windows, np.zeros(0, np.int64)])
        windows_met = pa.table({"window": windows})
        partitions = distinct(pa.concat_tables(self._partitions)) if self._partitions else pa.table({})
        return _bytes(windows_met), _bytes(partitions)


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table, each once."""
    if not table.num_columns or not table.num_rows:
        return table
    columns = [normalise(column, from_arrow(column.type)) for column in table.columns]
    _, first = np.unique(group_codes(columns)[0], return_index=True)
    return table.take(pa.array(first))


@dataclass(frozen=True)
class GroupReport:
    """The windows and partitions that a task met, packed, and the ties among its events."""

    windows: bytes | None
    partitions: bytes | None
    ties: TieCount


def groups_met(reports: Sequence[GroupReport], has_partition: bool) -> GroupsMet:
    """Return how many windows and partitions there are by the reports of tasks."""
    windows = [_table(one.windows) for one in reports]
    partitions = [_table(one.partitions) for one in reports]
    ties = sum((one.ties for one in reports), TieCount())
    number = None if any(one is None for one in windows) else _distinct_rows([t for t in windows if t is not None])
    if not has_partition:
        return GroupsMet(number, min(1, number) if number is not None else 1, ties)
    if any(one is None for one in partitions):
        return GroupsMet(number, None, ties)
    return GroupsMet(number, _distinct_rows([t for t in partitions if t is not None and t.num_columns]), ties)


def _distinct_rows(tables: list[pa.Table]) -> int:
    return distinct(pa.concat_tables(tables)).num_rows if tables else 0


def _bytes(table: pa.Table) -> bytes | None:
    if table.num_rows > MOST_REPORTED:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _table(report: bytes | None) -> pa.Table | None:
    return None if report is None else pa.ipc.open_stream(report).read_all()
