"""`trellis count`: numbers by window, in all, and as files."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from tests.cli.cases import RISING, assert_mistake, run_local, run_process
from tests.cli.test_explain import KITING
from trellis.io.generate import generate_table
from trellis.io.write import write_table


def test_prints_counts_by_window_and_the_total(samples: Path) -> None:
    done = run_local("count", KITING, samples / "kite.parquet")
    counts = trellis.query(KITING.read_text()).detect(pq.read_table(samples / "kite.parquet")).counts()
    total = sum(map(int, counts["count_text"].to_pylist()))
    assert done.code == 0
    assert done.out.count(" 00:00 ") == 2 * min(20, counts.num_rows)
    assert f"results     {total:,}" in done.out


def test_says_how_many_rows_are_left_out(samples: Path) -> None:
    query = "PATTERN stock+ s[] WHERE [id] WITHIN 60 min SLIDE 10 min"
    rows = trellis.query(query).detect(trellis.io.read.read_table(samples / "stock.csv")).counts().num_rows
    assert f"and {rows - 20:,} more rows with results" in run_local("count", query, samples / "stock.csv").out


def test_quiet_prints_the_number_only(prices: Path) -> None:
    assert run_local("count", RISING, prices, "--quiet").out == "2\n"


def test_limits_and_bounds_do_not_matter(prices: Path) -> None:
    assert run_local("count", f"{RISING} REPORT any LIMIT 1", prices, "--quiet").out == "7\n"


def test_aggregates_are_printed_and_written(prices: Path, tmp_path: Path) -> None:
    query = f"{RISING} AGGREGATE COUNT(*), AVG(s.price) AS mean"
    assert "mean" in run_local("count", query, prices).out
    done = run_local("count", query, prices, "--json", "--out", tmp_path / "out")
    told = json.loads(done.out)
    assert told["results"] == "2"
    assert told["aggregates"] == [{"count": 2, "count_text": "2", "mean": 2.0}]
    assert pq.read_table(tmp_path / "out").num_rows == 1


def test_values_are_told_as_in_json_files(tmp_path: Path) -> None:
    file = tmp_path / "values.parquet"
    values = pa.table(
        {
            "ts": [1, 2],
            "x": [float("inf"), 1.0],
            "d": pa.array([Decimal("1.50"), Decimal("2.25")]),
            "t": pa.array([0, 1], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(values, file)
    query = "PATTERN A+ a[] AGGREGATE COUNT(*), MAX(a.x) AS x, MAX(a.d) AS d, MIN(a.t) AS t"
    done = run_local("count", query, file, "--json", "--out", tmp_path / "out", "--format", "json")
    assert (done.code, done.err) == (0, "")
    (line,) = (tmp_path / "out" / "part-00000.json").read_text().splitlines()
    assert f'"aggregates": [{line}]' in done.out
    (told,) = json.loads(done.out)["aggregates"]
    assert (told["x"], told["d"], told["t"]) == ("Infinity", 2.25, "1970-01-01T00:00:00.000000Z")


def test_counts_are_written(samples: Path, tmp_path: Path) -> None:
    done = run_local(
        "count", KITING, samples / "kite.parquet", "--out", tmp_path / "out", "--format", "json", "--quiet"
    )
    rows = [json.loads(line) for file in (tmp_path / "out").glob("part-*") for line in file.read_text().splitlines()]
    assert sum(int(row["count_text"]) for row in rows) == int(done.out)
    assert_mistake(run_local("count", KITING, samples / "kite.parquet", "--out", tmp_path / "out"), "exists")


def test_counts_of_thousands_of_digits_are_printed_in_full(tmp_path: Path) -> None:
    file = tmp_path / "many.parquet"
    write_table(generate_table("stock", 15_000, 1, rate=0.01), file)
    done = run_process("count", "PATTERN s+ s[] REPORT any", file, "--engine", "local", "--quiet")
    times = len(set(pq.read_table(file)["ts"].to_pylist()))
    assert done.err == ""
    assert len(done.out.strip()) >= int(times * 0.301)


def test_columns_behind_the_time_break_ties(tmp_path: Path) -> None:
    file = tmp_path / "ticks.csv"
    file.write_text("ts,seq,price\n2024-01-01T00:00:01,2,2\n2024-01-01T00:00:01,1,1\n2024-01-01T00:00:02,1,3\n")
    query = f"{RISING} REPORT maximal AGGREGATE MAX(LENGTH) AS longest"
    told = json.loads(run_local("count", query, file, "--time", "ts, seq", "--json").out)
    assert told["aggregates"] == [{"longest": 3}]
    warned = run_local("count", query, file, "--quiet")
    assert warned.out == "2\n"
    assert "2 of 3 events (66.7%) share `ts`" in warned.err
    assert "--time ts,COLUMN" in warned.err
    assert_mistake(run_local("count", query, file, "--time", "ts,order"), "no column `order` for the order of events")
