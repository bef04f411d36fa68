"""The ABI paper's Algorithm 2: the graph is broadcast, and joins extend all paths by one event a round.

A round is two joins: from the last event of each open path along its to-edges to attribute vertices, and from these
along their from-edges to later events. A path is open while some event may follow. Each round runs when it is its turn,
and its paths are checkpointed, so that neither plans nor lineages grow; Spark forgets them when nothing refers to them
any more. In the end the paths are sorted, which gives the ranks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window as Over

from trellis.digits import number_text
from trellis.engines.options import RunOptions
from trellis.engines.spark.batch.operate import PLACE, inside_schema
from trellis.engines.spark.batch.results import SparkResults
from trellis.engines.spark.batch.scan import lazy_split
from trellis.engines.spark.batch.sink import Sink, WrittenFile
from trellis.engines.spark.batch.writing import written
from trellis.engines.spark.papers.construction import check_construction, index_on_spark
from trellis.engines.spark.papers.indexed import (
    EVENT,
    FIRST,
    FIRST_END,
    GROUP,
    LAST,
    LATER,
    NEAREST,
    STARTS,
    TO,
    UNTIL,
    VERTEX,
    WINDOW,
    index_in_kernels,
)
from trellis.engines.spark.papers.path_rows import PATH, RANK, PathRows
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.session.settled import settled
from trellis.engines.spark.split.rows import output_names
from trellis.engines.spark.split.split import Split
from trellis.errors import ListingRefused, UsageError
from trellis.language.bound import WindowKind
from trellis.language.syntax import Report
from trellis.methods import SPARK
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.plan import Plan
from trellis.properties import cached_property
from trellis.results.arrange import KEY
from trellis.results.rows import lead_schema, output_type

NEXT, BEFORE = "next", "before"
FEW = 1 << 16  # open paths that are dealt out anew each round, so that all tasks have some
ROUNDS = 16  # after which what is complete so far becomes one frame


class JoinedResults(SparkResults):
    """Results that are listed by joins; nothing else differs, but that `to_spark()` does all rounds at once."""

    most_edges = 1_000_000  # events and to-edges of a graph that is broadcast

    def __init__(self, plan: Plan, frame: DataFrame, options: RunOptions) -> None:
        if not plan.one_kleene:
            raise UsageError(
                "the algorithm `join` extends the paths of one Kleene variable, and this pattern has more",
                "Leave the algorithm out.",
            )
        super().__init__(plan, frame, options)
        self._construction = options.methods.construction
        if self._construction == SPARK:
            check_construction(plan)
        self._joined: dict[tuple[str, ...], JoinedPaths] = {}  # by the columns that are read; copies of this share it

    def _frame(self, what: str, schema: pa.Schema, plan: Plan | None = None, rows: Split | None = None) -> DataFrame:
        if what not in ("list", "explode"):
            return super()._frame(what, schema, plan, rows)
        plan = plan or self.plan
        with in_driver():
            return _listed(self._join(plan), plan, what, schema)

    def _listed(self, rows: Split, schema: pa.Schema) -> DataFrame:
        """Return all rows; joins share the work evenly by themselves."""
        return self._frame("list", schema, rows=rows)

    def _write_to(self, sink: Sink) -> list[WrittenFile]:
        if self.plan.bound.aggregates:
            return super()._write_to(sink)
        return written(self.to_spark(), sink)

    def _join(self, plan: Plan) -> JoinedPaths:
        if plan.columns not in self._joined:
            self._refuse_too_many_paths()
            rows = self.split_rows(plan)
            if self._construction == SPARK:
                rows = lazy_split(plan, self._events, self.options.drops_bad_rows, 1)
            self._joined[plan.columns] = JoinedPaths(rows, self._construction, self.most_edges)
        return self._joined[plan.columns]

    def _refuse_too_many_paths(self) -> None:
        """Refuse more paths than the bound on listing allows, whatever HAVING and LIMIT leave of them in the end.

        Where trends must fit a span a path may end in no result, but every path is a trend under REPORT any.
        """
        bound = replace(self.plan.bound, having=())
        if bound.window.kind is WindowKind.SPAN:
            bound = replace(bound, report=Report.ANY)
        paths = self._variant(replace(self.plan, bound=bound)).count() if bound != self.plan.bound else self.count()
        if paths > self.max_trends:
            raise ListingRefused(
                f"the algorithm `join` would make {number_text(paths)} paths, more than the bound of "
                f"{self.max_trends:,} on listing; it knows HAVING, LIMIT and OFFSET only in the end",
                "Leave out the algorithm, count them (trends.count()), narrow the query (a shorter WITHIN, REPORT "
                "maximal), or raise max_trends.",
                paths,
            )


# --- The rounds -------------------------------------------------------------------------------------------------


class JoinedPaths:
    """The paths of all groups of a split."""

    def __init__(self, rows: Split, construction: str, most_edges: int) -> None:
        self.rows, self.construction, self.most_edges = rows, construction, most_edges

    @cached_property
    def index(self) -> DataFrame:
        """The indexed rows: see `trellis.engines.spark.papers.indexed`.

        Raises
        ------
        UsageError
            If they are too many to be broadcast.
        """
        build = index_on_spark if self.construction == SPARK else index_in_kernels
        index = settled(build(self.rows))
        row = index.agg(f.count(f.lit(1)), f.sum(f.size(TO))).first()
        assert row is not None
        if max(row[0], row[1] or 0) > self.most_edges:
            raise UsageError(
                f"the graph has {row[0]:,} events and {row[1]:,} ranges of edges, and the algorithm `join` broadcasts "
                f"no more than {self.most_edges:,} of either",
                "Leave out the algorithm, or use a shorter WITHIN or a narrower condition.",
            )
        return index

    @cached_property
    def ranked(self) -> DataFrame:
        """All results: their groups, ranks and paths."""
        return _ranked(self._paths())

    @cached_property
    def events(self) -> pa.Table:
        """The rows of the events by number."""
        names = [*self.rows.rows.columns, EVENT]
        return self.index.select(*names).toArrow().sort_by(EVENT)

    @cached_property
    def groups(self) -> pa.Table:
        """The groups by number, each with its window and one of its events."""
        starts = self.index.select(EVENT, f.explode(STARTS).alias("start"))
        of_start = [f.col(f"start.{name}").alias(name) for name in (GROUP, WINDOW)]
        groups = starts.select(EVENT, *of_start).groupBy(GROUP, WINDOW).agg(f.min(EVENT).alias(EVENT))
        return groups.toArrow().sort_by(GROUP)

    def _paths(self) -> DataFrame:
        """Extend paths, from those of one event on, until none is open."""
        least, most = length_bounds(self.rows.plan.bound.having)
        tasks = int(self.index.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        is_open = f.col(NEAREST) < f.col(UNTIL)
        is_complete = ~is_open & (f.col(EVENT) >= f.col(FIRST_END))
        if self.rows.plan.bound.report is Report.ANY:
            is_complete = f.lit(True)
        extend, complete = _Extension(self.index), _Union(tasks)
        paths, length = settled(self._starts()), 1
        while True:
            if least <= length <= most:
                complete.add(paths.where(is_complete).select(GROUP, PATH))
            open_paths = paths.where(is_open)
            number = open_paths.count() if length < most else 0
            if not number:
                return complete.frame(paths.where(f.lit(False)).select(GROUP, PATH))
            if number < FEW:
                open_paths = open_paths.repartition(min(tasks, number))
            paths, length = settled(extend(open_paths)), length + 1

    def _starts(self) -> DataFrame:
        """The paths of one event."""
        starts = self.index.select(EVENT, NEAREST, f.inline(STARTS))
        return starts.select(GROUP, UNTIL, FIRST_END, f.array(EVENT).alias(PATH), EVENT, NEAREST)


class _Extension:
    """Gives open paths one event more: to the vertices of their last event, and from there to later events."""

    def __init__(self, index: DataFrame) -> None:
        from_edges = index.where(f.col(VERTEX).isNotNull()).select(VERTEX, f.col(EVENT).alias(NEXT), NEAREST)
        self.to_edges = f.broadcast(index.select(EVENT, LATER, f.inline(TO)))
        self.from_edges = f.broadcast(from_edges)
        kept = [f.col(name) for name in (GROUP, UNTIL, FIRST_END)]
        vertices = f.explode(f.sequence(FIRST, f.col(LAST) - 1)).alias(VERTEX)
        self.at_vertices = [*kept, f.col(PATH), f.col(LATER), vertices]
        self.fits = (f.col(NEXT) >= f.col(LATER)) & (f.col(NEXT) < f.col(UNTIL))
        path = f.array_append(PATH, f.col(NEXT)).alias(PATH)
        self.at_events = [*kept, path, f.col(NEXT).alias(EVENT), f.col(NEAREST)]

    def __call__(self, paths: DataFrame) -> DataFrame:
        at_vertices = paths.join(self.to_edges, EVENT).select(self.at_vertices)
        return at_vertices.join(self.from_edges, VERTEX).where(self.fits).select(self.at_events)


class _Union:
    """Frames that become one, with a plan that stays small."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.whole: list[DataFrame] = []
        self.parts: list[DataFrame] = []

    def add(self, part: DataFrame) -> None:
        self.parts.append(part)
        if len(self.parts) == ROUNDS:
            self.whole.append(settled(reduce(DataFrame.union, self.parts).coalesce(self.tasks)))
            self.parts = []

    def frame(self, empty: DataFrame) -> DataFrame:
        return reduce(DataFrame.union, [*self.whole, *self.parts], empty)


