"""Counting, aggregating and writing on Spark to 10^8 events: local mode, a cluster of two workers, and the memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
    rows, notes = (
        [],
        ["The peer is Spark's own scan, shuffle and sort of the same rows; the other, rows to Python besides."],
    )
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        step(f"{n:,} trades")
        path = trades(Path(folder), n, SYMBOLS)
        for mode in MODES:
            found = _measured(path, mode)
            spark, arrow = (Timing(*found[name]) for name in ("spark", "arrow"))
            for what in WORK:
                ours = Timing(*found[what])
                peers = [Limit("Spark alone", spark), Peer("and rows to Python", arrow)]
                rows.append(Row(f"{what}, {NAMES[mode]}", ours, peers=peers))
            notes.append(
                f"{NAMES[mode]}: a JVM held {found['java'] / 1e6:,.0f} MB at most, a Python worker "
                f"{found['python'] / 1e6:,.0f} MB; {found['rows']:,} trends were written."
            )
    return [Table(f"{n:,} trades of {SYMBOLS:,} symbols in windows of an hour, from Parquet", rows, notes)]


NAMES = {"local": "local mode, two cores", "cluster": "standalone cluster, two workers of one core"}


def _measured(path: Path, mode: str) -> dict[str, Any]:
    """Measure in a process of its own: a session cannot change its master."""
    step(NAMES[mode])
    command = [sys.executable, "-m", "benchmarks.scale", str(path), mode]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return answer


def main(path: str, mode: str) -> None:
    """Measure one mode; print what was found as JSON."""
    if mode == "local":
        session = get_session("local[2]", {"spark.driver.memory": MEMORY})
        print(json.dumps(measure(session, path)))
        return
    with cluster() as master:
        settings = {
            "spark.cores.max": 2, "spark.executor.memory": MEMORY, "spark.sql.shuffle.partitions": 4,
            "spark.scheduler.minRegisteredResourcesRatio": 1.0, "spark.driver.memory": "1g",
        }  # fmt: skip
        print(json.dumps(measure(get_session(master, settings), path)))


def measure(session: Any, path: str) -> dict[str, Any]:
    """Return the times of each piece of work, and the most memory of a JVM and a Python worker."""
    frame = session.read.parquet(path)
    rising, runs = trellis.query(RISING), trellis.query(RUNS)
    few = frame.limit(1000)
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        out = f"{folder}/out"

        def work(events: Any, place: str) -> dict[str, Any]:
            found = {
                "count": once("count", lambda: rising.detect(events, event_id="id").count()),
                "aggregate": once(
                    "aggregate", lambda: rising.detect(events, event_id="id").aggregate("avg(s.price)").to_arrow()
                ),
                "write": once("write", lambda: runs.detect(events, event_id="id").write(place)),
            }
            return {name: [t.wall, t.cpu, t.runs] for name, t in found.items()}

        work(few, f"{folder}/few")  # compiles
        times = work(frame, out)
        written = session.read.parquet(out).count()
    bare = sorted_windows(frame)
    passed = bare.mapInArrow(lambda batches: (batch.slice(0, 0) for batch in batches), bare.schema)
    for name, rows in (("spark", bare), ("arrow", passed)):
        done = once(name, lambda rows=rows: to_nothing(rows))
        times[name] = [done.wall, done.cpu, done.runs]
    return times | {"java": peak_memory("java"), "python": peak_memory("pyspark.daemon"), "rows": written}


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
                start(
                    name,
                    "worker.Worker",
                    "--cores",
                    "1",
                    "--memory",
                    "4g",
                    "--work-dir",
                    f"{folder}/{name}-work",
                    found[1],
                )
            yield found[1]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
