"""The attribute index: what its ranges of vertices allow is what the values do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from trellis.kernels.count import shapes
from trellis.kernels.index import vertices as kernel

N = 16


def test_parts_hold_their_tasks() -> None:
    lo, hi = np.array([0, 1, 2, 9, 10]), np.array([4, 5, 9, 13, 16])
    part_of, begin, end, offset = kernel.make_parts(lo, hi, np.full(N, N), 8)
    for task, part in enumerate(part_of.tolist()):
        assert begin[part] <= lo[task]
        assert hi[task] <= end[part]
    places = [x + offset[p] for p in range(len(begin)) for x in range(begin[p], end[p])]
    assert places == list(range(len(places)))
    first, behind = kernel.parts_of_events(begin, end, N)
    for x in range(N):
        assert list(range(first[x], behind[x])) == [p for p in range(len(begin)) if begin[p] <= x < end[p]]


def test_entries_are_spread_over_parts_in_their_order() -> None:
    begin, end, rng = np.array([0, 5]), np.array([9, N]), np.random.default_rng(0)
    wanted, order = rng.random(N) < 0.7, rng.permutation(2 * N).astype(np.int32)
    entries, bounds = kernel.spread(order, *kernel.parts_of_events(begin, end, N), 2, wanted, N)
    for p in range(2):
        held = [e for e in order.tolist() if begin[p] <= e % N < end[p] and wanted[e % N]]
        assert entries[bounds[p] : bounds[p + 1]].tolist() == held
    assert kernel.looked_up(order[:4], np.arange(2 * N)).tolist() == order[:4].tolist()


@pytest.mark.parametrize("cuts", [1, 2])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_ranges_of_vertices_hold_the_values_that_follow(seed: int, keyed: bool, cuts: int) -> None:
    rng = np.random.default_rng(seed)
    value, low = rng.integers(0, 8, (2, N))
    cut = np.concatenate([low, low + rng.integers(0, 4, N)])[: cuts * N]
    key_next, key_prev = rng.integers(0, 3, (2, N))
    gives, takes = rng.random((2, N)) < 0.8
    begin, end, offset = np.array([0, 6]), np.array([10, N]), np.array([0, 4])
    total = 20
    segments = kernel.KeySegments(np.empty(0, np.int32), np.empty(0, np.int32), np.ones(2, np.int64))
    if keyed:
        own, target, number = kernel.segments_of_keys(begin, end, offset, total, 3, key_next, key_prev, gives, takes)
        segments = kernel.KeySegments(own, target, number)
    parts = kernel.parts_of_events(begin, end, N)
    values = kernel.spread(np.argsort(value).astype(np.int32), *parts, 2, takes, N)
    entries = kernel.spread(np.argsort(cut).astype(np.int32), *parts, 2, gives, N)
    place, own_begin, own_end, target_begin, target_end = (np.zeros(total, np.int32) for _ in range(5))
    place[:], at_cut = -1, np.zeros((cuts, total), np.int32)
    out = kernel.VertexPlaces(place, own_begin, own_end, at_cut, target_begin, target_end)
    arrays = kernel.IndexParts(begin, end, offset, segments.number)
    ordered = kernel.SortedCuts(*values, *entries, value, cut)
    width = kernel.cut_values(arrays, segments, ordered, gives, keyed, N, out)

    def follows(x: int, y: int) -> bool:
        above = value[y] > cut[x] and (cuts == 1 or value[y] <= cut[x + N])
        return bool(gives[x] and takes[y] and above and (not keyed or key_next[y] == key_prev[x]))

    for p in range(2):
        for x in range(begin[p], end[p]):
            v = x + offset[p]
            last = target_end[v] if cuts == 1 else at_cut[1, v]
            here = [y for y in range(begin[p], end[p]) if at_cut[0, v] <= place[y + offset[p]] < last]
            assert here == [y for y in range(begin[p], end[p]) if follows(x, y)]
            assert place[v] < width[p]
    later = np.arange(1, N + 1)
    arrays = arrays._replace(width=width)
    pairs = {(x, y) for p in range(2) for x in range(begin[p], end[p]) for y in range(x + 1, end[p]) if follows(x, y)}
    latest = np.full(N, -1)
    wanted = [max((x for x, y in pairs if y == z), default=-1) for z in range(N)]
    if cuts == 1:
        shape = shapes.Tails(place, at_cut[0], target_end, own_begin, own_end)
        kernel.latest_of_tails(arrays, later, shape, target_begin, latest)
        assert latest.tolist() == wanted
        nearest, latest = np.full(N, -1), np.full(N, -1)
        kernel.neighbours_of_tails(arrays, later, shape, target_begin, nearest, latest)
        assert (nearest >= 0).tolist() == [any(a == x for a, _ in pairs) for x in range(N)]
        assert (latest >= 0).tolist() == [any(b == x for _, b in pairs) for x in range(N)]
    else:
        kernel.latest_of_ranges(
            arrays, later, shapes.Ranges(place, at_cut[:1], at_cut[1:], np.empty(0, np.int64)), latest
        )
        assert latest.tolist() == wanted


def test_one_large_part_is_placed_by_sorted_values() -> None:
    value, cut = np.random.default_rng(1).integers(0, 9, (2, N))
    values, entries = np.argsort(value), np.argsort(cut)
    place, at_cut = np.full(N, -1), np.full(N, -1)
    number = kernel.place_cuts(entries, np.sort(cut), 0, at_cut)
    kernel.place_values(values, np.sort(value), np.sort(cut), 0, place)
    assert number == len(set(cut.tolist())) + 1
    assert naive.graph_of(N, lambda x, y: place[y] >= at_cut[x]) == naive.graph_of(N, lambda x, y: value[y] > cut[x])


def test_neighbours_of_keys() -> None:
    place, first = np.random.default_rng(2).integers(-1, 3, (2, N)).astype(np.int32)
    parts = kernel.IndexParts(np.array([0]), np.array([N]), np.array([0]), np.array([3]))
    nearest, latest = np.full(N, N), np.full(N, -1)
    shape = shapes.Tails.of_keys(place, first)
    kernel.neighbours_of_tails(parts, np.arange(1, N + 1), shape, first, nearest, latest)
    graph = naive.graph_of(N, lambda x, y: bool(y > x and first[x] >= 0 and place[y] == first[x]))
    assert (nearest < N).tolist() == [bool(row) for row in graph]
    assert (latest >= 0).tolist() == [any(y in row for row in graph) for y in range(N)]
