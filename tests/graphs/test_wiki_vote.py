"""Vertex programs on who votes for whom on Wikipedia: what networkx gives, and the same here and on Spark."""

from __future__ import annotations

import gzip

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python as pagerank
from pyspark.sql import SparkSession

from tests.data.places import data_file
from tests.engines.spark.graphs.test_vertex import both
from trellis.graphs import Cliques, Components, Cores, PageRank, ShortestPaths, Triangles, edge_list, execute

pytestmark = pytest.mark.data


def wiki_vote() -> pa.Table:
    with gzip.open(data_file("wiki_vote", "wiki-Vote.txt.gz"), "rt") as lines:
        rows = [tuple(map(int, line.split())) for line in lines if not line.startswith("#")]
    return pa.table({"source": [row[0] for row in rows], "target": [row[1] for row in rows]})


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranks", "parts", "paths", "triangles", "cores", "cliques"])
def test_both_engines(spark: SparkSession, name: str) -> None:
    table = wiki_vote()
    degrees = nx.Graph(list(zip(*(column.to_pylist() for column in table.columns), strict=True))).degree
    programs = {
        "ranks": PageRank(tolerance=1e-3),
        "parts": Components(),
        "paths": ShortestPaths(30),
        "triangles": Triangles(),
        "cores": Cores(),
        "cliques": Cliques(max(v for v, degree in degrees if 40 <= degree <= 60)),
    }
    both(spark, programs[name], table)


def test_against_networkx() -> None:
    table = wiki_vote()
    graph = edge_list(table)
    assert (len(graph.ids), len(graph.source)) == (7_115, 103_689)
    directed = nx.DiGraph(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    plain = directed.to_undirected()
    parts = {v: min(part) for part in nx.connected_components(plain) for v in part}
    assert execute(Components(), graph).to_dict() == parts
    assert execute(Triangles(), graph).to_dict() == nx.triangles(plain)
    assert execute(Cores(), graph).to_dict() == nx.core_number(plain)
    far = execute(ShortestPaths(30), graph).to_dict()
    assert {v: n for v, n in far.items() if n < np.inf} == nx.single_source_shortest_path_length(directed, 30)
    few = sorted(v for v, degree in plain.degree if degree <= 60)
    for vertex in [*few[:: len(few) // 8], max(few, key=lambda v: (plain.degree[v], v))]:
        program = Cliques(vertex)
        found = program.cliques(execute(program, graph).to_dict()[vertex])
        wanted = list(nx.find_cliques(plain, nodes=[vertex]))
        assert len(found[0]) == max(map(len, wanted))
        held = {frozenset(clique) for clique in found}
        assert all(frozenset(clique) in held for clique in wanted)


@pytest.mark.slow
def test_ranks_against_networkx() -> None:
    table = wiki_vote()
    directed = nx.DiGraph(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))
    wanted = pagerank(directed, tol=1e-12, max_iter=1000)
    assert execute(PageRank(), edge_list(table)).to_dict() == pytest.approx(wanted, abs=1e-8)
