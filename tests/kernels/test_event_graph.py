"""Edges of the event graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import arrays_of, random_events, random_graph
from trellis.kernels.event_graph import edges as kernel
from trellis.kernels.event_graph import positions
from trellis.kernels.event_graph.edges import ANY, NEXT, EdgeCodes
from trellis.kernels.events.partitions import later_times, partition_ends


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("policy", [ANY, NEXT])
@pytest.mark.parametrize("seed", range(3))
def test_edges_are_the_pairs_that_the_codes_allow(seed: int, policy: int, keyed: bool) -> None:
    events, rng = random_events(seed), np.random.default_rng(seed)
    n = len(events.times)
    above, below, differ_next, differ_prev = rng.integers(-1, 4, (4, 1, n))
    either = rng.integers(0, 4, (2, 1, 3, n))
    gives, takes = rng.random((2, n)) < 0.9
    key_next, key_prev = rng.integers(-1, 3, (2, n))
    by_key = np.argsort(key_next, kind="stable")
    key_runs = np.searchsorted(key_next[by_key], np.arange(4))
    none = np.empty(0, np.int64)
    codes = EdgeCodes(
        policy, later_times(events.times, events.bounds), partition_ends(events.bounds, n), gives, takes,
        key_prev if keyed else none, key_runs if keyed else none, by_key if keyed else none, above, below,
        differ_next, differ_prev, either[0], either[1],
    )  # fmt: skip

    def follows(x: int, y: int) -> bool:
        differ = differ_next[0, y] >= 0 and differ_prev[0, x] >= 0 and differ_next[0, y] != differ_prev[0, x]
        equal = not keyed or (key_prev[x] >= 0 and key_next[y] == key_prev[x])
        some = (either[0, 0, :, y] > either[1, 0, :, x]).any()
        able = events.is_later(x, y) and gives[x] and takes[y]
        return bool(able and above[0, y] > below[0, x] and differ and equal and some)

    wanted = naive.graph_of(n, follows)
    if policy == NEXT:
        wanted = [row[:1] for row in wanted]
    degrees = np.zeros(n, np.int64)
    total = kernel.edges_of_rows(0, n, codes, degrees, np.empty(0, np.int32))
    assert (total, degrees.tolist()) == (sum(map(len, wanted)), [len(row) for row in wanted])
    successors = np.empty(total, np.int32)
    if total:
        kernel.edges_of_rows(0, n, codes, degrees, successors)
    assert successors.tolist() == [y for row in wanted for y in row]
    assert kernel.sources_of(0, degrees, total).tolist() == [x for x, row in enumerate(wanted) for _ in row]


@pytest.mark.parametrize("only_first", [False, True])
def test_edges_are_kept_by_flags(only_first: bool) -> None:
    graph = random_graph(1)
    degrees, (_, successors) = np.array([len(row) for row in graph]), arrays_of(graph)
    keep = np.random.default_rng(2).random(len(successors)) < 0.5
    flags = iter(keep.tolist())
    wanted = [[y for y in row if next(flags)] for row in graph]
    wanted = [row[:1] for row in wanted] if only_first else wanted
    left = kernel.keep_edges(degrees, successors, keep, only_first)
    assert degrees.tolist() == [len(row) for row in wanted]
    assert successors[:left].tolist() == [y for row in wanted for y in row]


@pytest.mark.parametrize("columns", [3, 64])
@pytest.mark.parametrize("seed", range(4))
def test_the_reduction_leaves_out_edges_with_a_detour(seed: int, columns: int) -> None:
    graph = random_graph(seed, 14, 0.5)
    n, (offsets, successors) = len(graph), arrays_of(graph)
    wanted = naive.direct_edges(n, lambda x, y: y in graph[x])
    assert kernel.latest_predecessors(offsets, successors).tolist() == [
        max((x for x in range(n) if y in graph[x]), default=-1) for y in range(n)
    ]
    read, kept = offsets[:-1].copy(), np.zeros(n, np.int64)
    for column in range(0, n, columns):
        end = min(column + columns, n)
        reach = np.empty((end, 1), np.uint64)
        kernel.reduce_columns(0, column, end, offsets, successors, read, kept, reach)
    total = kernel.pack_rows(offsets, kept, successors)
    assert kept.tolist() == [len(row) for row in wanted]
    assert successors[:total].tolist() == [y for row in wanted for y in row]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_of_a_pattern_graph_has_the_same_paths(seed: int, every: bool) -> None:
    """Vertices that begin or do not, and end or do not, are written as copies; their paths are those of the graph."""
    graph, n = random_graph(seed, 9, 0.35), 9
    offsets, targets = arrays_of(graph)
    rng = np.random.default_rng(seed)
    may_begin, may_end = rng.random((2, n)) < 0.6
    times, none = np.arange(n), np.full(1, -1)
    whole = positions.VertexGraph(times, np.zeros(n, np.int64), times, may_begin, may_end, offsets, targets, none[:0])
    ranges = positions.MatchRanges(np.array([0]), np.array([n]), none, np.array([n]), np.array([0]), none, none[:0])
    empty = np.empty((0, 2, n), np.int64)
    carried = positions.AnchorConditions(np.empty((3, 0), np.int64), empty, empty[:, 0], empty[:, 0], empty)
    flags, visited = np.zeros(n, np.uint8), np.empty(n, np.int64)
    vertices, edges = positions.measure(whole, ranges, carried, every, flags, visited)
    out = np.empty(vertices, np.int64), np.empty(vertices, np.int64)
    out_offsets, out_targets = np.zeros(vertices + 1, np.int64), np.empty(edges, np.int32)
    bounds, ambiguous = np.empty(2, np.int64), np.zeros(1, np.bool_)
    written = positions.write(
        whole, ranges, carried, every, flags, visited, np.zeros(n, np.int64), np.zeros(1, np.int64), ambiguous, bounds,
        (*out, out_offsets, out_targets),
    )  # fmt: skip
    assert written == (vertices, edges)
    assert bounds.tolist() == [0, vertices]
    copies = [out_targets[a:b].tolist() for a, b in itertools.pairwise(out_offsets)]
    found = [tuple(out[0][v] for v in path) for path in naive.paths_of_task(copies, 0, vertices)]
    wanted = [
        path
        for path in naive.paths_of_task(graph, 0, n, every=True)
        if may_begin[path[0]] and may_end[path[-1]] and (every or _cannot_go_on(graph, may_begin, may_end, path))
    ]
    assert sorted(found) == sorted(wanted)


def _cannot_go_on(graph: naive.Graph, may_begin: np.ndarray, may_end: np.ndarray, path: naive.Path) -> bool:
    """Whether no match has this one as its end, and none as its beginning."""
    paths = naive.paths_of_task(graph, 0, len(graph), every=True)
    before = any(p[0] != path[0] and p[-1] == path[0] and len(p) > 1 and may_begin[p[0]] for p in paths)
    behind = any(p[-1] != path[-1] and p[0] == path[-1] and len(p) > 1 and may_end[p[-1]] for p in paths)
    return not before and not behind


@pytest.mark.parametrize("seed", range(4))
def test_where_paths_begin_and_end(seed: int) -> None:
    graph, rng = random_graph(seed, 9, 0.3), np.random.default_rng(seed)
    n, (offsets, targets) = len(graph), arrays_of(graph)
    marked = rng.random(n) < 0.4
    paths = naive.paths_of_task(graph, 0, n, every=True)
    ending = [min((p[-1] for p in paths if p[0] == v and marked[p[-1]]), default=n) for v in range(n)]
    ending = [v if marked[v] else end for v, end in enumerate(ending)]
    assert positions.nearest_ends(offsets, targets, marked).tolist() == ending
    events = np.sort(rng.integers(0, 6, n))
    begins = [max((events[p[0]] for p in paths if p[1:] and p[-1] == v and marked[p[0]]), default=-1) for v in range(n)]
    assert positions.latest_begins(events, offsets, targets, marked).tolist() == begins
    first_ends, noted = rng.integers(0, 7, 6), dict.fromkeys(range(6), 6)
    for path in naive.paths_of_task(graph, 0, n):
        noted[events[path[0]]] = min(noted[events[path[0]]], events[path[-1]])
    wanted = [min(first_ends[x], noted[x]) for x in range(6)]
    kernel.note_first_ends(offsets, targets, events, first_ends)
    assert first_ends.tolist() == wanted


def test_vertices_in_another_order_have_the_same_edges() -> None:
    graph = random_graph(2, 8, 0.4)
    order = np.random.default_rng(2).permutation(8)
    offsets, targets = positions.reordered(order, *arrays_of(graph))
    found = [[order[t] for t in targets[a:b]] for a, b in itertools.pairwise(offsets)]
    assert found == [graph[v] for v in order]


@pytest.mark.parametrize("seed", range(3))
def test_edges_of_all_steps_are_joined(seed: int) -> None:
    """Two positions, and steps from 0 to 0, from 0 to 1 and from 1 to 1, each with edges of its own."""
    n, steps = 6, [(0, 0), (0, 1), (1, 1)]
    graphs = [random_graph(seed + 10 * s, n, 0.4) for s in range(3)]
    events, at = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    flat = [naive.csr(graph) for graph in graphs]
    rows = np.array([np.array(flat[s][0]) + sum(len(flat[r][1]) for r in range(s)) for s in range(3)])
    successors = np.array([y for _, targets in flat for y in targets], np.int32)
    vertex_of = np.array([[2 * x + p for x in range(n)] for p in range(2)])
    edges = positions.StepEdges(np.array([0, 2, 3]), np.array([0, 1, 1]), rows, successors)
    wanted = [
        sorted(2 * y + q for s, (p, q) in enumerate(steps) if p == at[v] for y in graphs[s][events[v]])
        for v in range(2 * n)
    ]
    offsets, targets = positions.join_edges(events, at, edges, vertex_of)
    assert [targets[a:b].tolist() for a, b in itertools.pairwise(offsets)] == wanted


@pytest.mark.parametrize("seed", range(3))
def test_events_are_bound_to_positions(seed: int) -> None:
    """Of one event the vertex at position 1, which only ends results, comes before that at position 0."""
    n, rng = 6, np.random.default_rng(seed)
    graph, usable = random_graph(seed, n, 0.5), rng.random((2, n)) < 0.7
    graph = [[y for y in row if usable[0, x] and usable[1, y]] for x, row in enumerate(graph)]
    rows, successors = naive.csr(graph)
    steps = positions.StepEdges(np.array([0, 1, 1]), np.array([1]), np.array([rows]), np.array(successors, np.int32))
    roles = np.array([positions.BEGINS, positions.ENDS | positions.INNER], np.uint8)
    events, at, begins, ends, offsets, targets, inner = positions.bind_events(usable, np.array([1, 0]), roles, steps)
    wanted = [(x, p) for x in range(n) for p in (1, 0) if usable[p, x]]
    assert [*zip(events.tolist(), at.tolist(), strict=True)] == wanted
    assert begins.tolist() == [p == 0 for _, p in wanted]
    assert ends.tolist() == [p == 1 for _, p in wanted]
    assert inner.tolist() == [v for v, (_, p) in enumerate(wanted) if p == 1]
    after = [[wanted.index((y, 1)) for y in graph[x]] if p == 0 else [] for x, p in wanted]
    assert [targets[a:b].tolist() for a, b in itertools.pairwise(offsets)] == after


@pytest.mark.parametrize("seed", range(8))
def test_ranges_cover_events(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 12
    lo = rng.integers(0, n + 1, 4)
    hi = np.minimum(lo + rng.integers(0, 5, 4), n)
    until = np.minimum(np.arange(n) + rng.integers(1, 6, n), n)
    rows, bounds, new_lo, new_hi, new_until = positions.cover(lo, hi, until)
    covered = sorted({x for a, b in zip(lo, hi, strict=True) for x in range(a, b)})
    assert rows.tolist() == covered
    ranges = [rows[a:b].tolist() for a, b in zip(new_lo, new_hi, strict=True)]
    assert ranges == [[*range(a, b)] for a, b in zip(lo, hi, strict=True)]
    joined = [
        (x, y) for x, y in itertools.pairwise(covered) if any(a <= x and y < b for a, b in zip(lo, hi, strict=True))
    ]
    parts = [k for k, y in enumerate(covered) if k == 0 or (covered[k - 1], y) not in joined] or [0]
    assert bounds.tolist() == [*parts, len(covered)]
    for k, x in enumerate(covered):
        end = next(bound for bound in bounds.tolist() if bound > k)
        assert new_until[k] == min(until[x] - x + k, end)


def test_vertices_are_spread_over_the_results_that_they_may_be_on() -> None:
    rng, n, places = np.random.default_rng(4), 9, 4
    events, at = np.divmod(np.flatnonzero(rng.random(places * n) < 0.7), places)  # nothing is asked of position 3
    keys, above, below, differ = (rng.integers(-1, 3, shape) for shape in ((1, 2, n), (1, n), (1, n), (1, 2, n)))
    carried = positions.AnchorConditions(np.array([[1], [2], [1]]), keys, above, below, differ)
    lo, hi, only = np.array([0, 2]), np.array([len(events) - 3, len(events)]), np.array([0, 3])
    ranges = positions.MatchRanges(lo, hi, only, hi, lo, np.array([0, 1, 3]), np.array([0, 3, 5]))

    def is_on(w: int, v: int) -> bool:
        a, x = only[w], events[v]
        at_1 = keys[0, 0, x] >= 0 and keys[0, 0, x] == keys[0, 1, a]
        at_1 = at_1 and differ[0, 0, x] >= 0 and differ[0, 1, a] >= 0 and differ[0, 0, x] != differ[0, 1, a]
        begins = x in ranges.starts[ranges.begin[w] : ranges.begin[w + 1]]
        return bool([begins, at_1, above[0, x] > below[0, a], True][at[v]])

    every = [[v for v in range(lo[w], hi[w]) if is_on(w, v)] for w in range(2)]
    wanted = [some[: 1 + max((i for i, v in enumerate(some) if at[v] == 2), default=-1)] for some in every]
    rows, sizes = np.empty(2 * len(events), np.int64), np.empty(2, np.int64)
    free, lasts = np.array([False, False, False, True]), np.array([False, False, True, False])
    number = positions.spread_vertices(ranges, events, at, free, 0, lasts, carried, rows, sizes)
    assert sizes.tolist() == [len(some) for some in wanted]
    assert rows[:number].tolist() == [v for some in wanted for v in some]


def test_vertices_are_laid_out() -> None:
    """Two parts of three vertices each; those of arrival 1 get the value of their event, and the base of the part."""
    begin, end, offset, event_offset = np.array([0, 3]), np.array([3, 6]), np.array([0, 0]), np.array([0, 4])
    events, arrivals = np.array([0, 1, 2, 0, 1, 2]), np.array([1, 0, 1, 1, 1, 0])
    values, out = np.array([5, 6, -1, 9, 7, 8, 4], np.int32), np.full(6, -9, np.int32)
    positions.lay_out(
        begin, end, offset, event_offset, events, arrivals, np.array([False, True]), values, np.array([10, 20]), out
    )
    assert out.tolist() == [15, -9, -1, 27, 28, -9]
