"""A stream is one process, with one checkpoint and one output; and no file of events is passed over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time as clock
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.cli.cases import COMMAND, assert_mistake, run
from tests.engines.spark.stream.test_stream import (
    RISING,
    SPAN,
    batch,
    events,
    found,
    nearly_sorted,
    stream_of,
    write_files,
)
from tests.engines.spark.stream.test_stream import run as finish
from trellis.engines.spark.stream.files import FileWriter
from trellis.errors import DataError, UsageError
from trellis.streams.lock import StreamLock, check_free, is_unused
from trellis.streams.stream_output import RESULTS, WINDOWS, StreamOutput, committed_files, read_committed

GIVEN = ["--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1", "--conf", "spark.sql.shuffle.partitions=2"]
DAYS = 86_400


# --- One process ------------------------------------------------------------------------------------------------------


def test_a_lock_keeps_others_out_until_it_is_released_or_its_process_is_killed(tmp_path: Path) -> None:
    ours = StreamLock()
    ours.take(tmp_path / "cp", "the checkpoint cp")
    assert is_unused(tmp_path / "cp")
    with pytest.raises(UsageError, match=f"the checkpoint cp is in use: process {os.getpid()} on .* runs this stream"):
        StreamLock().take(tmp_path / "cp", "the checkpoint cp")
    ours.release()
    check_free(tmp_path / "cp", "the checkpoint cp")
    assert not list((tmp_path / "cp").iterdir())
    script = (
        "import sys, time; from pathlib import Path; from trellis.streams.lock import StreamLock; lock = StreamLock();"
        f"lock.take(Path({str(tmp_path / 'cp')!r}), 'cp'); print('taken', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "taken\n"
    with pytest.raises(UsageError, match=f"process {other.pid} on"):
        check_free(tmp_path / "cp", "the checkpoint cp")
    other.kill()
    other.communicate()
    assert (tmp_path / "cp" / "lock").exists()
    ours.take(tmp_path / "cp", "the checkpoint cp")
    ours.release()
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        ours.take(tmp_path / "file", "the checkpoint file")


def test_a_second_start_and_a_removed_output_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = events(120)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 3)
    queries = {"rising": RISING, "span": SPAN}
    first = stream_of(spark, tmp_path, queries)
    first.start()
    try:
        with pytest.raises(UsageError, match=r"the checkpoint .*cp is in use"):
            stream_of(spark, tmp_path, queries).start()
        with pytest.raises(UsageError, match=r"the output .*out/rising is in use|is the output of another stream"):
            stream_of(spark, tmp_path, queries, checkpoint="cp2").start()
        first.wait()
    finally:
        first.stop()
    assert not list(tmp_path.rglob("lock"))
    shutil.move(tmp_path / "out", tmp_path / "aside")
    with pytest.raises(UsageError, match=r"out/rising of the checkpoint .*cp is not there any more"):
        stream_of(spark, tmp_path, queries).start()
    assert not (tmp_path / "out").exists()
    shutil.copytree(tmp_path / "aside", tmp_path / "out")
    (tmp_path / "out" / "span" / "_log" / "stream-id").write_text("another")
    with pytest.raises(UsageError, match=r"out/span is not the output that the checkpoint .*cp goes with"):
        stream_of(spark, tmp_path, queries).start()
    shutil.rmtree(tmp_path / "out")
    shutil.copytree(tmp_path / "aside", tmp_path / "out")
    gone = committed_files(tmp_path / "out" / "rising")[0]
    gone.unlink()
    with pytest.raises(DataError, match=f"names .*{gone.name}, which is not there"):
        stream_of(spark, tmp_path, queries).start()
    shutil.rmtree(tmp_path / "out")
    shutil.move(tmp_path / "aside", tmp_path / "out")
    finish(stream_of(spark, tmp_path, queries))
    for name, text in queries.items():
        assert found(tmp_path / "out" / name) == batch(text, table)


def test_a_start_that_was_killed_before_its_first_batch_is_no_obstacle(spark: SparkSession, tmp_path: Path) -> None:
    table = events(40)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 1)
    # the output is ready, and the checkpoint knows nothing yet
    StreamOutput(tmp_path / "out").prepare([RESULTS, WINDOWS])
    (tmp_path / "cp").mkdir()
    (tmp_path / "cp" / "lock").touch()
    finish(stream_of(spark, tmp_path, {"q": RISING}))
    assert found(tmp_path / "out") == batch(RISING, table)


def test_part_files_are_on_the_disk_before_the_log_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, happened = StreamOutput(tmp_path), list[str]()
    output.prepare([RESULTS, WINDOWS])
    sync, swap = os.fsync, Path.replace

    def synced(handle: int) -> None:
        sync(handle)
        happened.append("synced " + os.readlink(f"/proc/self/fd/{handle}"))

    def swapped(self: Path, target: Path) -> Path:
        happened.append(f"named {target}")
        return swap(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", swapped)
    filing = FileWriter({"q": str(tmp_path)}, "parquet")
    rows = pa.table({"x": [1, 2]}).to_batches()
    names = {kind: [filing.write(kind, "q", "000000003", rows)[0]] for kind in (RESULTS, WINDOWS)}
    output.commit("000000003", names, {RESULTS: 2, WINDOWS: 2})
    entry = tmp_path / "_log" / "000000003.json"
    before = happened[: happened.index(f"named {entry}")]
    parts = [tmp_path / names[RESULTS][0], tmp_path / "_windows" / names[WINDOWS][0]]
    for path in (*parts, tmp_path, tmp_path / "_windows", entry.with_name(f"{entry.name}.tmp")):
        assert f"synced {path}" in before
    assert happened[-1] == f"synced {entry.parent}"


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["_windows"], "cannot be called `_windows`"),
        (["_log", "rising"], "cannot be called `_log`"),
        (["_late"], "cannot be called `_late`"),
        (["_bad"], "cannot be called `_bad`"),
        (["_Repeated"], "cannot be called `_Repeated`"),
        (["part-000000001-0.csv"], "cannot be called `part-000000001-0.csv`"),
        (["rising", "Rising"], "the queries `rising` and `Rising` differ in case only"),
        (["a/rising", "b/rising"], "two queries are called `rising`"),
    ],
)
def test_names_that_are_those_of_other_outputs(tmp_path: Path, names: list[str], wrong: str) -> None:
    (tmp_path / "in").mkdir()
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.tq").write_text(RISING)
    files = [tmp_path / f"{name}.tq" for name in names]
    places = ["--out", tmp_path / "out", "--checkpoint", tmp_path / "cp", "--watermark", "1 s"]
    assert_mistake(run("stream", *files, tmp_path / "in", *places), wrong)


# --- The command ------------------------------------------------------------------------------------------------------


def command(folder: Path, *more: str, checkpoint: str = "cp") -> list[str]:
    return [*COMMAND, "stream", RISING, "in", "--out", "out", "--checkpoint", checkpoint, *GIVEN, *more]


def done(folder: Path, *more: str, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *more, **given), cwd=folder, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_second_start_of_the_command_is_refused_and_a_kill_leaves_no_lock(tmp_path: Path) -> None:
    table = events(200)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 4)
    first = subprocess.Popen(command(tmp_path), cwd=tmp_path, start_new_session=True)
    try:
        while not list((tmp_path / "out" / "_log").glob("*.json")):
            assert first.poll() is None
            clock.sleep(0.1)
        before = sorted(path.name for path in (tmp_path / "out").rglob("*.parquet"))
        for checkpoint, wrong in (("cp", "the checkpoint cp is in use"), ("cp2", "the output out is in use")):
            second = done(tmp_path, checkpoint=checkpoint)
            assert second.returncode == 2, second
            assert wrong in second.stderr
            assert f"process {first.pid} on" in second.stderr
            assert "Traceback" not in second.stderr
        assert set(before) <= {path.name for path in (tmp_path / "out").rglob("*.parquet")}
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    third = done(tmp_path, "--available-now", "--flush")
    assert third.returncode == 0, third.stderr
    assert found(tmp_path / "out") == batch(RISING, table)
    shutil.rmtree(tmp_path / "out")
    fourth = done(tmp_path, "--available-now", "--flush")
    assert fourth.returncode == 2, fourth
    assert "the output out of the checkpoint cp is not there any more" in fourth.stderr
    assert not (tmp_path / "out").exists()


def old_file(table: pa.Table, path: Path) -> Path:
    """A file whose modification time is eight days ago."""
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)
    moment = clock.time() - 8 * DAYS
    os.utime(path, (moment, moment))
    return path


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_files_that_are_eight_days_old_are_read_by_the_command(tmp_path: Path) -> None:
    table = events(90).sort_by("ts")
    (tmp_path / "in").mkdir()
    pq.write_table(table.slice(0, 30), tmp_path / "in" / "new.parquet")
    assert done(tmp_path, "--available-now").returncode == 0
    _two_old_files(tmp_path, table)
    told = done(tmp_path, "--available-now", "--flush", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["events"] == 60
    assert found(tmp_path / "out") == batch(RISING, table)


def _two_old_files(folder: Path, table: pa.Table) -> None:
    """Let one file be moved there and another be copied with its times."""
    subprocess.run(["mv", old_file(table.slice(30, 30), folder / "else" / "1.parquet"), folder / "in"], check=True)
    subprocess.run(["cp", "-p", old_file(table.slice(60), folder / "else" / "2.parquet"), folder / "in"], check=True)


def test_files_that_are_eight_days_old_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = events(90).sort_by("ts")
    (tmp_path / "in").mkdir()
    pq.write_table(table.slice(0, 30), tmp_path / "in" / "new.parquet")
    finish(stream_of(spark, tmp_path, {"q": RISING}))
    _two_old_files(tmp_path, table)
    (tmp_path / "in" / "deeper").mkdir()
    (tmp_path / "in" / "2.parquet").rename(tmp_path / "in" / "deeper" / "2.parquet")
    shutil.copytree(tmp_path / "in" / "deeper", tmp_path / "in" / "_hidden")
    second = finish(stream_of(spark, tmp_path, {"q": RISING}))
    assert (second.totals.events, second.totals.late) == (60, 0)
    assert found(tmp_path / "out") == batch(RISING, table)


# --- State ------------------------------------------------------------------------------------------------------------


def test_ranks_of_many_partitions_go_on_through_batches_and_restarts(spark: SparkSession, tmp_path: Path) -> None:
    number = 600
    table = pa.table(
        {
            "ts": pa.array([17_000_000_000_000 * 100 + i * 100_000 for i in range(number)], pa.timestamp("us", "UTC")),
            "id": [f"e{i:04}" for i in range(number)],
            "g": [f"g{i * 7 % 97}" for i in range(number)],
            "x": [i % 5 for i in range(number)],
        }
    )  # fmt: skip
    text = "PATTERN T+ t[] WHERE [g] WITHIN 2 s"
    write_files(table.slice(0, 400), tmp_path / "in", 4)
    finish(stream_of(spark, tmp_path, {"q": text}), flush=False)
    path = tmp_path / "in" / "9.parquet"
    pq.write_table(table.slice(400), path)
    finish(stream_of(spark, tmp_path, {"q": text}))
    assert found(tmp_path / "out") == batch(text, table)
    assert max(read_committed(tmp_path / "out")["rank"].to_pylist()) >= 5
