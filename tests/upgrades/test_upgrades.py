"""What earlier versions wrote is read and carried on: see README.md."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.compare import plain_rows
from tests.spark_streams import run_to_end
from tests.streams.test_bucket import in_any_order
from tests.upgrades.cases import DETECTED, FIRST, FIXTURES, FOUND, QUERIES, SUMMED, events, unpack
from tests.upgrades.write_fixtures import put, put_naive
from trellis.archive import Archive
from trellis.engines.options import RunOptions
from trellis.engines.spark.archive.follow import ArchiveStream
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.checkpoint import Checkpoint
from trellis.engines.spark.stream.running import Options, Stream
from trellis.io.read import read_table
from trellis.streams.stream_output import WINDOWS, StreamOutput, read_committed


def detected(text: str, table: pa.Table) -> list[str]:
    rows = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    return in_any_order(plain_rows(rows))


def written(folder: Path) -> list[str]:
    return in_any_order(plain_rows(read_committed(folder).to_pylist()))


def test_the_output_of_a_stream_is_read(tmp_path: Path) -> None:
    folder = unpack("stream", tmp_path / "stream")
    for name, text in QUERIES.items():
        assert written(folder / "results" / name) == detected(text, events().slice(0, FIRST))
    assert read_committed(folder / "results" / "rising", WINDOWS).num_rows


def carried_on(spark: SparkSession, folder: Path) -> Stream:
    """Run the stream again, up to the end of its input."""
    frame = read_stream(spark, str(folder / "in"), files_a_batch=1)
    options = Options(str(folder / "results"), str(folder / "state"), "2 s", available_now=True, keep_late=True)
    queries = {name: trellis.query(text) for name, text in QUERIES.items()}
    return run_to_end(Stream(spark, queries, frame, options, RunOptions(time="ts", event_id="id")))


def test_a_checkpoint_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    folder = unpack("stream", tmp_path / "stream")
    for name in QUERIES:
        StreamOutput(folder / "results" / name).take_back()
    assert carried_on(spark, folder).totals.events == 0  # the end of the input is decided again, from its state
    for name, text in QUERIES.items():
        assert written(folder / "results" / name) == detected(text, events().slice(0, FIRST)), name
    for number, begin, end in ((2, FIRST, 90), (3, 90, 120)):
        put(events().slice(begin, end - begin), folder / "in", number)
    stream = carried_on(spark, folder)
    assert (stream.totals.events, stream.totals.late) == (60, 0)
    for name, text in QUERIES.items():
        assert written(folder / "results" / name) == detected(text, events()), name


def test_an_archive_answers_and_grows(tmp_path: Path) -> None:
    folder = unpack("archive", tmp_path / "archive")
    archive = Archive.open(folder / "archive")
    _answers_as(archive, tmp_path / "before", events().slice(0, FIRST))
    archive.append(events().slice(FIRST))
    _answers_as(archive, tmp_path / "after", events())


def _answers_as(archive: Archive, place: Path, table: pa.Table) -> None:
    """Check that an archive answers as one does that is built now, of the same events."""
    built = Archive.build(table, place, time="ts", type="n", event_id="id", key="g", leaf=5)
    found, wanted = (
        in_any_order(plain_rows(one.find(FOUND, exact=True).trends.to_arrow().to_pylist())) for one in (archive, built)
    )
    assert found == wanted
    assert len(wanted) > 10


def test_the_checkpoint_of_an_archive_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    folder = unpack("archive", tmp_path / "archive")
    put(events().slice(FIRST), folder / "in", 1)
    frame = read_stream(spark, str(folder / "in"), time="ts", files_a_batch=1)
    following = ArchiveStream(frame, str(folder / "archive"), str(folder / "state"), delay="1 s", available_now=True)
    following.start()
    try:
        following.wait()
    finally:
        following.stop()
    assert following.events == 60
    _answers_as(Archive.open(folder / "archive"), tmp_path / "whole", events())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_stream_that_gave_times_in_utc_goes_on_so(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    folder = unpack("times", tmp_path / "times")
    put_naive(events().slice(40), folder / f"{kind}-in", kind, 1)
    state = str(folder / f"{kind}-state")
    frame = read_stream(spark, str(folder / f"{kind}-in"), known=Checkpoint.at(state).columns)
    options = Options(str(folder / f"{kind}-results"), state, "2 s", available_now=True)
    run = RunOptions(time="ts", event_id="id")
    run_to_end(Stream(spark, {"query": trellis.query(QUERIES["rising"])}, frame, options, run))
    assert written(folder / f"{kind}-results") == detected(QUERIES["rising"], events())


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_output_of_detect_is_read(tmp_path: Path, engine: str) -> None:
    folder = unpack("outputs", tmp_path / "outputs")
    found = read_table([folder / engine])
    table = read_table([folder / "events.parquet"])
    assert plain_rows(found.to_pylist()) == plain_rows(
        trellis.query(DETECTED).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    )
    again = trellis.query("PATTERN T+ t[] WHERE t[i].length > t[i-1].length WITHIN 3 s")  # results are events too
    assert again.detect(found.drop_columns("events"), time="start_time").count() > 0


def test_a_snapshot_of_arrivals_goes_on() -> None:
    state = (FIXTURES / "arrivals.state").read_bytes()
    query = trellis.query("PATTERN E+ e[] WHERE [g] AND NEXT(e).x > e.x WITHIN 3 SLIDE 3")
    arriving = query.arrivals(time="ts", event_id="id", state=state)
    found = arriving.take(pa.table({"ts": [9], "id": ["z"], "x": [0], "g": [0]}))
    assert found["events"].to_pylist() == [["a", "b"]]


def test_sums_of_single_windows_go_on() -> None:
    state = (FIXTURES / "sums.state").read_bytes()
    arriving = trellis.query(SUMMED).arrivals(time="ts", event_id="id", state=state)
    found = in_any_order(plain_rows([*arriving.take(events().slice(FIRST)).to_pylist(), *arriving.end().to_pylist()]))
    assert len(found) == 58  # the other 37 windows of partitions had been told
    assert set(found) <= set(detected(SUMMED, events()))
