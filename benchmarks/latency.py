"""Latency of a stream: from the rename of a file by another process to the row being readable, beside FlinkCEP."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Peer, Row, Table, Timing, at_most, step
from benchmarks.flink import flink_over_files
from benchmarks.on_spark import session
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.streams.stream_output import committed_files

TEXT = "PATTERN a;b WHERE [name] AND a.price > 1.5 * b.price WITHIN 2 s"
CORES = 2
RATE = 2_000  # events per second
SYMBOLS = 400
PATIENCE, GRACE = 120.0, 15.0  # seconds to start, and after the last row
WARM = 10  # seconds of events that do not count
WRITER = """
import os, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pyarrow import csv
folder, ending, seconds, rate, symbols, every = *sys.argv[1:3], *map(float, sys.argv[3:])
number, rng = int(seconds / every), np.random.default_rng(1)
size = int(rate * every)
begun = time.time()
for i in range(number):
    wait = begun + (i + 1) * every - time.time()
    if wait > 0:
        time.sleep(wait)
    now = int(time.time() * 1e6)
    table = pa.table({
        "ts": pa.array(now - np.arange(size)[::-1], pa.timestamp("us", "UTC")), "id": i * size + np.arange(size),
        "name": np.char.add("s", rng.integers(0, int(symbols), size).astype(str)), "price": rng.random(size),
    })
    if ending == "csv":
        millis = table.set_column(0, "ts", pa.array(table["ts"].cast(pa.int64()).to_numpy() // 1000))
        csv.write_csv(millis, f"{folder}/_{i}", csv.WriteOptions(include_header=False, quoting_style="none"))
    else:
        pq.write_table(table, f"{folder}/_{i}")
    os.rename(f"{folder}/_{i}", f"{folder}/{i:06}.{ending}")
    print(i, time.time(), flush=True)
"""


def run(quick: bool) -> list[Table]:
    seconds, every = (10, 0.5) if quick else (40, 0.5)
    spark = session(CORES)
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    rows = []
    for emit in ("watermark", "early"):
        ours = _told(f"--emit {emit}", _latencies(spark, emit, seconds, every))
        peers = []
        if not quick:
            theirs = _told("FlinkCEP", _flink_latencies(emit, seconds, every))
            peers = [Peer(theirs[0], theirs[1])]
        targets = [at_most(1.0, "s for half of the rows", ours[1].wall)] if emit == "early" else []
        rows.append(Row(*ours, peers=peers, targets=targets))
        step(ours[0])
    return [
        Table(
            f"Latency at {RATE:,} events per second: a pair of a symbol within 2 seconds, a file every {every:g} s",
            rows,
            [
                "From the rename of a file by another process, with the last event of a result in it, to the row "
                "being read: listing of files, batch and commit included. Ours writes Parquet, exactly once, which is "
                "read by way of the log; FlinkCEP prints a line for each match, and has no checkpoints. The watermark "
                "is 1 second behind for both. FlinkCEP gives a pair when it has passed the second event; ours, which "
                "also gives ranks, when the span of the first event is over: 3 seconds of the events' time. `early` is "
                "FlinkCEP in processing time, which looks at no time of events.",
            ],
        )
    ]


def _told(name: str, taken: list[float]) -> tuple[str, Timing]:
    """Return the median and the 99th percentile in words, and the median."""
    if not taken:
        raise RuntimeError(f"{name}: no row came")
    half, last = median(taken), quantiles(taken, n=100, method="inclusive")[98]
    return f"{name}: half within {half:.2f} s, 99 % within {last:.2f} s, of {len(taken):,} rows", Timing(half, half)


def _writer(folder: str, ending: str, seconds: float, every: float) -> subprocess.Popen[str]:
    given = [folder, ending, *map(str, (seconds + WARM, RATE, SYMBOLS, every))]
    return subprocess.Popen([sys.executable, "-c", WRITER, *given], stdout=subprocess.PIPE, text=True)


def _since_renamed(writer: subprocess.Popen[str], read: list[tuple[int, float]], every: float) -> list[float]:
    """Return how long rows took, of which it is known in which file their last event was and when they were read."""
    said, _ = writer.communicate()
    renamed = {int(line.split()[0]): float(line.split()[1]) for line in said.splitlines()}
    return [at - renamed[file] for file, at in read if file * every >= WARM]


def _flink_latencies(emit: str, seconds: float, every: float) -> list[float]:
    size = int(RATE * every)
    read: list[tuple[int, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        flink = flink_over_files(folder, emit)
        assert flink.stdout is not None
        lines = flink.stdout
        listening = threading.Thread(target=lambda: read.extend((int(line) // size, time.time()) for line in lines))
        listening.start()
        now = int(time.time() * 1000)
        first = [f"{now - ago},-1,first,{price}" for ago, price in ((10_000, 2.0), (9_999, 1.0), (5_000, 1.0))]
        (Path(folder) / "first.csv").write_text("\n".join(first) + "\n")
        begun = time.time()
        while not read and time.time() - begun < PATIENCE:  # until it has started
            time.sleep(0.1)
        writer = _writer(folder, "csv", seconds, every)
        writer.wait()
        time.sleep(5)
        flink.kill()
        listening.join()
    return _since_renamed(writer, read, every)


def _latencies(spark: Any, emit: str, seconds: float, every: float) -> list[float]:
    size = int(RATE * every)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        ddl = "ts TIMESTAMP, id BIGINT, name STRING, price DOUBLE"
        frame = read_stream(spark, f"{folder}/in", schema=ddl, input_format="parquet")
        options = Options(f"{folder}/out", f"{folder}/checkpoint", "1 s", emit=emit)
        run = RunOptions(time="ts", event_id="id")
        stream = Stream(spark, {"q": trellis.query(TEXT)}, frame, options, run)
        stream.start()
        _first_file(Path(folder) / "in")
        begun = time.time()
        while not stream.totals.batches and time.time() - begun < PATIENCE:  # until it has started
            time.sleep(0.1)
        writer = _writer(f"{folder}/in", "parquet", seconds, every)
        seen: set[Path] = set()
        read: list[tuple[int, float]] = []
        latest = time.time()
        while writer.poll() is None or time.time() - latest < GRACE:
            time.sleep(0.02)
            if writer.poll() is None:
                latest = time.time()
            for path in set(committed_files(f"{folder}/out")) - seen:
                seen.add(path)
                last = pq.read_table(path, columns=["b"])["b"].to_numpy()
                latest = time.time()
                read += [(file, latest) for file in (last // size).tolist()]
            step(f"latency, {emit}: {len(read):,} rows")
        stream.stop()
    return _since_renamed(writer, read, every)


def _first_file(folder: Path) -> None:
    """Put a file there whose batch shows that all has started."""
    moment = pa.array([int(time.time() * 1e6) - 10_000_000], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": moment, "id": [-1], "name": ["first"], "price": [1.0]})
    pq.write_table(table, folder / "_first")
    (folder / "_first").rename(folder / "first.parquet")
