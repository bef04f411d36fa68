"""Streams at the edges: no delay at all, clocks that are wrong, the hour that comes twice, a million of everything."""

from __future__ import annotations

import datetime as dt
import os
import time as clock
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import trellis
from tests.compare import plain_rows
from tests.engines.spark.stream.test_stream import (
    COUNTED,
    RISING,
    SECOND,
    SPAN,
    batch,
    events,
    found,
    nearly_sorted,
    run,
    stream_of,
    write_files,
)
from tests.streams.test_bucket import in_any_order
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.streams.stream_output import WINDOWS, read_committed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
BEGUN = 1_700_000_000
MILLION = 1_000_000


def moments(seconds: np.ndarray) -> pa.Array:
    return pa.array(seconds * SECOND, pa.timestamp("us", "UTC"))


def test_no_delay_and_events_exactly_at_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """With a watermark of 0 the last time of a file is the watermark of the next, which begins with events of it."""
    rng, number = np.random.default_rng(3), 120
    table = events(number).set_column(0, "ts", moments(BEGUN + np.sort(rng.integers(0, 40, number))))
    write_files(table, tmp_path / "in", 8)
    queries = {"rising": RISING, "span": SPAN, "counted": COUNTED}
    stream = run(stream_of(spark, tmp_path, queries, watermark="0 s"))
    assert stream.totals.late == 0
    for name, text in queries.items():
        assert found(tmp_path / "out" / name) == batch(text, table), name


def test_a_clock_a_year_behind_is_told_and_one_ahead_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Seen from a clock that is a year behind, all events are a year ahead."""
    now = int(clock.time())
    for name, shift in (("ahead", 365 * 86400), ("behind", -365 * 86400)):
        table = events(80)
        times = table["ts"].cast(pa.int64()).to_numpy() + (now - BEGUN + shift) * SECOND
        table = table.set_column(0, "ts", pa.array(times, pa.timestamp("us", "UTC")))
        write_files(nearly_sorted(table, 3), tmp_path / name / "in", 3)
        stream = run(stream_of(spark, tmp_path / name, {"q": RISING}), flush=False)
        if name == "ahead":
            assert "are more than 1 day ahead of the clock of this machine" in (stream.stuck() or "")
            assert stream.totals.results == 0
            stream = run(stream_of(spark, tmp_path / name, {"q": RISING}))
        else:
            assert stream.stuck() is None
            assert stream.totals.results > 0
            stream.flush()
        assert found(tmp_path / name / "out") == batch(RISING, table), name


def test_the_hours_of_daylight_saving(spark: SparkSession, tmp_path: Path) -> None:
    """Times of text in a zone are the same moments in a stream as over files: none is lost in spring, none joined."""
    zone = ZoneInfo("Europe/Berlin")
    begins = [dt.datetime(2024, 3, 31, 0, tzinfo=dt.UTC), dt.datetime(2024, 10, 27, 0, tzinfo=dt.UTC)]
    times = [begin + dt.timedelta(minutes=10 * i) for begin in begins for i in range(18)]
    lines = [f"{moment.astimezone(zone).isoformat()},{i},{i % 7}" for i, moment in enumerate(times)]
    (tmp_path / "in").mkdir()
    for i in range(3):
        file = tmp_path / "in" / f"{i}.csv"
        file.write_text("\n".join(["ts,id,x", *lines[12 * i : 12 * i + 12]]) + "\n")
        os.utime(file, (BEGUN + i, BEGUN + i))
    query = trellis.query("PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 60 minutes SLIDE 30 minutes")
    files = sorted(str(path) for path in (tmp_path / "in").iterdir())
    wanted = query.detect(files, time="ts", event_id="id").to_arrow()
    assert wanted.num_rows
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("UTC", "Europe/Berlin"):
            spark.conf.set("spark.sql.session.timeZone", name)
            frame = read_stream(spark, str(tmp_path / "in"), files_a_batch=1)
            options = Options(str(tmp_path / name / "out"), str(tmp_path / name / "cp"), "1 minute", available_now=True)
            run(Stream(spark, {"q": query}, frame, options, RunOptions(time="ts", event_id="id")))
            rows = read_committed(tmp_path / name / "out").to_pylist()
            assert in_any_order(plain_rows(rows)) == in_any_order(plain_rows(wanted.to_pylist())), name
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_for_each_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Results of a stream go to a function of the user's; and such a function asks queries of its batches itself."""
    table = events(80)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 3)
    query, given, asked = trellis.query(RISING), [], []

    def take(frame: DataFrame, number: int) -> None:
        given.extend(frame.toArrow().to_pylist())

    def ask(frame: DataFrame, number: int) -> None:
        asked.append(query.detect(frame, time="ts", event_id="id").count())

    frame = read_stream(spark, str(tmp_path / "in"), files_a_batch=1)
    results = query.detect_stream(frame, time="ts", event_id="id", watermark="3 s")
    for name, source, work in (("take", results, take), ("ask", frame, ask)):
        writer = source.writeStream.foreachBatch(work).option("checkpointLocation", str(tmp_path / name))
        writer.trigger(availableNow=True).start().awaitTermination()
    rows = in_any_order(plain_rows(given))
    assert rows
    assert len(set(rows)) == len(rows)
    assert set(rows) <= set(batch(RISING, table))
    files = sorted((tmp_path / "in").iterdir())
    assert asked == [query.detect(str(file), time="ts", event_id="id").count() for file in files]


