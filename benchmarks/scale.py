"""Counting on Spark by events, groups and cores, and which share of the time Spark, Arrow and the kernels take."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trellis
from benchmarks import Limit, Peer, Row, Table, Timing, step
from benchmarks.measure import ROOT
from benchmarks.on_spark import session, timed, to_nothing, trades

RISING = "PATTERN Trade+ s[] WHERE {partition}s[i].price > 1.5 * s[i-1].price"
STEPS = ("spark", "arrow", "all")


def run(quick: bool) -> list[Table]:
    events = (2_000, 4_000) if quick else (100_000, 1_000_000, 10_000_000)
    cores = (1,) if quick else (1, 2)
    largest = events[-1]
    groups = [1, largest // 1000, largest // 10]
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        by_events = {(n, c): _measured(folder, n, 1000, c, quick) for n in events for c in cores}
        by_groups = {(g, cores[-1]): _measured(folder, largest, g, cores[-1], quick) for g in groups}
    return [
        Table(
            "By events and cores, a thousand groups", [_row(f"{n:,} events", c, t) for (n, c), t in by_events.items()]
        ),
        Table(
            f"By groups, {largest:,} events",
            [_row(f"{g:,} groups", c, t) for (g, c), t in by_groups.items()],
            [
                "A group is a symbol; with one group there is no partition, and one task counts.",
                *_shares(by_events | {(f"{g:,} groups", c): t for (g, c), t in by_groups.items()}),
            ],
        ),
    ]


def _row(what: str, cores: int, times: dict[str, Timing]) -> Row:
    return Row(
        f"{what}, {cores} {'core' if cores == 1 else 'cores'}", times["all"],
        peers=[Limit("Spark alone: scan, shuffle and sort", times["spark"]),
               Peer("the same, and rows to Python, where nothing is done", times["arrow"])],
    )  # fmt: skip


def _shares(times: Mapping[tuple[Any, int], dict[str, Timing]]) -> list[str]:
    """Return which part of the time goes where."""
    notes = []
    for (what, cores), t in times.items():
        whole = t["all"].wall
        spark = min(t["spark"].wall, whole)
        arrow = max(0.0, min(t["arrow"].wall, whole) - spark)
        parts = [round(100 * part / whole) for part in (spark, arrow, whole - spark - arrow)]
        name = f"{what:,} events" if isinstance(what, int) else what
        notes.append(
            f"{name} on {cores}: {parts[0]} % Spark, {parts[1]} % transfer by Arrow, {parts[2]} % kernels and a first "
            "look at the rows"
        )
    return notes


def _measured(folder: str, n: int, groups: int, cores: int, quick: bool) -> dict[str, Timing]:
    """Measure in a process of its own: a session cannot change its cores."""
    step(f"{n:,} events, {groups:,} groups, {cores} cores")
    command = [sys.executable, "-m", "benchmarks.scale", folder, *map(str, (n, groups, cores, int(quick)))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.decode().splitlines()[-1])
    return {name: Timing(*found[name]) for name in STEPS}


def main(folder: str, n: int, groups: int, cores: int, quick: bool) -> None:
    """Measure one size; print the times as JSON."""
    path = Path(folder) / f"trades-{n}-{groups}"
    path = path if path.exists() else trades(Path(folder), n, groups)
    frame = session(cores).read.parquet(str(path))
    query = trellis.query(RISING.format(partition="[symbol] AND " if groups > 1 else ""))
    trends: Any = query.detect(frame, event_id="id")
    rows = trends._for_counting
    passed = rows.grouped().mapInArrow(_nothing, rows.rows.schema)
    times = {
        "spark": timed("spark", lambda: to_nothing(rows.grouped()), quick, 2),
        "arrow": timed("arrow", lambda: to_nothing(passed), quick, 2),
        "all": timed("all", lambda: query.detect(frame, event_id="id").count(), quick, 2),
    }
    print(json.dumps({name: [t.wall, t.cpu, t.runs] for name, t in times.items()}))


def _nothing(batches: Any) -> Any:
    return (batch.slice(0, 0) for batch in batches)


if __name__ == "__main__":
    n, groups, cores, quick = map(int, sys.argv[2:])
    main(sys.argv[1], n, groups, cores, bool(quick))
