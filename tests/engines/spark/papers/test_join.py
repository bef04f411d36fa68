"""The ABI paper's own way: listing by joins, and the index built by Spark, equal the oracle and the kernels."""

from __future__ import annotations

import datetime as dt
import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as dataset
import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

import trellis
from tests.compare import assert_same, detect, expected, plain_rows, rows_of
from tests.strategies import Case, arrow_table, case
from trellis.engines.spark.batch.operate import make_slice
from trellis.engines.spark.papers.construction import index_on_spark
from trellis.engines.spark.papers.indexed import NextNumbers, graph_of
from trellis.errors import ListingRefused, UsageError
from trellis.language.parser import parse
from trellis.operators.trends.operator import TrendOperator

pytestmark = pytest.mark.spark

PARALLELISM = (1, 2, 4, 7)
SCHEMA = dict.fromkeys("txnab", "int64") | {"id": "string", "y": "double", "z": "double", "g": "string"}

# Values and times tie, some are NULL or NaN, and integers are compared with doubles.
EQUALITY = "[g] AND s[i].a = s[i-1].b"
FALLING = "[g] AND s[i].x < 1.5 * s[i-1].x + 1"
KEYED = "[g] AND s[i].a = s[i-1].b AND s[i].y >= s[i-1].x"
FOR_BOTH = (
    "PATTERN E+ s[] WHERE [g] AND s[i].y > s[i-1].y WITHIN 12 SLIDE 4",
    f"PATTERN E+ s[] WHERE {EQUALITY} AND s[i].x IS NOT NULL AND s[i-1].x < 4 HAVING LENGTH > 1",
    f"PATTERN E+ s[] WHERE {KEYED} AND s.y > 0 REPORT any WITHIN 12 SLIDE 4 RETURN s, SUM(s.x) AS total, s.y",
    f"PATTERN E+ s[] WHERE {FALLING} HAVING LENGTH <= 3 WITHIN 6 SLIDE 6 LIMIT 4 PER WINDOW",
)
FOR_KERNELS = (
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT maximal WITHIN 12 SLIDE 6",
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 5 ORDER BY SUM(s.y) DESC LIMIT 3 PER WINDOW OFFSET 1",
    "PATTERN E+ s[] WHERE s[i].a != s[i-1].b AND s[i].x > s[i-1].x SELECT skip-till-next ORDER BY LENGTH DESC LIMIT 9",
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x AND s[i].y > s[i-1].y REPORT any ORDER BY LAST(s).y OFFSET 2",
    "PATTERN E+ s[] WHERE [g] AND s[i].x != s[i-1].x SELECT contiguous REPORT any",
)


def events(number: int, seed: int) -> list[dict[str, Any]]:
    """Return events of which many share a time or a value, in no order."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> Any:
        return values[rng.integers(len(values))]

    numbers = rng.permutation(number)
    return [
        {
            "t": int(rng.integers(0, number // 2)) - 5,
            "id": f"e{numbers[i]}",
            "x": some([0, 1, 2, 3, 4, 5, None]),
            "y": some([0.0, -0.0, 1.0, 2.5, 3.0, 4.5, None, float("nan"), float("inf")]),
            "n": some([2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**53) - 1, 3]),  # doubles do not hold all of these
            "z": some([2.0**53, 2.0**63, -(2.0**63), -(2.0**53), 3.0]),
            "a": some([1, 2, 3, None]),
            "b": some([1, 2, 3, 4]),
            "g": some(["A", "B", "B", None]),
        }
        for i in range(number)
    ]


@contextmanager
def with_settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session for a while."""
    before = {key: str(spark.conf.get(key)) for key in given}
    for key, value in given.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def compare(
    spark: SparkSession, text: str, number: int, constructions: tuple[str, ...], seed: int = 1, size: int = 36
) -> None:
    """Compare listing by joins with the oracle."""
    drawn = Case(parse(text), events(size, seed), {"time": "t", "event_id": "id"}, SCHEMA)
    answer = expected(drawn)
    assert not isinstance(answer, str)
    assert answer.rows
    with with_settings(spark, {"spark.sql.shuffle.partitions": str(number)}):
        for construction in constructions:
            trends = detect(drawn, engine="spark", spark=spark, algorithm="join", construction=construction)
            assert plain_rows(rows_of(trends)) == plain_rows(answer.rows), construction


@pytest.mark.slow
def test_both_constructions_equal_the_oracle(spark: SparkSession) -> None:
    compare(spark, FOR_BOTH[2], 7, ("auto", "spark"), size=16)


@pytest.mark.parametrize("text", FOR_KERNELS[:1])
@pytest.mark.slow
def test_edges_and_spans_equal_the_oracle(spark: SparkSession, text: str) -> None:
    compare(spark, text, 4, ("auto",))


