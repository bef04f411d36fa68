"""`trellis archive`: from a log to answers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.cases import events
from tests.cli.cases import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of 300 events that the command built, beside the files it was built from and later ones."""
    folder = tmp_path_factory.mktemp("archive")
    table = events(400, random.Random(1), "ABCDEFGH")
    pq.write_table(table.slice(0, 300), folder / "first.parquet")
    last = table["t"][299].as_py()
    later = table.filter(pa.array(table["t"].to_numpy() > last))
    pq.write_table(later, folder / "second.parquet")
    given = ["--archive", str(folder / "a"), "--time", "t", "--type", "n", "--event-id", "id", "--leaf", "10"]
    done = run("archive", "build", str(folder / "first.parquet"), *given)
    assert done.code == 0, done.err
    assert "expected rate" in done.out
    return folder


def test_append_and_info(folder: Path) -> None:
    at = ["--archive", str(folder / "a")]
    before = json.loads(run("archive", "info", *at, "--json").out)["events"]
    if before == 300:
        assert run("archive", "append", str(folder / "second.parquet"), *at).code == 0
    about = json.loads(run("archive", "info", *at, "--json").out)
    assert about["events"] > 300
    assert about["leaves"] == -(-about["events"] // 10)
    again = run("archive", "append", str(folder / "second.parquet"), *at)
    assert again.code == 2
    assert "not later than the last" in again.err


def test_find(folder: Path) -> None:
    at = ["--archive", str(folder / "a")]
    done = run("archive", "find", "PATTERN SEQ(A, NOT(B), C)", *at)
    assert done.code == 0
    assert done.out.startswith("it happened: ")
    assert "|" in done.out
    assert "negation" in done.out
    short = run("archive", "find", "PATTERN SEQ(A, B)", *at, "--exists", "--json")
    assert json.loads(short.out) == {"answer": "likely"}
    exact = json.loads(
        run("archive", "find", "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 5", *at, "--exact", "--json").out
    )
    assert int(exact["results"]) >= len(exact["rows"]) > 0
    assert exact["needed"] <= exact["read"] <= exact["events"]
    for wrong, text in (("--policy", "sometimes"), ("--from", "yesterday")):
        bad = run("archive", "find", "PATTERN SEQ(A, B)", *at, wrong, text)
        assert bad.code == 2
        assert "Traceback" not in bad.err
    assert run("archive", "find", "PATTERN NOT(B)", *at).code == 2
    assert run("archive", "info", "--archive", str(folder)).code == 2
    assert run("archive", "build", str(folder / "first.parquet"), *at, "--time", "t", "--type", "x y").code == 2


def test_not_at_the_end(folder: Path) -> None:
    at = ["--archive", str(folder / "a")]
    assert run("archive", "find", "PATTERN SEQ(A, NOT(B))", *at).out.startswith("it happened: maybe")
    exact = json.loads(run("archive", "find", "PATTERN SEQ(A, NOT(B))", *at, "--exact", "--json").out)
    files = [pq.read_table(folder / name) for name in ("first.parquet", "second.parquet")]
    rows = pa.concat_tables(files).slice(0, exact["events"]).to_pylist()
    last = max(row["t"] for row in rows if row["n"] == "B")
    assert [row["A"] for row in exact["rows"]] == [row["id"] for row in rows if row["n"] == "A" and row["t"] > last]


def test_other_lists(folder: Path) -> None:
    at = ["--archive", str(folder / "a"), "--json"]
    text = "PATTERN SEQ(A, B) SELECT skip-till-next"

    def rows(*options: str, query: str = text) -> list[dict[str, int]]:
        done = run("archive", "find", query, *at, "--limit", "1000", *options)
        assert done.code == 0, done.err
        return json.loads(done.out)["rows"]

    every = rows()
    assert 0 < len(rows("--starts", "after")) < len(every)
    assert 0 < len(rows("--minimal")) <= len(every)
    assert len(rows("--pairs", query="PATTERN SEQ(A, B)")) > len(every)
    inside = rows("--from-position", "100", "--to-position", "199", "--same-leaf", "no")
    assert all(100 <= row["first_position"] <= row["last_position"] <= 199 for row in inside)
    near = rows("--within-events", "20", "--same-leaf", "no")
    assert all(row["last_position"] - row["first_position"] <= 20 for row in near)
    assert len(near) < len(every)
    shown = run("archive", "find", text, "--archive", str(folder / "a"), "--limit", "3")
    assert "the first 3 of" in shown.out
    assert "█" in shown.out


def test_the_oldest_part_goes(folder: Path) -> None:
    target = ["--archive", str(folder / "old")]
    given = [*target, "--time", "t", "--type", "n", "--event-id", "id", "--leaf", "5", "--height", "2"]
    assert run("archive", "build", str(folder / "first.parquet"), *given).code == 0
    before = json.loads(run("archive", "info", *target, "--json").out)
    assert before["height"] >= 2
    coarse = json.loads(run("archive", "coarsen", *target, "--before", "400", "--level", "2", "--json").out)
    assert coarse["coarse"] > 0
    assert coarse["leaves"] < before["leaves"]
    assert coarse["events"] == before["events"]
    less = json.loads(run("archive", "drop", *target, "--before", "200", "--json").out)
    assert less["events"] + less["dropped"] == before["events"]
    assert less["dropped"] > 0
    assert run("archive", "coarsen", *target, "--before", "soon", "--level", "2").code == 2


def test_the_words_of_a_text(folder: Path) -> None:
    (folder / "song.md").write_text("one man went to mow, went to mow a meadow\n" * 30)
    target = ["--archive", str(folder / "song")]
    given = [*target, "--time", "position", "--type", "word", "--input-format", "text", "--leaf", "10"]
    assert run("archive", "build", str(folder / "song.md"), *given).code == 0
    found = run("archive", "find", "PATTERN SEQ(mow, a, meadow) SELECT contiguous", *target, "--exact", "--json")
    assert json.loads(found.out)["results"] == "30"


def test_what_is_refused(folder: Path) -> None:
    log, target = folder / "log.csv", folder / "log"
    log.write_text("ts,k\n01.02.2024 10:00,A\n01.02.2024 10:01,B\n")
    given = ["archive", "build", str(log), "--archive", str(target), "--time", "ts", "--type", "k"]
    done = run(*given)
    assert (done.code, target.exists()) == (2, False)
    assert "`ts` is text" in done.err
    assert "--time-format" in done.err
    assert run(*given, "--time-format", "dd.MM.yyyy HH:mm").code == 0
    for wrong in (["--from", "2025-01-01", "--to", "2024-01-01"], ["--from-position", "9", "--to-position", "1"]):
        assert run("archive", "find", "PATTERN SEQ(A, B)", "--archive", str(target), *wrong).code == 2
    next(target.glob("events-*")).unlink()
    for command in (["info"], ["drop", "--before", "2024-01-01"]):
        done = run("archive", *command, "--archive", str(target))
        assert done.code == 2
        assert "damaged" in done.err
    assert "xes" in run("archive", "build", "--help").out