def test_a_window_of_a_million_events(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    seconds = BEGUN // 3600 * 3600 + np.sort(rng.integers(0, 3600, MILLION))
    table = pa.table({"ts": moments(seconds), "id": np.arange(MILLION), "x": rng.integers(0, 1000, MILLION)})
    write_files(table, tmp_path / "in", 4)
    text = "PATTERN T+ t[] WHERE t[i].x > t[i-1].x + 998 WITHIN 1 hour SLIDE 1 hour AGGREGATE COUNT(*)"
    begun = clock.monotonic()
    stream = run(stream_of(spark, tmp_path, {"q": text}, watermark="1 s"))
    print(f"a window of a million events: {clock.monotonic() - begun:.0f} s")
    assert stream.totals.events == MILLION
    assert found(tmp_path / "out") == batch(text, table)
    assert read_committed(tmp_path / "out", WINDOWS).num_rows == 1


def test_a_million_new_keys(spark: SparkSession, tmp_path: Path) -> None:
    """Each batch has keys that none before it had; what is held of them goes with their windows."""
    keys = np.arange(MILLION)
    (tmp_path / "in").mkdir()
    size = MILLION // 10
    for i in range(10):
        seconds = BEGUN // 100 * 100 + 100 * i + np.sort(np.random.default_rng(i).integers(0, 100, 2 * size))
        ids = 2 * size * i + np.arange(2 * size)
        key = np.concatenate([keys[i * size : (i + 1) * size]] * 2)
        table = pa.table({"ts": moments(seconds), "id": ids, "k": key, "x": ids})
        file = tmp_path / "in" / f"{i}.parquet"
        pq.write_table(table, file)
        os.utime(file, (BEGUN + i, BEGUN + i))
    text = "PATTERN T+ t[] WHERE [k] AND t[i].x > t[i-1].x WITHIN 100 s SLIDE 100 s"
    begun = clock.monotonic()
    stream = stream_of(spark, tmp_path, {"q": text}, watermark="1 s")
    stream.start()
    stream.wait()
    progress = [dict(one) for one in next(iter(stream.running.values())).recentProgress]
    stream.flush()
    stream.stop()
    seconds_a_batch = [one["durationMs"]["triggerExecution"] / 1000 for one in progress if one["numInputRows"]]
    print(f"a million new keys: {clock.monotonic() - begun:.0f} s, batches of {seconds_a_batch} s")
    whole = pq.read_table(tmp_path / "in")
    wanted = trellis.query(text).detect(whole, time="ts", event_id="id").to_arrow()
    rows = read_committed(tmp_path / "out")
    order = [("k", "ascending"), ("window_start", "ascending"), ("rank", "ascending")]
    columns = ["window_start", "k", "rank", "length", "events"]
    assert rows.num_rows == wanted.num_rows >= MILLION
    assert (
        rows.sort_by(order)
        .select(columns)
        .equals(wanted.sort_by(order).select(columns).cast(rows.select(columns).schema))
    )
    assert stream.states()[0].state_bytes < 100_000_000
