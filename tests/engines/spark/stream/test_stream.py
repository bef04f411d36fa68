"""Streams on Spark give what the batch engine gives, through restarts and kills, and say what they could not use."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time as clock
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import trellis
from tests.compare import plain_rows
from tests.data.places import data_file
from tests.streams.test_bucket import in_any_order
from trellis.cli.stream_run import live_table
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.files import FileWriter
from trellis.engines.spark.stream.running import Options, Stream
from trellis.engines.spark.stream.stateful import found_rows
from trellis.engines.spark.stream.watch import watched_at
from trellis.errors import DataError, TrellisError, UsageError
from trellis.events.table_bytes import unpacked
from trellis.io.read import read_table
from trellis.streams.bucket import OutputTable
from trellis.streams.delays import delay_of
from trellis.streams.stream_output import (
    LATE,
    REPEATED,
    RESULTS,
    TIMEOUTS,
    WINDOWS,
    StreamOutput,
    committed_files,
    read_committed,
)

pytestmark = pytest.mark.spark

SECOND = 1_000_000
RISING = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 s SLIDE 5 s"
SPAN = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 4 s"
COUNTED = "PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10 s SLIDE 10 s AGGREGATE COUNT(*), SUM(t.x)"
RISES = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x REPORT any WITHIN 4 s"
SEQUENCE = "PATTERN a;b WHERE a.x > b.x AND a.k = b.k WITHIN 6 s SLIDE 3 s"


def events(number: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(
                1_700_000_000 * SECOND + rng.integers(0, number * SECOND // 4, number), pa.timestamp("us", "UTC")
            ),
            "id": [f"e{i:05}" for i in range(number)],
            "g": rng.choice(["a", "b", "c"], number),
            "x": rng.integers(0, 9, number),
            "k": rng.choice([0.0, -0.0, 1.5], number),
        }
    )


def nearly_sorted(table: pa.Table, seconds: float, seed: int = 1) -> pa.Table:
    """Return events so that none comes more than some seconds behind a later one."""
    times = table["ts"].cast(pa.int64()).to_numpy()
    moved = times + np.random.default_rng(seed).random(len(times)) * seconds * SECOND
    return table.take(pa.array(np.argsort(moved)))


def write_files(table: pa.Table, folder: Path, files: int, seed: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cuts = sorted(random.Random(seed).sample(range(1, table.num_rows), files - 1))
    for i, (begin, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        path = folder / f"{i:03}.parquet"
        pq.write_table(table.slice(begin, end - begin), path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))  # the order in which Spark takes them


def stream_of(spark: SparkSession, folder: Path, queries: dict[str, str], **more: Any) -> Stream:
    frame = read_stream(spark, str(folder / "in"), files_a_batch=more.pop("files", 1))
    given = {name: more.pop(name) for name in ("max_trends", "on_bad_rows") if name in more}
    options = {"out": "out", "checkpoint": "cp", "watermark": "3 s", "available_now": True} | more
    for name in ("out", "checkpoint"):
        options[name] = str(folder / options[name])
    asked = {name: trellis.query(text) for name, text in queries.items()}
    return Stream(spark, asked, frame, Options(**options), RunOptions(time="ts", event_id="id", **given))


def run(stream: Stream, flush: bool = True) -> Stream:
    stream.start()
    try:
        stream.wait()
        stream.states()
        if flush:
            stream.flush()
    finally:
        stream.stop()
    return stream


def batch(text: str, table: pa.Table) -> list[str]:
    return in_any_order(plain_rows(trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()))


def found(folder: Path, kind: str = RESULTS) -> list[str]:
    return in_any_order(plain_rows(read_committed(folder, kind).to_pylist()))


def test_queries_of_all_kinds_give_what_the_batch_gives(spark: SparkSession, tmp_path: Path) -> None:
    table = events(160)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 3)
    queries = {"rising": RISING, "span": SPAN, "counted": COUNTED, "sequence": SEQUENCE}
    stream = run(stream_of(spark, tmp_path, queries, direct_bytes=8_000))  # so that some are large
    assert len(stream.groups) == 2  # those with the partition [g] share, and so do those without
    for name, text in queries.items():
        assert found(tmp_path / "out" / name) == batch(text, table), name
    assert stream.totals.events == table.num_rows
    shown = StringIO()
    Console(file=shown, width=200).print(live_table(stream))
    assert "events/s" in shown.getvalue()
    assert "rising, span" in shown.getvalue()
    assert stream.totals.late == stream.totals.bad == 0
    states = stream.states()
    assert sorted(name for state in states for name in state.queries) == sorted(queries)
    assert all(state.watermark.startswith("2023-11-14 ") for state in states)
    windows = read_committed(tmp_path / "out" / "rising", WINDOWS)
    assert sum(windows["count"].to_pylist()) == len(batch(RISING, table))
    _tells_its_numbers(stream, table.num_rows)
    _goes_on_where_it_was(spark, tmp_path, table)
    _refuses_what_is_not_its_own(spark, tmp_path)


def _tells_its_numbers(stream: Stream, number: int) -> None:
    """Ask for the numbers as Prometheus, a browser and a listener of Spark's do."""
    with watched_at(lambda: stream, ("127.0.0.1", 0)) as port:
        told = {}
        for path in ("/metrics", "/status", "/", "/nothing"):
            try:
                with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                    told[path] = answer.read().decode()
            except HTTPError as problem:
                told[path] = str(problem.code)
        with pytest.raises(UsageError, match="cannot be served"), watched_at(lambda: stream, ("127.0.0.1", port)):
            pass
    assert told["/nothing"] == "404"
    assert "<title>trellis stream</title>" in told["/"]
    assert json.loads(told["/status"])["totals"]["events"] == number
    lines = [line for line in told["/metrics"].splitlines() if not line.startswith("#")]
    numbers = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert numbers["trellis_events_total"] == number
    assert numbers["trellis_results_total"] == stream.totals.results
    assert numbers['trellis_state_bytes{queries="rising,span"}'] > 0
    assert numbers['trellis_stage_seconds{queries="rising,span",stage="planning"}'] > 0
    assert numbers['trellis_lag_seconds{queries="rising,span"}'] > 1e6  # the events are of 2023
    told_by_spark = [one["observedMetrics"]["trellis"] for q in stream.running.values() for one in q.recentProgress
                     if one["numInputRows"]]  # fmt: skip
    assert sum(row["events"] for row in told_by_spark) == number * len(stream.groups)


