"""Operators on Spark, over frames and over streams, find what they find in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.graphs.payments import BEGIN, SECOND, example, payments
from tests.graphs.test_run import Followers, Friends, friendships, social
from trellis.api.pipeline import Pipeline
from trellis.engines.spark.graphs.stream import GraphStream
from trellis.engines.spark.session.failures import mistake_in
from trellis.errors import DataError, OperatorFailed, UsageError
from trellis.graphs import Event, Merger, Operator, Splitter, TopK, count_windows, time_windows
from trellis.streams.lock import StreamLock
from trellis.streams.stream_output import read_committed

pytestmark = pytest.mark.spark

SCHEMA = "ts timestamp, id long, currency string, payer string, payee string, amount double"


def the_example() -> Pipeline:
    names = example()
    return trellis.pipeline(names["SPLITTER"], names["PaymentTriangles"], names["MERGER"])


def rows_of(found: Any) -> list[dict[str, Any]]:
    """The rows of a table, of what was found here, or of a frame."""
    table = found if isinstance(found, pa.Table) else found.toArrow() if hasattr(found, "toArrow") else found.table
    return table.to_pylist()  # type: ignore[no-any-return]


class Refuses(Operator):
    output = {"n": "int64"}

    def on_event(self, event: Event) -> Any:
        if event.id == 7:
            raise ValueError("not this one")


def test_over_a_frame(spark: SparkSession) -> None:
    table = payments(100, 4)
    frame = spark.createDataFrame(table)
    here = rows_of(the_example().run(table, event_id="id"))
    assert rows_of(the_example().run(frame, event_id="id", instances=3)) == here
    assert len(here) > 5
    with pytest.raises(Exception, match="not this one") as raised:
        trellis.pipeline(Splitter.by_key("currency"), Refuses).run(frame, event_id="id").collect()
    mistake = mistake_in(raised.value)
    assert isinstance(mistake, OperatorFailed)
    assert "the operator Refuses failed at the event 7 in the partition" in mistake.what
    assert "in on_event: raise ValueError" in str(mistake)
    with pytest.raises(UsageError, match="rows on Spark have no order of their own"):
        the_example().run(frame)
    with pytest.raises(UsageError, match="0 instances"):
        the_example().run(frame, event_id="id", instances=0)
    with pytest.raises(UsageError, match="no column `curency` to split them by"):
        trellis.pipeline(Splitter.by_key("curency"), Refuses).run(frame, event_id="id")
    with pytest.raises(UsageError, match="no streaming data frame"):
        the_example().stream(frame, event_id="id", out="o", checkpoint="c", watermark="1 s")


class Rests(Operator):
    """Tells of each payment, and when an account has not paid for half an hour or at the hour."""

    output = {"said": "string"}

    def __init__(self) -> None:
        self.until = 0

    def on_event(self, event: Event) -> Any:
        self.until = event.time + 1800 * SECOND
        self.call_at(self.until, "rests")
        yield {"said": f"pays {event.amount}"}

    def on_time(self, time: Any, key: Any) -> Any:
        if key == "every" or time == self.until:
            yield {"said": f"{key} {(time - BEGIN) // SECOND}"}


class RestsToTheEnd(Rests):
    time_runs_on = True


def with_calls(operator: type[Operator] = Rests) -> Pipeline:
    return trellis.pipeline(Splitter.by_key("payer", every="1 hour"), operator, Merger(order=["said"], join_calls=True))


@pytest.mark.parametrize("operator", [Rests, RestsToTheEnd])
def test_calls_over_a_frame(spark: SparkSession, operator: type[Operator]) -> None:
    table = payments(60, 5)
    here = rows_of(with_calls(operator).run(table, event_id="id"))
    assert {row["said"].split()[0] for row in here} == {"pays", "rests", "every"}
    assert rows_of(with_calls(operator).run(spark.createDataFrame(table), event_id="id", instances=3)) == here


@pytest.mark.parametrize("operator", [Rests, pytest.param(RestsToTheEnd, marks=pytest.mark.slow)])
def test_calls_over_a_stream_that_is_restarted(spark: SparkSession, tmp_path: Path, operator: type[Operator]) -> None:
    table = payments(60, 5).sort_by([("ts", "ascending")])
    for begin, end in ((0, 25), (25, 60)):
        put_file(table.slice(begin, end - begin), tmp_path)
        finished(stream(spark, tmp_path, with_calls(operator)))
        here = rows_of(with_calls(operator).run(table.slice(0, end), event_id="id"))
        assert rows_of(read_committed(tmp_path / "out")) == here


@pytest.mark.slow
def test_all_ways_to_split_and_to_merge_over_a_frame(spark: SparkSession) -> None:
    table = payments(200, 6)
    best = Merger(combine=TopK(3, key="part", by="-n"))
    pipelines = [
        trellis.pipeline(Splitter.by_key("payer"), Followers, best),
        trellis.pipeline(Splitter.by_key("payer", ranges=[(None, "a3"), ("a3", None)]), Followers),
        trellis.pipeline(time_windows("1 hour", "30 minutes"), Followers),
        trellis.pipeline(count_windows(5, 2, key="currency"), Followers, Merger(order=["-n", "part"])),
    ]
    for pipeline in pipelines:
        here = rows_of(pipeline.run(table, event_id="id"))
        assert rows_of(pipeline.run(spark.createDataFrame(table), event_id="id")) == here
        assert here
    friends = trellis.pipeline(
        Splitter.by_key("comment", store=friendships, broadcast=lambda event: event.kind == "friends"), Friends
    )
    events = social().append_column("id", pa.array(range(8)))
    here = rows_of(friends.run(events, event_id="id"))
    for instances in (1, 3):
        frame = spark.createDataFrame(events)
        assert rows_of(friends.run(frame, event_id="id", instances=instances)) == here


# --- Streams ----------------------------------------------------------------------------------------------------------


def put_file(table: pa.Table, folder: Path) -> None:
    """Add a file of events, in a random order."""
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    path = folder / "in" / f"{number:03}.parquet"
    pq.write_table(table.take(pa.array(np.random.default_rng(number).permutation(table.num_rows))), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def stream(spark: SparkSession, folder: Path, pipeline: Pipeline, schema: str = SCHEMA, **more: Any) -> GraphStream:
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    given = {"out": folder / "out", "checkpoint": folder / "cp", "watermark": "1 minute", "available_now": True}
    return pipeline.stream(frame, event_id="id", **{**given, **more})


def finished(running: GraphStream) -> GraphStream:
    running.start()
    assert running.wait()
    running.flush()
    return running


def test_over_a_stream_and_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    table = payments(120, 4).sort_by([("ts", "ascending")])
    pipeline = the_example()
    put_file(table.slice(0, 70), tmp_path)
    first = finished(stream(spark, tmp_path, pipeline))
    assert rows_of(read_committed(tmp_path / "out")) == rows_of(pipeline.run(table.slice(0, 70), event_id="id"))
    assert (first.totals.events, first.totals.late, first.totals.bad) == (70, 0, 0)
    put_file(table.slice(70), tmp_path)
    second = finished(stream(spark, tmp_path, pipeline))
    assert rows_of(read_committed(tmp_path / "out")) == rows_of(pipeline.run(table, event_id="id"))
    assert (second.totals.events, second.totals.late) == (50, 0)
    with pytest.raises(UsageError, match="is of another stream: its operator is PaymentTriangles, not Refuses"):
        stream(spark, tmp_path, trellis.pipeline(Splitter.by_key("currency"), Refuses))
    with pytest.raises(UsageError, match="is no checkpoint of such a stream"):
        stream(spark, tmp_path, pipeline, checkpoint=tmp_path / "in")
    with pytest.raises(UsageError, match="is the output of another stream"):
        stream(spark, tmp_path, pipeline, checkpoint=tmp_path / "cp2").start()
    (tmp_path / "out").rename(tmp_path / "aside")
    with pytest.raises(UsageError, match="is not there any more, and the results that it had would be missing"):
        stream(spark, tmp_path, pipeline).start()
    (tmp_path / "aside").rename(tmp_path / "out")
    lock = StreamLock()
    for place, wrong in ((tmp_path / "cp", "the checkpoint"), (tmp_path / "out" / "_log", "the output")):
        lock.take(place, "")
        with pytest.raises(UsageError, match=f"{wrong} .* is in use"):
            stream(spark, tmp_path, pipeline).start()
        lock.release()
    (tmp_path / "cp" / "trellis.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be read"):
        stream(spark, tmp_path, pipeline)


class Sums(Operator):
    """Adds up the amounts of the triangles that were found in an hour."""

    output = {"sum": "float64", "triangles": "int64"}

    def __init__(self) -> None:
        self.sum, self.triangles = 0.0, 0

    def on_event(self, event: Event) -> None:
        self.sum, self.triangles = self.sum + event.amount, self.triangles + 1

    def on_close(self) -> Any:
        yield {"sum": self.sum, "triangles": self.triangles}


def the_chain() -> Pipeline:
    return the_example() >> trellis.pipeline(time_windows("1 hour"), Sums)


def test_a_chain_over_a_frame(spark: SparkSession) -> None:
    table = payments(120, 4)
    whole = rows_of(the_chain().run(table, event_id="id"))
    assert len(whole) > 1
    frame = spark.createDataFrame(table.to_pandas())
    assert rows_of(the_chain().run(frame, event_id="id", instances=3)) == whole


@pytest.mark.slow
def test_a_chain_over_a_stream_with_ever_other_instances(spark: SparkSession, tmp_path: Path) -> None:
    table, chain = payments(120, 4).sort_by([("ts", "ascending")]), the_chain()
    for begin, end, instances in ((0, 40, 3), (40, 80, 5), (80, 120, 1)):
        put_file(table.slice(begin, end - begin), tmp_path)
        done = finished(stream(spark, tmp_path, chain, instances=instances))
        assert (done.totals.events, done.totals.late) == (40, 0)
        found = rows_of(read_committed(tmp_path / "out"))
        assert found == rows_of(chain.run(table.slice(0, end), event_id="id"))
    finished(stream(spark, tmp_path, chain, instances=2))  # nothing new has come: what was handed over is held
    assert rows_of(read_committed(tmp_path / "out")) == rows_of(chain.run(table, event_id="id"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "pipeline",
    [
        trellis.pipeline(Splitter.by_key("payer"), Followers, Merger(combine=TopK(3, key="part", by="-n"))),
        trellis.pipeline(time_windows("1 hour", "30 minutes"), Followers),
        trellis.pipeline(count_windows(4, key="currency"), Followers, Merger(order=["-n"])),
    ],
    ids=["best", "windows", "counts"],
)
def test_all_ways_over_streams_that_are_restarted(spark: SparkSession, tmp_path: Path, pipeline: Pipeline) -> None:
    table = payments(150, 8).sort_by([("ts", "ascending")])
    for begin, end in ((0, 40), (40, 90), (90, 150)):
        put_file(table.slice(begin, end - begin), tmp_path)
        if begin != 40:  # the second file waits for the third
            finished(stream(spark, tmp_path, pipeline))
            here = rows_of(pipeline.run(table.slice(0, end), event_id="id"))
            assert rows_of(read_committed(tmp_path / "out")) == here


@pytest.mark.slow
def test_late_and_bad_events_and_the_store_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    def moments(table: pa.Table) -> pa.Table:
        times = [None if t is None else BEGIN + t * SECOND for t in table["time"].to_pylist()]
        return table.set_column(0, "time", pa.array(times, pa.timestamp("us", "UTC")))

    events = social().append_column("id", pa.array(range(8)))
    late = pa.table({"time": [1, None], "kind": ["friends"] * 2, "a": ["u2"] * 2, "b": ["u9"] * 2,
                     "comment": pa.array([None, None], pa.string()), "id": [100, 101]})  # fmt: skip
    put_file(moments(events.slice(0, 5)), tmp_path)
    put_file(moments(pa.concat_tables([late, events.slice(5, 2)], promote_options="permissive")), tmp_path)
    put_file(moments(events.slice(7)), tmp_path)
    pipeline = trellis.pipeline(
        Splitter.by_key("comment", store=friendships, broadcast=lambda event: event.kind == "friends"), Friends
    )
    schema = "time timestamp, kind string, a string, b string, comment string, id long"
    done = finished(stream(spark, tmp_path, pipeline, schema, watermark="1 s", time="time"))
    assert (done.totals.events, done.totals.late, done.totals.bad) == (10, 1, 1)
    here = rows_of(pipeline.run(moments(events), event_id="id"))
    assert rows_of(read_committed(tmp_path / "out")) == here
