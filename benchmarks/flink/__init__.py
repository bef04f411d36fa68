"""FlinkCEP and Flink SQL as peers: its jars from the package registry, small programs run on a file of events."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from benchmarks.measure import ROOT, Timing, step

PACKAGE = "apache-flink-libraries==2.3.0"
HOME = ROOT / ".venv" / "flink"
SOURCES = [Path(__file__).parent / name for name in ("FlinkPeer.java", "FlinkSql.java", "FlinkLatency.java")]
# What Flink needs to see of the inside of Java since version 16.
OPENED = [f"java.base/java.{name}" for name in ("lang", "util", "time", "util.concurrent", "nio", "net", "math")]
TASKS = 2


@dataclass(frozen=True)
class FlinkAnswer:
    """How many matches FlinkCEP found, and how long its job took, or None if it was stopped."""

    matches: int | None
    timing: Timing


def found_by_flink(
    pattern: str, events: pa.Table, span: int, patience: float, *, tasks: int = TASKS, reuse: bool = False
) -> FlinkAnswer:
    """Return what FlinkCEP finds in events (time, name, price) in time order.

    Parameters
    ----------
    pattern
        `star` or `rising`, as `FlinkPeer.java` has them.
    events
        Written to a file before the clock starts.
    span
        A match lasts less than so many units of time.
    patience
        Seconds after which it is stopped; then this is how long it took, at least.
    tasks, reuse
        Its parallelism, and whether it hands objects on instead of copying them.
    """
    return _found("FlinkPeer", events, patience, [pattern], [str(span), str(tasks), str(reuse).lower()])


def found_by_flink_sql(events: pa.Table, patience: float) -> FlinkAnswer:
    """Return what Flink SQL's MATCH_RECOGNIZE finds of prices that fall, row by row, and rise: see `FlinkSql.java`."""
    return _found("FlinkSql", events, patience, [], [str(TASKS)])


def _found(program: str, events: pa.Table, patience: float, before: list[str], behind: list[str]) -> FlinkAnswer:
    classes = _compiled()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        csv.write_csv(events, path, csv.WriteOptions(include_header=False, quoting_style="none"))
        step(f"{program}: {' '.join(before)}, {events.num_rows:,} events")
        command = [*_java(classes), program, *before, str(path), *behind]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=patience + 60, check=False)
        except subprocess.TimeoutExpired:
            return FlinkAnswer(None, Timing(patience + 60, 0))
    words = done.stdout.split()
    if len(words) < 4 or done.returncode:
        raise RuntimeError(f"{program} did not run: {done.stderr[-2000:]}")
    seconds = int(words[-1]) / 1000
    return FlinkAnswer(int(words[-4 if program == "FlinkSql" else -3]), Timing(seconds, 0))


def flink_over_files(folder: str, emit: str) -> subprocess.Popen[str]:
    """Start FlinkCEP over a directory in which files keep arriving: see `FlinkLatency.java`."""
    return subprocess.Popen(
        [*_java(_compiled()), "FlinkLatency", folder, emit, str(TASKS)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def _java(classes: Path) -> list[str]:
    opened = [flag for name in OPENED for flag in ("--add-opens", f"{name}=ALL-UNNAMED")]
    return ["java", "-Xmx6g", *opened, "-cp", _classpath(classes)]


def _compiled() -> Path:
    """Return where the compiled program is, having fetched Flink and compiled it the first time."""
    if not (HOME / "pyflink").is_dir():
        step("FlinkCEP: fetching its jars, 330 MB, once")
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(HOME), PACKAGE])
    classes = HOME / "classes"
    if not classes.is_dir() or classes.stat().st_mtime < max(s.stat().st_mtime for s in SOURCES):
        if shutil.which("javac") is None:
            raise RuntimeError("FlinkCEP needs a Java compiler (javac): install a JDK 17, or skip this benchmark")
        step("FlinkCEP: compiling")
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir()
        _run(["javac", "-cp", _classpath(classes), "-d", str(classes), *map(str, SOURCES)])
    return classes


def _classpath(classes: Path) -> str:
    return os.pathsep.join([str(classes), *map(str, sorted((HOME / "pyflink" / "lib").glob("*.jar")))])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
