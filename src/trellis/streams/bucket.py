"""The window state of a query group: the events of some partitions that open windows still need, as columnar bytes.

Queries with the same time and partition columns share the events of a bucket: each is held once, however many windows
of however many queries it lies in, and dropped when none needs it any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.prepare import meets_constants
from trellis.events.sorting import column_of
from trellis.language.bound import WindowKind
from trellis.results.rows import arrow_type, one_zero
from trellis.results.taken import present
from trellis.streams.calendar import Calendar, Number
from trellis.streams.decisions import LateEvents, close, close_sums, partition_key
from trellis.streams.early import NEW, completed, may_complete
from trellis.streams.query import StandingQuery
from trellis.streams.query_group import QueryGroup
from trellis.streams.ranks import RankCounters
from trellis.streams.sharing import SharedWork
from trellis.streams.stream_output import LATE, REPEATED, RESULTS, TIMEOUTS, WINDOWS
from trellis.streams.sum_pages import SumPages
from trellis.streams.sums import FEWEST, TrendSums
from trellis.streams.timeouts import timed_out

STALE = 0.25  # share of the events held that may be needed no more before the others are written anew
CHUNKS = 64  # pieces in which events are held, before they are joined


class Store(Protocol):
    """The place where the state of a bucket is stored."""

    def chunks(self) -> list[pa.Table]:
        """Return the chunks in which events are held."""

    def append(self, chunk: pa.Table) -> None:
        """Add a chunk."""

    def replace(self, chunks: Sequence[pa.Table]) -> None:
        """Replace all chunks."""

    def note(self) -> str | None:
        """Return the small state as text."""

    def set_note(self, text: str) -> None:
        """Store the small state."""

    def page(self, space: int, number: int) -> str | None:
        """Return a page of rank counters as text; see `PageStore`."""

    def set_page(self, space: int, number: int, text: str | None) -> None:
        """Store a page; None: remove it."""

    def take_old_ranks(self) -> str | None:
        """Return all counters as the one text in which earlier versions stored them, and remove that."""


@dataclass(frozen=True)
class OutputTable:
    """Rows that a bucket emits: their kind, their query, and the table."""

    kind: str
    query: str
    table: pa.Table


@dataclass
class _Note:
    """The small state of a bucket.

    Attributes
    ----------
    newest
        The latest time of an event that came, held or not.
    held
        How many events are held.
    next
        The first watermark that decides more of them.
    closed
        The watermark at which each query was last evaluated; None: never.
    since
        For queries that were added later, the latest time of events that they may have missed.
    late
        For each query, windows that are still open and partitions with events that came too late for them.
    spaces
        How many queries have had pages of rank counters; None: an earlier version may have stored them in another way.
    ranks
        For each query with a span, the space, the number of the pages and that of the counters.
    sums
        For each query of whose past sums are kept, the fields of its `SumPages`.
    enough
        Twice the events that were left when events were last added to sums: so many more have to come.
    reached
        The latest watermark so far: Spark's, or the one that events brought before Spark had it.
    """

    newest: Any = None
    held: int = 0
    next: int | None = None
    closed: dict[str, Number | None] = field(default_factory=dict)
    since: dict[str, Any] = field(default_factory=dict)
    late: dict[str, list[tuple[int, str, int]]] = field(default_factory=dict)
    spaces: int | None = None
    ranks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    sums: dict[str, dict[str, Any]] = field(default_factory=dict)
    enough: int = 0
    reached: Number | None = None


class Bucket:
    """Takes events and watermarks, and yields the results that the watermarks decide."""

    def __init__(self, group: QueryGroup, store: Store) -> None:
        self.group, self.store = group, store
        self._sums: dict[str, TrendSums] = {}
        self._pages: dict[str, SumPages] = {}
        self.calendars = {one.key: Calendar(one.bound, one.early) for one in group.queries}
        text = store.note()
        told = json.loads(text) if text else {}
        told.pop("timers", None)  # of an earlier version
        self._note = _Note(**told)
        known = self._note.closed
        for name in self.calendars:
            if name not in known:  # a new query: what came before it may have been left out or dropped
                known[name] = None
                if self._note.newest is not None:
                    self._note.since[name] = self._note.newest
        for name in set(known) - self.calendars.keys():
            if name in self._note.ranks:
                RankCounters(self.store, *self._note.ranks.pop(name)).clear()
            if name in self._note.sums:
                SumPages(**self._note.sums.pop(name)).clear(self.store)
            for mapping in (known, self._note.since, self._note.late):
                mapping.pop(name, None)

    # --- Events -----------------------------------------------------------------------------------------------

    def take(
        self, table: pa.Table, newest: Any, watermark: Number | None, times: NDArray[Any] | None = None
    ) -> Iterator[OutputTable]:
        """Hold the events that are wanted; yield those that are behind the watermark, and early results.

        `newest` is the latest time of all events that came, those too that no query wants; `times` are those of the
        table as the group's line has them, where they are known.
        """
        before = self._note.newest
        self._note.newest = newest if before is None else max(before, newest)
        if not table.num_rows:
            return
        watermark = self._not_before(watermark)
        times = self.group.line.numbers(table, self.group.time) if times is None else times
        behind = times < self.group.line.at(watermark) if watermark is not None else np.zeros(len(times), np.bool_)
        if behind.any():
            late = table.filter(pa.array(behind))
            self._count_late(late)
            yield OutputTable(LATE, "", late)
            table = table.filter(pa.array(~behind))
            times = times[~behind]
        if table.num_rows:
            table = table.select(self.group.columns)
            yield from self._complete(table, before is None or bool(times.min() > before))
            self._note.held += table.num_rows
            self.store.append(table)
            self._note.next = self._next(table, times, self._note.next)

    def _complete(self, table: pa.Table, in_order: bool) -> Iterator[OutputTable]:
        """Yield the results that events complete, which are to be held; `in_order`: none is before one that is."""
        waiting = [
            one for one in self.group.queries
            if one.early and not ((in_order or one.in_order) and not may_complete(one.plan, table))
        ]  # fmt: skip
        if not waiting:
            return
        chunks = [chunk.append_column(NEW, pa.repeat(False, chunk.num_rows)) for chunk in self.store.chunks()]
        work = SharedWork([*chunks, table.append_column(NEW, pa.repeat(True, table.num_rows))])
        for one in waiting:
            for found in completed(one, work.events(one.columns), self._since(one.key), in_order or one.in_order):
                for batch in found.results:
                    yield OutputTable(RESULTS, one.name, pa.Table.from_batches([batch]))
                if found.unlisted is not None:
                    yield OutputTable(WINDOWS, one.name, found.unlisted)

    def _count_late(self, events: pa.Table) -> None:
        """Note which windows that are still open miss the events."""
        for one in self.group.queries:
            if one.bound.window.kind is not WindowKind.SLIDING or one.early:
                continue
            calendar = self.calendars[one.key]
            wanted = events.filter(pa.array(meets_constants(one.plan, events)))
            if not wanted.num_rows:
                continue
            first, last = calendar.windows_of(calendar.line.numbers(wanted, self.group.time))
            closed = int(calendar.decided(self._note.closed[one.key]))
            counted = {(number, key): n for number, key, n in self._note.late.get(one.key, [])}
            for low, high, key in zip(first.tolist(), last.tolist(), self._partitions(one, wanted), strict=True):
                for number in range(max(low, closed + 1), high + 1):
                    counted[number, key] = counted.get((number, key), 0) + 1
            self._note.late[one.key] = [(number, key, n) for (number, key), n in counted.items()]

    def _partitions(self, one: StandingQuery, events: pa.Table) -> list[str]:
        columns = [
            one_zero(present(column_of(events, name), arrow_type(type_))).to_pylist()
            for name, type_ in one.bound.partition
        ]
        return [partition_key(values) for values in zip(*columns, strict=True)] if columns else ["[]"] * len(events)

    # --- Watermarks -------------------------------------------------------------------------------------------

    def advance(self, watermark: Number | None) -> Iterator[OutputTable]:
        """Yield the results that a watermark decides, if it does; else take notice of it."""
        watermark = self._not_before(watermark)
        if watermark is None:
            return
        self._note.reached = watermark
        if self.next_watermark is not None and self.next_watermark <= watermark:
            yield from self.close(watermark)
        else:
            self.fold(watermark)

    def _not_before(self, watermark: Number | None) -> Number | None:
        """Return a watermark, or the one that was reached before if that is later."""
        known = [one for one in (watermark, self._note.reached) if one is not None]
        return max(known, default=None)

    def close(self, watermark: Number) -> Iterator[OutputTable]:
        """Yield the results that a watermark decides, and drop the events that no open window needs any more."""
        chunks = self.store.chunks()
        work = SharedWork(chunks, self.group.wide)
        for one in self.group.in_order:
            before = self._note.closed[one.key]
            self._note.closed[one.key] = watermark
            if one.early or (not chunks and one.key not in self._note.sums):
                continue
            late = LateEvents({(number, key): n for number, key, n in self._note.late.get(one.key, [])})
            ranks = None if self.calendars[one.key].sliding else self._ranks(one.key)
            if one.summed:
                table = work.events(one.columns) if chunks else None
                closed = close_sums(one, self._add(one, table, before, watermark), watermark, late)
            else:
                closed = close(one, work, before, watermark, self._since(one.key), late, ranks)
            for batch in closed.results:
                if batch.num_rows:
                    yield OutputTable(RESULTS, one.name, pa.Table.from_batches([batch]))
            for windows in closed.windows:
                yield OutputTable(WINDOWS, one.name, windows)
            if closed.repeated.num_rows:
                yield OutputTable(REPEATED, one.name, closed.repeated)
            beginnings = self.group.beginnings(one) if chunks else ()
            for timeouts in timed_out(beginnings, work, before, watermark, self._since(one.key)):
                yield OutputTable(TIMEOUTS, one.name, timeouts)
            if ranks is not None:
                self._note.ranks[one.key] = (ranks.space, ranks.pages, ranks.keys)
            self._write_sums(one)
            if one.key in self._note.late:
                decided = self.calendars[one.key].decided(watermark)
                self._note.late[one.key] = [row for row in self._note.late[one.key] if row[0] > decided]
        self._note.next = None
        if chunks:
            self._drop(chunks, watermark)
        self._await_sums()

    def _ranks(self, name: str) -> RankCounters:
        """Return the rank counters of a query, also those that an earlier version stored."""
        if self._note.spaces is None:
            self._take_old_ranks()
        if name in self._note.ranks:
            return RankCounters(self.store, *self._note.ranks[name])
        return RankCounters(self.store, self._new_space())

    def _take_old_ranks(self) -> None:
        self._note.spaces = 0
        for key, counts in json.loads(self.store.take_old_ranks() or "{}").items():
            if key in self.calendars:
                ranks = self._ranks(key)
                ranks.add(counts)
                self._note.ranks[key] = (ranks.space, ranks.pages, ranks.keys)

    def _new_space(self) -> int:
        """Return a space of pages that nothing has had yet."""
        if self._note.spaces is None:
            self._take_old_ranks()
        assert self._note.spaces is not None
        self._note.spaces += 1
        return self._note.spaces

    def _since(self, name: str) -> Number | None:
        since = self._note.since.get(name)
        if since is None:
            return None
        unit, own = self.group.line.unit, self.calendars[name].line.unit
        return since if isinstance(own, float) else since * (int(own) // int(unit))

    # --- Sums -------------------------------------------------------------------------------------------------

    def fold(self, watermark: Number | None, least: int = FEWEST) -> None:
        """Where only sums are needed of the past, add the events before the watermark to them, if these are many.

        They are as soon as there are `least`, and so many that to go through all sums costs little for each.
        """
        note, queries = self._note, self.group.queries
        few = note.held < max(least, self.sums, note.enough)
        due = watermark is None or (note.next is not None and note.next <= watermark)  # closing adds them
        if few or due or not all(one.summed for one in queries):
            return
        assert watermark is not None
        chunks = self.store.chunks()
        work = SharedWork(chunks)
        for one in queries:
            self._add(one, work.events(one.columns), note.closed[one.key], watermark)
            self._write_sums(one)
        self._drop(chunks, watermark)
        self._await_sums()
        note.enough = 2 * note.held

    def _add(self, one: StandingQuery, table: pa.Table | None, before: Number | None, watermark: Number) -> TrendSums:
        """Return the sums of a query, with the events before the watermark added."""
        pages = self._pages[one.key] = self._pages_of(one)
        if one.key not in self._sums:
            self._sums[one.key] = pages.read(one, self.store)
        line = self.calendars[one.key].line
        if table is not None and table.num_rows:
            times = line.numbers(table, self.group.time)
            new = times < line.at(watermark)
            if pages.added is not None:
                new &= times >= line.at(pages.added)
            if new.any():
                self._sums[one.key].add(table.filter(pa.array(new)), before, self._since(one.key))
        pages.added = watermark
        return self._sums[one.key]

    def _pages_of(self, one: StandingQuery) -> SumPages:
        kept = self._note.sums.get(one.key)
        return SumPages(self._new_space()) if kept is None else SumPages(**kept)

    def _write_sums(self, one: StandingQuery) -> None:
        if one.summed:
            self._pages[one.key].write(self._sums[one.key], self.store)
            self._note.sums[one.key] = vars(self._pages[one.key])

    def _await_sums(self) -> None:
        """Be called when a window ends of which sums are kept."""
        ends = [self._note.next]
        for key, kept in self._note.sums.items():
            if kept["first_window"] is not None:
                calendar = self.calendars[key]
                ends.append(calendar.line.watermark_from(calendar.end(kept["first_window"]), strictly=False))
        self._note.next = min((end for end in ends if end is not None), default=None)

    # --- What is held -----------------------------------------------------------------------------------------

    def _drop(self, chunks: Sequence[pa.Table], watermark: Number) -> None:
        """Drop the events that are no longer needed, if there are enough of them."""
        held = pa.concat_tables([chunk.select([self.group.time]) for chunk in chunks], promote_options="permissive")
        needed = np.zeros(held.num_rows, np.bool_)
        times = self.group.line.numbers(held, self.group.time)
        for key, calendar in self.calendars.items():
            kept = self._note.sums.get(key)
            first = calendar.needed_from(watermark) if kept is None else calendar.line.at(kept["added"])
            needed |= self._on(calendar, held, times) >= first
        left = int(needed.sum())
        self._note.next = self._next(held.filter(pa.array(needed)), times[needed], None)
        if left and len(chunks) <= CHUNKS and held.num_rows - left <= STALE * held.num_rows:
            return
        alike: dict[tuple[str, ...], list[pa.Table]] = {}  # old ones lack what a new query needs
        begin = 0
        for chunk in chunks:
            wanted = needed[begin : begin + chunk.num_rows]
            begin += chunk.num_rows
            if wanted.any():
                alike.setdefault(tuple(chunk.column_names), []).append(chunk.filter(pa.array(wanted)))
        self.store.replace(
            [pa.concat_tables(some, promote_options="permissive").combine_chunks() for some in alike.values()]
        )
        self._note.held = left

    def _next(self, events: pa.Table, times: NDArray[Any], known: int | None) -> int | None:
        """Return the first watermark that decides more of some events, or the one that is known if that is earlier."""
        watermarks = [known]
        for key, calendar in self.calendars.items():
            own = self._on(calendar, events, times)
            watermarks.append(calendar.next_watermark(own, self._note.closed[key]))
        return min((one for one in watermarks if one is not None), default=None)

    def _on(self, calendar: Calendar, events: pa.Table, times: NDArray[Any]) -> NDArray[Any]:
        """Return the times of events, which are known on the line of the group, on that of a query."""
        same = calendar.line.unit == self.group.line.unit
        return times if same else calendar.line.numbers(events, self.group.time)

    @property
    def held(self) -> int:
        """How many events are held."""
        return self._note.held

    @property
    def sums(self) -> int:
        """How many attribute vertices have sums, those of windows with the same sums once."""
        return sum(kept["vertices"] for kept in self._note.sums.values())

    @property
    def next_watermark(self) -> int | None:
        """The first watermark that decides more."""
        return self._note.next

    def finish(self) -> None:
        """Store the small state."""
        self.store.set_note(json.dumps(vars(self._note)))
