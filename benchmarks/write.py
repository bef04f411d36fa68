"""Writing trends from Spark: one window listed by all tasks, each with its ranks, straight to Parquet."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Limit, Peer, Row, Table, at_least
from benchmarks.on_spark import session, timed

CHAIN = "PATTERN Transfer+ t[] WHERE t[i].src = t[i-1].dest"
RATE = 8e6  # trends per second, on two cores
LAYERS = 5


def run(quick: bool) -> list[Table]:
    notes = ["Rows have rank, length, first and last time, and the ids of events."]
    if quick:
        return [Table("One window, two cores", [_written(8, quick, peer=True)], notes)]
    few, many = _written(20, quick, peer=True), _written(40, quick, peer=False)
    return [Table("One window, two cores", [few, many], notes)]


def _written(width: int, quick: bool, peer: bool) -> Row:
    number = width**LAYERS
    spark = session(2)
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        target = Path(folder) / "out"
        frame = spark.createDataFrame(layers(width))
        trends: Any = trellis.query(CHAIN).detect(frame, event_id="id", max_trends=number)

        def ours() -> None:
            shutil.rmtree(target, ignore_errors=True)
            trends.write(str(target))

        def by_jvm() -> None:
            shutil.rmtree(target, ignore_errors=True)
            trends.to_spark().write.parquet(str(target))

        mine = timed("tasks write", ours, quick, 3)
        size = _size(target, number)
        copied = timed("a copy of the files", lambda: _copy(target, Path(folder) / "copy"), quick, 2)
        through = timed("through the JVM", by_jvm, quick, 1) if peer else None
    work = f"{number:,} trends of {LAYERS} events to Parquet, {size / 1e6:,.0f} MB"
    limit = Limit("a copy of the files", copied)
    if through is not None:
        return Row(work, mine, peers=[Peer("to_spark().write.parquet: one task lists, the JVM writes", through), limit])
    return Row(
        work, mine, peers=[limit], targets=[at_least(RATE / 1e6, "M trends per second", number / mine.wall / 1e6)]
    )


def layers(width: int) -> pa.Table:
    """Return transfers of which each can follow any of the layer before."""
    n = width * LAYERS
    layer = np.arange(n) // width
    return pa.table({"ts": np.arange(n), "id": np.arange(n) + 10**9, "src": layer, "dest": layer + 1})


def _size(path: Path, number: int) -> int:
    files = list(path.glob("*.parquet"))  # beside the note by which Trellis knows what it wrote
    found = sum(pq.read_metadata(file).num_rows for file in files)
    assert found == number, f"{found:,} rows were written"
    return sum(file.stat().st_size for file in files)


def _copy(source: Path, target: Path) -> Any:
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)
