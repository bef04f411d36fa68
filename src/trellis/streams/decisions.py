"""Decided windows of a standing query: the results of those under the bound, and the number of results of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.events.prepare import PreparedEvents, with_columns
from trellis.events.slice import Groups, Slice
from trellis.language.bound import BoundQuery, WindowKind
from trellis.make import make_operator
from trellis.operators.aggregates import Aggregates
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, ListRequest, QueryOperator
from trellis.operators.skipping import SkippingOperator
from trellis.plan.plan import Plan
from trellis.results.aggregated import aggregate_answer, needs_listing
from trellis.results.arrange import arrange, wanted_ranges
from trellis.results.numbers import aggregate_rows, count_columns
from trellis.results.rows import COUNT, RowMaker, arrow_type, id_arrow_type, lead_schema
from trellis.streams.calendar import Calendar, Number
from trellis.streams.query import StandingQuery
from trellis.streams.ranks import LARGEST_RANK, RankCounters
from trellis.streams.sharing import SharedWork
from trellis.streams.sums import TrendSums


@dataclass(frozen=True)
class LateEvents:
    """How many events came too late for windows that were still open, by window and `partition_key`."""

    numbers: Mapping[tuple[int, str], int] = field(default_factory=dict)


@dataclass
class Decisions:
    """The results and windows that a watermark decides.

    Attributes
    ----------
    results
        The results, in bounded batches; to be gone through once, before anything else is looked at.
    windows
        The windows and partitions with their counts, or, under a span, the events at which too much begins.
    repeated
        Events that were left out because their id had occurred before, each when it is first looked at.
    """

    results: Iterator[pa.RecordBatch]
    windows: list[pa.Table]
    repeated: pa.Table


def partition_key(values: tuple[Any, ...]) -> str:
    """Return a text that is the same for the same partition, whenever it is made."""
    return repr([value.isoformat() if hasattr(value, "isoformat") else value for value in values])


def windows_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of the table `_windows`."""
    fields = [*lead_schema(bound)]
    if bound.window.kind is WindowKind.SPAN:
        fields += [
            pa.field("start_time", arrow_type(bound.known_schema.time_type)),
            pa.field("event", id_arrow_type(bound)),
        ]
    fields += [pa.field("count", COUNT), pa.field("count_text", pa.string()), pa.field("listed", pa.bool_())]
    return pa.schema(fields if bound.window.kind is WindowKind.SPAN else [*fields, pa.field("late", pa.int64())])


def close(
    query: StandingQuery, held: SharedWork, before: Number | None, now: Number, since: Number | None = None,
    late: LateEvents | None = None, ranks: RankCounters | None = None,
) -> Decisions:  # fmt: skip
    """Return the results that are decided at the watermark `now` and were not at the watermark `before`.

    Parameters
    ----------
    query
        The query.
    held
        All events that may be needed, in any order, and what other queries have done with them.
    before, now
        The watermarks.
    since
        The time up to which events may have been missed, as a number of the query's time line; None if none were.
    late
        The number of events that came too late.
    ranks
        Under a span, the counters of results by `partition_key`, which count those that come.
    """
    schema = query.bound.known_schema
    calendar = Calendar(query.bound)
    plan, prepared = held.prepared(query, calendar, *calendar.reach(before, now))
    events = calendar.restricted(prepared.events, before, now, since)
    decided = _DecidedResults(query, plan, events, late or LateEvents(), ranks, held, (before, now, since))
    again = prepared.repeated
    again = again.filter(pa.array(calendar.newly(calendar.line.numbers(again, schema.time), before)))
    return Decisions(decided.results(), decided.windows, again)


def close_sums(query: StandingQuery, sums: TrendSums, now: Number, late: LateEvents) -> Decisions:
    """Return the decisions of the watermark `now` for a query of whose past only sums are kept; these are forgotten."""
    found = sums.decided(now)
    nothing = pa.table({})
    if found is None:
        return Decisions(iter(()), [], nothing)
    plan, events, numbers = found
    decided = _DecidedResults(query, plan, events, late)
    return Decisions(iter(decided.of_sums(numbers)), decided.windows, nothing)


