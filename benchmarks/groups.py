"""Many small groups on Spark: windows of thousands of symbols, counted, beside Spark's own shuffle and sort of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

import trellis
from benchmarks import Limit, Row, Table, at_most
from benchmarks.on_spark import session, timed, to_nothing, trades

HOUR = 3_600_000_000
RISING = "PATTERN Trade+ s[] WHERE [symbol] AND s[i].price > 1.5 * s[i-1].price WITHIN 60 minutes SLIDE {slide} minutes"
TIMES = 2


def run(quick: bool) -> list[Table]:
    n, symbols = (20_000, 100) if quick else (10_000_000, 2_000)
    groups = min(n, 4 * 24 * symbols)
    spark = session(2)
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        frame = spark.read.parquet(str(trades(Path(folder), n, symbols)))
        bare = timed("shuffle and sort", lambda: to_nothing(sorted_windows(frame)), quick)
        work = f"{n:,} trades of {symbols:,} symbols, windows of 60 minutes"
        rows = [_row(frame, slide, f"{work}, one every {slide}", bare, quick) for slide in (60, 10)]
    notes = [
        "The peer shuffles the rows of windows that do not overlap: symbol, price, time, id and window.",
        f"Where windows do not overlap there are up to {groups:,} of them, of some {n // groups} trades each.",
    ]
    return [Table("Counting the windows of each symbol, from Parquet", rows, notes)]


def _row(frame: Any, slide: int, work: str, bare: Any, quick: bool) -> Row:
    query = trellis.query(RISING.format(slide=slide))
    ours = timed(work, lambda: query.detect(frame, event_id="id").count(), quick)
    targets = [at_most(TIMES, "times Spark's own time", ours.wall / bare.wall)] if slide == 60 else []
    return Row(work, ours, peers=[Limit("Spark's own shuffle and sort of the rows", bare)], targets=targets)


def sorted_windows(frame: Any) -> Any:
    """Return the rows, those of a window and symbol together and in time order, by Spark alone."""
    time = f.unix_micros("ts")
    rows = frame.select("symbol", "price", time.alias("time"), "id", f.floor(time / f.lit(HOUR)).alias("window"))
    return rows.repartition("window", "symbol").sortWithinPartitions("window", "symbol", "time", "id")
