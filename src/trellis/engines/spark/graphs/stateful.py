"""Operators over graphs in Spark's stateful streaming: events wait for the watermark, then instances take them.

As in other streams here, events and what comes out are packed as bytes, one piece for each task and instance: Spark's
state costs by the row. An instance is kept as a table of plain bytes, a row for each of its operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from trellis.engines.spark.graphs.handover import Handover, InstanceState, by_instance, kept_operators
from trellis.engines.spark.graphs.tasks import FIRST, routed
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.stream.processor import go_on_at_interrupts, watermark_of
from trellis.events.table_bytes import packed, unpacked
from trellis.graphs.instance import Instance
from trellis.graphs.job import Job, Row

if TYPE_CHECKING:
    import pandas as pd

PACKED = "instance int, taken bigint, bad bigint, blob binary"
PACKED_ARROW = pa.schema([("instance", pa.int32()), ("taken", pa.int64()), ("bad", pa.int64()), ("blob", pa.binary())])
FOUND = "taken bigint, bad bigint, late bigint, blob binary"
FOUND_ARROW = pa.schema([("taken", pa.int64()), ("bad", pa.int64()), ("late", pa.int64()), ("blob", pa.binary())])


@dataclass(frozen=True)
class Pack:
    """Makes pieces of the events of a task, one for each instance; events without a time or an id are only counted."""

    job: Job
    names: tuple[str, ...]
    numbers: tuple[int, ...]
    to_all: bool = False  # whether every instance gets a piece, even an empty one

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take events."""
        go_on_at_interrupts()
        with in_task():
            for batch in batches:
                if batch.num_rows:
                    yield from self._pieces(pa.Table.from_batches([batch]).rename_columns(list(self.names)))

    def _pieces(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        good = self.job.shape.usable(table)
        taken, bad = table.num_rows, int((~good).sum())
        events = table.filter(pa.array(good))
        found = routed(self.job, events, len(self.numbers))
        copies = events.take(pa.array(found.rows)).append_column(FIRST, pa.array(found.first))
        places = range(len(self.numbers)) if self.to_all else np.unique(np.append(found.instances, 0)).tolist()
        for place in places:
            own = copies.filter(pa.array(found.instances == place))
            row = [[self.numbers[place]], [taken], [bad], [packed(own.combine_chunks())]]
            taken = bad = 0  # told once
            yield pa.RecordBatch.from_arrays(
                [pa.array(one, fld.type) for one, fld in zip(row, PACKED_ARROW, strict=True)], schema=PACKED_ARROW
            )


class WaitingEvents:
    """Events that wait, and the instance that they wait for."""

    def __init__(self, job: Job, number: int, instances: int, held: InstanceState) -> None:
        self.job = job
        self._given = (number, instances, held.operators)
        self.waiting = [unpacked(blob) for blob in held.waiting]
        self.instance: Instance | None = None

    def wake(self) -> Instance:
        """Return the instance."""
        if self.instance is None:
            number, instances, state = self._given
            self.instance = Instance(self.job, number, instances, None if state is None else unpacked(state))
        return self.instance

    def take(self, events: pa.Table, limit: Any) -> int:
        """Let events wait; return how many came too late."""
        late = self._times(events) < limit if limit is not None else np.zeros(events.num_rows, np.bool_)
        kept = events.filter(pa.array(~late))
        if kept.num_rows:
            self.waiting.append(kept)
        return int((events[FIRST].to_numpy() & late).sum())

    def decide(self, limit: Any, last: Any = None) -> pa.Table:
        """Return the results of the events and of the calls before a time.

        None is the end of the input, whose last event is at the time `last`.
        """
        instance = self.wake()
        rows: list[Row] = []
        if self.waiting:
            events = pa.concat_tables(self.waiting, promote_options="permissive")
            ready = np.ones(events.num_rows, np.bool_) if limit is None else self._times(events) < limit
            rest = events.filter(pa.array(~ready))
            self.waiting = [rest.combine_chunks()] if rest.num_rows else []
            now = events.filter(pa.array(ready)).drop_columns([FIRST])
            rows += instance.take(self.job.shape.sorted_events(now))
        rows += instance.end(last) if limit is None else instance.advance(limit, before=True)
        return self.job.inner_table(rows)

    def earliest(self) -> Any:
        """Return the time of the first event that waits, or of the first call once calls are known; or None."""
        times = [self._times(table).min().item() for table in self.waiting if table.num_rows]
        call = None if self.instance is None else self.instance.calls.first()
        return min(times if call is None else [*times, call], default=None)

    def last(self) -> Any:
        """Return the time of the last event that waits or has been taken, or None."""
        times = [self._times(table).max().item() for table in self.waiting if table.num_rows]
        return max((time for time in [*times, self.wake().last] if time is not None), default=None)

    def _times(self, table: pa.Table) -> np.ndarray:
        return np.asarray(self.job.shape.times(table).to_numpy())


class InstanceProcessor(StatefulProcessor):
    """Holds the events of instances, and runs these over them as far as the watermark says that all have come."""

    def __init__(self, job: Job, numbers: tuple[int, ...], handover: Handover) -> None:
        self.job, self.numbers, self.handover = job, numbers, handover

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state."""
        go_on_at_interrupts()
        self._handle = handle
        self._waiting = handle.getListState("waiting", "blob binary")
        self._instance = handle.getValueState("operators", "blob binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Hold new events until a timer says that they are due."""
        taken = bad = late = 0
        with in_task():
            held = self._held(key)
            assert held is not None, "events go to instances that there are"
            for row in (row for frame in rows for row in frame.itertuples(index=False)):
                taken, bad = taken + int(row.taken), bad + int(row.bad)
                late += held.take(unpacked(row.blob), self._limit(timerValues))
            self._keep(held)
        yield _row(taken, bad, late, b"")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Give the results of the events behind the watermark."""
        limit = self._limit(timerValues)
        if limit is None:
            return
        with in_task():
            held = self._held(key)
            if held is None:
                return
            found = held.decide(limit)
            self._keep(held)
        if found.num_rows:
            yield _row(0, 0, 0, packed(found))

    def _limit(self, values: Any) -> Any:
        """Return the time that the watermark has reached, as a time of events."""
        watermark = watermark_of(values)
        return None if watermark is None else watermark * (1000 if self.job.shape.temporal else 1)

    def _held(self, key: Any) -> WaitingEvents | None:
        """Return the state of an instance; None of one that is no more, whose state is then removed."""
        kept = self._instance.get()
        waiting = [bytes(row[0]) for row in self._waiting.get()]
        state = InstanceState(waiting, None if kept is None else bytes(kept[0]))
        number = int(key[0])
        if number not in self.numbers:
            self._waiting.clear()
            self._instance.clear()
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(int(timer))
            return None
        current = self.handover.current(number, state)
        held = WaitingEvents(self.job, self.numbers.index(number), len(self.numbers), current)
        if not self.handover.is_taken(state):
            held.wake()  # so that it is kept with all that it was handed
        return held

    def _keep(self, held: WaitingEvents) -> None:
        if held.waiting:
            self._waiting.put([(packed(table),) for table in held.waiting])
        else:
            self._waiting.clear()
        if held.instance is not None:
            self._instance.update((kept_operators(held.instance.state(), self.handover.generation),))
        earliest = held.earliest()
        wanted = None if earliest is None else max(1, int(earliest // (1000 if self.job.shape.temporal else 1)))
        known = [int(timer) for timer in self._handle.listTimers()]
        if held.instance is None:  # its calls are in the state, and what they wait for is among the timers
            wanted = min([*known, wanted] if wanted is not None else known, default=None)
        for timer in known:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in known:
            self._handle.registerTimer(wanted)

    def close(self) -> None:
        """There is nothing to give back."""


def _row(taken: int, bad: int, late: int, blob: bytes) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([{"taken": taken, "bad": bad, "late": late, "blob": blob}])


LAST_TIME = {True: ("last bigint", pa.int64()), False: ("last double", pa.float64())}
"""The column of `LastTime`, by whether times are whole numbers."""


@dataclass(frozen=True)
class StateRows:
    """Rows of the state, `instance`, `variable` and `value`, of which those of an instance come together."""

    job: Job
    numbers: tuple[int, ...]

    def held(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WaitingEvents]:
        """Yield the instances with what waits for them."""
        rows = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        for number, state in by_instance(rows).items():
            yield WaitingEvents(self.job, self.numbers.index(number), len(self.numbers), state)


@dataclass(frozen=True)
class LastTime(StateRows):
    """Gives the time of the last event of each instance."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows of the state."""
        with in_task():
            kind = LAST_TIME[not pa.types.is_floating(self.job.shape.time_type)][1]
            times = pa.array([held.last() for held in self.held(batches)], kind)
            yield pa.RecordBatch.from_arrays([times], names=["last"])


@dataclass(frozen=True)
class Flush(StateRows):
    """Gives the results at the end of the input, whose last event is at the time `last`."""

    last: Any = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows of the state."""
        with in_task():
            for held in self.held(batches):
                row = {"taken": 0, "bad": 0, "late": 0, "blob": packed(held.decide(None, self.last))}
                yield pa.RecordBatch.from_pylist([row], schema=FOUND_ARROW)
