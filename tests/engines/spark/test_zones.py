"""Text that tells times without a zone comes out without one, in this process, on Spark, and by SQL's function."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis

RISING = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x RETURN s.seen WITHIN 1 hour SLIDE 1 hour"
OPTIONS = {"time": "ts", "event_id": "id"}
CALL = (
    "SELECT start_time FROM trellis_detect(TABLE(SELECT ts, id, int(x) AS x, seen FROM zones), "
    f"query => '{RISING}', time => 'ts', event_id => 'id')"
)


@pytest.mark.parametrize(("zones", "zone"), [(["", ""], None), (["Z", "Z"], "UTC"), (["", "Z"], "UTC")])
def test_text_without_zones_gives_times_without(
    spark: SparkSession, tmp_path: Path, zones: list[str], zone: str | None
) -> None:
    file = tmp_path / "events.csv"
    times = [f"2024-01-01T10:0{i}:00{one}" for i, one in enumerate(zones)]
    file.write_text("ts,id,x,seen\n" + "".join(f"{at},{i},{i},{at}\n" for i, at in enumerate(times)))
    query = trellis.query(RISING)
    mixed = len(set(zones)) > 1

    def warned() -> contextlib.AbstractContextManager[object]:
        return pytest.warns(trellis.TrellisWarning, match="have a zone") if mixed else contextlib.nullcontext()

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
    (row,) = spark.sql(CALL).toArrow().to_pylist()  # SQL is planned before rows are seen: always in UTC
    assert row["start_time"].isoformat() == "2024-01-01T10:00:00+00:00"
