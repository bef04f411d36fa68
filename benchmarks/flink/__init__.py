"""FlinkCEP as a peer: its jars from the package registry, a small program compiled and run on a file of events."""

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
SOURCE = Path(__file__).parent / "FlinkPeer.java"
# What Flink needs to see of the inside of Java since version 16.
OPENED = [f"java.base/java.{name}" for name in ("lang", "util", "time", "util.concurrent", "nio", "net", "math")]
TASKS = 2


@dataclass(frozen=True)
class Found:
    """How many matches FlinkCEP found, and how long its job took, or None if it was stopped."""

    matches: int | None
    timing: Timing


def found_by_flink(pattern: str, events: pa.Table, span: int, patience: float) -> Found:
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
    """
    classes = _compiled()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        csv.write_csv(events, path, csv.WriteOptions(include_header=False, quoting_style="none"))
        step(f"FlinkCEP: {pattern}, {events.num_rows:,} events")
        opened = [flag for name in OPENED for flag in ("--add-opens", f"{name}=ALL-UNNAMED")]
        command = ["java", "-Xmx6g", *opened, "-cp", _classpath(classes), "FlinkPeer", pattern, str(path)]
        try:
            done = subprocess.run(
                [*command, str(span), str(TASKS)], capture_output=True, text=True, timeout=patience + 60, check=False
            )
        except subprocess.TimeoutExpired:
            return Found(None, Timing(patience + 60, patience + 60))
    words = done.stdout.split()
    if len(words) < 4 or done.returncode:
        raise RuntimeError(f"FlinkCEP did not run: {done.stderr[-2000:]}")
    seconds = int(words[-1]) / 1000
    return Found(int(words[-3]), Timing(seconds, seconds))


def _compiled() -> Path:
    """Return where the compiled program is, having fetched Flink and compiled it the first time."""
    if not (HOME / "pyflink").is_dir():
        step("FlinkCEP: fetching its jars, 330 MB, once")
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(HOME), PACKAGE])
    classes = HOME / "classes"
    if not classes.is_dir() or classes.stat().st_mtime < SOURCE.stat().st_mtime:
        if shutil.which("javac") is None:
            raise RuntimeError("FlinkCEP needs a Java compiler (javac): install a JDK 17, or skip this benchmark")
        step("FlinkCEP: compiling")
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir()
        _run(["javac", "-cp", _classpath(classes), "-d", str(classes), str(SOURCE)])
    return classes


def _classpath(classes: Path) -> str:
    return os.pathsep.join([str(classes), *map(str, sorted((HOME / "pyflink" / "lib").glob("*.jar")))])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
