"""Ties on Spark: columns behind the time order its events, and many events of one time are told by a warning."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import trellis
from trellis.errors import DataError

pytestmark = pytest.mark.spark

RISING = "PATTERN E+ e[] WHERE e[i].x > e[i-1].x REPORT maximal"
ROWS = [(1, "b", 1, "a"), (2, "é", 3, "b"), (2, "d", 2, "c"), (2, None, 9, "x"), (3, "a", 4, "d"), (2, "é", 7, "b")]


def test_columns_break_ties_bad_rows_are_told_and_repeated_ids_dropped(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, "ts bigint, seq string, x int, id string")
    query, named = trellis.query(RISING), {"time": ("ts", "seq"), "event_id": "id"}
    with pytest.raises(DataError, match="1 row has no readable tie-breaker in the column `seq`"):
        query.detect(frame, **named).count()
    kept = query.detect(frame, **named, on_bad_rows="drop")
    assert kept.to_arrow()["events"].to_pylist() == [["a", "c", "b", "d"]]
    local = query.detect(frame, **named, on_bad_rows="drop", engine="local")
    assert local.to_arrow()["events"].to_pylist() == [["a", "c", "b", "d"]]


@pytest.mark.parametrize("window", ["", " WITHIN 4 SLIDE 1"])
def test_many_events_of_one_time_are_told_once_each(spark: SparkSession, window: str) -> None:
    rows = [(i, i, 1) for i in range(20)] + [(5, 100, 1), (9, 101, 1), (9, 102, 2)]
    frame = spark.createDataFrame(rows, "ts bigint, id bigint, g int")
    query = trellis.query(f"PATTERN E+ e[] WHERE [g] AND e[i].id > e[i-1].id{window}")
    with pytest.warns(UserWarning, match=r"4 of 23 events \(17.4%\) share `ts` with another event of their partition"):
        query.detect(frame, time="ts", event_id="id").count()
    lazy = query.detect(frame.coalesce(1), time="ts", event_id="id").to_spark()
    with pytest.warns(UserWarning, match=r"4 of \d+ events .* share `ts`|2 of \d+ events .* share `ts`"):
        lazy.collect()
