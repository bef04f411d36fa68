"""Twenty kills of streams of all parts, each at a step of a commit: nothing is lost, and nothing is there twice.

Twelve are of a process with three streams: queries that share their events and tell timeouts, sums without events, and
early results. Eight are of `trellis stream --control`, while its queries change.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time as clock
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest

import trellis
from tests.cli.test_control import put
from tests.engines.spark.cluster import QUICKLY
from tests.engines.spark.stream.test_stream import batch, events, found, nearly_sorted, without_ranks, write_files
from tests.faults.streams_child import PAIR, RISING, SPAN, STREAMS, SUMMED
from trellis.cli.control import TOLD
from trellis.streams.stream_output import TIMEOUTS, committed_files, read_committed

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE = 300.0  # seconds until a step is seen, on a machine that has other work, too
STEPS = {
    "begun": "cp/*/offsets/[0-9]*",
    "state written": "cp/*/state/0/[0-9]*/[0-9]*.changelog",
    "results written": "out/*/part-*.parquet",
    "in our log": "out/*/_log/[0-9]*.json",
    "in Spark's log": "cp/*/commits/[0-9]*",
}
"""The steps of a batch, one after another, and the files by which they are seen."""


def seen(folder: Path, step: str) -> set[Path]:
    return set(folder.glob(STEPS[step]))


class Killed:
    """A process of streams that is started, and killed with all that it has started."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.said = (folder / "said").open("w+")
        place = os.environ | {"PYTHONPATH": os.getcwd()}
        self.process = subprocess.Popen(command, cwd=folder, env=place, start_new_session=True, stderr=self.said)

    def wait_for(self, what: str, is_so: object) -> None:
        begun = clock.monotonic()
        while not is_so():  # type: ignore[operator]
            self._lives(what)
            assert clock.monotonic() - begun < PATIENCE, what
            clock.sleep(0.01)

    def _lives(self, what: str) -> None:
        if self.process.poll() is not None:
            self.said.seek(0)
            raise AssertionError(f"ended before `{what}`: {self.said.read()[-4000:]}")

    def kill(self) -> None:
        self._lives("kill")
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.said.close()


def check_files(out: Path) -> None:
    """See that each file of an output is in its log, and each of the log there."""
    for kind in ("results", "windows", TIMEOUTS):
        folder = out if kind == "results" else out / f"_{kind}"
        assert sorted(folder.glob("*.parquet")) == sorted(committed_files(out, kind)), out


@pytest.mark.timeout(3600)
def test_twelve_kills_of_shared_queries_sums_early_results_and_timeouts(tmp_path: Path) -> None:
    table = events(400)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 60)
    command = [sys.executable, "-m", "tests.faults.streams_child", str(tmp_path)]
    steps = cycle(STEPS)
    for kill in range(12):
        name, step = list(STREAMS)[kill % 3], next(steps)
        child, before = Killed(command, tmp_path), seen(tmp_path / name, step)
        child.wait_for(step, lambda name=name, step=step, before=before: seen(tmp_path / name, step) - before)
        child.kill()
        done = len(seen(tmp_path / name, "in Spark's log"))
        print(f"kill {kill + 1}: {name}, {step}; {done} batches", flush=True)
    assert min(len(seen(tmp_path / name, "in Spark's log")) for name in STREAMS) < 60, "all was read before the end"
    subprocess.run([*command, "end"], cwd=os.getcwd(), check=True)
    for name, (queries, _) in STREAMS.items():
        for query, text in queries.items():
            out = tmp_path / name / "out" / query
            if name == "early":
                whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
                assert without_ranks(read_committed(out).to_pylist()) == without_ranks(whole), query
            else:
                assert found(out) == batch(text, table), query
            check_files(out)
    check_timeouts(tmp_path / "shared" / "out" / "pair", table)


def check_timeouts(out: Path, table: object) -> None:
    ended = trellis.query("PATTERN SEQ(T a, NOT(T b)) WHERE [g] AND a.x + 5 < b.x WITHIN 5 s")
    whole = ended.detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    told = read_committed(out, TIMEOUTS).to_pylist()
    assert sorted(row["events"][0] for row in told) == sorted(row["a"] for row in whole)


FALLING = "PATTERN T+ t[] WHERE [g] AND t[i].x < least * t[i-1].x WITHIN 8 s SLIDE 4 s"
ALWAYS = {"rising": RISING, "span": SPAN, "pair": PAIR, "counted": SUMMED + "COUNT(*)"}


@pytest.mark.timeout(3600)
def test_eight_kills_while_queries_come_change_and_go(tmp_path: Path) -> None:
    table = events(400)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 60)
    queries, out = tmp_path / "queries", tmp_path / "out"
    queries.mkdir()
    for name, text in ALWAYS.items():
        put(queries, f"{name}.tq", text)
    command = [
        sys.executable, "-m", "trellis.cli.main", "stream", "in", "--control", "queries", "--out", "out",
        "--checkpoint", "cp", "--watermark", "3 s", "--event-id", "id", "--timeouts", "--no-progress",
        "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g",
        *QUICKLY,
    ]  # fmt: skip
    for kill in range(8):
        child, before = Killed([*command, "--files-a-batch", "1"], tmp_path), seen(tmp_path, "in our log")
        child.wait_for("a batch", lambda before=before: seen(tmp_path, "in our log") - before)
        known = (tmp_path / "cp" / "trellis.json").stat().st_mtime_ns
        if kill % 3 == 2:  # comes, changes, and goes
            (queries / "falling.tq").unlink()
        else:
            put(queries, "falling.json", json.dumps({"least": str(1 + kill % 3)}))
            put(queries, "falling.tq", FALLING)
        if kill % 2:
            told = _lines(out / TOLD)
            child.wait_for("a change", lambda told=told: _lines(out / TOLD) > told)
            step = list(STEPS)[kill // 2 + 1]
            before = seen(tmp_path, step)
            child.wait_for(step, lambda step=step, before=before: seen(tmp_path, step) - before)
        else:
            step = "changed"
            child.wait_for(step, lambda known=known: (tmp_path / "cp" / "trellis.json").stat().st_mtime_ns != known)
        child.kill()
        done = len(seen(tmp_path, "in Spark's log"))
        print(f"kill {kill + 1}: {step}; {done} batches", flush=True)
    assert len(seen(tmp_path, "in Spark's log")) < 60, "all was read before the last kill"
    subprocess.run(
        [*command, "--files-a-batch", "16", "--available-now", "--flush"], cwd=tmp_path, check=True, timeout=PATIENCE
    )
    for name, text in ALWAYS.items():
        assert found(out / name) == batch(text, table), name
        check_files(out / name)
    check_timeouts(out / "pair", table)
    for place in out.glob("falling*"):  # what came later has a part of the windows, each once and whole
        rows = found(place)
        least = [str(n) for n in (1, 2) if set(rows) <= set(_falling(table, n))]
        assert least, place.name
        assert len(rows) == len(set(rows)), place.name
        check_files(place)


def _falling(table: object, least: int) -> list[str]:
    return batch(FALLING.replace("least", str(least)), table)  # type: ignore[arg-type]


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
