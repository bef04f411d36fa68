"""The stateful operator of a stream as Spark calls it, and the state that it asks for.

Spark starts a process for each stream only to ask which state there is. So this module imports nothing that works on
events, and the work is sent as bytes, which only a task reads.
"""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from trellis.engines.spark.session.failures import in_task
from trellis.events.table_bytes import packed, unpacked
from trellis.properties import cached_property

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PAGES = "rank_pages"  # the state variable of rank counters
BLOB, TEXT = StructType().add("blob", BinaryType()), StructType().add("text", StringType())
PAGE = StructType().add("space", IntegerType()).add("page", IntegerType())
COUNTERS = StructType().add("counters", StringType())


class BucketStore:
    """The state of a bucket in Spark's.

    Each variable costs every task some milliseconds, in which Spark analyses its type, and as many if that is a text:
    so tasks have those that they may need. The driver, which asks for the schema of the state, always has all.
    """

    def __init__(self, handle: StatefulProcessorHandle, paged: bool, old_ranks: bool) -> None:
        self._held: list[pa.Table] | None = None
        self._added: list[pa.Table] = []
        self._replaced = False
        client = getattr(handle, "_statefulProcessorApiClient", None)
        working = getattr(client, "handle_state", None) is StatefulProcessorHandleState.CREATED
        self._chunks = handle.getListState("chunks", BLOB)
        self._note = handle.getValueState("note", TEXT)
        if paged or not working:
            self._pages = handle.getMapState(PAGES, PAGE, COUNTERS)
        self._old_ranks = handle.getValueState("ranks", TEXT) if old_ranks or not working else None

    def chunks(self) -> list[pa.Table]:
        """Return the pieces in which events are held."""
        if self._held is None:
            self._held = [unpacked(bytes(row[0])) for row in self._chunks.get()]
        return [*self._held, *self._added]

    def append(self, chunk: pa.Table) -> None:
        """Add one."""
        self._added.append(chunk)

    def replace(self, chunks: Sequence[pa.Table]) -> None:
        """Put some in place of all."""
        self._held, self._added, self._replaced = list(chunks), [], True

    def note(self) -> str | None:
        """Return the small state as text, as the first thing that is asked of a bucket."""
        self._held, self._added, self._replaced = None, [], False
        return _text(self._note)

    def set_note(self, text: str) -> None:
        """Keep the small state and, at last, what has changed of the pieces: most come and go in one batch."""
        chunks = [(packed(chunk),) for chunk in (self.chunks() if self._replaced else self._added)]
        if self._replaced and chunks:
            self._chunks.put(chunks)
        elif self._replaced:
            self._chunks.clear()
        elif chunks:
            self._chunks.appendList(chunks)
        self._note.update((text,))

    def page(self, space: int, number: int) -> str | None:
        """Return a page of rank counters."""
        row = self._pages.getValue((space, number))
        return None if row is None else str(row[0])

    def set_page(self, space: int, number: int, text: str | None) -> None:
        """Keep one; None: keep none."""
        if text is None:
            self._pages.removeKey((space, number))
        else:
            self._pages.updateValue((space, number), (text,))

    def take_old_ranks(self) -> str | None:
        """Return the counters of an earlier version, and keep them no more."""
        if self._old_ranks is None:
            return None
        text = _text(self._old_ranks)
        if text is not None:
            self._old_ranks.clear()
        return text


def _text(state: Any) -> str | None:
    value = state.get()
    return None if value is None else str(value[0])


class StateWork(Protocol):
    """The work of a task on the state of a bucket."""

    def take(self, store: BucketStore, rows: Any, watermark: int | None) -> Iterator[pd.DataFrame]:
        """Take new rows of a bucket, and give rows."""

    def expire(self, store: BucketStore, watermark: int | None) -> Iterator[pd.DataFrame]:
        """Give rows when a timer is due."""


class WindowStateProcessor(StatefulProcessor):
    """Calls the work of a task with the state of its bucket and the watermark."""

    def __init__(self, work: StateWork, paged: bool = True, old_ranks: bool = True) -> None:
        self.sent, self.paged, self.old_ranks = pickle.dumps(work), paged, old_ranks

    @cached_property
    def work(self) -> StateWork:
        """The work, read from its bytes when a task begins."""
        work: StateWork = pickle.loads(self.sent)
        return work

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state."""
        go_on_at_interrupts()
        self._store = BucketStore(handle, self.paged, self.old_ranks)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Hold new events, and give what is decided."""
        watermark = watermark_of(timerValues)
        with in_task():
            yield from self.work.take(self._store, rows, watermark)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:  # fmt: skip
        """Give the results that the watermark has decided: earlier versions left timers."""
        watermark = watermark_of(timerValues)
        with in_task():
            yield from self.work.expire(self._store, watermark)

    def close(self) -> None:
        """There is nothing to give back."""


def watermark_of(values: Any) -> int | None:
    """Return the watermark; Spark's is 0 until events have moved it."""
    return int(values.getCurrentWatermarkInMs()) or None


def go_on_at_interrupts() -> None:
    """Have a worker finish its task after Ctrl-C, which a terminal sends to all processes."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
