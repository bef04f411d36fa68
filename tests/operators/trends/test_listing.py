"""Every row of every range of ranks, whatever the batches, blocks and threads: against a walk in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trellis.events.slice import Groups, Slice
from trellis.kernels.event_graph.edges import latest_predecessors
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.listing import Listing, TraversalInput
from trellis.operators.trends.task_ranges import TaskRanges
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks
from trellis.plan.sizes import Sizes

Path = tuple[int, ...]


# --- Graphs and their paths, plainly ----------------------------------------------------------------------------


def graph_of(successors: Sequence[Sequence[int]]) -> EventGraph:
    offsets = np.cumsum([0, *map(len, successors)])
    flat = np.array([y for row in successors for y in sorted(row)], np.int32)
    return EventGraph(offsets, flat, latest_predecessors(offsets, flat))


def sparse(rng: random.Random) -> list[list[int]]:
    n = rng.randrange(1, 45)
    each = rng.choice([0.05, 0.15, 0.3])
    return [[y for y in range(x + 1, n) if rng.random() < each] for x in range(n)]


def layered(rng: random.Random) -> list[list[int]]:
    """Make layers whose events all lead to those of the next: wide fans, and rows as long as there are layers."""
    widths = [rng.choice([1, 1, 1, 2, 3]) for _ in range(rng.randrange(1, 45))]
    while np.prod(widths, dtype=float) > 8_000:
        widths[widths.index(max(widths))] = 1
    ends = np.cumsum(widths).tolist()
    behind = [*ends[1:], ends[-1]]
    return [list(range(ends[k], behind[k])) for k, width in enumerate(widths) for _ in range(width)]


def fan(rng: random.Random) -> list[list[int]]:
    """Make chains that many events lead to: few long suffixes behind many prefixes."""
    chain, heads = rng.randrange(1, 30), rng.randrange(1, 60)
    n = heads + chain
    inner = [[y for y in range(x + 1, heads) if rng.random() < 0.05] + [heads] for x in range(heads)]
    return inner + [[x + 1] if x + 1 < n else [] for x in range(heads, n)]


def paths_of(
    graph: EventGraph, ok: np.ndarray, tasks: TrendTasks, task: int, least: int, most: int, enough: int
) -> list[Path] | None:
    """List the paths of a task in rank order, straight from the definition; None if they are more than enough."""
    lo, hi, first_end = int(tasks.lo[task]), int(tasks.hi[task]), int(tasks.first_end[task])
    found: list[Path] = []

    def onward(x: int) -> list[int]:
        return [y for y in graph.successors[graph.offsets[x] : graph.offsets[x + 1]].tolist() if y < hi]

    def walk(path: Path) -> None:
        ends = tasks.every or (not onward(path[-1]) and path[-1] >= first_end)
        if ends and least <= len(path) <= most:
            found.append(path)
        for y in onward(path[-1]):
            if len(found) <= enough:
                walk((*path, y))

    for x in range(lo, lo + 1 if tasks.single else hi):
        if ok[x] and (tasks.single or tasks.every or graph.latest[x] < lo):
            walk((x,))
    return found if len(found) <= enough else None


def tasks_of(rng: random.Random, n: int, single: bool, every: bool) -> TrendTasks:
    """Make windows that overlap, or spans of which some have no end early on; several tasks of spans make a group."""
    if single:
        lo = np.arange(n)
        hi = np.maximum.accumulate(np.array([rng.randrange(x + 1, n + 1) for x in range(n)]))
        first_end = np.array([rng.randrange(x, n + 1) for x in range(n)])
        return TrendTasks(lo, hi, first_end, np.sort(np.array(rng.choices(range(3), k=n))), lo, True, every)
    lo = np.sort(np.array(rng.choices(range(n), k=rng.randrange(1, 5))))
    hi = np.array([rng.randrange(x + 1, n + 1) for x in lo])
    if rng.random() < 0.5:
        lo[0], hi[0] = 0, n
    return TrendTasks(lo, hi, lo, np.arange(len(lo)), np.arange(len(lo)), False, every)


class Case:
    """A graph, tasks on it, and all their paths."""

    def __init__(self, rng: random.Random, successors: list[list[int]], single: bool, every: bool) -> None:
        n = len(successors)
        self.ok = np.array([rng.random() < 0.95 for _ in range(n)])
        kept = [[y for y in row if self.ok[y]] if self.ok[x] else [] for x, row in enumerate(successors)]
        self.graph = graph_of(kept)
        self.tasks = tasks_of(rng, n, single, every)
        self.least, self.most = rng.choice([(1, NO_BOUND)] * 4 + [(3, NO_BOUND), (2, 5), (1, 7), (4, 4)])
        found = [self._paths(task) for task in range(len(self.tasks))]
        self.fits = all(paths is not None for paths in found)
        self.sizes = [len(paths or ()) for paths in found]
        self.groups: dict[int, list[Path]] = {}
        for group, paths in zip(self.tasks.group.tolist(), found, strict=True):
            self.groups.setdefault(group, []).extend(paths or ())

    def _paths(self, task: int) -> list[Path] | None:
        return paths_of(self.graph, self.ok, self.tasks, task, self.least, self.most, 8_000)

    @property
    def traversal(self) -> TraversalInput:
        n = len(self.ok)
        no_groups = Groups(*(np.zeros(0, np.int64) for _ in range(3)))
        events = Slice({}, pa.nulls(n), np.arange(n), self.ok, np.array([0, n]), no_groups, np.full(n, n))
        return TraversalInput(events, self.tasks, self.graph, self.least, self.most, self.path)

    def path(self, group: int, rank: int) -> np.ndarray:
        return np.array(self.groups[group][rank], np.int32)

    def ranges(self, rng: random.Random) -> list[tuple[int, int, int]]:
        """Draw ranks of some groups."""
        found = []
        for group, paths in self.groups.items():
            begin = rng.choice([0, 0, rng.randrange(len(paths) + 1)])
            end = rng.choice([len(paths), rng.randrange(begin, len(paths) + 1)])
            if rng.random() < 0.9:
                found.append((group, begin, end))
        return found

    def wanted(self, ranges: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, Path]]:
        return [(group, rank, self.groups[group][rank]) for group, begin, end in ranges for rank in range(begin, end)]


def cases(number: int, seed: int) -> Iterator[tuple[random.Random, Case]]:
    for k in range(number):
        rng = random.Random(seed + k)
        made = rng.choice([sparse, layered, fan])(rng)
        case = Case(rng, made, rng.random() < 0.3, rng.random() < 0.3)
        if case.fits:
            yield rng, case


def rows_of(batches: Sequence[PathBatch]) -> list[tuple[int, int, Path]]:
    """Return group, rank and events of all rows; compact ones expanded by the definition."""
    found = []
    for batch in batches:
        before: list[int] = []
        for row in range(len(batch)):
            events = batch.positions[batch.offsets[row] : batch.offsets[row + 1]].tolist()
            shared = 0 if batch.shared is None else int(batch.shared[row])
            assert shared <= len(before)
            before = before[:shared] + events
            found.append((int(batch.groups[row]), int(batch.ranks[row]), tuple(before)))
    return found


# --- Every range ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True])
def test_every_row_of_random_ranges(compact: bool) -> None:
    rows = restricted = 0
    for rng, case in cases(120, 1000 * compact):
        for _ in range(2):
            ranges = case.ranges(rng)
            wanted = case.wanted(ranges)
            sizes = Sizes(
                block_values=rng.choice([0, 64, 500, 5000, 1 << 18]), first_rows=rng.choice([1, 10, 300]),
                large_rows=rng.choice([1, 50, 1000]),
            )  # fmt: skip
            ranges = TaskRanges(case.tasks, case.sizes, ranges)
            values, threads = rng.choice([1, 50, 700, 1 << 18]), rng.choice([1, 1, 2, 3])
            batches = list(Listing(case.traversal, ranges, lambda b: b, values, threads, compact, sizes=sizes))
            assert rows_of(batches) == wanted
            assert all(len(batch.positions) <= max(values, len(case.ok)) for batch in batches)
            rows, restricted = rows + len(wanted), restricted + case.traversal.restricted
    assert rows > 60_000
    assert restricted > 20


def test_the_compact_form_holds_nothing_twice() -> None:
    """Of what the row before has, in the same task and batch, nothing is told again."""
    for rng, case in cases(40, 5000):
        ranges = case.ranges(rng)
        ranges = TaskRanges(case.tasks, case.sizes, ranges)
        values = rng.choice([100, 1 << 18])
        for batch in Listing(case.traversal, ranges, lambda b: b, values, 1, True):
            told = rows_of([batch])
            assert batch.shared is not None
            assert batch.shared[0] == 0
            for row in range(1, len(told)):
                (group, _, before), (here, _, path) = told[row - 1], told[row]
                shared = int(batch.shared[row])
                assert before[:shared] == path[:shared]
                assert group != here or before[shared : shared + 1] != path[shared : shared + 1]
                assert group == here or shared == 0


# --- Ranks beyond 64 bits ---------------------------------------------------------------------------------------

LAYERS = 80


class Diamonds(Case):
    """Layers of two events: a rank is, bit by bit, the path; there are more of them than any word counts."""

    def __init__(self) -> None:
        n = 2 * LAYERS
        self.ok = np.ones(n, np.bool_)
        self.graph = graph_of([[2 * (x // 2) + 2, 2 * (x // 2) + 3] if x < n - 2 else [] for x in range(n)])
        whole = np.array([0])
        self.tasks = TrendTasks(whole, np.array([n]), whole, whole, whole, False, False)
        self.least, self.most = 1, NO_BOUND

    def path(self, group: int, rank: int) -> np.ndarray:
        return np.array([2 * k + (rank >> (LAYERS - 1 - k) & 1) for k in range(LAYERS)], np.int32)


@pytest.mark.parametrize("first", [0, 2**62, 2**63 - 3000, 2**64 - 2000, 2**70 + 12345, 2**80 - 5000])
@pytest.mark.parametrize("threads", [1, 2])
def test_ranks_that_fit_no_word(first: int, threads: int) -> None:
    case = Diamonds()
    ranges = TaskRanges(case.tasks, [2**LAYERS], [(0, first, first + 5000)])
    listing = Listing(case.traversal, ranges, lambda b: b, 1 << 15, threads, sizes=Sizes(first_rows=700))
    found = rows_of(list(listing))
    ranks = range(first, first + 5000)
    assert [rank for _, rank, _ in found] == [rank if rank < 2**63 else -1 for rank in ranks]
    assert [path for _, _, path in found] == [tuple(case.path(0, rank).tolist()) for rank in ranks]


def test_more_than_anyone_lists_begins_at_once() -> None:
    case = Diamonds()
    ranges = TaskRanges(case.tasks, [2**LAYERS], [(0, 5, 2**LAYERS)])
    for threads in (1, 2):
        batches: Any = iter(Listing(case.traversal, ranges, lambda b: b, 1 << 16, threads))
        found = rows_of([next(batches) for _ in range(20)])
        batches.close()
        assert [rank for _, rank, _ in found] == list(range(5, 5 + len(found)))
        assert found[-1][2] == tuple(case.path(0, len(found) + 4).tolist())