class _DecidedResults:
    """The results of a slice, group by group."""

    def __init__(
        self, query: StandingQuery, plan: Plan, events: Slice, late: LateEvents, ranks: RankCounters | None = None,
        work: SharedWork | None = None, restriction: Any = None,
    ) -> None:  # fmt: skip
        self.query, self.plan, self.late, self.ranks, self.events = query, plan, late, ranks, events
        self.work, self.restriction = work or SharedWork(()), restriction
        self.windows: list[pa.Table] = []

    def _operator(self) -> QueryOperator:
        """Return the operator of the whole slice."""
        return self.work.operator(self.query, self.plan, self.events, self.restriction)

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield the results."""
        if not len(self.events.groups):
            return
        if self.plan.bound.aggregates:
            yield from self._aggregated()
        elif self.plan.bound.window.kind is WindowKind.SPAN:
            yield from self._of_spans()
        else:
            yield from self._of_windows()

    def _aggregated(self) -> Iterator[pa.RecordBatch]:
        shared = None
        if not self.late.numbers:
            shared = self.work.aggregated(self.query, self.plan, self.restriction, self._of_all)
        if shared is not None:
            rows, windows = shared
            self.windows.append(windows)
            yield from rows.to_batches()
            return
        maker = RowMaker(self.plan, self.events)
        operator = self._operator()
        counts = operator.counts
        listed = np.ones(len(counts), np.bool_)
        if needs_listing(self.plan.bound):
            listed = np.array([count <= self.query.max_trends for count in counts], np.bool_)
        self._report_windows(maker, counts, listed)
        if not listed.all():
            operator = make_operator(self.plan, self._only(listed))
            maker = RowMaker(self.plan, operator.events)
        yield from aggregate_answer(self.plan, maker, operator, None).to_batches()

    def _of_all(self, plan: Plan, prepared: PreparedEvents) -> tuple[pa.Table, pa.Table]:
        """Return the rows and windows of a plan with the items of several queries."""
        events = replace(self.events, columns=with_columns(prepared, plan).columns)
        own = _DecidedResults(self.query, plan, events, self.late, None, self.work, self.restriction)
        operator, maker = own._operator(), RowMaker(plan, events)
        own._report_windows(maker, operator.counts, np.ones(len(operator.counts), np.bool_))
        return aggregate_answer(plan, maker, operator, None), own.windows[0]

    def of_sums(self, numbers: list[Aggregates]) -> list[pa.RecordBatch]:
        """Return the rows of AGGREGATE of groups whose numbers are known."""
        maker = RowMaker(self.plan, self.events)
        self._report_windows(maker, [one.count for one in numbers], np.ones(len(numbers), np.bool_))
        return aggregate_rows(self.plan, maker, numbers).to_batches()

    def _only(self, groups: np.ndarray) -> Slice:
        """Return the slice with some of its groups."""
        lo, hi, number = (array[groups] for array in vars(self.events.groups).values())
        return replace(self.events, groups=Groups(lo, hi, number))

    # --- Windows ----------------------------------------------------------------------------------------------

    def _of_windows(self) -> Iterator[pa.RecordBatch]:
        bound = self.plan.bound
        operator, maker = self._operator(), RowMaker(self.plan, self.events)
        counts = operator.counts
        rows = np.zeros(len(counts), object)
        all_ranks = [(group, 0, count) for group, count in enumerate(counts)]
        for group, begin, end in all_ranks if bound.limit_per else wanted_ranges(bound, counts):
            rows[group] += end - begin
        listed = np.array([number <= self.query.max_trends for number in rows], np.bool_)
        self._report_windows(maker, counts, listed)
        if not listed.all():
            events = self._only(listed)
            operator, maker = make_operator(self.plan, events), RowMaker(self.plan, events)
            counts = [count for count, keep in zip(counts, listed, strict=True) if keep]
        if bound.arranged:
            ordered = operator.best(BestRequest(bound, maker.batch, self.query.max_trends, per_group=True))
            yield from arrange(bound, ordered)
        else:
            yield from operator.list(ListRequest(wanted_ranges(bound, counts), maker.batch))

    def _report_windows(self, maker: RowMaker, counts: list[int], listed: np.ndarray) -> None:
        groups = np.arange(len(counts))
        lead = maker.lead(groups)
        late = np.zeros(len(counts), np.int64)
        if self.late.numbers:
            of_window = self.events.groups.number.tolist()
            keys = _keys(lead[2:], len(counts))
            late = np.array([self.late.numbers.get(one, 0) for one in zip(of_window, keys, strict=True)], np.int64)
        columns = [*lead, *count_columns(counts), pa.array(listed), pa.array(late)]
        self.windows.append(pa.Table.from_arrays(columns, schema=windows_schema(self.plan.bound)))

    # --- Spans ------------------------------------------------------------------------------------------------

    def _of_spans(self) -> Iterator[pa.RecordBatch]:
        assert self.ranks is not None, "a span has counters"
        maker = RowMaker(self.plan, self.events)
        all_keys = _keys(maker.lead(np.arange(len(self.events.groups))), len(self.events.groups))
        skips = self.plan.bound.after_match is not None
        if skips:
            self.events = self._behind(self.ranks.places(all_keys), all_keys)
        operator = make_operator(self.plan, self.events) if skips else self._operator()
        counts = operator.counts
        keys = {group: key for group, key in enumerate(all_keys) if counts[group]}
        had = self.ranks.add({key: counts[group] for group, key in keys.items()})
        before = {group: had[key] for group, key in keys.items()}
        if isinstance(operator, SkippingOperator):
            ids = self.events.ids.cast(pa.string())
            places = {key: operator.next_place(group) - 1 for group, key in keys.items()}
            self.ranks.set_places({key: ids[place].as_py() for key, place in places.items()})
        few = [(group, 0, counts[group]) for group in keys if skips or counts[group] <= self.query.max_trends]
        if few:
            yield from operator.list(ListRequest(few, self._shifted(maker, before)))
        for group in keys:
            if not skips and counts[group] > self.query.max_trends:
                yield from self._one_by_one(group, before[group])

    def _behind(self, places: Mapping[str, str], keys: Sequence[str]) -> Slice:
        """Return the slice in which nothing begins up to the events that AFTER MATCH has named in earlier decisions."""
        events = self.events
        assert events.begins is not None
        begins, ids = events.begins.copy(), events.ids.cast(pa.string())
        for group, key in enumerate(keys):
            if key in places:
                lo, hi = int(events.groups.lo[group]), int(events.groups.hi[group])
                place = pc.index(ids.slice(lo, hi - lo), places[key]).as_py()
                begins[lo : lo + place + 1] = False  # -1: all that may begin now is later
        return replace(events, begins=begins)

    def _shifted(self, maker: RowMaker, before: Mapping[int, int]) -> Callable[[PathBatch], pa.RecordBatch]:
        """Return a row maker whose ranks go on from those of earlier results of their partitions."""
        bases = np.full(len(self.events.groups), -1, np.int64)
        for group, number in before.items():
            bases[group] = number if number <= LARGEST_RANK else -1
        place = maker.schema.get_field_index("rank")

        def made(trends: PathBatch) -> pa.RecordBatch:
            ranks, base = trends.ranks, bases[trends.groups]
            fits = (ranks >= 0) & (base >= 0) & (ranks <= LARGEST_RANK - base)
            whole = pa.array(np.where(fits, ranks + base, 0), mask=~fits)
            return maker.batch(trends).set_column(place, "rank", whole)

        return made

    def _one_by_one(self, group: int, before: int) -> Iterator[pa.RecordBatch]:
        """Yield the results that begin at each event of a group by itself, unless they are too many."""
        assert self.events.begins is not None
        lo, hi = int(self.events.groups.lo[group]), int(self.events.groups.hi[group])
        for first in (lo + np.flatnonzero(self.events.begins[lo:hi])).tolist():
            begins = np.zeros(len(self.events), np.bool_)
            begins[first] = True
            events = replace(self.events, begins=begins)
            operator = make_operator(self.plan, events)
            count, maker = operator.counts[group], RowMaker(self.plan, events)
            if count > self.query.max_trends:
                self._report_start(maker, group, first, count)
            elif count:
                yield from operator.list(ListRequest([(group, 0, count)], self._shifted(maker, {group: before})))
            before += count

    def _report_start(self, maker: RowMaker, group: int, first: int, count: int) -> None:
        schema = windows_schema(self.plan.bound)
        bound = self.plan.bound
        time, event = (
            pa.array(column.slice(first, 1).to_pylist(), schema.field(name).type)
            for name, column in (
                ("start_time", self.events.columns[bound.known_schema.time]),
                ("event", self.events.ids),
            )
        )
        columns = [*maker.lead(np.array([group])), time, event, *count_columns([count]), pa.array([False])]
        self.windows.append(pa.Table.from_arrays(columns, schema=schema))


def _keys(columns: list[pa.Array], size: int) -> list[str]:
    """Return the keys of the partitions of groups."""
    if not columns:
        return [partition_key(())] * size
    return [partition_key(values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