def _ranked(paths: DataFrame) -> DataFrame:
    """Number the paths of each group in the order of their events, those of each start by themselves."""
    paths = paths.withColumn(EVENT, f.element_at(PATH, 1))
    in_group = Over.partitionBy(GROUP).orderBy(EVENT).rowsBetween(Over.unboundedPreceding, -1)
    counts = paths.groupBy(GROUP, EVENT).count()
    before = counts.select(GROUP, EVENT, f.coalesce(f.sum("count").over(in_group), f.lit(0)).alias(BEFORE))
    in_start = Over.partitionBy(GROUP, EVENT).orderBy(PATH).rowsBetween(Over.unboundedPreceding, -1)
    rank = f.col(BEFORE) + f.count(f.lit(1)).over(in_start)
    return paths.join(f.broadcast(before), [GROUP, EVENT]).select(GROUP, rank.alias(RANK), PATH)


# --- From paths to rows -----------------------------------------------------------------------------------------


def _listed(joined: JoinedPaths, plan: Plan, what: str, schema: pa.Schema) -> DataFrame:
    """Return the rows of results as the operator gives them, with what is asked of each group by itself applied."""
    bound = plan.bound
    end = None if bound.limit is None else bound.limit + bound.offset
    paths = joined.ranked
    if not bound.order_by:
        paths = paths.where(_between(f.col(RANK), bound.offset if bound.per_window else 0, end))
    work = PathRows(plan, what, joined.events, joined.groups)
    if not (bound.order_by and bound.per_window):
        return paths.mapInArrow(work, from_arrow_schema(inside_schema(schema)))
    keys = [pa.field(f"{KEY}{i}", output_type(o.output)) for i, o in enumerate(bound.order_by)]
    wide = pa.schema([*list(schema)[:-1], *keys, schema[-1]])
    frame = paths.mapInArrow(work, from_arrow_schema(inside_schema(wide)))
    names = frame.columns
    order = [
        f.col(name).desc_nulls_last() if o.descending else f.col(name).asc_nulls_first()
        for name, o in zip(names[len(schema) - 1 : -1], bound.order_by, strict=True)
    ]
    in_group = Over.partitionBy(*names[: len(lead_schema(bound))]).orderBy(*order, names[-1])
    place = f.count(f.lit(1)).over(in_group.rowsBetween(Over.unboundedPreceding, -1))
    frame = frame.select(*names[: len(schema) - 1], place.alias(PLACE)).where(_between(f.col(PLACE), bound.offset, end))
    return frame.toDF(*output_names(len(schema)))


def _between(number: Column, begin: int, end: int | None) -> Column:
    most = (1 << 63) - 1
    found = number >= f.lit(min(begin, most))
    return found if end is None else found & (number < f.lit(min(end, most)))
