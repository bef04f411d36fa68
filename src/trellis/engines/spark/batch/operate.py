"""The operator in Spark's Python workers: sorted rows in, results out, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.digits import digits_of
from trellis.engines.spark.batch.groups_met import REPORT_OF_TASK, GroupCollector, TaskReport
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import (
    ID,
    TIME,
    USABLE,
    WINDOW_BATCH,
    group_begins,
    output_names,
    partition_name,
    whole_groups,
)
from trellis.engines.spark.split.split import group_keys, order_of_time, row_names
from trellis.events.clock import Clock
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.groups import make_groups
from trellis.events.prepare import repeated_id
from trellis.events.slice import Ints, Slice
from trellis.events.sorting import repeated_rows, tie_order
from trellis.events.table_bytes import packed, unpacked
from trellis.kernels.events import partitions as kernel
from trellis.language.bound import BoundQuery
from trellis.limits import refuse_listing
from trellis.make import make_operator
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, ListRequest, QueryOperator
from trellis.plan.plan import Plan
from trellis.results.aggregated import aggregate_answer
from trellis.results.arrange import arrange, hidden_names, possible_ranges
from trellis.results.named import lead_rows
from trellis.results.numbers import count_rows
from trellis.results.rows import RowMaker, exploded_schema, lead_schema, one_zero
from trellis.results.trend import group_key, with_ids

PLACE = "__place"  # a number that rises with the rows of a group


@dataclass(frozen=True)
class Work:
    """The work of a task on its groups: `count`, `total`, `aggregate`, `list`, `explode`, or, of the ranks in `picks`,
    `pick` and `pick events`.

    `picks` has for a group, by `group_key`, the places and the ranks of the trends that are wanted. `length` is the
    number of windows in a window batch, `memory` what a worker has, if that is not to be found out there. `ties` is
    where a lazy frame's tasks add the ties that they meet.
    """

    plan: Plan
    what: str
    max_trends: int
    picks: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    length: int = 1
    memory: int | None = None
    ties: Any = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task, in the order (group, time, id), and give the results of its groups."""
        with in_task():
            for operator in self.operators(batches):
                yield from map(for_spark, self.answer(operator))

    def operators(self, batches: Iterable[pa.RecordBatch]) -> Iterator[QueryOperator]:
        """Yield the operators over the groups of a task, some groups at a time."""
        for table in whole_groups(batches, self.boundary, self.memory):
            events = make_slice(self.plan, table, self.length)
            if self.ties is not None:
                self.ties.add(GroupCollector(self.plan.bound, ()).ties_of(events))
            yield make_operator(self.plan, events)

    def answer(self, operator: QueryOperator) -> Iterator[pa.RecordBatch]:
        """Yield the answer for the groups of an operator."""
        return ANSWERS[self.what](self, operator, RowMaker(self.plan, operator.events))

    @property
    def boundary(self) -> list[str]:
        """The columns that must not change inside what is worked on together."""
        bound = self.plan.bound
        if self.what != "aggregate" or not bound.group_by:
            return group_keys(bound)
        kept = {partition_name(i) for i, (n, _) in enumerate(bound.partition) if n in bound.group_by}
        return [k for k in group_keys(bound) if k == WINDOW_BATCH or k in kept]


@dataclass(frozen=True)
class CollectedWork:
    """Does the work of a task for an answer that the driver collects, and reports the groups that it met.

    Parameters
    ----------
    work
        The work.
    partition
        The partition's attributes whose values are reported.
    """

    work: Work
    partition: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task, in the order (group, time, id), and give `COLLECTED` rows."""
        with in_task():
            groups = GroupCollector(self.work.plan.bound, self.partition)
            for operator in self.work.operators(groups.watched(batches)):
                groups.add(operator.events)
                for batch in self.work.answer(operator):
                    yield _collected_row(answer=packed(pa.Table.from_batches([for_spark(batch)]), compressed=False))
            yield _collected_row(report=groups.report()._asdict())


COLLECTED = pa.schema([("answer", pa.binary()), ("report", REPORT_OF_TASK)])


def _collected_row(**values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=COLLECTED)


def unpacked_answer(rows: pa.Table, schema: pa.Schema) -> tuple[pa.Table, list[TaskReport]]:
    """Return an answer from `COLLECTED` rows, with the user's names and types, and the reports of the tasks."""
    parts = [unpacked(answer) for answer in rows["answer"].to_pylist() if answer is not None]
    reports = [TaskReport(**report) for report in rows["report"].to_pylist() if report is not None]
    return fitted(pa.concat_tables(parts), schema) if parts else schema.empty_table(), reports


