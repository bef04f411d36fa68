"""`trellis detect`: what it prints and writes, in every format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.cli.cases import RISING, assert_mistake, names_in, run, run_local
from tests.cli.test_explain import KITING

ALL = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price REPORT any"


def test_prints_the_first_results_and_a_summary(samples: Path) -> None:
    done = run_local("detect", KITING, samples / "kite.parquet", "--event-id", "event_id")
    count = (
        trellis.query(KITING.read_text()).detect(pq.read_table(samples / "kite.parquet"), event_id="event_id").count()
    )
    assert done.code == 0
    assert done.err.startswith("warning: 10 of 277 events (3.6%) share `ts`")
    lines = done.out.splitlines()
    assert lines[0].startswith("PATTERN check+ c[] WHERE c.type = 'not covered'")
    assert sum(line.startswith(" 2023-12-26 00:00 ") for line in lines) == 10
    assert f"the first 10 of {count:,} results" in done.out
    assert [line.split()[0] for line in lines[-5:]] == ["events", "windows", "partitions", "results", "seconds"]
    assert f"{count:,}" in lines[-2]


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_writes_what_python_gives(samples: Path, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    done = run_local(
        "detect", KITING, samples / "kite.parquet", "--event-id", "event_id", "--out", out, "--format", format
    )
    table = pq.read_table(samples / "kite.parquet")
    expected = trellis.query(KITING.read_text()).detect(table, event_id="event_id").to_arrow()
    assert done.code == 0
    assert str(out) in done.out
    assert names_in(tmp_path) == ["out"]
    assert _events(out, format) == expected["events"].to_pylist()


def _events(out: Path, format: str) -> list[list[int]]:
    if format == "parquet":
        return pq.read_table(out)["events"].to_pylist()
    (file,) = out.glob("part-*")
    with file.open(newline="") as lines:
        if format == "json":
            return [json.loads(line)["events"] for line in lines]
        return [json.loads(row["events"]) for row in csv.DictReader(lines)]


def test_an_output_that_exists_is_replaced_only_if_asked(prices: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine")
    assert_mistake(run_local("detect", RISING, prices, "--out", out), "exists", "--overwrite")
    assert names_in(out) == ["precious"]
    assert_mistake(run_local("detect", RISING, prices, "--out", out, "--overwrite"), "no list of files", "remove it")
    assert names_in(out) == ["precious"]
    (out / "precious").unlink()
    for _ in range(2):
        assert run_local("detect", RISING, prices, "--out", out, "--overwrite").code == 0
        assert names_in(out) == ["_trellis.json", "part-00000.parquet"]
    assert names_in(tmp_path) == ["out", "prices.csv"]


def test_json_is_one_object(prices: Path, tmp_path: Path) -> None:
    done = run_local("detect", ALL, prices, "--json", "--out", tmp_path / "out")
    told = json.loads(done.out)
    assert told.pop("seconds") > 0
    assert told == {
        "query": ALL, "events": 3, "windows": 1, "partitions": 1, "results": "7", "output": str(tmp_path / "out"),
    }  # fmt: skip


def test_quiet_prints_nothing(prices: Path, tmp_path: Path) -> None:
    done = run_local("detect", ALL, prices, "--quiet", "--out", tmp_path / "out")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert pq.read_table(tmp_path / "out").num_rows == 7


@pytest.mark.parametrize(("limit", "rows"), [("2", 2), ("0", 0), ("100", 7)])
def test_limit_overrides_the_querys(prices: Path, tmp_path: Path, limit: str, rows: int) -> None:
    done = run_local("detect", f"{ALL} LIMIT 1", prices, "--limit", limit, "--out", tmp_path / "out", "--json")
    assert json.loads(done.out)["results"] == str(rows)
    assert pq.read_table(tmp_path / "out").num_rows == rows


def test_a_limit_is_told_beside_the_whole(prices: Path) -> None:
    assert "2 of 7" in run_local("detect", ALL, prices, "--limit", "2").out


def test_results_are_listed_where_all_of_them_are_too_many_to_count(tmp_path: Path) -> None:
    path, size = tmp_path / "trades.parquet", 3_000
    x = np.random.default_rng(1).random(size)
    pq.write_table(
        pa.table({"ts": np.arange(size), "id": np.arange(size), "kind": ["A", "B", "B"] * 1000, "x": x}), path
    )
    far = "PATTERN SEQ(A a, B+ b[]) WHERE AVG(b.x) > a.x REPORT any LIMIT 3"
    options = ("--time", "ts", "--type", "kind", "--event-id", "id")
    done = run_local("detect", far, path, *options, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "3, as LIMIT asks; how many there are in all was not counted" in done.out
    assert pq.read_table(tmp_path / "out").num_rows == 3
    assert json.loads(run_local("detect", far, path, *options, "--json").out)["results"] == "3"


@pytest.mark.parametrize(("mode", "results"), [("unextendable", "2"), ("maximal", "1"), ("any", "7")])
def test_report_mode_overrides_the_querys(prices: Path, mode: str, results: str) -> None:
    done = run_local("detect", RISING, prices, "--report-mode", mode, "--json")
    assert json.loads(done.out)["results"] == results


def test_too_many_are_refused_with_their_number(prices: Path, tmp_path: Path) -> None:
    done = run_local("detect", ALL, prices, "--max-trends", "6", "--out", tmp_path / "out")
    assert_mistake(done, "7 results", "bound of 6", "LIMIT")
    assert names_in(tmp_path) == ["prices.csv"]
    assert run_local("detect", ALL, prices, "--max-trends", "7").code == 0
    assert run_local("detect", ALL, prices, "--max-trends", "6", "--limit", "6").code == 0


def test_the_first_of_very_many_are_shown_without_listing_all(samples: Path) -> None:
    done = run_local("detect", ALL, samples / "stock.csv", "--max-trends", str(10**40))
    assert "the first 10 of" in done.out
    assert "5,579,941,599,745" in done.out


def test_aggregates_are_printed(prices: Path, tmp_path: Path) -> None:
    query = f"{ALL} AGGREGATE COUNT(*), SUM(s.price) AS total, MAX(LENGTH)"
    done = run_local("detect", query, prices, "--out", tmp_path / "out")
    assert done.code == 0
    assert "max_length" in done.out
    assert pq.read_table(tmp_path / "out").select(["count_text", "total_text"]).to_pylist() == [
        {"count_text": "7", "total_text": "24"}
    ]


def test_parameters_and_partitions(samples: Path) -> None:
    query = "PATTERN stock+ s[] WHERE [id] AND s[i].price > ratio * s[i-1].price WITHIN 60 min SLIDE 10 min"
    done = run_local(
        "detect", query, samples / "stock.csv", "--param", "ratio=1.01", "--event-id", "event_id", "--json"
    )
    table = trellis.io.read.read_table(samples / "stock.csv")
    trends = trellis.query(query).detect(table, params={"ratio": 1.01}, event_id="event_id")
    told = json.loads(done.out)
    assert told["results"] == str(trends.count())
    assert (told["windows"], told["partitions"]) == (trends.statistics["windows"], 10)


def test_columns_compared_with_strings_are_text(prices: Path) -> None:
    done = run_local("detect", "PATTERN Stock+ s[] WHERE s.code = '007'", prices, "--json")
    assert json.loads(done.out)["results"] == "1"
    given = run_local("detect", "PATTERN Stock+ s[] WHERE s.event_id = which", prices, "--param", "which=b", "--json")
    assert json.loads(given.out)["results"] == "1"


def test_a_time_of_another_format(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("ts,price\n01.02.2024 10:00,1\n02.02.2024 10:00,2\n")
    for given in ((), ("--time", "ts")):
        done = run_local("detect", RISING, file, "--time-format", "dd.MM.yyyy HH:mm", *given)
        assert "2024-02-01 10:00" in done.out


def test_bad_rows_are_dropped_and_counted_if_asked(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("ts,price\n2024-01-01T00:00:01,1\nsoon,2\n2024-01-01T00:00:03,3\n")
    assert_mistake(run_local("detect", RISING, file), "1 row has no readable time", "--on-bad-rows drop")
    told = json.loads(run_local("detect", RISING, file, "--on-bad-rows", "drop", "--json").out)
    assert (told["events"], told["dropped"], told["results"]) == (3, 1, "1")
    assert "(1 dropped as bad)" in run_local("detect", RISING, file, "--on-bad-rows", "drop").out


def test_several_tables_by_type(prices: Path, tmp_path: Path) -> None:
    other = tmp_path / "orders.csv"
    other.write_text("ts,event_id,size\n2024-01-01T00:00:01,x,5\n")
    done = run_local(
        "detect", ALL, "--events", f"Stock={prices}", "--events", f"Order={other}", "--event-id", "event_id", "--json"
    )
    told = json.loads(done.out)
    assert (told["events"], told["results"]) == (4, "7")


def test_a_type_column_and_a_type_in_the_wrong_case(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,kind\n1,Stock\n2,Stock\n3,7\n")
    assert json.loads(run_local("detect", "PATTERN Stock+ s[]", file, "--type", "kind", "--json").out)["results"] == "1"
    done = run_local("detect", "PATTERN stock+ s[]", file, "--type", "kind", "--json")
    assert json.loads(done.out)["results"] == "0"
    assert done.err.startswith("warning: no event has the type `stock`, but some have `Stock`")


def test_text_that_is_compared_by_order_is_told(tmp_path: Path) -> None:
    stray = tmp_path / "stray.csv"
    stray.write_text("ts,price\n1,9\n2,10\n3,n/a\n")
    done = run_local("detect", "PATTERN T+ t[] WHERE t[i].price > t[i-1].price", stray)
    assert done.code == 0
    assert "warning: `price` is text, and is compared as text in `t[i].price > t[i-1].price`" in done.err


def test_what_is_wrong_with_the_query_is_told_before_anything_starts(tmp_path: Path) -> None:
    done = run("detect", "PATTERN SEQ(A? a, A* b[])", tmp_path)
    assert done.code == 2
    assert "the pattern can match without any event" in done.err
