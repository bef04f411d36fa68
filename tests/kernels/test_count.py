"""Numbers of paths, by every shape of the relation and every algebra, beside all paths listed."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import arrays_of, random_graph, tasks_of
from trellis.kernels.count import passes, paths, shapes
from trellis.kernels.count.abreast import count_abreast
from trellis.kernels.count.algebra import NO_PATH, Floats, Logs, lengths, modulo, wrapping
from trellis.kernels.count.large import count_large
from trellis.kernels.event_graph.edges import EdgeLists, latest_predecessors

N = 14
TASKS = [(0, 9), (2, 11), (5, 14)]
PRIME = 2**31 - 1


class Relation:
    """What may follow what, by random codes: one shape, and the graph that it stands for."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.later = np.minimum(np.arange(N) + rng.integers(1, 3, N), N)
        self.later = np.maximum.accumulate(self.later)
        starts = np.flatnonzero(np.diff(self.later, prepend=-1))  # events of one time have one `later`
        self.later = np.append(starts, N)[np.searchsorted(starts, np.arange(N), side="right")]
        code = rng.integers(0, 6, N).astype(np.int32)
        zero, six = np.zeros(N, np.int32), np.full(N, 6, np.int32)
        above, below = rng.integers(0, 5, (2, N))
        keys, low = rng.integers(-1, 3, N).astype(np.int32), rng.integers(0, 3, (2, N)).astype(np.int32)
        low[1] += 3
        high = low + rng.integers(0, 4, (2, N)).astype(np.int32)
        high[0], high[1] = np.minimum(high[0], 3), np.minimum(high[1], 6)
        reach = np.maximum.accumulate(self.later[np.minimum(np.arange(N) + rng.integers(0, 5, N), N - 1)])
        self.width = 6
        graph = {
            "edges": lambda x, y: code[y] > code[x],
            "tails": lambda x, y: code[y] > code[x],
            "keys": lambda x, y: keys[x] >= 0 and code[y] == keys[x],
            "ranges": lambda x, y: any(low[r, x] <= code[y] < high[r, x] for r in range(2)),
            "gap": lambda x, y: y < reach[x] and any(low[r, x] <= code[y] < high[r, x] for r in range(2)),
            "pairs": lambda x, y: code[y] > code[x] and above[y] > below[x],
            "either": lambda x, y: code[y] > code[x] or above[y] > below[x],
        }[kind]
        self.graph = naive.graph_of(N, lambda x, y: bool(y >= self.later[x] and graph(x, y)))
        self.offsets, self.successors = arrays_of(self.graph)
        tails = (code, code + 1, six, zero, six)
        by_kind: dict[str, Any] = {
            "edges": EdgeLists(self.offsets, self.successors),
            "tails": shapes.Tails(*(a.astype(np.int32) for a in tails)),
            "keys": shapes.Tails.of_keys(code, keys),
            "ranges": shapes.Ranges(code, low, high, np.empty(0, np.int64)),
            "gap": shapes.Ranges(code, low, high, reach),
            **{
                name: shapes.Pairs(
                    *(a.astype(np.int32) for a in tails), above, below,
                    *(np.argsort(-a, kind="stable").astype(np.int32) for a in (above, below)), zero, name == "either",
                )
                for name in ("pairs", "either")
            },
        }  # fmt: skip
        self.shape = by_kind[kind]

    def events(self) -> shapes.EventNeighbours:
        nearest = passes.first_successors(self.offsets, self.successors)
        return shapes.EventNeighbours(
            self.later, nearest, latest_predecessors(self.offsets, self.successors), np.ones(N, bool)
        )

    def tasks(self, single: bool, every: bool, first_end: list[int]) -> shapes.PassTasks:
        lo, hi = (np.array(side) for side in zip(*TASKS, strict=True))
        some, zeros = len(TASKS), np.zeros(len(TASKS), np.int64)
        starts = np.full(N, -1)
        starts[lo] = np.arange(some)
        return shapes.PassTasks(
            lo,
            hi,
            np.array(first_end),
            zeros,
            np.full(some, N),
            zeros,
            np.full(some, self.width),
            starts,
            single,
            every,
        )


