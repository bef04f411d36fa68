"""Direct edges by every method, beside all edges without a detour."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import RandomEvents, random_events
from trellis.kernels.events.partitions import later_times, partition_ends
from trellis.kernels.maximal import conjunction, counting, difference, equality, inequality
from trellis.kernels.maximal.bisection import NO_CEILING, NO_FLOOR, rank_codes

SEEDS = range(4)
N = 60


class Events:
    """Events in key partitions, with the arrays that kernels take."""

    def __init__(self, seed: int) -> None:
        self.random: RandomEvents = random_events(seed, N)
        times, self.bounds = self.random
        self.after = later_times(times, self.bounds).astype(np.int32)
        self.first = np.array([min(x for x in range(N) if self.after[x] == self.after[y]) for y in range(N)], np.int32)
        self.limit = partition_ends(self.bounds, N).astype(np.int32)
        self.rng = np.random.default_rng(seed)

    def direct(self, allows: Callable[[int, int], bool]) -> naive.Graph:
        return naive.direct_edges(N, lambda x, y: self.random.is_later(x, y) and bool(allows(x, y)))

    def edges(self, find: Callable[[np.ndarray, np.ndarray], object]) -> naive.Graph:
        """Count the edges, then write them where they belong."""
        degrees = np.zeros(N, np.int64)
        find(degrees, np.empty(0, np.int32))
        cursor = np.cumsum(degrees) - degrees
        successors = np.full(degrees.sum(), -1, np.int32)
        offsets = np.append(cursor, degrees.sum())
        if len(successors):
            find(cursor, successors)
        return [sorted(successors[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


def test_rank_codes_compare_as_before() -> None:
    above, below = np.random.default_rng(0).integers(-9, 9, (2, 30))
    counts = np.arange(25)
    high, low = rank_codes(counts[np.argsort(above[:25])], counts[np.argsort(below[:25])], above, below)
    assert ((high[:25, None] > low[:25]) == (above[:25, None] > below[:25])).all()
    assert set(high[25:]) == {NO_FLOOR}
    assert set(low[25:]) == {NO_CEILING}


@pytest.mark.parametrize("seed", SEEDS)
def test_one_inequality_is_found_and_counted_without_edges(seed: int) -> None:
    events = Events(seed)
    above, below = events.rng.integers(1, 12, (2, N)).astype(np.int32)
    wanted = events.direct(lambda x, y: above[y] > below[x])
    tiles = inequality.tiles(events.bounds, events.limit)

    def find(cursor: np.ndarray, successors: np.ndarray) -> object:
        return inequality.direct_edges(
            tiles, events.first, events.after, above, below, events.limit, cursor, successors, 1 << 40
        )

    assert events.edges(find) == wanted
    pieces = np.array([(a, b, task) for task, (a, b) in enumerate(zip(events.bounds, events.bounds[1:], strict=False))])
    laid_out = counting.lay_out(pieces, events.first, events.after, above, below)
    totals = np.zeros((len(pieces), 1))
    none = np.empty(0, np.uint64), np.empty((0, 0, 0), np.uint64)
    given = pieces, events.first, above, below, np.arange(N), *laid_out, *none
    counting.count_direct(counting.NUMBER, *given, totals)
    paths = [naive.paths_of_task(wanted, a, b) for a, b, _ in pieces.tolist()]
    assert totals[:, 0].tolist() == [len(found) for found in paths]
    lengths = np.array([[np.inf, 0.0]] * len(pieces))
    counting.count_direct(counting.LENGTHS, *given, lengths)
    assert lengths.tolist() == [[min(map(len, p), default=np.inf), max(map(len, p), default=0)] for p in paths]


@pytest.mark.parametrize("transitive", [False, True])
@pytest.mark.parametrize("conditions", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_several_inequalities(seed: int, conditions: int, transitive: bool) -> None:
    events = Events(seed)
    above = events.rng.integers(1, 12, (conditions, N)).astype(np.int32)
    below = above.copy()
    if not transitive:  # all but one are
        below[0] = events.rng.integers(1, 12, N)
    degrees = np.zeros(N, np.int64)
    found = conjunction.scanned_edges(
        events.bounds, events.after, events.limit, above, below, transitive, degrees, 1 << 40
    )
    wanted = events.direct(lambda x, y: (above[:, y] > below[:, x]).all())
    assert degrees.tolist() == [len(row) for row in wanted]
    assert found.tolist() == [y for row in wanted for y in row]


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_must_differ(seed: int) -> None:
    events = Events(seed)
    values, (takes, gives) = events.rng.integers(0, 3, N), events.rng.random((2, N)) < 0.8

    def find(cursor: np.ndarray, successors: np.ndarray) -> object:
        return difference.differing_edges(
            events.bounds, events.first, events.after, events.limit, values, takes, gives, np.full(3, -1), cursor,
            successors,
        )  # fmt: skip

    assert events.edges(find) == events.direct(lambda x, y: gives[x] and takes[y] and values[x] != values[y])


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_that_must_be_equal(seed: int) -> None:
    events = Events(seed)
    key_next, key_prev = events.rng.integers(-1, 5, (2, N))
    tiles, local = inequality.tiles(events.bounds, events.limit), np.full(5, -1)
    assert equality.steps(tiles, key_prev, local) > 0
    back = equality.returns(tiles, events.first, events.after, key_next, key_prev, local)
    by_key = np.argsort(key_next, kind="stable")
    key_runs = np.searchsorted(key_next[by_key], np.arange(6))
    begins, ends = equality.runs(events.after, back, events.limit, key_prev, key_runs, by_key)
    successors = np.empty((ends - begins).sum(), np.int32)
    equality.write_runs(begins, ends, by_key, successors)
    wanted = events.direct(lambda x, y: key_prev[x] >= 0 and key_next[y] == key_prev[x])
    assert (ends - begins).tolist() == [len(row) for row in wanted]
    assert successors.tolist() == [y for row in wanted for y in row]


def test_rows_are_sorted_and_moved_to_positions() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.permutation(90)[:size].tolist() for size in rng.integers(0, 40, 90)]
    offsets, successors = (np.array(a) for a in naive.csr(rows))
    successors = successors.astype(np.int32)
    inequality.sort_rows(offsets, successors)
    assert successors.tolist() == [y for row in rows for y in sorted(row)]
    order = rng.permutation(90)
    moved = successors.copy()
    inequality.to_positions(order, moved)
    assert moved.tolist() == order[successors].tolist()
    placed = np.concatenate([[0], np.cumsum(np.array([len(rows[x]) for x in np.argsort(order)]))])
    found = inequality.placed_rows(order, np.diff(offsets), successors, placed)
    wanted = {int(order[x]): order[sorted(row)].tolist() for x, row in enumerate(rows) if row}
    assert found.tolist() == [y for x in range(90) for y in wanted.get(x, [])]
