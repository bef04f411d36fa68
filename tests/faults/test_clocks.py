"""Clocks a year ahead and behind, of the whole machine as a stream sees it: its Python, its JVM and its workers.

`faketime` (of the Debian package of this name) gives processes another time of day. The times of files stay as they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.cases import COMMAND, Done
from tests.engines.spark.cluster import QUICKLY
from tests.engines.spark.stream.test_stream import RISING, SECOND, batch, events, found, nearly_sorted

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
BEGUN = 1_700_000_000
YEAR = 365


def recent_events(number: int) -> pa.Table:
    """Events up to now, in the order in which they come."""
    table = events(number)
    moved = table["ts"].cast(pa.int64()).to_numpy() + (int(time.time()) - BEGUN - number) * SECOND
    return nearly_sorted(table.set_column(0, "ts", pa.array(moved, pa.timestamp("us", "UTC"))), 3)


def stream_at(days: int, folder: Path, *more: str) -> Done:
    """Run a stream over what is there, on a machine whose clock is so many days ahead."""
    fake = shutil.which("faketime")
    if fake is None:
        pytest.skip("faketime is not installed")
    clock = [fake, "-m", "-f", f"{days:+}d"] if days else []
    given = ("--out", "out", "--checkpoint", "cp", "--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1")
    conf = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", *QUICKLY)
    command = [*clock, *COMMAND, "stream", RISING, "in", *given, *conf, "--available-now", *more]
    kept = os.environ | {"NO_FAKE_STAT": "1"}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def give(table: pa.Table, folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(table, folder / "in" / f"{number}.parquet")


def test_a_clock_a_year_behind_is_told_and_put_right(tmp_path: Path) -> None:
    """Seen from there all events are of the future; nothing is decided, nothing is lost."""
    table = recent_events(90)
    give(table.slice(0, 30), tmp_path, 0)
    give(table.slice(30, 30), tmp_path, 1)
    done = stream_at(-YEAR, tmp_path)
    assert "are more than 1 day ahead of the clock of this machine" in done.err
    assert not found_rows(tmp_path)
    give(table.slice(60), tmp_path, 2)
    done = stream_at(0, tmp_path, "--flush")
    assert "ahead of the clock" not in done.err
    assert found(tmp_path / "out") == batch(RISING, table)


def test_a_clock_a_year_ahead_that_is_put_right_changes_nothing(tmp_path: Path) -> None:
    table = recent_events(90)
    give(table.slice(0, 30), tmp_path, 0)
    give(table.slice(30, 30), tmp_path, 1)
    assert stream_at(YEAR, tmp_path).err == ""
    early = found_rows(tmp_path)
    assert early
    assert set(early) <= set(batch(RISING, table))
    give(table.slice(60), tmp_path, 2)
    assert stream_at(0, tmp_path, "--flush").err == ""  # the clock has gone back by a year meanwhile
    assert found(tmp_path / "out") == batch(RISING, table)


def found_rows(folder: Path) -> list[str]:
    """Return the rows that are there, if any was ever written."""
    return found(folder / "out") if any((folder / "out").glob("*.parquet")) else []
