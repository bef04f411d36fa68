"""Streams: events per second through Structured Streaming, beside FlinkCEP; delay, state and many symbols."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import trellis
from benchmarks import Peer, Row, Table, Timing, at_least, at_most, step
from benchmarks.flink import found_by_flink
from benchmarks.on_spark import session
from trellis.engines.options import RunOptions
from trellis.engines.spark.session.settled import BATCH_BYTES
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.progress import stage_times, state_bytes
from trellis.engines.spark.stream.running import BY_RENAME, FILE_MANAGER, NO_DATA, Options, Stream
from trellis.engines.spark.stream.stateful import set_up

CORES = 2
RATE = 200  # events per second of their own time, so that 200 symbols have ten each in ten seconds
MOST = 200_000
START = 1_700_000_000_000
FIRST = 3  # batches in which Spark and the kernels warm up
PATIENCE = 60.0  # seconds for FlinkCEP
SPAN = 10  # seconds
Q2 = "PATTERN stock+ s[] WHERE [name] AND s[i].price > ratio * s[i-1].price WITHIN 10 s SLIDE 10 s"
ANY = "PATTERN stock+ s[] WHERE [name] AND s[i].price > s[i-1].price REPORT any WITHIN {seconds} s"
COUNTED = Q2 + " AGGREGATE COUNT(*)"


@dataclass(frozen=True)
class Measured:
    """What a stream did after the first batches: events per second, seconds per batch, and of its stages the median.

    `state` is the largest, `results` are all.
    """

    rate: float
    batches: list[float]
    state: int
    results: int
    stages: dict[str, float]

    @property
    def timing(self) -> Timing:
        seconds = median(self.batches) if self.batches else 0.0
        return Timing(seconds, seconds, len(self.batches))


def prices(number: int, symbols: int, first: int = 0) -> pa.Table:
    """Return prices of symbols at random, in the order of time, 200 a second of their own time for 200 symbols."""
    rng = np.random.default_rng(first + 1)
    rate = min(RATE * symbols // 200, MOST)
    millis = START + (first + np.arange(number)) * 1000 // rate
    return pa.table(
        {
            "time": millis,
            "name": pa.array(np.char.add("s", rng.integers(0, symbols, number).astype(str))),
            "price": np.round(rng.random(number) * 100, 2),
        }
    )


def run(quick: bool) -> list[Table]:
    spark = session(CORES)
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    return [
        _arrivals(quick),
        _overhead(spark, quick),
        _beside_flink(spark, quick),
        _speed(spark, quick),
        _symbols(spark, quick),
    ]


def _arrivals(quick: bool) -> Table:
    """Measure `query.arrivals`, in this process, in batches of 1,000 events."""
    number, size, symbols = (20_000, 1_000, 1_000) if quick else (2_000_000, 1_000, 1_000)
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "ts": pa.array(START * 1000 + np.arange(number) * 100, pa.timestamp("us", "UTC")),
            "id": np.arange(number),
            "name": pa.array(np.char.add("s", rng.integers(0, symbols, number).astype(str))),
            "price": np.round(rng.random(number) * 100, 2),
        }
    )
    batches = [table.slice(i, size).combine_chunks() for i in range(0, number, size)]
    arriving = trellis.query(COUNTED).arrivals(time="ts", event_id="id", params={"ratio": "1.5"})
    first = len(batches) // 10
    rows = sum(arriving.take(one).num_rows for one in batches[:first])
    wall, cpu = perf_counter(), process_time()
    rows += sum(arriving.take(one).num_rows for one in batches[first:])
    wall, cpu = perf_counter() - wall, process_time() - cpu
    rate = (len(batches) - first) * size / cpu
    title = f"counted, batches of {size:,}: {rate:,.0f} events a CPU-second, {rows:,} rows"
    return Table(
        f"Arrivals without Spark: ABI Q2 counted, {symbols:,} symbols, windows of 10 seconds with 100,000 events",
        [Row(title, Timing(wall, wall), targets=[at_least(1_000_000, "events a CPU-second", rate)])],
    )


def _put(folder: str, files: list[pa.Table]) -> None:
    """Write files so that a stream reads them one after another."""
    first = 0
    for i, table in enumerate(files):
        times = pa.array(table["time"].to_numpy() * 1000, pa.timestamp("us", "UTC"))
        ids = pa.array(np.arange(table.num_rows) + first)
        first += table.num_rows
        path = Path(folder) / "in" / f"{i:04}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.set_column(0, "ts", times).append_column("id", ids), path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))


def streamed(spark: Any, text: str, files: list[pa.Table], params: dict[str, Any] | None = None) -> Measured:
    """Let files arrive one after another, a batch each."""
    with tempfile.TemporaryDirectory() as folder:
        _put(folder, files)
        frame = read_stream(spark, f"{folder}/in", files_a_batch=1)
        options = Options(f"{folder}/out", f"{folder}/checkpoint", "1 s", available_now=True)
        run = RunOptions(time="ts", event_id="id", params=params)
        stream = Stream(spark, {"q": trellis.query(text)}, frame, options, run)
        stream.start()
        while not stream.wait(0.5):
            step(f"stream: batch {stream.totals.batches + 1} of {len(files)}, {stream.totals.results:,} results")
        (query,) = stream.running.values()
        found = _measured(query, stream.totals.results)
        shutil.rmtree(f"{folder}/out")
    return found


def _measured(query: Any, results: int) -> Measured:
    told = [dict(one) for one in query.recentProgress if one["numInputRows"]]
    later = told[FIRST:] or told
    seconds = [one["durationMs"]["triggerExecution"] / 1000 for one in later]
    rate = sum(one["numInputRows"] for one in later) / sum(seconds)
    stages = [stage_times(one) for one in later]
    half = {name: median(one.get(name, 0.0) for one in stages) for name in stages[0]}
    return Measured(rate, seconds, max(map(state_bytes, told)), results, half)


def _nothing() -> StatefulProcessor:
    """Return an operator that counts rows in its state: what Spark's costs by itself. (Workers get its code.)"""

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._count = handle.getValueState("count", "n bigint")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            known = self._count.get()
            self._count.update(((known[0] if known else 0) + sum(len(one) for one in rows),))
            yield pd.DataFrame({"n": [1]})

        def close(self) -> None:
            pass

    return Nothing()


