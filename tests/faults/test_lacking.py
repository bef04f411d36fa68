"""Spark lacks something in the middle of a command: memory, RocksDB. A sentence, code 2, nothing of Spark's beside."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.cli.cases import Done, assert_mistake, names_in, run_process, start
from tests.cli.test_process import wait_for
from tests.engines.spark.cluster import QUICKLY
from tests.engines.spark.stream.test_stream import RISING, batch, events, found, write_files
from tests.faults.killing import command_of, descendants

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPARK_HOME = Path(pyspark.__file__).parent
SMALL = (
    "--conf", "spark.driver.memory=480m", "--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]",
    *QUICKLY,
)  # fmt: skip
HUGE = 300_000_000  # characters: more than the heap has room for


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a file of events, each of which has a huge text."""
    folder = tmp_path_factory.mktemp("huge")
    times = pa.array([1_700_000_000, 1_700_000_001], pa.timestamp("s", "UTC"))
    table = pa.table({"ts": times, "id": ["a", "b"], "x": [1, 2], "text": ["x" * HUGE] * 2})
    pq.write_table(table, folder / "huge.parquet", row_group_size=1, use_dictionary=False)
    return folder


def assert_full_heap(done: Done, doing: str) -> None:
    assert_mistake(done, f"while {doing}: Spark's JVM has not enough memory", "it had a heap of 480m")
    assert "--conf spark.driver.memory=4g" in done.err
    assert done.err.count("\n") == 2, done.err  # what it is, what to try, and nothing of Spark's


@pytest.mark.timeout(900)
def test_a_full_heap_says_what_was_being_done_and_what_to_try(huge: Path, tmp_path: Path) -> None:
    """Spark ends its JVM then, in the middle of whatever is asked of it."""
    query = "PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10 s SLIDE 10 s RETURN t.text"
    out = tmp_path / "out"
    done = run_process("detect", query, huge, "--event-id", "id", "--out", out, "--quiet", *SMALL)
    assert_full_heap(done, "writing 1 result")
    assert names_in(tmp_path) == []
    places = ("--out", out, "--checkpoint", tmp_path / "cp", "--watermark", "1 s", "--available-now", "--flush")
    done = run_process("stream", query, huge, "--event-id", "id", *places, *SMALL)
    assert_full_heap(done, "running the stream")
    assert not list(out.glob("*.parquet"))


@pytest.mark.timeout(900)
def test_a_jvm_that_is_killed_is_told(tmp_path: Path) -> None:
    write_files(events(40), tmp_path / "in", 1)
    places = ("--out", tmp_path / "out", "--checkpoint", tmp_path / "cp", "--watermark", "3 s")
    process = start("stream", RISING, tmp_path / "in", "--event-id", "id", *places, *SMALL)
    wait_for(lambda: any((tmp_path / "out" / "_log").glob("*.json")), process)
    for child in list(descendants(process.pid)):
        if "SparkSubmit" in command_of(child):
            os.kill(child, signal.SIGKILL)
    printed = process.communicate(timeout=120)
    assert_mistake(Done(process.returncode, *printed), "Spark's JVM was killed (signal 9)", "goes on where it was")
    assert printed[1].count("\n") == 2, printed[1]


@pytest.fixture
def without_rocksdb(tmp_path: Path) -> Iterator[Path]:
    """A Spark that has everything but RocksDB."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    for entry in SPARK_HOME.iterdir():
        if entry.name != "jars":
            (home / entry.name).symlink_to(entry)
    jars = list((SPARK_HOME / "jars").iterdir())
    for jar in jars:
        if not jar.name.startswith("rocksdbjni"):
            (home / "jars" / jar.name).symlink_to(jar)
    assert len(names_in(home / "jars")) == len(jars) - 1
    return home


@pytest.mark.timeout(900)
def test_a_spark_without_rocksdb(without_rocksdb: Path, tmp_path: Path) -> None:
    """A stream is refused; all else needs none."""
    write_files(events(40), tmp_path / "in", 1)
    places = ("--out", tmp_path / "out", "--checkpoint", tmp_path / "cp", "--watermark", "3 s", "--available-now")
    given = (tmp_path / "in", "--event-id", "id", *SMALL)
    done = run_process("stream", RISING, *given, *places, SPARK_HOME=str(without_rocksdb))
    assert_mistake(done, "streams keep their state in RocksDB, and this Spark has none")
    assert done.err.count("\n") == 2, done.err
    assert not list((tmp_path / "out").glob("*.parquet"))
    done = run_process("count", RISING, *given, "--quiet", SPARK_HOME=str(without_rocksdb))
    assert done.code == 0, done.err


@pytest.mark.timeout(900)
def test_a_condition_on_decimals_leaves_spark_quiet(tmp_path: Path) -> None:
    """Code that is generated and does not compile is logged by the hundred lines, which shows where one debugs."""
    prices = [Decimal(f"{price}.50") for price in (1, 2, 3)]
    table = pa.table({"ts": [1, 2, 3], "id": [1, 2, 3], "d": pa.array(prices, pa.decimal128(10, 2))})
    pq.write_table(table, tmp_path / "decimals.parquet")
    query = "PATTERN E+ s[] WHERE s.d > 1.7 AND s.d + s.d < 100.0 AND s[i].d > s[i-1].d AND s.d * 2 > 1.5"
    asked = ("count", query, tmp_path / "decimals.parquet", "--event-id", "id", "--quiet", *SMALL)
    for environment in ({}, {"TRELLIS_DEBUG": "1"}):
        done = run_process(*asked, **environment)
        assert (done.code, done.out) == (0, "1\n"), done
        lines = [line for line in done.err.splitlines() if "WARN" not in line]
        assert not lines, done.err


@pytest.mark.timeout(900)
def test_workers_that_start_slowly_do_not_end_a_stream(tmp_path: Path) -> None:
    """Spark waits ten seconds for the Python that tells it the state of a stream, which a busy machine may exceed."""
    table = events(40)
    write_files(table, tmp_path / "in", 2)
    python, asked = tmp_path / "python", tmp_path / "asked"
    slow = f'case "$*" in *driver_worker*) echo >> {asked}; [ $(wc -l < {asked}) -gt 2 ] || sleep 11;; esac'
    python.write_text(f'#!/bin/sh\n{slow}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    places = ("--out", tmp_path / "out", "--checkpoint", tmp_path / "cp", "--watermark", "99 s", "--files-a-batch", "1")
    more = ("--available-now", "--flush", "--conf", f"spark.pyspark.python={python}")
    done = run_process("stream", RISING, tmp_path / "in", "--event-id", "id", *places, *more, *SMALL)
    assert done.code == 0, done.err
    assert len(asked.read_text()) > 2
    assert found(tmp_path / "out") == batch(RISING, table)