EARLY = {"sequence": "PATTERN a;b WHERE [g] AND a.x + 5 < b.x WITHIN 5 s", "rises": RISES}


def without_ranks(rows: list[dict[str, Any]]) -> list[str]:
    return in_any_order(plain_rows([row | {"rank": None} for row in rows]))


def test_early_results_need_no_watermark_and_come_once_through_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    table = events(90)
    arrived = nearly_sorted(table, 3)
    write_files(arrived.slice(0, 50), tmp_path / "in", 2)
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        run(stream_of(spark, tmp_path, EARLY, emit="early"), flush=False)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert len(list(tmp_path.glob("cp/*/state/0/[0-9]*"))) == 2  # one for each core: no task holds nothing
    later = tmp_path / "in" / "009.parquet"
    pq.write_table(arrived.slice(50), later)
    os.utime(later, (1_700_000_009,) * 2)
    stream = run(stream_of(spark, tmp_path, EARLY, emit="early"), flush=False)
    for name, text in EARLY.items():
        whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
        assert without_ranks(read_committed(tmp_path / "out" / name).to_pylist()) == without_ranks(whole)
    assert stream.totals.results  # of the last file alone
    some = {"sequence": EARLY["sequence"]}
    run(stream_of(spark, tmp_path, some, out="late", checkpoint="cp2", timeouts=True, files=None))
    told = read_committed(tmp_path / "late", TIMEOUTS).to_pylist()
    ended = trellis.query("PATTERN SEQ(T a, NOT(T b)) WHERE [g] AND a.x + 5 < b.x WITHIN 5 s")
    whole = ended.detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    assert sorted(row["events"][0] for row in told) == sorted(row["a"] for row in whole)
    with pytest.raises(UsageError, match="ORDER BY needs all results"):
        stream_of(spark, tmp_path, {"q": RISING + " ORDER BY LENGTH LIMIT 1 PER WINDOW"}, emit="early")
    with pytest.warns(UserWarning, match="wait for the watermark"):
        stream_of(spark, tmp_path, {"q": RISING}, emit="early", checkpoint="other")


