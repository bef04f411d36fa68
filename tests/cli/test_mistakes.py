"""Each mistake is told in a sentence, with exit code 2, and leaves nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.cases import PRICES, RISING, assert_mistake, names_in, run, run_local


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = [
    ("missing.csv", None, "There is no file missing.csv"),
    ("empty.csv", "", "empty.csv is empty"),
    ("short.csv", "ts,price\n1,2\n3\n", "row 3: it has 1 field, but the header has 2"),
    ("times.csv", "ts,price\nsoon,1\nlater,2\n", "no readable time"),
    ("torn.parquet", "PAR1 and then nothing", "torn.parquet cannot be read as Parquet"),
    ("lines.json", '{"ts": 1}\n[2]\n', "this is not a JSON object"),
    ("prices.txt", PRICES, "format of prices.txt cannot be told"),
    ("timeless.csv", "when,price\n1,2\n", "Name the time column"),
    ("twice.csv", "ts,price,price\n1,2,3\n", "`price` 2 times"),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[name for name, _, _ in FILES])
def test_files(folder: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (folder / name).write_text(content)
    before = names_in(folder)
    assert_mistake(run_local("detect", RISING, name, "--out", "out"), said)
    assert names_in(folder) == before


TYPED = "PATTERN A+ a[] WHERE a[i].price > 1.5 * a[i-1].price AND a.name LIKE 'x%' RETURN SUM(a.price) AS sum, a.name"


@pytest.mark.parametrize("window", ["", "WITHIN 10", "WITHIN 10 min", "WITHIN 10 min SLIDE 5 min"])
@pytest.mark.parametrize(
    ("name", "content"),
    [("header.csv", "ts,id,price,name\n"), ("empty.jsonl", ""), ("header.tsv", "ts\tid\tprice\tname")],
)
def test_files_without_events_give_no_results(folder: Path, name: str, content: str, window: str) -> None:
    (folder / name).write_text(content)
    given = (f"{TYPED} {window}", name, "--time", "ts", "--event-id", "id", "--type", "name")
    counted = run_local("count", *given, "--json")
    assert counted.code == 0, counted.err
    assert json.loads(counted.out)["results"] == "0"
    assert "trends: 0" in run_local("explain", *given).out
    assert run_local("detect", *given).code == 0
    assert run_local("detect", *given, "--out", "out").code == 0
    assert pq.read_table(folder / "out").num_rows == 0
    assert {"sum", "a_name"} <= set(pq.read_table(folder / "out").column_names)


def test_a_repeated_id(folder: Path) -> None:
    (folder / "events.csv").write_text("ts,event_id,price\n1,a,1\n2,a,2\n")
    done = run_local("detect", RISING, "events.csv", "--event-id", "event_id", "--out", "out")
    assert_mistake(done, "the id `a`", "twice", "--on-bad-rows drop")
    assert names_in(folder) == ["events.csv"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--time", "tss"), "no column `tss` for the time"),
        (("--type", "kind"), "no column `kind` for the type"),
        (("--event-id", "eventid"), "`event_id`"),
        (("--param", "ratio"), "not of the form NAME=VALUE"),
        (("--param", "ratio=1", "--param", "ratio=2"), "`ratio` twice"),
        (("--conf", "spark.x"), "not of the form KEY=VALUE"),
        (("--conf", "spark.x=1"), "--engine spark"),
        (("--events", "Stock=prices.csv"), "in more than one way"),
        (("--table", "a.b"), "in more than one way"),
        (("--report-mode", "some"), "'unextendable', 'maximal', 'any'"),
        (("--on-bad-rows", "keep"), "'error', 'drop'"),
        (("--format", "xml"), "'parquet', 'orc', 'csv', 'json'"),
        (("--limit", "-1"), "--limit"),
        (("--limit", "ten"), "valid integer"),
        (("--max-trends", "-1"), "--max-trends"),
        (("--algorithm", "quick"), "There are auto, ranks, join, dfs"),
        (("--algorithm", "join"), "Use engine spark"),
        (("--construction", "spark"), "Ask for algorithm join too"),
        (("--construction", "parallel"), "builds the graph of a named algorithm, not of `auto`"),
        (("--algorithm", "bfs", "--memory-limit", "0"), "`0` is not positive"),
        (("--algorithm", "bfs", "--memory-limit", "-2G"), "`-2G` is not positive"),
        (("--algorithm", "bfs", "--memory-limit", "2 gigs"), "`2 gigs` is not a size"),
        (("--algorithm", "bfs", "--memory-limit", "8"), "more than the memory limit of 8"),
        (("--memory-limit", "2 gigs"), "`2 gigs` is not a size"),
        (("--algorithm", "anchor", "--anchors", "0"), "cannot be 0 anchors"),
        (("--algorithm", "anchor", "--anchors", "-1"), "cannot be -1 anchors"),
        (("--algorithm", "anchor", "--anchors", "many"), "valid integer"),
        (("--algorithm", "anchor", "--anchors", "1000"), "1,000 anchors are more than the"),
        (("--algorithm", "dfs", "--anchors", "2"), "`dfs` has no use for anchors"),
        (("--algorithm", "dfs", "--optimizer", "bnb"), "`dfs` has no use for optimizer"),
        (("--optimizer", "quick"), "no optimizer `quick`"),
        (("--input-format", "xml"), "`xml` is unknown"),
        (("--time-format", "qqqq"), "qqqq"),
        (("--overwrite",), "--out"),
        (("--colour",), "--colour"),
        (("--out", "prices.csv"), "is the input `prices.csv`"),
        (("--out", "prices.csv", "--overwrite"), "is the input `prices.csv`"),
    ],
)
def test_options(folder: Path, options: tuple[str, ...], said: str) -> None:
    (folder / "prices.csv").write_text(PRICES)
    assert_mistake(run_local("detect", RISING, "prices.csv", *options), said)
    assert names_in(folder) == ["prices.csv"]


def test_an_unknown_engine(folder: Path) -> None:
    assert_mistake(run("detect", RISING, "prices.csv", "--engine", "flink"), "'local', 'spark'")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("PATTERN Stock+ s[", "line 1, column"),
        ("PATTERN Stock+ s[] WHERE s.prise > 1", "no attribute `prise`"),
        ("PATTERN Stock+ s[] WHERE s.price > ratio", "`ratio`"),
        ("PATTERN SEQ(Stock? a, Stock* b[])", "without any event"),
        ("missing.tq", "there is no query file missing.tq"),
        ("a missing file.tq", "there is no query file a missing file.tq"),
        ("queyr.tq", "Did you mean `query.tq`?"),
        ("blank.tq", "the query file blank.tq is empty"),
        (".", "the query file . cannot be read: is a directory"),
        ("latin.tq", "is not UTF-8"),
        ("", "the query is empty"),
        ("price", "there is no query file price"),
    ],
)
def test_queries(folder: Path, query: str, said: str) -> None:
    (folder / "prices.csv").write_text(PRICES)
    (folder / "query.tq").write_text(RISING)
    (folder / "blank.tq").write_text("\n")
    (folder / "latin.tq").write_bytes("PATTERN é".encode("latin-1"))
    before = names_in(folder)
    assert_mistake(run_local("detect", query, "prices.csv", "--out", "out"), said)
    assert names_in(folder) == before


@pytest.mark.parametrize("command", ["detect", "count"])
def test_no_events(command: str) -> None:
    assert_mistake(run_local(command, RISING), "no events were given")
    assert_mistake(run_local(command, RISING, "--events", "Stock"), "not of the form TYPE=PATH")


def test_a_column_without_its_variable(folder: Path) -> None:
    file = folder / "numbers.csv"
    file.write_text("ts,price\n1,2\n2,3\n")
    assert_mistake(run_local("count", "PATTERN S+ s[] WHERE price > 3", file), "If it is a column, write `s.price`.")


def test_numbers_that_are_compared_with_a_word(folder: Path) -> None:
    file = folder / "numbers.csv"
    file.write_text("ts,price,code\n1,2,007\n2,3.5,x\n")
    done = run_local("count", "PATTERN S+ s[] WHERE s.price = 'high' AND s.code != 'y'", file)
    assert done.code == 0
    said = "warning: `price` holds numbers, such as 2, and is compared with 'high' as text"
    assert done.err == f"{said}; numbers are written without quotes\n"
    assert run_local("count", "PATTERN S+ s[] WHERE s.price = '2'", file).err == ""
