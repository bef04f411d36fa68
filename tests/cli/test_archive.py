"""`trellis archive`: from a log to answers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.test_archive import events
from tests.cli.cases import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    assert run("archive", "find", "PATTERN SEQ(A, NOT(B))", *at).code == 2
    assert run("archive", "info", "--archive", str(folder)).code == 2
    assert run("archive", "build", str(folder / "first.parquet"), *at, "--time", "t", "--type", "x y").code == 2
