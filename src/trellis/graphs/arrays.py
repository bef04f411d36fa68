"""A graph as arrays: ids in ascending order, and edges as pairs of places in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import DataError, UsageError, did_you_mean
from trellis.graphs.program import BOTH, OUT
from trellis.graphs.values import Ints, ranges
from trellis.properties import cached_property

SOURCE, TARGET = "source", "target"
MANY = 100  # ids that are worth a hash of all
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EdgeList:
    """A graph that stays as it is.

    Attributes
    ----------
    ids
        The vertices, ascending.
    source, target
        Places of the ends of edges in `ids`.
    weight
        The weights of edges, or None.
    directed
        Whether an edge leads one way only.
    blocks
        What engines have made of it, to be used again.
    """

    ids: pa.Array
    source: Ints
    target: Ints
    weight: Floats | None
    directed: bool
    blocks: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    # Facts that programs may look up before they run.

    def lacks(self, vertices: list[Any]) -> list[Any]:
        """Return those of some vertices that the graph does not have."""
        return [vertex for vertex, place in zip(vertices, self.places(vertices), strict=True) if place is None]

    def neighbours(self, vertex: Any, at_most: int) -> list[Any]:
        """Return the neighbours of a vertex in ascending order, `at_most` of them; those along and against edges."""
        (place,) = self.places([vertex])
        if place is None:
            return []
        own = np.array([place])
        ends = np.concatenate([self.target[self._edges_of(own)], self.source[self._edges_of(own, into=True)]])
        return list(self.ids.take(pa.array(np.unique(ends[ends != place])[:at_most])).to_pylist())

    def edges_among(self, vertices: list[Any]) -> list[tuple[Any, Any]]:
        """Return the edges that have both ends among some vertices."""
        _, found = self._inside(vertices)
        found = found[self.source[found] != self.target[found]]
        ends = (self.ids.take(pa.array(places[found])).to_pylist() for places in (self.source, self.target))
        return list(zip(*ends, strict=True))

    def _inside(self, vertices: Sequence[Any]) -> tuple[Ints, Ints]:
        """Return the places of some vertices, ascending, and the edges with both ends among them."""
        known = np.unique(np.array([place for place in self.places(list(vertices)) if place is not None], np.int64))
        inside = np.zeros(len(self.ids), np.bool_)
        inside[known] = True
        edges = np.sort(self._edges_of(known))
        return known, edges[inside[self.target[edges]]]

    def _edges_of(self, places: Ints, into: bool = False) -> Ints:
        """Return the edges out of, or into, some vertices."""
        offsets, order = self._by_target if into else self._by_source
        found: Ints = order[ranges(offsets, places)[0]]
        return found

    @cached_property
    def _numbers(self) -> Ints | None:
        return np.asarray(self.ids.to_numpy(zero_copy_only=False)) if pa.types.is_integer(self.ids.type) else None

    @cached_property
    def _by_source(self) -> tuple[Ints, Ints]:
        return _ordered(self.source, len(self.ids))

    @cached_property
    def _by_target(self) -> tuple[Ints, Ints]:
        return _ordered(self.target, len(self.ids))

    def among(self, vertices: Sequence[Any]) -> EdgeList:
        """Return the part of the graph that some vertices make up."""
        known, kept = self._inside(vertices)
        source, target = (np.searchsorted(known, ends[kept]) for ends in (self.source, self.target))
        weight = None if self.weight is None else self.weight[kept]
        return EdgeList(self.ids.take(pa.array(known)), source, target, weight, self.directed)

    def ids_at(self, places: Ints) -> list[Any]:
        """Return the vertices at some places."""
        if self._numbers is not None:
            return list(self._numbers[places].tolist())
        return list(self.ids.take(pa.array(places)).to_pylist())

    def chosen(self, places: Ints) -> pa.Array:
        """Return the vertices at some places, as an Arrow array."""
        return pa.array(self._numbers[places]) if self._numbers is not None else self.ids.take(pa.array(places))

    def place(self, vertex: Any) -> int | None:
        """Return the place of a vertex in `ids`, or None."""
        if self._numbers is None or type(vertex) is not int or not -(1 << 63) <= vertex < 1 << 63:
            return self.places([vertex])[0]
        found = int(self._numbers.searchsorted(vertex))
        return found if found < len(self._numbers) and self._numbers[found] == vertex else None

    def places(self, vertices: list[Any]) -> list[int | None]:
        """Return the places of some vertices in `ids`, or None."""
        try:
            wanted = pa.array(vertices, self.ids.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return [None] * len(vertices)
        if len(wanted) > MANY:
            return list(pc.index_in(wanted, self.ids).to_pylist())
        if self._numbers is not None:
            found = np.searchsorted(self._numbers, wanted.to_numpy(zero_copy_only=False)).tolist()
            return [
                i if i < len(self.ids) and self._numbers[i] == v else None for i, v in zip(found, vertices, strict=True)
            ]
        places: list[int | None] = []
        for vertex in wanted.to_pylist():
            place = bisect_left(range(len(self.ids)), vertex, key=lambda i: self.ids[i].as_py())
            places.append(place if place < len(self.ids) and self.ids[place].as_py() == vertex else None)
        return places


def _ordered(ends: Ints, number: int) -> tuple[Ints, Ints]:
    """Return the edges by one of their ends, and where those of each vertex begin."""
    offsets = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=number), out=offsets[1:])
    return offsets, np.argsort(ends, kind="stable")


def edge_list(
    edges: pa.Table,
    *,
    source: str = SOURCE,
    target: str = TARGET,
    weight: str | None = None,
    vertices: Any = None,
    directed: bool = True,
) -> EdgeList:
    """Return a table of edges as arrays.

    Parameters
    ----------
    edges
        A row an edge. Ids of vertices are whole numbers or texts.
    source, target, weight
        Its columns.
    vertices
        All vertices, if some have no edge; an edge to any other is refused.
    directed
        Whether edges lead one way only.

    Raises
    ------
    DataError
        If a vertex is NULL or not among `vertices`, the ends are of different types, or a weight is not a number.
    UsageError
        If a column is missing.
    """
    ends = [_ids(_column(edges, name), name) for name in (source, target)]
    types = {str(end.type) for end in ends}
    if len(types) > 1:
        raise DataError(f"`{source}` and `{target}` are of different types: {' and '.join(sorted(types))}", "Cast one.")
    given = ends if vertices is None else [_ids(pa.chunked_array([_array(vertices, ends[0].type)]), "vertices")]
    ids = pc.unique(pa.chunked_array([chunk for one in given for chunk in one.chunks], given[0].type))
    ids = ids.take(pc.sort_indices(ids))
    places = [pc.index_in(end, ids) for end in ends]
    for one, name in zip(places, (source, target), strict=True):
        if one.null_count:
            row = pc.indices_nonzero(pc.is_null(one))[0].as_py()
            start, end = (column[row].as_py() for column in ends)
            lost = (start, end)[name == target]
            raise DataError(
                f"the edge from {start!r} to {end!r} ends at {lost!r}, which is not a vertex",
                "Remove the edges of a vertex with it, or add the vertex again.",
            )
    numbers = [np.asarray(one.to_numpy(), np.int64) for one in places]
    return EdgeList(ids, numbers[0], numbers[1], _weights(edges, weight), directed)


def _column(edges: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in edges.column_names:
        hint = did_you_mean(name, edges.column_names, f"Columns are {', '.join(edges.column_names)}.")
        raise UsageError(f"the edges have no column `{name}`", hint)
    return edges[name]


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if isinstance(values, pa.Array) else pa.array(values, type_)


def _ids(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return ids in a plain form: whole numbers as int64, texts as large strings."""
    if column.null_count:
        raise DataError(f"`{name}` is NULL in {column.null_count:,} rows", "A vertex needs an id.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.int64())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    raise DataError(f"`{name}` is of type {column.type}", "Ids of vertices are whole numbers or texts: cast them.")


def _weights(edges: pa.Table, weight: str | None) -> Floats | None:
    if weight is None:
        return None
    try:
        found = np.asarray(_column(edges, weight).cast(pa.float64()).to_numpy(), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"the weights in `{weight}` are not numbers") from None
    if np.isnan(found).any():
        raise DataError(f"`{weight}` is NULL or NaN in {int(np.isnan(found).sum()):,} rows", "Each edge needs one.")
    return found


def plain_edges(graph: EdgeList, direction: str, loops: bool) -> tuple[Ints, Ints, Floats]:
    """Return edges in the direction that values go, each once and with its smallest weight, by target and source."""
    source, target = graph.source, graph.target
    weight = np.ones(len(source)) if graph.weight is None else graph.weight
    if direction == OUT:
        source, target = target, source
    if direction == BOTH or not graph.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        weight = np.concatenate([weight, weight])
    if not loops:
        kept = source != target
        source, target, weight = source[kept], target[kept], weight[kept]
    number = max(1, len(graph.ids))
    keys = target * number + source  # in 64 bits for up to 3 billion vertices
    if graph.weight is None:
        keys = np.unique(keys)
        return keys % number, keys // number, np.ones(len(keys))
    order = np.lexsort((weight, keys))
    keys, first = np.unique(keys[order], return_index=True)
    return keys % number, keys // number, weight[order][first]


def pairs(edges: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Return edges given as pairs, or with a weight as triples, as a table."""
    rows = [tuple(edge) for edge in edges]
    names = [SOURCE, TARGET, "weight"][: len(rows[0]) if rows else 2]
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