def test_large_results_are_written_where_they_are_found(tmp_path: Path) -> None:
    tables = [pa.table({"rank": np.arange(i, i + 100)}) for i in (0, 100, 200)]
    outs = [
        *(OutputTable(RESULTS, "q", one) for one in tables),
        OutputTable(WINDOWS, "q", tables[0]),
        OutputTable(RESULTS, "r", tables[1]),
    ]
    places = {name: str(tmp_path) for name in ("", "q", "r")}
    rows = list(found_rows(iter(outs), FileWriter(places, "parquet", large=2_000), "000000007"))
    assert [(kind, query, number, bool(name)) for kind, query, number, name, _ in rows] == [
        (RESULTS, "q", 300, True), (WINDOWS, "q", 100, False), (RESULTS, "r", 100, False),
    ]  # fmt: skip
    *_, name, _ = rows[0]
    assert name.startswith("part-000000007-")
    assert pq.read_table(tmp_path / name)["rank"].to_pylist() == list(range(300))
    assert unpacked(rows[2][-1]).equals(tables[1])


def _goes_on_where_it_was(spark: SparkSession, folder: Path, table: pa.Table) -> None:
    """Restart with later events and a query less: what the end decided is decided anew."""
    later = events(40, seed=2)
    shifted = pa.array(later["ts"].cast(pa.int64()).to_numpy() + 45 * SECOND, pa.timestamp("us", "UTC"))
    later = later.set_column(0, "ts", shifted).set_column(1, "id", pa.array([f"f{i:05}" for i in range(40)]))
    path = folder / "in" / "900.parquet"
    pq.write_table(nearly_sorted(later, 3), path)
    run(stream_of(spark, folder, {"rising": RISING, "new": "PATTERN T+ t[] WHERE [g] WITHIN 5 s SLIDE 5 s"}))
    both = pa.concat_tables([table, later])
    assert found(folder / "out" / "rising") == batch(RISING, both)
    seen = max(table["ts"].to_pylist())
    whole = trellis.query("PATTERN T+ t[] WHERE [g] WITHIN 5 s SLIDE 5 s").detect(both, time="ts", event_id="id")
    rows = read_committed(folder / "out" / "new").to_pylist()
    assert rows
    assert set(in_any_order(plain_rows(rows))) <= set(in_any_order(plain_rows(whole.to_arrow().to_pylist())))
    assert {row["window_start"] for row in rows if row["window_start"] > seen} == {
        row["window_start"] for row in whole.to_arrow().to_pylist() if row["window_start"] > seen
    }


def _refuses_what_is_not_its_own(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(UsageError, match="is of other queries: rising"):
        stream_of(spark, folder, {"rising": RISING + " RETURN t"})
    frame = spark.readStream.schema("ts timestamp, id string, g string, x double, k double").parquet(str(folder / "in"))
    options = Options(str(folder / "out"), str(folder / "cp"), "3 s")
    with pytest.raises(UsageError, match="`x` was bigint, and is double now"):
        Stream(spark, {"rising": trellis.query(RISING)}, frame, options, RunOptions(time="ts", event_id="id"))
    with pytest.raises(UsageError, match="of a stream that writes to"):
        stream_of(spark, folder, {"rising": RISING}, out="elsewhere")
    with pytest.raises(UsageError, match="cannot go on as csv"):
        stream_of(spark, folder, {"rising": RISING}, format="csv")
    renamed = stream_of(spark, folder, {"other": RISING, "rising": RISING + " RETURN t"})
    assert [one.name for one in renamed.queries] == ["rising", "rising-2"]
    with pytest.raises(UsageError, match="is no checkpoint"):
        stream_of(spark, folder, {"rising": RISING}, checkpoint="in")
    with pytest.raises(UsageError, match="is the output of another stream"):
        stream_of(spark, folder, {"rising": RISING}, checkpoint="cp2", out="out/rising").start()


def test_a_streaming_frame_in_and_out_with_late_bad_and_far_events(spark: SparkSession, tmp_path: Path) -> None:
    base = 1_700_000_000
    rows = [
        (base, "a", 1), (base + 4, "b", 2), (base + 20, "c", 1),  # the watermark becomes base + 18
        (base + 3, "late", 5), (None, "bad", 1), (base + 21, "d", 3), (base + 100_000_000_000, "far", 1),
        (base + 40, "e", 1),
        (base + 70, "f", 1),
    ]  # fmt: skip
    for i, some in enumerate([rows[:3], rows[3:7], rows[7:8], rows[8:]]):
        table = pa.table(
            {
                "ts": pa.array([None if r[0] is None else r[0] * SECOND for r in some], pa.timestamp("us", "UTC")),
                "id": [r[1] for r in some],
                "x": [r[2] for r in some],
            }
        )
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "in" / f"{i}.parquet")
        os.utime(tmp_path / "in" / f"{i}.parquet", (base + i, base + i))
    frame = (
        spark.readStream.schema("ts timestamp, id string, x bigint")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "in"))
    )
    query = trellis.query("PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10 s SLIDE 10 s")
    out = query.detect_stream(frame, time="ts", event_id="id", watermark="2 seconds")
    assert out.isStreaming
    assert out.columns == ["window_start", "window_end", "rank", "length", "start_time", "end_time", "events"]
    started = out.writeStream.format("memory").queryName("results").trigger(availableNow=True)
    started.option("checkpointLocation", str(tmp_path / "of-memory")).start().awaitTermination()
    assert sorted(map(tuple, (row["events"] for row in spark.table("results").collect()))) == [
        ("a", "b"), ("c", "d"), ("e",),
    ]  # fmt: skip
    stream = run(stream_of(spark, tmp_path, {"q": query.text}, watermark="2 s", keep_late=True), flush=False)
    assert (stream.totals.late, stream.totals.bad, stream.totals.results) == (1, 1, 3)
    assert [row["id"] for row in read_committed(tmp_path / "out", LATE).to_pylist()] == ["late"]
    assert [row["id"] for row in read_committed(tmp_path / "out", "bad").to_pylist()] == ["bad"]


