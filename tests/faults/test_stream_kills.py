"""Twenty kills of one stream, at random moments, while queries are added, left out and changed at its restarts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time as clock
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engines.spark.cluster import QUICKLY
from tests.engines.spark.stream.test_stream import SPAN, batch, events, found, nearly_sorted, write_files
from trellis.streams.stream_output import committed_files

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 20
PATIENCE = 600.0  # seconds for a batch of a stream that starts, on a machine that has other work, too
RISING = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 s SLIDE 5 s"
FALLING = "PATTERN T+ t[] WHERE [g] AND t[i].x < t[i-1].x WITHIN 10 s SLIDE 5 s"
CHANGED = "PATTERN T+ t[] WHERE [g] AND t[i].x <= t[i-1].x WITHIN 8 s SLIDE 4 s"
COUNTED = "PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10 s SLIDE 10 s AGGREGATE COUNT(*)"
# `rising` and `span` are always asked, first alone; `falling` comes, changes, goes, and comes back as it was.
ASKED = [
    {"rising": RISING, "span": SPAN},
    {"rising": RISING, "span": SPAN, "falling": FALLING},
    {"rising": RISING, "span": SPAN, "falling": CHANGED},
    {"rising": RISING, "span": SPAN, "counted": COUNTED},
    {"rising": RISING, "span": SPAN, "falling": FALLING, "counted": COUNTED},
]


def command(folder: Path, queries: dict[str, str], *more: str) -> list[str]:
    for name, text in queries.items():
        (folder / f"{name}.tq").write_text(text)
    files = [f"{name}.tq" for name in queries]
    given = ("--out", "out", "--checkpoint", "cp", "--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1")
    conf = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g", *QUICKLY)
    return [sys.executable, "-m", "trellis.cli.main", "stream", *files, "in", *given, *conf, *more]


def entries(folder: Path) -> int:
    return len(list((folder / "out" / "rising" / "_log").glob("*.json")))


def kill_at_some_moment(folder: Path, queries: dict[str, str], dice: random.Random) -> int:
    """Start the stream and kill it: often a moment after it has written again, sometimes while it starts.

    Return how many batches it has committed.
    """
    process = subprocess.Popen(command(folder, queries), cwd=folder, start_new_session=True, stderr=subprocess.PIPE)
    before, begun = entries(folder), clock.monotonic()
    patience = PATIENCE if dice.random() < 0.75 else dice.uniform(2, 15)
    while clock.monotonic() - begun < patience and entries(folder) <= before:
        clock.sleep(0.02)
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
    clock.sleep(dice.random())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return entries(folder) - before


@pytest.mark.timeout(7200)
def test_twenty_kills_and_changes_of_queries_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    table = events(600)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 40)
    dice = random.Random(19)
    batches = [kill_at_some_moment(tmp_path, ASKED[kill % len(ASKED)], dice) for kill in range(KILLS)]
    print(f"batches committed between {KILLS} kills: {batches}")
    assert sum(number > 0 for number in batches) >= KILLS // 2
    done = subprocess.run(
        command(tmp_path, ASKED[-1], "--available-now", "--flush", "--json"), cwd=tmp_path, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["late"] == 0
    for name, text in (("rising", RISING), ("span", SPAN)):
        assert found(tmp_path / "out" / name) == batch(text, table), name
    others = {"falling": FALLING, "falling-2": CHANGED, "counted": COUNTED}
    for name, text in others.items():  # those that came later have a part of the windows, each once and whole
        check_part(tmp_path / "out" / name, text, table)
    for name in ("rising", "span", *others):
        out = tmp_path / "out" / name
        assert sorted(out.glob("*.parquet")) == sorted(committed_files(out)), name


def check_part(out: Path, text: str, table: pa.Table) -> None:
    rows, all_rows = found(out), batch(text, table)
    assert len(rows) == len(set(rows)), f"a row of {out.name} is there twice"
    assert set(rows) <= set(all_rows), out.name
