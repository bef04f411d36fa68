"""Where partitions, spans and windows begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from tests.kernels.cases import random_events
from trellis.kernels.events import partitions as kernel

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_ends_of_times_partitions_and_spans(seed: int) -> None:
    times, bounds = random_events(seed)
    n = len(times)

    def first(x: int, after: int) -> int:
        return naive.first_in_partition(bounds, x, lambda y: bool(times[y] - times[x] > after))

    assert kernel.later_times(times, bounds).tolist() == [first(x, 0) for x in range(n)]
    assert kernel.span_ends(times, bounds, 3).tolist() == [first(x, 3) for x in range(n)]
    cuts = np.random.default_rng(seed).integers(-1, n // 2 + 2, n)
    cuts[:2] = np.iinfo(np.int64).max
    begins = [naive.partition_of(bounds, x)[0] for x in range(n)]
    above = [naive.first_in_partition(bounds, a, lambda y, x=x: bool(times[y] > cuts[x])) for x, a in enumerate(begins)]
    assert kernel.first_above(times, bounds, cuts).tolist() == above
    assert kernel.partition_ends(bounds, n).tolist() == [naive.partition_of(bounds, x)[1] for x in range(n)]


def test_first_ends_lie_beyond_what_the_latest_predecessor_reaches() -> None:
    latest, ends = np.array([-1, 0, 0, 2]), np.array([2, 3, 4, 4])
    assert kernel.first_ends(latest, ends).tolist() == [0, 2, 2, 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_are_those_that_hold_an_event(seed: int) -> None:
    times, bounds = random_events(seed)
    first, last = -(-(times - 4) // 2), times // 2  # of windows of 5, every 2: several for each event
    wanted = naive.windows(first.tolist(), last.tolist(), bounds.tolist())
    total = kernel.count_windows(first, last, bounds)
    assert total == len(wanted)
    assert list(zip(*(a.tolist() for a in kernel.list_windows(first, last, bounds, total)), strict=True)) == wanted
    ends = [naive.first_in_partition(bounds, x, lambda y, x=x: bool(first[y] > last[x])) for x in range(len(times))]
    assert kernel.window_ends(first, last, bounds).tolist() == ends


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_events_share_a_window_with_one_kept(seed: int) -> None:
    times, bounds = random_events(seed)
    first, last = times // 3, (times + 2) // 3
    keep: list[bool] = []
    for x in range(len(times)):
        begin = naive.partition_of(bounds, x)[0]
        keep.append(not any(keep[k] and first[x] <= last[k] for k in range(begin, x)))
    assert kernel.drop_repeated(first, last, bounds).tolist() == keep
