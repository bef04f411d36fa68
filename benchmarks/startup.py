"""The second `trellis count` of a small file: a whole process, with Numba's cache warm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import Limit, Row, Table, Timing, at_most, step
from trellis.io.generate import generate_table
from trellis.io.write import write_table

QUERY = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > 1.02 * s[i-1].price"
RUNS = 5


def run(quick: bool) -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        file = Path(folder) / "stock.parquet"
        write_table(generate_table("stock", 1_000, 1), file)
        count = [sys.executable, "-m", "trellis.cli.main", "count", QUERY, str(file), "--engine", "local", "--quiet"]
        ours = _best("trellis count", count, quick)
    bare = _best("bare imports", [sys.executable, "-c", "import numpy, pyarrow.compute, numba, rich, typer"], quick)
    row = Row(
        "trellis count, 1,000 events, --engine local", ours,
        peers=[Limit("Python with NumPy, Arrow, Numba, rich and typer imported", bare)],
        targets=[at_most(1.5, "s", ours.wall)],
    )  # fmt: skip
    return [Table("From the start of the process to its end", [row])]


def _best(what: str, command: list[str], quick: bool) -> Timing:
    step(f"{what}: compiling")
    _timed(command)
    step(what)
    found = [_timed(command) for _ in range(1 if quick else RUNS)]
    return Timing(*min(found), len(found))


def _timed(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds on the clock and of all cores."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime
