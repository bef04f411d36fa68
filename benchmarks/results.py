"""The results file: every line of a run with its peers, and where, when and beside what other work it was measured."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT
from benchmarks.report import Report, cores, machine_class

FILE = ROOT / "benchmarks" / "results.json"
PACKAGES = (
    "trellis-cep", "numpy", "numba", "pyarrow", "pandas", "polars", "duckdb", "networkx", "scikit-learn", "snapml",
    "pyspark",
)  # fmt: skip
QUIET = 0.5  # other processes a core: above it, times are those of a loaded machine


def load() -> float:
    """Return how many processes want a core, in the last minute."""
    return round(os.getloadavg()[0], 1)


def is_loaded(found: float) -> bool:
    """Return whether so many processes take time away from a benchmark."""
    return found > QUIET * cores()


def results(reports: Sequence[Report], before: float, kept: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the results of a run as plain values.

    Parameters
    ----------
    reports
        The benchmarks that ran.
    before
        The load before they began.
    kept
        Benchmarks of earlier runs that did not run now; each says when it ran, and beside what load.
    """
    run = {"date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC", "commit": _commit(), "load": before}
    made = [run | {k: v for k, v in report.data().items() if k != "machine"} for report in reports]
    loads = [part["load"] for part in (*kept, *made)]
    return run | {
        "machine": machine_class(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "load": max(loads, default=before),
        "loaded": any(map(is_loaded, loads)),
        "benchmarks": sorted([*kept, *made], key=lambda part: part["name"]),
    }


def write(reports: Sequence[Report], before: float, file: Path) -> None:
    """Write the results file; what it has of other benchmarks on this class of machine stays in it."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"machine": None}
    names = {report.name for report in reports}
    kept = [part for part in old.get("benchmarks", ()) if part["name"] not in names]
    found = results(reports, before, kept if old["machine"] == machine_class() else ())
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Line:
    """A piece of work beside one peer."""

    benchmark: str
    table: str
    work: str
    ours: dict[str, Any]
    peer: str
    theirs: dict[str, Any]
    ratio: float
    cpu_ratio: float | None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is called in every run: numbers that were found stand behind a colon."""
        return self.benchmark, self.table, self.work.partition(":")[0], self.peer.partition(":")[0]


def lines(found: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a results file that have a peer; limits, which nothing can beat, are none.

    Nor are those of `bench tuning`, where peers stand beside themselves.
    """
    for report in found["benchmarks"]:
        if report["name"] == "tuning":
            continue
        for table in report["tables"]:
            for row in table["rows"]:
                for peer in row["peers"]:
                    if not peer["limit"] and "ratio" in peer:
                        yield Line(
                            report["name"], table["title"], row["work"], row["timing"], peer["name"], peer["timing"],
                            peer["ratio"], peer.get("cpu_ratio"),
                        )  # fmt: skip


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
