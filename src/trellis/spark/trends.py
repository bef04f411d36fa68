"""The trends of a query over events on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as dataset
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window as Over

from trellis.algorithms.registry import NAMED
from trellis.digits import number_of
from trellis.errors import UsageError
from trellis.events.clock import Clock
from trellis.events.prepare import bad_rows, warn_of_case
from trellis.events.tables import with_common_types
from trellis.io.results import check_target, whole_directory
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.printer import pattern_text
from trellis.language.schema import Schema, Table
from trellis.limits import refuse_listing, refuse_rows
from trellis.operators.trends.address import check_rank, named_group, sampled_ranks
from trellis.operators.trends.aggregate import join
from trellis.plan.plan import Plan, counting_plan, with_all_columns
from trellis.plan.sequence import partition_inside
from trellis.plan.variants import aggregate_plan, limited_plan, top_plan
from trellis.results.arrange import KEY
from trellis.results.numbers import aggregate_schema, aggregate_table, always_one_row, count_schema
from trellis.results.rows import chosen, exploded_schema, lead_schema, output_type, row_schema
from trellis.spark import ranges
from trellis.spark.failures import in_driver
from trellis.spark.frames import Events, read_frames, union
from trellis.spark.operate import PLACE, Work, fitted, for_spark, group_name, spark_type
from trellis.spark.ranges import CountAndWrite, WriteRanges, can_be_ranged, surveyed
from trellis.spark.rows import output_names, partition_name
from trellis.spark.schema import from_spark
from trellis.spark.sink import TOLD, Sink, WriteRows, Written, told
from trellis.spark.split import Split, copies, number_repeated, split, time_number, windows_at_once

if TYPE_CHECKING:
    import pandas

    from trellis.queries import Query

LARGEST_INT, LARGEST_LONG = (1 << 31) - 1, (1 << 63) - 1


class SparkTrends:
    """What a query found, to be counted, listed, aggregated or written; Spark works when an answer is asked for."""

    engine = "spark"
    _sink = Sink
    _memory: int | None = None  # of a worker; None: as it finds it

    def __init__(self, plan: Plan, frame: DataFrame, max_trends: int, on_bad_rows: str = "error") -> None:
        self.plan = plan
        self.max_trends = max_trends
        with in_driver():
            self._drop = on_bad_rows == "drop"
            found = _checked(plan.bound, Events(frame), on_bad_rows)
            self._read, self._dropped, self._events = found.read, found.dropped, found.events
            self._length = _windows_at_once(plan.bound, found.times, frame.sparkSession)
            self._split: Split = self._split_for(plan)

    def _split_for(self, plan: Plan) -> Split:
        """Return the rows of a plan over the same events."""
        return split(plan, self._events, self._drop, self._length)

    @cached_property
    def statistics(self) -> dict[str, int]:
        """Numbers of events read and dropped, windows and partitions."""
        bound = self.plan.bound
        parts = [f.col(partition_name(i)) for i in range(len(bound.partition))]
        partitions = f.count_distinct(f.struct(*parts)) if parts else f.lit(1)
        with in_driver():
            rows = self._split.windows().distinct().count() if bound.window.kind is WindowKind.SLIDING else 1
            row = self._split.rows.agg(partitions.alias("p"), f.count(f.lit(1)).alias("n")).first()
            repeated = number_repeated(self.plan, self._events) if self._drop and self._has_ids else 0
        assert row is not None
        some = 1 if row["n"] else 0
        return {
            "events": self._read,
            "dropped": self._dropped + repeated,
            "windows": rows * some,
            "partitions": int(row["p"]) * some,
        }

    @property
    def shuffle(self) -> str:
        """How many times Spark shuffles an event, and why."""
        inside = [name for name, _ in partition_inside(self.plan)]
        counted = f"; to count, by `{'`, `'.join(inside)}`, in which all events of a match are equal" if inside else ""
        return self._copies + counted

    @property
    def _copies(self) -> str:
        bound = self.plan.bound
        assert bound.schema is not None
        if bound.window.kind is not WindowKind.SLIDING:
            return "each event once"
        clock = Clock(bound.window, bound.schema.time_type)
        if clock.size <= clock.slide:
            return "each event once: windows do not overlap"
        held = float(clock.size) / float(clock.slide)
        return (
            f"each event {copies(clock, self._length):.2f} times, though it lies in {held:,.4g} windows: "
            f"{self._length:,} windows that follow one another share their events"
        )

    @property
    def _has_ids(self) -> bool:
        schema = self.plan.bound.schema
        return schema is not None and schema.event_id is not None

    def _run(
        self, what: str, schema: pa.Schema, rows: Split | None = None,
        picks: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    ) -> DataFrame:  # fmt: skip
        """Return what the operator gives, in columns with the names of `output_names`."""
        rows = rows or self._split
        work = Work(rows.plan, what, self.max_trends, picks or {}, rows.length, self._memory)
        return rows.grouped().mapInArrow(work, from_arrow_schema(_inside(schema)))

    @cached_property
    def _total(self) -> int:
        return sum(self._numbers("total", pa.schema([("total", pa.string())]), self._inside))

    def count(self) -> int:
        """Return the exact number of results; nothing is listed."""
        return self._total

    def counts(self) -> DataFrame:
        """Return the number of results of each window and partition that has any; nothing is listed."""
        schema = count_schema(self.plan.bound)
        return _ordered(self._run("count", schema, self._for_counting), self._lead_order()).toDF(*schema.names)

    def aggregates(self) -> DataFrame:
        """Return the rows of the query's AGGREGATE; nothing is listed."""
        if not self.plan.bound.aggregates:
            raise UsageError("the query has no AGGREGATE", "Add one, or use trends.aggregate('count(*)').")
        return self._aggregated(self._split)

    def aggregate(self, *items: str) -> DataFrame:
        """Return aggregates of all results of each window and partition, such as `count(*)` or `avg(s.price)`."""
        plan = aggregate_plan(self.plan, items)
        return self._aggregated(self._split_for(plan))

    def top(self, number: int, by: str = "length") -> DataFrame:
        """Return the results with the greatest `length`, `sum(s.price)` or other value; ties in the order of ranks."""
        other = copy(self)
        other.plan = top_plan(self.plan, number, by)
        other._split = self._split_for(other.plan)
        return other.to_spark()

    def _aggregated(self, rows: Split) -> DataFrame:
        bound = rows.plan.bound
        schema = aggregate_schema(bound)
        if always_one_row(bound) and not self._any_row():
            empty = aggregate_table(rows.plan, [], [join(rows.plan, [])])
            empty = pa.Table.from_batches([for_spark(batch) for batch in empty.to_batches()])
            return self._session.createDataFrame(empty, from_arrow_schema(_inside(schema))).toDF(*schema.names)
        order = _first_columns(len(lead_schema(bound, list(bound.group_by) or None)))
        return _ordered(self._run("aggregate", schema, rows), order).toDF(*schema.names)

    def explode(self) -> DataFrame:
        """Return one row an event of a result, with window, partition, rank, its place from 1, and its columns; lazy.

        ORDER BY, and a LIMIT or OFFSET that is not PER WINDOW, must be applied to the frame itself.
        """
        bound = self.plan.bound
        if bound.order_by or (not bound.per_window and (bound.limit is not None or bound.offset)):
            raise UsageError(
                "explode() on Spark takes a query without ORDER BY, and LIMIT and OFFSET only PER WINDOW",
                "Leave them out, and order or limit the data frame.",
            )
        plan = with_all_columns(self.plan)
        schema = exploded_schema(bound)
        return self._run("explode", schema, self._split_for(plan)).toDF(*schema.names)

    def _any_row(self) -> bool:
        with in_driver():
            return not self._split.rows.isEmpty()

    @property
    def _session(self) -> SparkSession:
        return self._split.rows.sparkSession

    def to_spark(self) -> DataFrame:
        """Return the results as a Spark data frame, one row a trend; lazy: Spark works when the frame is used.

        A window and partition with more than `max_trends` results fails where it is listed.
        """
        if self.plan.bound.aggregates:
            return self.aggregates()
        return self._rows(in_order=False).toDF(*self.schema.names)

    def _rows(self, in_order: bool) -> DataFrame:
        """Return the listed rows in columns that have no names yet, in the order of the result if it matters."""
        bound = self.plan.bound
        schema = row_schema(bound)
        if bound.per_window:
            frame = self._run("list", schema.append(pa.field(PLACE, pa.int64())))
            place = output_names(len(schema) + 1)[-1]
            return _ordered(frame, [*self._lead_order(), f.col(place)] if in_order else []).drop(place)
        if bound.order_by or bound.limit is not None or bound.offset:
            return self._merged(schema)
        return _ordered(self._run("list", schema), self._rank_order() if in_order else [])

    def _merged(self, schema: pa.Schema) -> DataFrame:
        """Apply ORDER BY, LIMIT and OFFSET over all groups."""
        bound = self.plan.bound
        if not bound.order_by:
            return _cut(self._run("list", schema), self._rank_order(), bound.offset, bound.limit)
        fields = [pa.field(f"{KEY}{i}", output_type(o.output)) for i, o in enumerate(bound.order_by)]
        fields.append(pa.field(PLACE, pa.int64()))
        frame = self._run("list", pa.schema([*schema, *fields]))
        *keys, place = output_names(len(schema) + len(fields))[len(schema) :]
        order: list[Column] = [
            f.col(k).desc_nulls_last() if o.descending else f.col(k).asc_nulls_first()
            for k, o in zip(keys, bound.order_by, strict=True)
        ]
        frame = _cut(frame, [*order, *self._lead_order(), f.col(place)], bound.offset, bound.limit)
        return frame.drop(*keys, place)

    def _lead_order(self) -> list[Column]:
        return _first_columns(len(lead_schema(self.plan.bound)))

    def _rank_order(self) -> list[Column]:
        """Return the columns for window, partition and rank."""
        return _first_columns(len(lead_schema(self.plan.bound)) + 1)

    def _listed(self) -> DataFrame:
        """Count, refuse what is too much, and return the results in their order."""
        bound = self.plan.bound
        if bound.aggregates:
            return self.aggregates()
        counts = [self._total] if not bound.per_window else self._group_counts()
        refuse_listing(bound, counts, self.max_trends)
        return self._rows(in_order=True).toDF(*self.schema.names)

    def _group_counts(self) -> list[int]:
        return self._numbers("count", count_schema(self.plan.bound))

    def _numbers(self, what: str, schema: pa.Schema, rows: Split | None = None) -> list[int]:
        """Return the numbers that the last column of an answer has as texts."""
        with in_driver():
            frame = self._run(what, schema, rows or self._for_counting)
            texts = frame.select(output_names(len(schema))[-1]).toArrow().column(0)
            return [number_of(text) for text in texts.to_pylist()]

    @cached_property
    def _for_counting(self) -> Split:
        """The rows with no more columns than counting needs."""
        return split(counting_plan(self.plan), self._events, self._drop, self._length, counting=True)

    @cached_property
    def _inside(self) -> Split:
        """The same with the columns in which all events of a match are equal as a partition, so that tasks share it."""
        inside = partition_inside(self.plan)
        if not inside:
            return self._for_counting
        plan = replace(self.plan, bound=replace(self.plan.bound, partition=(*self.plan.bound.partition, *inside)))
        return split(counting_plan(plan), self._events, self._drop, self._length, counting=True)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return aggregate_schema(self.plan.bound) if self.plan.bound.aggregates else row_schema(self.plan.bound)

    def to_arrow(self) -> pa.Table:
        """Return all results as one Arrow table in this process, in the order of the result."""
        with in_driver():
            return fitted(self._listed().toArrow(), self.schema)

    def first(self, rows: int) -> pa.Table:
        """Return the first rows of the result in this process, in its order; the others are not listed."""
        shortened = copy(self)
        shortened.plan = limited_plan(self.plan, rows)
        shortened._split = replace(self._split, plan=shortened.plan)
        with in_driver():
            return fitted(shortened._listed().limit(rows).toArrow(), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all results as a pandas frame in this process."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return all results as a polars frame in this process."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the results as record batches of bounded size, through a temporary directory.

        Parameters
        ----------
        columns
            The columns wanted; all of them by default.
        """
        schema = self.schema
        wanted = pa.schema(schema if columns is None else [schema.field(n) for n in chosen(columns, schema.names)])
        inside = dict(zip(schema.names, output_names(len(schema)), strict=True))
        with tempfile.TemporaryDirectory() as directory:
            with in_driver():
                sink = self._sink(directory, "parquet", _inside(schema))
                sink.prepare()
                sink.commit(written(self._listed(), sink))
            found = dataset.dataset(directory, format="parquet")
            for batch in found.to_batches(columns=[inside[n] for n in wanted.names]):
                if batch.num_rows:
                    yield from fitted(pa.Table.from_batches([batch]), wanted).to_batches()

    def trend(self, rank: int, window: Any = None, partition: Any = None) -> pa.Table:
        """Return the result with a rank, without those before it; see `LocalTrends.trend`."""
        rows, counts = self._group_rows()
        group = named_group(self.plan.bound, rows, window, partition)
        check_rank(rank, counts[group])
        return self._picked(rows, {group: [rank]})

    def sample(self, number: int, seed: int = 0) -> pa.Table:
        """Return results drawn without replacement, the same as the local engine draws; see `LocalTrends.sample`."""
        rows, counts = self._group_rows()
        return self._picked(rows, sampled_ranks(counts, number, seed))

    def _group_rows(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Return window and partition of every group that has a result, in their order, and their sizes."""
        with in_driver():
            table = fitted(self.counts().toArrow(), count_schema(self.plan.bound))
        lead = table.select(range(table.num_columns - 2))
        rows = lead.to_pylist() if lead.num_columns else [{} for _ in range(table.num_rows)]
        return rows, [number_of(text) for text in table.column(table.num_columns - 1).to_pylist()]

    def _picked(self, rows: list[dict[str, Any]], chosen: Mapping[int, Sequence[int]]) -> pa.Table:
        picks: dict[str, list[tuple[int, int]]] = {}
        place = 0
        for group, ranks in chosen.items():
            picks[group_name(rows[group])] = [(place + i, rank) for i, rank in enumerate(ranks)]
            place += len(ranks)
        schema = row_schema(self.plan.bound)
        with in_driver():
            frame = self._run("pick", schema.append(pa.field(PLACE, pa.int64())), picks=picks)
            last = output_names(len(schema) + 1)[-1]
            return fitted(frame.orderBy(last).drop(last).toArrow(), schema)

    def write(self, path: str, format: str = "parquet", overwrite: bool = False) -> None:
        """Write the results as files into a directory, wholly or not at all.

        Parameters
        ----------
        path
            The directory; it must not exist unless `overwrite`.
        format
            `parquet`, `csv` (arrays are JSON fields) or `json` (one object a line).
        overwrite
            Replace the directory.
        """
        check_target(path, format, overwrite)
        with in_driver(), whole_directory(path, overwrite) as directory:
            sink = self._sink(str(directory.absolute()), format, _without_null(self.schema))
            sink.prepare()
            sink.commit(self._write_to(sink))

    def _write_to(self, sink: Sink) -> list[Written]:
        """Have the tasks write the results, and return the files that make them up."""
        bound = self.plan.bound
        if bound.aggregates or not can_be_ranged(bound) or self.plan.algorithm in NAMED:
            if not bound.aggregates:
                counts = [self._total] if not bound.per_window else self._group_counts()
                refuse_listing(bound, counts, self.max_trends)
            return written(self.to_spark(), sink)
        work = Work(self.plan, "list", self.max_trends, {}, self._split.length, self._memory)
        found = surveyed(_told(self._split.grouped(), CountAndWrite(work, sink, ranges.AT_ONCE)))
        refuse_rows(found.rows, self.max_trends)
        cut = ranges.even_ranges(found.slices, _cores(self._session), ranges.ROWS_A_TASK)
        if not cut:
            return found.files
        after = max((file.place + 1 for file in found.files), default=0)
        numbers = self._session.range(0, len(cut), 1, len(cut))
        answers = _told(numbers, WriteRanges(self.plan, sink, cut, after))
        return [*found.files, *(Written(**file) for about in answers for file in about["files"])]

    def __repr__(self) -> str:
        return f"<trends of `{pattern_text(self.plan.bound.pattern)}` over {self._read:,} events, on Spark>"


def _inside(schema: pa.Schema) -> pa.Schema:
    """Return the schema that results have inside Spark: see `for_spark`."""
    return pa.schema(list(zip(output_names(len(schema)), (spark_type(fld.type) for fld in schema), strict=True)))


def _first_columns(number: int) -> list[Column]:
    return [f.col(name).asc_nulls_first() for name in output_names(number)]


def _ordered(frame: DataFrame, order: Sequence[Column]) -> DataFrame:
    return frame.orderBy(*order) if order else frame


def _cut(frame: DataFrame, order: Sequence[Column], offset: int, limit: int | None) -> DataFrame:
    """Return the rows from `offset` on in an order, `limit` of them."""
    if offset + (limit or 0) < LARGEST_INT:
        frame = frame.orderBy(*order)
        frame = frame.offset(offset) if offset else frame
        return frame if limit is None else frame.limit(limit)
    place = f.count(f.lit(1)).over(Over.orderBy(*order).rowsBetween(Over.unboundedPreceding, Over.currentRow))
    numbered = frame.withColumn(PLACE, place).where(f.col(PLACE) > f.lit(min(offset, LARGEST_LONG)))
    if limit is not None:
        numbered = numbered.where(f.col(PLACE) <= f.lit(min(offset + limit, LARGEST_LONG)))
    return numbered.orderBy(PLACE).drop(PLACE)


def _told(frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> list[Any]:
    """Return what the tasks tell that work on a frame."""
    return told(frame.mapInArrow(task, from_arrow_schema(TOLD)).toArrow())


def written(frame: DataFrame, sink: Sink) -> list[Written]:
    """Have the tasks write the rows of a frame."""
    plain = frame.toDF(*output_names(len(frame.columns)))  # dots and backticks in names mean something to Spark
    return [Written(**about) for about in _told(plain, WriteRows(sink))]


def _without_null(schema: pa.Schema) -> pa.Schema:
    """Return the schema of files: not every reader knows columns of type null."""
    return pa.schema([pa.field(fld.name, spark_type(fld.type)) for fld in schema])


def _cores(session: SparkSession) -> int:
    """Return how many tasks can run at a time; on Spark Connect, which does not tell, how many a shuffle makes."""
    context = getattr(session, "_sc", None)
    return int(context.defaultParallelism if context else session.conf.get("spark.sql.shuffle.partitions") or 1)


# --- From data to a plan ----------------------------------------------------------------------------------------


def spark_trends(
    query: Query, data: Any, *, spark: SparkSession | None, time: str | None, type: str | None, event_id: str | None,
    params: Mapping[str, Any] | None, report_mode: str | None, max_trends: int, on_bad_rows: str,
    make: Callable[..., SparkTrends] = SparkTrends,
) -> SparkTrends:  # fmt: skip
    """Run a query on Spark; `make` makes the trends of a plan and a frame."""
    events, schema = described_events(data, spark, time, type, event_id)
    return make(query.plan(schema, params, report_mode), events, max_trends, on_bad_rows)


def described_events(
    data: Any, spark: SparkSession | None, time: str | None, type: str | None, event_id: str | None
) -> tuple[DataFrame, Schema]:
    """Return events as one frame, and what is known of their columns."""
    frames, time = read_frames(data, spark, time)
    tables = tuple(
        Table(name, {fld.name: from_spark(fld.dataType) for fld in frame.schema.fields})
        for name, frame in frames.items()
    )
    if tables[0].type is not None and type is not None:
        raise UsageError("types come from several tables and from a column", "Leave out one of the two.")
    schema = with_common_types(Schema(tables, time, type, event_id))
    events = union(frames)
    if tables[0].type is not None:  # decimals may have got wider
        common = {fld.name: from_spark(fld.dataType) for fld in events.schema.fields}
        schema = replace(schema, tables=tuple(Table(tb.type, {n: common[n] for n in tb.columns}) for tb in tables))
    return events, schema


@dataclass(frozen=True)
class _Checked:
    """How many rows came in and were dropped, the others, and the first and the last time if windows overlap."""

    read: int
    dropped: int
    events: Events
    times: tuple[Any, Any] | None


def _checked(bound: BoundQuery, events: Events, on_bad_rows: str) -> _Checked:
    """Count the rows and the bad ones; refuse or drop these."""
    schema = bound.schema
    assert schema is not None
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows is `{on_bad_rows}`", "It is `error` or `drop`.")
    roles = [("time", schema.time)] + ([("id", schema.event_id)] if schema.event_id else [])
    bad = {role: ~_readable(events, name) for role, name in roles}
    name = schema.type_column
    wanted = {i: v.type for i, v in enumerate(bound.variables) if v.type is not None and name is not None}
    checks = [f.count(f.lit(1)).alias("rows"), *(f.count_if(c).alias(role) for role, c in bad.items())]
    for i, type_ in wanted.items():
        assert name is not None
        types = events.column(name)
        same, alike = types == f.lit(type_), f.lower(types) == f.lit(type_.lower())
        checks += [f.count_if(same).alias(f"typed{i}"), f.collect_set(f.when(alike & ~same, types)).alias(f"alike{i}")]
    overlap = bound.window.kind is WindowKind.SLIDING and bound.window.size > bound.window.slide  # type: ignore[operator]
    if overlap:
        time = f.when(~bad["time"], time_number(events.column(schema.time), bound))
        checks += [f.min(time).alias("first"), f.max(time).alias("last")]
    row = events.frame.agg(*checks).first()
    assert row is not None
    for i, type_ in wanted.items():
        if row["rows"] and not row[f"typed{i}"]:
            warn_of_case(type_, list(row[f"alike{i}"]))
    dropped = 0
    for role, column in roles:
        if row[role] and on_bad_rows == "error":
            example = events.frame.where(bad[role]).first()
            assert example is not None
            raise bad_rows(row[role], role, column, dict(zip(events.types, example, strict=True)))
    if any(row[role] for role, _ in roles):
        for role, _ in roles:
            events = events.where(~bad[role])
        dropped = row["rows"] - events.frame.count()
    times = (row["first"], row["last"]) if overlap and row["first"] is not None else None
    return _Checked(row["rows"], dropped, events, times)


def _windows_at_once(bound: BoundQuery, times: tuple[Any, Any] | None, session: SparkSession) -> int:
    if bound.window.kind is not WindowKind.SLIDING:
        return 1
    assert bound.schema is not None
    tasks = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return windows_at_once(Clock(bound.window, bound.schema.time_type), times, tasks)


def _readable(events: Events, name: str) -> Column:
    column = events.column(name)
    if events.types[name].typeName() in ("double", "float"):
        return column.isNotNull() & ~f.isnan(column) & (f.abs(column) != f.lit(float("inf")))
    return column.isNotNull()
