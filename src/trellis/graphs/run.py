"""Runs a job in this process, over a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trellis.errors import DataError, TrellisError, UsageError
from trellis.graphs.chain import NUMBER, PipelinePart, numbered
from trellis.graphs.events import Event
from trellis.graphs.instance import Instance, failed
from trellis.graphs.job import TIME, Job, Row, sort_key
from trellis.graphs.merger import Merger
from trellis.graphs.splitter import Splitter


@dataclass(frozen=True)
class JobOutput:
    """The output of a job that ran in this process.

    Attributes
    ----------
    table
        The merged results, in order.
    events
        How many events there were.
    partitions_left
        How many partitions no event had closed at the end of the input.
    """

    table: pa.Table
    events: int
    partitions_left: int

    def to_arrow(self) -> pa.Table:
        """Return the results as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the results as a pandas frame."""
        return self.table.to_pandas()


def run(
    events: Any,
    splitter: Splitter,
    operator: Any,
    merger: Merger | None = None,
    *,
    time: str | None = None,
    event_id: str | None = None,
    instances: int = 1,
) -> JobOutput:
    """Split events, run an operator over them, and merge what it finds, in this process.

    Parameters
    ----------
    events
        An Arrow table, a pandas or polars frame, or an iterable of dictionaries.
    splitter
        Which partitions events belong to.
    operator
        The class of the operator, or what makes a fresh one.
    merger
        The order of results, and what is combined from them.
    time, event_id
        The columns that hold time and id. Without `time` the only column called `time`, `ts`, `timestamp` or
        `event_time` is taken; without `event_id` events with equal times stay in the order that they are in.
    instances
        How many instances share the partitions. The results are the same with any number.
    """
    if instances < 1:
        raise UsageError(f"{instances} instances cannot run", "At least one is needed.")
    table, time = readable(events, time)
    job = Job.over(table.schema, splitter, operator, merger, time, event_id)
    workers = [Instance(job, number, instances) for number in range(instances)]
    rows: list[Row] = []
    number, last = 0, None
    for event in job.shape.sorted_events(table):
        for place in destinations(job, event, last, instances):
            rows += workers[place].take((event,))
        number, last = number + 1, event.time
    left = sum(1 for worker in workers for _ in worker.unclosed())
    for worker in workers:
        rows += worker.end(last)
    rows.sort(key=sort_key)
    return JobOutput(job.merged_table(rows), number, left)


def run_chain(
    events: Any,
    parts: Sequence[PipelinePart],
    *,
    time: str | None = None,
    event_id: str | None = None,
    instances: int = 1,
) -> JobOutput:
    """Run parts one after another, each over the results of the one before it; see `run`."""
    first, *later = parts
    found = run(events, first.splitter, first.operator, first.merger, time=time, event_id=event_id, instances=instances)
    for part in later:
        after = run(
            numbered(found.table), part.splitter, part.operator, part.merger, time=TIME, event_id=NUMBER,
            instances=instances,
        )  # fmt: skip
        found = JobOutput(after.table, found.events, found.partitions_left + after.partitions_left)
    return found


def destinations(job: Job, event: Event, previous: Any, instances: int) -> Sequence[int]:
    """Return the instances that an event goes to; see `Splitter.instances_of`."""
    try:
        return job.splitter.instances_of(event, previous, instances)
    except TrellisError:
        raise
    except Exception as problem:
        raise failed(problem, "the splitter", event.event_id, "") from problem


def readable(events: Any, time: str | None) -> tuple[pa.Table, str]:
    """Return events as a table whose times can be read, and the name of its time column."""
    from trellis.events.tables import as_tables, with_readable_times

    if isinstance(events, list | tuple | Iterator):
        events = list(events)
        if not events:
            raise UsageError("there are no events, and so no columns", "Give an empty table with its columns.")
        try:
            events = pa.Table.from_pylist([dict(row) for row in events])
        except pa.ArrowException as problem:
            raise DataError(f"the events do not make a table: {problem}", "Give their values one type.") from None
    tables, time = with_readable_times(as_tables(events), time)
    return tables[None], time
