"""Numbers of paths in tiles, in spans, and sums over the trends of a stream."""

from __future__ import annotations

from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.test_count import TASKS, Relation
from trellis.kernels.count import folding, tiles
from trellis.kernels.count.algebra import Floats
from trellis.kernels.count.divided import count_divided
from trellis.kernels.count.spans import begin_trends

MODULI = np.array([0, 2**31 - 1], np.uint64)


def logs_of(numbers: list[int]) -> Any:
    return pytest.approx([log2(number) if number else float("-inf") for number in numbers])


def tile(seed: int) -> tuple[tuple[np.ndarray, ...], naive.Graph]:
    """Events of one tile by their ticks and the places of their values, and the graph of what may follow what."""
    rng, n = np.random.default_rng(seed), 11
    tick, taken = np.sort(rng.integers(0, 6, n)).astype(np.int32), rng.random(n) < 0.8
    place = np.full(n, -1)
    place[taken] = rng.permutation(int(taken.sum()))
    low = rng.integers(0, taken.sum() + 1, n)
    high = np.minimum(low + rng.integers(0, 6, n), taken.sum())
    low = np.minimum(low, high)
    graph = naive.graph_of(n, lambda x, y: bool(tick[y] > tick[x] and low[x] <= place[y] < high[x]))
    return (tick, place, low, high), graph


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_tile_is_counted_and_walked(seed: int, every: bool) -> None:
    arrays, graph = tile(seed)
    n = len(graph)
    wanted = [naive.paths_of_task(graph, x, n, single=True, every=every) for x in range(n)]
    words, logs = np.zeros((n, 2), np.uint64), np.full(n, -np.inf)
    ends = tiles.solve_tile(*arrays, every, MODULI, words, logs)
    numbers = [len(paths) for paths in wanted]
    assert words.tolist() == [[number, number] for number in numbers]
    assert logs.tolist() == logs_of(numbers)
    assert ends.tolist() == [not row for row in graph]
    starts = np.random.default_rng(seed).random(n) < 0.7
    paths = [path for x in range(n) if starts[x] for path in wanted[x]]
    begins, ranks = np.full((len(paths), 2), -1), np.arange(len(paths), dtype=np.uint64)
    found, bounds, done = tiles.walk_tile(*arrays, starts, ends, every, words[:, 0].copy(), begins, ranks)
    assert [tuple(found[a:b].tolist()) for a, b in pairwise(bounds)] == paths
    assert done.all()


def test_sums_of_ranges_and_of_rows() -> None:
    rng, n = np.random.default_rng(0), 7
    numbers = [int(number) for number in rng.integers(0, 2**31 - 1, n)]
    tree, logs = np.zeros((2 * n, 2), np.uint64), np.full(2 * n, -np.inf)
    tree[n:] = np.array(numbers, np.uint64)[:, None]
    logs[n:] = np.log2(numbers)
    tiles.fill_tree(tree, logs, MODULI)
    low, high = np.array([0, 2, 3, 5]), np.array([7, 5, 3, 6])
    sums = [sum(numbers[a:b]) for a, b in zip(low, high, strict=True)]
    words, found = tiles.sums_of_ranges(tree, logs, low, high, MODULI)
    assert words.tolist() == [[total, total % (2**31 - 1)] for total in sums]
    assert found.tolist() == logs_of(sums)
    rows = np.array([1, 0, 1])
    tiles.add_rows(words, found, rows, tree[n : n + 3], logs[n : n + 3], MODULI)
    sums[1] += numbers[0] + numbers[2]
    sums[0] += numbers[1]
    assert words.tolist() == [[total, total % (2**31 - 1)] for total in sums]
    assert found.tolist() == logs_of(sums)


@pytest.mark.parametrize("seed", range(4))
def test_the_first_range_over_a_place(seed: int) -> None:
    rng, size = np.random.default_rng(seed), 12
    low = rng.integers(0, size, 6)
    high, times = np.minimum(low + rng.integers(0, 5, 6), size), np.sort(rng.integers(0, 9, 6))
    found = tiles.first_over(size, low, high, times, 99)
    ranges = [*zip(low, high, times, strict=True)]
    assert found.tolist() == [next((t for a, b, t in ranges if a <= place < b), 99) for place in range(size)]


