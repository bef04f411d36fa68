"""Listing on Spark by ranks beside the ABI paper's joins, by events and by cores, as its Figures 15 and 16."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset

import trellis
from benchmarks import Peer, Row, Table, Timing, step
from benchmarks.data import prices
from benchmarks.measure import ROOT
from benchmarks.on_spark import session, timed

RISING = "PATTERN Stock+ s[] WHERE s[i].price > 8 * s[i-1].price"
WAYS = {
    "ranks": {"algorithm": "ranks"},
    "join": {"algorithm": "join"},
    "construction": {"algorithm": "join", "construction": "spark"},
}


def run(quick: bool) -> list[Table]:
    sizes = (60,) if quick else (1_000, 2_000, 4_000)
    by_events = {n: _measured(n, 2, quick) for n in sizes}
    by_cores = {1: _measured(sizes[-1], 1, quick), 2: by_events[sizes[-1]]}
    gained = by_cores[1]["join"].wall / by_cores[2]["join"].wall
    return [
        Table(
            "By events, on 2 cores (Figure 15)",
            [_row(f"{n:,} events", times) for n, times in by_events.items()],
            ["One window of prices, each more than eight times the one before; all trends go to Parquet files."],
        ),
        Table(
            f"By cores, {sizes[-1]:,} events (Figure 16)",
            [_row("one core" if c == 1 else f"{c} cores", times) for c, times in by_cores.items()],
            [f"On two cores join is {gained:.1f} times as fast as on one. The paper's saves 63 % from 10 cores to 80."],
        ),
    ]


def _row(what: str, times: dict[str, Timing]) -> Row:
    peers = {"join": "join: two joins a round", "construction": "join, over an index that Spark builds"}
    return Row(f"ranks, {what}", times["ranks"], peers=[Peer(name, times[way]) for way, name in peers.items()])


def _measured(n: int, cores: int, quick: bool) -> dict[str, Timing]:
    """Measure in a process of its own: a session cannot change its cores."""
    step(f"{n:,} events, {cores} cores")
    command = [sys.executable, "-m", "benchmarks.join", *map(str, (n, cores, int(quick)))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return {way: Timing(*found) for way, found in json.loads(done.stdout.decode().splitlines()[-1]).items()}


def main(n: int, cores: int, quick: bool) -> None:
    """Measure one size; print the times as JSON."""
    frame = session(cores).createDataFrame(prices(n)).localCheckpoint()
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        paths = {way: Path(folder) / way for way in WAYS}

        def listing(way: str) -> Timing:
            def work() -> None:
                trends: Any = trellis.query(RISING).detect(frame, event_id="id", **WAYS[way])
                trends.write(str(paths[way]), overwrite=True)

            return timed(way, work, quick, 2)

        times = {way: listing(way) for way in WAYS}
        found = [_rows(path) for path in paths.values()]
        assert all(rows.equals(found[0]) for rows in found), "the trends differ"
    print(json.dumps({way: [t.wall, t.cpu, t.runs] for way, t in times.items()}))


def _rows(path: Path) -> pa.Table:
    return dataset.dataset(path).to_table().sort_by("rank").combine_chunks()


if __name__ == "__main__":
    n, cores, quick = map(int, sys.argv[1:])
    main(n, cores, bool(quick))