@pytest.mark.slow
@pytest.mark.parametrize("number", PARALLELISM)
@pytest.mark.parametrize("text", [*FOR_BOTH, *FOR_KERNELS])
def test_every_query_at_every_parallelism_equals_the_oracle(spark: SparkSession, text: str, number: int) -> None:
    compare(spark, text, number, ("auto", "spark") if text in FOR_BOTH else ("auto",), seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("number", PARALLELISM)
@pytest.mark.parametrize("text", FOR_BOTH)
def test_a_thousand_random_cases_at_every_parallelism(spark: SparkSession, text: str, number: int) -> None:
    """Of each of four queries 250 cases: partitions of random events in one frame, which Spark builds the index of."""
    rows = [
        {**row, "id": f"{part}-{row['id']}", "part": part}
        for part in range(250)
        for row in events(2 + part % 9, 1000 * number + part)
    ]
    drawn = Case(parse(text.replace("WHERE [g]", "WHERE [part, g]")), rows, {"time": "t", "event_id": "id"},
                 SCHEMA | {"part": "int64"})  # fmt: skip
    answer = expected(drawn)
    assert not isinstance(answer, str)
    assert len({row["part"] for row in answer.rows}) > 50
    with with_settings(spark, {"spark.sql.shuffle.partitions": str(number)}):
        trends = detect(drawn, engine="spark", spark=spark, algorithm="join", construction="spark")
        assert plain_rows(rows_of(trends)) == plain_rows(answer.rows)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=case())
def test_random_queries_equal_the_oracle(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark, algorithm="join")


@pytest.mark.slow
def test_settings_change_nothing(spark: SparkSession) -> None:
    other = {"session.timeZone": "Asia/Tokyo", "ansi.enabled": "false", "caseSensitive": "false"}
    rows = [{**row, "t": dt.datetime(2024, 3, 10, 5, row["t"] + 5, tzinfo=dt.UTC)} for row in events(36, seed=3)]
    schema = {**SCHEMA, "t": "timestamp"}
    text = "PATTERN E+ s[] WHERE [g] AND s[i].t < s[i-1].t + 4 min WITHIN 9 min SLIDE 3 min RETURN s, s.t, MAX(s.y)"
    drawn = Case(parse(text), rows, {"time": "t", "event_id": "id"}, schema)
    with with_settings(
        spark, {"spark.sql.adaptive.enabled": "false"} | {f"spark.sql.{k}": v for k, v in other.items()}
    ):
        for construction in ("auto", "spark"):
            assert_same(drawn, engine="spark", spark=spark, algorithm="join", construction=construction)


# --- The index --------------------------------------------------------------------------------------------------


def test_the_index_is_that_of_the_kernels(spark: SparkSession) -> None:
    compare_indexes(spark, "s[i].a = s[i-1].b AND s[i].z <= s[i-1].n")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "s[i].a = s[i-1].b AND ", "s[i].a = s[i-1].x AND s[i].b = s[i-1].y AND "])
@pytest.mark.parametrize("compared", ["s[i].x {} s[i-1].y", "s[i].z {} s[i-1].n", "s[i].g {} s[i-1].id"])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_every_index_is_that_of_the_kernels(spark: SparkSession, op: str, compared: str, key: str) -> None:
    compare_indexes(spark, key + compared.format(op))


def compare_indexes(spark: SparkSession, condition: str) -> None:
    """Compare vertices, edges, starts and ends of each group, as Spark and as the kernels build them."""
    trends = joined(spark, f"PATTERN E+ s[] WHERE [g] AND {condition} WITHIN 12 SLIDE 12", 40)
    found = index_on_spark(trends.split_rows()).toArrow().sort_by("event")
    group_of = found["event"].to_numpy() >> 32
    assert len(np.unique(group_of)) > 5
    for group in np.unique(group_of).tolist():
        rows = found.filter(pa.array(group_of == group))
        graph = graph_of(TrendOperator(trends.plan, make_slice(trends.plan, rows)))
        base = group << 32
        wanted = graph.rows(rows.select(trends.split_rows().rows.columns), NextNumbers(base, base, group))
        assert [described(row, base + (1 << 32)) for row in rows.to_pylist()] == [
            described(row, base + len(graph)) for row in wanted.to_pylist()
        ]


def described(row: dict[str, Any], until: int) -> dict[str, Any]:
    """Return what is known of an event, with its group ending at `until`."""
    starts = [(start["group"], start["window"]) for start in row["starts"]]
    assert all(start["until"] == until for start in row["starts"])
    known = {name: row[name] for name in ("event", "vertex", "to", "later")}
    return {**known, "starts": starts, "followed": row["nearest"] < until}


# --- What it gives besides ---------------------------------------------------------------------------------------


