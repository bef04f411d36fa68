"""An archive removes files of its own and nothing else, whatever lies beside them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from trellis.archive import Archive


def events(first: int, number: int) -> pa.Table:
    """Events of two types, one per second."""
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    times = [start + dt.timedelta(seconds=first + i) for i in range(number)]
    return pa.table({"ts": times, "name": ["AB"[i % 2] for i in range(number)]})


def test_files_that_are_not_of_the_archive_stay(tmp_path: Path) -> None:
    directory = tmp_path / "archive"
    archive = Archive.build(events(0, 300), directory, time="ts", type="name", leaf=50)
    mine = ["events-mine.parquet", "leaves-of-grass.npy", "held-back.txt", "keys-000001.txt", "tree-house", "staged-me"]
    for name in mine[:4]:
        (directory / name).write_text("mine")
    for name in mine[4:]:
        (directory / name).mkdir()
        (directory / name / "file").write_text("mine")
    (directory / "events-000999.parquet").write_text("left behind by a killed append")
    archive.append(events(300, 300))
    archive.drop_before(dt.datetime(2024, 1, 1, 0, 2, tzinfo=dt.UTC))
    assert {path.name for path in directory.iterdir()} >= set(mine)
    assert (directory / "tree-house" / "file").read_text() == "mine"
    assert not (directory / "events-000999.parquet").exists()
    assert Archive.open(directory).exists("PATTERN SEQ(A a, B b)") != "no"
