"""Paths by rank and ranks of paths, beside all paths listed in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import arrays_of, random_graph, tasks_of
from trellis.kernels.unrank import by_edges, by_index, many, ranks
from trellis.kernels.unrank.by_index import IndexWindow

N, TASKS = 13, [(0, 9), (3, 13)]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(("least", "most"), [(1, 1 << 62), (2, 3), (3, 1 << 62)])
def test_unranking_by_edges(least: int, most: int, every: bool) -> None:
    graph = random_graph(1, N, 0.35)
    arrays, (lo, hi) = tasks_of(graph, TASKS, every=every), TASKS[1]
    wanted = [p for p in naive.paths_of_task(graph, lo, hi, every=every) if least <= len(p) <= most]
    layers = np.zeros((0, 0, 2), np.uint64)
    if least > 1:
        layers = by_edges.layered_counts(arrays, 1, 2, hi - lo)
    due = np.array([[rank, 0] for rank in range(len(wanted) + 2)], np.uint64)
    counts = by_edges.suffix_counts(arrays, 1, 2)
    assert counts[:, 0].tolist() == [
        len(naive.paths_of_task(graph, x, hi, single=True, every=every)) for x in range(lo, hi)
    ]
    assert naive.ragged(*by_edges.unrank(due, arrays, 1, counts, layers, least, most)) == [*wanted, (), ()]


def random_window(seed: int, n: int, every: bool) -> tuple[IndexWindow, naive.Graph]:
    """Events whose values must rise, or fall to a third, on the index."""
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 9, n).astype(np.int32)
    later = np.arange(1, n + 1)
    firsts, lasts = (value + 1, np.zeros(n, np.int32)), (np.full(n, 9, np.int32), value // 3)
    graph = naive.graph_of(n, lambda x, y: bool(y > x and (value[y] > value[x] or value[y] < value[x] // 3)))
    led_to = {y for row in graph for y in row}
    ok = np.ones(n, np.bool_)
    starts = np.array([every or x not in led_to for x in range(n)])
    ends = np.array([not row for row in graph])
    return IndexWindow(0, 9, later, value, firsts, lasts, starts, ends, ok, every, np.empty(0, np.int64)), graph


@pytest.mark.parametrize("limbs", [(0,), ()])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_unranking_by_index_one_by_one_and_many_at_once(seed: int, every: bool, limbs: tuple[int, ...]) -> None:
    window, graph = random_window(seed, 10, every)
    wanted = naive.paths_of_task(graph, 0, 10, every=every)
    counts = by_index.widened(by_index.path_counts(40, limbs, 2, window), 40, 2)
    assert counts[:, 0].tolist() == [
        len(naive.paths_of_task(graph, x, 10, single=True, every=every)) for x in range(10)
    ]
    heads = by_index.start_heads(window.starts, counts)
    assert heads[-1, 0] == len(wanted)
    blocks = by_index.BlockSums(*by_index.sum_blocks(by_index.block_orders(window.place), window.place, counts))
    assert (by_index.unfold(blocks) == counts).all()
    due = np.array([[rank, 0] for rank in range(len(wanted))], np.int64)
    assert naive.ragged(*by_index.unrank(due, limbs, window, blocks, heads)) == wanted
    order = np.argsort(window.place, kind="stable").astype(np.int32)
    log, log_at = many.unrank_many(due, limbs, order, window, counts)
    events, ends = np.empty(len(log), np.int32), np.zeros(len(due), np.int64)
    many.collect(log, log_at, 0, 0, events, ends)
    assert naive.ragged(events, ends) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_ranks_of_paths(seed: int) -> None:
    graph, (lo, hi) = random_graph(seed, N, 0.35), TASKS[1]
    offsets, successors = arrays_of(graph)
    wanted = naive.paths_of_task(graph, lo, hi)
    starts = np.array([x in {path[0] for path in wanted} for x in range(lo, hi)])
    ends = np.array([x in {path[-1] for path in wanted} for x in range(lo, hi)])
    before = ranks.paths_before(lo, hi, offsets, successors, starts, ends)
    shuffled = np.random.default_rng(seed).permutation(len(wanted))
    paths = [*(wanted[i] for i in shuffled), (wanted[0][0], wanted[0][0])]
    path_ends = np.cumsum([len(path) for path in paths])
    positions = np.array([x for path in paths for x in path], np.int32)
    found = ranks.ranks_of_paths(lo, hi, positions, path_ends, offsets, successors, starts, ends, *before)
    assert found.tolist() == [*shuffled.tolist(), ranks.ASTRAY]
