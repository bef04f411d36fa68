"""Runs vertex programs on Spark, over data frames of edges, for graphs that are larger than one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.graphs.vertex_blocks import (
    EDGE,
    MOVING,
    OWN,
    STATIC,
    VERTEX,
    WATCHER,
    BeginBlocks,
    EndBlocks,
    Round,
    build,
    for_spark,
)
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.session.settled import settled
from trellis.engines.spark.ship.by_value import send_along
from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.split.hashing import bucket_keys
from trellis.errors import DataError, UsageError, did_you_mean
from trellis.graphs.arrays import SOURCE, TARGET
from trellis.graphs.engine import by_vertex, refuse_more, round_bound
from trellis.graphs.program import BOTH, OUT, VertexProgram, Vertices
from trellis.graphs.values import Values, from_arrow, to_arrow
from trellis.properties import cached_property

INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
FEW = 1000  # vertices that a condition can list


@dataclass(frozen=True)
class SparkResult:
    """The result of a vertex program on Spark.

    Attributes
    ----------
    frame
        A data frame of `vertex` and `value`.
    rounds, scheduled
        How many rounds it took, and how often a vertex was scheduled in all of them.
    """

    frame: DataFrame
    rounds: int
    scheduled: int
    gives_vertices: bool = False

    def to_arrow(self) -> pa.Table:
        """Return a table of `vertex` and `value`, by ascending vertex."""
        return self.frame.toArrow().sort_by("vertex")

    def to_dict(self) -> dict[Any, Any]:
        """Return the result of each vertex by its id."""
        return by_vertex(self.to_arrow())

    @cached_property
    def _both(self) -> tuple[pa.Array, Values]:
        table = self.to_arrow().combine_chunks()
        ids, found = (table[name].combine_chunks() for name in ("vertex", "value"))
        return ids, from_arrow(pc.index_in(found, ids).cast(pa.int64()) if self.gives_vertices else found)

    @property
    def ids(self) -> pa.Array:
        """The vertices, ascending; all come here."""
        return self._both[0]

    @property
    def values(self) -> Values:
        """The result of each vertex, as in this process; all come here."""
        return self._both[1]


def execute(
    program: VertexProgram,
    edges: DataFrame,
    *,
    source: str = SOURCE,
    target: str = TARGET,
    weight: str | None = None,
    vertices: DataFrame | None = None,
    directed: bool = True,
) -> SparkResult:
    """Run a vertex program over a data frame of edges.

    Parameters
    ----------
    program
        The program; the same as in this process.
    edges
        A row an edge. Ids of vertices are whole numbers or texts.
    source, target, weight
        Its columns.
    vertices
        All vertices, in its only column, if some have no edge; an edge to any other is refused.
    directed
        Whether edges lead one way only.

    Raises
    ------
    NotConverged
        If values still change after as many rounds as the program may take.
    DataError, UsageError
        As in `trellis.graphs.edge_list`.
    """
    with in_driver():
        ship(edges.sparkSession)
        send_along(program)
        graph = SparkGraph.of(edges, source, target, weight, vertices, directed)
        return ProgramRun(program, graph).result()


@dataclass(frozen=True)
class SparkGraph:
    """Edges with columns `s`, `t` and `w`, and the ids of all vertices in `id`."""

    edges: DataFrame
    ids: DataFrame
    directed: bool

    @classmethod
    def of(
        cls, edges: DataFrame, source: str, target: str, weight: str | None, vertices: DataFrame | None, directed: bool
    ) -> SparkGraph:
        """Return the graph that frames hold; see `execute`."""
        for name in (source, target, *([weight] if weight else [])):
            if name not in edges.columns:
                hint = did_you_mean(name, edges.columns, f"Columns are {', '.join(edges.columns)}.")
                raise UsageError(f"the edges have no column `{name}`", hint)
        ends = [_id(edges, name) for name in (source, target)]
        types = {type(edges.select(end).schema[0].dataType).__name__ for end in ends}
        if len(types) > 1:
            raise DataError(f"`{source}` and `{target}` are of different types", "Cast one.")
        weights = f.lit(1.0) if weight is None else edges[f"`{weight}`"].cast("double")
        plain = edges.select(ends[0].alias("s"), ends[1].alias("t"), weights.alias("w"))
        _refuse_bad(plain, source, target, weight)
        if vertices is None:
            known = plain.select(f.col("s").alias("id")).union(plain.select("t"))
        else:
            known = vertices.select(_id(vertices, vertices.columns[0]).alias("id"))
            for end in "st":
                lost = plain.join(known, plain[end] == known["id"], "left_anti").limit(1).collect()
                if lost:
                    raise DataError(
                        f"the edge from {lost[0]['s']!r} to {lost[0]['t']!r} ends at {lost[0][end]!r}, which is not a "
                        "vertex",
                        "Remove the edges of a vertex with it, or add the vertex again.",
                    )
        return cls(plain, known.distinct(), directed)

    # What programs may ask before they run.

    def lacks(self, vertices: list[Any]) -> list[Any]:
        """Return those of some vertices that the graph does not have."""
        wanted = [v for v in vertices if isinstance(v, str) == self._textual]
        found = {row["id"] for row in self.ids.where(f.col("id").isin(wanted)).collect()} if wanted else set()
        return [vertex for vertex in vertices if vertex not in found]

    @property
    def _textual(self) -> bool:
        return isinstance(self.ids.schema["id"].dataType, t.StringType)

    def neighbours(self, vertex: Any, at_most: int) -> list[Any]:
        """Return the neighbours of a vertex in ascending order, `at_most` of them; those along and against edges."""
        out = self.edges.where(f.col("s") == f.lit(vertex)).select(f.col("t").alias("id"))
        back = self.edges.where(f.col("t") == f.lit(vertex)).select(f.col("s").alias("id"))
        others = out.union(back).where(f.col("id") != f.lit(vertex)).distinct()
        return [row["id"] for row in others.orderBy("id").limit(at_most).collect()]

    def edges_among(self, vertices: list[Any]) -> list[tuple[Any, Any]]:
        """Return the edges that have both ends among some vertices."""
        inside = f.col("s").isin(vertices) & f.col("t").isin(vertices) & (f.col("s") != f.col("t"))
        return [(row["s"], row["t"]) for row in self.edges.where(inside).select("s", "t").distinct().collect()]

    def among(self, vertices: list[Any]) -> SparkGraph:
        """Return the part of the graph that some vertices make up."""
        if len(vertices) <= FEW:
            inside = f.col("s").isin(vertices) & f.col("t").isin(vertices)
            return SparkGraph(self.edges.where(inside), self.ids.where(f.col("id").isin(vertices)), self.directed)
        kind = "string" if self._textual else "bigint"
        chosen = f.broadcast(self.edges.sparkSession.createDataFrame([(v,) for v in vertices], f"chosen {kind}"))
        edges = self.edges
        for end in "st":
            edges = edges.join(chosen, f.col(end) == f.col("chosen"), "left_semi")
        return SparkGraph(edges, self.ids.join(chosen, f.col("id") == f.col("chosen"), "left_semi"), self.directed)

    def plain_edges(self, direction: str, loops: bool) -> DataFrame:
        """Return edges in the direction that values go, each once and with its smallest weight."""
        s, target = ("t", "s") if direction == OUT else ("s", "t")
        along = self.edges.select(f.col(s).alias("s"), f.col(target).alias("t"), "w")
        if direction == BOTH or not self.directed:
            along = along.union(along.select("t", "s", "w"))
        if not loops:
            along = along.where(f.col("s") != f.col("t"))
        return along.groupBy("s", "t").agg(f.min("w").alias("w"))


def _id(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType
    if isinstance(kind, INTEGERS):
        return frame[f"`{name}`"].cast("bigint")
    if isinstance(kind, t.StringType):
        return frame[f"`{name}`"]
    raise DataError(
        f"`{name}` is of type {kind.simpleString()}", "Ids of vertices are whole numbers or texts: cast them."
    )


def _refuse_bad(plain: DataFrame, source: str, target: str, weight: str | None) -> None:
    checks = {source: f.col("s").isNull(), target: f.col("t").isNull()}
    row = plain.agg(
        *(f.count_if(bad) for bad in checks.values()), f.count_if(f.col("w").isNull() | f.isnan("w"))
    ).head()
    assert row is not None
    for number, name in zip(row, [source, target], strict=False):
        if number:
            raise DataError(f"`{name}` is NULL in {number:,} rows", "A vertex needs an id.")
    if row[2]:
        raise DataError(f"`{weight}` is NULL or NaN in {row[2]:,} rows", "Each edge needs one.")


def _of_two(work: Callable[[pa.Table, pa.Table], pa.Table]) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return work as a plain function, whose arguments Spark can count."""
    return lambda static, moving: work(static, moving)


