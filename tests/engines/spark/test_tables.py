"""Tables as Spark writes and names them, read by both engines with equal results."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import trellis
from tests.compare import plain_rows
from trellis.errors import BindError, DataError, UsageError
from trellis.io.read import read_table

N = 12
BEGIN = dt.datetime(2024, 5, 1, 9, tzinfo=dt.UTC)
TABLE = pa.table({
    "ts": pa.array([BEGIN + dt.timedelta(minutes=5 * i, milliseconds=i) for i in range(N)], pa.timestamp("us", "UTC")),
    "trade": [f"t{i:02}" for i in range(N)],
    "company": ["XY"[i % 2] for i in range(N)],
    "lot": [i % 3 for i in range(N)],
    "price": [float((i * 7) % 5) for i in range(N)],
})  # fmt: skip
RISING = "PATTERN Stock+ s[] WHERE [company] AND s[i].price > s[i-1].price AND s.lot < 2"
INT96 = "spark.sql.parquet.outputTimestampType"


def rows(results: Any) -> list[str]:
    return sorted(map(str, plain_rows(results.to_arrow().to_pylist())))


def found(query: str, data: Any, engine: str | None = None, spark: SparkSession | None = None) -> list[str]:
    return rows(trellis.query(query).detect(data, time="ts", event_id="trade", engine=engine, spark=spark))


WANTED = found(RISING, TABLE)


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(TABLE)


@pytest.fixture
def int96(spark: SparkSession) -> Iterator[None]:
    """Times as Spark writes them to Parquet unless it is told otherwise."""
    before = str(spark.conf.get(INT96))
    spark.conf.set(INT96, "INT96")
    yield
    spark.conf.set(INT96, before)


def with_case(frame: DataFrame, path: str) -> None:
    frame.where("price < 2").coalesce(1).write.parquet(f"{path}/a")
    frame.where("price >= 2").coalesce(1).toDF(*map(str.upper, frame.columns)).write.parquet(f"{path}/b")


def with_empty_parts(frame: DataFrame, path: str) -> None:
    frame.repartition(8, "company").write.parquet(path)
    Path(path, "part-00009-empty.snappy.parquet").touch()
    Path(path, "_metadata").write_bytes(b"none of ours")


WRITERS: dict[str, Callable[[DataFrame, str], None]] = {
    "parquet": lambda frame, path: frame.coalesce(1).write.parquet(path),
    "orc": lambda frame, path: frame.coalesce(1).write.orc(path),
    "many small files": lambda frame, path: frame.repartition(N).write.parquet(path),
    "names in other cases": with_case,
    "empty parts": with_empty_parts,
    "parquet by company": lambda frame, path: frame.coalesce(1).write.partitionBy("company").parquet(path),
    "parquet by lot and company": lambda frame, path: (
        frame.coalesce(1).write.partitionBy("lot", "company").parquet(path)
    ),
    "csv by company": lambda frame, path: frame.coalesce(1).write.partitionBy("company").csv(path, header=True),
    "json by lot": lambda frame, path: frame.coalesce(1).write.partitionBy("lot").json(path),
}


@pytest.mark.parametrize("written", WRITERS)
def test_directories_that_spark_wrote(events: DataFrame, int96: None, tmp_path: Path, written: str) -> None:
    path = str(tmp_path / "table")
    WRITERS[written](events, path)
    assert found(RISING, path, "local") == WANTED
    assert found(RISING, path, spark=events.sparkSession) == WANTED


def test_renamed_columns(events: DataFrame, tmp_path: Path) -> None:
    """Renamed in a frame, a view and files that Spark writes of it: to what needs quotes, and with names swapped."""
    names = {"company": "lot", "lot": "company", "price": "last price", "trade": "Trade Nr."}
    text = "PATTERN Stock+ s[] WHERE [lot] AND s[i].`last price` > s[i-1].`last price` AND s.company < 2"
    options = {"time": "ts", "event_id": "Trade Nr."}
    table = TABLE.rename_columns([names.get(name, name) for name in TABLE.column_names])
    wanted = rows(trellis.query(text).detect(table, **options))
    assert [row.replace("'company'", "'lot'") for row in WANTED] == wanted
    renamed = events.toDF(*table.column_names)
    renamed.createOrReplaceTempView("renamed")
    path = str(tmp_path / "renamed")
    renamed.coalesce(2).write.parquet(path)
    for data in (renamed, "renamed", "SELECT * FROM renamed", path):
        assert rows(trellis.query(text).detect(data, **options, spark=events.sparkSession)) == wanted
    assert rows(trellis.query(text).detect(path, **options, engine="local")) == wanted


def test_times_in_int96_are_moments_in_both_engines(events: DataFrame, int96: None, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    events.select("ts", f.struct("ts").alias("inner")).coalesce(1).write.parquet(path)
    table = read_table(path)
    assert table["ts"].type == table["inner"].type.field("ts").type == pa.timestamp("us", "UTC")
    assert table["ts"].to_pylist() == TABLE["ts"].to_pylist()


def test_values_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """NULL, signs that paths cannot hold, numbers, days and times; and a directory below the partitioned one."""
    path = str(tmp_path / "table")
    keys: dict[str, pa.Array[Any]] = {
        "odd": pa.array([(None, "a/b: %", "x=1")[i % 3] for i in range(N)]),
        "number": pa.array([i % 3 * 2 + 1 for i in range(N)]),
        "day": pa.array([dt.date(2024, 5, 1 + i % 3) for i in range(N)]),
        "hour": pa.array([BEGIN + dt.timedelta(hours=i % 3) for i in range(N)]),
    }
    table = TABLE
    for name, values in keys.items():
        table = table.append_column(name, values)
    spark.createDataFrame(table).coalesce(1).write.partitionBy(*keys).parquet(path)
    query = (
        "PATTERN E+ s[] WHERE [odd] AND s.number > 0 AND s.day < DATE '2024-05-03' AND s[i].price > s[i-1].price "
        "RETURN s, s.number, s.day, s.hour"
    )
    here = found(query, path, "local")
    assert here
    assert found(query, path, spark=spark) == here == found(query, table)
    assert read_table(str(tmp_path / "table" / "odd=*"))["odd"].null_count == 4


def test_spark_passes_over_partitions_that_cannot_be_in_a_result(events: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    events.coalesce(1).write.partitionBy("lot").parquet(path)
    query = trellis.query("PATTERN E+ s[] WHERE s.lot = 1 AND s[i].price > s[i-1].price")
    trends = query.detect(path, time="ts", event_id="trade", spark=events.sparkSession)
    plan = trends.to_spark()._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    filters = [line for line in plan.split(", ") if line.startswith("PartitionFilters")]
    assert filters
    assert all("lot#" in line for line in filters)


def test_fields_of_structs_are_columns(events: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    inner = f.struct("company", f.struct("price").alias("paid"))
    nested = events.select("ts", "trade", "lot", f.when(f.col("lot") < 2, inner).alias("deal"))
    nested.coalesce(1).write.parquet(path)
    query = RISING.replace("company", "`deal.company`").replace("price", "`deal.paid.price`")
    here = found(query, path, "local")
    assert found(query, path, spark=events.sparkSession) == here
    assert [row.replace("deal.company", "company") for row in here] == WANTED
    for data in (path, nested):
        with pytest.raises(BindError) as refused:
            trellis.query("PATTERN E+ s[] WHERE s.deal = 1").detect(data, time="ts", event_id="trade")
        assert "`deal` is a struct" in str(refused.value)
        assert "`deal.company`, `deal.paid.price`" in str(refused.value)


def test_maps_are_refused_only_where_they_are_used(events: DataFrame) -> None:
    mapped = events.withColumn("m", f.create_map(f.lit("a"), "price"))
    assert found(RISING, mapped) == WANTED
    for text, sentence in (("[m]", "cannot be a partition"), ("s.m = 1", "which conditions cannot use")):
        with pytest.raises(BindError, match=sentence):
            trellis.query(f"PATTERN E+ s[] WHERE {text}").detect(mapped, time="ts", event_id="trade")
    with pytest.raises(UsageError, match=r"the time column `m` is of type map"):
        trellis.query("PATTERN E+ s[]").detect(mapped, time="m", event_id="trade")


# --- Tables by name -----------------------------------------------------------------------------------------------


@pytest.fixture
def named(events: DataFrame) -> Iterator[str]:
    """The name of a view of the events."""
    events.createOrReplaceTempView("trellis_trades")
    yield "trellis_trades"
    events.sparkSession.catalog.dropTempView("trellis_trades")


def test_tables_views_and_sql_are_events(events: DataFrame, named: str) -> None:
    session = events.sparkSession
    sql = f"SELECT * FROM {named} WHERE lot < 2"
    for text in (named, sql, f"WITH t AS ({sql}) SELECT * FROM t"):
        assert found(RISING, text) == found(RISING, text, "local") == WANTED
    session.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW all_trades AS {sql}")
    assert found(RISING, "global_temp.all_trades", spark=session) == WANTED


def test_the_name_of_a_file_is_no_table(events: DataFrame, named: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    trades = TABLE.slice(0, 1)
    import pyarrow.parquet as pq

    Path(named).mkdir()
    pq.write_table(trades, f"{named}/events.parquet")
    assert trellis.query("PATTERN E+ s[]").detect(named, time="ts", event_id="trade").count() == 1


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("trellis_trade", ["There is no table or view `trellis_trade` in Spark, and no file", "`trellis_trades`?"]),
        ("nowhere.trades", ["There is no table or view `nowhere.trades`"]),
        ("SELECT nothing FROM trellis_trades", ["Spark cannot run the SQL of the events", "nothing"]),
        ("SELECT FROM WHERE", ["Spark cannot run the SQL of the events", "`FROM` cannot be resolved"]),
        ("missing.csv", ["There is no file missing.csv"]),
    ],
)
def test_tables_that_are_not_there(named: str, text: str, sentences: list[str]) -> None:
    with pytest.raises(DataError) as refused:
        trellis.query(RISING).detect(text, time="ts", event_id="trade")
    said = str(refused.value)
    assert all(sentence in said for sentence in sentences), said
    assert "SQLSTATE" not in said


def test_streams_and_frames_of_several_sessions_are_refused(events: DataFrame) -> None:
    session = events.sparkSession
    with pytest.raises(UsageError, match="this data frame is a stream"):
        trellis.query(RISING).detect(session.readStream.format("rate").load(), time="timestamp")
    other = session.newSession().createDataFrame(TABLE)
    with pytest.raises(UsageError, match="data frames of different Spark sessions"):
        trellis.query("PATTERN A a ; B b").detect({"A": events, "B": other}, time="ts", event_id="trade")
    assert found(RISING, other) == WANTED