def _empty(spark: Any, files: list[pa.Table], as_ours: bool) -> Measured:
    """Let the same files go through an operator of Spark's that does nothing, by as many keys.

    `as_ours` is with the settings that `trellis stream` gives Spark, else these are Spark's own, but for RocksDB, which
    the operator needs, and for its changelog.
    """
    set_up(spark)
    spark.conf.unset(BATCH_BYTES)
    before = {key: spark.conf.get(key, None) for key in (FILE_MANAGER, NO_DATA)}
    for key, value in ((FILE_MANAGER, BY_RENAME), (NO_DATA, "false")):
        spark.conf.set(key, value) if as_ours else spark.conf.unset(key)
    with tempfile.TemporaryDirectory() as folder:
        _put(folder, files)
        frame = read_stream(spark, f"{folder}/in", files_a_batch=1).withWatermark("ts", "1 second")
        keyed = frame.withColumn("bucket", f.pmod(f.xxhash64("name"), f.lit(CORES)))
        found = keyed.groupBy("bucket").transformWithStateInPandas(_nothing(), "n bigint", "append", "eventTime")
        writer = found.writeStream.foreachBatch(lambda frame, batch: frame.toArrow())
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()
        measured = _measured(query, 0)
    for key, old in before.items():
        spark.conf.unset(key) if old is None else spark.conf.set(key, old)
    return measured


def _overhead(spark: Any, quick: bool) -> Table:
    """Measure where the time of a small batch goes, beside an operator of Spark's that does nothing."""
    number, size = (5, 2_000) if quick else (12, 20_000)
    files = _files(number, size, 200)
    for _ in range(1 if quick else 2):  # Java compiles all that it needs in the first round, which does not count
        ours = streamed(spark, Q2, files, {"ratio": "1.1"})
        theirs, default = _empty(spark, files, True), _empty(spark, files, False)
    peers = [
        Peer("an empty transformWithStateInPandas of Spark's, on the same files, set as ours", theirs.timing),
        Peer("the same as Spark sets it", default.timing),
    ]
    own = ours.timing.wall - theirs.timing.wall
    rows = [
        Row(f"a batch: {own:.3f} s more than Spark's own", ours.timing, peers=peers,
            targets=[at_most(0.15, "s of Trellis's own", own)])
    ]  # fmt: skip
    for name, seconds in ours.stages.items():
        other = theirs.stages.get(name, 0.0)
        rows.append(Row(name, Timing(seconds, seconds), peers=[Peer("the empty one", Timing(other, other))]))
    return Table(
        f"Where the time of a batch of {size:,} events goes: ABI Q2, 200 symbols, windows of 10 seconds",
        rows,
        [
            f"Medians of batches after {FIRST} to warm up. Stages as Spark tells them; those of tasks are sums over "
            "tasks, and lie in the work of the batch."
        ],
    )


def _files(number: int, size: int, symbols: int) -> list[pa.Table]:
    return [prices(size, symbols, i * size) for i in range(number)]


def _percentiles(measured: Measured) -> str:
    if len(measured.batches) < 2:
        return ""
    cuts = quantiles(measured.batches, n=20, method="inclusive")
    shown = f"half in {cuts[9]:.2f} s, 95 % in {cuts[18]:.2f} s, all in {max(measured.batches):.2f} s"
    return f"; from watermark to output: {shown}"


