"""Cliques and lists of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from trellis.kernels.graph import cliques, neighbours


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