def spark_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column of results on Spark, which writes no column of type null."""
    if pa.types.is_list(type_):
        return pa.list_(spark_type(type_.value_type))
    return pa.string() if pa.types.is_null(type_) else type_


def inside_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that results have inside Spark: see `for_spark`."""
    return pa.schema(list(zip(output_names(len(schema)), (spark_type(fld.type) for fld in schema), strict=True)))


def for_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return results with the names and types that they have inside Spark."""
    columns = [c if c.type == spark_type(c.type) else c.cast(spark_type(c.type)) for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=output_names(len(columns)))


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return results of Spark's with the names and types that they have for the user."""
    columns = [_of_type(column, fld.type) for column, fld in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _of_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    if spark_type(type_) == type_:
        return column.cast(type_)
    if pa.types.is_null(type_):
        return pa.chunked_array([pa.nulls(len(column))])
    return pa.chunked_array([pa.array(column.to_pylist(), type_)], type_)


def make_slice(plan: Plan, table: pa.Table, length: int = 1) -> Slice:
    """Return the slice of a table of whole groups; `length` is the number of windows in a window batch."""
    bound = plan.bound
    clock = Clock(bound.window, bound.known_schema.time_type)
    columns = {n: normalise(table[c], from_arrow(table[c].type)) for n, c in row_names(plan).items()}
    usable = np.ones(table.num_rows, np.bool_)
    if USABLE in table.column_names:
        usable = table[USABLE].to_numpy().astype(np.bool_)
    times = table[TIME].to_numpy()
    begins = group_begins(table, group_keys(bound))
    bounds = np.concatenate([begins, [table.num_rows]]) if table.num_rows else np.zeros(1, np.int64)
    windows = (
        _windows(clock, times, table[WINDOW_BATCH].to_numpy(), length) if WINDOW_BATCH in table.column_names else None
    )
    given = table[ID] if ID in table.column_names else pa.array(np.arange(table.num_rows))  # these are not shown
    ids = normalise(given, from_arrow(given.type))
    if bound.known_schema.event_id is not None:
        _refuse_repeated(ids, bounds, windows, bound.known_schema.event_id)
    groups, until = make_groups(bound, clock, times, bounds, windows)
    ties = [normalise(table[c], from_arrow(table[c].type)) for c in order_of_time(bound)[1:]]
    return Slice(columns, ids, times, usable, bounds, groups, until, order=tie_order(times, ties))


def _windows(clock: Clock, times: np.ndarray, batch: Ints, length: int) -> tuple[Ints, Ints]:
    """Return the first and the last window of each event that lie in its window batch."""
    first, last = clock.windows(times)
    return np.maximum(first, batch * length), np.minimum(last, batch * length + length - 1)


def _refuse_repeated(ids: pa.Array, bounds: Ints, windows: tuple[Ints, Ints] | None, column: str) -> None:
    """Refuse an id that occurs twice in one window of a partition."""
    partition = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    rows, codes = repeated_rows(ids, partition)
    if not len(rows):
        return
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    first, last = (np.zeros(len(rows), np.int64),) * 2 if windows is None else (w[rows] for w in windows)
    begins = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [len(codes)]])
    again = rows[~kernel.drop_repeated(first, last, begins)]
    if len(again):
        raise repeated_id(column, ids[int(again[0])].as_py(), len(again))


# --- What is asked of a slice -----------------------------------------------------------------------------------


