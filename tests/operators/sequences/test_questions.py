"""What can be asked of fixed sequences, and what is wrong with some."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.cli.cases import run
from trellis.errors import ListingRefused, TrellisError
from trellis.operators.sequences.operator import SequenceOperator

N = 40
RNG = np.random.default_rng(7)
TABLE = pa.table(
    {
        "ts": np.arange(N),
        "name": np.array(["Google", "IBM", "Sun"])[RNG.integers(0, 3, N)],
        "price": RNG.integers(1, 9, N).astype(float),
    }
)
STAR = "PATTERN T1;T2;T3 WHERE T1.price > T2.price AND T1.price > T3.price"
FIGURES = "count(*), sum(T2.price), min(T3.price), max(T1.price), avg(T3.price), avg(LENGTH)"


def detect(text: str, table: pa.Table = TABLE, **options: Any) -> Any:
    return trellis.query(text).detect(table, time="ts", **options)


def plainly(within: int = N) -> list[tuple[int, int, int]]:
    price = TABLE["price"].to_pylist()
    return [
        (a, b, c)
        for a, b, c in combinations(range(N), 3)
        if price[a] > price[b] and price[a] > price[c] and c - a <= within
    ]


@pytest.mark.parametrize("within", [N, 9])
def test_the_matches_are_those_of_three_loops(within: int) -> None:
    trends = detect(f"{STAR} WITHIN {within}")
    assert isinstance(trends.operator, SequenceOperator)
    rows = trends.to_arrow().to_pylist()
    assert [(row["T1"], row["T2"], row["T3"]) for row in rows] == plainly(within)
    assert [row["rank"] for row in rows] == list(range(trends.count()))
    for rank in (0, 5, len(rows) - 1):
        assert trends.trend(rank).to_pylist() == [rows[rank]]
    drawn = trends.sample(4, seed=2).to_pylist()
    assert len(drawn) == 4
    assert all(row in rows for row in drawn)
    assert trends.top(2, by="length").num_rows == 2
    assert pa.Table.from_batches(trends.batches(ranks=range(3, 8)), schema=trends.schema).to_pylist() == rows[3:8]


def test_aggregates_are_those_of_the_list() -> None:
    price = TABLE["price"].to_pylist()
    rows = plainly(9)
    (found,) = detect(f"{STAR} WITHIN 9").aggregate(*FIGURES.split(", ")).to_pylist()
    assert list(found.values())[:3] == [len(rows), str(len(rows)), sum(price[b] for _, b, _ in rows)]
    assert found["min_T3_price"] == min(price[c] for _, _, c in rows)
    assert found["max_T1_price"] == max(price[a] for a, _, _ in rows)
    assert found["avg_T3_price"] == pytest.approx(sum(price[c] for _, _, c in rows) / len(rows))
    assert found["avg_length"] == 3


def test_what_is_written_is_what_is_listed(tmp_path: Path) -> None:
    trends = detect(STAR)
    trends.write(str(tmp_path / "out"))
    assert pq.read_table(tmp_path / "out").equals(trends.to_arrow())
    exploded = trends.explode()
    assert exploded["variable"].to_pylist()[:3] == ["T1", "T2", "T3"]
    assert exploded.num_rows == 3 * trends.count()


def test_a_constant_goes_over_an_equality() -> None:
    text = "PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T3.name = 'IBM' AND T1.price > T3.price"
    trends = detect(text)
    assert trends.operator.leaves.sizes[0] == TABLE["name"].to_pylist().count("IBM")
    sequence = trends.plan.sequence
    assert sequence is not None
    assert [condition.variables for condition in sequence.inferred] == [("T1",)]


def test_twenty_variables_are_counted_and_unranked() -> None:
    text = "PATTERN " + ";".join(f"v{i}" for i in range(20)) + " WHERE v0.price < 100.0 AND v0.ts < v9.ts"
    trends = detect(text)
    assert trends.count() == comb(N, 20)
    row = trends.trend(comb(N, 20) - 1).to_pylist()[0]
    assert [row[f"v{i}"] for i in range(20)] == list(range(20, 40))


def test_a_trillion_matches_are_counted_and_not_listed() -> None:
    table = pa.table({"ts": np.arange(20_000), "price": np.arange(20_000, 0, -1).astype(float)})
    trends = detect(STAR, table)
    assert trends.count() == comb(20_000, 3) > 10**12
    with pytest.raises(ListingRefused, match="1,333,133,340,000"):
        trends.to_arrow()
    assert detect(f"{STAR} LIMIT 2", table).to_arrow()["T3"].to_pylist() == [2, 3]


def test_null_and_nan_match_nothing() -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "x": [3.0, None, float("nan"), 1.0]})
    assert detect("PATTERN a;b;c WHERE a.x > c.x", table).count() == 2
    assert detect("PATTERN a;b;c WHERE a.x != b.x AND a.x > c.x", table).count() == 0


@pytest.mark.parametrize("number", [0, 1, 2])
def test_too_few_events(number: int) -> None:
    trends = detect(STAR, TABLE.slice(0, number))
    assert trends.count() == 0
    assert trends.to_arrow().num_rows == 0


def test_equal_times_do_not_follow_one_another() -> None:
    table = pa.table({"ts": [1, 1, 2, 2], "x": [5, 5, 1, 1]})
    assert detect("PATTERN a;b WHERE a.x > b.x WITHIN 1", table, algorithm="walk").count() == 4
    assert detect("PATTERN a;b;c WHERE a.x > c.x", table).count() == 0


def test_one_variable_is_an_event() -> None:
    assert detect("PATTERN a WHERE a.price > 4", algorithm="walk").count() == sum(
        price > 4 for price in TABLE["price"].to_pylist()
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PATTERN a;b WHERE a.price > d.price", "`d`"),
        ("PATTERN a;b WHERE a.price > b.price WITHIN 0", "WITHIN"),
        ("PATTERN a;b WHERE a.cost > b.price", "`cost`"),
    ],
)
def test_mistakes_are_told(text: str, said: str) -> None:
    with pytest.raises(TrellisError, match=said):
        detect(text)


def test_explain_draws_the_tree(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "events.parquet")
    text = "PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T2.name = 'Google' AND T1.price > T2.price WITHIN 20"
    done = run("explain", text, str(tmp_path / "events.parquet"), "--time", "ts", "--engine", "local")
    assert done.code == 0, done.err
    for words in ("conditions join T1 and T2, T1 and T3", "tree plan:", "T1;T2;T3", "terms T1.name", "evaluations"):
        assert words in done.out, done.out
    assert f"{detect(text).count():,} seen" in done.out
