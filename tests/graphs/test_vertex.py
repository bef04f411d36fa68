"""Vertex programs give what networkx gives, and say what they cannot do."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python as pagerank

from tests.profiles import examples
from trellis.errors import DataError, UsageError
from trellis.graphs import (
    Cliques,
    Components,
    Cores,
    EdgeList,
    Graph,
    NotConverged,
    PageRank,
    ShortestPaths,
    Triangles,
    VertexProgram,
    edge_list,
    execute,
)
from trellis.graphs.graph import Change
from trellis.graphs.values import Sets, differ, put, take

ENDS = st.integers(0, 7)
PAIRS = st.lists(st.tuples(ENDS, ENDS), max_size=25)


def arrays(pairs: list[tuple[Any, Any]], directed: bool = True, weights: list[float] | None = None) -> EdgeList:
    table = pa.table({"source": [a for a, _ in pairs], "target": [b for _, b in pairs]})
    if weights is not None:
        table = table.append_column("weight", pa.array(weights, pa.float64()))
    return edge_list(table, weight=None if weights is None else "weight", directed=directed)


def named(pairs: list[tuple[int, int]]) -> list[tuple[str, str]]:
    """Ids as texts, whose order is another one."""
    return [(str(9 * a), str(9 * b)) for a, b in pairs]


@given(PAIRS, st.booleans())
@examples(60)
def test_programs_against_networkx(pairs: list[tuple[int, int]], directed: bool) -> None:
    graph = arrays(pairs, directed)
    theirs = nx.DiGraph(pairs) if directed else nx.Graph(pairs)
    plain = nx.Graph([(a, b) for a, b in pairs])
    smallest = {v: min(part) for part in nx.connected_components(plain) for v in part}
    assert execute(Components(), graph).to_dict() == smallest
    assert execute(Triangles(), graph).to_dict() == nx.triangles(plain)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    assert execute(Cores(), graph).to_dict() == nx.core_number(plain)
    ranks = execute(PageRank(tolerance=1e-12), graph).to_dict()
    wanted = pagerank(theirs, tol=1e-13, max_iter=2000) if pairs else {}
    assert ranks == pytest.approx(wanted, abs=1e-9)
    for source in list(theirs)[:2]:
        reached = {v: far for v, far in execute(ShortestPaths(source), graph).to_dict().items() if far < np.inf}
        assert reached == nx.single_source_shortest_path_length(theirs, source)


@given(st.lists(st.tuples(ENDS, ENDS, st.integers(0, 9)), min_size=1, max_size=20))
@examples(40)
def test_weights_against_networkx(triples: list[tuple[int, int, int]]) -> None:
    smallest: dict[tuple[int, int], int] = {}
    for a, b, weight in triples:
        smallest[a, b] = min(weight, smallest.get((a, b), weight))
    theirs = nx.DiGraph()
    theirs.add_weighted_edges_from([(a, b, w) for (a, b), w in smallest.items()])
    graph = arrays([(a, b) for a, b, _ in triples], True, [w for *_, w in triples])
    source = triples[0][0]
    found = execute(ShortestPaths(source, weighted=True), graph).to_dict()
    assert {v: far for v, far in found.items() if far < np.inf} == nx.single_source_dijkstra_path_length(theirs, source)
    positive = nx.DiGraph()
    positive.add_weighted_edges_from([(a, b, w + 1) for (a, b), w in smallest.items()])
    ranks = execute(PageRank(tolerance=1e-12), arrays(list(smallest), True, [w + 1 for w in smallest.values()]))
    assert ranks.to_dict() == pytest.approx(pagerank(positive, tol=1e-13, max_iter=2000), abs=1e-9)


@given(PAIRS.filter(bool))
@examples(40)
def test_cliques_against_networkx(pairs: list[tuple[int, int]]) -> None:
    plain = nx.Graph(pairs)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    vertex = pairs[0][0]
    program = Cliques(vertex)
    found = execute(program, arrays(pairs)).to_dict()
    wanted = {frozenset(clique) for clique in nx.enumerate_all_cliques(plain) if vertex in clique}
    assert {frozenset(clique) for clique in program.cliques(found[vertex])} == wanted
    for other in plain[vertex]:
        assert {frozenset(c) for c in program.cliques(found[other])} == {c for c in wanted if other in c}
    longest = program.cliques(found[vertex])[0]
    assert len(longest) == max(map(len, wanted))


def test_a_vertex_with_sixty_neighbours_and_one_with_more() -> None:
    ring = [(i, i % 60 + 1) for i in range(1, 61)]
    spokes = [(0, i) for i in range(1, 61)]
    program = Cliques(0)
    found = execute(program, arrays([*ring, *spokes])).to_dict()
    assert len(found[0]) == 1 + 60 + 60  # alone, with one of the others, with two neighbours on the ring
    assert program.cliques(found[0])[0] == [0, 1, 2]
    wide = [(0, i) for i in range(1, 151)] + [(i, i + 1) for i in range(1, 150)] + [(1, 70), (70, 140), (1, 140)]
    found = execute(program, arrays(wide)).to_dict()  # several words of bits
    wanted = {frozenset(clique) for clique in nx.enumerate_all_cliques(nx.Graph(wide)) if 0 in clique}
    assert {frozenset(clique) for clique in program.cliques(found[0])} == wanted
    assert {frozenset(c) for c in program.cliques(found[70])} == {c for c in wanted if 70 in c}
    everyone = [(a, b) for a in range(12) for b in range(a)]
    with pytest.raises(UsageError, match="is in too many cliques: over 100"):
        execute(Cliques(0, max_cliques=100), arrays(everyone))


def test_threads_and_short_ways_give_what_rounds_give() -> None:
    rng = np.random.default_rng(1)
    number = 120_000
    table = pa.table({"source": rng.zipf(1.6, number) % 9_000, "target": rng.integers(0, 9_000, number)})
    graph = edge_list(table)
    for base in (PageRank, Components, Triangles, Cores):
        program, long_way = base(), type("LongWay", (base,), {"solve": VertexProgram.solve})()
        results = [execute(program, graph, threads=n) for n in (1, 3)]
        results += [execute(long_way, graph, threads=n) for n in (1, 3)]
        for one in results[1:]:
            np.testing.assert_allclose(one.values, results[0].values, rtol=1e-9)
        if base is PageRank:
            assert len({one.rounds for one in results}) == 1
    with pytest.raises(UsageError, match="0 threads"):
        execute(PageRank(), graph, threads=0)


@given(PAIRS.filter(bool))
@examples(20)
def test_ids_may_be_texts(pairs: list[tuple[int, int]]) -> None:
    numbers = execute(Triangles(), arrays(pairs)).to_dict()
    assert execute(Triangles(), arrays(named(pairs))).to_dict() == {str(9 * v): n for v, n in numbers.items()}
    parts = execute(Components(), arrays(named(pairs))).to_dict()
    theirs = nx.connected_components(nx.Graph(named(pairs)))
    assert parts == {v: min(part) for part in theirs for v in part}
    source = named(pairs)[0][0]
    assert execute(ShortestPaths(source), arrays(named(pairs))).to_dict()[source] == 0
    assert execute(Cliques(source), arrays(named(pairs))).to_dict()[source]


def test_only_changed_vertices_are_scheduled() -> None:
    path = arrays([(i, i + 1) for i in range(100)])
    found = execute(ShortestPaths(0), path)
    assert (found.rounds, found.scheduled) == (100, 100)  # one vertex a round
    assert found.to_dict()[100] == 100
    assert execute(ShortestPaths(100), path).scheduled == 0


def test_an_empty_graph_and_vertices_without_edges() -> None:
    for program in (PageRank(), Components(), Triangles(), Cores(), ShortestPaths(1), Cliques(1)):
        assert execute(program, arrays([])).to_dict() == {}
    nothing = pa.table({"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())})
    alone = edge_list(nothing, vertices=[3, 5])
    assert execute(PageRank(), alone).to_dict() == {3: 0.5, 5: 0.5}
    assert execute(Triangles(), alone).to_dict() == {3: 0, 5: 0}
    assert execute(Components(), alone).to_dict() == {3: 3, 5: 5}
    assert Cliques(3).cliques(execute(Cliques(3), alone).to_dict()[3]) == [[3]]


class Flips(VertexProgram):
    """Never settles."""

    max_rounds = 7

    def initial(self, vertices: Any) -> Any:
        return np.zeros(len(vertices.index), np.int64)

    def apply(self, own: Any, summed: Any, vertices: Any, round: int) -> Any:
        return 1 - own


def test_a_program_that_does_not_converge_is_told() -> None:
    with pytest.raises(NotConverged, match="Flips has not converged after 7 rounds: 2 vertices still change"):
        execute(Flips(), arrays([(1, 2), (2, 1)]))
    cycle = arrays([(1, 2), (2, 1)], weights=[-1, 0])
    with pytest.raises(NotConverged, match="ShortestPaths has not converged after 3 rounds"):
        execute(ShortestPaths(1, weighted=True), cycle)
    with pytest.raises(NotConverged, match="after 2 rounds"):
        execute(PageRank(max_rounds=2), arrays([(1, 2), (2, 1), (2, 3)]))


def test_graphs_that_cannot_be() -> None:
    table = pa.table({"source": [1, 2], "target": [2, 3], "name": ["a", "b"], "gap": pa.array([1.0, None])})
    with pytest.raises(DataError, match="the edge from 2 to 3 ends at 3, which is not a vertex"):
        edge_list(table, vertices=[1, 2])
    with pytest.raises(UsageError, match="no column `sorce`"):
        edge_list(table, source="sorce")
    with pytest.raises(DataError, match="different types"):
        edge_list(table, target="name")
    with pytest.raises(DataError, match="not numbers"):
        edge_list(table, weight="name")
    with pytest.raises(DataError, match="NULL or NaN in 1 rows"):
        edge_list(table, weight="gap")
    with pytest.raises(DataError, match="is NULL in 1 rows"):
        edge_list(pa.table({"source": pa.array([1, None]), "target": [1, 2]}))
    with pytest.raises(DataError, match="is of type double"):
        edge_list(pa.table({"source": [1.5], "target": [2.5]}))
    with pytest.raises(UsageError, match="has no vertex 9"):
        execute(ShortestPaths(9), edge_list(table))
    with pytest.raises(UsageError, match="has no vertex 'x'"):
        execute(Cliques("x"), edge_list(table))
    with pytest.raises(UsageError, match="begin nowhere"):
        ShortestPaths()
    with pytest.raises(UsageError, match="damping"):
        PageRank(damping=1)
    with pytest.raises(NotImplementedError, match="write `initial`"):
        execute(VertexProgram(), edge_list(table))


LISTS = st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=6)


@given(LISTS, st.data())
def test_sets_are_like_lists(lists: list[list[int]], data: st.DataObject) -> None:
    sets = Sets.of([np.array(one, np.int64) for one in lists])
    places = sorted(data.draw(st.sets(st.integers(0, len(lists) - 1))))
    new = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=len(places), max_size=len(places)))

    def plain(some: Any) -> list[list[int]]:
        return [some[i].tolist() for i in range(len(some))]

    chosen = np.array(places, np.int64)
    assert plain(take(sets, chosen)) == [lists[i] for i in places]
    changed = put(sets, chosen, Sets.of([np.array(one, np.int64) for one in new]))
    wanted = [dict(zip(places, new, strict=True)).get(i, one) for i, one in enumerate(lists)]
    assert plain(changed) == wanted
    assert differ(sets, changed).tolist() == [a != b for a, b in zip(lists, wanted, strict=True)]


# --- Graphs that change -----------------------------------------------------------------------------------------------


STEPS = st.lists(st.tuples(st.sampled_from(["add", "cut", "in", "out"]), ENDS, ENDS), max_size=30)


@given(STEPS, st.booleans())
def test_a_graph_that_changes_is_like_that_of_networkx(steps: list[tuple[str, int, int]], directed: bool) -> None:
    graph, theirs = Graph(directed), nx.DiGraph() if directed else nx.Graph()
    for i, (what, a, b) in enumerate(steps):
        if what == "add":
            graph.change(Change(add_edges=[(a, b, i)]))
            theirs.add_edge(a, b, data=i)
        elif what == "cut":
            graph.change(Change(remove_edges=[(a, b)]), missing="ignore")
            theirs.remove_edges_from([(a, b)])
        elif what == "in":
            graph.change(Change(add_vertices=[(a, i)]))
            theirs.add_node(a)
        else:
            graph.change(Change(remove_vertices=[a]), missing="ignore")
            theirs.remove_nodes_from([a])
    again = Graph(directed)
    again.restore(graph.state())
    for one in (graph, again):
        assert set(one) == set(theirs)
        assert {(a, b): d for a, b, d in one.edges()}.keys() <= {*theirs.edges, *((b, a) for a, b in theirs.edges)}
        assert len(list(one.edges())) == theirs.number_of_edges()
        for a, b, i in theirs.edges.data("data"):
            assert one.edge(a, b) == i
        for v in theirs:
            assert one.neighbours(v) == set(nx.all_neighbors(theirs, v))
            assert one.successors(v) == set(theirs[v])
        assert execute(Triangles(), one.arrays()).to_dict() == nx.triangles(nx.Graph(theirs))
    some = [v for v in theirs if v % 2]
    inside = execute(Components(), graph.arrays(within=some)).to_dict()
    assert set(inside) == set(some)


def test_an_edge_whose_vertex_is_removed_is_gone() -> None:
    graph = Graph()
    graph.change(Change(add_edges=[("a", "b"), ("b", "c")]))
    graph.change(Change(remove_vertices=["b"]))
    assert list(graph.edges()) == []
    with pytest.raises(UsageError, match="no edge from 'a' to 'b' to remove") as raised:
        graph.change(Change(remove_edges=[("a", "b")]))
    assert "gone with a vertex" in str(raised.value)
    graph.change(Change(remove_edges=[("a", "b")], remove_vertices=["b"]), missing="ignore")
    with pytest.raises(UsageError, match="no vertex 'b' to remove"):
        graph.change(Change(remove_vertices=["b"]))
    with pytest.raises(UsageError, match="has no edge"):
        graph.edge("a", "b")
    with pytest.raises(UsageError, match="no vertex 'b'"):
        graph.vertex("b")
    with pytest.raises(UsageError, match="a vertex is None"):
        graph.change(Change(add_edges=[(None, "a")]))
    with pytest.raises(UsageError, match="`missing` is"):
        graph.change(Change(), missing="maybe")
    graph.change(Change(add_edges=[(1, "a")]))
    with pytest.raises(DataError, match="of different kinds: int, str"):
        graph.arrays()


def test_weights_from_the_data_of_edges() -> None:
    graph = Graph(directed=True)
    graph.change(Change(add_edges=[("a", "b", {"fee": 2}), ("b", "c", {"fee": 3}), ("a", "c", {"fee": 9})]))
    found = execute(ShortestPaths("a", weighted=True), graph.arrays(weight=lambda data: data["fee"]))
    assert found.to_dict() == {"a": 0, "b": 2, "c": 5}
