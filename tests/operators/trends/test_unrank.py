"""Trends by rank and by chance: the same as listing them all, without listing them."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import trellis
from tests.compare import OVERFLOW, detect, expected
from tests.profiles import examples
from tests.strategies import Case, case
from trellis.errors import TrellisError, UsageError
from trellis.operators.ranks import Ranks
from trellis.operators.trends.unrank import sampled_ranks, shares
from trellis.plan.sizes import Sizes


@examples(250)
@given(case(), st.integers(0, 3))
def test_every_rank_gives_the_trend_that_the_oracle_ranks_there(drawn: Case, seed: int) -> None:
    answer = expected(drawn)
    assume(answer != OVERFLOW and answer.trends)  # type: ignore[union-attr]
    trends = detect(drawn)
    assume(not trends.plan.bound.aggregates)
    ids: dict[int, list[tuple[int, list[object]]]] = {}
    group = -1
    place_before: object = object()
    for trend in answer.trends:  # type: ignore[union-attr]
        here = (trend.window, repr(trend.partition))
        group += here != place_before
        place_before = here
        ids.setdefault(group, []).append((trend.rank, list(trend.events)))
    filled = [g for g, count in enumerate(trends.operator.counts) if count]
    events = trends.operator.events.ids
    for found, ranked in zip(filled, ids.values(), strict=True):
        depth_of_walk = trends.operator.at(found, [rank for rank, _ in ranked])
        starts = [0, *depth_of_walk.ends[:-1].tolist()]
        paths = [depth_of_walk.positions[a:b] for a, b in zip(starts, depth_of_walk.ends.tolist(), strict=True)]
        assert [events.take(pa.array(p)).to_pylist() for p in paths] == [wanted for _, wanted in ranked]
    assert trends.sample(len(answer.trends) + 1).num_rows == len(answer.trends)  # type: ignore[union-attr]
    assert repr(trends.sample(2, seed).to_pylist()) == repr(trends.sample(2, seed).to_pylist())


def rising(n: int) -> pa.Table:
    return pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})


def test_ranks_of_any_size() -> None:
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any").detect(rising(200), event_id="id")
    total = 2**200 - 1
    assert trends.count() == total
    first, last = trends.trend(0).to_pylist()[0], trends.trend(total - 1).to_pylist()[0]
    assert (first["events"], first["rank"]) == ([0], 0)
    assert (last["events"], last["rank"]) == ([199], None)
    # a trend that starts at 0 and skips to the last event comes right before those that start at 1
    assert trends.trend(2**199 - 1).to_pylist()[0]["events"] == [0, 199]
    assert trends.trend(2**199).to_pylist()[0]["events"] == [1]
    with pytest.raises(UsageError, match="no trend with rank"):
        trends.trend(total)


def test_having_changes_ranks() -> None:
    text = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 3 AND LENGTH <= 70"
    trends = trellis.query(text).detect(rising(100), event_id="id")
    trend = trends.trend(trends.count() - 1).to_pylist()[0]
    assert trend["events"] == [0, 98, 99]
    assert len(trends.trend(10**20).to_pylist()[0]["events"]) <= 70


def test_one_of_several_windows_is_named() -> None:
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x WITHIN 4 SLIDE 4").detect(rising(8), event_id="id")
    with pytest.raises(UsageError, match="2 windows and partitions fit"):
        trends.trend(0)
    with pytest.raises(UsageError, match="no window and partition with a result fits"):
        trends.trend(0, window=3)
    assert trends.trend(1, window=4).to_pylist()[0]["events"] == [4, 5, 7]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_ranks_are_shared_out(sizes: list[int], data: st.DataObject) -> None:
    places = [(i, j) for i, size in enumerate(sizes) for j in range(size)]
    ranks = sorted(data.draw(st.sets(st.sampled_from(range(len(places)))))) if places else []
    shared = [(i, j) for i, inner in shares(Ranks.of(ranks), np.cumsum(sizes).tolist()) for j in inner]
    assert shared == [places[rank] for rank in ranks]


def test_samples_are_uniform_over_groups_and_without_replacement() -> None:
    draws = Counter(
        tuple((g, r) for g, ranks in sampled_ranks([2, 0, 3], 2, seed).items() for r in ranks) for seed in range(5000)
    )
    assert len(draws) == 10
    assert all(400 < number < 600 for number in draws.values())
    assert sampled_ranks([1, 0, 2], 7, 0).keys() == {0, 2}
    assert sampled_ranks([10**30, 10**40], 3, 1)[1][2] == sampled_ranks([10**30, 10**40], 3, 1)[1][2]


@pytest.mark.parametrize(
    "condition", ["x > s[i-1].x", "x != s[i-1].x", "k = s[i-1].k", "x >= s[i-1].x AND s[i].w > s[i-1].w"]
)
def test_a_sample_has_the_rows_of_the_list(condition: str) -> None:
    rng = np.random.default_rng(2)
    n = 14
    columns = {"x": np.sort(rng.integers(0, 9, n)), "k": rng.integers(0, 2, n), "w": rng.integers(0, 30, n)}
    table = pa.table({"ts": np.sort(rng.integers(0, 12, n)), "id": [f"e{i}" for i in range(n)], **columns})
    query = trellis.query(f"PATTERN S+ s[] WHERE s[i].{condition} REPORT any")
    trends = query.detect(table, event_id="id", sizes=Sizes(found_alone=5))
    listed = trends.to_arrow()
    for number in (0, 1, 7, trends.count() // 2, trends.count() - 1, trends.count() + 3):
        sampled = trends.sample(number, seed=number)
        assert sampled.num_rows == min(number, trends.count())
        assert sampled == listed.take(sampled.column("rank"))
    assert trends.sample(9, seed=1) == trends.sample(9, seed=1) != trends.sample(9, seed=2)


def test_every_trend_is_sampled_as_often() -> None:
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any").detect(rising(5), event_id="id")
    assert trends.count() == 31
    drawn = Counter(rank for seed in range(300) for rank in trends.sample(10, seed).column("rank").to_pylist())
    assert sum(drawn.values()) == 3000
    assert all(55 < drawn[rank] < 140 for rank in range(31))  # 97 each, give or take 8


def test_what_unranking_a_window_needs_is_kept_up_to_a_bound() -> None:
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x WITHIN 4 SLIDE 4")
    trends = query.detect(rising(12), event_id="id", sizes=Sizes(few_rows=0))
    unranker = trends.operator.unranker
    for window in (0, 4, 0, 8, 4):
        trends.trend(0, window=window)
    assert list(unranker.unrankers) == [0, 2, 1]
    one = unranker.unrankers[1]
    trends.sample(3, seed=4)
    assert trends.trend(1, window=4).to_pylist()[0]["events"] == [4, 5, 7]
    assert unranker.unrankers[1] is one
    for room, left in ((2 * one.nbytes, [0, 1]), (0, [1])):
        other = query.detect(rising(12), event_id="id", sizes=Sizes(few_rows=0, kept_bytes=room))
        for window in (8, 0, 4):
            other.trend(0, window=window)
        assert list(other.operator.unranker.unrankers) == left


@pytest.mark.parametrize("tail", ["", "HAVING LENGTH >= 3"])
def test_too_much_memory_is_refused_kindly(tail: str) -> None:
    query = trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x {tail}")
    trends = query.detect(rising(600), event_id="id", sizes=Sizes(unrank_bytes=1 << 12))
    with pytest.raises(TrellisError, match=r"trends from 600 events on are needed, which take 0\.\d GiB"):
        trends.trend(0)


def test_top_and_aggregate_read_columns_that_the_query_does_not() -> None:
    table = rising(6).append_column("w", pa.array([5, 1, 9, 2, 8, 3]))
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x").detect(table, event_id="id")
    assert trends.top(2).to_pylist()[0]["events"] == [0, 1, 2, 3, 4, 5]
    assert [row["events"] for row in trends.top(2, by="max(s.w) - sum(s.w)").to_pylist()] == [[0, 5], [0, 1, 5]]
    assert trends.aggregate("sum(s.w)", "count(*) AS n").to_pylist()[0]["sum_s_w_text"] == str(
        16 * 8 + 8 * (1 + 9 + 2 + 8)
    )


def test_a_window_may_be_named_as_people_write_it() -> None:
    minutes = [dt.datetime(2024, 5, 1, 9, m) for m in (0, 1, 2, 5, 6, 7)]
    table = pa.table({"ts": minutes, "x": range(6), "id": range(6), "g": ["a"] * 6})
    query = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 5 min SLIDE 5 min")
    trends = query.detect(table, event_id="id")
    start = dt.datetime(2024, 5, 1, 9, 5)
    for window in (start, start.replace(tzinfo=dt.UTC), "2024-05-01 09:05", np.datetime64(start), pd.Timestamp(start)):
        assert trends.trend(0, window=window, partition={"g": "a"}).to_pylist()[0]["events"] == [3, 4, 5]
    with pytest.raises(UsageError, match="a rank is a whole number, not a float"):
        trends.trend(1.5, window=start)  # type: ignore[arg-type]