def test_types_from_several_frames(spark: SparkSession, tmp_path: Path) -> None:
    base = 1_700_000_000 * SECOND
    for name, seconds in (("A", [0, 2, 9]), ("B", [1, 5, 30])):
        (tmp_path / name).mkdir()
        times = pa.array([base + s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times, "id": [f"{name}{s}" for s in seconds]}), tmp_path / name / "1.parquet")
    frames = {name: read_stream(spark, str(tmp_path / name)) for name in "AB"}
    query = trellis.query("PATTERN SEQ(A a, B b) WITHIN 3 s")
    out = query.detect_stream(frames, time="ts", event_id="id", watermark="1 s")
    started = out.writeStream.format("memory").queryName("types").trigger(availableNow=True)
    started.option("checkpointLocation", str(tmp_path / "cp")).start().awaitTermination()
    assert sorted((row["a"], row["b"]) for row in spark.table("types").collect()) == [("A0", "B1"), ("A2", "B5")]


def test_too_many_results_nothing_at_all_and_csv(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    schema = "ts TIMESTAMP, id STRING, g STRING, x BIGINT, k DOUBLE"
    frame = read_stream(spark, str(tmp_path / "in"), schema=schema)
    options = Options(str(tmp_path / "out"), str(tmp_path / "cp"), "3 s", format="csv", available_now=True)

    def stream(**more: Any) -> Stream:
        return Stream(spark, {"q": trellis.query(RISING)}, frame, options, RunOptions(time="ts", event_id="id", **more))

    nothing = run(stream())
    assert nothing.totals.results == 0
    assert read_committed(tmp_path / "out").num_rows == 0
    table = events(60)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 2)
    bounded = run(stream(max_trends=2))
    assert bounded.totals.unlisted > 0
    windows = read_committed(tmp_path / "out", WINDOWS)
    assert windows["listed"].to_pylist().count(False) == bounded.totals.unlisted
    assert sum(windows["count"].to_pylist()) == len(batch(RISING, table))
    flushed = read_committed(tmp_path / "out").num_rows
    again = run(stream(max_trends=2))  # nothing has come, so nothing is taken back or given twice
    assert again.totals.events == 0
    assert read_committed(tmp_path / "out").num_rows == flushed


def test_an_error_in_a_task_is_told_in_its_words(spark: SparkSession, tmp_path: Path) -> None:
    table = events(30)
    twice = pa.concat_tables([table, table.slice(0, 1)])
    write_files(twice, tmp_path / "in", 2)
    stream = stream_of(spark, tmp_path, {"q": RISING}, watermark="1 hour")
    with pytest.raises(DataError, match="occurs twice in one window"):
        run(stream)
    assert isinstance(stream.failure, TrellisError) or stream.failure is None
    dropped = run(stream_of(spark, tmp_path, {"q": RISING}, watermark="1 hour", on_bad_rows="drop", keep_late=True))
    assert dropped.totals.repeated == 1
    assert read_committed(tmp_path / "out", REPEATED)["id"].to_pylist() == table["id"].to_pylist()[:1]
    assert found(tmp_path / "out") == batch(RISING, table)


