"""Many queries over one stream: what a batch costs by their number, beside a Spark query for each."""

from __future__ import annotations

import tempfile
from statistics import median
from typing import Any

import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, at_most, step
from benchmarks.on_spark import cpu_seconds, session
from benchmarks.stream import CORES, FIRST, _files, _put
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream

RISING = (
    "PATTERN stock+ s[] WHERE [name] AND s[i].price > {ratio} * s[i-1].price AND s.price > {floor} "
    "WITHIN 10 s SLIDE 10 s AGGREGATE {items}"
)
ITEMS = (
    "COUNT(*)", "COUNT(*), MAX(s.price)", "SUM(s.price)", "AVG(s.price)", "MIN(s.price), MAX(s.price)", "COUNT(s)",
    "AVG(LENGTH)", "MAX(LENGTH)", "MIN(LENGTH), COUNT(*)", "SUM(s.price), COUNT(*)",
)  # fmt: skip
ALONE = 4  # Spark queries that are run at once, one for each query


def texts(number: int) -> dict[str, str]:
    """Return different queries by name: ten of each kind ask the same trends for something else."""
    found = {}
    for i in range(number):
        found[f"q{i}"] = RISING.format(ratio=1 + i // 10 % 10 / 10, floor=i // 100, items=ITEMS[i % 10])
    return found


def run(quick: bool) -> list[Table]:
    spark = session(CORES)
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    batches, size, numbers = (5, 2_000, (1, 10)) if quick else (5, 20_000, (1, 10, 100, 1000))
    files = _files(batches, size, 200)
    rows, one = [], 0.0
    few = min(ALONE, numbers[-1])
    apart = _seconds(spark, [{name: text} for name, text in texts(few).items()], files)
    for number in numbers:
        batch = _seconds(spark, [texts(number)], files)
        one = one or batch
        each = Timing(apart / few * number, apart / few * number)
        told = "measured" if number == few else f"{few} of them measured, {apart:.2f} s, and so many times as long"
        peer = Peer(f"a Spark query for each, at once: {told}", each)
        targets = [at_most(10, "times one query, for a hundred", batch / one)] if number == 100 else []
        text = f"{number:,} queries in one: {batch:.2f} s a batch, {1000 * batch / number:.2f} ms a query"
        rows.append(Row(text, Timing(batch, batch, batches - FIRST), peers=[peer], targets=targets))
        step(text)
    return [
        Table(
            f"Cost by number of queries: batches of {size:,} events, 200 symbols, windows of 10 s, results written",
            rows,
            [
                "Ten prices from which an event counts, ten ratios, ten lists of AGGREGATE: a thousand queries. All "
                "share reading and state, a hundred each the sorted events, ten each index, graph and numbers. Each "
                "has an output and a log of its own: two files for each query and task, and an entry of the log.",
            ],
        )
    ]


def _seconds(spark: Any, queries: list[dict[str, str]], files: list[pa.Table]) -> float:
    """Return the seconds of a median batch of several streams at once, each of some queries."""
    with tempfile.TemporaryDirectory() as folder:
        _put(folder, files)
        streams = []
        for i, some in enumerate(queries):
            frame = read_stream(spark, f"{folder}/in", files_a_batch=1)
            options = Options(f"{folder}/out{i}", f"{folder}/checkpoint{i}", "1 s", available_now=True)
            made = {name: trellis.query(text) for name, text in some.items()}
            streams.append(Stream(spark, made, frame, options, RunOptions(time="ts", event_id="id")))
        cpu = cpu_seconds()
        for stream in streams:
            stream.start()
        for stream in streams:
            while not stream.wait(0.5):
                step(f"{len(queries)} streams of {len(queries[0]):,} queries: batch {stream.totals.batches + 1}")
        step(f"{len(queries)} streams of {len(queries[0]):,}: {cpu_seconds() - cpu:.1f} CPU seconds")
        told = [[dict(one) for one in query.recentProgress if one["numInputRows"]]
                for stream in streams for query in stream.running.values()]  # fmt: skip
        return median(one["durationMs"]["triggerExecution"] / 1000 for some in told for one in some[FIRST:])
