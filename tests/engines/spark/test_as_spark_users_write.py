"""Trellis as users of Spark write: accessors of data frames, a table function of SQL, and frames that run no job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

import trellis
import trellis.pandas
import trellis.polars
import trellis.spark
from tests.compare import plain_rows
from tests.engines.spark.test_tables import TABLE
from trellis.engines.spark.split.hashing import task_of

RISING = "PATTERN Stock+ s[] WHERE [company] AND s[i].price > s[i-1].price"
COLUMNS = {"time": "ts", "event_id": "trade"}
WANTED = trellis.query(RISING).detect(TABLE, **COLUMNS)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, plain_rows(table.to_pylist())))


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame(TABLE)
    frame.createOrReplaceTempView("trades")
    return frame


# --- Accessors --------------------------------------------------------------------------------------------------------


def test_frames_of_all_libraries_have_the_accessor(events: DataFrame) -> None:
    frames: list[Any] = [events, pl.from_arrow(TABLE), TABLE.to_pandas()]
    for frame in frames:
        assert frame.trellis.count(RISING, **COLUMNS) == WANTED.count()
    found = frames[0].trellis.detect(trellis.query(RISING), **COLUMNS)
    assert (found.engine, frames[2].trellis.detect(RISING, **COLUMNS).engine) == ("spark", "local")
    assert "company" in str(frames[1].trellis.explain(RISING, **COLUMNS))


def test_one_import_serves_libraries_that_are_there() -> None:
    script = "import pandas, sys, trellis.spark; print(pandas.DataFrame.trellis.__name__, 'polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["FrameAccessor", "False"]


# --- SQL --------------------------------------------------------------------------------------------------------------


def sql(session: SparkSession, query: str, more: str = "", table: str = "TABLE(trades)") -> pa.Table:
    text = query.replace("'", "''")
    options = ", time => 'ts', event_id => 'trade'" + more
    return session.sql(f"SELECT * FROM trellis_detect({table}, '{text}'{options})").toArrow()


def test_the_table_function_gives_the_rows_of_the_query(events: DataFrame) -> None:
    session = events.sparkSession
    trellis.register(session)
    assert rows(sql(session, RISING)) == rows(WANTED.to_arrow())
    windows = f"{RISING} AND s.price > least WITHIN 30 minutes SLIDE 10 minutes RETURN s, s.ts, AVG(s.price) AS mean"
    wanted = trellis.query(windows).detect(TABLE, params={"least": 1}, **COLUMNS)
    assert rows(sql(session, windows, ", params => map('least', '1')")) == rows(wanted.to_arrow()) != []
    summed = f"{RISING} AGGREGATE COUNT(*), MAX(s.price)"
    whole = "TABLE(SELECT ts, trade, 'A' AS company, price FROM trades WHERE company = 'X')"
    only = TABLE.filter(pa.compute.equal(TABLE["company"], "X")).set_column(2, "company", pa.array(["A"] * 6))
    assert rows(sql(session, summed, table=whole)) == rows(trellis.query(summed).detect(only, **COLUMNS).to_arrow())


def test_spark_partitions_the_table_by_the_query(events: DataFrame) -> None:
    session = events.sparkSession
    trellis.register(session)
    frame = session.sql(f"SELECT * FROM trellis_detect(TABLE(trades), '{RISING}', 'ts', event_id => 'trade')")
    plan = frame._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "hashpartitioning(partition_by_0" in plan


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("TABLE(trades), 'PATTERN Stock ('", "there is no operator `Stock`"),
        ("TABLE(trades), 'PATTERN Stock+ s[] WHERE s.cost > 1', time => 'ts'", "has no attribute `cost`"),
        ("TABLE(trades), 'PATTERN Stock+ s[]', time => 'ts'", "needs the ids of events"),
        ("'trades', 'PATTERN Stock+ s[]', time => 'ts'", "is no table"),
        (f"TABLE(trades), '{RISING} LIMIT 1', time => 'ts', event_id => 'trade'", "those of SQL around it"),
        ("TABLE(trades), 'PATTERN E+ s[]', time => 'ts', event_id => 'trade', max_trends => 1", "more than"),
    ],
)
def test_mistakes_in_sql_are_told(events: DataFrame, call: str, sentence: str) -> None:
    trellis.register(events.sparkSession)
    with pytest.raises(Exception, match=sentence) as refused:
        events.sparkSession.sql(f"SELECT * FROM trellis_detect({call})").collect()
    assert isinstance(refused.value, AnalysisException | PythonException)


# --- Lazy frames ------------------------------------------------------------------------------------------------------


def newest_job(session: SparkSession) -> int:
    """The number of the last job that the application has run. (Spark forgets old ones: their count may fall.)"""
    context = session.sparkContext
    scala = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    kept = scala.statusStore().jobsList(None)
    return max((int(kept.apply(i).jobId()) for i in range(kept.size())), default=-1)


def test_the_hash_of_a_shuffle_is_that_of_spark(spark: SparkSession) -> None:
    rows_of_spark = spark.range(-50, 1_000, 7).selectExpr("id", "pmod(hash(cast(id AS int)), 13) AS task").collect()
    assert [task_of(row["id"], 13) for row in rows_of_spark] == [row["task"] for row in rows_of_spark]


def test_frames_of_results_run_no_job_before_they_are_used(events: DataFrame, tmp_path: Path) -> None:
    session = events.sparkSession
    events.coalesce(1).write.parquet(str(tmp_path / "table"))
    source = session.read.parquet(str(tmp_path / "table"))
    arriving = session.readStream.schema(source.schema).parquet(str(tmp_path / "table"))
    before = newest_job(session)
    trends = trellis.query(RISING).detect(source, **COLUMNS)
    frames = [
        trends.to_spark(), trends.counts().to_spark(), trends.aggregate("avg(s.price)").to_spark(),
        trends.explode().to_spark(), trends.top(3).to_spark(), trends.first(2).to_spark(),
        trellis.query(f"{RISING} ORDER BY LENGTH DESC LIMIT 2").detect(source, **COLUMNS).to_spark(),
        trellis.query(f"{RISING} AGGREGATE COUNT(*)").detect(source, **COLUMNS).to_spark(),
        trellis.query(f"{RISING} WITHIN 1 hour").detect_stream(arriving, watermark="1 minute", **COLUMNS),
    ]  # fmt: skip
    assert all(frame.columns for frame in frames)
    assert newest_job(session) == before
