"""Graphs that are kept as data frames answer as those in one process do, for the same operators."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.engines.spark.graphs.test_run import rows_of
from tests.graphs.payments import example, payments
from trellis.engines.spark.graphs.distributed import DistributedGraph
from trellis.errors import OperatorFailed, UsageError
from trellis.graphs import (
    Change,
    Components,
    Cores,
    Event,
    Graph,
    Operator,
    PageRank,
    ShortestPaths,
    Splitter,
    Triangles,
    time_windows,
)

pytestmark = pytest.mark.spark


class Groups(Operator):
    """Of each window: who pays whom, in how many groups; the last word on a pair counts."""

    output = {"groups": "int64", "accounts": "int64", "edges": "string"}

    def on_event(self, event: Event) -> None:
        if event.amount < 3:
            self.manipulate_graph(remove_edges=[(event.payer, event.payee)], missing="ignore")
        elif event.amount > 23:
            self.manipulate_graph(remove_vertices=[event.payer], add_vertices=[event.payee], missing="ignore")
        else:
            self.manipulate_graph(add_edges=[(event.payer, event.payee, {"amount": event.amount})])

    def on_close(self) -> Any:
        found = self.execute(Components()).to_dict()
        edges = " ".join(f"{a}-{b}:{data['amount']}" for a, b, data in self.graph.edges())
        yield {"groups": len(set(found.values())), "accounts": len(found), "edges": edges}


class Distances(Groups):
    """The same with more programs."""

    output = {"far": "float64", "cores": "int64"}

    def on_close(self) -> Any:
        first = next(iter(self.graph), None)
        far = self.execute(ShortestPaths(first, weighted=True), weight=lambda data: data["amount"]).to_dict()
        cores = self.execute(Cores(), within=sorted(self.graph)[:5]).values
        yield {"far": sum(value for value in far.values() if value < 1e9), "cores": int(cores.sum())}


def test_the_same_operator_over_the_same_events(spark: SparkSession) -> None:
    table = payments(100, 3)
    pipeline = trellis.pipeline(time_windows("1 day"), Groups)
    here = rows_of(pipeline.run(table, event_id="id"))
    assert here[0]["accounts"] > 3
    assert rows_of(pipeline.run(spark.createDataFrame(table), event_id="id", graphs="distributed")) == here


@pytest.mark.slow
def test_other_operators_over_the_same_events(spark: SparkSession) -> None:
    table = payments(60, 3)
    pipeline = trellis.pipeline(time_windows("100 minutes"), Distances)
    here = rows_of(pipeline.run(table, event_id="id"))
    assert len(here) > 1
    assert rows_of(pipeline.run(spark.createDataFrame(table), event_id="id", graphs="distributed")) == here
    names = example()  # reads its graph at every event, and removes what must be there
    triangles = trellis.pipeline(names["SPLITTER"], names["PaymentTriangles"], names["MERGER"])
    few = payments(16, 2)  # each event is several jobs
    here = rows_of(triangles.run(few, event_id="id"))
    assert here
    assert rows_of(triangles.run(spark.createDataFrame(few), event_id="id", graphs="distributed")) == here


IDS = [f"v{i}" for i in range(6)]


def random_change(random: random.Random) -> Change:
    def edges(most: int) -> list[Any]:
        return [(random.choice(IDS), random.choice(IDS)) for _ in range(random.randrange(most))]

    vertices = [(v, random.choice([None, random.randrange(9)])) for v in random.sample(IDS, random.randrange(2))]
    added = [(*pair, random.choice([None, 1, 2.5, "x"])) for pair in edges(4)]
    gone = random.sample(IDS, random.random() < 0.2)
    return Change(vertices, added, gone, edges(2))


def answers(graph: Any) -> list[Any]:
    """All that a graph can be asked."""
    each = [
        (v in graph, graph.degree(v), graph.neighbours(v), graph.successors(v), graph.predecessors(v)) for v in IDS[:3]
    ]
    data = [(graph.vertex(v) if v in graph else None) for v in IDS[:3]]
    pairs = [graph.edge(a, b) if graph.has_edge(a, b) else "none" for a, b in pairwise(IDS[:3])]
    return [each, data, pairs, len(graph), list(graph), list(graph.edges()), 7 in graph]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 5))])
def test_random_changes(spark: SparkSession, seed: int) -> None:
    drawn = random.Random(seed)
    directed = bool(seed % 2)
    here, there = Graph(directed), DistributedGraph(spark, directed, at_once=drawn.choice([3, 8, 1000]))
    for _ in range(1 if seed == 1 else 2):
        for _ in range(drawn.randrange(4, 12)):
            change = random_change(drawn)
            here.change(change, missing="ignore")
            there.change(change, missing="ignore")
        assert answers(there) == answers(here)
    for program in () if seed == 1 else (PageRank(tolerance=0.1), Triangles()):
        one, other = here.execute(program).to_dict(), there.execute(program).to_dict()
        assert other == pytest.approx(one)


@pytest.mark.slow
def test_removals_that_must_find_something(spark: SparkSession) -> None:
    def told(graph: DistributedGraph) -> None:
        graph.change(Change(add_edges=[(1, 2), (2, 3), (3, 4)]))
        graph.change(Change(remove_edges=[(1, 2)], remove_vertices=[4]))
        graph.change(Change(add_edges=[(2, 1), (4, 5)]))
        graph.change(Change(remove_edges=[(1, 2), (5, 4)]))

    graph = DistributedGraph(spark)
    told(graph)
    assert (len(graph), list(graph.edges())) == (5, [(2, 3, None)])
    for wrong in (
        Change(remove_edges=[(1, 2)]), Change(remove_vertices=[9]), Change(remove_vertices=[3], remove_edges=[(3, 4)])
    ):  # fmt: skip
        graph = DistributedGraph(spark)
        told(graph)
        graph.change(wrong)
        graph.change(Change(add_edges=[(1, 2), (9, 3), (3, 4)]))
        with pytest.raises(UsageError, match="to remove, which the change"):
            len(graph)


class Peeks(Operator):
    output = {"n": "int64"}

    def on_event(self, event: Event) -> Any:
        known = self.graph
        return [{"n": len(known.arrays().ids)}]


class RemovesTwice(Operator):
    output = {"n": "int64"}

    def on_event(self, event: Event) -> None:
        self.manipulate_graph(remove_edges=[(event.payer, event.payee)])


def test_what_is_refused(spark: SparkSession) -> None:
    table = payments(4, 1)
    frame = spark.createDataFrame(table)
    whole = Splitter.by_key("currency")
    with pytest.raises(UsageError, match=r"the operator Peeks asks for `graph.arrays` in `on_event`"):
        trellis.pipeline(whole, Peeks).run(frame, event_id="id", graphs="distributed")
    with pytest.raises(UsageError, match="these events are in this process"):
        trellis.pipeline(whole, Groups).run(table, graphs="distributed")
    with pytest.raises(UsageError, match="`graphs` is `far`"):
        trellis.pipeline(whole, Groups).run(table, graphs="far")
    with pytest.raises(OperatorFailed, match="the operator RemovesTwice failed"):
        trellis.pipeline(whole, RemovesTwice).run(frame, event_id="id", graphs="distributed")
    with pytest.raises(UsageError, match="has no `arrays`"):
        DistributedGraph(spark).arrays()
    with pytest.raises(Exception, match="of different kinds"):
        DistributedGraph(spark).change(Change(add_edges=[(1, "a")]))
    assert pa.types.is_integer(DistributedGraph(spark).execute(Components()).ids.type)