def test_the_output_of_a_batch_that_was_killed_does_not_count(tmp_path: Path) -> None:
    output = StreamOutput(tmp_path)
    output.prepare([RESULTS, WINDOWS])
    table = pa.table({"x": [1]})
    for name in ("part-000000000-0-a.parquet", "part-000000001-0-b.parquet", "part-flush-0-c.parquet"):
        pq.write_table(table, tmp_path / name)
    output.commit("000000000", {RESULTS: ["part-000000000-0-a.parquet"]}, {RESULTS: 1})
    output.commit("flush", {RESULTS: ["part-flush-0-c.parquet"]}, {RESULTS: 1})
    assert [path.name for path in committed_files(tmp_path)] == ["part-000000000-0-a.parquet", "part-flush-0-c.parquet"]
    output.prepare([RESULTS, WINDOWS])
    assert sorted(path.name[:8] for path in tmp_path.glob("*.parquet")) == ["part-000", "part-flu"]
    output.take_back()
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["part-000000000-0-a.parquet"]
    assert read_committed(tmp_path).num_rows == 1
    with pytest.raises(DataError, match="cannot be written"):
        StreamOutput(tmp_path / "part-000000000-0-a.parquet").prepare([RESULTS])
    with pytest.raises(DataError, match="is not the output of a stream"):
        committed_files(tmp_path / "_log")


def test_durations() -> None:
    time = trellis.query("PATTERN E+ e[] WITHIN 3").plan(None).bound.window
    assert time is not None
    from trellis.language.schema import TIMESTAMP, Kind, Type

    assert delay_of("10 minutes", TIMESTAMP) == 600_000
    assert delay_of("1500 us", TIMESTAMP) == 2
    assert delay_of("2.5", Type(Kind.DOUBLE)) == 3
    for text, type_ in (("5", TIMESTAMP), ("5 s", Type(Kind.INTEGER)), ("soon", TIMESTAMP), ("5 moons", TIMESTAMP)):
        with pytest.raises(UsageError, match="watermark"):
            delay_of(text, type_)


# --- The command ------------------------------------------------------------------------------------------------------


# The command, with so little that counts as large that both ways of writing are taken.
SCRIPT = """
from functools import partial
from trellis.cli.main import main
from trellis.engines.spark.stream import running as streaming
streaming.FileWriter = partial(streaming.FileWriter, large=2_000)
main()
"""


def command(folder: Path, *more: str, query: str = RISING) -> list[str]:
    given = ["--out", "out", "--checkpoint", "cp", "--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1"]
    return [sys.executable, "-c", SCRIPT, "stream", query, "in", *given, *more]


