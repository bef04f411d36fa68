"""Windows that are larger than a task, counted in tiles by Spark: the same counts as in this process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from trellis.engines.spark.batch import tiles
from trellis.engines.spark.batch.ranges import TaskSettings
from trellis.engines.spark.batch.tiles import TileSize
from trellis.errors import DataError, GroupTooLarge

pytestmark = pytest.mark.filterwarnings("ignore:.*share")
SETTINGS = ("spark.sql.execution.arrow.maxBytesPerBatch",)


def transfers(n: int) -> pa.Table:
    draw = np.random.default_rng(5)
    columns = {name: draw.integers(0, 20, n) for name in ("src", "dest")}
    bank = np.where(draw.random(n) < 0.8, "large", None)
    return pa.table({"ts": draw.integers(0, n, n), "id": np.arange(n), "x": draw.random(n), **columns, "bank": bank})


def test_large_groups_are_counted_in_tiles_and_small_ones_as_ever(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, whole = [], tiles.TiledCount.of
    monkeypatch.setattr(tiles.TiledCount, "of", lambda *given: cut.append(whole(*given)) or cut[-1])  # type: ignore[func-returns-value]
    table = transfers(4300)
    frame = spark.createDataFrame(table)
    query = trellis.query("PATTERN T+ t[] WHERE [bank] AND t[i].src = t[i-1].dest WITHIN 9000 SLIDE 9000")
    trends = query.detect(frame, time="ts", event_id="id")
    trends.tasks = TaskSettings(tile=TileSize(memory=400_000))  # three tiles of one word, four of five
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    here = query.detect(table, time="ts", event_id="id")
    assert trends.counts().to_arrow().equals(here.counts().to_arrow())
    assert [group.tiling.tiles for group in cut] == [3, 4]
    assert trends.statistics == here.statistics
    assert {key: spark.conf.get(key, None) for key in SETTINGS} == before
    assert max(map(int, here.counts().to_arrow()["count_text"].to_pylist())) > 2**64  # several words for a number


def test_trends_of_a_large_group_are_given_by_rank(spark: SparkSession) -> None:
    """From the tiles that they go through, with the same rows as in this process; so are those of small groups."""
    table = transfers(1500)
    frame = spark.createDataFrame(table).repartition(2)
    conditions = "t[i].src = t[i-1].dest AND t[i].x > t[i-1].x AND t[i].x < t[i-1].x + 0.1"
    query = trellis.query(f"PATTERN T+ t[] WHERE [bank] AND {conditions} RETURN SUM(t.x) AS total")
    here, there = query.detect(table, time="ts", event_id="id"), query.detect(frame, time="ts", event_id="id")
    there.tasks = TaskSettings(tile=TileSize(500))
    drawn = here.sample(40, seed=1).to_arrow()
    assert there.sample(40, seed=1).to_arrow().equals(drawn)
    assert max(drawn["length"].to_pylist()) > 2
    assert there.picked_events({1: [7]}).equals(here.picked_events({1: [7]}))
    full = frame.selectExpr("ts", "coalesce(src, 0) AS src", "x")  # columns without NULL, and no ids
    query = trellis.query("PATTERN T+ t[] WHERE t[i].src = t[i-1].src + 1 AND t[i].x > t[i-1].x + 0.5")
    there = query.detect(full, time="ts")
    there.tasks = TaskSettings(tile=TileSize(500))
    here = query.detect(table.select(["ts", "src", "x"]), time="ts")
    assert there.picked_events({0: [3, 99]}).equals(here.picked_events({0: [3, 99]}))
    there = trellis.query("PATTERN T+ t[] WHERE t[i].src >= t[i-1].src").detect(frame, time="ts", event_id="id")
    there.tasks = TaskSettings(tile=TileSize(700))
    with pytest.raises(DataError, match=r"fewer than 2\^62, and there are about 2\^"):
        there.picked_events({0: [0]})


def test_what_cannot_be_tiled_is_refused_with_its_size(spark: SparkSession) -> None:
    frame = spark.range(200_000).selectExpr("id AS ts", "id", "id AS x")
    trends = trellis.query("PATTERN T+ t[] WHERE t[i].x > t[i-1].x REPORT maximal").detect(frame, event_id="id")
    trends.tasks = TaskSettings(memory=1 << 22)
    with pytest.raises(GroupTooLarge, match=r"a window .* has 200,000 events, which take about 0\.0 GB"):
        trends.count()
    twice = frame.withColumn("id", frame.id % 199_999)
    trends = trellis.query("PATTERN T+ t[] WHERE t[i].x > t[i-1].x + 100000").detect(twice, event_id="id")
    trends.tasks = TaskSettings(tile=TileSize(60_000))
    with pytest.raises(DataError, match="id"):
        trends.count()
