"""One window that is larger than a worker: counted in tiles by Spark, beside the count in one process."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Limit, Row, Table, best_of
from benchmarks.on_spark import once, peak_memory, session
from trellis.engines.spark.batch.tiles import TileSize

MEMORY = 256_000_000  # bytes that a worker has for a window
CHAINS = "PATTERN Transfer+ t[] WHERE t[i].source = t[i-1].target AND t[i].amount > t[i-1].amount"


def run(quick: bool, large: bool = False) -> list[Table]:
    n = 20_000 if quick else 10_000_000 if large else 2_000_000
    memory = MEMORY if large else MEMORY // 5
    spark, query, counts = session(2), trellis.query(CHAINS), {}
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        path, small = Path(folder) / "transfers.parquet", Path(folder) / "small.parquet"
        pq.write_table(transfers(n), path)
        pq.write_table(transfers(20_000), small)

        def in_tiles(file: Path, tile: int | None) -> None:
            trends: Any = query.detect(spark.read.parquet(str(file)), time="ts", event_id="id", engine="spark")
            trends.tasks = replace(trends.tasks, memory=memory, tile=tile and TileSize(tile))
            counts["in tiles"] = trends.count()

        def alone() -> None:
            counts["here"] = query.detect(str(path), time="ts", event_id="id", engine="local").count()

        here = best_of("one process", alone, quick=True)
        in_tiles(small, 5_000)  # compiles
        before = peak_memory("pyspark.daemon")
        ours = once("in tiles", lambda: in_tiles(path, 5_000 if quick else None))
    if counts["here"] != counts["in tiles"]:
        raise AssertionError(f"the counts differ: {counts}")
    after = peak_memory("pyspark.daemon")
    notes = [
        f"{counts['here']:,} trends both times. A worker has {memory / 1e6:,.0f} MB for a window by its settings.",
        f"A Python worker had held {before / 1e6:,.0f} MB before, and afterwards {after / 1e6:,.0f}.",
    ]
    row = Row(f"{n:,} transfers, no windows and no partition", ours, peers=[Limit("the same in one process", here)])
    return [Table("A window larger than a worker", [row], notes)]


def transfers(n: int) -> pa.Table:
    """Return transfers between accounts, some five from each, at times that mostly differ."""
    draw = np.random.default_rng(1)
    accounts = max(1, n // 5)
    return pa.table(
        {
            "ts": draw.integers(0, 1000 * n, n),
            "id": np.arange(n),
            "source": draw.integers(0, accounts, n),
            "target": draw.integers(0, accounts, n),
            "amount": draw.integers(1, 1_000_000, n),
        }
    )
