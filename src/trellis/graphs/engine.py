"""Runs vertex programs over arrays: here over a whole graph, on Spark over a block of one, by the same steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.errors import TrellisError, UsageError
from trellis.graphs.arrays import EdgeList, Floats, plain_edges
from trellis.graphs.program import InEdges, VertexProgram, Vertices
from trellis.graphs.threads import Threads, allowed
from trellis.graphs.values import Bools, Ints, Sets, Values, joined, put, ranges, take, to_arrow
from trellis.properties import cached_property


class NotConverged(TrellisError):
    """A vertex program still changes values after as many rounds as it may take."""


@dataclass(frozen=True)
class Block:
    """Vertices of a graph, the edges into them, and whom they see.

    Attributes
    ----------
    index, ids
        The vertices: numbers that rise with ids, and ids.
    offsets, source, weight
        Edges into each vertex; sources are places in `seen`.
    seen
        The numbers of the vertices at the other ends of these edges, ascending.
    total
        For each that is seen, the weights of all edges out of it, summed.
    """

    index: Ints
    ids: pa.Array
    offsets: Ints
    source: Ints
    weight: Floats
    seen: Ints
    total: Floats

    @cached_property
    def vertices(self) -> Vertices:
        """All vertices."""
        return Vertices(self.index, np.diff(self.offsets), np.arange(len(self.index)), self.ids)

    @cached_property
    def out_edges(self) -> tuple[Ints, Ints, Floats]:
        """For each that is seen, the places of the vertices that gather from it, and the weights of these edges."""
        target = np.repeat(np.arange(len(self.index)), np.diff(self.offsets))
        offsets = np.zeros(len(self.seen) + 1, np.int64)
        np.cumsum(np.bincount(self.source, minlength=len(self.seen)), out=offsets[1:])
        order = np.argsort(self.source, kind="stable")
        return offsets, target[order], self.weight[order]

    def scheduled(self, changed: Ints) -> Ints:
        """Return the vertices that gather from one of those that have changed, by their places in `seen`."""
        offsets, targets, _ = self.out_edges
        flags = np.zeros(len(self.index), np.bool_)
        flags[targets if len(changed) == len(self.seen) else targets[ranges(offsets, changed)[0]]] = True
        return np.flatnonzero(flags)

    def edges(self, rows: Ints) -> InEdges:
        """Return the edges into some vertices."""
        places, offsets = ranges(self.offsets, rows)
        source = self.source[places]
        return InEdges(offsets, source, self.seen[source], self.weight[places], self.total[source])

    @cached_property
    def in_edges(self) -> tuple[Ints, InEdges]:
        """Where the edges into each vertex begin, and these edges."""
        return self.offsets, self.all_edges[1]

    @cached_property
    def all_edges(self) -> tuple[Ints, InEdges]:
        """All vertices that gather at all, and the edges into them."""
        rows = np.flatnonzero(np.diff(self.offsets))
        return rows, self.edges(rows)


@dataclass(frozen=True)
class Step:
    """The outcome of a round for a block: its values, whose changed, and how many vertices were scheduled."""

    values: Values
    changed: Bools
    scheduled: int


def step(block: Block, program: VertexProgram, values: Values, seen: Values, changed: Ints, round: int) -> Step:
    """Run one round of a program over a block.

    Parameters
    ----------
    block, program
        What is run over what.
    values
        What the vertices of the block hold.
    seen, changed
        What those that they see hold, and the places of those that have changed.
    round
        The number of the round, from 0.
    """
    rows = block.scheduled(changed)
    marks = np.zeros(len(block.index), np.bool_)
    if not len(rows):
        return Step(values, marks, 0)
    all_rows, all_edges = block.all_edges
    edges = all_edges if len(rows) == len(all_rows) else block.edges(rows)

    def part(low: int, high: int) -> tuple[Values, Bools]:
        """Return the new values of some of the rows that have changed, and which have."""
        some, chosen = rows[low:high], edges.of(low, high)
        own = take(values, some)
        vertices = Vertices(block.index[some], np.diff(chosen.offsets), some, block.ids)
        new = program.apply(own, program.fold(chosen, seen, own, round), vertices, round)
        moved = program.scatter(own, new)
        return take(new, np.flatnonzero(moved)), moved

    with Threads(edges.offsets) as threads:
        found = threads.run(part)
    moved = np.concatenate([flags for _, flags in found])
    marks[rows] = moved
    return Step(put(values, rows[moved], joined([new for new, _ in found])), marks, len(rows))


@dataclass(frozen=True)
class Result:
    """The result of a vertex program.

    Attributes
    ----------
    ids, values
        The vertices, ascending, and the result of each.
    rounds
        How many rounds it took.
    scheduled
        How often a vertex was scheduled, in all rounds together.
    """

    ids: pa.Array
    values: Values
    rounds: int
    scheduled: int
    gives_vertices: bool = False

    def to_arrow(self) -> pa.Table:
        """Return a table of `vertex` and `value`."""
        found = to_arrow(self.values) if not self.gives_vertices else self.ids.take(pa.array(self.values))
        return pa.table({"vertex": self.ids, "value": found})

    def to_dict(self) -> dict[Any, Any]:
        """Return the result of each vertex by its id."""
        return by_vertex(self.to_arrow())


def by_vertex(table: pa.Table) -> dict[Any, Any]:
    """Return the values of a table of `vertex` and `value` by vertex."""
    return dict(zip(table["vertex"].to_pylist(), table["value"].to_pylist(), strict=True))


def execute(program: VertexProgram, graph: EdgeList, threads: int | None = None) -> Result:
    """Run a vertex program in this process.

    Parameters
    ----------
    program
        The program.
    graph
        The graph, as `edge_list` or `Graph.arrays()` gives it.
    threads
        How many threads share the vertices; one a core by default. The results are the same.

    Raises
    ------
    NotConverged
        If values still change after as many rounds as the program may take.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"a graph cannot be shared by {threads} threads", "Give 1 or more.")
    token = allowed.set(threads)
    try:
        return _executed(program, graph)
    finally:
        allowed.reset(token)


