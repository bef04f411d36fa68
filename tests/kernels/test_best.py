"""The k-best search beside all paths, sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import arrays_of, random_graph
from tests.kernels.test_unrank import random_window
from trellis.kernels.best import leading, nodes, ranks, search, suffixes, tied
from trellis.kernels.best.heaps import PATH_END, TASK, WANTED
from trellis.kernels.count.passes import first_successors
from trellis.kernels.event_graph.edges import EdgeLists, latest_predecessors

N, TASKS = 12, [(0, 8), (3, 12)]


class Case:
    """A random graph whose paths are compared by the sum of what their events give; larger is better."""

    def __init__(self, seed: int, every: bool) -> None:
        self.graph = random_graph(seed, N, 0.4)
        offsets, successors = arrays_of(self.graph)
        self.gives = np.random.default_rng(seed).integers(-3, 4, N)
        nearest, latest = first_successors(offsets, successors), latest_predecessors(offsets, successors)
        events = np.stack([nearest, latest, np.ones(N, int), np.zeros(N, int)], axis=1)
        parts = np.stack([self.gives, np.zeros(N, int), np.zeros(N, int)])[:, :, None]
        one, zero = np.array([1]), np.zeros((1, 1), np.int64)
        self.shape = nodes.PathValues(
            events, parts, np.array([nodes.HIGH]), one, np.empty((0, 2), int), np.empty((0, N), int), zero, zero[0],
            np.array([[0, 1, 1]]),
        )  # fmt: skip
        lo, hi = (np.array(side) for side in zip(*TASKS, strict=True))
        self.tasks = nodes.SearchTasks(lo, hi, lo, hi, False, every)
        self.links = EdgeLists(offsets, successors)
        self.paths = [naive.paths_of_task(self.graph, *task, every=every) for task in TASKS]

    def value(self, path: naive.Path) -> int:
        return int(self.gives[list(path)].sum())

    def run(self, kernel: Any, *between: Any) -> list[tuple[int, naive.Path]]:
        """Let a kernel go on with more room until it is done; return its paths with their tasks."""
        state = np.zeros(search.STATE_SIZE, np.int64)
        state[[search.TURN, search.READY]] = -1
        best, found = np.empty((N, 2), np.int64), np.empty(N + 1, np.int32)
        given = state, np.arange(2), np.zeros(2, int), self.tasks, self.links, self.shape, False
        events, paths = np.empty(500, np.int32), np.empty((200, 4), np.int64)
        if kernel is search.best_paths:
            heaps, kept, stack = np.empty((N, 4), np.int64), np.empty(*between, np.int64), np.empty(N, np.int64)
            suffixes, slots = np.empty((500, 4), np.int64), np.empty((500, 3), np.int64)
            room = search.SearchRoom(best, found, heaps, stack, kept, suffixes, slots, events, paths)
            assert kernel(*given, room) == search.DONE
        else:
            marks, sofar, waiting = np.empty((N, 2), int), np.empty((N, 1), int), np.empty(500, int)
            bounds = search.ValueBounds(*between, np.zeros(1, int))
            assert (
                kernel(*given, bounds, search.BetweenRoom(best, found, marks, sofar, waiting, events, paths))
                == search.DONE
            )
        paths = paths[: state[search.PATHS]]
        rows = naive.ragged(events, paths[:, 1 + PATH_END])
        wanted = paths[:, 1 + WANTED] if kernel is search.best_paths else np.ones(len(paths))
        return [(int(t), p) for t, p, w in zip(paths[:, 1 + TASK], rows, wanted, strict=True) if w]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_paths_are_the_first_of_all_by_value(seed: int, every: bool) -> None:
    case = Case(seed, every)
    best = search.best_of_tasks(case.tasks, *2 * [np.empty(0, int)], case.links, case.shape, np.empty((N, 2), np.int64))
    assert best.tolist() == [[max(map(case.value, paths)), 1] for paths in case.paths]
    every_path = [(task, path) for task, paths in enumerate(case.paths) for path in paths]
    every_path.sort(key=lambda one: -case.value(one[1]))  # stable: then by task and rank
    for limit in (1, 4, 9):
        found = case.run(search.best_paths, limit)
        assert sorted(found) == sorted(every_path[:limit])


@pytest.mark.parametrize("every", [False, True])
def test_paths_between_two_values_come_in_rank_order(every: bool) -> None:
    case = Case(4, every)
    found = case.run(search.paths_between, np.array([[0]]), np.array([[3]]), np.array([100]))
    wanted = [(t, p) for t, paths in enumerate(case.paths) for p in paths if 0 <= case.value(p) < 3]
    assert found == wanted


@pytest.mark.parametrize("every", [False, True])
def test_ranks_and_the_order_of_ranks(every: bool) -> None:
    case = Case(5, every)
    shuffled = np.random.default_rng(0).permutation([(t, r) for t in range(2) for r in range(len(case.paths[t]))])
    paths = [case.paths[t][r] for t, r in shuffled]
    events, ends = np.array([x for p in paths for x in p]), np.cumsum([len(p) for p in paths])
    order = ranks.rank_order(events, ends, shuffled[:, 0].copy())
    assert shuffled[order].tolist() == sorted(shuffled.tolist())
    begins = ends - np.array([len(p) for p in paths])
    task_paths = np.searchsorted(shuffled[order, 0], np.arange(3))
    counts, found = np.zeros(N, np.uint64), np.empty(N + 1, np.int32)
    given = case.tasks, np.zeros(2, np.uint64), task_paths, events, begins[order], ends[order], case.links, case.shape
    assert ranks.ranks_of(*given, counts, found).tolist() == shuffled[order, 1].tolist()


def test_words_hold_numbers_of_any_size() -> None:
    numbers = [0, 1, -1, 2**62, -(2**100), 3 << 61, (1 << 126) - 1]
    high, low = (np.array([n >> 64 for n in numbers]), np.array([n % 2**64 for n in numbers], np.uint64))
    words = np.empty((len(numbers), 3), np.int64)
    nodes.words_of(high, low, np.zeros(len(numbers), int), words)
    shown = [sum(int(word) << (nodes.WORD * (2 - i)) for i, word in enumerate(row)) for row in words]
    assert shown == numbers
    bits, twos = nodes.widths(high, low, np.zeros(len(numbers), int))
    assert bits >= max(n.bit_length() for n in numbers) + 1
    assert twos == 0


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_best_suffixes_by_the_index_and_all_that_tie(seed: int, every: bool, sign: int, words: int) -> None:
    (window, graph), n = random_window(seed, 10, every), 10
    high, low = np.random.default_rng(seed).integers(-2, 3, (2, n)).tolist()
    numbers = low if words == 1 else [(h << nodes.WORD - 1) + x for h, x in zip(high, low, strict=True)]
    each, last = np.empty((n, words), np.int64), np.zeros((n, words), np.int64)
    parts = np.array([x >> 64 for x in numbers]), np.array([x % 2**64 for x in numbers], np.uint64)
    nodes.words_of(*parts, np.zeros(n, int), each)
    compared = np.array([nodes.HIGH, nodes.LOW][:words]), np.full(words, sign)
    behind = [naive.paths_of_task(graph, x, n, single=True, every=every) for x in range(n)]

    def value(path: naive.Path) -> int:
        return sign * sum(numbers[x] for x in path)

    best = suffixes.best_suffixes(window, each, last, *compared)
    found = [sum(int(word) << nodes.WORD * (words - 1 - i) for i, word in enumerate(row[:-1])) for row in best]
    assert found == [sign * max(map(value, paths)) for paths in behind]
    counts = suffixes.suffix_counts(window)
    assert counts.tolist() == [len(paths) for paths in behind]
    starts = np.flatnonzero(window.starts)
    equal = [p for x in starts for p in behind[x] if value(p) == max(map(value, behind[x]))]
    given = window, each, best, *compared, starts
    events, ends, number = tied.tied_paths(*given, 1000, 1 << 30)
    assert naive.ragged(events, ends[:number]) == equal
    assert naive.ragged(*tied.tied_paths(*given, 2, 1 << 30)[:2]) == equal[:2]
    assert tied.tied_paths(*given, 1000, 3)[2] == tied.TOO_LONG
    in_order = naive.paths_of_task(graph, 0, n, every=every)
    some = in_order[::2]
    paths = np.array([x for p in some for x in p], np.int32), np.cumsum([len(p) for p in some])
    assert tied.ranks_by_index(window, counts, *paths).tolist() == [*range(0, len(in_order), 2)]


@pytest.mark.parametrize("skip", range(4))
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_best_path_for_each_place(seed: int, every: bool, skip: int) -> None:
    case = Case(seed, every)
    aims = np.random.default_rng(seed).random(N) < 0.3
    best = np.empty((N, 2), np.int64)
    arrays = case.tasks, np.arange(2), case.links, case.shape, best, np.arange(N), aims, skip
    events, ends, owners = leading.leading_paths(*arrays)
    wanted = []
    for task, paths in enumerate(case.paths):
        place = -1
        for first in sorted({p[0] for p in paths}):
            if first < place:
                continue
            chosen = max((p for p in paths if p[0] == first), key=case.value)  # of equal ones the first
            wanted.append((task, chosen))
            aimed = [x for x in chosen if aims[x]]
            aim = (aimed[0] if skip == leading.TO_FIRST else aimed[-1]) if aimed else -1
            place = {leading.PAST_LAST: chosen[-1] + 1, leading.TO_NEXT: first + 1}.get(skip, max(aim, first + 1))
    assert [*zip(owners.tolist(), naive.ragged(events, ends), strict=True)] == wanted


def test_paths_are_kept_that_begin_where_the_one_before_allows_it() -> None:
    groups, firsts, places = np.array([0, 0, 0, 1, 1]), np.array([1, 2, 4, 0, 5]), np.array([3, 9, 6, 4, 6])
    last, rows = np.array([0, 1]), np.empty(5, np.int64)
    number = leading.keep_leading(groups, firsts, places, last, rows)
    assert rows[:number].tolist() == [0, 2, 3, 4]
    assert last.tolist() == [1, 6]
