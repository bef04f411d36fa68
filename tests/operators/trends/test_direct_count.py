"""Maximal trends counted without edges, against plain programming over the direct successors."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log2

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.operators.trends.direct_cases import Stage, make_stage
from tests.operators.trends.test_direct import with_inequality
from tests.profiles import examples
from trellis.events.slice import Groups, Slice
from trellis.operators.exact import Residues
from trellis.operators.trends import direct_count
from trellis.operators.trends.direct import DirectEdges
from trellis.operators.trends.direct_count import DirectCounter
from trellis.operators.trends.tasks import TrendTasks
from trellis.plan.sizes import USUAL, Sizes


def with_windows(rng: np.random.Generator, events: Slice) -> Slice:
    """Replace the groups of a slice by windows of its worlds, which overlap and never part equal times."""
    windows = []
    for begin, end in zip(events.bounds[:-1].tolist(), events.bounds[1:].tolist(), strict=True):
        times = events.times[begin:end]
        size = int(rng.integers(1, times[-1] + 3))
        for first in range(0, int(times[-1]) + 1, max(1, size // 2)):
            lo, hi = np.searchsorted(times, [first, first + size]) + begin
            if lo < hi:
                windows.append((lo, hi))
    lo, hi = (np.array([w[i] for w in windows], np.int64) for i in (0, 1))
    return replace(events, groups=Groups(lo, hi, np.arange(len(lo))))


def tasks_of(events: Slice) -> TrendTasks:
    groups, number = events.groups, np.arange(len(events.groups))
    return TrendTasks(groups.lo, groups.hi, groups.lo, number, number, False, False)


def no_graph() -> None:
    raise AssertionError("no edges are needed")


def counter_of(
    stage: Stage, events: Slice, threads: int = 1, at_most: float = inf, sizes: Sizes = USUAL
) -> DirectCounter:
    direct = DirectEdges(events, stage.adjacency())
    given = direct, tasks_of(events), no_graph, lambda: at_most, threads, None, sizes
    return DirectCounter(*given)  # type: ignore[arg-type]


def naive(stage: Stage, reduced: list[list[int]], lo: int, hi: int, weights: np.ndarray) -> tuple[int, int, int, int]:
    """Number of maximal trends of a window, the sum of weights over them, shortest and longest."""
    direct = [[y for y in row if y < hi] for row in reduced]
    has_before = {y for x in range(lo, hi) for y in direct[x]}
    number, total, short, long = ({} for _ in range(4))
    for x in reversed(range(lo, hi)):
        after = direct[x]
        number[x] = sum(number[y] for y in after) if after else 1
        total[x] = sum(total[y] for y in after) + int(weights[x]) * number[x]
        short[x] = min((short[y] for y in after), default=0) + 1
        long[x] = max((long[y] for y in after), default=0) + 1
    starts = [x for x in range(lo, hi) if x not in has_before and stage.usable[x]]
    return (
        sum(number[x] for x in starts), sum(total[x] for x in starts),
        min((short[x] for x in starts), default=0), max((long[x] for x in starts), default=0),
    )  # fmt: skip


@examples(150)
@given(st.integers(0, 2**32), st.sampled_from([8, 20, 90]), st.sampled_from([1, 2]))
def test_numbers_sums_and_lengths_of_windows(seed: int, most: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    stage = replace(with_inequality(rng, make_stage(rng, most)), span=None)
    events = with_windows(rng, stage.slice())
    weights = rng.integers(0, 1000, len(stage))
    reduced = stage.reduced()
    wanted = [
        naive(stage, reduced, lo, hi, weights)
        for lo, hi in zip(events.groups.lo.tolist(), events.groups.hi.tolist(), strict=True)
    ]
    numbers, totals, shortest, longest = ([w[i] for w in wanted] for i in range(4))

    def weigh(prime: int) -> Residues:
        return (weights % prime).astype(np.uint64).reshape(1, -1)

    sizes = Sizes(direct_rows=int(rng.choice([1, 100, 1 << 25])))
    counter = counter_of(stage, events, threads, sizes=sizes)
    assert counter.counts() == numbers
    assert counter_of(stage, events, threads, max([1.0, *map(float, numbers)]), sizes).counts() == numbers
    assert counter.length_range() == (shortest, longest)
    assert counter.log2(counter.tasks) == pytest.approx(log2(max([1, *numbers])))
    assert counter_of(stage, events, threads, sizes=replace(sizes, exact=0.5)).counts() == numbers
    some = np.flatnonzero(rng.random(len(wanted)) < 0.7)
    if len(some):
        bits = max(totals, default=1).bit_length() + 1
        exact = counter.sums(some, weigh, max(bits, 300))
        assert exact == [[numbers[g] for g in some], [totals[g] for g in some]]


def whole(value: np.ndarray, op: str = ">") -> Stage:
    everything = np.ones(len(value), np.bool_)
    stage = Stage(np.arange(len(value)), np.array([0, len(value)]), None, everything, everything, everything)
    stage.orders = [(value, [(op, value)])]
    return stage


def test_numbers_beyond_doubles() -> None:
    """Pairs of events that exclude each other, one pair after another: twice as many trends with each."""
    pairs = 1500
    value = np.stack([2 * np.arange(pairs) + 1, 2 * np.arange(pairs)], axis=1).ravel()
    stage = whole(value)
    counter = counter_of(stage, stage.slice(), threads=2)
    assert np.isinf(counter.approximate()).all()
    assert counter.log2(counter.tasks) == pytest.approx(pairs, abs=1e-9)
    assert counter.counts() == [2**pairs]
    assert counter.length_range() == ([pairs], [pairs])


def test_prices_that_rise_crash_and_rise_again_do_not_underflow() -> None:
    pairs = np.stack([2 * np.arange(1300) + 1, 2 * np.arange(1300)], axis=1).ravel()
    stage = whole(np.concatenate([pairs + 10_000, pairs[:2400]]))
    assert counter_of(stage, stage.slice()).counts() == [2**1300 + 2**1200]


def test_two_falling_runs_are_counted_without_their_edges() -> None:
    n = 20_000
    stage = whole(np.concatenate([np.arange(n // 2)[::-1], np.arange(n // 2)[::-1] + n]))
    counter = counter_of(stage, stage.slice())
    assert direct_count.is_better(counter.direct)
    assert counter.counts() == [n * n // 4]
    assert counter.length_range() == ([2], [2])


def test_few_edges_are_better_listed() -> None:
    stage = whole(np.random.default_rng(1).permutation(5000))
    assert not direct_count.is_better(DirectEdges(stage.slice(), stage.adjacency()))


def test_columns_that_the_query_does_not_name_are_summed() -> None:
    """Other output has other columns, and the direct successors that it shares were found without them."""
    n = 1100  # two layers, with more direct edges than are worth listing
    x = np.concatenate([np.arange(n, 0, -1), np.arange(3 * n, 2 * n, -1)])
    table = pa.table({"ts": np.arange(2 * n), "id": np.arange(2 * n), "x": x, "y": np.arange(2 * n)})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal")
    trends = query.detect(table, time="ts", event_id="id")
    assert isinstance(trends.operator.counter, DirectCounter)
    (row,) = trends.aggregate("sum(s.y)").to_pylist()
    assert int(row["sum_s_y_text"]) == n * int(np.arange(2 * n).sum())
