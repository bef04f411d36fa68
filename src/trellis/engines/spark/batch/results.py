"""Results of a query over events on Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.digits import Count, number_of
from trellis.engines.options import RunOptions
from trellis.engines.spark.batch.frames import (
    at_least_one,
    file_schema,
    first_columns,
    limited,
    limited_per,
    ordered,
    sorted_rows,
)
from trellis.engines.spark.batch.groups_met import GroupCounts, groups_met
from trellis.engines.spark.batch.operate import (
    COLLECTED,
    PLACE,
    CollectedWork,
    Work,
    fitted,
    inside_schema,
    nested_schema,
    unpacked_answer,
)
from trellis.engines.spark.batch.ranges import (
    CountAndWrite,
    TaskSettings,
    WriteRanges,
    can_be_ranged,
    even_ranges,
    joined_reports,
)
from trellis.engines.spark.batch.scan import Scan, SourceFacts, lazy_split, scan
from trellis.engines.spark.batch.shuffled import partitioned_inside, reads, shuffles
from trellis.engines.spark.batch.sink import Sink, WrittenFile
from trellis.engines.spark.batch.spread import spread
from trellis.engines.spark.batch.tie_watch import watch_ties
from trellis.engines.spark.batch.tiled_groups import TiledGroups
from trellis.engines.spark.batch.tiles import TileSize
from trellis.engines.spark.batch.writing import reports_of, written, written_here
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.session.session import cores
from trellis.engines.spark.sources.frames import EventFrame, input_files
from trellis.engines.spark.split.rows import output_names, partition_name
from trellis.engines.spark.split.split import Split, check_numbering, windows_at_once
from trellis.errors import GroupTooLarge, UsageError
from trellis.events.clock import Clock
from trellis.io.claims import claimed
from trellis.io.remote import RemoteTarget
from trellis.io.results import check_format
from trellis.language.bound import WindowKind
from trellis.limits import can_be_searched, refuse_listing, refuse_rows
from trellis.operators.aggregates import join
from trellis.operators.trends.unrank import sampled_ranks
from trellis.plan.plan import Plan, counting_plan, with_all_columns
from trellis.plan.spec import NAMED
from trellis.plan.summable import can_be_tiled
from trellis.plan.variants import limited_plan, ranked_plan, top_plan
from trellis.properties import cached_property
from trellis.results.arrange import KEY, checked_ranks
from trellis.results.named import lead_rows
from trellis.results.numbers import aggregate_schema, aggregate_table, always_one_row, count_schema
from trellis.results.results import Results
from trellis.results.rows import chosen, exploded_schema, group_schema, lead_schema, output_type, row_schema
from trellis.results.table import ResultTable
from trellis.results.trend import events_schema, group_key


class SparkResults(Results):
    """The results of a query over events on Spark: jobs run when something is asked.

    Counting, aggregating and writing read the events once each; what an answer found out about them on the way
    (`SourceFacts`) is kept. Where the whole result is ordered or limited, listing counts first, by a read of its own.

    Parameters
    ----------
    plan
        The plan of the query.
    frame
        The events.
    options
        The options of the run.
    """

    engine = "spark"
    tasks = TaskSettings()

    def __init__(self, plan: Plan, frame: DataFrame, options: RunOptions | None = None) -> None:
        self.plan = plan
        self.options = options or RunOptions()
        self.max_trends = self.options.max_trends
        self._given = frame
        self._events = EventFrame(frame)
        check_numbering(self._events, plan.bound)
        self._known: dict[str, SourceFacts] = {}  # variants of these results share it

    @cached_property
    def _length(self) -> int:
        """The number of windows in a window batch."""
        bound = self.plan.bound
        if bound.window.kind is not WindowKind.SLIDING:
            return 1
        return windows_at_once(Clock(bound.window, bound.known_schema.time_type))

    def _variant(self, plan: Plan) -> SparkResults:
        """Return the same results with other output."""
        other = copy(self)
        other._take_plan(plan)
        return other

    def _take_plan(self, plan: Plan) -> None:
        """Give other output from now on; what was counted is of the plan before."""
        vars(self).pop("_total", None)
        self.plan = plan

    def partition_events(self, partition: Mapping[str, Any], most: int) -> pa.Table:
        """Return the events of a partition: see `Results.partition_events`."""
        schema = self.plan.bound.known_schema
        events = self._events
        for name, value in partition.items():
            events = events.where(events.column(name).eqNullSafe(f.lit(value)))
        with in_driver():
            rows = events.frame.orderBy(events.column(schema.time)).limit(most).toArrow()
        return rows.rename_columns(list(events.types))

    def with_plan(self, plan: Plan) -> SparkResults:
        """Return the results of another plan over the same events: see `Results.with_plan`."""
        return SparkResults(plan, self._given, self.options)

    # --- One read ---------------------------------------------------------------------------------------------

    def _scan(self, plan: Plan, counting: bool = False) -> Scan:
        return scan(plan, self._events, self.options.drops_bad_rows, self._length, counting)

    def split_rows(self, plan: Plan | None = None) -> Split:
        """Return the rows of a plan for a frame that users run."""
        return lazy_split(plan or self.plan, self._events, self.options.drops_bad_rows, self._length)

    def _work(self, plan: Plan, what: str, picks: Mapping[str, Sequence[tuple[int, int]]] | None = None) -> Work:
        return Work(plan, what, self.max_trends, picks or {}, self._length, self.tasks.memory)

    def _answer(
        self, what: str, schema: pa.Schema, plan: Plan, counting: bool = False,
        picks: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    ) -> pa.Table:  # fmt: skip
        """Return the answer of all groups, in this process and in no order; the events are read once."""
        read = self._scan(plan, counting)
        names = tuple(name for name, _ in self.plan.bound.partition)
        work = CollectedWork(self._work(plan, what, picks), names)
        rows = read.collect(read.split.grouped().mapInArrow(work, from_arrow_schema(COLLECTED)))
        table, reports = unpacked_answer(rows, schema)
        met = groups_met(reports, bool(names))
        if "facts" not in self._known and met.ties is not None:
            met.ties.warn(plan.bound.known_schema)
        self._known["facts"] = read.facts(met)
        return table

    @property
    def statistics(self) -> dict[str, int]:
        """Numbers of events read and dropped, windows and partitions."""
        if "facts" not in self._known:
            self.count()
        facts = self._known["facts"]
        groups = facts.groups
        if groups is None or groups.windows is None or groups.partitions is None:
            groups = replace(self._count_groups(), rows=groups.rows if groups else None)
            self._known["facts"] = replace(facts, groups=groups)
        some = 1 if groups.windows else 0
        windows = groups.windows if self.plan.bound.window.kind is WindowKind.SLIDING else 1
        return {
            "events": facts.read,
            "dropped": facts.dropped,
            "windows": (windows or 0) * some,
            "partitions": (groups.partitions or 0) * some,
        }

    def _count_groups(self) -> GroupCounts:
        """Count windows and partitions by jobs of their own: there were too many for the tasks to report."""
        rows = self.split_rows()
        parts = [f.col(partition_name(i)) for i in range(len(self.plan.bound.partition))]
        with in_driver():
            windows = rows.windows().distinct().count() if self.plan.bound.window.kind is WindowKind.SLIDING else 1
            partitions = rows.single.select(*parts).distinct().count() if parts else 1
        return GroupCounts(windows, partitions)

    def describe(self) -> dict[str, str]:
        """Return how events get to the operators, for `explain`."""
        successors = "as above, in each window and partition by itself"
        facts, shuffle = self._known.get("facts"), shuffles(self.plan, self._length)
        if facts and facts.groups and facts.groups.rows is not None:  # something has been counted
            shuffle = f"{facts.groups.rows:,} rows: {shuffle}"
        return {"engine": self.engine, "successors": successors, "shuffle": shuffle, "reads": reads(self.plan)}

    # --- Numbers ----------------------------------------------------------------------------------------------

    @cached_property
    def _total(self) -> int:
        schema = pa.schema([("total", pa.string())])
        plan = counting_plan(partitioned_inside(self.plan))
        return sum(number_of(text) for text in self._in_tiles("total", schema, plan).column(0).to_pylist())

    def _in_tiles(
        self, what: str, schema: pa.Schema, plan: Plan, picks: Mapping[str, Sequence[tuple[int, int]]] | None = None
    ) -> pa.Table:
        """Return the numbers of results of all groups, or those picked; a group that does not fit a task is cut."""
        tile = self.tasks.tile if can_be_tiled(plan) else None
        if tile is None:
            try:
                return self._answer(what, schema, plan, picks is None, picks)
            except GroupTooLarge as problem:
                if not can_be_tiled(plan) or problem.count is None:
                    raise
                tile = TileSize(memory=problem.count)
        read = scan(plan, self._events, self.options.drops_bad_rows, 1, counting=picks is None)
        table = TiledGroups(read, replace(self._work(plan, what, picks), length=1), tile).answer(schema)
        self._known["facts"] = read.facts()
        return table

    def count(self) -> int:
        """Return the exact number of results; nothing is listed."""
        return Count(self._total)

    def counts(self) -> ResultTable:
        """Return the number of results of each window and partition that has any; nothing is listed."""
        schema, plan = count_schema(self.plan.bound), counting_plan(self.plan)
        lead = len(lead_schema(self.plan.bound))

        def frame() -> DataFrame:
            rows = lazy_split(plan, self._events, self.options.drops_bad_rows, self._length)
            return ordered(self._frame("count", schema, plan, rows), first_columns(lead)).toDF(*schema.names)

        return ResultTable(lambda: sorted_rows(self._in_tiles("count", schema, plan), lead), frame)

    def aggregates(self) -> ResultTable:
        """Return the rows of the query's AGGREGATE; nothing is listed."""
        self._check_aggregates()
        return self._aggregated(self.plan)

    def _aggregated(self, plan: Plan) -> ResultTable:
        bound, schema = plan.bound, aggregate_schema(plan.bound)
        lead = len(group_schema(bound))

        def collect() -> pa.Table:
            found = self._answer("aggregate", schema, plan)
            return _empty_aggregates(plan) if always_one_row(bound) and not found.num_rows else sorted_rows(found, lead)

        def frame() -> DataFrame:
            rows = ordered(self._frame("aggregate", schema, plan), first_columns(lead))
            return (at_least_one(rows, _empty_aggregates(plan)) if always_one_row(bound) else rows).toDF(*schema.names)

        return ResultTable(collect, frame)

    # --- Rows -------------------------------------------------------------------------------------------------

    def _frame(self, what: str, schema: pa.Schema, plan: Plan | None = None, rows: Split | None = None) -> DataFrame:
        """Return a lazy frame of what the operators give, in columns with the names of `output_names`."""
        plan = plan or self.plan
        rows = rows or self.split_rows(plan)
        return rows.grouped().mapInArrow(self._lazy_work(plan, what), from_arrow_schema(inside_schema(schema)))

    def _lazy_work(self, plan: Plan, what: str) -> Work:
        """Return the work of a frame that users run themselves: its tasks tell the driver of ties."""
        schema = plan.bound.known_schema
        told = "facts" in self._known
        return replace(self._work(plan, what), ties=None if told else watch_ties(self._session, schema))

    def top(self, number: int, by: str = "length") -> ResultTable:
        """Return the results with the greatest `length`, `sum(s.price)` or other value; ties in the order of ranks."""
        other = self._variant(top_plan(self.plan, number, by))
        return ResultTable(other.to_arrow, other.to_spark)

    def explode(self) -> ResultTable:
        """Return one row for each event of a result: window, partition, rank, its place from 1, and its columns."""
        bound = self.plan.bound
        schema, other = exploded_schema(bound), self._variant(with_all_columns(self.plan))
        if bound.arranged or (not bound.per_window and (bound.limit is not None or bound.offset)):
            frame = other._selected_events
        else:
            lead = first_columns(len(lead_schema(bound)) + 2)  # window, partition, rank and place

            def frame(rows: Split, in_order: bool) -> DataFrame:
                return ordered(other._frame("explode", schema, rows=rows), lead if in_order else [])

        def collect() -> pa.Table:
            read = other._scan(other.plan)
            return fitted(read.collect(frame(read.split, True)), schema)

        return ResultTable(collect, lambda: frame(other.split_rows(), False).toDF(*schema.names))

    def _selected_events(self, rows: Split, in_order: bool) -> DataFrame:
        """Return one row for each event of the trends that ORDER BY, LIMIT and OFFSET leave, in their order."""
        schema = nested_schema(self.plan.bound)
        *of_trend, events = output_names(len(schema))
        return self._rows(rows, in_order, "nest", schema).select(*of_trend, f.inline(events))

    @property
    def _session(self) -> SparkSession:
        return self._events.frame.sparkSession

    def to_spark(self, spark: Any = None) -> DataFrame:
        """Return the results as a lazy Spark data frame: see `Results.to_spark`."""
        if self.plan.bound.aggregates:
            return self.aggregates().to_spark()
        return self._rows(self.split_rows(), in_order=False).toDF(*self.schema.names)

    def _rows(self, rows: Split, in_order: bool, what: str = "list", schema: pa.Schema | None = None) -> DataFrame:
        """Return the listed rows in columns that have no names yet, in the order of the result if it matters."""
        bound = self.plan.bound
        schema = row_schema(bound) if schema is None else schema
        if bound.per_window:
            frame = self._frame(what, schema.append(pa.field(PLACE, pa.int64())), rows=rows)
            place = output_names(len(schema) + 1)[-1]
            return ordered(frame, [*self._lead_order(), f.col(place)] if in_order else []).drop(place)
        if bound.order_by or bound.limit is not None or bound.offset:
            return self._merged(rows, what, schema)
        if what == "list" and not in_order and self.plan.operator.name != NAMED:
            return self._listed(rows, schema)
        return ordered(self._frame(what, schema, rows=rows), self._rank_order() if in_order else [])

    def _listed(self, rows: Split, schema: pa.Schema) -> DataFrame:
        """Return all rows in no order; tasks share the groups that have many."""
        return spread(self._lazy_work(self.plan, "list"), rows.grouped(), inside_schema(schema), self.tasks)

    def _merged(self, rows: Split, what: str, schema: pa.Schema) -> DataFrame:
        """Apply ORDER BY, LIMIT and OFFSET over all groups."""
        bound = self.plan.bound
        if not bound.arranged:
            return limited(self._frame(what, schema, rows=rows), self._rank_order(), bound.offset, bound.limit)
        fields = [pa.field(f"{KEY}{i}", output_type(output)) for i, output in enumerate(bound.arranging)]
        fields.append(pa.field(PLACE, pa.int64()))
        frame = self._frame(what, pa.schema([*schema, *fields]), rows=rows)
        *keys, place = output_names(len(schema) + len(fields))[len(schema) :]
        order: list[Column] = [
            f.col(k).desc_nulls_last() if o.descending else f.col(k).asc_nulls_first()
            for k, o in zip(keys, bound.order_by, strict=False)
        ]
        order += [*self._lead_order(), f.col(place)]
        if bound.limit_per:
            frame = limited_per(frame, keys[len(bound.order_by) :], order, bound.offset, bound.limit)
        else:
            frame = limited(frame, order, bound.offset, bound.limit)
        return frame.drop(*keys, place)

    def _lead_order(self) -> list[Column]:
        return first_columns(len(lead_schema(self.plan.bound)))

    def _rank_order(self) -> list[Column]:
        """Return the columns for window, partition and rank."""
        return first_columns(len(lead_schema(self.plan.bound)) + 1)

    def _refuse_too_many(self) -> None:
        """Count, and refuse more results than the bound allows; a LIMIT below the bound is not counted for."""
        bound = self.plan.bound
        by_ranks = not bound.per_window and not bound.limit_per
        if bound.limit is not None and by_ranks and bound.limit <= self.max_trends:
            if bound.order_by and not can_be_searched(bound):
                refuse_listing(bound, [self._total], self.max_trends)
            return
        refuse_listing(bound, self._groups[1] if bound.per_window else [self._total], self.max_trends)

    def to_arrow(self) -> pa.Table:
        """Return all results as one Arrow table in this process, in the order of the result."""
        if self.plan.bound.aggregates:
            return self.aggregates().to_arrow()
        self._refuse_too_many()
        read = self._scan(self.plan)
        rows = read.collect(self._rows(read.split, in_order=True))
        return fitted(rows, self.schema)

    def first(self, rows: int) -> ResultTable:
        """Return the first rows of the result, in its order; the others are not listed."""
        other = self._variant(limited_plan(self.plan, rows))
        return ResultTable(lambda: other.to_arrow().slice(0, rows), lambda: other.to_spark().limit(rows))

    def batches(
        self, columns: Sequence[str] | None = None, positions: bool = False, threads: int | None = None,
        ranks: range | None = None, compact: bool = False,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Yield the results as record batches of bounded size, through a temporary directory: see `Results.batches`."""
        if positions or compact or threads is not None:
            raise UsageError(
                "positions, compact and threads are for results in this process", "Use engine='local', or leave it out."
            )
        wanted = checked_ranks(self.plan.bound, ranks)
        source = self if wanted is None else self._variant(ranked_plan(self.plan, wanted))
        return source._batches(columns)

    def _batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        wanted = pa.schema(schema if columns is None else [schema.field(n) for n in chosen(columns, schema.names)])
        if self.plan.bound.aggregates:
            yield from self.aggregates().to_arrow().select(wanted.names).to_batches()
            return
        self._refuse_too_many()
        inside = dict(zip(schema.names, output_names(len(schema)), strict=True))
        with tempfile.TemporaryDirectory() as directory:
            sink = self.tasks.sink(directory, "parquet", inside_schema(schema))
            sink.prepare()
            read = self._scan(self.plan)
            sink.commit(written(self._rows(read.split, in_order=True), sink, read))
            found = dataset.dataset(directory, format="parquet")
            for batch in found.to_batches(columns=[inside[n] for n in wanted.names]):
                if batch.num_rows:
                    yield from fitted(pa.Table.from_batches([batch]), wanted).to_batches()

    def sample(self, number: int, seed: int = 0) -> ResultTable:
        """Return results drawn without replacement, those that the local engine draws: see `Results.sample`."""
        table = self._picked(sampled_ranks(self._groups[1], number, seed))
        return ResultTable(lambda: table)

    @cached_property
    def _groups(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Window and partition of every group that has a result, in their order, and their sizes."""
        table = self.counts().to_arrow()
        lead = table.select(range(table.num_columns - 2))
        rows = lead_rows(lead) if lead.num_columns else [{} for _ in range(table.num_rows)]
        return rows, [number_of(text) for text in table.column(table.num_columns - 1).to_pylist()]

    def _picked(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        rows, _ = self._groups
        named: dict[str, list[tuple[int, int]]] = {}
        place = 0
        for group, ranks in picks.items():
            named[group_key(rows[group])] = [(place + i, rank) for i, rank in enumerate(ranks)]
            place += len(ranks)
        schema = row_schema(self.plan.bound).append(pa.field(PLACE, pa.int64()))
        if not named:
            return schema.empty_table().drop_columns(PLACE)
        return self._in_tiles("pick", schema, self.plan, named).sort_by(PLACE).drop_columns(PLACE)

    def picked_events(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        """Return the events of some results: see `Results.picked_events`."""
        schema, plan = events_schema(self.plan.bound), with_all_columns(self.plan)
        rows, _ = self._groups
        named = {group_key(rows[group]): [(0, rank) for rank in ranks] for group, ranks in picks.items()}
        return self._in_tiles("pick events", schema, plan, named) if named else schema.empty_table()

    def write(
        self, path: str | os.PathLike[str], format: str = "parquet", overwrite: bool = False, raw_csv: bool = False
    ) -> None:
        """Write the results as files into a directory, wholly or not at all: see `Results.write`."""
        check_format(format, raw_csv)
        claim = claimed(path, overwrite=overwrite, inputs=[*self.inputs, *input_files(self._events)])
        kind, schema = str(format), file_schema(self.schema)  # which workers know, whatever the caller has
        with in_driver(), claim as output:
            if isinstance(output, RemoteTarget):
                far = self.tasks.remote(output.path, kind, schema, raw_csv, run=output.run)
                output.commit(far.written_names(self._write_rows(far)))
                return
            with output.replacing() as directory:
                sink = self.tasks.sink(str(directory.absolute()), kind, schema, raw_csv)
                sink.prepare()
                sink.commit(self._write_to(sink))

    def _write_rows(self, sink: Sink) -> list[WrittenFile]:
        """Have the tasks write the results that they list, without a directory that all of them see."""
        if self.plan.bound.aggregates:
            return written_here(self.aggregates().to_arrow(), sink)
        self._refuse_too_many()
        read = self._scan(self.plan)
        return written(self._rows(read.split, in_order=False), sink, read)

    def _write_to(self, sink: Sink) -> list[WrittenFile]:
        """Have the tasks write the results, and return the files that make them up."""
        bound = self.plan.bound
        if bound.aggregates or not can_be_ranged(bound) or self.plan.operator.name == NAMED:
            return self._write_rows(sink)
        read = self._scan(self.plan)
        counted = CountAndWrite(self._work(self.plan, "list"), sink, self.tasks.at_once)
        found = joined_reports(reports_of(read.split.grouped(), counted, read))
        self._known["facts"] = read.facts()
        refuse_rows(found.rows, self.max_trends)
        cut = even_ranges(found.slices, cores(self._session), self.tasks.rows)
        if not cut:
            return found.files
        after = max((file.place + 1 for file in found.files), default=0)
        numbers = self._session.range(0, len(cut), 1, len(cut))
        answers = reports_of(numbers, WriteRanges(self.plan, sink, cut, after))
        return [*found.files, *(WrittenFile(**file) for about in answers for file in about["files"])]


def _empty_aggregates(plan: Plan) -> pa.Table:
    """Return the row that AGGREGATE gives where there is no result."""
    return aggregate_table(plan, [], [join(plan, [])])
