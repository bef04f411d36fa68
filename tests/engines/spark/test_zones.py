"""Text that tells times without a zone comes out without one, in this process, on Spark, and by SQL's function."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.spark_streams import run_to_end
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.checkpoint import Checkpoint
from trellis.engines.spark.stream.running import Options, Stream
from trellis.streams.stream_output import read_committed

RISING = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x RETURN s.seen WITHIN 1 hour SLIDE 1 hour"
OPTIONS = {"time": "ts", "event_id": "id"}
CALL = (
    "SELECT start_time FROM trellis_detect(TABLE(SELECT ts, id, int(x) AS x, seen FROM zones), "
    f"query => '{RISING}', time => 'ts', event_id => 'id')"
)


def told_of_zones(mixed: bool) -> contextlib.AbstractContextManager[object]:
    return pytest.warns(trellis.TrellisWarning, match="have a zone") if mixed else contextlib.nullcontext()


def write_events(table: pa.Table, folder: Path, kind: str, number: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.{kind}"
    if kind == "json":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif kind == "csv":
        pc.write_csv(table, path)
    else:
        times = table["ts"].cast(pa.timestamp("us"))
        pq.write_table(table.set_column(0, "ts", times).set_column(3, "seen", times), path)


@pytest.mark.parametrize(("zones", "zone"), [(["", ""], None), (["Z", "Z"], "UTC"), (["", "Z"], "UTC")])
def test_text_without_zones_gives_times_without(
    spark: SparkSession, tmp_path: Path, zones: list[str], zone: str | None
) -> None:
    file = tmp_path / "events.csv"
    times = [f"2024-01-01T10:0{i}:00{one}" for i, one in enumerate(zones)]
    file.write_text("ts,id,x,seen\n" + "".join(f"{at},{i},{i},{at}\n" for i, at in enumerate(times)))
    query = trellis.query(RISING)
    warned = partial(told_of_zones, len(set(zones)) > 1)
    with warned():
        here = query.detect(file, **OPTIONS).to_arrow()
    assert here.schema.field("start_time").type == pa.timestamp("us", zone)
    assert here.schema.field("window_end").type == pa.timestamp("us", zone)
    assert here.schema.field(-1).type == pa.list_(pa.timestamp("us", zone))
    with warned():
        there = query.detect(file, engine="spark", spark=spark, **OPTIONS)
    assert there.to_arrow().equals(here)
    frame = spark.read.option("header", True).csv(str(file))  # all text
    with warned():
        text = trellis.query(RISING.replace(".x", ".id").replace("s.seen", "s.ts")).detect(frame, **OPTIONS)
    assert text.to_arrow()["start_time"].equals(here["start_time"])
    assert text.to_spark().schema["start_time"].dataType.simpleString() == ("timestamp" if zone else "timestamp_ntz")
    trellis.register(spark)
    frame.createOrReplaceTempView("zones")
    if zone is None:
        assert spark.sql(CALL).toArrow()["start_time"].equals(here["start_time"])
    else:  # SQL is planned before rows are seen
        with pytest.raises(Exception, match=r"(?s)is text that tells a zone, .*CAST\(`ts` AS TIMESTAMP"):
            spark.sql(CALL).collect()


def streamed(spark: SparkSession, folder: Path, kind: str) -> pa.Table:
    """Run a stream over the files of a directory to the end of its input, and return the results so far."""
    state = str(folder / f"{kind}-state")
    frame = read_stream(spark, str(folder / f"{kind}-in"), time="ts", known=Checkpoint.at(state).columns)
    options = Options(str(folder / f"{kind}-results"), state, "0 s", available_now=True)
    run = RunOptions(time="ts", event_id="id")
    run_to_end(Stream(spark, {"query": trellis.query(RISING)}, frame, options, run))
    return read_committed(folder / f"{kind}-results")


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_stream_gives_times_without_a_zone(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """As its first files have them. Later text with a zone is converted to UTC, by a restart too."""
    zones = ["", ""] if kind == "parquet" else ["", "+02:00"]
    rows = []
    for number, zone in enumerate(zones):
        hour = 10 + 2 * number
        times = [f"2024-01-0{1 + number}T{hour}:0{i}:00{zone}" for i in range(2)]
        part = pa.table({"ts": times, "id": [f"{number}{i}" for i in range(2)], "x": range(2), "seen": times})
        write_events(part, tmp_path / f"{kind}-in", kind, number)
        rows += [time.replace("T12", "T10" if zone else "T12").removesuffix(zone) for time in times]
        with told_of_zones(zone != ""):
            found = streamed(spark, tmp_path, kind)
    begun = [datetime.fromisoformat(time) for time in rows]
    for name in ("start_time", "window_start"):
        assert found.schema.field(name).type == pa.timestamp("us")
    assert found.schema.field("s_seen").type == pa.list_(pa.timestamp("us"))
    assert sorted(found["s_seen"].to_pylist()) == [begun[:2], begun[2:]]
    assert sorted(found["start_time"].to_pylist()) == [begun[0], begun[2]]


def test_streaming_frames_give_times_without_a_zone(spark: SparkSession, tmp_path: Path) -> None:
    write_events(pa.table({"ts": ["2024-01-01T10:00:00"], "id": ["a"], "x": [1], "seen": ["b"]}), tmp_path, "json", 0)
    for type_, wanted in (("STRING", "timestamp_ntz"), ("TIMESTAMP_NTZ", "timestamp_ntz"), ("TIMESTAMP", "timestamp")):
        frame = spark.readStream.schema(f"ts {type_}, id STRING, x BIGINT, seen STRING").json(str(tmp_path))
        found = trellis.query(RISING).detect_stream(frame, watermark="1 s", **OPTIONS)
        assert found.schema["start_time"].dataType.simpleString() == wanted
