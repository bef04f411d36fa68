"""Kernels of the papers beside naive versions."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import arrays_of, random_graph
from trellis.kernels.list.wide import SPARE
from trellis.kernels.papers.abi import breadth, build, edges, join
from trellis.kernels.papers.cet import baseline, cuts, graph, grow, levels
from trellis.kernels.papers.cet import join as cet_join
from trellis.kernels.papers.debs2016 import lines, posts, tables

N = 12


# --- ABI ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_to_edges_lead_to_the_values_that_may_follow(seed: int, explicit: bool) -> None:
    rng, top = np.random.default_rng(seed), 9
    value, low = rng.integers(-1, top, N), rng.integers(0, top, N)
    high = np.minimum(low + rng.integers(0, 5, N), top)
    vertices, vertex, first, last, _ = build.build_dynamically(value, low, high, N, top, explicit, 1 << 20)
    for x in range(N):
        held = {int(value[y]) for y in range(N) if value[y] >= 0 and first[x] <= vertex[y] < last[x]}
        assert held == {int(v) for v in value if v >= 0 and low[x] <= v < high[x]}
    points = sorted({int(c) for c in [*low, *high] if 0 < c < top})
    merged = build.merge_distinct(np.sort(low), np.sort(high))
    assert merged.tolist() == sorted({*low.tolist(), *high.tolist()})
    found = np.empty(N, np.int64)
    build.find_vertices(np.array(points), value, 0, N, found)
    assert found.tolist() == [sum(c <= v for c in points) if v >= 0 else -1 for v in value]
    begins = np.searchsorted(np.sort(vertex), np.arange(vertices + 1)) - np.count_nonzero(vertex < 0)
    held = np.empty(begins[-1], np.int32)
    build.gather_events(vertex, 0, vertices, begins[:-1], held)
    assert held.tolist() == [y for v in range(vertices) for y in range(N) if vertex[y] == v]
    none = np.empty((0, N), np.int64)
    given = np.array([0, N]), 0, np.arange(1, N + 1), np.full(N, N), first, last, begins, held, none, none, none, none
    degrees, marks = np.zeros(N, np.int64), np.empty(N, np.bool_)
    total = edges.follow_edges(*given, marks, degrees, np.empty(0, np.int32))
    successors = np.empty(total, np.int32)
    edges.follow_edges(*given, marks, degrees, successors)
    follows = naive.graph_of(N, lambda x, y: bool(y > x and low[x] <= value[y] < high[x]))
    assert successors.tolist() == [y for row in follows for y in row]
    starts, ends = edges.pre_filter(np.arange(N), vertex, first, last, begins, held, 0, vertices)
    led_to = {y for row in follows for y in row}
    assert starts.tolist() == [x not in led_to for x in range(N)]
    assert ends.tolist() == [not row for row in follows]


def test_breadth_first_extends_every_path_by_one_event() -> None:
    graph_, hi = random_graph(1, N, 0.4), 9
    offsets, successors = arrays_of(graph_)
    paths = np.array([[0, 1], [0, 3], [2, 5]], np.int32)
    wanted = [[*p, y] for p in paths.tolist() for y in graph_[p[-1]] if y < hi]
    longer = np.empty((breadth.count_longer(paths, hi, offsets, successors), 3), np.int32)
    breadth.extend(paths, hi, offsets, successors, longer)
    assert longer.tolist() == wanted


@pytest.mark.parametrize("seed", range(3))
def test_trends_are_joined_of_sub_sequences(seed: int) -> None:
    graph_, rng = random_graph(seed, 10, 0.35), np.random.default_rng(seed)
    offsets, successors = arrays_of(graph_)
    trends = naive.paths_of_task(graph_, 0, 10)
    led_to, anchored = {y for row in graph_ for y in row}, rng.random(10) < 0.4
    ends = np.array([not row for row in graph_])
    numbers = join.measure(0, 10, offsets, successors, anchored, ends)
    assert numbers[3].tolist() == [len(naive.paths_of_task(graph_, x, 10, single=True)) for x in range(10)]
    starts = [x for x in range(10) if x not in led_to]
    heads = np.array([*starts, *(x for x in range(10) if anchored[x] and x in led_to)])
    subs = numbers[1][heads].astype(int)
    sub_begins, value_begins = np.cumsum([0, *subs]), np.cumsum([0, *numbers[2][heads].astype(int)])
    sub_ends, values = np.empty(sub_begins[-1], int), np.empty(value_begins[-1], np.int32)
    window = 0, 10, offsets, successors, anchored, ends
    join.find_subs(heads, 0, len(heads), *window, numbers[0], sub_begins, value_begins, sub_ends, values)
    for sub in naive.ragged(values, sub_ends):
        assert all(b in graph_[a] for a, b in itertools.pairwise(sub))
        assert not anchored[list(sub[1:])].any()
    head_of = np.full(10, -1)
    head_of[heads] = np.arange(len(heads))
    joints, none = np.zeros(11, int), np.empty(0, int)
    given = (
        False,
        0,
        10,
        none,
        none,
        none,
        none,
        none,
        heads,
        head_of,
        sub_begins,
        offsets,
        successors,
        anchored,
        joints,
    )
    runs = np.empty((join.find_joints(*given, np.empty((0, 2), int)), 2), int)
    if len(runs):
        join.find_joints(*given, runs)
    lasts = [sub[-1] for sub in naive.ragged(values, sub_ends)]
    weight = np.cumsum([0, *(int(ends[x] + numbers[5][x]) for x in lasts)])
    first = int(sub_begins[len(starts)])
    assert weight[first] == len(trends)
    joined = join.join_subs(
        0, len(trends), first, weight, sub_ends, values, joints, np.concatenate([runs, [[0, 0]]]), 0, 10, ends, 100
    )
    assert sorted(naive.ragged(*joined)) == sorted(trends)


# --- CET ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_backwards_and_its_longest_paths(seed: int) -> None:
    graph_ = random_graph(seed, N, 0.3)
    before_offsets, before = graph.predecessors(*arrays_of(graph_))
    assert naive.ragged(before, before_offsets[1:]) == [
        tuple(x for x in reversed(range(N)) if y in graph_[x]) for y in range(N)
    ]
    lo, hi, ok = np.array([0, 4]), np.array([8, N]), np.ones(N, np.bool_)
    longest, number = graph.longest_paths(lo, hi, ok, *arrays_of(graph_))
    for task, (a, b) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)):
        assert longest[task] == max(map(len, naive.paths_of_task(graph_, a, b)))
        assert number[task] == sum(a <= y < b for x in range(a, b) for y in graph_[x])


@pytest.mark.parametrize("seed", range(3))
def test_partial_trends_grow_and_exits_are_kept(seed: int) -> None:
    graph_, ok, (u, v) = random_graph(seed, N, 0.3), np.ones(N, np.bool_), (2, 10)
    forwards = arrays_of(graph_)
    both = graph.TwoWayGraph(*forwards, *graph.predecessors(*forwards), ok)
    inside = [[y for y in row if u <= y < v] if u <= x < v else [] for x, row in enumerate(graph_)]
    entries = [x for x in range(u, v) if not any(x in inside[w] for w in range(u, v))]
    partial = [p for p in naive.paths_of_task(inside, u, v, every=True) if p[0] in entries]
    whole = [p for p in partial if not inside[p[-1]]]
    sizes = [len(partial), sum(map(len, partial)), len(whole), sum(map(len, whole))]
    assert list(grow.sizes(u, v, False, both)) == sizes
    values, ends = np.zeros(sizes[1], np.int32), np.zeros(sizes[0], np.int64)
    first_row, later_row = np.zeros(v - u + 1, int), np.zeros(v - u, int)
    grow.grow(u, v, False, both, values, ends, 0, 0, first_row, later_row)
    assert sorted(naive.ragged(values, ends)) == sorted(partial)
    begins, laters, stops = np.zeros((3, N), int)
    kept = grow.keep_exits(u, v, False, both, values, ends, 0, 0, first_row, later_row, begins, laters, stops)
    assert kept == (sizes[3], sizes[2])
    assert sorted(naive.ragged(values, ends[: kept[1]])) == sorted(whole)


@pytest.mark.parametrize("seed", range(3))
def test_the_baseline_finds_the_maximal_trends(seed: int) -> None:
    value = np.random.default_rng(seed).integers(0, 9, N)
    follows = naive.graph_of(N, lambda x, y: bool(y > x and value[y] > value[x]))
    direct = naive.direct_edges(N, lambda x, y: y in follows[x])
    backwards = graph.predecessors(*arrays_of(follows))
    values, ends, _, bound = baseline.baseline(0, N, np.ones(N, np.bool_), *backwards, 1 << 20, 1 << 30)
    assert bound == 0
    assert sorted(naive.ragged(values, ends)) == sorted(naive.paths_of_task(direct, 0, N))
    offsets, successors = arrays_of(follows)
    flags = levels.direct_flags(offsets, successors, *arrays_of(direct))
    assert flags.tolist() == [y in direct[x] for x in range(N) for y in follows[x]]
    rows, whole = np.array([[0], [1]], np.int32), np.array([True, False])
    number = breadth.count_longer(rows, N, offsets, successors)
    longer, longer_whole = np.empty((number, 2), np.int32), np.empty(number, np.bool_)
    levels.lengthen(rows, whole, N, offsets, successors, flags, longer, longer_whole)
    assert longer.tolist() == [[x, y] for x in range(2) for y in follows[x]]
    assert longer_whole.tolist() == [x == 0 and y in direct[x] for x in range(2) for y in follows[x]]


@pytest.mark.parametrize("seed", range(3))
def test_cuts_and_numbers_of_paths(seed: int) -> None:
    graph_, ok = random_graph(seed, N, 0.15), np.ones(N, np.bool_)
    forwards = arrays_of(graph_)
    backwards = graph.predecessors(*forwards)
    both = graph.TwoWayGraph(*forwards, *backwards, ok)
    before = naive.ragged(backwards[1], backwards[0][1:])
    forbidden = [
        any(
            x < b <= y and (any(z < b for z in graph_[x]) or any(w >= b for w in before[y]))
            for x in range(N)
            for y in graph_[x]
        )
        for b in range(N + 1)
    ]
    assert cuts.forbidden_cuts(0, N, both).tolist() == forbidden
    lo, hi = np.array([0, 3]), np.array([9, N])
    bases = np.array([0, 9, 18])
    to, on = cuts.paths_of_windows(lo, hi, bases, both)
    for w, (a, b) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)):
        trends = naive.paths_of_task(graph_, a, b)
        for x in range(a, b):
            assert to[bases[w] + x - a] == len({p[: p.index(x) + 1] for p in trends if x in p})
            assert on[bases[w] + x - a] == len(naive.paths_of_task(graph_, x, b, single=True))


@pytest.mark.parametrize("seed", range(4))
def test_trends_are_joined_of_graphlets_and_what_these_cost(seed: int) -> None:
    """Three graphlets of four events; those that trends enter or leave in the middle keep partial trends for it."""
    graph_, ok, bounds = random_graph(seed, N, 0.3), np.ones(N, np.bool_), np.array([0, 4, 8, N])
    forwards = arrays_of(graph_)
    both = graph.TwoWayGraph(*forwards, *graph.predecessors(*forwards), ok)
    values, ends = np.zeros(4000, np.int32), np.zeros(1000, np.int64)
    begins, laters, stops = np.zeros((3, N), np.int64)
    used = rows = 0
    for u, v in itertools.pairwise(bounds):
        first_row, later_row = np.empty((2, v - u + 1), np.int64)
        grow.grow(u, v, True, both, values, ends, used, rows, first_row, later_row)
        used, rows = grow.keep_exits(
            u, v, True, both, values, ends, used, rows, first_row, later_row, begins, laters, stops
        )
    stored = cet_join.StoredTrends(values, ends, begins, laters, stops, bounds[np.arange(N) // 4])
    state, places = np.zeros(cet_join.STATE, np.int64), np.zeros((3, 4), np.int64)
    walk = cet_join.JoinWalk(state, *places, np.zeros(N + SPARE, np.int32))
    found: list[naive.Path] = []
    over = False
    while not over:  # in small buffers
        out, out_ends = np.zeros(2 * N + SPARE, np.int32), np.zeros(3, np.int32)
        number, _, over = cet_join.join(walk, 0, N, both, stored, out, out_ends)
        found += naive.ragged(out, out_ends[:number])
    trends = naive.paths_of_task(graph_, 0, N)
    assert sorted(found) == sorted(trends)
    lo, hi, base = np.array([0]), np.array([N]), np.array([0])
    to, on = cuts.paths_of_windows(lo, hi, np.array([0, N]), both)
    costs = np.empty((2, cuts.COSTS))
    assert cuts.graphlet_costs(bounds, 1, 3, 1e9, lo, hi, base, to, on, both, costs) == 2
    for cost, v in zip(costs, (8, N), strict=True):
        inside = [[y for y in row if 4 <= y < v] if 4 <= x < v else [] for x, row in enumerate(graph_)]
        before = [[x for x in range(N) if y in graph_[x]] for y in range(N)]
        entries = [y for y in range(4, v) if not before[y] or before[y][0] < 4]
        partial = [p for p in naive.paths_of_task(inside, 4, v, every=True) if p[0] in entries]
        kept = [p for p in partial if not graph_[p[-1]] or graph_[p[-1]][-1] >= v]
        assert cost[cuts.EDGES] == sum(map(len, inside))
        assert (cost[cuts.UPDATES], cost[cuts.GROWN]) == (len(partial), sum(map(len, partial)))
        assert cost[cuts.KEPT] == sum(map(len, kept))
        assert cost[cuts.VISITS] == sum(
            sum(4 <= b < v and not 4 <= a < v for a, b in itertools.pairwise((-1, *p))) for p in trends
        )


# --- DEBS 2016 ---------------------------------------------------------------------------------------------------


def test_hash_tables_are_dictionaries() -> None:
    rng = np.random.default_rng(0)
    ids, pairs = np.full((64, 2), tables.FREE), np.full((64, 3), tables.FREE)
    known: dict[int, int] = {}
    known_pairs: dict[tuple[int, int], int] = {}
    for key, other, value in rng.integers(0, 6, (200, 3)).tolist():
        assert tables.put(ids, key, value) == (key not in known)
        known[key] = value
        if value < 3:
            tables.put_pair(pairs, key, other, value)
            known_pairs[key, other] = value
        else:
            tables.drop_pair(pairs, key, other)
            known_pairs.pop((key, other), None)
    larger, larger_pairs = np.empty((128, 2), np.int64), np.empty((128, 3), np.int64)
    tables.refill(ids, larger)
    tables.refill_pairs(pairs, larger_pairs)
    for a in range(7):
        for table in (ids, larger):
            assert tables.find(table, a) == known.get(a, tables.FREE)
        for b in range(7):
            for table in (pairs, larger_pairs):
                assert tables.find_pair(table, a, b) == known_pairs.get((a, b), tables.FREE)


def test_names_of_live_posts_are_packed() -> None:
    names = [b"Anna", b"", b"Bo", b"Carl"]
    rows, store = np.zeros((4, posts.NAME_SIZE + posts.NAME + 1), np.int64), b"".join(names)
    rows[:, posts.NAME], rows[:, posts.NAME_SIZE] = [0, 4, 4, 6], [len(name) for name in names]
    live, packed = np.array([3, 0, 1, 9]), np.zeros(20, np.uint8)
    size = posts.pack_names(rows, live, 3, np.frombuffer(store, np.uint8), packed)
    assert packed[:size].tobytes() == b"CarlAnna"
    assert [rows[slot, posts.NAME] for slot in live[:3]] == [0, 4, 8]


def test_times_are_read_and_written() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for millis in [0, 951_782_400_123, 1_456_789_012_345, -62_135_596_800_000 + 86_400_000 * 59]:
        shown = (epoch + timedelta(milliseconds=millis)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis % 1000:03d}+0000"
        text = np.frombuffer(shown.zfill(lines.TIME_SIZE).encode(), np.uint8)
        assert lines.read_time(text, 0, lines.TIME_SIZE) == millis
        out = np.zeros(40, np.uint8)
        end = lines.write_time(out, 0, millis)
        assert bytes(out[:end]) == bytes(text)
    wrong = np.frombuffer(b"2016-02-30T00:00:00.000+0000", np.uint8)
    assert lines.read_time(wrong, 0, lines.TIME_SIZE) == lines.NEVER


def test_lines_have_the_time_of_the_one_before_where_they_have_none() -> None:
    data = b"1970-01-01T00:00:00.007+0000|1|2\nnothing\n1970-01-01T00:00:01.000+0000|3|4"
    begins, ends, times = lines.line_times(np.frombuffer(data, np.uint8))
    assert [data[a:b].strip() for a, b in zip(begins, ends, strict=True)] == data.split(b"\n")
    assert times.tolist() == [7, 7, 1000]
