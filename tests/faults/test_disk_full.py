"""A disk that is full in the middle of a write or of a stream: a sentence, nothing half done, and it goes on later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.compare import plain_rows
from tests.engines.spark.cluster import QUICKLY
from tests.engines.spark.stream.test_stream import RISING, batch, events, found, nearly_sorted, write_files
from tests.faults.disks import nearly_full, small_disk
from tests.streams.test_bucket import in_any_order

pytestmark = [pytest.mark.spark, pytest.mark.slow]
MANY = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any"


def run(*given: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trellis.cli.main", *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200)


def told_no_room(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stderr
    assert "no space left on device" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert "should not happen" not in done.stderr


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_full_disk_in_the_middle_of_a_write(tmp_path: Path, engine: str) -> None:
    """The old output stays whole, and what was written of the new one goes away."""
    few, many = (pa.table({"ts": range(n), "id": range(n), "x": range(n)}) for n in (4, 17))
    pq.write_table(few, tmp_path / "few.parquet")
    pq.write_table(many, tmp_path / "many.parquet")
    with small_disk(tmp_path / "disk", 8) as disk:
        out = disk / "out"
        asked = ("--event-id", "id", "--out", out, "--engine", engine, "--overwrite", *QUICKLY * (engine == "spark"))
        assert run("detect", MANY, tmp_path / "few.parquet", *asked).returncode == 0
        before = pq.read_table(out)
        with nearly_full(disk, 200_000):
            told_no_room(run("detect", MANY, tmp_path / "many.parquet", *asked))
        assert pq.read_table(out).equals(before)
        assert sorted(path.name for path in disk.iterdir()) == ["out"]
        done = run("detect", MANY, tmp_path / "many.parquet", *asked)
        assert done.returncode == 0, done.stderr
        wanted = trellis.query(MANY).detect(many, event_id="id").to_arrow()
        assert rows(pq.read_table(out)) == rows(wanted)


def rows(table: pa.Table) -> list[str]:
    return in_any_order(plain_rows(table.to_pylist()))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("full", ["output", "checkpoint"])
def test_a_full_disk_in_the_middle_of_a_stream(tmp_path: Path, full: str) -> None:
    table = events(300)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 8)
    with small_disk(tmp_path / "disk", 6) as disk:
        places = {"output": tmp_path / "out", "checkpoint": tmp_path / "cp"} | {full: disk / full}
        given = ("--out", places["output"], "--checkpoint", places["checkpoint"], "--watermark", "3 s")
        more = ("--event-id", "id", "--files-a-batch", "1", "--available-now", "--flush")
        conf = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g", *QUICKLY)
        command = ("stream", RISING, tmp_path / "in", *given, *more, *conf)
        with nearly_full(disk, 60_000):
            told_no_room(run(*command))
        with nearly_full(disk, 160_000):  # a second time, now in the middle of something else
            done = run(*command)
            if done.returncode:
                told_no_room(done)
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert found(places["output"]) == batch(RISING, table)
