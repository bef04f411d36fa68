"""The depth-first walk and aggregates over rows."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import random_graph, tasks_of
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import aggregates, rows, walk
from trellis.kernels.list.blocks import BLOCKED, TASK, PathBlocks, make_ready
from trellis.kernels.list.few import list_few, take_row_words
from trellis.kernels.list.lengths import LengthLimits
from trellis.kernels.list.wide import SPARE, copy_wide

N = 13
TASKS = [(0, 9), (3, 13)]


def blocks_of(room: int, compact: bool) -> PathBlocks:
    values, lengths, shared = (np.zeros(room + SPARE, np.int32) for _ in range(3))
    counts, table = np.zeros(N, np.uint64), np.zeros((N, 4), np.int64)
    order, seen = np.empty(len(counts), np.int32), np.zeros(len(counts), np.int64)
    return PathBlocks(np.array([-1, 0]), order, seen, counts, table, values, lengths, shared if compact else None)


def listed(
    graph: TaskGraph, ranges: list[tuple[int, int, int]], blocks: PathBlocks | None = None,
    limits: LengthLimits | None = None, marks: walk.WalkMarks | None = None, room: int = 40, compact: bool = False,
) -> list[naive.Path]:  # fmt: skip
    """The paths of rank ranges (task, first, size), batch by batch in small buffers."""
    task, first, size = (np.array(side) for side in zip(*ranges, strict=True))
    state, _ = walk.walk_of_task(0, N)
    arrays = walk.WalkRanges(task, first.astype(np.uint64), size.astype(np.uint64))
    found: list[naive.Path] = []
    while state.state[walk.RANGE] < len(ranges):
        values, ends, shared = (np.zeros(number + SPARE, np.int32) for number in (room, 5, 5))
        buffers = walk.WalkRows(values, ends, shared if compact else None)
        walk.fill(state, arrays, graph, blocks, limits, marks, buffers, None)
        number, used = state.state[walk.ROWS : walk.VALUES + 1].tolist()
        if compact:
            whole, places = rows.expanded_places(shared[:number], ends[: number + 1])
            found += naive.ragged(values[:used][places], whole[1:])
        else:
            found += naive.ragged(values[:used], ends[1 : number + 1])
    return found


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("room", [0, 300])
@pytest.mark.parametrize("seed", range(3))
def test_rank_ranges_are_listed_in_order(seed: int, room: int, every: bool, compact: bool) -> None:
    graph = random_graph(seed, N, 0.35)
    wanted = [naive.paths_of_task(graph, lo, hi, every=every) for lo, hi in TASKS]
    ranges = [(0, 0, len(wanted[0])), (1, 3, 4), (1, len(wanted[1]) - 2, 2), (0, 1, 1)]
    found = listed(tasks_of(graph, TASKS, every=every), ranges, blocks_of(room, compact), compact=compact)
    assert found == [path for task, first, size in ranges for path in wanted[task][first : first + size]]


@pytest.mark.parametrize(("least", "most"), [(1, 1 << 60), (2, 3)])
@pytest.mark.parametrize(("single", "every"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("seed", range(3))
def test_few_paths_are_counted_and_listed_at_once(seed: int, single: bool, every: bool, least: int, most: int) -> None:
    graph, tasks, group, first_end = random_graph(seed, N, 0.35), [(0, 9), (1, 9), (3, 13)], [0, 0, 2], [0, 6, 3]
    wanted = [
        (where, path)
        for (lo, hi), end, where in zip(tasks, first_end, group, strict=True)
        for path in naive.paths_of_task(graph, lo, hi, first_end=end, single=single, every=every)
        if least <= len(path) <= most
    ]
    counts, arrays = np.zeros(3, np.int64), tasks_of(graph, tasks, single, every, first_end)
    values, offsets, ranks, groups = list_few(arrays, np.array(group), least, most, len(wanted) + 60, counts)
    assert naive.ragged(values, offsets[1:]) == [path for _, path in wanted]
    assert groups.tolist() == [where for where, _ in wanted]
    assert counts.tolist() == [groups.tolist().count(g) for g in range(3)]
    assert ranks.tolist() == [k for number in counts for k in range(number)]
    ids, times, codes = np.arange(N) * 7, np.arange(N) * 2, np.arange(N).astype(np.uint8) % 3
    row_ids, row_codes, firsts, lasts = take_row_words(values, offsets, ids, times, codes)
    assert (row_ids.tolist(), row_codes.tolist()) == (ids[values].tolist(), codes[values].tolist())
    assert firsts.tolist() == [times[path[0]] for _, path in wanted]
    assert lasts.tolist() == [times[path[-1]] for _, path in wanted]
    assert not len(take_row_words(values, offsets, ids, times, codes[:0])[1])
    if wanted:
        assert not len(list_few(arrays, np.array(group), least, most, len(wanted) - 1, np.zeros(3, np.int64))[1])


@pytest.mark.parametrize(("least", "most"), [(1, 2), (3, 3), (2, 1 << 60)])
def test_lengths_are_limited(least: int, most: int) -> None:
    graph = random_graph(4, N, 0.35)
    wanted = [p for lo, hi in TASKS for p in naive.paths_of_task(graph, lo, hi, every=True) if least <= len(p) <= most]
    limits = LengthLimits(np.array([-1]), least, most, np.zeros(N, np.uint64), np.zeros(N, np.int64))
    whole = [(0, 0, 1 << 40), (1, 0, 1 << 40)]
    assert listed(tasks_of(graph, TASKS, every=True), whole, limits=limits) == wanted


@pytest.mark.parametrize("backwards", [False, True])
def test_marks_say_where_paths_start_and_end(backwards: bool) -> None:
    graph, rng = random_graph(5, N, 0.3), np.random.default_rng(5)
    lo, hi = TASKS[1]
    starts, ends = rng.random((2, hi - lo)) < 0.5
    paths = naive.paths_of_task(graph, lo, hi, every=True)
    wanted = [path for path in paths if starts[path[0] - lo] and ends[path[-1] - lo]]
    marks = walk.WalkMarks(starts, ends, False)
    edges = graph
    if backwards:
        marks = walk.WalkMarks(ends, starts, True)
        edges = [[x for x in reversed(range(N)) if y in graph[x]] for y in range(N)]
        wanted.sort(key=lambda path: (path[-1], [-x for x in path[-2::-1]]))
    arrays = tasks_of(graph, TASKS)
    offsets, successors = naive.csr(edges)
    arrays = arrays._replace(offsets=np.array(offsets), successors=np.array(successors, np.int32))
    assert listed(arrays, [(1, 0, 1 << 40)], marks=marks) == wanted


def test_a_walk_can_stand_on_a_path() -> None:
    graph = random_graph(6, N, 0.35)
    wanted = naive.paths_of_task(graph, *TASKS[0], every=True)
    arrays = tasks_of(graph, TASKS, every=True)
    state, ranges = walk.walk_of_task(0, N)
    state.state[walk.READY], state.numbers[walk.LEFT] = 1, 3
    walk.stand_on(np.array(wanted[7], np.int32), state, arrays.offsets, arrays.successors)
    values, ends = np.zeros(100 + SPARE, np.int32), np.zeros(5 + SPARE, np.int32)
    walk.fill(state, ranges, arrays, None, None, None, walk.WalkRows(values, ends, None), None)
    assert naive.ragged(values, ends[1:4]) == wanted[7:10]


def test_wide_copies() -> None:
    source, target = np.arange(40), np.zeros(40, np.int64)
    copy_wide(target, 3, source, 5, 11)
    assert target[3:14].tolist() == list(range(5, 16))


@pytest.mark.parametrize("seed", range(3))
def test_aggregates_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(0, 5, 8))
    size = int(ends[-1])
    valid, whole, real = rng.random(size) < 0.7, rng.integers(-9, 9, size), rng.random(size) - 0.5
    codes = rng.integers(-1, 5, size)
    parts = [range(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    kept = [[i for i in part if valid[i]] for part in parts]
    sums, found, bad = aggregates.sum_integers(ends, whole, valid)
    assert (sums.tolist(), found.tolist(), bad) == ([sum(whole[k]) for k in kept], [bool(k) for k in kept], -1)
    totals, counts, hard = aggregates.fold_floats(ends, real, valid, False)
    assert (totals.tolist(), counts.tolist()) == ([fsum(real[k]) for k in kept], [len(k) for k in kept])
    assert not hard.any()
    means = aggregates.fold_floats(ends, real, valid, True)[0].tolist()
    assert means == pytest.approx([fsum(real[k]) / len(k) if k else 0.0 for k in kept], rel=1e-15)
    for largest, best in ((False, min), (True, max)):
        places = [best((i for i in part if codes[i] >= 0), key=lambda i: codes[i], default=-1) for part in parts]
        assert aggregates.extreme_places(ends, codes, largest).tolist() == places


def test_a_sum_that_overflows_is_found() -> None:
    ends, values = np.array([1, 3]), np.array([5, 2**63 - 1, 1])
    assert aggregates.sum_integers(ends, values, np.ones(3, np.bool_))[2] == 1


@pytest.mark.parametrize("every", [False, True])
def test_blocks_hold_the_paths_from_each_event(every: bool) -> None:
    graph = random_graph(2, N, 0.35)
    lo, hi = TASKS[1]
    blocks = blocks_of(3000, False)
    make_ready(tasks_of(graph, TASKS, every=every), 1, np.uint64(10_000), blocks, None)
    assert blocks.ready[TASK] == 1
    for x in range(lo, hi):
        wanted = naive.paths_of_task(graph, x, hi, single=True, every=every)
        assert blocks.counts[x - lo] == len(wanted)
        if wanted and len(wanted) <= blocks.ready[BLOCKED]:
            value, row = blocks.table[x - lo, :2]
            lengths = blocks.lengths[row : row + len(wanted)]
            assert naive.ragged(blocks.values[value:], np.cumsum(lengths)) == wanted