@pytest.mark.slow
@pytest.mark.parametrize(("query", "how"), [(RISING, ()), (EARLY["rises"], ("--emit", "early"))])
def test_killed_again_and_again_each_result_comes_out_once(tmp_path: Path, query: str, how: tuple[str, ...]) -> None:
    table = events(400)
    write_files(nearly_sorted(table, 3), tmp_path / "in", 16)
    dice = random.Random(8)
    kills = 0
    while kills < int(os.environ.get("KILLS", "5")):
        process = subprocess.Popen(command(tmp_path, *how, query=query), cwd=tmp_path, start_new_session=True)
        begun, batches = clock.monotonic(), len(list((tmp_path / "out" / "_log").glob("*.json")))
        while clock.monotonic() - begun < 90:  # until it writes again
            clock.sleep(0.05)
            if len(list((tmp_path / "out" / "_log").glob("*.json"))) > batches:
                break
        clock.sleep(dice.random() * 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    done = subprocess.run(
        command(tmp_path, *how, "--available-now", "--flush", "--json", query=query),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["late"] == 0
    rows = read_committed(tmp_path / "out").to_pylist()
    whole = trellis.query(query).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    shown = without_ranks if how else lambda rows: in_any_order(plain_rows(rows))
    assert shown(rows) == shown(whole)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == len(committed_files(tmp_path / "out"))


@pytest.mark.slow
def test_ctrl_c_stops_after_the_batch(tmp_path: Path) -> None:
    write_files(nearly_sorted(events(200), 3), tmp_path / "in", 4)
    process = subprocess.Popen(
        command(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while len(list((tmp_path / "out" / "_log").glob("*.json"))) < 1:
        assert process.poll() is None
        clock.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    told, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "stopping after this batch" in said
    assert not told.startswith("0 events")


# --- Sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format_", "times"),
    [("csv", ["2023-11-14 22:13:20", "2023-11-14 22:13:21", "2023-11-14 22:13:40"]), ("json", [10, 11, 30])],
)
def test_text_files_and_plain_numbers_as_times(
    spark: SparkSession, tmp_path: Path, format_: str, times: list[Any]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [{"ts": t, "id": f"e{i}", "x": i} for i, t in enumerate(times)]
    csv = ["ts,id,x", *(f"{r['ts']},{r['id']},{r['x']}" for r in rows)]
    lines = csv if format_ == "csv" else map(json.dumps, rows)
    (folder / f"a.{format_}").write_text("\n".join(lines) + "\n")
    unit, watermark = (" s", "2 s") if format_ == "csv" else ("", "2")
    text = f"PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10{unit} SLIDE 10{unit}"
    out = trellis.query(text).detect_stream(
        read_stream(spark, str(folder)), time="ts", event_id="id", watermark=watermark
    )
    started = out.writeStream.format("memory").queryName(f"of_{format_}").trigger(availableNow=True)
    started.option("checkpointLocation", str(tmp_path / "cp")).start().awaitTermination()
    assert [row["events"] for row in spark.table(f"of_{format_}").collect()] == [["e0", "e1"]]
    declared = "ts TIMESTAMP_NTZ, id STRING, x BIGINT" if format_ == "csv" else "ts BIGINT, id STRING, x BIGINT"
    again = read_stream(spark, str(folder), schema=declared)
    assert again.schema.simpleString() == read_stream(spark, str(folder)).schema.simpleString()


def test_mistakes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(DataError, match="is not there"):
        read_stream(spark, str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="has no files that tell them"):
        read_stream(spark, str(tmp_path / "in"))
    with pytest.raises(UsageError, match="--schema cannot be read"):
        read_stream(spark, str(tmp_path / "in"), schema="ts NOTYPE,")
    with pytest.raises(UsageError, match="there is no format `xml`"):
        read_stream(spark, str(tmp_path / "in"), schema="ts TIMESTAMP", input_format="xml")
    frame = read_stream(spark, str(tmp_path / "in"), schema="ts TIMESTAMP, id STRING, g STRING, x BIGINT")
    query = trellis.query(RISING)
    with pytest.raises(UsageError, match="takes a streaming data frame"):
        query.detect_stream(spark.range(3), event_id="id", watermark="1 s")
    with pytest.raises(UsageError, match="there is no table `other`"):
        query.detect_stream(frame, event_id="id", watermark="1 s", table="other")
    with pytest.raises(UsageError, match="need an id"):
        query.detect_stream(frame, watermark="1 s")
    empty = query.detect_stream(frame, event_id="id", watermark="1 s", table="windows")
    started = empty.writeStream.format("memory").queryName("nothing").trigger(availableNow=True)
    started.option("checkpointLocation", str(tmp_path / "cp")).start().awaitTermination()
    assert spark.table("nothing").columns == [
        "window_start", "window_end", "g", "count", "count_text", "listed", "late",
    ]  # fmt: skip
    assert not spark.table("nothing").count()


def test_ticks_of_a_day(spark: SparkSession, tmp_path: Path) -> None:
    table = read_table(data_file("ticks", "trades_aig_bac_ibm_2013-10-07.csv.gz"))
    table = table.sort_by("timestamp").slice(0, 3000).rename_columns({"timestamp": "ts"})
    table = table.append_column("id", pa.array(range(table.num_rows)))
    text = (
        "PATTERN T+ t[] WHERE [symbol] AND t[i].price > 1.0005 * t[i-1].price WITHIN 60 s SLIDE 30 s AGGREGATE COUNT(*)"
    )
    write_files(table, tmp_path / "in", 3)
    run(stream_of(spark, tmp_path, {"q": text}, watermark="1 s"))
    assert found(tmp_path / "out") == batch(text, table)