class ProgramRun:
    """A program that runs over a graph."""

    def __init__(self, program: VertexProgram, graph: SparkGraph) -> None:
        self.program = program
        self.session: SparkSession = graph.edges.sparkSession
        self.empty = graph.ids.isEmpty()
        if not self.empty:
            part = program.prepare(graph)
            graph = graph if part is None else graph.among(list(part))
        self.graph = graph

    def result(self) -> SparkResult:
        """Run it."""
        kind = self.graph.ids.schema["id"].dataType
        if self.empty:
            schema = t.StructType([t.StructField("vertex", kind), t.StructField("value", t.DoubleType())])
            return SparkResult(self.session.createDataFrame([], schema), 0, 0)
        # Numbers that rise with ids: results tell vertices by the smallest, and sums go in one order.
        numbered = self.graph.ids.orderBy("id").select("id", f.monotonically_increasing_id().alias("index"))
        numbered = settled(numbered, eager=False)
        number = numbered.count()
        static = self._blocks(numbered).persist()
        try:
            moving, rounds, scheduled, total = self._rounds(static, number)
            frame = settled(self._ended(static, moving, total))
        finally:
            static.unpersist()
        if self.program.gives_vertices:
            frame = frame.join(numbered, frame["value"] == numbered["index"]).select(
                "vertex", numbered["id"].alias("value")
            )
        return SparkResult(frame, rounds, scheduled, self.program.gives_vertices)

    def _blocks(self, numbered: DataFrame) -> DataFrame:
        keys = bucket_keys(self.session)

        def block(index: Column) -> Column:
            place = f.pmod(index, f.lit(len(keys))).cast("int")
            return f.element_at(f.array(*map(f.lit, keys)), place + 1).cast("int")

        nothing = f.lit(None).cast(numbered.schema["id"].dataType)
        edges = self.graph.plain_edges(self.program.direction, self.program.loops)
        for end in "st":
            places = numbered.select(f.col("id").alias(end), f.col("index").alias(f"{end}i"))
            edges = edges.join(places, end)
        edges = settled(edges.select("si", "ti", "w"), eager=False)
        edges = edges.join(edges.groupBy("si").agg(f.sum("w").alias("total")), "si")

        def rows(
            frame: DataFrame, where: Column, role: int, a: Column, b: Column, w: Column, total: Column, id_: Column
        ) -> DataFrame:
            return frame.select(
                where.alias("block"), f.lit(role).alias("role"), a.alias("a"), b.cast("bigint").alias("b"),
                w.alias("weight"), total.alias("total"), id_.alias("id"),
            )  # fmt: skip

        si, ti, index, zero = f.col("si"), f.col("ti"), f.col("index"), f.lit(0.0)
        watching = edges.select("si", block(ti).alias("watcher")).distinct()
        everything = (
            rows(numbered, block(index), VERTEX, index, f.lit(0), zero, zero, f.col("id"))
            .union(rows(edges, block(ti), EDGE, ti, si, f.col("w"), f.col("total"), nothing))
            .union(rows(watching, block(si), WATCHER, si, f.col("watcher"), zero, zero, nothing))
        )
        return everything.groupBy("block").applyInArrow(build, STATIC)

    def _rounds(self, static: DataFrame, number: int) -> tuple[DataFrame, int, int, float]:
        moving = static.mapInArrow(BeginBlocks(self.program), MOVING)
        bound, rounds, scheduled = round_bound(self.program, number), 0, 0
        moving, changed, _, total = self._settled(moving)
        while changed:
            refuse_more(self.program, rounds, bound, changed)
            work = Round(self.program, rounds)
            moving = static.groupBy("block").cogroup(moving.groupBy("block")).applyInArrow(_of_two(work), MOVING)
            moving, changed, now, total = self._settled(moving)
            rounds, scheduled = rounds + (now > 0), scheduled + now
            if not now:
                break
        return moving, rounds, scheduled, total

    def _settled(self, moving: DataFrame) -> tuple[DataFrame, int, int, float]:
        """Have a round run, and forget how it came about: else each would run all before it again."""
        moving = settled(moving, eager=False)
        own = moving.where(f.col("kind") == OWN)
        row = own.agg(f.sum("changed"), f.sum("scheduled"), f.sum("total")).head()
        assert row is not None
        return moving, int(row[0] or 0), int(row[1] or 0), float(row[2] or 0)

    def _ended(self, static: DataFrame, moving: DataFrame, total: float) -> DataFrame:
        ids = pa.array([], pa.large_string() if self.graph._textual else pa.int64())
        none = Vertices(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), ids)
        values = for_spark(to_arrow(self.program.finish(self.program.initial(none), 1.0)))
        name = pa.string() if self.graph._textual else pa.int64()
        schema = pa.schema([("vertex", name), ("value", values.type)])
        own = moving.where(f.col("kind") == OWN)
        work = EndBlocks(self.program, total, schema)
        return (
            static.groupBy("block").cogroup(own.groupBy("block")).applyInArrow(_of_two(work), from_arrow_schema(schema))
        )
