"""Spark for benchmarks: sessions, events in Parquet files, and seconds of all processes that work for this one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
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


def once(what: str, work: Callable[[], object]) -> Timing:
    """Return the time of one run, for work that is long; it must have been compiled before."""
    step(what)
    wall, cpu = time.perf_counter(), cpu_seconds()
    work()
    return Timing(time.perf_counter() - wall, cpu_seconds() - cpu, 1)


def cpu_seconds() -> float:
    """Return the seconds of all cores that this process and all below it took, ended ones included."""
    ticks = [sum(map(int, fields[11:15])) for fields in _processes().values()]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def peak_memory(name: str) -> int:
    """Return the most bytes that any process below this one, whose command holds a name, has held in memory."""
    most = 0
    for pid in _processes():
        with suppress(OSError):  # it has just ended
            if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != os.getpid():
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                most = max([most, *(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
    return most


def _processes() -> dict[int, list[str]]:
    """Return this process and all below it, with what `/proc` tells of each behind its name."""
    about: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):  # it has just ended
                about[int(entry)] = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
    below = {}
    for pid, fields in about.items():
        above = pid
        while above not in (0, os.getpid()):
            above = int(about[above][1]) if above in about else 0
        if above:
            below[pid] = fields
    return below


def to_nothing(frame: Any) -> None:
    """Have Spark make all rows of a frame, and throw them away."""
    frame.write.format("noop").mode("overwrite").save()
