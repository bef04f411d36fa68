"""CSV that a stream writes: shown by a spreadsheet, or plain, and read back by Trellis unchanged."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.cli.cases import run_local, run_process
from tests.engines.spark.cluster import QUICKLY
from trellis.io.spreadsheets import GUARD
from trellis.streams.stream_output import committed_files, read_committed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
TEXTS = ["=1+1", "+49 30", "-5", "@SUM(A1)", "\t=1", '="quoted, with"', "'=1", "plain"]
OWN = f"{GUARD}=1"  # a text that begins as those do that are written for spreadsheets
SHOWN = [text if text in ("'=1", "plain") else GUARD + text for text in (*TEXTS, OWN)]
QUERY = "PATTERN E+ s[] WHERE [k] WITHIN 10 s SLIDE 10 s RETURN FIRST(s).k AS `=k`, FIRST(s).x AS x"


@pytest.mark.parametrize(("raw", "texts", "written"), [((), [*TEXTS, OWN], SHOWN), (("--raw-csv",), TEXTS, TEXTS)])
def test_csv_of_a_stream(tmp_path: Path, raw: tuple[str, ...], texts: list[str], written: list[str]) -> None:
    table = events(texts)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "events.parquet")
    out = tmp_path / "out"
    places = ("--out", out, "--checkpoint", tmp_path / "cp", "--watermark", "1 s", "--available-now", "--flush")
    asked = ("--event-id", "id", "--format", "csv", "--master", "local[2]", *QUICKLY)
    done = run_process("stream", QUERY, tmp_path / "in", *asked, *places, *raw)
    assert done.code == 0, done.err
    rows = fields(out)
    assert sorted(row["=k" if raw else f"{GUARD}=k"] for row in rows) == sorted(written)
    assert {row["x"] for row in rows} == {"-1.5"}  # numbers stay as they are
    wanted = trellis.query(QUERY).detect(table, time="ts", event_id="id").to_arrow()
    assert sorted(read_committed(out)["=k"].to_pylist()) == sorted(wanted["=k"].to_pylist()) == sorted(texts)
    again = ("count", "PATTERN R+ r[] WHERE r.`=k` = '=1+1'", out, "--time", "start_time", "--quiet")
    assert run_local(*again).out == "1\n"  # what was written is read as events by a query


def events(texts: list[str]) -> pa.Table:
    """One event for each text."""
    times = pa.array(range(1_700_000_000, 1_700_000_000 + len(texts)), pa.timestamp("s", "UTC"))
    return pa.table({"ts": times, "id": [f"e{i}" for i in range(len(texts))], "k": texts, "x": [-1.5] * len(texts)})


def fields(out: Path) -> list[dict[str, str]]:
    """Return the rows of an output as any program reads CSV."""
    rows: list[dict[str, str]] = []
    for file in committed_files(out):
        with file.open(newline="", encoding="utf-8") as lines:
            rows += csv.DictReader(lines)
    return rows
