"""The same commands on Spark; few, since each starts a JVM."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.cases import assert_mistake, names_in, run_local, run_process, start
from tests.cli.test_explain import KITING
from tests.cli.test_process import ENDLESS, UNBOUNDED, wait_for

pytestmark = pytest.mark.spark
TWO = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")


def test_detect_gives_what_the_local_engine_gives(samples: Path, tmp_path: Path) -> None:
    asked = ("detect", KITING, samples / "kite.parquet", "--event-id", "event_id")
    done = run_process(*asked, *TWO, "--out", tmp_path / "spark")
    local = run_local(*asked, "--out", tmp_path / "local")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[2:-2] == local.out.splitlines()[2:-2]
    found, expected = (pq.read_table(tmp_path / name) for name in ("spark", "local"))
    keys = [("window_start", "ascending"), ("rank", "ascending")]
    assert found.sort_by(keys).to_pylist() == expected.sort_by(keys).to_pylist()


def test_count_over_several_tables_of_text_prints_json_only(prices: Path, tmp_path: Path) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text("ts,event_id,size\n2024-01-01T00:00:01,x,5\n")
    query = "PATTERN Stock+ s[] WHERE s.code = '007' REPORT any"
    tables = ("--events", f"Stock={prices}", "--events", f"Order={orders}")
    done = run_process("count", query, *tables, *TWO, "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert (told["events"], told["results"]) == (4, "3")


def test_a_bad_row_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("ts,price\n2024-01-01T00:00:01,1\n2024-01-01T00:00:02,2\nsoon,2\n")
    query = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price"
    assert_mistake(run_process("detect", query, file, *TWO, "--out", tmp_path / "out"), "1 row has no readable time")
    assert names_in(tmp_path) == ["prices.csv"]


def test_ctrl_c_while_spark_writes(samples: Path, tmp_path: Path) -> None:
    process = start("detect", ENDLESS, samples / "stock.csv", *TWO, *UNBOUNDED, "--out", tmp_path / "out")
    wait_for(lambda: any(tmp_path.glob(".out.*/files/_temporary/0/_temporary/*")), process)
    os.killpg(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=30)
    assert process.returncode == 130
    assert printed == ("", "interrupted\n")
    assert names_in(tmp_path) == []
