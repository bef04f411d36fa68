"""Latency of a stream: from the rename of a file by another process to the row being readable."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pyarrow.parquet as pq

import trellis
from benchmarks import Row, Table, Timing, step
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.streams.stream_output import committed_files

TEXT = "PATTERN a;b WHERE [name] AND a.price > 1.5 * b.price WITHIN 2 s"
RATE = 2_000  # events a second
SYMBOLS = 400
WARM = 10  # seconds of events that do not count
WRITER = """
import os, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
folder, seconds, rate, symbols, every = sys.argv[1], *map(float, sys.argv[2:])
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
    pq.write_table(table, f"{folder}/_{i}.parquet")
    os.rename(f"{folder}/_{i}.parquet", f"{folder}/{i:06}.parquet")
    print(i, time.time(), flush=True)
"""


def latency(spark: Any, quick: bool) -> Table:
    """Measure how long results take, as they are decided and early."""
    seconds, every = (20, 0.5) if quick else (70, 0.5)
    rows = []
    for emit in ("watermark", "early"):
        taken = sorted(_latencies(spark, emit, seconds, every))
        cuts = quantiles(taken, n=100, method="inclusive")
        text = f"--emit {emit}: half within {median(taken):.2f} s, 99 % within {cuts[98]:.2f} s, of {len(taken):,} rows"
        rows.append(Row(text, Timing(median(taken), median(taken), len(taken))))
    return Table(
        f"Latency at {RATE:,} events a second: a pair of a symbol within 2 seconds, a file every {every:g} s",
        rows,
        [
            "From the rename of a file by another process, with the last event of a result in it, to the row being "
            "read by way of the log: listing of files, batch and commit included. The watermark is 1 second behind, "
            "and a span is decided when it has passed: rows wait for 3 seconds of their events' time unless early.",
        ],
    )


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
        given = [f"{folder}/in", str(seconds + WARM), str(RATE), str(SYMBOLS), str(every)]
        writer = subprocess.Popen([sys.executable, "-c", WRITER, *given], stdout=subprocess.PIPE, text=True)
        seen: set[Path] = set()
        read: list[tuple[int, float]] = []
        ends = time.time() + seconds + WARM + 5
        while time.time() < ends:
            time.sleep(0.02)
            for path in set(committed_files(f"{folder}/out")) - seen:
                seen.add(path)
                last = pq.read_table(path, columns=["b"])["b"].to_numpy()
                now = time.time()
                read += [(file, now) for file in (last // size).tolist()]
            step(f"latency, {emit}: {len(read):,} rows")
        said, _ = writer.communicate()
        stream.stop()
    renamed = {int(line.split()[0]): float(line.split()[1]) for line in said.splitlines()}
    return [at - renamed[file] for file, at in read if file * every >= WARM]