def _executed(program: VertexProgram, graph: EdgeList) -> Result:
    if not len(graph.ids):
        return Result(graph.ids, np.zeros(0), 0, 0)
    near = program.solve_near(graph, lambda: whole_block(program, graph))
    if near is not None:
        places, result = near
        return Result(graph.chosen(places), result.values, result.rounds, result.scheduled)
    part = program.prepare(graph)
    graph = graph if part is None else graph.among(part)
    block = whole_block(program, graph)
    bound = round_bound(program, len(graph.ids))
    solved = program.solve(block, bound)
    if solved is not None:
        if solved.changing:
            refuse_more(program, bound, bound, solved.changing)
        return Result(graph.ids, solved.values, solved.rounds, solved.scheduled, program.gives_vertices)
    values = program.initial(block.vertices)
    changed = np.flatnonzero(program.begins(block.vertices))
    rounds, scheduled = 0, 0
    while len(changed):
        refuse_more(program, rounds, bound, len(changed))
        done = step(block, program, values, values, changed, rounds)
        values, changed = done.values, np.flatnonzero(done.changed)
        rounds, scheduled = rounds + (done.scheduled > 0), scheduled + done.scheduled
        if not done.scheduled:
            break
    total = 0.0 if isinstance(values, Sets) or values.dtype.kind != "f" else float(values.sum())
    return Result(graph.ids, program.finish(values, total), rounds, scheduled, program.gives_vertices)


def whole_block(program: VertexProgram, graph: EdgeList) -> Block:
    """Return a graph as one block, in which vertices see all vertices; it is kept for the next program."""
    kept: dict[Any, Block] = graph.blocks
    wanted = (program.direction, program.loops)
    if wanted not in kept:
        kept[wanted] = _made_block(graph, *wanted)
    return kept[wanted]


def _made_block(graph: EdgeList, direction: str, loops: bool) -> Block:
    source, target, weight = plain_edges(graph, direction, loops)
    number = len(graph.ids)
    offsets = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=number), out=offsets[1:])
    index = np.arange(number)
    total = np.bincount(source, weight, minlength=number).astype(np.float64)
    return Block(index, graph.ids, offsets, source, weight, index, total)


def round_bound(program: VertexProgram, vertices: int) -> int:
    """Return how many rounds a program may take."""
    return vertices + 1 if program.max_rounds is None else program.max_rounds


def refuse_more(program: VertexProgram, rounds: int, bound: int, changed: int) -> None:
    """Give up a run that has taken all its rounds and still changes values."""
    if rounds >= bound:
        raise NotConverged(
            f"{type(program).__name__} has not converged after {rounds:,} rounds: {changed:,} vertices still change",
            "Set a larger `max_rounds`, or a larger tolerance if the program has one; some programs never end, such as "
            "shortest paths around a cycle whose weights sum to less than 0.",
        )
