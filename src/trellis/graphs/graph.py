"""A graph that changes: vertices and edges with data, added and removed as events come."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trellis.errors import DataError, UsageError
from trellis.graphs.arrays import SOURCE, TARGET, EdgeList, edge_list
from trellis.graphs.engine import Result, execute
from trellis.graphs.program import VertexProgram

Vertex = Hashable


@dataclass(frozen=True)
class Change:
    """A change of a graph: first all removals, then all additions.

    Attributes
    ----------
    add_vertices
        Vertices, or pairs of a vertex and its data. One that is there gets the new data.
    add_edges
        Edges as pairs, or triples with data. Ends that are not there are added; an edge that is gets the new data.
    remove_vertices
        Vertices, which go with all their edges.
    remove_edges
        Edges as pairs.
    """

    add_vertices: Iterable[Any] = ()
    add_edges: Iterable[tuple[Any, ...]] = ()
    remove_vertices: Iterable[Any] = ()
    remove_edges: Iterable[tuple[Any, Any]] = ()


class GraphStore:
    """A graph to be read: what the splitter has written into it so far, up to and with the event that is at hand."""

    def __init__(self, directed: bool = False) -> None:
        self.directed = directed
        self._data: dict[Any, Any] = {}
        self._out: dict[Any, dict[Any, Any]] = {}
        self._in: dict[Any, dict[Any, Any]] = {} if directed else self._out

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, vertex: Vertex) -> bool:
        return vertex in self._data

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data)

    def vertex(self, vertex: Vertex) -> Any:
        """Return the data of a vertex."""
        self._check(vertex)
        return self._data[vertex]

    def edge(self, source: Vertex, target: Vertex) -> Any:
        """Return the data of an edge."""
        if not self.has_edge(source, target):
            raise UsageError(f"the graph has no edge from {source!r} to {target!r}", "Ask `has_edge` first.")
        return self._out[source][target]

    def has_edge(self, source: Vertex, target: Vertex) -> bool:
        """Return whether there is an edge."""
        return target in self._out.get(source, ())

    def neighbours(self, vertex: Vertex) -> set[Any]:
        """Return the vertices that edges lead to or come from; none of a vertex that is not there."""
        found = set(self._out.get(vertex, ()))
        return found | self._in.get(vertex, {}).keys() if self.directed else found

    def successors(self, vertex: Vertex) -> set[Any]:
        """Return the vertices that edges lead to."""
        return set(self._out.get(vertex, ()))

    def predecessors(self, vertex: Vertex) -> set[Any]:
        """Return the vertices that edges come from."""
        return set(self._in.get(vertex, ()))

    def degree(self, vertex: Vertex) -> int:
        """Return how many neighbours a vertex has."""
        return len(self.neighbours(vertex)) if self.directed else len(self._out.get(vertex, ()))

    def edges(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all edges with their data; those of an undirected graph once."""
        done: set[Any] = set()
        for source, targets in self._out.items():
            for target, data in targets.items():
                if self.directed or target not in done:
                    yield source, target, data
            done.add(source)

    def arrays(self, within: Iterable[Any] | None = None, weight: Callable[[Any], float] | None = None) -> EdgeList:
        """Return the graph as arrays, for vertex programs.

        Parameters
        ----------
        within
            Only these vertices, and the edges between them.
        weight
            Gives the weight of an edge from its data; without it edges have none.
        """
        inside = self._data.keys() if within is None else {vertex for vertex in within if vertex in self._data}
        edges = [
            (source, target, data)
            for source in inside
            for target, data in self._out[source].items()
            if within is None or target in inside
        ]
        columns = {SOURCE: _ids([e[0] for e in edges]), TARGET: _ids([e[1] for e in edges])}
        if weight is not None:
            columns["weight"] = pa.array([float(weight(e[2])) for e in edges], pa.float64())
        table = pa.table(columns)
        vertices = _ids(list(inside))
        if not edges:
            table = table.cast(
                pa.schema([(name, vertices.type if name != "weight" else pa.float64()) for name in columns])
            )
        name = None if weight is None else "weight"
        return edge_list(table, weight=name, vertices=vertices, directed=self.directed)

    def _check(self, vertex: Vertex) -> None:
        if vertex not in self._data:
            raise UsageError(f"the graph has no vertex {vertex!r}", "It was never added, or has been removed.")


