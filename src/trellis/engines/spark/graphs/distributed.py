"""A graph that is kept as data frames, for partitions whose graph is larger than a machine.

It has the methods of `trellis.graphs.Graph` that operators use. Changes are noted and made in bulk by the next job that
needs them. A question about some vertices fetches what the frames say of these; the changes since are made to that.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from trellis.engines.spark.graphs.changes import (
    ADD_EDGE,
    ADD_VERTEX,
    REMOVE_EDGE,
    REMOVE_VERTEX,
    STEP,
    GraphFrames,
    merged,
)
from trellis.engines.spark.graphs.tasks import WeighEdges
from trellis.engines.spark.graphs.vertices import ProgramRun, SparkGraph, SparkResult
from trellis.engines.spark.session.sent_rows import fetched_rows, sent_rows
from trellis.engines.spark.session.settled import settled
from trellis.engines.spark.ship.by_value import send_along
from trellis.errors import DataError, UsageError
from trellis.graphs.graph import Change, Graph
from trellis.graphs.plain import from_bytes, to_bytes
from trellis.graphs.program import VertexProgram

AT_ONCE, BYTES_AT_ONCE = 50_000, 8 << 20  # changes that the driver holds
PIECES, RUNS = 4, 24
FETCHED = 200_000  # edges that are kept of those that questions have fetched
INT, TEXT = pa.int64(), pa.string()


class DistributedGraph:
    """A graph on the cluster; see `trellis.graphs.Graph` for what its methods do.

    Parameters
    ----------
    session
        The Spark session.
    directed
        Whether edges lead one way only.
    at_once
        How many changes are noted here before they go to the cluster.
    unchecked
        Holds the graph as long as it may have been told to remove what is not there.
    """

    def __init__(
        self, session: SparkSession, directed: bool = False, at_once: int = AT_ONCE,
        unchecked: set[DistributedGraph] | None = None,
    ) -> None:  # fmt: skip
        self.directed = directed
        self._unchecked = set() if unchecked is None else unchecked
        self._session, self._at_once = session, at_once
        self._kind: pa.DataType | None = None  # of ids
        self._frames: GraphFrames | None = None
        self._runs: list[DataFrame] = []  # changes that are on the cluster
        self._pieces: list[DataFrame] = []  # those that came there last, a task each
        self._log: list[tuple[Any, ...]] = []  # changes that are here: kind, a, b, data, strict
        self._seq, self._bytes = 0, 0
        self._removes, self._strict = False, False
        self._fetched: dict[Any, tuple[list[Any], list[Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(
            f"a graph that is kept as data frames has no `{name}`",
            'Use the methods of Graph that docs/graphs.md names for it, or run with `graphs="local"`.',
        )

    # --- Changes --------------------------------------------------------------------------------------------------

    def change(self, change: Change, missing: str = "error") -> None:
        """Note a change; it is made, and one that removes what is not there refused, by the next job that needs it."""
        if missing not in ("error", "ignore"):
            raise UsageError(f"`missing` is `{missing}`", "It is `error` or `ignore`.")
        strict = missing == "error"
        for source, target in change.remove_edges:
            self._note(REMOVE_EDGE, source, target, None, strict)
        for vertex in change.remove_vertices:
            self._note(REMOVE_VERTEX, vertex, None, None, strict)
        for item in change.add_vertices:
            vertex, data = item if isinstance(item, tuple) else (item, None)
            self._note(ADD_VERTEX, vertex, None, data, False)
        for source, target, *rest in change.add_edges:
            self._note(ADD_EDGE, source, target, rest[0] if rest else None, False)
        if len(self._log) >= self._at_once or self._bytes >= BYTES_AT_ONCE:
            self._send()

    def _note(self, kind: int, a: Any, b: Any, data: Any, strict: bool) -> None:
        for vertex in (a, b) if kind in (REMOVE_EDGE, ADD_EDGE) else (a,):
            self._check_id(vertex)
        packed = None if data is None else to_bytes(data, "the data of a vertex or an edge")
        self._bytes += 64 + len(packed or b"")
        if kind in (REMOVE_EDGE, REMOVE_VERTEX):
            self._removes, self._strict = True, self._strict or strict
            if strict:
                self._unchecked.add(self)
        self._log.append((self._seq, kind, a, b, packed, strict))
        self._seq += STEP

    def _check_id(self, vertex: Any) -> None:
        if vertex is None:
            raise UsageError("a vertex is None", "Each needs an id: a number or a text.")
        kind = TEXT if isinstance(vertex, str) else INT
        if kind is INT and (
            isinstance(vertex, bool) or not hasattr(vertex, "__index__") or not -(1 << 63) <= vertex < 1 << 63
        ):
            raise DataError(
                f"the id {vertex!r} of a vertex is a {type(vertex).__name__}",
                "Ids of graphs on the cluster are whole numbers of 64 bits, or texts.",
            )
        if self._kind not in (None, kind):
            raise DataError("the ids of vertices are of different kinds", "Give all as whole numbers, or all as texts.")
        self._kind = kind

    def _send(self) -> None:
        """Have the cluster keep the changes that are noted here."""
        if self._log:
            self._pieces.append(sent_rows(self._session, self._log_table()))
            self._log, self._bytes = [], 0
        if len(self._pieces) >= PIECES:
            self._runs.append(settled(reduce(DataFrame.union, self._pieces)))
            self._pieces = []
            gc.collect()  # frames of PySpark's are in cycles, and as long as one is here executors keep its rows
        if len(self._runs) >= RUNS:
            self.settle()

    def _log_table(self) -> pa.Table:
        seq, kind, a, b, data, strict = zip(*self._log, strict=True)
        turned = [not self.directed and of == ADD_EDGE and y < x for of, x, y in zip(kind, a, b, strict=True)]
        if not self.directed:
            pairs = [(y, x) if y is not None and y < x else (x, y) for x, y in zip(a, b, strict=True)]
            a, b = zip(*pairs, strict=True)
        columns = [pa.array(seq, INT), pa.array(kind, pa.int32()), pa.array(a, self._kind), pa.array(b, self._kind),
                   pa.array(data, pa.binary()), pa.array(strict, pa.bool_()), pa.array(turned, pa.bool_())]  # fmt: skip
        return pa.table(columns, names=["seq", "kind", "a", "b", "data", "strict", "turned"])

    def settle(self) -> GraphFrames | None:
        """Make all changes and return the graph; None of one that never had a vertex."""
        self._unchecked.discard(self)
        if not self._log and not self._pieces and not self._runs:
            return self._frames
        if self._log:
            self._pieces.append(sent_rows(self._session, self._log_table()))
        log = reduce(DataFrame.union, [*self._runs, *self._pieces])
        before = self._frames or self._nothing()
        found = merged(before, settled(log, eager=False), self._removes, self._strict)
        self._frames = GraphFrames(settled(found.vertices), settled(found.edges))
        self._runs, self._pieces, self._log = [], [], []
        self._bytes, self._removes, self._strict = 0, False, False
        self._fetched = {}
        return self._frames

    def _nothing(self) -> GraphFrames:
        kind = "string" if self._kind is TEXT else "bigint"
        make = self._session.createDataFrame
        return GraphFrames(
            make([], f"v {kind}, seq bigint, data binary"), make([], f"s {kind}, t {kind}, seq bigint, data binary")
        )

    # --- Questions ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        frames = self.settle()
        return 0 if frames is None else frames.vertices.count()

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        frames = self.settle()
        if frames is not None:
            yield from (row["v"] for row in fetched_rows(frames.vertices.orderBy("seq").select("v")))

    def __contains__(self, vertex: Any) -> bool:
        return vertex in self._near(vertex)

    def vertex(self, vertex: Any) -> Any:
        """Return the data of a vertex."""
        return self._near(vertex).vertex(vertex)

    def edge(self, source: Any, target: Any) -> Any:
        """Return the data of an edge."""
        return self._near(source).edge(source, target)

    def has_edge(self, source: Any, target: Any) -> bool:
        """Return whether there is an edge."""
        return self._near(source).has_edge(source, target)

    def neighbours(self, vertex: Any) -> set[Any]:
        """Return the vertices that edges lead to or come from."""
        return self._near(vertex).neighbours(vertex)

    def successors(self, vertex: Any) -> set[Any]:
        """Return the vertices that edges lead to."""
        return self._near(vertex).successors(vertex)

    def predecessors(self, vertex: Any) -> set[Any]:
        """Return the vertices that edges come from."""
        return self._near(vertex).predecessors(vertex)

    def degree(self, vertex: Any) -> int:
        """Return how many neighbours a vertex has."""
        return self._near(vertex).degree(vertex)

    def edges(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all edges with their data; those of an undirected graph once."""
        frames = self.settle()
        if frames is None:
            return
        edges = frames.edges
        for end in "st":
            since = frames.vertices.select(f.col("v").alias(end), f.col("seq").alias(f"since_{end}"))
            edges = edges.join(since, end)
        turned = f.lit(not self.directed) & (f.col("since_t") < f.col("since_s"))
        first = f.when(turned, f.col("since_t")).otherwise(f.col("since_s"))
        for row in fetched_rows(edges.withColumn("turned", turned).orderBy(first, "seq")):
            source, target = (row["t"], row["s"]) if row["turned"] else (row["s"], row["t"])
            yield source, target, _data(row["data"])

    def _near(self, vertex: Any) -> Graph:
        """Return a graph that agrees with this one on a vertex and its edges."""
        if self._pieces or self._runs:
            self.settle()
        try:
            vertices, edges = self._fetch(vertex) if self._frames is not None else ([], [])
        except DataError:  # an id of another kind is not in the graph
            vertices, edges = [], []
        near = Graph(self.directed)
        near.change(Change(add_vertices=vertices, add_edges=edges))
        ends = {vertex, *(end for source, target, _ in edges for end in (source, target))}
        ends.update(end for _, _, a, b, _, _ in self._log if vertex in (a, b) for end in (a, b) if end is not None)
        for _, kind, a, b, data, _ in self._log:
            if a in ends and (b is None or b in ends):
                near.change(_noted(kind, a, b, data), missing="ignore")
        return near

    def _fetch(self, vertex: Any) -> tuple[list[Any], list[Any]]:
        if vertex not in self._fetched:
            assert self._frames is not None
            self._check_id(vertex)
            wanted, frames = f.lit(vertex), self._frames
            own = frames.vertices.where(f.col("v") == wanted).select("v", f.lit(None).alias("t"), "seq", "data")
            ends = frames.edges.where((f.col("s") == wanted) | (f.col("t") == wanted))
            rows = sorted(own.union(ends).collect(), key=lambda row: row["seq"])
            if sum(len(edges) for _, edges in self._fetched.values()) > FETCHED:
                self._fetched = {}
            self._fetched[vertex] = (
                [(row["v"], _data(row["data"])) for row in rows if row["t"] is None],
                [(row["v"], row["t"], _data(row["data"])) for row in rows if row["t"] is not None],
            )
        return self._fetched[vertex]

    # --- Programs -------------------------------------------------------------------------------------------------

    def execute(
        self, program: VertexProgram, within: Iterable[Any] | None = None, weight: Callable[[Any], float] | None = None
    ) -> SparkResult:
        """Run a vertex program over the graph, or over some of its vertices and the edges between them."""
        send_along(program, weight)
        frames = self.settle() or self._nothing()
        edges = frames.edges.select("s", "t", f.lit(1.0).alias("w"))
        if weight is not None:
            kind = frames.edges.schema["s"].dataType.simpleString()
            edges = frames.edges.select("s", "t", "data").mapInArrow(
                WeighEdges(weight), f"s {kind}, t {kind}, w double"
            )
        graph = SparkGraph(edges, frames.vertices.select(f.col("v").alias("id")), self.directed)
        if within is not None:
            graph = graph.among(self._known_kind(within))
        return ProgramRun(program, graph).result()

    def _known_kind(self, vertices: Iterable[Any]) -> list[Any]:
        return [vertex for vertex in vertices if isinstance(vertex, str) == (self._kind is TEXT)]


def _noted(kind: int, a: Any, b: Any, data: bytes | None) -> Change:
    if kind == ADD_EDGE:
        return Change(add_edges=[(a, b, _data(data))])
    if kind == ADD_VERTEX:
        return Change(add_vertices=[(a, _data(data))])
    return Change(remove_edges=[(a, b)]) if kind == REMOVE_EDGE else Change(remove_vertices=[a])


def _data(packed: Any) -> Any:
    return None if packed is None else from_bytes(bytes(packed))
