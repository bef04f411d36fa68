"""An archive on a disk that is full: what was there stays whole, and the same command goes on when there is room."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.disks import nearly_full, small_disk
from trellis.archive import Archive
from trellis.archive.store import making
from trellis.errors import DataError, UsageError

FIRST, ALL = 20_000, 60_000


def events(begin: int, end: int) -> pa.Table:
    rng = np.random.default_rng(begin)
    names = rng.choice(list("abcdefgh"), end - begin)
    return pa.table({"ts": np.arange(begin, end), "name": names, "v": rng.random(end - begin)})


def command(*given: str | Path) -> list[str]:
    return [sys.executable, "-m", "trellis.cli.main", "archive", *map(str, given), "--json"]


def run(*given: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*given), capture_output=True, text=True, timeout=120)


def number_of_events(archive: Path) -> int:
    """Return how many events an archive says it has, and that it can be asked."""
    said = run("info", "--archive", archive)
    assert said.returncode == 0, said.stderr
    assert Archive.open(archive).exists("PATTERN SEQ(a x, b y)").value != "no"
    return int(json.loads(said.stdout)["events"])


@pytest.mark.slow
def test_a_full_disk_in_the_middle_of_a_build_and_an_append(tmp_path: Path) -> None:
    for name, begin, end in (("first", 0, FIRST), ("second", FIRST, ALL)):
        pq.write_table(events(begin, end), tmp_path / f"{name}.parquet")
    with small_disk(tmp_path / "disk", 4) as disk:
        build = ("build", tmp_path / "first.parquet", "--archive", disk / "a", "--time", "ts", "--type", "name")
        append = ("append", tmp_path / "second.parquet", "--archive", disk / "a")
        for left in (0, 100_000):
            with nearly_full(disk, left):
                failed = run(*build)
            assert failed.returncode == 2
            assert "there is no room" in failed.stderr
            assert not (disk / "a").exists()
        assert run(*build).returncode == 0
        for left in (0, 100_000, 300_000):
            with nearly_full(disk, left):
                failed = run(*append)
            assert failed.returncode == 2
            assert "there is no room" in failed.stderr
            assert number_of_events(disk / "a") == FIRST
        assert run(*append).returncode == 0
        assert number_of_events(disk / "a") == ALL


@pytest.mark.slow
def test_a_build_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    pq.write_table(events(0, 300_000), tmp_path / "events.parquet")
    build = ("build", tmp_path / "events.parquet", "--archive", tmp_path / "a", "--time", "ts", "--type", "name")
    process = subprocess.Popen(command(*build), stdout=subprocess.DEVNULL)
    while not (tmp_path / "a" / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(*build).returncode == 0
    assert number_of_events(tmp_path / "a") == 300_000


def test_a_build_takes_nothing_away_that_is_not_its_own(tmp_path: Path) -> None:
    table, columns = events(0, 100), {"time": "ts", "type": "name"}
    for name in ("events-2020.parquet", "staged-mine", "notes.txt"):
        (tmp_path / name).mkdir()
        kept = tmp_path / name / name
        kept.write_text("mine")
        with pytest.raises(UsageError, match="exists and is not empty"):
            Archive.build(table, tmp_path / name, **columns)
        assert kept.read_text() == "mine"
    made, other = tmp_path / "made", tmp_path / "other"
    with pytest.raises(ZeroDivisionError):
        fail_while_making(made)
    assert [path.name for path in made.iterdir()] == ["mine"]
    with making(other), pytest.raises(DataError, match="another process writes"):
        Archive.build(table, other, **columns)
    Archive.build(table, tmp_path / "a", **columns)
    with pytest.raises(UsageError, match="exists and is not empty"):
        Archive.build(table, tmp_path / "a", **columns)


def fail_while_making(directory: Path) -> None:
    with making(directory):
        (directory / "mine").touch()
        (directory / "events-000001.parquet").touch()
        raise ZeroDivisionError
