"""The settings of a user's session change nothing: neither what is counted and listed, nor what is written."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.compare import plain_rows
from trellis.engines.spark.session.session import find_java
from trellis.errors import DataError

pytestmark = pytest.mark.spark
N = 40
BEGIN = dt.datetime(2024, 3, 10, 5, tzinfo=dt.UTC)  # where clocks go forward in America, some of these times are none
TIMES = [BEGIN + dt.timedelta(minutes=10 * (i * 17 % N), microseconds=1) for i in range(N)]
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
EARLY = "s.seen < TIMESTAMP '2024-03-10 09:00'"
RISING = f"PATTERN E+ s[] WHERE [Key] AND s[i].x > s[i-1].x AND {EARLY}"
WINDOWS = "WITHIN 3 hours SLIDE 1 hour"
SHORT = f"{RISING} {WINDOWS} RETURN s, s.seen, FIRST(s).seen"
FULL = f"{RISING} AND s.X < 9 AND s.day > DATE '2022-01-10' {WINDOWS} RETURN s, s.seen, s.day, SUM(s.money)"


def events(kind: pa.DataType) -> pa.Table:
    """Events with two columns whose names differ in case only, and times of a type."""
    return pa.table(
        {
            "ts": pa.array(TIMES, ZONED).cast(kind),
            "id": [f"e{i:02}" for i in range(N)],
            "Key": [("a", "A", None)[i % 3] for i in range(N)],
            "x": [i * 7 % 11 for i in range(N)],
            "X": [i % 10 for i in range(N)],
            "seen": pa.array(TIMES, ZONED).cast(kind),
            "day": pa.array([19_000 + i for i in range(N)], pa.date32()),
            "money": pa.array([i * 25 for i in range(N)], pa.decimal128(8, 2)),
        }
    )


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, plain_rows(table.to_pylist())))


def lines(directory: Path) -> list[str]:
    """The lines of text files, whatever is quoted in them that need not be."""
    files = (path for path in directory.iterdir() if path.name.startswith("part"))
    return sorted({line.replace('"', "") for path in files for line in path.read_text().splitlines()})


def assert_same(session: SparkSession, directory: Path, query: str, data: Any) -> None:
    """Compare counts, rows with their types, and files with those of the local engine."""
    there, here = (
        trellis.query(query).detect(data, time="ts", event_id="id", engine=engine, spark=session)
        for engine in ("spark", "local")
    )
    assert there.count() == here.count() > 20
    found = there.counts()
    assert not isinstance(found, pa.Table)
    assert rows(found.to_arrow()) == rows(here.counts())  # type: ignore[arg-type]
    assert there.to_arrow().schema.equals(here.to_arrow().schema)
    assert rows(there.to_arrow()) == rows(here.to_arrow())
    for format in ("parquet", "csv", "json"):
        for name, trends in (("there", there), ("here", here)):
            trends.write(str(directory / name), format, overwrite=True)
        if format == "parquet":
            assert rows(pq.read_table(directory / "there")) == rows(pq.read_table(directory / "here"))
        else:
            assert lines(directory / "there") == lines(directory / "here")


@contextmanager
def settings(session: SparkSession, values: dict[str, str]) -> Iterator[None]:
    before = {key: str(session.conf.get(key)) for key in values}
    try:
        for key, value in values.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)


OTHERS = {
    "spark.sql.session.timeZone": "Pacific/Apia",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "false",
}
ODD = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.caseSensitive": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


@pytest.mark.slow
@pytest.mark.parametrize("values", [pytest.param(OTHERS, id="others"), pytest.param(ODD, id="odd")])
def test_settings_of_the_session(spark: SparkSession, tmp_path: Path, values: dict[str, str]) -> None:
    with settings(spark, values):
        assert_same(spark, tmp_path, FULL, events(NAIVE))
        if values["spark.sql.caseSensitive"] == "true":  # else Spark itself cannot read the file
            pq.write_table(events(ZONED), tmp_path / "events.parquet")
            assert_same(spark, tmp_path, SHORT, tmp_path / "events.parquet")
        assert {key: spark.conf.get(key) for key in values} == values


# --- Sessions that somebody else has started ---------------------------------------------------------------------


def write_files(directory: Path) -> list[Path]:
    """Write events in all formats; text tells times without a zone."""
    zoned, naive = (events(kind).select(["ts", "id", "Key", "x", "seen"]) for kind in (ZONED, NAIVE))
    pq.write_table(naive, directory / "naive.parquet")
    orc.write_table(zoned, directory / "zoned.orc")
    orc.write_table(naive, directory / "naive.orc")
    texts = naive.set_column(0, "ts", pa.array([f"{t:%Y/%m/%d %H:%M:%S}" for t in TIMES]))
    csv.write_csv(texts, directory / "text.csv")
    with (directory / "text.json").open("w") as file:
        file.writelines(json.dumps(row, default=str) + "\n" for row in texts.to_pylist())
    return [directory / name for name in ("naive.parquet", "zoned.orc", "text.csv", "text.json")]


def compare_all(directory: Path) -> None:
    """Compare on a session with the settings that Spark has by itself, in the zone of this process."""
    session = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"
    for file in write_files(directory):
        assert_same(session, directory, SHORT, file)
    with pytest.raises(DataError, match="in the zone of its Java, America/New_York, and not in UTC"):
        trellis.query(SHORT).detect(directory / "naive.orc", time="ts", event_id="id", spark=session)
    session.stop()


@pytest.mark.slow
def test_a_session_in_another_time_zone(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    environment = {"TZ": "America/New_York", "JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.test_settings", tmp_path], cwd=root,
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


if __name__ == "__main__":
    compare_all(Path(sys.argv[1]))