def _speed(spark: Any, quick: bool) -> Table:
    number, size = (4, 2_000) if quick else (7, 500_000)
    rows = []
    for what, text, files in (
        ("listed", Q2, _files(number, size, 200)),
        ("counted", COUNTED, _files(number, size, 200)),
        ("listed, small batches", Q2, _files(number + 6, size // 20, 200)),
    ):
        found = streamed(spark, text, files, {"ratio": "1.1"})
        title = f"{what}: {found.rate:,.0f} events/s, {found.results:,} rows, state {found.state / 1e6:.1f} MB"
        targets = [] if "small" in what else [at_least(100_000, "events/s", found.rate)]
        rows.append(Row(f"{title}{_percentiles(found)}", found.timing, targets=targets))
    return Table(
        f"ABI Q2, 200 symbols, windows of 10 seconds, batches of {size:,} events",
        rows,
        [
            f"Time is that of the median batch, after {FIRST} in which Spark and the kernels warm up. A result is "
            "written when the batch ends whose watermark decides it.",
            "Each symbol has ten events in a window. A batch has a cost of its own, some 0.5 s: state is committed, "
            "offsets are written, tasks are started. So small batches are slow, and come sooner.",
        ],
    )


def _beside_flink(spark: Any, quick: bool) -> Table:
    """Measure all rising sub-sequences of each symbol, as FlinkCEP finds them."""
    few, many, number, told = (2_000, 4_000, 4_000, 0) if quick else (20_000, 200_000, 600_000, 60_000)
    text = ANY.format(seconds=SPAN)
    warm, whole = [prices(few, 200, i * few) for i in range(FIRST)], prices(number, 200, FIRST * few)
    rest = prices(few, 200, FIRST * few + number)  # what decides the last of them
    large = [whole.slice(i, many) for i in range(0, number, many)]
    ours = streamed(spark, text, [*warm, *large, rest])
    title = f"batches of {many:,} events: {ours.rate:,.0f} events/s, {ours.results:,} matches"
    if quick:
        return Table("All rising sub-sequences of 200 symbols", [Row(title, ours.timing)])
    step(title)
    small = streamed(spark, text, [whole.slice(i, few) for i in range(0, many, few)])
    step(f"batches of {few:,} events: {small.rate:,.0f} events/s")
    first = whole.slice(0, told)
    flink = found_by_flink("rising", first, SPAN * 1000 + 1, PATIENCE)
    times = pa.array(first["time"].to_numpy() * 1000, pa.timestamp("us", "UTC"))
    events = first.append_column("id", pa.array(np.arange(told))).set_column(0, "ts", times)
    exact = trellis.query(text).detect(events, time="ts", event_id="id").count()
    assert flink.matches in (None, exact), (flink.matches, exact)
    theirs = told / flink.timing.wall
    rows = [Row(f"FlinkCEP, {told:,} of these events, by its own clock: {theirs:,.0f} events/s", flink.timing)]
    for size, found, least in ((few, small, 20), (many, ours, 40)):
        ratio = found.rate / theirs
        rows.append(
            Row(f"batches of {size:,}: {found.rate:,.0f} events/s, {ratio:.1f} times FlinkCEP", found.timing,
                targets=[at_least(least, f"times FlinkCEP in batches of {size:,}", ratio)])
        )  # fmt: skip
    return Table(
        f"All rising sub-sequences of 200 symbols within {SPAN} seconds, ten events each",
        rows,
        [
            f"Ours writes every match to Parquet, exactly once; FlinkCEP counts them. FlinkCEP has the first {told:,} "
            f"events, since it goes no faster and no slower over more; its matches are compared with ours. Its time is "
            f"that of its job, at most {PATIENCE:g} s. Ours is that of the batches with these events and, for the "
            f"large ones, of one of {few:,} more, which decides the last of them, after {FIRST} small ones to warm up. "
            "A batch has a cost by itself, so that the ratio is less in small batches; FlinkCEP has no batches.",
        ],
    )


def _symbols(spark: Any, quick: bool) -> Table:
    number, size = (4, 2_000) if quick else (5, 1_000_000)
    rows = []
    for symbols in (10_000,) if quick else (10_000, 1_000_000):
        found = streamed(spark, COUNTED, _files(number, size, symbols), {"ratio": "1.1"})
        title = (
            f"{symbols:,} symbols: {found.rate:,.0f} events/s, {found.results:,} rows, state {found.state / 1e6:.1f} MB"
        )
        rows.append(Row(f"{title}{_percentiles(found)}", found.timing))
    return Table(
        f"ABI Q2 counted, many symbols, windows of 10 seconds, batches of {size:,} events",
        rows,
        ["Ten events of each symbol in a window, with a million symbols two: then a window has two million events."],
    )
