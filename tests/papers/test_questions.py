"""What named algorithms are asked besides their results: limits, order, memory; and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.arguments import size_in_bytes
from trellis.errors import ListingRefused, TrellisError, UsageError
from trellis.papers.registry import ABI

RISING = "PATTERN S+ s[] WHERE s[i].price > s[i-1].price"
every_name = pytest.mark.parametrize("name", sorted(ABI))


def prices(values: list[float], times: list[int] | None = None) -> pa.Table:
    numbers = np.arange(len(values))
    return pa.table({"ts": numbers if times is None else times, "id": numbers, "price": pa.array(values, pa.float64())})


def detect(text: str, table: pa.Table, name: str, **options: Any) -> Any:
    return trellis.query(text).detect(table, time="ts", event_id="id", algorithm=name, **options)


# --- Small events -----------------------------------------------------------------------------------------------


@every_name
@pytest.mark.parametrize("construction", ["auto", "dynamic", "dynamic-range", "parallel"])
def test_few_or_equal_events(name: str, construction: str) -> None:
    def found(table: pa.Table) -> list[list[int]]:
        return sorted(detect(RISING, table, name, construction=construction).to_arrow()["events"].to_pylist())

    assert found(prices([])) == []
    assert found(prices([5.0])) == [[0]]
    assert found(prices([1.0, 2.0, 3.0], [7, 7, 7])) == [[0], [1], [2]]
    assert found(prices([float("nan"), 1.0, 2.0])) == [[0], [1, 2]]
    assert found(prices([2.0, 2.0, 2.0])) == [[0], [1], [2]]


@every_name
def test_limits_and_order_are_those_of_any_algorithm(name: str) -> None:
    table = prices(np.random.default_rng(3).integers(0, 30, 14).tolist())
    for clause in (
        "LIMIT 5",
        "LIMIT 1000",
        "LIMIT 4 OFFSET 3",
        "ORDER BY LENGTH DESC",
        "ORDER BY LENGTH DESC LIMIT 3",
        "OFFSET 2",
    ):
        usual = detect(f"{RISING} {clause}", table, "auto").to_arrow()
        assert detect(f"{RISING} {clause}", table, name).to_arrow().to_pylist() == usual.to_pylist(), clause
    usual, named = detect(RISING, table, "auto"), detect(RISING, table, name)
    assert named.first(3).to_pylist() == usual.first(3).to_pylist()
    assert named.trend(rank=4).to_pylist() == usual.trend(rank=4).to_pylist()
    assert named.top(3).to_pylist() == usual.top(3).to_pylist()
    assert named.sample(3, seed=2).to_pylist() == usual.sample(3, seed=2).to_pylist()
    assert named.counts().to_pylist() == usual.counts().to_pylist()
    assert sorted(map(str, named.explode().to_pylist())) == sorted(map(str, usual.explode().to_pylist()))


# --- Memory -----------------------------------------------------------------------------------------------------


def test_the_meter_tells_what_was_stored() -> None:
    table = prices(list(range(12)))  # 2**10 trends of up to 12 events
    peaks = {}
    for name, anchors in (("dfs", None), ("bfs", None), ("anchor", 2)):
        trends = detect(RISING, table, name, anchors=anchors)
        assert trends.to_arrow().num_rows == 1024
        peaks[name] = trends.operator.meter.peak
    assert peaks["dfs"] == 8 * 12
    assert peaks["bfs"] > 8 * 1024
    assert peaks["dfs"] < peaks["anchor"] < peaks["bfs"]


def test_more_than_the_memory_limit_is_refused() -> None:
    table = prices(list(range(14)))
    with pytest.raises(TrellisError, match=r"`bfs` stores .* more than the memory limit of 1,024"):
        detect(RISING, table, "bfs", memory_limit="1K").to_arrow()
    assert detect(RISING, table, "bfs", memory_limit="1G").to_arrow().num_rows == 4096
    assert detect(RISING, table, "anchor", memory_limit="2K").to_arrow().num_rows == 4096


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [("2G", 2 << 30), ("512MB", 512 << 20), ("1.5 GiB", 3 << 29), ("10k", 10240), ("7", 7), (9, 9), ("1tb", 1 << 40)],
)
def test_sizes(size: str | int, bytes_: int) -> None:
    assert size_in_bytes(size, "the memory limit") == bytes_


@pytest.mark.parametrize("size", ["0", "-2G", 0, -1, "0.1", "2X", "two", "", "G", "1e3", "2 G B", True, 1.5, "9" * 30])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(UsageError, match="memory limit"):
        detect(RISING, prices([1.0]), "bfs", memory_limit=size)


# --- What does not go together ----------------------------------------------------------------------------------


@every_name
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(S a, S+ b[])", "one Kleene variable"),
        ("PATTERN SEQ(S a, S b)", "one Kleene variable"),
        (f"{RISING} SELECT skip-till-next", "SELECT skip-till-any only"),
        (f"{RISING} SELECT contiguous", "SELECT skip-till-any only"),
        (f"{RISING} WITHIN 5", "a span"),
        (f"{RISING} HAVING LENGTH >= 2", "HAVING"),
    ],
)
def test_queries_that_they_do_not_take(name: str, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` .*{why}"):
        detect(text, prices([1.0, 2.0]), name)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"algorithm": "anchor", "anchors": 0}, "cannot be 0 anchors"),
        ({"algorithm": "anchor", "anchors": -3}, "cannot be -3 anchors"),
        ({"algorithm": "anchor", "anchors": 2.5}, "cannot be 2.5 anchors"),
        ({"algorithm": "anchor", "anchors": True}, "cannot be True anchors"),
        ({"algorithm": "dfs", "anchors": 3}, "`dfs` has no use for anchors"),
        ({"algorithm": "auto", "anchors": 3}, "`auto` has no use for anchors"),
        ({"algorithm": "bfs", "optimizer": "bnb"}, "`bfs` has no use for optimizer"),
        ({"algorithm": "bfs", "optimizer": "best"}, "no optimizer `best`"),
        ({"algorithm": "auto", "optimizer": "bnb"}, "`auto` has no use"),
        ({"algorithm": "auto", "construction": "dynamic"}, "a named algorithm, not of `auto`"),
        ({"algorithm": "dfs", "construction": "spark"}, "for the algorithm `join`"),
        ({"algorithm": "dfs", "construction": "dynamics"}, "no construction `dynamics`"),
        ({"algorithm": "dsf"}, "Did you mean `dfs`"),
    ],
)
def test_settings_that_mean_nothing(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){why}"):
        trellis.query(RISING).detect(prices([1.0, 2.0]), time="ts", event_id="id", **options)


def test_more_anchors_than_vertices() -> None:
    table = prices([1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match="5 anchors are more than the 4 attribute vertices"):
        detect(RISING, table, "anchor", anchors=5).to_arrow()
    assert detect(RISING, table, "anchor", anchors=4).to_arrow().num_rows == 2
    assert detect(RISING, prices([1.0]), "anchor", anchors=1).to_arrow().num_rows == 1
    assert detect(RISING, prices([]), "anchor", anchors=9).to_arrow().num_rows == 0


def test_a_query_without_anything_to_index() -> None:
    for options in ({"name": "anchor"}, {"name": "dfs", "construction": "parallel"}):
        with pytest.raises(UsageError, match="indexes an equality or an inequality"):
            detect("PATTERN S+ s[]", prices([1.0, 2.0]), **options).to_arrow()
    assert detect("PATTERN S+ s[]", prices([1.0, 2.0]), "dfs").to_arrow().num_rows == 1


@every_name
def test_the_bound_on_listing_holds_for_what_is_found_on_the_way(name: str) -> None:
    trends = detect(f"{RISING} LIMIT 3", prices(list(range(16))), name, max_trends=1000)
    with pytest.raises(ListingRefused, match="would find all 16,384 trends"):
        trends.to_arrow()
    with pytest.raises(UsageError, match="compact"):
        list(detect(RISING, prices([1.0, 2.0]), name).batches(compact=True))
