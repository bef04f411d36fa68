"""Vertex programs: gather from the neighbours, sum, apply to the vertex, scatter to those who depend on it.

A program is written for arrays: each function gets many vertices or edges at once, and runs at the speed of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.graphs.values import Bools, Ints, Values, differ, take
from trellis.properties import cached_property

BOTH, IN, OUT = "both", "in", "out"


@dataclass(frozen=True)
class Vertices:
    """Some vertices.

    Attributes
    ----------
    index
        A number for each, which rises with its id.
    degree
        How many neighbours each gathers from.
    rows
        Their places among `all_ids`.
    """

    index: Ints
    degree: Ints
    rows: Ints
    all_ids: pa.Array

    @property
    def ids(self) -> pa.Array:
        """The ids that the user knows them by."""
        return self.all_ids.take(pa.array(self.rows))


@dataclass(frozen=True)
class InEdges:
    """Edges into some vertices, those into one vertex together, by ascending source.

    Attributes
    ----------
    offsets
        The edges into vertex `i` are those from `offsets[i]` to before `offsets[i + 1]`; there is at least one.
    source
        The places of their sources among the values that are seen.
    source_index
        The numbers of their sources, as in `Vertices.index`.
    weight
        Their weights; 1 without weights.
    source_total
        The weights of all edges out of the same source, summed.
    """

    offsets: Ints
    source: Ints
    source_index: Ints
    weight: NDArray[np.float64]
    source_total: NDArray[np.float64]

    def of(self, low: int, high: int) -> InEdges:
        """Return the edges into some of the vertices, one after another."""
        if low == 0 and high == len(self.offsets) - 1:
            return self
        begin, end = self.offsets[low], self.offsets[high]
        return InEdges(
            self.offsets[low : high + 1] - begin, self.source[begin:end], self.source_index[begin:end],
            self.weight[begin:end], self.source_total[begin:end],
        )  # fmt: skip

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """The weight of each edge as a share of all that goes out of its source."""
        shares = np.zeros(len(self.weight))
        return np.divide(self.weight, self.source_total, out=shares, where=self.source_total > 0)


class Neighbourhood(Protocol):
    """Facts about the whole graph that a program can look up before it runs, on any engine."""

    def lacks(self, vertices: list[Any]) -> list[Any]:
        """Return those of some vertices that the graph does not have."""
        ...

    def neighbours(self, vertex: Any, at_most: int) -> list[Any]:
        """Return the neighbours of a vertex in ascending order, `at_most` of them; those along and against edges."""
        ...

    def edges_among(self, vertices: list[Any]) -> list[tuple[Any, Any]]:
        """Return the edges that have both ends among some vertices."""
        ...


class WholeGraph(Protocol):
    """A graph that is in this process as a whole."""

    @property
    def vertices(self) -> Vertices:
        """All vertices."""
        ...

    @property
    def out_edges(self) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Where the edges out of each vertex begin, their targets, and their weights."""
        ...

    @property
    def in_edges(self) -> tuple[Ints, InEdges]:
        """Where the edges into each vertex begin, and these edges."""
        ...


@dataclass(frozen=True)
class Solution:
    """The results of a program that knows a shorter way, with the rounds that it took and who still changes."""

    values: Values
    rounds: int
    scheduled: int
    changing: int = 0


class VertexProgram:
    """A graph algorithm from the view of a vertex; derive from it and say what differs.

    A run begins with the values of `initial`. Each round schedules the vertices that have a neighbour whose value has
    changed, and no others: they gather from all their neighbours, sum what they got, and apply it to their own value.
    `scatter` says whose value has changed. The run ends when none has.

    Attributes
    ----------
    direction
        Whom a vertex gathers from: `in`, the sources of edges into it; `out`, the targets of edges out of it; `both`.
        In an undirected graph these are the same.
    loops
        Whether an edge from a vertex to itself counts.
    adding
        The NumPy function that sums two gathered values, such as `np.add` or `np.minimum`.
    max_rounds
        After how many rounds a run that has not ended is given up, with an error; None for one more than there are
        vertices, for programs that always end by then.
    """

    direction: ClassVar[str] = IN
    loops: ClassVar[bool] = True
    adding: ClassVar[np.ufunc] = np.add
    max_rounds: int | None = 1000

    def prepare(self, graph: Neighbourhood) -> Sequence[Any] | None:
        """Ask the graph what must be known before; return the vertices that alone take part, or None for all."""
        return None

    def initial(self, vertices: Vertices) -> Values:
        """Return the values that vertices begin with."""
        raise NotImplementedError(f"{type(self).__name__} does not say what vertices begin with: write `initial`")

    def begins(self, vertices: Vertices) -> Bools:
        """Return which vertices count as changed at the start; all by default."""
        return np.ones(len(vertices.index), np.bool_)

    def gather(self, values: Any, edges: InEdges) -> NDArray[Any]:
        """Return the value that goes along each edge, given those of the sources; by default these themselves."""
        found: NDArray[Any] = values
        return found

    def sum(self, gathered: NDArray[Any], offsets: Ints) -> Any:
        """Return one value for each vertex from those that were gathered; by default with `adding`."""
        return self.adding.reduceat(gathered, offsets[:-1])

    def fold(self, edges: InEdges, seen: Values, own: Values, round: int) -> Any:
        """Gather and sum at once; for programs that would otherwise copy large values along edges."""
        return self.sum(self.gather(take(seen, edges.source), edges), edges.offsets)

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:
        """Return the new values of vertices, from their old ones and what was summed."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a vertex becomes: write `apply`")

    def scatter(self, old: Values, new: Values) -> Bools:
        """Return which vertices have changed, so that those who gather from them are scheduled.

        The others stay as they were: what is seen of a vertex is always what it holds.
        """
        return differ(old, new)

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Return the results over a graph that is here as a whole, if a program knows a shorter way; None by default.

        They must be those that rounds of `apply` come to, within `bound` rounds.
        """
        return None

    def solve_near(self, graph: Any, block: Callable[[], WholeGraph]) -> tuple[Ints, Solution] | None:
        """Return the places of the only vertices that take part, and their results, if a program finds them at once."""
        return None

    def finish(self, values: Any, total: float) -> Values:
        """Return the result of vertices from their last values; `total` is the sum of all where these are floats."""
        result: Values = values
        return result

    gives_vertices: ClassVar[bool] = False
    """Whether the results are numbers of vertices, to be shown as their ids."""
