"""The vertex programs that come along: PageRank, components, shortest paths, triangles, cores and cliques."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import UsageError
from trellis.graphs.arrays import EdgeList
from trellis.graphs.program import BOTH, InEdges, Neighbourhood, Solution, VertexProgram, Vertices, WholeGraph
from trellis.graphs.threads import Threads
from trellis.graphs.values import Bools, Ints, Sets, Values
from trellis.kernels.graph import cliques as kernel_of_bits
from trellis.kernels.graph import neighbours as kernel
from trellis.kernels.graph import paths, whole


class PageRank(VertexProgram):
    """How likely a walk along edges that begins anew now and then is to be at a vertex; the ranks sum to 1.

    Only shares are computed, and scaled at the end: what vertices without edges give away goes to all alike, and so
    changes no share. So a vertex must be scheduled only when a neighbour has changed.

    Parameters
    ----------
    damping
        How likely the walk is to go on, at each step.
    tolerance
        A share that moves by no more has not changed; they are 1 and more.
    max_rounds
        After how many rounds to give up.
    """

    def __init__(self, damping: float = 0.85, tolerance: float = 1e-9, max_rounds: int = 1000) -> None:
        if not 0 <= damping < 1:
            raise UsageError(f"the damping of PageRank is {damping}", "It is at least 0 and below 1.")
        self.damping, self.tolerance, self.max_rounds = damping, tolerance, max_rounds

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        return np.ones(len(vertices.index))

    def gather(self, values: Any, edges: InEdges) -> NDArray[Any]:  # noqa: D102
        result: NDArray[Any] = values * edges.share
        return result

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        result: NDArray[Any] = 1 + self.damping * summed
        return result

    def scatter(self, old: Any, new: Any) -> Bools:  # noqa: D102
        changed: Bools = np.abs(new - old) > self.tolerance
        return changed

    def finish(self, values: Any, total: float) -> Values:  # noqa: D102
        return values / total if len(values) else values

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Run the same rounds in kernels; threads share the vertices."""
        if type(self) is not PageRank:
            return None
        offsets, edges = graph.in_edges
        size = len(offsets) - 1
        values, new = np.ones(size), np.ones(size)
        changed, scheduled = np.ones(size, np.bool_), np.diff(offsets) > 0
        rounds, total, moving = 0, 0, size
        with Threads(offsets) as threads:
            while moving and rounds < bound and scheduled.any():
                total += sum(threads.run(
                    lambda low, high: whole.rank_round(
                        offsets, edges.source, edges.share, self.damping, self.tolerance, values, scheduled, new,  # noqa: B023
                        changed, low, high,
                    )
                ))  # fmt: skip
                values, new, rounds = new, values, rounds + 1
                moving = sum(
                    threads.run(lambda low, high: whole.schedule(offsets, edges.source, changed, scheduled, low, high))
                )
        still = moving if rounds == bound and scheduled.any() else 0
        return Solution(self.finish(values, float(values.sum())), rounds, total, still)


def _solved(graph: WholeGraph, solve: Callable[[Ints, Ints, Ints], None]) -> Solution:
    """Return the numbers that a kernel writes for the vertices, in one go, from the edges into each."""
    offsets, edges = graph.in_edges
    out = np.empty(len(offsets) - 1, np.int64)
    solve(offsets, edges.source, out)
    return Solution(out, 1, len(out))


class Components(VertexProgram):
    """The component of each vertex, named by its smallest vertex; the direction of edges does not count."""

    direction: ClassVar[str] = BOTH
    adding: ClassVar[np.ufunc] = np.minimum
    max_rounds = None
    gives_vertices: ClassVar[bool] = True

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        return vertices.index.copy()

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Join the ends of edges, each once."""
        return _solved(graph, whole.smallest_connected) if type(self) is Components else None

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        return np.minimum(own, summed)


class ShortestPaths(VertexProgram):
    """How far a vertex is from the nearest of some vertices, along edges; infinite where no path leads to it.

    Parameters
    ----------
    sources
        The ids of the vertices that paths begin at.
    weighted
        Whether the weights of edges count, which may be negative; else each edge is a step of 1.
    """

    adding: ClassVar[np.ufunc] = np.minimum
    max_rounds = None

    def __init__(self, *sources: Any, weighted: bool = False) -> None:
        if not sources:
            raise UsageError("shortest paths begin nowhere", "Name at least one vertex.")
        self.sources, self.weighted = list(sources), weighted

    def prepare(self, graph: Neighbourhood) -> Sequence[Any] | None:  # noqa: D102
        refuse_unknown(graph, self.sources)
        return None

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        return np.where(self.begins(vertices), 0.0, np.inf)

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Go from the sources on, in the same rounds; a class that changes a step of the program takes the long way."""
        if type(self) is not ShortestPaths:
            return None
        far = self.initial(graph.vertices)
        assert not isinstance(far, Sets)
        rounds, scheduled, changing = paths.relax(*graph.out_edges, self.weighted, far, np.flatnonzero(far == 0), bound)
        return Solution(far, rounds, scheduled, changing)

    def begins(self, vertices: Vertices) -> Bools:  # noqa: D102
        return is_among(vertices, self.sources)

    def gather(self, values: Any, edges: InEdges) -> NDArray[Any]:  # noqa: D102
        result: NDArray[Any] = values + (edges.weight if self.weighted else 1.0)
        return result

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        return np.minimum(own, summed)


