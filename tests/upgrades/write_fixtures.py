"""Writes the fixtures, by the commands that users have: `python -m tests.upgrades.write_fixtures NAME...`.

Run it only to add fixtures of a newer version; those of earlier ones must stay as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from tests.upgrades.cases import DETECTED, FIRST, QUERIES, events, pack

FEW = ("--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]")


def put(table: pa.Table, folder: Path, number: int) -> None:
    """Put a file of events where a stream reads it, with the time that orders it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_700_000_000 + number,) * 2)


def put_naive(table: pa.Table, folder: Path, kind: str, number: int) -> None:
    """Put a file of events whose times have no zone where a stream reads it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03}.{kind}"
    naive = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))
    pq.write_table(naive, path) if kind == "parquet" else pc.write_csv(naive, path)
    os.utime(path, (1_700_000_000 + number,) * 2)


def trellis(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "trellis.cli.main", *map(str, arguments)], check=True)


def write_stream(folder: Path) -> None:
    """A stream that has read two files of four, with open windows, and ranks of partitions."""
    put(events().slice(0, 40), folder / "in", 0)
    put(events().slice(40, FIRST - 40), folder / "in", 1)
    for name, text in QUERIES.items():
        (folder / f"{name}.tq").write_text(text)
    trellis(
        "stream", *(folder / f"{name}.tq" for name in QUERIES), folder / "in", "--out", folder / "results",
        "--checkpoint", folder / "state", "--watermark", "2 s", "--event-id", "id", "--files-a-batch", "1", "--late",
        "--available-now", "--flush", *FEW,
    )  # fmt: skip


def write_archive(folder: Path) -> None:
    """An archive that was built, appended to, and then followed a stream that has read one file."""
    for name, begin, end in (("first", 0, 30), ("second", 30, 50)):
        pq.write_table(events().slice(begin, end - begin), folder / f"{name}.parquet")
    place = ("--archive", folder / "archive")
    trellis("archive", "build", folder / "first.parquet", *place, "--time", "ts", "--type", "n", "--event-id", "id",
            "--key", "g", "--leaf", "5")  # fmt: skip
    trellis("archive", "append", folder / "second.parquet", *place)
    put(events().slice(50, FIRST - 50), folder / "in", 0)
    trellis("archive", "follow", folder / "in", *place, "--checkpoint", folder / "state", "--delay", "1 s",
            "--available-now", *FEW)  # fmt: skip


def write_outputs(folder: Path) -> None:
    """What `detect` wrote, here and on Spark."""
    pq.write_table(events().slice(0, FIRST), folder / "events.parquet")
    for engine, more in (("local", ()), ("spark", FEW)):
        trellis("detect", DETECTED, folder / "events.parquet", "--event-id", "id", "--out", folder / engine,
                "--engine", engine, *more)  # fmt: skip


def write_times(folder: Path) -> None:
    """Streams over times without a zone, in text and in Parquet, whose results had UTC."""
    for kind in ("csv", "parquet"):
        put_naive(events().slice(0, 40), folder / f"{kind}-in", kind, 0)
        trellis(
            "stream", QUERIES["rising"], folder / f"{kind}-in", "--out", folder / f"{kind}-results", "--checkpoint",
            folder / f"{kind}-state", "--watermark", "2 s", "--event-id", "id", "--available-now", *FEW,
        )  # fmt: skip


FIXTURES = {"stream": write_stream, "archive": write_archive, "outputs": write_outputs, "times": write_times}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        write = FIXTURES[name]
        with tempfile.TemporaryDirectory() as directory:
            write(Path(directory))
            pack(name, Path(directory))