def joined(spark: SparkSession, text: str, number: int = 30, **options: Any) -> Any:
    """Return trends of random events that are listed by joins."""
    table = arrow_table(events(number, seed=2), SCHEMA)
    given = {"time": "t", "event_id": "id", "engine": "spark", "spark": spark, "algorithm": "join"}
    return trellis.query(text).detect(table, **{**given, **options})


@pytest.mark.slow
def test_rows_are_written_and_exploded(spark: SparkSession, tmp_path: Path) -> None:
    text = f"PATTERN E+ s[] WHERE {EQUALITY}"
    trends, usual = joined(spark, text), joined(spark, text, algorithm="ranks")
    trends.write(str(tmp_path / "out"))
    written = dataset.dataset(tmp_path / "out").to_table()
    assert rows_in_order(written) == rows_in_order(usual.to_arrow())
    assert rows_in_order(trends.explode().to_arrow()) == rows_in_order(usual.explode().to_arrow())


@pytest.mark.slow
def test_spark_forgets_the_paths_with_the_trends(spark: SparkSession) -> None:
    others = kept(spark)
    trends = joined(spark, f"PATTERN E+ s[] WHERE {EQUALITY}")
    rows = trends.to_spark()
    assert kept(spark) - others
    del trends, rows
    deadline = time.monotonic() + 20
    while kept(spark) - others and time.monotonic() < deadline:
        gc.collect()
        spark.range(1).count()  # Spark may keep what it did last
        spark.sparkContext._jvm.System.gc()
        time.sleep(0.1)
    assert not kept(spark) - others


def kept(spark: SparkSession) -> set[int]:
    """Return the numbers of the frames that Spark keeps."""
    return {info.id() for info in spark.sparkContext._jsc.sc().getRDDStorageInfo()}


def rows_in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


# --- What it refuses ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_more_paths_than_the_bound_are_refused_before_the_first_round(spark: SparkSession) -> None:
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 3 LIMIT 2"
    count = joined(spark, text.replace("HAVING LENGTH >= 3", "")).count()
    assert joined(spark, text, max_trends=count).to_arrow().num_rows == 2
    with pytest.raises(
        ListingRefused, match=f"would make {count} paths, more than the bound of {count - 1}"
    ) as refused:
        joined(spark, text, max_trends=count - 1).to_spark()
    assert refused.value.count == count


def test_several_variables_are_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="extends the paths of one Kleene variable, and this pattern has more"):
        joined(spark, "PATTERN SEQ(E a, E+ b[])")


def test_a_graph_that_is_too_large_to_be_broadcast_is_refused(spark: SparkSession) -> None:
    trends = joined(spark, f"PATTERN E+ s[] WHERE {EQUALITY}")
    trends.most_edges = 29
    with pytest.raises(UsageError, match=r"30 events .* no more than 29"):
        trends.to_spark()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s[i].x > s[i-1].x SELECT skip-till-next", "SELECT other than skip-till-any"),
        ("s[i].x > s[i-1].x REPORT maximal", "REPORT maximal"),
        ("s[i].x > s[i-1].x WITHIN 5", "WITHIN without SLIDE"),
        ("s[i].x != s[i-1].x", "`!=`"),
        ("s[i].x > s[i-1].x OR s[i].y > s[i-1].y", "conditions whose sides do not each speak of one event"),
        ("s[i].x > s[i-1].x AND s[i].y > s[i-1].y", "more than one comparison besides equalities"),
        ("s[i].y > 0.10 * s[i-1].d", "values that Spark cannot compute exactly"),
    ],
)
def test_the_construction_says_what_it_does_not_take(spark: SparkSession, text: str, reason: str) -> None:
    table = arrow_table([], {**SCHEMA, "d": "decimal(10,2)"})
    query = trellis.query(f"PATTERN E+ s[] WHERE {text}")
    with pytest.raises(UsageError) as refused:
        query.detect(
            table, time="t", event_id="id", engine="spark", spark=spark, algorithm="join", construction="spark"
        )
    assert refused.value.what == f"the construction `spark` does not take {reason}"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (
            {"algorithm": "joins"},
            "no algorithm `joins`.*Did you mean `join`.*auto, ranks, join, dfs",
        ),
        ({"algorithm": "quick"}, "no algorithm `quick`.*There are auto, ranks, join, dfs"),
        ({"construction": "quick"}, "no construction `quick`.*There are auto, dynamic, dynamic-range, parallel and"),
        ({"construction": "spark"}, "for the algorithm `join`.*Ask for algorithm join too"),
        ({"algorithm": "join", "engine": "local"}, "joins data frames of Spark.*Use engine spark"),
    ],
)
def test_names_are_checked(options: dict[str, str], what: str) -> None:
    table = arrow_table([], SCHEMA)
    with pytest.raises(UsageError, match=f"(?s){what}"):
        trellis.query("PATTERN E+ s[]").detect(table, **{"time": "t", "engine": "spark", **options})