KINDS = ["edges", "tails", "keys", "ranges", "gap", "pairs", "either"]
MODES = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize(("single", "every"), MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_counts_are_the_numbers_of_paths(kind: str, seed: int, single: bool, every: bool) -> None:
    relation = Relation(kind, seed)
    first_end = [lo + 3 for lo, _ in TASKS] if single else [lo for lo, _ in TASKS]
    all_paths = [
        naive.paths_of_task(relation.graph, lo, hi, end, single, every)
        for (lo, hi), end in zip(TASKS, first_end, strict=True)
    ]
    numbers = [len(found) for found in all_paths]
    given = relation.shape, relation.events(), relation.tasks(single, every, first_end)
    assert passes.count(Floats(), *given).tolist() == numbers
    assert passes.count(wrapping(), *given).tolist() == numbers
    least, greatest = passes.count(lengths(False), *given), passes.count(lengths(True), *given)
    assert least.tolist() == [min(map(len, found), default=NO_PATH) for found in all_paths]
    assert greatest.tolist() == [max(map(len, found), default=0) for found in all_paths]
    logs = passes.count(Logs(), *given).tolist()
    assert logs == pytest.approx([log2(number) if number else float("-inf") for number in numbers])
    if kind in ("tails", "keys"):
        tails = relation.shape
        segments = shapes.Segments(tails.place, tails.first[None], tails.last[None], tails.own, tails.own_end)
        assert count_abreast(Floats(), segments, *given[1:]).tolist() == numbers
    weights = np.arange(2 * N, dtype=np.uint64).reshape(2, N)
    sums = [[sum(int(row[x]) for path in found for x in path) for found in all_paths] for row in weights]
    assert passes.weigh(modulo(PRIME), *given, weights).tolist() == [numbers, *sums]
    short = [[path for path in found if 2 <= len(path) <= 3] for found in all_paths]
    sums = [[sum(int(row[x]) for path in found for x in path) for found in short] for row in weights]
    assert passes.weigh_lengths(modulo(PRIME), *given, weights, 2, 3).tolist() == [list(map(len, short)), *sums]
    by_length = [sum(len(path) == length for path in all_paths[0]) for length in range(1, 6)]
    assert passes.lengths(Floats(), *given, 0, 5).tolist() == by_length


@pytest.mark.parametrize("kind", ["tails", "ranges", "pairs"])
def test_values_of_events_and_nearest_successors(kind: str) -> None:
    relation = Relation(kind, 3)
    given = relation.shape, relation.events(), relation.tasks(False, True, [lo for lo, _ in TASKS])
    events = [(x, hi) for lo, hi in TASKS for x in range(lo, hi)]
    suffixes = [len(naive.paths_of_task(relation.graph, x, hi, single=True, every=True)) for x, hi in events]
    values = np.empty(len(events))
    passes.values_of_events(Floats(), *given, np.empty(0), values)
    assert values.tolist() == suffixes
    nearest = np.full(N, N)
    passes.nearest_successors(lengths(False), *given, nearest)
    seen = [[y for lo, hi in TASKS if lo <= x < hi for y in relation.graph[x] if y < hi] for x in range(N)]
    assert nearest.tolist() == [min(found, default=N) for found in seen]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("block", [1, 4, 64])
def test_a_large_task_is_counted_by_blocks(block: int, every: bool) -> None:
    relation, (lo, hi) = Relation("tails", 5), TASKS[0]
    primes = np.array([2**58 - 27, 2**58 - 57, 2**58 - 63], np.uint64)
    tasks = relation.tasks(False, every, [lo for lo, _ in TASKS])
    number = len(naive.paths_of_task(relation.graph, lo, hi, every=every))
    assert count_large(primes, relation.shape, relation.events(), tasks, 0, block) == (number,) * 4


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(("shortest", "longest"), [(1, 2), (2, 3), (3, 1 << 60), (4, 4)])
def test_members_lie_on_a_path_of_an_allowed_length(shortest: int, longest: int, every: bool) -> None:
    graph = random_graph(7, N, 0.3)
    found = np.zeros(N, np.bool_)
    paths.members(tasks_of(graph, TASKS, every=every), shortest, longest, found)
    allowed = [
        path
        for lo, hi in TASKS
        for path in naive.paths_of_task(graph, lo, hi, every=every)
        if shortest <= len(path) <= longest
    ]
    assert np.flatnonzero(found).tolist() == sorted({x for path in allowed for x in path})
