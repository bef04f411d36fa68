"""The largest clique is that of brute force, while edges and vertices come and go, and for any number of workers."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.papers.debs2016.oracle import largest_clique as brute_force
from tests.profiles import examples
from trellis.errors import UsageError
from trellis.papers.debs2016.cliques import LargestClique, largest_clique

ENDS = st.tuples(st.integers(0, 8), st.integers(0, 8))
STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "add", "remove", "drop"]), ENDS), max_size=80)


@examples(60)
@given(STEPS, st.booleans())
def test_edges_and_vertices_come_and_go(steps: list[tuple[str, tuple[int, int]]], as_published: bool) -> None:
    graph = LargestClique(as_published)
    vertices: set[int] = set()
    edges: set[frozenset[int]] = set()
    for what, (a, b) in steps:
        if what == "drop":
            graph.remove_vertex(a)
            vertices.discard(a)
            edges = {edge for edge in edges if a not in edge}
        elif what == "remove":
            graph.remove(a, b)
            edges.discard(frozenset((a, b)))
        elif a != b:
            graph.add(a, b)
            vertices |= {a, b}
            edges.add(frozenset((a, b)))
        assert graph.size == brute_force(vertices, edges)


@pytest.mark.parametrize("as_published", [False, True])
def test_a_graph_of_more_than_64_vertices(as_published: bool) -> None:
    given_ = nx.gnp_random_graph(150, 0.12 if as_published else 0.3, seed=4)
    graph, growing = LargestClique(as_published), nx.Graph()
    for number, (a, b) in enumerate(given_.edges):
        graph.add(a, b)
        growing.add_edge(a, b)
        if number % 200 == 0:
            assert graph.size == max(map(len, nx.find_cliques(growing)))
    assert graph.size == max(map(len, nx.find_cliques(given_)))


def test_nobody_is_their_own_neighbour() -> None:
    with pytest.raises(UsageError):
        LargestClique().add("a", "a")


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(("vertices", "share"), [(1, 0.5), (30, 0.0), (80, 0.5), (300, 0.05), (200, 0.3)])
def test_workers_find_the_same(vertices: int, share: float, workers: int) -> None:
    graph = nx.gnp_random_graph(vertices, share, seed=vertices)
    edges = np.array([*graph.edges, (0, 0), (vertices - 1, vertices - 1)], np.int64)
    assert largest_clique(edges, workers) == max(map(len, nx.find_cliques(graph)))


def test_vertices_of_any_name() -> None:
    assert largest_clique([("a", "b"), ("b", "c"), ("c", "a")]) == 3
    assert largest_clique([(-5, 2**62), (2**62, -5)]) == 2
    assert largest_clique([(7, 7)]) == 1


def test_no_edges_and_no_workers() -> None:
    assert largest_clique(np.empty((0, 2), np.int64)) == 0
    with pytest.raises(UsageError):
        largest_clique(np.array([[0, 1]]), 0)
