"""Vertex programs over who votes for whom on Wikipedia, beside networkx; and an operator over payments."""

from __future__ import annotations

import gzip
import runpy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python as pagerank

from benchmarks import Peer, Row, Table, Timing, at_least, best_of
from trellis.graphs import (
    Cliques,
    Components,
    Cores,
    EdgeList,
    PageRank,
    ShortestPaths,
    Triangles,
    VertexProgram,
    edge_list,
    execute,
)
from trellis.graphs import run as run_here
from trellis.graphs.engine import whole_block

ROOT = Path(__file__).parents[1]
VOTES = ROOT.parent / "shared" / "data" / "wiki_vote" / "wiki-Vote.txt.gz"
EXAMPLE = ROOT / "examples" / "graphs" / "payments.py"
TOLERANCE = 1e-9


def votes(quick: bool) -> tuple[str, pa.Table]:
    """Return the votes, or where they are not there, and in quick runs, random ones with as skewed degrees."""
    if not quick and VOTES.exists():
        with gzip.open(VOTES, "rt") as lines:
            rows = np.array([line.split() for line in lines if not line.startswith("#")], np.int64)
        return "Wikipedia votes", pa.table({"source": rows[:, 0], "target": rows[:, 1]})
    number = 2_000 if quick else 103_689
    rng = np.random.default_rng(1)
    ends = [(rng.zipf(1.6, number) % (number // 14)).astype(np.int64) for _ in range(2)]
    return "random votes", pa.table({"source": ends[0], "target": rng.permutation(number // 14)[ends[1]]})


def run(quick: bool) -> list[Table]:
    return [_programs(*votes(quick), quick), _programs(*sparse(quick), quick), _threads(quick), _payments(quick)]


def sparse(quick: bool) -> tuple[str, pa.Table]:
    """Return a random graph with about as many edges, and two for each vertex."""
    number, rng = 2_000 if quick else 100_000, np.random.default_rng(3)
    return "random", pa.table({name: rng.integers(0, number // 2, number) for name in ("source", "target")})


def _threads(quick: bool) -> Table:
    """Return what a second thread brings: the vertices are shared, the results are the same."""
    number, rng = 20_000 if quick else 2_000_000, np.random.default_rng(4)
    graph = edge_list(pa.table({name: rng.zipf(1.3, number) % (number // 10) for name in ("source", "target")}))
    rows = []
    for program in (PageRank(tolerance=1e-6), Triangles()):
        assert np.allclose(execute(program, graph, threads=2).values, execute(program, graph, threads=1).values)
        both, alone = (
            best_of(f"{type(program).__name__}, {n} threads", partial(execute, program, graph, n), quick=quick, runs=3)
            for n in (2, 1)
        )
        rows.append(Row(f"{type(program).__name__}, 2 threads", both, peers=[Peer("one thread", alone)],
                        targets=[at_least(1.5, "times as fast as one thread", alone.wall / both.wall)]))  # fmt: skip
    return Table(f"Threads over blocks of a graph: {number:,} edges, in this process", rows)


def _programs(name: str, table: pa.Table, quick: bool) -> Table:
    graph = edge_list(table)
    pairs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    directed = nx.DiGraph(pairs)
    plain = nx.Graph((a, b) for a, b in pairs if a != b)
    source = pairs[0][0]
    ego = max((v for v in plain if plain.degree(v) <= 60), key=lambda v: (plain.degree(v), v))
    few = min((v for v in plain if plain.degree(v) >= 3), key=lambda v: (plain.degree(v), v))
    rows = [
        _row("PageRank", graph, PageRank(tolerance=TOLERANCE), lambda: pagerank(directed, tol=1e-14, max_iter=1000),
             quick, least=10),
        _row("components", graph, Components(), lambda: _smallest(plain), quick, least=10),
        _row("shortest paths from one vertex", graph, ShortestPaths(source),
             lambda: nx.single_source_shortest_path_length(directed, source), quick),
        _row("triangles", graph, Triangles(), lambda: nx.triangles(plain), quick, least=10),
        _row("cores", graph, Cores(), lambda: nx.core_number(plain), quick, least=10),
        *(_row(f"all cliques of a vertex with {plain.degree(one)} neighbours", graph, Cliques(one),
               partial(_cliques, plain, one), quick) for one in (ego, few)),
        _building(table, pairs, quick),
    ]  # fmt: skip
    return Table(
        f"{name}: {plain.number_of_nodes():,} vertices, {len(pairs):,} edges, in this process",
        rows,
        [
            "Both begin from a graph that is built. networkx would hand PageRank to SciPy if that were here; this is "
            "its own Python. In this process the programs that come along take a shorter way than rounds where "
            "there is one: edges joined, vertices taken away, triangles and cliques listed once.",
            "A limit: one pass over the edges, 16 bytes each, at the speed of memory takes "
            f"{16 * len(pairs) / 10e9:.1g} s; a round of PageRank is about five.",
        ],
    )


def _row(
    what: str, graph: EdgeList, program: VertexProgram, theirs: Callable[[], dict[Any, Any]], quick: bool,
    least: float = 1,
) -> Row:  # fmt: skip
    found, answers = execute(program, graph), []
    often = 200 if isinstance(program, Cliques) and found.scheduled < 10 else 1  # a clock is too coarse for one
    timing = _each(what, lambda: execute(program, graph), often, quick, 3)
    peer = _each(f"{what}, networkx", lambda: answers.append(theirs()), often, quick, 1)
    _check_same(program, found.to_dict(), answers[0])
    targets = [at_least(least, "times as fast as networkx", peer.wall / timing.wall)]
    work = f"{what}: {found.rounds} rounds, {found.scheduled:,} vertices scheduled"
    return Row(work, timing, peers=[Peer("networkx", peer)], targets=targets)


def _each(what: str, work: Callable[[], object], often: int, quick: bool, runs: int) -> Timing:
    """Return what one piece of work takes of many, one after another."""

    def all_of_them() -> None:
        for _ in range(often):
            work()

    found = best_of(what, all_of_them, quick=quick, runs=runs, warm=work if often > 1 or runs > 1 else lambda: None)
    return replace(found, wall=found.wall / often, cpu=found.cpu / often)


def _check_same(program: VertexProgram, ours: dict[Any, Any], theirs: dict[Any, Any]) -> None:
    if isinstance(program, Cliques):
        same = {frozenset(one) for one in program.cliques(ours[program.vertex])} == theirs[program.vertex]
    elif isinstance(program, PageRank):
        same = max(abs(ours[v] - rank) for v, rank in theirs.items()) < 1e-7
    elif isinstance(program, ShortestPaths):
        same = {v: far for v, far in ours.items() if far < np.inf} == theirs
    else:
        same = {v: ours[v] for v in theirs} == theirs
    assert same, f"networkx finds other {type(program).__name__}"


def _smallest(graph: nx.Graph) -> dict[Any, Any]:
    return {v: smallest for part in nx.connected_components(graph) for smallest in [min(part)] for v in part}


def _cliques(graph: nx.Graph, vertex: Any) -> dict[Any, Any]:
    near = graph.subgraph([vertex, *graph[vertex]])
    others = near.subgraph(graph[vertex])
    return {vertex: {frozenset([vertex])} | {frozenset([vertex, *one]) for one in nx.enumerate_all_cliques(others)}}


def _building(table: pa.Table, pairs: list[tuple[int, int]], quick: bool) -> Row:
    ours = best_of("building", lambda: whole_block(Components(), edge_list(table)), quick=quick)
    theirs = best_of("building for networkx", lambda: nx.Graph(pairs), quick=quick, runs=2)
    return Row("building the graph, from an Arrow table", ours, peers=[Peer("networkx, from pairs", theirs)])


# --- Payments ---------------------------------------------------------------------------------------------------------


def payments(number: int, accounts: int) -> pa.Table:
    """Return payments, ten a second, between random accounts, in eight currencies."""
    rng = np.random.default_rng(2)
    names = np.array([f"account{i}" for i in range(accounts)])
    return pa.table(
        {
            "ts": pa.array(1_700_000_000_000_000 + np.arange(number) * 100_000, pa.timestamp("us", "UTC")),
            "id": np.arange(number),
            "currency": rng.choice(["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "NOK", "DKK"], number),
            "payer": names[rng.integers(0, accounts, number)],
            "payee": names[rng.integers(0, accounts, number)],
            "amount": rng.integers(1, 10_000, number) / 100,
        }
    )


def _payments(quick: bool) -> Table:
    number = 2_000 if quick else 200_000
    table = payments(number, number // 100)
    names = runpy.run_path(str(EXAMPLE))
    job = (names["SPLITTER"], names["PaymentTriangles"], names["MERGER"])
    rows = []
    plain = best_of("by hand", lambda: _by_hand(table), quick=quick, runs=2)
    for instances in (1, 4):
        found = run_here(table, *job, event_id="id", instances=instances)
        assert found.table.num_rows == _by_hand(table)
        what = f"{instances} instances"
        running = partial(run_here, table, *job, event_id="id", instances=instances)
        timing = best_of(what, running, quick=quick, runs=2)
        work = f"{what}: {number / timing.wall:,.0f} events/s, {found.table.num_rows:,} triangles"
        rows.append(Row(work, timing, peers=[Peer("the same by hand", plain)]))
    notes = [
        "By hand: one Python loop over lists with a dictionary of sets, without events, partitions, results and order. "
        "The operator is Python too, so the ratio is what the interfaces cost. Here instances share one core.",
    ]
    return Table(f"Triangles among recent payments (examples/graphs/payments.py): {number:,} payments", rows, notes)


def _by_hand(table: pa.Table) -> int:
    """Count the triangles that payments close within an hour, in the plainest fast way."""
    hour = 3_600_000_000
    near: dict[tuple[str, str], set[str]] = {}
    last: dict[tuple[str, str, str], int] = {}
    columns = [table["ts"].cast(pa.int64()), *(table[name] for name in ("currency", "payer", "payee"))]
    held = list(zip(*(column.to_pylist() for column in columns), strict=True))
    begin = found = 0
    for i, (time, currency, payer, payee) in enumerate(held):
        if payer == payee:
            continue
        while held[begin][0] <= time - hour:
            _, money, a, b = held[begin]
            if last.get((money, min(a, b), max(a, b))) == begin:
                near[money, a].discard(b)
                near[money, b].discard(a)
                del last[money, min(a, b), max(a, b)]
            begin += 1
        pair = (currency, min(payer, payee), max(payer, payee))
        ones, others = near.setdefault((currency, payer), set()), near.setdefault((currency, payee), set())
        if pair not in last:
            found += len(ones & others)
            ones.add(payee)
            others.add(payer)
        last[pair] = i
    return found
