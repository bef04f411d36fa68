"""Chains of pipelines, `a >> b`: the results of one are the events of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.errors import UsageError
from trellis.graphs.instance import STATE, Instance
from trellis.graphs.job import TIME, Job, sort_key
from trellis.graphs.merger import Merger
from trellis.graphs.operator import Operator
from trellis.graphs.plain import from_bytes, to_bytes
from trellis.graphs.splitter import Splitter

NUMBER = "number"
"""The column that numbers the results of a pipeline, which are events of the next: their id there."""


@dataclass(frozen=True)
class PipelinePart:
    """A splitter, an operator and a merger."""

    splitter: Splitter
    operator: Callable[[], Operator]
    merger: Merger | None = None

    def after(self, job: Job) -> Job:
        """Return the job of this part over the results of another."""
        check_numbered(job.outer.names)
        schema = job.outer.append(pa.field(NUMBER, pa.int64()))
        return Job.over(schema, self.splitter, self.operator, self.merger, TIME, NUMBER)


def check_numbered(names: Sequence[str]) -> None:
    """Refuse results that have a column of the name by which they are numbered."""
    if NUMBER in names:
        raise UsageError(
            f"an operator gives a column `{NUMBER}`, which numbers the events of the next pipeline", "Rename it."
        )


def numbered(results: pa.Table, begin: int = 0, latest: Any = None) -> pa.Table:
    """Return results as events of the next pipeline: numbered, and none earlier than those before it.

    Results of partitions that only the end of the input closes come last, with the times of events before it; as events
    they have the latest time so far.

    Parameters
    ----------
    results
        Merged results, in order.
    begin, latest
        How many came before these, and the latest of their times as a number.
    """
    check_numbered(results.column_names)
    column = results[TIME]
    temporal = pa.types.is_timestamp(column.type)
    times = (column.cast(pa.int64()) if temporal else column).to_numpy()
    times = np.maximum.accumulate(times if latest is None or not len(times) else np.maximum(times, latest))
    numbers = pa.array(np.arange(begin, begin + results.num_rows), pa.int64())
    at = results.column_names.index(TIME)
    return results.set_column(at, results.schema.field(at), pa.array(times).cast(column.type)).append_column(
        NUMBER, numbers
    )


class Following:
    """The later parts of a chain over a stream: they take the merged results of each batch, in order, in one place.

    Parameters
    ----------
    job, parts
        The job whose results these are, and the parts after it.
    state
        What an earlier one's `state` returned, to go on from.
    """

    def __init__(self, job: Job, parts: Sequence[PipelinePart], state: bytes | None = None) -> None:
        states = [None] * len(parts) if state is None else from_bytes(state)
        self._links: list[_Link] = []
        for part, own in zip(parts, states, strict=True):
            job = part.after(job)
            self._links.append(_Link(job, own))

    @property
    def names(self) -> list[str]:
        """The names of the operators."""
        return [link.job.name for link in self._links]

    def take(self, results: pa.Table, end: bool = False) -> pa.Table:
        """Take results of the first part and return those of the last; `end` says that there are no more."""
        for link in self._links:
            results = link.take(results, end)
        return results

    def state(self) -> bytes:
        """Return the state to go on from later."""
        return to_bytes([link.state() for link in self._links], "the chain")


class _Link:
    """A later part of a chain, with how far it has come."""

    def __init__(self, job: Job, state: list[Any] | None) -> None:
        self.job, self.count, self.latest = job, 0, None
        self.merging, instance = job.merging(), None
        if state is not None:
            self.count, self.latest, instance, combined = state
            if self.merging.combine is not None:
                self.merging.combine.restore(combined)
        self.instance = Instance(job, state=None if instance is None else pa.table(instance, schema=STATE))

    def take(self, results: pa.Table, end: bool) -> pa.Table:
        """Take results of the part before, and return those of this one."""
        events = numbered(results, self.count, self.latest)
        self.count += events.num_rows
        rows = list(self.instance.take(self.job.shape.sorted_events(events)))
        self.latest = self.instance.last if events.num_rows else self.latest
        if end:
            rows += self.instance.end(self.latest)
        rows.sort(key=sort_key)
        return self.job.merged_table(rows, self.merging)

    def state(self) -> list[Any]:
        """Return the state to go on from later, as plain data."""
        combine = self.merging.combine
        combined = None if combine is None else combine.state()
        return [self.count, self.latest, self.instance.state().to_pydict(), combined]
