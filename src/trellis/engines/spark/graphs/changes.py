"""Changes of a graph in bulk: those of many events are rows, and what they come to is found by joins and groups.

A graph is two frames: vertices (`v`, `seq`, `data`) and edges (`s`, `t`, `seq`, `data`), where `seq` says since when
each is there. A change is a row (`seq`, `kind`, `a`, `b`, `data`, `strict`). Of all that is said of an edge the last
word counts, and the removal of one of its ends is said of it too.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from trellis.errors import UsageError

REMOVE_EDGE, REMOVE_VERTEX, ADD_VERTEX, ADD_EDGE = range(4)
STEP = 2  # between the numbers of two changes: the first end of an edge comes before the second


@dataclass(frozen=True)
class GraphFrames:
    """A graph as data frames."""

    vertices: DataFrame
    edges: DataFrame


def merged(graph: GraphFrames, log: DataFrame, removes: bool, strict: bool) -> GraphFrames:
    """Return the graph that changes lead to.

    Parameters
    ----------
    graph
        The graph before them.
    log
        The changes; ends of edges of an undirected graph are in ascending order.
    removes, strict
        Whether some of them remove something, and whether some of these must find it.

    Raises
    ------
    UsageError
        If something is not there that must be, with the first such change.
    """
    vertices, edges = _of_vertices(graph, log, removes), _of_edges(graph, log, removes)
    if strict:
        _refuse_missing(vertices, edges, _removals(log))
    if removes:
        gone = _removals(log).groupBy("gone_v").agg(f.max("gone").alias("gone"))
        vertices = _since(_since_removal(vertices, gone, "v"), "v")
        edges = _since(_since_removal(_since_removal(edges, gone, "s"), gone, "t"), "s", "t")
    explicit = f.when(f.col("explicit"), f.col("seq"))
    return GraphFrames(
        vertices.groupBy("v").agg(f.min("seq").alias("seq"), f.max_by("data", explicit).alias("data")),
        edges.groupBy("s", "t").agg(f.min("seq").alias("seq"), f.max_by("data", "seq").alias("data")),
    )


def _of_vertices(graph: GraphFrames, log: DataFrame, removes: bool) -> DataFrame:
    """Return all that is said of each vertex; what edges say of their ends leaves the data as they are."""

    def said(
        frame: DataFrame, v: str, seq: Column, data: Column, add: bool, explicit: bool, strict: Column
    ) -> DataFrame:
        return frame.select(
            f.col(v).alias("v"), seq.alias("seq"), data.alias("data"), f.lit(add).alias("add"),
            f.lit(explicit).alias("explicit"), strict.alias("strict"),
        )  # fmt: skip

    seq, data, no = f.col("seq"), f.col("data"), f.lit(False)
    nothing = f.lit(None).cast("binary")
    edges = log.where(f.col("kind") == ADD_EDGE)
    rows = (
        said(graph.vertices, "v", seq, data, True, True, no)
        .union(said(log.where(f.col("kind") == ADD_VERTEX), "a", seq, data, True, True, no))
        .union(said(edges, "a", seq + f.col("turned").cast("int"), nothing, True, False, no))
        .union(said(edges, "b", seq + 1 - f.col("turned").cast("int"), nothing, True, False, no))
    )
    if not removes:
        return rows
    gone = log.where(f.col("kind") == REMOVE_VERTEX)
    return rows.union(said(gone, "a", seq, nothing, False, False, f.col("strict")))


def _of_edges(graph: GraphFrames, log: DataFrame, removes: bool) -> DataFrame:
    """Return all that is said of each edge itself."""
    kinds = [ADD_EDGE, REMOVE_EDGE] if removes else [ADD_EDGE]
    known = graph.edges.select("s", "t", "seq", "data", f.lit(True).alias("add"), f.lit(False).alias("strict"))
    said = log.where(f.col("kind").isin(kinds)).select(
        f.col("a").alias("s"), f.col("b").alias("t"), "seq", "data", (f.col("kind") == ADD_EDGE).alias("add"), "strict"
    )
    return known.union(said)


def _removals(log: DataFrame) -> DataFrame:
    return log.where(f.col("kind") == REMOVE_VERTEX).select(f.col("a").alias("gone_v"), f.col("seq").alias("gone"))


def _since_removal(rows: DataFrame, gone: DataFrame, end: str) -> DataFrame:
    """Return the rows since a vertex was removed for the last time."""
    found = rows.join(gone, f.col(end) == f.col("gone_v"), "left")
    return found.where(f.col("gone").isNull() | (f.col("seq") > f.col("gone"))).drop("gone_v", "gone")


def _since(rows: DataFrame, *of: str) -> DataFrame:
    """Return the additions since the last removal."""
    cut = f.max(f.when(~f.col("add"), f.col("seq"))).over(Window.partitionBy(*of))
    found = rows.withColumn("cut", cut).where(f.col("add") & (f.col("cut").isNull() | (f.col("seq") > f.col("cut"))))
    return found.drop("cut")


def _refuse_missing(vertices: DataFrame, edges: DataFrame, removals: DataFrame) -> None:
    """Refuse the first removal of something that is not there at its turn."""

    def strict_removals(rows: DataFrame, *of: str) -> DataFrame:
        order = Window.partitionBy(*of).orderBy("seq")
        before = rows.withColumn("was", f.lag("add").over(order)).withColumn("since", f.lag("seq").over(order))
        return before.where("strict")

    said = strict_removals(vertices, "v")
    found = [
        row for row in [said.where("was is null or not was").orderBy("seq").select("seq", "v").head()] if row
    ]  # fmt: skip
    of_edges = strict_removals(edges, "s", "t").select("seq", "s", "t", "was", "since")
    lost = of_edges.where("was is null or not was").select("seq", "s", "t")
    for end in "st":  # an edge goes with its ends
        ends = of_edges.where("was").join(removals, f.col(end) == f.col("gone_v"))
        lost = lost.union(ends.where("gone > since and gone < seq").select("seq", "s", "t"))
    found += [row for row in [lost.orderBy("seq").head()] if row]
    if found:
        first = min(found, key=lambda row: row["seq"])
        what = f"vertex {first['v']!r}" if "v" in first.__fields__ else f"edge from {first['s']!r} to {first['t']!r}"
        raise UsageError(
            f"the graph has no {what} to remove, which the change {first['seq'] // STEP + 1:,} of it asked for",
            "It may have gone with a vertex that was removed. `missing='ignore'` passes over such changes.",
        )