class Triangles(VertexProgram):
    """How many triangles a vertex is in; directions, repeated edges and edges to oneself do not count.

    In the first round a vertex learns who its neighbours are, in the second how many of these its neighbours have too,
    and a third finds nothing to do.
    """

    direction: ClassVar[str] = BOTH
    loops: ClassVar[bool] = False
    max_rounds = None

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        return Sets.empty(len(vertices.index))

    def fold(self, edges: InEdges, seen: Values, own: Values, round: int) -> Any:  # noqa: D102
        if round == 0:
            return Sets(edges.offsets, edges.source_index)
        if round > 1:
            return own
        assert isinstance(seen, Sets)
        assert isinstance(own, Sets)
        result = np.empty(len(own), np.int64)
        kernel.common_members(
            edges.offsets, edges.source, seen.offsets, seen.members, own.offsets, own.members, result
        )  # fmt: skip
        return Sets(np.arange(len(own) + 1), result // 2)

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        result: Values = summed
        return result

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Find each triangle once, at the vertex with the most neighbours; threads share the vertices."""
        if type(self) is not Triangles:
            return None
        offsets, edges = graph.in_edges
        size = len(offsets) - 1
        rank = np.empty(size, np.int64)
        rank[np.argsort(np.diff(offsets), kind="stable")] = np.arange(size)
        begins, lower = np.empty(size + 1, np.int64), np.empty(len(edges.source), np.int64)
        lower = lower[: whole.lower_neighbours(offsets, edges.source, -rank, begins, lower)]

        counts: dict[int, Ints] = {}  # of each thread

        def count(low: int, high: int) -> None:
            own = counts.setdefault(get_ident(), np.zeros(size, np.int64))
            whole.count_triangles(begins, lower, own, low, high)

        with Threads(begins, each=8) as threads:
            threads.run(count)
        return Solution(np.sum([*counts.values()], axis=0), 1, size)

    def finish(self, values: Any, total: float) -> Values:  # noqa: D102
        counts = np.zeros(len(values), np.int64)
        counts[values.sizes > 0] = values.members
        return counts


class Cores(VertexProgram):
    """The largest k so that a vertex is left when those with fewer than k neighbours are taken away, again and again.

    Each vertex begins with its degree and goes down to the largest h so that h of its neighbours are at h or more.
    """

    direction: ClassVar[str] = BOTH
    loops: ClassVar[bool] = False
    max_rounds = None

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        return vertices.degree.copy()

    def solve(self, graph: WholeGraph, bound: int) -> Solution | None:
        """Take vertices away, those with the fewest neighbours first."""
        return _solved(graph, whole.core_numbers) if type(self) is Cores else None

    def sum(self, gathered: NDArray[Any], offsets: Ints) -> Any:  # noqa: D102
        result = np.empty(len(offsets) - 1, np.int64)
        kernel.h_index(gathered, offsets, result)
        return result

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        return np.minimum(own, summed)


class Cliques(VertexProgram):
    """All cliques that one vertex is in, the paper's Algorithm 2; each vertex ends with those that it is in too.

    A clique is a set of bits, one for each neighbour of the vertex; the vertex itself is in all of them, and only these
    take part. `cliques` makes lists of vertices of the result of a run. In this process all cliques are enumerated by
    one kernel, and a vertex may have any number of neighbours: with more than 60 the results are numbers of cliques,
    which `cliques` knows. On Spark the program runs in rounds, and 60 are the limit.

    Parameters
    ----------
    vertex
        The id of the vertex.
    max_cliques
        With more than so many, in all vertices together, the run is given up with an error.
    """

    direction: ClassVar[str] = BOTH
    loops: ClassVar[bool] = False
    max_rounds = None
    WIDEST: ClassVar[int] = 60

    def __init__(self, vertex: Any, max_cliques: int = 2_000_000) -> None:
        self.vertex, self.max_cliques = vertex, max_cliques
        self.members: list[Any] = []
        self.friends: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.rows: NDArray[np.uint64] = np.zeros((0, 1), np.uint64)
        self.table: NDArray[np.uint64] | None = None

    def prepare(self, graph: Neighbourhood) -> Sequence[Any] | None:  # noqa: D102
        refuse_unknown(graph, [self.vertex])
        self.members = graph.neighbours(self.vertex, (1 << 31) - 1)
        place = {member: i for i, member in enumerate(self.members)}
        self.rows = np.zeros((len(place), max(1, -(-len(place) // 64))), np.uint64)
        for one, other in graph.edges_among(self.members):
            kernel_of_bits.connect(self.rows, place[one], place[other])
        self.friends = self.rows[:, 0]
        return [self.vertex, *self.members]

    def solve_near(self, graph: EdgeList, block: Callable[[], WholeGraph]) -> tuple[Ints, Solution] | None:
        """List the cliques of the neighbours, each once."""
        if type(self) is not Cliques:
            return None
        place = graph.place(self.vertex)
        if place is None:
            raise _unknown(self.vertex)
        offsets, edges = block().in_edges
        places, self.rows, found, number, begins, names = paths.cliques_near(
            offsets, edges.source, place, self.WIDEST, self.max_cliques
        )
        if number > self.max_cliques or len(names) > self.max_cliques:
            raise self._too_many()
        self.members = graph.ids_at(edges.source[offsets[place] : offsets[place + 1]])
        self.friends = self.rows[:, 0]
        self.table = found if len(self.members) > self.WIDEST else None
        return places, Solution(Sets(begins, names), 1, len(places))

    def _too_many(self) -> UsageError:
        return UsageError(
            f"the vertex {self.vertex!r} is in too many cliques: over {self.max_cliques:,} are held",
            "Give a larger `max_cliques`, or run within fewer vertices.",
        )

    def initial(self, vertices: Vertices) -> Values:  # noqa: D102
        if len(self.members) > self.WIDEST:
            raise UsageError(
                f"the vertex {self.vertex!r} has more than {self.WIDEST} neighbours",
                "On Spark the program for cliques has a bit for each of at most so many. Run it in this process.",
            )
        own = [np.zeros(int(is_one), np.uint64) for is_one in is_among(vertices, [self.vertex])]
        return Sets.of(own, np.uint64)

    def begins(self, vertices: Vertices) -> Bools:  # noqa: D102
        return is_among(vertices, [self.vertex])

    def _bits(self, vertices: Vertices) -> list[int]:
        """Return the bit of each vertex; that of the vertex itself is -1."""
        ids = vertices.ids
        places = pc.index_in(ids, pa.array([*self.members, self.vertex], ids.type)).to_pylist()
        return [-1 if place == len(self.members) else place for place in places]

    def fold(self, edges: InEdges, seen: Values, own: Values, round: int) -> Any:  # noqa: D102
        assert isinstance(seen, Sets)
        begins = edges.offsets.tolist()
        gathered = (edges.source[begins[i] : begins[i + 1]].tolist() for i in range(len(begins) - 1))
        union = [np.unique(np.concatenate([seen[source] for source in sources])) for sources in gathered]
        return Sets.of(union, np.uint64)

    def apply(self, own: Any, summed: Any, vertices: Vertices, round: int) -> Values:  # noqa: D102
        sets, total = [], 0
        for i, bit in enumerate(self._bits(vertices)):
            sets.append(self._extended(own[i], summed[i], bit))
            total += len(sets[-1])
            if total > self.max_cliques:
                raise self._too_many()
        return Sets.of(sets, np.uint64)

    def _extended(self, own: Any, others: Any, bit: int) -> Any:
        """Return the cliques of a vertex and those of its neighbours that it fits into."""
        one = np.uint64(0) if bit < 0 else np.uint64(1) << np.uint64(bit)
        friends = ~np.uint64(0) if bit < 0 else self.friends[bit] | one
        return np.union1d(own, others[(others & ~friends) == 0] | one)

    def cliques(self, masks: Iterable[int]) -> list[list[Any]]:
        """Return the cliques of a vertex as lists of vertices, the largest first, else in ascending order."""
        if self.table is not None:
            rows = (self.table[int(number)].tolist() for number in masks)
            masks = [sum(word << 64 * i for i, word in enumerate(row)) for row in rows]
        lists = [
            [self.vertex, *(member for i, member in enumerate(self.members) if clique >> i & 1)]
            for clique in map(int, masks)
        ]
        place = {member: i for i, member in enumerate([self.vertex, *self.members])}
        return sorted(lists, key=lambda clique: (-len(clique), [place[member] for member in clique]))


def is_among(vertices: Vertices, ids: list[Any]) -> Bools:
    """Return which vertices have one of some ids."""
    known = vertices.ids
    return np.asarray(pc.is_in(known, pa.array(ids, known.type)).to_numpy(zero_copy_only=False), np.bool_)


def refuse_unknown(graph: Neighbourhood, ids: list[Any]) -> None:
    """Refuse vertices that the graph does not have, unless it has none at all."""
    unknown = graph.lacks(ids)
    if unknown:
        raise _unknown(unknown[0])


def _unknown(vertex: Any) -> UsageError:
    return UsageError(f"the graph has no vertex {vertex!r}", "Ids of vertices have the type that edges have.")