@pytest.mark.parametrize("first_end", [0, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_which_events_begin_a_trend_of_a_span(seed: int, first_end: int) -> None:
    relation = Relation("tails", seed)
    ends = [lo + first_end for lo, _ in TASKS]
    wanted = [
        bool(naive.paths_of_task(relation.graph, lo, hi, end, single=True))
        for (lo, hi), end in zip(TASKS, ends, strict=True)
    ]
    assert begin_trends(relation.shape, relation.events(), relation.tasks(True, False, ends)).tolist() == wanted


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("kind", ["tails", "ranges"])
@pytest.mark.parametrize("seed", range(4))
def test_spans_that_overlap_are_counted_by_division(seed: int, kind: str, every: bool) -> None:
    """Paths may end anywhere, or, where nothing is known to follow an event, from their first end on."""
    relation = Relation(kind, seed)
    ends = [lo if every else lo + 2 for lo, _ in TASKS]
    shape, events = relation.shape, relation.events()
    if not every:
        events = events._replace(nearest=np.full(len(relation.graph), len(relation.graph)))
    tasks = relation.tasks(True, every, ends)
    wanted = [
        sum(every or path[-1] >= end for path in naive.paths_of_task(relation.graph, lo, hi, single=True, every=True))
        for (lo, hi), end in zip(TASKS, ends, strict=True)
    ]
    ranges = np.atleast_2d(shape.first), np.atleast_2d(shape.last)
    assert count_divided(Floats(), shape.place, *ranges, events, tasks).tolist() == wanted


# --- Streams -----------------------------------------------------------------------------------------------------


def number_of(words: np.ndarray) -> int:
    """A whole number of words, the lowest first, as two's complement."""
    total = sum(int(word) << 64 * i for i, word in enumerate(words))
    return total - (1 << 64 * len(words)) if int(words[-1]) >> 63 else total


def words_of(number: int, size: int = 2) -> list[int]:
    return [number >> 64 * i & 2**64 - 1 for i in range(size)]


def test_numbers_are_added_to_rows_and_raised() -> None:
    numbers = np.array([[words_of(n), words_of(-n)] for n in (5, 2**64 - 1, 2**100)], np.uint64)
    more = np.array([[words_of(n), words_of(n)] for n in (1, 7, 3)], np.uint64)
    folding.add_to_rows(numbers, np.array([1, -1, 0]), more)
    assert [[number_of(w) for w in row] for row in numbers] == [[8, -2], [2**64, 2 - 2**64], [2**100, -(2**100)]]
    folding.raise_by(numbers, 1, 3)
    assert [[number_of(w) for w in row] for row in numbers] == [[8, -16], [2**64, 16 - 2**67], [2**100, -(2**103)]]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_trends_that_end_at_each_event_are_added_up(seed: int, every: bool) -> None:
    """A first part of the events is known as vertices, the rest is new; all of it is one graph."""
    rng, n, old = np.random.default_rng(seed), 9, 4
    tick = np.sort(rng.integers(0, 6, n))
    tick[old:] += 1  # what is new is later
    own, low = rng.integers(0, 5, (2, n))
    high, gives, takes = low + rng.integers(0, 4, n), rng.random(n) < 0.8, rng.random(n) < 0.8
    weights = rng.integers(-9, 9, n)
    graph = naive.graph_of(
        n, lambda x, y: bool(tick[y] > tick[x] and gives[x] and takes[y] and low[x] < own[y] <= high[x])
    )
    led_to = {y for row in graph for y in row}
    paths = [p for p in naive.paths_of_task(graph, 0, n, every=True) if every or p[0] not in led_to]
    counts = [sum(p[-1] == x for p in paths) for x in range(n)]
    sums = [sum(int(weights[y]) for p in paths if p[-1] == x for y in p) for x in range(n)]
    known = np.array([[words_of(counts[x]), words_of(sums[x])] for x in range(old) if gives[x]], np.uint64)
    some = np.flatnonzero(gives[:old])
    vertices = folding.KnownVertices(
        np.array([0]), np.array([len(some)]), low[some], high[some], known.reshape(len(some), 2, 2)
    )
    new = folding.NewEvents(*(array[old:] for array in (tick, gives, takes, own, low, high)))
    size = n - old
    magnitudes = np.abs(weights[old:]).astype(np.uint64)[None]
    given = folding.EventWeights(
        np.zeros((1, size), np.uint64), magnitudes, np.zeros((1, size), np.int64), (weights[old:] < 0)[None]
    )
    before = np.array([[words_of(sum(counts[:old]))]], np.uint64)
    fits, numbers, followed, behind = folding.fold(
        vertices, new, given, np.array([0]), np.array([size]), before, every, 120
    )
    assert fits
    assert [[number_of(w) for w in row] for row in numbers] == [[counts[x], sums[x]] for x in range(old, n)]
    if not every:
        assert followed.tolist() == [bool(graph[x]) for x in range(old, n)]
        assert behind.tolist() == [any(y >= old for y in graph[x]) for x in some]
    room = max(sum(counts).bit_length() - 1, 0)
    assert not folding.fold(vertices, new, given, np.array([0]), np.array([size]), before, every, room)[0]
