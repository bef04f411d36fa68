"""Cliques, lists of neighbours, and kernels of vertex programs."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from tests.kernels import naive
from trellis.kernels.graph import cliques, neighbours, paths, whole


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_clique(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 9
    edges = {(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.55}
    rows = np.zeros((n, 1), np.uint64)
    for a, b in edges:
        cliques.connect(rows, a, b)
    cliques.connect(rows, 0, 1)
    if (0, 1) not in edges:
        cliques.disconnect(rows, 0, 1)
    size = naive.largest_clique(n, edges)
    shared, steps = np.zeros(1, np.int64), np.zeros(1, np.int64)
    assert cliques.search(rows, cliques.all_of(n, 1), 0, n, 0, shared, steps) == size
    assert cliques.search_as_published(rows, cliques.all_of(n, 1), 0, n, steps) == size
    both = sorted(edges | {(b, a) for a, b in edges})
    begins, others = np.searchsorted([a for a, _ in both], np.arange(n + 1)), np.array([b for _, b in both])
    order = cliques.core_order(begins, others)
    assert sorted(order.tolist()) == list(range(n))
    shared[0] = 0
    for worker in range(2):
        cliques.search_behind(begins, others, order, worker, 2, shared, steps)
    assert shared[0] == size


@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_peeling_leaves_the_core(least: int) -> None:
    rng, n = np.random.default_rng(least), 12
    rows, known = np.zeros((n, 1), np.uint64), {v: set[int]() for v in range(n)}
    for a in range(n):
        for b in range(a + 1, n):
            if rng.random() < 0.3:
                cliques.connect(rows, a, b)
                known[a].add(b)
                known[b].add(a)
    chosen, left = cliques.all_of(n, 1), set(range(n))
    while any(len(known[v] & left) < least for v in left):
        left -= {v for v in left if len(known[v] & left) < least}
    assert cliques.peel(rows, chosen, least) == len(left)
    assert int(chosen[0]) == sum(1 << v for v in left)


def test_h_index_and_common_members() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.integers(0, 8, size).tolist() for size in rng.integers(0, 9, 10)]
    offsets = np.cumsum([0, *map(len, lists)])
    out = np.zeros(10, np.int64)
    neighbours.h_index(np.array([v for row in lists for v in row]), offsets, out)
    assert out.tolist() == [naive.h_index(row) for row in lists]
    sets = [sorted(set(row)) for row in lists] + [list(range(60))]
    own = [sorted(rng.choice(20, 3, replace=False).tolist()) for _ in range(4)]
    sources = rng.integers(0, 11, (4, 3))
    ragged = [(np.cumsum([0, *map(len, rows)]), np.array([v for r in rows for v in r])) for rows in (sets, own)]
    counts = np.zeros(4, np.int64)
    neighbours.common_members(np.arange(0, 13, 3), sources.ravel(), *ragged[0], *ragged[1], counts)
    assert counts.tolist() == [sum(len({*sets[s]} & {*own[i]}) for s in sources[i]) for i in range(4)]


def random_neighbours(seed: int, n: int = 10, share: float = 0.3) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
    """An undirected graph: the neighbours of each vertex, and the same as offsets and sources."""
    known = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    near = [np.flatnonzero(row).tolist() for row in known | known.T]
    offsets, others = naive.csr(near)
    return near, np.array(offsets), np.array(others, np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_components_cores_and_triangles(seed: int) -> None:
    near, offsets, others = random_neighbours(seed, share=0.25)
    n, out = len(near), np.empty(len(near), np.int64)
    whole.smallest_connected(offsets, others, out)
    reached = [{v} for v in range(n)]
    for _ in range(n):
        reached = [{v}.union(*(reached[w] for w in near[v])) for v in range(n)]
    assert out.tolist() == [min(some) for some in reached]
    whole.core_numbers(offsets, others, out)
    assert out.tolist() == [max(k for k in range(n) if v in naive.core(near, k)) for v in range(n)]
    rank = np.random.default_rng(seed).permutation(n)
    begins, lower = np.empty(n + 1, np.int64), np.empty(len(others), np.int64)
    number = whole.lower_neighbours(offsets, others, rank, begins, lower)
    wanted = [[w for w in near[v] if rank[w] < rank[v]] for v in range(n)]
    assert (begins.tolist(), lower[:number].tolist()) == naive.csr(wanted)
    counts = np.zeros(n, np.int64)
    for low, high in ((0, 4), (4, n)):
        whole.count_triangles(begins, lower, counts, low, high)
    edges = {(v, w) for v in range(n) for w in near[v]}
    assert counts.tolist() == [
        sum(naive.is_clique(some, edges) and v in some for some in combinations(range(n), 3)) for v in range(n)
    ]


def test_a_round_of_ranks() -> None:
    near, offsets, others = random_neighbours(3)
    n, rng = len(near), np.random.default_rng(3)
    values, shares, scheduled = rng.random(n), rng.random(len(others)), rng.random(n) < 0.7
    new, changed = np.empty(n), np.empty(n, np.bool_)
    parts = ((0, 4), (4, n))
    arrays = offsets, others, shares, 0.85, 0.3, values, scheduled, new, changed
    assert sum(whole.rank_round(*arrays, low, high) for low, high in parts) == scheduled.sum()
    fresh = [1 + 0.85 * sum(values[w] * shares[offsets[v] + i] for i, w in enumerate(near[v])) for v in range(n)]
    moved = [bool(scheduled[v]) and abs(fresh[v] - values[v]) > 0.3 for v in range(n)]
    assert changed.tolist() == moved
    assert new.tolist() == pytest.approx([fresh[v] if moved[v] else values[v] for v in range(n)])
    following = np.empty(n, np.bool_)
    assert sum(whole.schedule(offsets, others, changed, following, low, high) for low, high in parts) == sum(moved)
    assert following.tolist() == [any(moved[w] for w in near[v]) for v in range(n)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bound", [1, 2, 50])
def test_distances_go_along_edges(bound: int, weighted: bool) -> None:
    near, offsets, others = random_neighbours(5, share=0.2)
    weights = np.random.default_rng(5).random(len(others)) * 4
    far = np.full(len(near), np.inf)
    far[2] = 0.0
    rounds = paths.relax(offsets, others, weights, weighted, far, np.array([2]), bound)[0]
    wanted = [0.0 if v == 2 else np.inf for v in range(len(near))]
    for _ in range(rounds):
        wanted = [
            min(
                [wanted[v], *(wanted[w] + (weights[offsets[w] + near[w].index(v)] if weighted else 1) for w in near[v])]
            )
            for v in range(len(near))
        ]
    assert far.tolist() == pytest.approx(wanted)
    assert rounds <= bound


@pytest.mark.parametrize("most", [3, 100])
def test_all_cliques_of_a_vertex(most: int) -> None:
    near, offsets, others = random_neighbours(1, share=0.5)
    v, edges = 4, {(a, b) for a, row in enumerate(near) for b in row}
    around = near[v]
    wanted = [[w for i, w in enumerate(around) if bits >> i & 1] for bits in range(1 << len(around))]
    wanted = [some for some in wanted if naive.is_clique(some, edges)]
    places, _, found, number, begins, names = paths.cliques_near(offsets, others, v, 64, most)
    assert places.tolist() == sorted([*around, v])
    assert number == min(len(wanted), most + 1)
    if number <= most:
        assert [[w for i, w in enumerate(around) if int(row[0]) >> i & 1] for row in found[:number]] == wanted
        held = [[int(name) for name in names[a:b]] for a, b in pairwise(begins)]
        of_name = {int(row[0]): {*some, v} for row, some in zip(found, wanted, strict=True)}
        assert held == [[name for name, some in of_name.items() if w in some] for w in places]
