"""Results of a stream in a real server of PostgreSQL: each batch once, also where it is run again."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from trellis.engines.spark.stream.postgres import PostgresSink, as_arrays, as_csv, sql_type
from trellis.errors import UsageError


def test_lists_and_rows_are_written_as_postgresql_reads_them() -> None:
    lists = pa.array([[1, 2], [], None, [None, 3]])
    assert as_arrays(lists).to_pylist() == ["{1,2}", "{}", None, "{NULL,3}"]
    assert as_arrays(lists.slice(1, 3)).to_pylist() == ["{}", None, "{NULL,3}"]
    texts = pa.array([["a", 'say "so"', "back\\slash", "", None, "NULL"]])
    assert as_arrays(texts).to_pylist() == ['{"a","say \\"so\\"","back\\\\slash","",NULL,"NULL"}']
    assert as_csv(pa.table({"n": [1, None], "text": ["", None], "of": [["x"], None]})) == b'1,"","{""x""}"\n,,\n'
    kinds = [pa.int32(), pa.float64(), pa.list_(pa.string()), pa.timestamp("us"), pa.timestamp("us", "UTC")]
    found = [sql_type("x", kind) for kind in kinds]
    assert found == ["bigint", "double precision", "text[]", "timestamp", "timestamptz"]
    with pytest.raises(UsageError, match="the column `x` is of type struct"):
        sql_type("x", pa.struct([("a", pa.int64())]))


@pytest.fixture
def server() -> Iterator[str]:
    """A server of its own; gives how to connect."""
    programs = [*Path("/usr/lib/postgresql").glob("*/bin"), Path(shutil.which("initdb") or "/none").parent]
    place = next((folder for folder in programs if (folder / "initdb").exists()), None)
    if place is None:
        pytest.skip("no server of PostgreSQL is installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder, as_user = Path(tempfile.mkdtemp()), []
    if os.geteuid() == 0:  # which the server refuses to run as
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user postgres for the server to run as")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*words: str) -> None:
        subprocess.run([*as_user, str(place / words[0]), *words[1:]], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "trellis", "--auth=trust", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    run("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"host={folder} user=trellis dbname=postgres"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def rows_of(server: str, query: str) -> list[Any]:
    import psycopg

    with psycopg.connect(server) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.slow
@pytest.mark.spark
def test_each_batch_is_in_the_table_once(spark: SparkSession, tmp_path: Path, server: str) -> None:
    for number, price in enumerate(([1.0, 2.0, 3.0], [2.0, 5.0, 1.0], [7.0, 8.0, 9.0])):
        times = [10 * number + k for k in range(3)]
        table = {"ts": times, "id": times, "name": ["a'b\\\"c"] * 3, "price": price}
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table(table), tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (1_700_000_000 + number,) * 2)
    text = "PATTERN E+ s[] WHERE [name] AND s[i].price > s[i-1].price HAVING LENGTH >= 2 WITHIN 10 SLIDE 10"
    frame = spark.readStream.schema("ts long, id long, name string, price double").option("maxFilesPerTrigger", 1)
    sink, numbers = PostgresSink(server, "public.rising"), []

    def write(rows: Any, batch: int) -> None:
        numbers.append(batch)
        sink(rows, batch)
        sink(rows, batch)  # as after a kill before Spark has noted that the batch is done

    results = trellis.query(text).detect_stream(frame.parquet(str(tmp_path / "in")), time="ts", event_id="id",
                                                watermark=0)  # fmt: skip
    writer = results.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "cp"))
    assert writer.trigger(availableNow=True).start().awaitTermination(200)
    whole = pq.read_table(tmp_path / "in").sort_by("ts")
    wanted = trellis.query(text).detect(whole, time="ts", event_id="id").to_arrow().to_pylist()
    found = rows_of(server, "SELECT name, events, length FROM rising ORDER BY window_start, events")
    assert found == [(row["name"], row["events"], row["length"]) for row in wanted if row["window_start"] < 20]
    assert [n for (n,) in rows_of(server, "SELECT batch FROM trellis_batches ORDER BY batch")] == sorted(set(numbers))


@pytest.mark.slow
@pytest.mark.spark
def test_a_batch_that_fails_leaves_nothing(spark: SparkSession, server: str) -> None:
    import psycopg

    frame = spark.createDataFrame([(Decimal("1.5"), None), (Decimal("-1"), "b")], "amount decimal(9,2), gone string")
    sink = PostgresSink(server, "other", name="stream")
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE other (amount numeric CHECK (amount > 0), gone text)")
    with pytest.raises(psycopg.errors.CheckViolation):
        sink(frame, 4)
    assert rows_of(server, "SELECT * FROM other") == []
    with psycopg.connect(server) as connection:
        connection.execute("ALTER TABLE other DROP CONSTRAINT other_amount_check")
    sink(frame, 4)
    assert rows_of(server, "SELECT * FROM other ORDER BY 1") == [(Decimal("-1.00"), "b"), (Decimal("1.50"), None)]
    assert rows_of(server, "SELECT * FROM trellis_batches") == [("stream", 4)]


def test_names_are_asked_for() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(UsageError, match="has no name"):
        PostgresSink("", "schema.")