def _count(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    yield from counted(work.what, maker, operator.counts).to_batches()


def counted(what: str, maker: RowMaker, counts: Sequence[int]) -> pa.Table:
    """Return the numbers of results of groups, for `count`, or for `total` their sum."""
    return count_rows(maker, counts) if what == "count" else pa.table({"total": [digits_of(sum(counts))]})


def _aggregate(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    yield from aggregate_answer(work.plan, maker, operator, work.max_trends).to_batches()


def _list(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """List the groups; LIMIT PER WINDOW is applied here, what goes over groups by Spark.

    Under ORDER BY and LIMIT a group gives its own best results alone, where these can be searched.
    """
    bound = work.plan.bound
    counts = operator.counts if bound.arranged else operator.counts_before_listing()
    for count in counts:
        refuse_listing(bound, [count], work.max_trends)
    if not bound.arranged:
        rows = operator.list(ListRequest(possible_ranges(bound, counts), maker.batch, words=maker.words()))
    else:
        rows = operator.best(BestRequest(bound, maker.batch, work.max_trends, per_group=True))
        rows = arrange(bound, rows) if bound.per_window else (without_group(bound, batch) for batch in rows)
    if bound.arranged or bound.per_window:
        yield from _placed(rows)
    else:
        yield from rows


def _placed(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the rows: a rank may be too large to tell their order."""
    place = 0
    for batch in rows:
        yield batch.append_column(PLACE, pa.array(np.arange(place, place + batch.num_rows)))
        place += batch.num_rows


def without_group(bound: BoundQuery, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the keys of ORDER BY for Spark, with one zero only, and drop the number of the group before them."""
    shown = batch.num_columns - len(hidden_names(bound))
    columns = [*batch.columns[:shown], *map(one_zero, batch.columns[shown + 1 :])]
    return pa.RecordBatch.from_arrays(columns, names=output_names(len(columns)))


def _explode(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """List the groups with one row per event."""
    bound = work.plan.bound
    counts = operator.counts_before_listing()
    for count in counts:
        refuse_listing(bound, [count], work.max_trends)
    plain = RowMaker(work.plan, operator.events, positions=True, plain=True)
    rows = operator.list(ListRequest(possible_ranges(bound, counts), plain.batch))
    yield from (plain.exploded(batch) for batch in (arrange(bound, rows) if bound.arranged else rows))


def _nest(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """List the groups as `_list` does, a row per trend with its events in it: ORDER BY and LIMIT are about trends."""
    plain = RowMaker(work.plan, operator.events, positions=True, plain=True)
    yield from (_nested(plain, batch) for batch in _list(work, operator, plain))


def _nested(plain: RowMaker, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return plain rows with positions as rows of `nested_schema`; what is behind them stays behind them."""
    shown = len(plain.schema)
    rows = pa.RecordBatch.from_arrays(batch.columns[:shown], names=plain.schema.names)
    schema = nested_schema(plain.bound)
    flat = plain.exploded(rows)
    events = schema.field(len(schema) - 1).type.value_type
    columns = [column.cast(field.type) for column, field in zip(flat.columns[len(schema) - 1 :], events, strict=True)]
    ends = np.cumsum(rows.column("events").value_lengths().to_numpy(zero_copy_only=False))
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], ends]), pa.int32()), pa.StructArray.from_arrays(columns, fields=list(events))
    )
    of_trend = [rows.column(name) for name in schema.names[:-1]]
    columns = [*of_trend, lists, *batch.columns[shown:]]
    return pa.RecordBatch.from_arrays(columns, names=output_names(len(columns)))


def nested_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of one row per trend: window, partition, rank, and its events as a list inside Spark."""
    fields = list(exploded_schema(bound))
    lead = len(lead_schema(bound)) + 1
    of_event = [
        pa.field(name, spark_type(field.type))
        for name, field in zip(output_names(len(fields))[lead:], fields[lead:], strict=True)
    ]
    return pa.schema([*fields[:lead], pa.field("events", pa.list_(pa.struct(of_event)))])


def _pick(work: Work, operator: QueryOperator, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """Give the trends with certain ranks, or their events."""
    maker = maker_of_picks(work, operator.events)
    for group, places, ranks in picks_of(work, operator.events):
        yield picked(work, maker, operator.at(group, ranks), places)


def maker_of_picks(work: Work, events: Slice) -> RowMaker:
    """Return the maker of rows for trends that are picked: `pick events` needs positions."""
    return RowMaker(work.plan, events, *((True, True) if work.what == "pick events" else ()))


def picked(work: Work, maker: RowMaker, trends: PathBatch, places: Sequence[int]) -> pa.RecordBatch:
    """Return some trends with the places that they have in the result, or their events."""
    if work.what == "pick events":
        return with_ids(maker, maker.batch(trends))
    batch = maker.batch(trends, maker.schema.names)
    return batch.select(maker.schema.names).append_column(PLACE, pa.array(places, pa.int64()))


def picks_of(work: Work, events: Slice) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Yield the groups of which something is wanted, with the places and the ranks of it."""
    groups = np.arange(len(events.groups))
    lead = RowMaker(work.plan, events).lead(groups)
    table = pa.Table.from_arrays(lead, schema=pa.schema(lead_schema(work.plan.bound)))
    rows = lead_rows(table) if table.num_columns else [{}] * len(groups)
    for group, row in enumerate(rows):
        wanted = work.picks.get(group_key(row), ())
        if wanted:
            places, ranks = zip(*wanted, strict=True)
            yield group, places, ranks


ANSWERS = {
    "total": _count, "count": _count, "aggregate": _aggregate, "list": _list, "explode": _explode, "nest": _nest,
    "pick": _pick, "pick events": _pick,
}  # fmt: skip
