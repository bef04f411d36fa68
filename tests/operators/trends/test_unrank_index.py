"""Trends by rank on ranges of vertices: one by one and all at once, the same as listing them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.kernels.unrank import by_index
from trellis.kernels.unrank.by_index import IndexWindow
from trellis.operators.ranks import Ranks
from trellis.operators.trends import unrank
from trellis.operators.trends.unrank import IndexUnranker, Paths


def follows(window: IndexWindow, x: int, y: int) -> bool:
    if not (window.usable[x] and window.usable[y] and y >= window.later[x]):
        return False
    if len(window.reach) and y >= window.reach[x]:
        return False
    return any(f[x] <= window.place[y] < e[x] for f, e in zip(window.firsts, window.lasts, strict=True))


def paths_from(window: IndexWindow, path: list[int]) -> Iterator[list[int]]:
    """All paths that go on from one, in the order of ranks."""
    if window.every or window.ends[path[-1]]:
        yield path
    for y in range(len(window.place)):
        if follows(window, path[-1], y):
            yield from paths_from(window, [*path, y])


def all_paths(window: IndexWindow) -> list[list[int]]:
    found = []
    for x in range(len(window.place)):
        if window.starts[x]:
            found += [[window.begin + event for event in path] for path in paths_from(window, [x])]
    return found


def lists(paths: Paths) -> list[list[int]]:
    events, ends = paths
    return [part.tolist() for part in np.split(events, ends[:-1])] if len(ends) else []


def random_window(seed: int, ranges: int) -> IndexWindow:
    """A window with ties in time and vertex, events that follow nothing or that nothing follows, and unusable ones."""
    rng = np.random.default_rng(seed)
    n, vertices = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    times = np.sort(rng.integers(0, rng.integers(1, 14), n))
    later = np.searchsorted(times, times, side="right")
    place = rng.integers(-1 if rng.random() < 0.5 else 0, vertices, n).astype(np.int32)
    cuts = np.sort(rng.integers(0, vertices + 1, (2 * ranges, n)), axis=0).astype(np.int32)
    if rng.random() < 0.4:  # to the end, as one inequality has it
        cuts[-1] = vertices
    usable, every, single = rng.random(n) < 0.9, bool(rng.random() < 0.3), bool(rng.random() < 0.2)
    begin, firsts, lasts = int(rng.integers(0, 3)), tuple(cuts[0::2]), tuple(cuts[1::2])
    reach = np.empty(0, np.int64)
    if rng.random() < 0.4:  # a gap in time
        reach = np.maximum.accumulate(later[np.minimum(np.arange(n) + rng.integers(0, 4, n), n - 1)])
    window = IndexWindow(begin, vertices, later, place, firsts, lasts, usable, usable, usable, every, reach)
    edges = np.array([[follows(window, x, y) for y in range(n)] for x in range(n)])
    starts, ends = usable & ~edges.any(axis=0), usable & ~edges.any(axis=1)
    if every:
        starts = usable
    if single:  # all that starts at the first event, and does not end too early
        starts = usable & (np.arange(n) == 0)
        ends[: rng.integers(0, n + 1)] = False
    return window._replace(starts=starts, ends=ends)


@pytest.mark.parametrize("ranges", [1, 2])
@examples(250)
@given(st.integers(0, 2**32))
def test_all_ranks_of_a_window(ranges: int, seed: int) -> None:
    window = random_window(seed, ranges)
    wanted = all_paths(window)
    unranker = IndexUnranker(window, len(wanted))
    ranks = Ranks.of(range(len(wanted)))
    assert lists(unranker.one_by_one(ranks)) == wanted
    assert lists(unranker.together(ranks)) == wanted
    some = np.random.default_rng(seed).random(len(wanted)) < 0.3
    picked = [path for path, chosen in zip(wanted, some, strict=True) if chosen]
    assert lists(unranker.together(Ranks(ranks.words[some]))) == picked
    if not len(window.reach):
        first = IndexUnranker.of_first(window)
        assert first.total == len(wanted)
        assert lists(first.one_by_one(ranks)) == wanted


@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_any_number_of_limbs_and_threads(seed: int, threads: int) -> None:
    window = random_window(seed, 2)
    wanted = all_paths(window)
    with patch.object(unrank, "LIMBS", ()):
        unranker = IndexUnranker(window, len(wanted) << 700, threads)
    ranks = Ranks.of(range(len(wanted)))
    assert lists(unranker.trends(ranks)) == wanted
    assert lists(unranker.together(ranks)) == wanted


def test_a_rank_that_is_too_high_has_no_trend() -> None:
    window = random_window(3, 1)
    wanted = all_paths(window)
    unranker = IndexUnranker(window, len(wanted))
    assert lists(unranker.trends(Ranks.of([0, len(wanted), len(wanted) + 5]))) == [wanted[0], [], []]


def rising(n: int) -> IndexWindow:
    """Each event may be followed by all later ones: 2**n - 1 trends, if they may begin and end anywhere."""
    place, ok = np.arange(n, dtype=np.int32), np.ones(n, np.bool_)
    return IndexWindow(
        0,
        n,
        np.arange(1, n + 1),
        place,
        (place + 1,),
        (np.full(n, n, np.int32),),
        ok,
        ok,
        ok,
        True,
        np.empty(0, np.int64),
    )


def members(rank: int, n: int) -> list[int]:
    """The trend of rising values with a rank: 2**(n - 1 - x) of them go on from event x."""
    events: list[int] = []
    x = 0
    while True:
        while rank >= 2 ** (n - 1 - x):
            rank, x = rank - 2 ** (n - 1 - x), x + 1
        events.append(x)
        if rank == 0:
            return events
        rank, x = rank - 1, x + 1


@pytest.mark.parametrize(("n", "ranges"), [(3, 1), (200, 1), (2000, 2)])
def test_numbers_of_any_size(n: int, ranges: int) -> None:
    window, nothing = rising(n), (np.zeros(n, np.int32),) * (ranges - 1)
    window = window._replace(firsts=(*window.firsts, *nothing), lasts=(*window.lasts, *nothing))
    unranker = IndexUnranker(window, 2**n - 1)
    ranks = sorted({0, 1, 2**n - 2, 2**n // 2, *(2**n // 7 * i for i in range(1, 7))})
    wanted = [members(rank, n) for rank in ranks]
    assert lists(unranker.trends(Ranks.of(ranks))) == wanted
    assert lists(unranker.together(Ranks.of(ranks))) == wanted


def test_events_that_no_trend_reaches_may_have_more_paths_than_there_are_trends() -> None:
    n = 90
    window = rising(n)
    first = window.firsts[0].copy()
    first[0] = n - 2  # only the last two may follow the first
    window = window._replace(firsts=(first,), starts=np.arange(n) == 0)
    assert lists(IndexUnranker(window, 4).trends(Ranks.of(range(5)))) == [
        [0], [0, n - 2], [0, n - 2, n - 1], [0, n - 1], [],
    ]  # fmt: skip


def test_blocks_are_passed_over() -> None:
    n = 3 * by_index.BLOCK + 7
    rng = np.random.default_rng(5)
    times = np.sort(rng.integers(0, n, n))
    price = rng.integers(0, 400, n)
    vertices = 401
    first = np.minimum(2 * price + 1, vertices).astype(np.int32)
    last, ok = np.full(n, vertices, np.int32), np.ones(n, np.bool_)
    later = np.searchsorted(times, times, side="right")
    window = IndexWindow(
        0, vertices, later, price.astype(np.int32), (first,), (last,), ok, ok, ok, True, np.empty(0, np.int64)
    )
    heaviest = np.zeros(vertices + 1, object)  # how many trends begin at a price, at the times that have been passed
    begins = np.zeros(n, object)
    for x in range(n - 1, -1, -1):
        if x + 1 < n and later[x] == x + 1:
            for y in range(x + 1, later[x + 1]):
                heaviest[price[y]] += begins[y]
        begins[x] = 1 + heaviest[first[x] :].sum()
    total = int(begins.sum())
    unranker = IndexUnranker(window, total)
    ranks = sorted(int(total * f) for f in rng.random(300))
    paths = lists(unranker.trends(Ranks.of(ranks)))
    assert lists(unranker.together(Ranks.of(ranks))) == paths
    before = np.concatenate([[0], np.cumsum(begins)])
    for rank, path in zip(ranks, paths, strict=True):  # the rank of a path, added up from what comes before it
        found = before[path[0]]
        for x, y in pairwise(path):
            successors = np.arange(later[x], y)
            found += 1 + begins[successors[price[successors] >= first[x]]].sum()
        assert found == rank