def _ids(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds = sorted({type(value).__name__ for value in values})
        raise DataError(
            f"the ids of vertices are of different kinds: {', '.join(kinds)}",
            "Programs run over graphs whose ids are all whole numbers or all texts.",
        ) from None


class Graph(GraphStore):
    """A graph that can be changed."""

    def __init__(self, directed: bool = False) -> None:
        super().__init__(directed)
        self._arrays: EdgeList | None = None

    def arrays(self, within: Iterable[Any] | None = None, weight: Callable[[Any], float] | None = None) -> EdgeList:
        """Return the graph as arrays, for vertex programs; those of the whole graph are kept until it changes."""
        if within is not None or weight is not None:
            return super().arrays(within, weight)
        if self._arrays is None:
            self._arrays = super().arrays()
        return self._arrays

    def execute(
        self, program: VertexProgram, within: Iterable[Any] | None = None, weight: Callable[[Any], float] | None = None
    ) -> Result:
        """Run a vertex program over the graph, or over some of its vertices; `weight` as in `arrays`."""
        return execute(program, self.arrays(within, weight))

    def view(self) -> GraphStore:
        """Return the same graph to be read only; it goes with the changes."""
        store = GraphStore(self.directed)
        store._data, store._out, store._in = self._data, self._out, self._in
        return store

    def change(self, change: Change, missing: str = "error") -> None:
        """Change the graph.

        Parameters
        ----------
        change
            What to remove and add.
        missing
            What happens if something to be removed is not there: `error`, or `ignore`.

        Raises
        ------
        UsageError
            If something to be removed is not there.
        """
        if missing not in ("error", "ignore"):
            raise UsageError(f"`missing` is `{missing}`", "It is `error` or `ignore`.")
        self._arrays = None
        for source, target in change.remove_edges:
            if self.has_edge(source, target):
                self._cut(source, target)
            elif missing == "error":
                raise UsageError(
                    f"the graph has no edge from {source!r} to {target!r} to remove",
                    "It may have gone with a vertex that was removed. `missing='ignore'` passes over such edges.",
                )
        for vertex in change.remove_vertices:
            if vertex in self._data:
                self._remove(vertex)
            elif missing == "error":
                raise UsageError(
                    f"the graph has no vertex {vertex!r} to remove", "`missing='ignore'` passes over such vertices."
                )
        for item in change.add_vertices:
            vertex, data = item if isinstance(item, tuple) else (item, None)
            self._add(vertex)
            self._data[vertex] = data
        for source, target, *rest in change.add_edges:
            self._add(source)
            self._add(target)
            data = rest[0] if rest else None
            self._out[source][target] = data
            self._in[target][source] = data

    def _add(self, vertex: Vertex) -> None:
        if vertex is None:
            raise UsageError("a vertex is None", "Each needs an id: a number or a text.")
        if vertex not in self._data:
            self._data[vertex] = None
            self._out[vertex] = {}
            self._in.setdefault(vertex, {})

    def _cut(self, source: Vertex, target: Vertex) -> None:
        del self._out[source][target]
        if self.directed or source != target:
            del self._in[target][source]

    def _remove(self, vertex: Vertex) -> None:
        for target in list(self._out[vertex]):
            self._cut(vertex, target)
        for source in list(self._in[vertex]):
            self._cut(source, vertex)
        del self._data[vertex], self._out[vertex]
        self._in.pop(vertex, None)

    def state(self) -> Any:
        """Return the graph as plain data, in the order that it has."""
        vertices = [[vertex, data] for vertex, data in self._data.items()]
        sides = [self._out, self._in] if self.directed else [self._out]
        return [
            vertices,
            [[[v, [[w, data] for w, data in near.items()]] for v, near in side.items()] for side in sides],
        ]

    def restore(self, state: Any) -> None:
        """Become the graph that `state` was called of."""
        vertices, sides = state
        self._data = dict(vertices)
        self._out = {vertex: dict(near) for vertex, near in sides[0]}
        if self.directed:
            self._in = {v: {w: self._out[w][v] for w, _ in near} for v, near in sides[1]}
            return
        self._in = self._out
        for vertex, near in self._out.items():
            for other in near:
                near[other] = self._out[other][vertex]  # an edge has its data once
