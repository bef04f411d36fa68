"""Results of a query as its events arrive, in this process: in batches, each no earlier than those before."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import DataError, UsageError
from trellis.events.columns.ordering import row_codes
from trellis.events.prepare import prepare
from trellis.events.sorting import column_of
from trellis.events.table_bytes import packed, unpacked
from trellis.events.tables import Tables, as_tables, with_readable_times
from trellis.language.schema import Schema
from trellis.limits import refuse_rows
from trellis.plan.plan import Plan
from trellis.streams.bucket import Bucket, OutputTable
from trellis.streams.calendar import END, Number, TimeLine
from trellis.streams.early import why_not_early
from trellis.streams.memory_store import MemoryStore
from trellis.streams.query import StandingQuery, check_standing_query
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import RESULTS, WINDOWS

NAME = "arrivals"


class Arrivals:
    """Takes events as they arrive, and gives the results that they complete or decide.

    A match of a fixed sequence is given with its last event. What a later event could still change is given when none
    can come any more: a window with the first event after it, what begins at an event when one has come that is more
    than WITHIN later. Events that no result to come can have are dropped; a fixed sequence without WITHIN drops none.

    Parameters
    ----------
    bind
        Makes the plan from the first batch of events.
    time
        The column of times, where it is named.
    max_trends
        The bound on the results of one window and partition, or of one batch of a fixed sequence.
    on_bad_rows
        Whether events with the same id in a window and partition are refused (`error`) or the first is kept (`drop`).
    state
        What `snapshot` gave, to go on from there.
    """

    def __init__(
        self, bind: Callable[[Tables], Plan], time: str | None, max_trends: int, on_bad_rows: str = "error",
        state: bytes | None = None,
    ) -> None:  # fmt: skip
        self._bind, self._time, self.max_trends, self._on_bad_rows = bind, time, max_trends, on_bad_rows
        self.query: StandingQuery | None = None
        self._bucket: Bucket
        self._store = MemoryStore()
        self._newest: Any = None
        self._last: pa.Table | None = None  # the latest event, where columns break ties
        self._ended = False
        if state is not None:
            self._restore(state)

    @property
    def plan(self) -> Plan | None:
        """The plan; None before the first batch."""
        return None if self.query is None else self.query.plan

    @property
    def held(self) -> int:
        """How many events are held: some two to four times as many as can be in a result to come."""
        return 0 if self.query is None else self._bucket.held

    @property
    def sums(self) -> int:
        """Of how many values sums are held in place of events, those that windows share once."""
        return 0 if self.query is None else self._bucket.sums

    # --- Events -------------------------------------------------------------------------------------------------

    def take(self, events: Any) -> pa.Table:
        """Take the next events, in any order among themselves; return the results that they complete or decide.

        Results of fixed sequences have no ranks, since others may come before them in the same window.

        Parameters
        ----------
        events
            An Arrow table, or a pandas or polars frame, with the columns and types of the first one.

        Raises
        ------
        DataError
            If an event is earlier than one that came in an earlier batch, a column is missing or has other values, or
            an id comes again. Such a batch is left out as a whole; later ones are taken as if it had not come. (Where a
            result waits for its window to end, an id that came twice is found out by then.)
        """
        if self._ended:
            raise UsageError("no events can come after the end", "Make another with query.arrivals.")
        first = self.query is None
        try:
            return self._take(self._read(events))
        except BaseException:
            if first:
                self.query = None
            raise

    def _take(self, table: pa.Table) -> pa.Table:
        if not table.num_rows:
            return self._empty()
        group = self._group
        self._check_rows(table)
        times = group.line.numbers(table, group.time)
        newest = times.max().item()
        if self._newest is not None and (times.min() < self._newest or not self._in_order(table)):
            raise DataError(
                "an event is earlier than one of an earlier batch", "Hold events back until none before them can come."
            )
        last = self._last_of(table)
        wanted = group.wanted(table)
        if not wanted.all():
            table, times = table.filter(pa.array(wanted)), times[wanted]
        found = self._through(lambda bucket: self._taken(bucket, table, times, newest))
        self._newest, self._last = newest, last
        return found

    def end(self) -> pa.Table:
        """Return the results that only the end of the events decides; none can be taken after that."""
        if self.query is None or self._ended:
            raise UsageError("no events have come since the start, so nothing can end", "Take events first.")
        found = self._empty() if self.query.early else self._through(lambda bucket: bucket.close(END))
        self._ended = True
        return found

    def _taken(self, bucket: Bucket, table: pa.Table, times: NDArray[Any], newest: Number) -> Iterable[OutputTable]:
        yield from bucket.take(table, newest, None, times)
        watermark = floor(newest / self._line.unit) if isinstance(newest, float) else int(newest // self._line.unit)
        yield from bucket.advance(watermark)

    def _through(self, work: Callable[[Bucket], Iterable[OutputTable]]) -> pa.Table:
        """Return the results of some work on the bucket; if it is refused, it leaves nothing behind."""
        self._store.begin()
        try:
            found = []
            for out in work(self._bucket):
                if out.kind == RESULTS:
                    found.append(out.table)
                elif out.kind == WINDOWS:
                    self._refuse_unlisted(out.table)
            self._bucket.finish()
        except BaseException:
            self._store.undo()
            self._bucket = Bucket(self._group, self._store)
            raise
        return pa.concat_tables(found) if found else self._empty()

    def _refuse_unlisted(self, windows: pa.Table) -> None:
        listed = windows["listed"]
        if listed.combine_chunks().false_count:
            unlisted = windows.filter(pc.invert(listed))
            refuse_rows(max(map(int, unlisted["count_text"].to_pylist())), self.max_trends)

    def _empty(self) -> pa.Table:
        return self._nothing

    def _check_rows(self, table: pa.Table) -> None:
        """Refuse events without a readable time or id, in the words of `detect`."""
        if not self._group.readable(table).all():
            assert self.query is not None
            prepare(self.query.plan, table)

    # --- Order --------------------------------------------------------------------------------------------------

    def _in_order(self, table: pa.Table) -> bool:
        """Return whether no event is before the latest one of earlier batches by what breaks ties."""
        if self._last is None:
            return True
        order = self._order(pa.concat_tables([self._last, table]))
        return bool(order.min() == order[0])

    def _last_of(self, table: pa.Table) -> pa.Table | None:
        """Return the latest of some events; None where nothing breaks ties."""
        return table.slice(int(self._order(table).argmax()), 1) if self._schema.tie_breakers else None

    def _order(self, table: pa.Table) -> np.ndarray:
        return row_codes([column_of(table, name) for name in (self._schema.time, *self._schema.tie_breakers)])

    @property
    def _schema(self) -> Schema:
        assert self.query is not None
        assert self.query.bound.schema is not None
        return self.query.bound.schema

    # --- Columns ------------------------------------------------------------------------------------------------

    def _read(self, events: Any) -> pa.Table:
        """Return the columns of a batch that the query reads, in the types that the first batch has."""
        given = as_tables(events)
        if None not in given:
            raise UsageError("a batch is one table of events", "Give one, with a column that tells the types.")
        if self.query is None:
            tables, _ = with_readable_times(given, self._time)
            self._begin(tables)
            return tables[None].select(self._fields.names)
        table = given[None]
        for name in self._fields.names:
            if name not in table.column_names:
                raise DataError(
                    f"a batch has no column `{name}`, which earlier ones have", "Give each batch the same columns."
                )
        table = table.select(self._fields.names)
        if table.schema.equals(self._fields):
            return table
        table = with_readable_times({None: table}, self._schema.time)[0][None]
        columns = [_like(table[field.name], field) for field in self._fields]
        return pa.Table.from_arrays(columns, schema=self._fields)

    def _begin(self, tables: Tables) -> None:
        """Bind the query to the columns of events."""
        plan = self._bind(tables)
        schema = plan.bound.schema
        if schema is None or schema.event_id is None:
            raise UsageError("events that arrive in batches need an id", "Name its column with event_id=.")
        early = why_not_early(plan, in_order=True) is None and self._on_bad_rows == "error"
        if not early:
            check_standing_query(plan.bound)
        roles = {name for _, name in schema.required} | {schema.type_column, *plan.columns}
        self._fields = pa.schema([field for field in tables[None].schema if field.name in roles])
        self.query = StandingQuery(NAME, plan, self.max_trends, self._on_bad_rows, early, in_order=True)
        self._group, self._nothing = QueryGroup((self.query,)), self.query.schema.empty_table()
        self._line: TimeLine = self._group.line
        self._bucket = Bucket(self._group, self._store)

    # --- As bytes -----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the state as bytes, from which `query.arrivals(..., state=...)` goes on, in any process."""
        if self.query is None:
            return self._store.to_bytes({"query": None})
        about = {
            "query": self.query.key, "fields": _text(self._fields.empty_table()), "newest": self._newest,
            "ended": self._ended, "last": None if self._last is None else _text(self._last),
        }  # fmt: skip
        return self._store.to_bytes(about)

    def _restore(self, state: bytes) -> None:
        self._store, about = MemoryStore.from_bytes(state)
        if about["query"] is None:
            return
        self._begin({None: _table(about["fields"])})
        assert self.query is not None
        if self.query.key != about["query"]:
            raise UsageError(
                "the state is that of another query, or of one with other parameters or columns",
                "Give the state to the query that it is of, or begin without one.",
            )
        self._newest, self._ended = about["newest"], about["ended"]
        self._last = None if about["last"] is None else _table(about["last"])


def _text(table: pa.Table) -> str:
    return b64encode(packed(table)).decode()


def _table(text: str) -> pa.Table:
    return unpacked(b64decode(text))


def _like(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column in the type that it has in the first batch."""
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise DataError(
            f"the column `{field.name}` of a batch is {column.type}, and of earlier ones {field.type}",
            "Give each batch the same types.",
        ) from None
