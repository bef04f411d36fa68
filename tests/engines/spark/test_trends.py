"""The Spark engine gives what the local one gives: every input, output and refusal, in sessions of any kind."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import trellis
from tests.compare import assert_same_rows, plain_rows
from trellis.engines.local.results import LocalResults
from trellis.engines.spark.batch.results import SparkResults
from trellis.engines.spark.split import rows
from trellis.errors import DataError, ListingRefused, OverflowInCondition, TrellisError, UsageError
from trellis.results.table import ResultTable

pytestmark = pytest.mark.spark

NAN = float("nan")
N = 60
RANDOM = random.Random(3)
SECOND = 1_000_000


def some(*values: Any) -> list[Any]:
    return [RANDOM.choice(values) for _ in range(N)]


TABLE = pa.table(
    {
        "ts": pa.array([RANDOM.randrange(40) * SECOND + 1 for _ in range(N)], pa.timestamp("us", "UTC")),
        "id": [f"e{i:02}" for i in RANDOM.sample(range(N), N)],
        "g": pa.array(some(0.0, -0.0, 1.5, NAN, None), pa.float64(), from_pandas=False),
        "x": some(*range(8), None),
        "y": pa.array(some(0.5, 1.5, -2.0, NAN, None), pa.float64(), from_pandas=False),
        "d": pa.array(some(Decimal("0.50"), Decimal("1.25"), Decimal("-2.00"), None), pa.decimal128(10, 2)),
        "k": some("a", "b", 'c"d', "é,\n", None),
    }
)
RISING = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"
ITEMS = "RETURN s, s.ts, s.k, s.d, AVG(s.y), FIRST(s).k"
FULL = f"PATTERN E+ s[] WHERE [g] AND s.d <= 1.2 AND s[i].x >= s[i-1].x WITHIN 9 s SLIDE 4 s {ITEMS}"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """The events as a frame of three parts on Spark."""
    return spark.createDataFrame(TABLE).repartition(3).cache()


def detect(data: Any, text: str, **options: Any) -> SparkResults:
    trends = trellis.query(text).detect(data, **{"event_id": "id", **options})
    assert isinstance(trends, SparkResults)
    return trends


def here(text: str, table: Any = TABLE, **options: Any) -> LocalResults:
    trends = trellis.query(text).detect(table, **{"event_id": "id", "engine": "local", **options})
    assert isinstance(trends, LocalResults)
    return trends


def plain_table(table: pa.Table | ResultTable) -> list[dict[str, Any]]:
    return plain_rows(table.to_pylist())


def mistake(ask: Callable[[], Any]) -> tuple[type[BaseException], str]:
    with pytest.raises(TrellisError) as caught:
        ask()
    return type(caught.value), caught.value.what


# --- Results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        f"{RISING} AND [k] REPORT maximal WITHIN 12 s",
        f"{RISING} AND s.d <= s.y SELECT contiguous",  # Spark has no exact way to compare these
        f"{RISING} ORDER BY MAX(s.y) DESC, LENGTH LIMIT 9 OFFSET 2",
        f"{RISING} LIMIT 7 OFFSET 5",
        f"{RISING} AND [g] REPORT any WITHIN 9 s SLIDE 9 s ORDER BY SUM(s.x) DESC LIMIT 3 PER WINDOW OFFSET 1",
        f"{RISING} AND [g] WITHIN 9 s SLIDE 9 s LIMIT 1 PER WINDOW",
        f"{RISING} AND [g] WITHIN 9 s SLIDE 9 s LIMIT 1 PER WINDOW, FIRST(s).k",
        f"{RISING} AND [g] WITHIN 9 s SLIDE 9 s ORDER BY LENGTH DESC LIMIT 2 PER FIRST(s).k, LAST(s).y OFFSET 1",
    ],
)
def test_rows_and_their_order(frame: DataFrame, text: str) -> None:
    found = detect(frame, text).to_arrow()
    wanted = here(text)
    assert found.schema.equals(wanted.schema)
    assert plain_table(found) == plain_table(wanted.to_arrow())


def test_everything_else_that_is_asked(frame: DataFrame) -> None:
    trends, local = detect(frame, FULL), here(FULL)
    assert trends.count() == local.count()
    assert plain_table(trends.counts()) == plain_table(local.counts())
    assert trends.statistics == local.statistics
    items = ("count(*)", "sum(s.x)", "avg(s.y)", "max(s.k)", "min(length)", "sum(s.d)")
    assert plain_table(trends.aggregate(*items)) == plain_table(local.aggregate(*items))
    exploded = trends.explode()
    assert exploded.to_spark().columns == local.explode().column_names
    assert plain_table(exploded) == plain_table(local.explode())


@pytest.mark.parametrize(
    "clauses",
    [
        "LIMIT 3 OFFSET 2",
        "ORDER BY LENGTH DESC, SUM(s.x) LIMIT 4 OFFSET 1",
        "WITHIN 9 s SLIDE 9 s ORDER BY MAX(s.y) LIMIT 2 PER WINDOW",
    ],
)
def test_the_events_of_selected_trends(frame: DataFrame, clauses: str) -> None:
    exploded, local = (
        detect(frame, f"{RISING} AND [g] {clauses}").explode(),
        here(f"{RISING} AND [g] {clauses}").explode(),
    )
    assert exploded.schema.equals(local.schema)
    assert plain_table(exploded) == plain_table(local)
    assert sorted(map(str, exploded.to_spark().toArrow().to_pylist())) == sorted(
        map(str, exploded.to_arrow().to_pylist())
    )


def test_aggregates(frame: DataFrame) -> None:
    text = f"{RISING} AND [g, k] WITHIN 20 s SLIDE 10 s AGGREGATE COUNT(*), AVG(s.y) AS mean GROUP BY k"
    assert plain_table(detect(frame, text).to_arrow()) == plain_table(here(text).to_arrow())
    items = "COUNT(*), SHARE, BEGINS, ENDS, SUM(s.d), MAX(s.k), SUM(LENGTH), AVG(s.x * s.x) AS square PER EVENT"
    per_event = f"{RISING} AND [g, k] WITHIN 20 s SLIDE 10 s AGGREGATE {items}"
    assert plain_table(detect(frame, per_event).to_arrow()) == plain_table(here(per_event).to_arrow())
    gains = f"{RISING} AND [k] AGGREGATE MAX(LAST(s).x - FIRST(s).x) AS gain, SUM(ROUND(AVG(s.d))) AS r"
    assert plain_table(detect(frame, gains).to_arrow()) == plain_table(here(gains).to_arrow())
    nothing = f"{RISING} AND s.x > 99 AGGREGATE COUNT(*), SUM(s.x)"
    assert plain_table(detect(frame, nothing).to_arrow()) == plain_table(here(nothing).to_arrow())
    with pytest.raises(UsageError, match="the query has no AGGREGATE"):
        detect(frame, RISING).aggregates()


@pytest.mark.slow
def test_batches(frame: DataFrame) -> None:
    trends, local = detect(frame, FULL), here(FULL)
    names = ["s_ts", "g", "window_end", "rank"]
    batches = list(trends.batches(columns=names))
    assert all(batch.schema.names == names for batch in batches)
    assert batches[0].schema.field("window_end").type == pa.timestamp("us", "UTC")
    assert plain_table(pa.Table.from_batches(batches)) == plain_table(local.to_arrow().select(names))
    with pytest.raises(UsageError, match=r"the result has no column `ranks`\nDid you mean `rank`\?"):
        next(trends.batches(columns=["ranks"]))


def test_frames(frame: DataFrame) -> None:
    trends = detect(frame, f"{RISING} LIMIT 3")
    wanted = here(f"{RISING} LIMIT 3").to_arrow()["events"].to_pylist()
    assert [list(ids) for ids in trends.to_pandas()["events"]] == wanted
    assert trends.to_polars()["events"].to_list() == wanted
    assert [list(row["events"]) for row in trends.to_spark().collect()] == wanted
    assert repr(trends) == "<results of `E+ s[]` on Spark>"


# --- Inputs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda spark, t: t,
        lambda spark, t: t.to_pandas(),
        lambda spark, t: pl.from_arrow(t),
        lambda spark, t: {"E": t.slice(20), "F": spark.createDataFrame(t.slice(0, 20).drop_columns(["x", "k"]))},
    ],
    ids=["arrow", "pandas", "polars", "by type"],
)
def test_inputs(spark: SparkSession, make: Callable[[SparkSession, pa.Table], Any]) -> None:
    text = f"{RISING} SELECT contiguous"
    data = make(spark, TABLE.select(["ts", "id", "x", "k"]))
    found = trellis.query(text).detect(data, engine="spark", spark=spark).to_arrow()
    assert plain_table(found) == plain_table(here(text, data, event_id=None).to_arrow())


@pytest.mark.slow
def test_paths(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 40), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(40), tmp_path / "b.parquet")
    whole = here(f"{RISING} LIMIT 20").to_arrow()
    by_type = {"E": [tmp_path / "b.parquet", str(tmp_path / "a.parquet")], "F": str(tmp_path / "a.parquet")}
    for data in (str(tmp_path), by_type):
        assert detect(data, f"{RISING} LIMIT 20", spark=spark).to_arrow().equals(whole)
    (tmp_path / "c.csv").write_text("ts,x\n2024-01-01 00:00,1\nnever,2\n2024-01-01 00:02,3\n")
    for engine in ("spark", "local"):
        trends = trellis.query(RISING).detect(tmp_path / "c.csv", on_bad_rows="drop", engine=engine)
        assert trends.to_arrow()["events"].to_pylist() == [[0, 1]]
        assert trends.statistics["dropped"] == 1


def test_local_results_become_a_frame(spark: SparkSession) -> None:
    local = here(f"{RISING} LIMIT 20")
    assert plain_table(local.to_spark().toArrow()) == plain_table(local.to_arrow())


def test_types_that_spark_does_not_have(spark: SparkSession) -> None:
    n = 3
    table = pa.table(
        {
            "ts": pa.array([1_000, 2_000, 3_000], pa.int64()).cast(pa.timestamp("ns")),
            "x": pa.array(range(n), pa.uint64()),
            "half": pa.array(np.arange(n, dtype=np.float16)),
            "view": pa.array(["a", "b", None], pa.string_view()),
            "word": pa.array(["a", "b", None]).dictionary_encode(),
            "wide": pa.array([Decimal("1.5"), None, Decimal("2")], pa.decimal256(50, 3)),
            "day": pa.array([0, 86_400_000, None], pa.date64()),
            "local": pa.array([0, 1, None], pa.timestamp("s", "Asia/Tokyo")),
            "long": pa.array([1, None, 2], pa.duration("ms")),
            "id": pa.array(range(n), pa.uint8()),
        }
    )
    found = detect(table, RISING, engine="spark", spark=spark).explode()
    assert plain_table(found) == plain_table(here(RISING, table).explode())
    finer = table.set_column(0, "ts", pa.array([1_000, 2_001, 3_000], pa.int64()).cast(pa.timestamp("ns")))
    with pytest.raises(DataError, match="a timestamp is finer than microseconds"):
        detect(finer, RISING, engine="spark", spark=spark)
    long = pa.table({"ts": pa.array([Decimal("1e20")], pa.decimal128(38, 10)), "x": [1], "id": [1]})
    with pytest.raises(DataError, match="a time has too many digits"):
        detect(long, RISING, engine="spark", spark=spark).count()


@pytest.mark.parametrize("data", [{}, None, [1, 2]])
def test_what_is_no_table(spark: SparkSession, data: Any) -> None:
    with pytest.raises(UsageError, match=r"no table of events was given|events cannot be read from"):
        detect(data, RISING, engine="spark", spark=spark)


def test_tables_that_cannot_be_read_together(spark: SparkSession, frame: DataFrame) -> None:
    with pytest.raises(DataError, match="the events have two columns called `x`"):
        detect(frame.select("ts", "id", "x", "x"), RISING)
    with pytest.raises(DataError, match="the tables do not fit together: `x` is an integer and a string"):
        detect({"E": frame, "F": frame.withColumn("x", frame["k"])}, RISING)
    with pytest.raises(UsageError, match="types come from several tables and from a column"):
        detect({"E": frame}, RISING, type="k")


def test_types_that_differ_only_in_case(spark: SparkSession) -> None:
    table = pa.table({"ts": [1, 2], "x": [1, 2], "id": [1, 2], "kind": ["e", "F"]})
    with pytest.warns(UserWarning, match="no event has the type `E`, but some have `e`"):
        assert detect(table, RISING, type="kind", engine="spark", spark=spark).count() == 0


def test_no_events(spark: SparkSession) -> None:
    none = pd.DataFrame({"ts": pd.Series([], dtype="int64"), "x": pd.Series([], dtype=object), "id": []})
    for text in (RISING, f"{RISING} AND [id] WITHIN 3 SLIDE 2"):
        trends, local = detect(none, text, engine="spark", spark=spark), here(text, none)
        assert trends.to_arrow().equals(local.to_arrow())
        assert trends.statistics == local.statistics
        assert plain_table(trends.aggregate("count(*)")) == plain_table(local.aggregate("count(*)"))


# --- Bad rows ---------------------------------------------------------------------------------------------------

BAD = pa.table(
    {
        "ts": pa.array([1.0, None, NAN, 4.0, 5.0], from_pandas=False),
        "id": ["a", "b", "c", None, "e"],
        "x": [1, 2, 3, 4, 5],
    }
)
# of `a` at time 1 the row with z = 1 and x = 9 comes first; a column that no condition names decides
REPEATED = pa.table(
    {
        "ts": [5, 1, 1, 2, 9],
        "id": ["a", "a", "a", "b", "a"],
        "z": [0, 2, 1, 0, 0],
        "x": [3, 2, 9, 1, 4],
        "d": [Decimal("1.0"), Decimal("1.0"), Decimal("1.0"), Decimal("1.0"), Decimal("7.0")],
        "y": [2.0, 2.0, 2.0, 2.0, 2.0],
    }
)


@pytest.mark.parametrize(("table", "role"), [(BAD, "time"), (BAD.take([0, 3, 4]), "id")])
def test_rows_without_a_readable_time_or_id(spark: SparkSession, table: pa.Table, role: str) -> None:
    message = mistake(detect(table, RISING, engine="spark", spark=spark).count)
    assert message[0] is DataError
    assert message[1].split(",")[0] == mistake(here(RISING, table).count)[1].split(",")[0]
    assert f"no readable {role}" in message[1]
    trends = detect(table, RISING, engine="spark", spark=spark, on_bad_rows="drop")
    local = here(RISING, table, on_bad_rows="drop")
    assert trends.to_arrow().equals(local.to_arrow())
    assert trends.statistics == local.statistics
    with pytest.raises(UsageError, match="on_bad_rows is `skip`"):
        detect(table, RISING, engine="spark", spark=spark, on_bad_rows="skip")


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("PATTERN E+ s[] RETURN s, s.x", 3),
        ("PATTERN E+ s[] WITHIN 4 SLIDE 4 RETURN s, s.x", 1),
        ("PATTERN E+ s[] WHERE s.d > s.y RETURN s, s.x", 0),
        ("PATTERN E+ s[] WHERE s.x < 4 AND s.z != 2 SELECT contiguous WITHIN 3 RETURN s, s.x", 3),
    ],
)
@pytest.mark.slow
def test_repeated_ids(spark: SparkSession, text: str, dropped: int) -> None:
    frame = spark.createDataFrame(REPEATED)
    trends, local = detect(frame, text, on_bad_rows="drop"), here(text, REPEATED, on_bad_rows="drop")
    assert trends.to_arrow().equals(local.to_arrow())
    assert trends.statistics["dropped"] == local.statistics["dropped"] == dropped
    if dropped:
        kind, said = mistake(lambda: detect(frame, text).count())
        assert (kind, said.split(" (")[0]) == (DataError, mistake(here(text, REPEATED).count)[1].split(" (")[0])
    else:
        assert detect(frame, text).to_arrow().equals(local.to_arrow())


# --- Refusals ---------------------------------------------------------------------------------------------------


def test_listing_is_refused_with_the_exact_count(frame: DataFrame, tmp_path: Path) -> None:
    number = here(RISING).count()
    trends = detect(frame, RISING, max_trends=number - 1)
    for ask in (trends.to_arrow, lambda: next(trends.batches()), lambda: trends.write(str(tmp_path / "out"))):
        with pytest.raises(ListingRefused, match=f"the query has {number:,} results") as caught:
            ask()
        assert caught.value.count == number
    assert list(tmp_path.iterdir()) == []
    lazy = trends.to_spark()
    with pytest.raises(PySparkException, match=f"the query has {number:,} results, more than the bound of"):
        lazy.count()
    assert detect(frame, f"{RISING} LIMIT 2", max_trends=2).to_arrow().num_rows == 2


@pytest.mark.slow
def test_an_overflow_is_told_as_such(frame: DataFrame) -> None:
    for condition in ("s.x * 9223372036854775807 > 0", "s[i].x * 9223372036854775807 > s[i-1].x"):
        text = f"PATTERN E+ s[] WHERE {condition}"
        kind, said = mistake(detect(frame, text).count)
        assert kind is OverflowInCondition
        assert "x * 9223372036854775807` does not fit 64 bits in a row where it is" in said
    with pytest.raises(PySparkException, match="TRELLIS_OVERFLOW"):
        detect(frame, "PATTERN E+ s[] WHERE s.x * 9223372036854775807 > 0").to_spark().collect()


# --- Files ------------------------------------------------------------------------------------------------------


def ordered(found: list[dict[str, Any]]) -> list[str]:
    """Make texts of rows; one that is grouped by zero may show either zero."""
    shown = [{n: v + 0.0 if isinstance(v, int | float) else v for n, v in row.items()} for row in plain_rows(found)]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in shown)


@pytest.mark.slow
def test_files(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    trends, local = detect(frame, FULL), here(FULL)
    for format in ("parquet", "csv", "json"):
        trends.write(str(tmp_path / format), format)
        local.write(str(tmp_path / f"{format}-here"), format)
        assert all(p.is_file() for p in (tmp_path / format).iterdir())
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"  # as it was
    read = pq.read_table(tmp_path / "parquet")
    assert read.column_names == local.schema.names
    assert read.schema.field("start_time").type == pa.timestamp("us", "UTC")
    assert ordered(read.to_pylist()) == ordered(local.to_arrow().to_pylist())
    lines, lines_here = (
        [json.loads(line) for p in sorted((tmp_path / name).glob("part*")) for line in p.read_text().splitlines()]
        for name in ("json", "json-here")
    )
    assert list(lines[0]) == local.schema.names
    assert ordered(lines) == ordered(lines_here)
    assert _csv_rows(tmp_path / "csv", local.schema) == _csv_rows(tmp_path / "csv-here", local.schema)


def _csv_rows(directory: Path, schema: pa.Schema) -> list[str]:
    found = []
    for path in sorted(directory.glob("part*")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                assert list(row) == schema.names
                for name in row:
                    if pa.types.is_list(schema.field(name).type):
                        row[name] = json.loads(row[name])
                    elif pa.types.is_floating(schema.field(name).type):
                        row[name] = float(row[name] or "nan")
                found.append(row)
    return ordered(found)


@pytest.mark.slow
def test_directories_that_exist(frame: DataFrame, tmp_path: Path) -> None:
    trends = detect(frame, f"{RISING} LIMIT 3 ")
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("old")
    with pytest.raises(UsageError, match="exists"):
        trends.write(str(out))
    with pytest.raises(UsageError, match="there is no output format `jsn`"):
        trends.write(str(tmp_path / "other"), "jsn")
    with pytest.raises(UsageError, match="has no list of files that Trellis wrote"):
        trends.write(str(out), overwrite=True)
    (out / "old").rename(tmp_path / "old")
    trends.write(str(out), overwrite=True)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    broken = detect(frame, "PATTERN E+ s[] WHERE s[i].x * 9223372036854775807 > s[i-1].x LIMIT 5")
    with pytest.raises(OverflowInCondition):
        broken.write(str(out), overwrite=True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    trends.write(str(out), overwrite=True)
    assert pq.read_table(out).num_rows == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["old", "out"]


def test_what_a_frame_is_read_from_is_not_replaced(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    first = tmp_path / "first"
    detect(frame, f"{RISING} LIMIT 30").write(str(first))
    before = pq.read_table(first)
    for data in (spark.read.parquet(str(first)), str(first)):
        again = trellis.query("PATTERN R+ r[] LIMIT 1").detect(data, time="start_time", event_id="rank", spark=spark)
        for place in (first, tmp_path):
            with pytest.raises(UsageError, match=r"holds the input|is the input"):
                again.write(str(place), overwrite=True)
    with pytest.raises(UsageError, match="lies in the input"):
        again.write(str(first / "second"))
    assert pq.read_table(first).equals(before)
    again.write(str(tmp_path / "second"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "second"]


# --- Sessions ---------------------------------------------------------------------------------------------------


@contextmanager
def settings(session: SparkSession, **values: Any) -> Iterator[None]:
    keys = {key.replace("__", "."): str(value) for key, value in values.items()}
    before = {key: session.conf.get(key) for key in keys}
    try:
        for key, value in keys.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, str(value))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"spark__sql__session__timeZone": "America/St_Johns", "spark__sql__ansi__enabled": "false"},
            id="zone",
        ),
        pytest.param(
            {"spark__sql__caseSensitive": "false", "spark__sql__adaptive__enabled": "false"},
            id="plain",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"spark__sql__execution__arrow__maxRecordsPerBatch": 7, "spark__sql__shuffle__partitions": 5},
            id="small batches",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.slow
def test_the_settings_of_a_session_change_nothing(spark: SparkSession, tmp_path: Path, values: dict[str, Any]) -> None:
    """Also times without a zone, dates, and a group that comes in many batches."""
    naive = TABLE.set_column(0, "ts", TABLE["ts"].cast(pa.timestamp("us")))
    pq.write_table(naive, tmp_path / "a.parquet")
    days = TABLE.set_column(0, "ts", pa.array([dt.date(2024, 3, 1 + i % 20) for i in range(N)]))
    dated = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x AND s.ts < TIMESTAMP '2024-03-15' WITHIN 3 days SLIDE 2 days"
    with settings(spark, **values):
        for text, table, data in ((FULL, naive, tmp_path), (dated, days, days)):
            found = detect(data, text, engine="spark", spark=spark)
            assert plain_table(found.to_arrow()) == plain_table(here(text, table).to_arrow())
        assert plain_table(found.counts()) == plain_table(here(dated, days).counts())
        split = {"E": naive.slice(10), "F": TABLE.slice(0, 10)}
        found = detect(split, f"{RISING} SELECT contiguous", engine="spark", spark=spark)
        assert plain_table(found.to_arrow()) == plain_table(here(f"{RISING} SELECT contiguous", split).to_arrow())


@pytest.mark.slow
def test_more_rows_than_are_worked_on_at_once(spark: SparkSession) -> None:
    """Many small groups and one that is larger than all that is held together."""
    n = rows.ROWS_AT_ONCE * 3 // 2
    key = np.where(np.arange(n) % 4 > 0, 0, np.arange(n) // 12)
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "g": key, "x": (np.arange(n) * 7919) % 1000})
    text = f"{RISING} AND [g] SELECT contiguous"
    found = detect(table, text, engine="spark", spark=spark).counts()
    assert found.equals(here(text, table).counts())


@pytest.mark.parametrize("at_once", [1, 4, 7, 100])
def test_groups_stay_whole(at_once: int) -> None:
    keys = [None, None, "a", "a", "a", "a", "b", "c", "c", "c", "d"]
    table = pa.table({"k": keys, "n": range(len(keys))})
    for size in (1, 2, 3, 11):
        parts = list(rows.whole_groups(table.to_batches(max_chunksize=size), ["k"], at_once=at_once))
        assert pa.concat_tables(parts).equals(table)
        seen = [set(part["k"].to_pylist()) for part in parts]
        assert sum(map(len, seen)) == 5
        assert len(parts) == 1 or at_once < 11
        whole = rows.whole_groups(table.to_batches(max_chunksize=size), [], at_once=at_once)
        assert [part.num_rows for part in whole] == [11]


# --- Names and types of columns ---------------------------------------------------------------------------------

ODD = pa.table(
    {
        "t`": [1, 2, 3, 4, 5, 6],
        "__time": [7, 7, 7, 7, 7, 8],
        "id.orig_h": ["u", "v", "u", "v", "u", "u"],
        "a b": [1, 2, 3, 4, 2, 9],
        "__usable": [1.5, 2.5, 3.5, None, 0.5, 1.0],
        "x": [6, 5, 4, 3, 2, 1],
        "X": [1, 1, 1, 1, 1, 2],
        "__id": ["a", "b", "c", "d", "e", "f"],
        "__window": [0, 0, 0, 0, 0, 0],
        "Rank": [1, 2, 1, 2, 1, 1],
        "__type": ["E"] * 6,
        "void": pa.nulls(6),
    }
)
ODD_QUERY = (
    "PATTERN E+ s[] WHERE [`id.orig_h`] AND [Rank] AND s.`a b` < 8 AND s.__time < 8 AND s.x > s.X "
    "AND s[i].`a b` >= s[i-1].`a b` WITHIN 4 SLIDE 2 RETURN s, s.`a b`, s.__usable, s.__window, s.void, FIRST(s).X"
)


@pytest.mark.parametrize("sensitive", ["true", "false"])
@pytest.mark.slow
def test_names_that_mean_something_to_spark(spark: SparkSession, tmp_path: Path, sensitive: str) -> None:
    names = {"time": "t`", "event_id": "__id", "type": "__type"}
    with settings(spark, spark__sql__caseSensitive=sensitive):
        frame = spark.createDataFrame(ODD)
        trends, local = detect(frame, ODD_QUERY, **names), here(ODD_QUERY, ODD, **names)
        assert local.count() > 3
        assert trends.to_arrow().equals(local.to_arrow())
        assert pa.Table.from_batches(trends.batches(["Rank", "rank"])).num_rows == local.count()
        assert plain_table(trends.counts()) == plain_table(local.counts())
        assert trends.statistics == local.statistics
        for items in (
            ["count(*)", "sum(s.`a b`)", "max(s.__usable)", "min(s.void)"],
            ["count(*) GROUP BY `id.orig_h`"],
        ):
            assert plain_table(trends.aggregate(*items)) == plain_table(local.aggregate(*items))
        assert trends.sample(3).equals(local.sample(3))
        ordered = f"{ODD_QUERY} ORDER BY SUM(s.`a b`) DESC LIMIT 3"
        assert detect(frame, ordered, **names).to_arrow().equals(here(ordered, ODD, **names).to_arrow())
        detect(frame, ordered, **names).write(str(tmp_path / "ordered"))
        assert pq.read_table(tmp_path / "ordered").num_rows == 3
        exploded = trends.explode()
        assert exploded.column_names == local.explode().column_names
        assert sorted(map(str, plain_table(exploded))) == sorted(map(str, plain_table(local.explode())))
        dropped = detect(frame, ODD_QUERY, **names, on_bad_rows="drop")
        assert dropped.to_arrow().equals(local.to_arrow())
        several = {"E": frame.drop("__type"), "F": frame.select("`t```", "`__id`", "`id.orig_h`")}
        trends.write(str(tmp_path / "parquet"))
        written = plain_table(pq.read_table(tmp_path / "parquet"))
        assert sorted(map(str, written)) == sorted(map(str, plain_table(local.to_arrow())))
        if sensitive == "true":  # `drop` and `select` are Spark's
            del names["type"]
            assert detect(several, ODD_QUERY, **names).to_arrow().equals(local.to_arrow())
    with pytest.raises(UsageError, match="a column of several tables is called `__type`"):
        detect({"E": frame}, ODD_QUERY, time="t`", event_id="__id")


def test_a_column_without_a_value(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"ts": [1, 2], "id": [1, 2], "v": pa.nulls(2)})
    text = "PATTERN E+ s[] WHERE [v] RETURN s, s.v, FIRST(s).v"
    trends, local = detect(table, text, engine="spark", spark=spark), here(text, table)
    assert trends.to_arrow().equals(local.to_arrow())
    for format in ("csv", "json", "parquet"):
        trends.write(str(tmp_path / format), format)
    assert pq.read_table(tmp_path / "parquet").num_rows == local.count()


@pytest.mark.parametrize(
    "tail", [f"LIMIT {2**31}", f"LIMIT {2**63 - 1} OFFSET 1", f"LIMIT 5 OFFSET {2**31 - 1}", f"OFFSET {2**63 - 1}"]
)
@pytest.mark.slow
def test_limits_that_spark_cannot_count_to(frame: DataFrame, tail: str) -> None:
    text = f"{RISING} AND [k] WITHIN 3 s ORDER BY LENGTH {tail}"
    assert detect(frame, text).to_arrow().equals(here(text).to_arrow())


def test_what_overflows_is_asked_only_where_the_rest_holds(spark: SparkSession) -> None:
    table = pa.table({"ts": [1, 2], "id": [1, 2], "y": [None, 5], "n": [2**62, 1]})
    text = "PATTERN E+ s[] WHERE s.y > 1 AND s.n * 4 > 0"
    assert detect(table, text, engine="spark", spark=spark).to_arrow()["events"].to_pylist() == [[2]]


@pytest.mark.parametrize("times", [[-(2**63), 1], [1, 2**63 - 1], [1.0, 1e300]])
@pytest.mark.slow
def test_times_that_no_window_can_hold(spark: SparkSession, times: list[Any]) -> None:
    table = pa.table({"ts": times, "id": [1, 2]})
    text = "PATTERN E+ s[] WITHIN 4 SLIDE 2"
    wanted = mistake(lambda: here(text, table).count())
    assert wanted[0] is DataError
    assert mistake(lambda: detect(table, text, engine="spark", spark=spark).count()) == wanted


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        (pa.array([2**53 + 1]), pa.array([0.5]), "`x` is an integer and a double"),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("1.25")]), "1 digit behind the point and a decimal with 2"),
        (pa.array([1]), pa.array(["a"]), "`x` is an integer and a string"),
    ],
)
@pytest.mark.slow
def test_tables_with_two_types_of_a_column(spark: SparkSession, a: pa.Array, b: pa.Array, what: str) -> None:
    tables = {"E": pa.table({"ts": [1], "id": [1], "x": a}), "F": pa.table({"ts": [2], "id": [2], "x": b})}
    wanted = mistake(lambda: here(RISING, tables))
    assert wanted[0] is DataError
    assert what in wanted[1]
    assert mistake(lambda: detect(tables, RISING, engine="spark", spark=spark)) == wanted


@pytest.mark.slow
def test_tables_with_one_type_in_several_forms(spark: SparkSession) -> None:
    first = {"x": pa.array([1, 2], pa.int16()), "k": pa.array(["a", "b"]).dictionary_encode(), "n": pa.nulls(2)}
    money = pa.array([Decimal("1.25"), Decimal("2.25")], pa.decimal128(5, 2))
    second = {"x": pa.array([3, 4]), "k": ["a", "b"], "n": [1, 2], "d": money.cast(pa.decimal128(9, 2))}
    tables = {
        "E": pa.table({"ts": [1, 2], "id": [1, 2], **first, "d": money}),
        "F": pa.table({"ts": [3, 4], "id": [3, 4], **second}),
    }
    text = f"{RISING} AND s.d > 1.0 RETURN s, s.k, s.x, s.n, s.d"
    trends, local = detect(tables, text, engine="spark", spark=spark), here(text, tables)
    assert local.count() == 1
    assert trends.to_arrow().equals(local.to_arrow())


@pytest.mark.parametrize(("column", "within"), [("g", ""), ("x", "WITHIN 9 s SLIDE 4 s"), ("k", "WITHIN 12 s")])
def test_an_equality_over_all_variables_is_a_partition_inside(frame: DataFrame, column: str, within: str) -> None:
    text = f"PATTERN a;b;c WHERE a.{column} = b.{column} AND c.{column} = a.{column} AND a.y != c.y {within}"
    there = trellis.query(text).detect(frame, time="ts", event_id="id")
    here = trellis.query(text).detect(TABLE, time="ts", event_id="id")
    assert there.count() == here.count() > 0
    assert column in there.describe()["shuffle"]
    assert_same_rows(there.to_arrow(), here.to_arrow())


def test_not_every_equality_is_a_partition_inside(frame: DataFrame) -> None:
    for where in ("a.k = b.k AND a.x = c.x", "a.k = b.k AND b.k = c.k OR a.x = c.x", "a.x = b.x + 0 AND b.x = c.x"):
        trends = trellis.query(f"PATTERN a;b;c WHERE {where}").detect(frame, time="ts", event_id="id")
        assert "in which" not in trends.describe()["shuffle"]
