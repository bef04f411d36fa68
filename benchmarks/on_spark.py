"""Spark for benchmarks: sessions, events in Parquet files, and seconds of all processes that work for this one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Timing, step
from trellis.engines.spark.session.session import get_session

DAY = 86_400_000_000
FILES = 4
MEMORY = "4g"


def session(cores: int) -> Any:
    """Start Spark in this process on some cores."""
    return get_session(f"local[{cores}]", {"spark.driver.memory": MEMORY, "spark.driver.maxResultSize": "4g"})


def trades(folder: Path, n: int, symbols: int, days: int = 4, seed: int = 1) -> Path:
    """Write trades of symbols at random prices over some days, in files that follow one another in time."""
    rng = np.random.default_rng(seed)
    path = folder / f"trades-{n}-{symbols}"
    path.mkdir()
    begins = np.linspace(0, n, FILES + 1).astype(int)
    for i, (begin, end) in enumerate(pairwise(begins.tolist())):
        size = end - begin
        times = (np.sort(rng.random(size)) + i) * days * DAY / FILES
        columns = {
            "ts": pa.array(times.astype(np.int64), pa.timestamp("us", "UTC")),
            "id": np.arange(begin, end),
            "symbol": rng.integers(0, symbols, size),
            "price": rng.random(size) * 100,
        }
        pq.write_table(pa.table(columns), path / f"{i}.parquet")
    return path


def timed(what: str, work: Callable[[], object], quick: bool, runs: int = 3) -> Timing:
    """Return the quickest of several runs after a first one, with the seconds of Spark's processes."""
    step(f"{what}: first run")
    work()
    found = []
    for i in range(1 if quick else runs):
        step(f"{what}: run {i + 1}")
        wall, cpu = time.perf_counter(), cpu_seconds()
        work()
        found.append((time.perf_counter() - wall, cpu_seconds() - cpu))
    return Timing(*min(found), len(found))


def cpu_seconds() -> float:
    """Return the seconds of all cores that this process and all below it took, ended ones included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry)] = int(fields[1])
            ticks[int(entry)] = sum(map(int, fields[11:15]))
    total = 0
    for pid, used in ticks.items():
        above = pid
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        total += used if above else 0
    return total / os.sysconf("SC_CLK_TCK")


def to_nothing(frame: Any) -> None:
    """Have Spark make all rows of a frame, and throw them away."""
    frame.write.format("noop").mode("overwrite").save()
