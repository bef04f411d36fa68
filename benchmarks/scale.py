"""Counting, aggregating and writing on Spark to 10^8 events: local mode, a cluster of two workers, and the memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

import trellis
from benchmarks import Limit, Peer, Row, Table, Timing, step
from benchmarks.groups import sorted_windows
from benchmarks.measure import ROOT
from benchmarks.on_spark import once, peak_memory, to_nothing, trades
from trellis.engines.spark.session.session import find_java, get_session

SYMBOLS = 2_000
HOUR = "WITHIN 60 minutes SLIDE 60 minutes"
RISING = f"PATTERN Trade+ s[] WHERE [symbol] AND s[i].price > 1.5 * s[i-1].price {HOUR}"
RUNS = f"PATTERN Trade+ s[] WHERE [symbol] AND s[i].price > s[i-1].price SELECT contiguous {HOUR}"
WORK = ("count", "aggregate", "write")
MODES = ("local", "cluster")
MEMORY = "3g"


def run(quick: bool, large: bool = False) -> list[Table]:
    n = 20_000 if quick else 100_000_000 if large else 10_000_000
    rows, notes = [], ["Limits: Spark's own scan, shuffle and sort of the same rows; and that with all rows to Python."]
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        step(f"{n:,} trades")
        path = trades(Path(folder), n, SYMBOLS)
        limits: list[Peer] = []  # of local mode: a cluster on the same two cores has the same
        for mode in MODES:
            for found in _measured(path, mode):
                if found["name"] in LIMITS:
                    limits.append(Limit(LIMITS[found["name"]], Timing(*found["timing"])))
                elif found["name"] in WORK:
                    rows.append(Row(f"{found['name']}, {NAMES[mode]}", Timing(*found["timing"]), peers=limits))
                else:
                    notes.append(
                        f"{NAMES[mode]}: a JVM held {found['java'] / 1e6:,.0f} MB at most, a Python worker "
                        f"{found['python'] / 1e6:,.0f} MB; {found['rows']:,} trends were written."
                    )
    return [Table(f"{n:,} trades of {SYMBOLS:,} symbols in windows of an hour, from Parquet", rows, notes)]


NAMES = {"local": "local mode, two cores", "cluster": "standalone cluster, two workers of one core"}
LIMITS = {"spark": "Spark alone", "arrow": "and rows to Python"}


def _measured(path: Path, mode: str) -> Iterator[dict[str, Any]]:
    """Measure in a process of its own, since a session cannot change its master; yield what it finds when it does."""
    step(NAMES[mode])
    command = [sys.executable, "-m", "benchmarks.scale", str(path), mode]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                step(f"{found['name']}, {NAMES[mode]}")
                yield found
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def main(path: str, mode: str) -> None:
    """Measure one mode; print each thing that is found as a line of JSON."""
    if mode == "local":
        measure(get_session("local[2]", {"spark.driver.memory": MEMORY}), path, (*LIMITS, *WORK))
        return
    with cluster() as master:
        settings = {
            "spark.cores.max": 2, "spark.executor.memory": MEMORY, "spark.sql.shuffle.partitions": 4,
            "spark.scheduler.minRegisteredResourcesRatio": 1.0, "spark.driver.memory": "1g",
        }  # fmt: skip
        measure(get_session(master, settings), path, WORK)


def measure(session: Any, path: str, names: Sequence[str]) -> None:
    """Print the times of some pieces of work, and the most memory of a JVM and a Python worker."""
    frame = session.read.parquet(path)
    rising, runs = trellis.query(RISING), trellis.query(RUNS)

    def bare(events: Any, folder: str) -> None:
        to_nothing(sorted_windows(events))

    def arrow(events: Any, folder: str) -> None:
        rows = sorted_windows(events)
        to_nothing(rows.mapInArrow(lambda batches: (batch.slice(0, 0) for batch in batches), rows.schema))

    def count(events: Any, folder: str) -> None:
        rising.detect(events, event_id="id").count()

    def aggregate(events: Any, folder: str) -> None:
        rising.detect(events, event_id="id").aggregate("avg(s.price)").to_arrow()

    def write(events: Any, folder: str) -> None:
        runs.detect(events, event_id="id").write(f"{folder}/out")

    known = {"spark": bare, "arrow": arrow, "count": count, "aggregate": aggregate, "write": write}
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as few, tempfile.TemporaryDirectory() as folder:
        for name in names:
            one = known[name]
            one(frame.limit(1000), few)  # compiles
            done = once(name, lambda one=one: one(frame, folder))
            print(json.dumps({"name": name, "timing": [done.wall, done.cpu, done.runs]}), flush=True)
        found = {"java": peak_memory("java"), "python": peak_memory("pyspark.daemon")}
        written = session.read.parquet(f"{folder}/out").count()
    print(json.dumps(found | {"name": "memory", "rows": written}), flush=True)


@contextmanager
def cluster() -> Iterator[str]:
    """Start a master and two workers of one core on this machine, and give the address of the master."""
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"JAVA_HOME": str(find_java()), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:

        def start(name: str, *arguments: str) -> Path:
            log = Path(folder) / name
            command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{arguments[0]}", "--host", "127.0.0.1"]
            with log.open("wb") as out:
                given = {"env": environment, "cwd": folder, "stdout": out, "stderr": out}
                processes.append(subprocess.Popen([*command, "--webui-port", "0", *arguments[1:]], **given))  # type: ignore[call-overload]
            return log

        try:
            log = start("master", "master.Master", "--port", "0")
            while not (found := re.search(r"Starting Spark master at (spark://\S+)", log.read_text())):
                time.sleep(0.1)
            for name in ("one", "two"):
                of_its_own = ("--cores", "1", "--memory", "4g", "--work-dir", f"{folder}/{name}-work")
                start(name, "worker.Worker", *of_its_own, found[1])
            yield found[1]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
