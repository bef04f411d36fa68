"""Lazy frames of large groups: all tasks list a part of them, through Spark's own shuffle."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.engines.spark.cluster import CONF, running_cluster, workers_python
from trellis.caches import compiled_directory
from trellis.engines.spark.batch.ranges import TaskSettings

QUERY = "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any"
SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession
import trellis
from trellis.engines.spark.batch.ranges import TaskSettings
session = SparkSession.builder.master(sys.argv[1]).config(map=json.loads(sys.argv[2])).getOrCreate()
frame = session.range(17).selectExpr("id AS ts", "id", "id AS x", "0 AS g")
trends = trellis.query(sys.argv[3]).detect(frame, event_id="id")
trends.tasks = TaskSettings(at_once=1000, rows=20000)
def where(batches):
    import os, pyarrow as pa
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pylist([{"where": os.getcwd(), "rows": rows}])
found = trends.to_spark().mapInArrow(where, "where string, rows long").groupBy("where").sum("rows").collect()
print(json.dumps([list(row) for row in found]))
"""


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([("g", "ascending"), ("rank", "ascending")])


def test_a_lazy_frame_has_all_rows_of_large_and_small_groups(spark: SparkSession) -> None:
    table = pa.table({"ts": range(30), "id": range(30), "x": range(30), "g": [0] * 12 + [1] * 4 + [2] * 11 + [3, 4, 5]})
    trends = trellis.query(QUERY).detect(spark.createDataFrame(table), event_id="id")
    trends.tasks = TaskSettings(at_once=100, rows=300)
    before = spark.sparkContext.statusTracker().getJobIdsForGroup()
    frame = trends.to_spark()
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == before  # nothing has run
    wanted = trellis.query(QUERY).detect(table, event_id="id").to_arrow()
    assert in_order(frame.toArrow().cast(wanted.schema)).equals(in_order(wanted))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReusedExchange" in plan  # the events are shuffled once for both


@pytest.mark.slow
def test_two_workers_list_half_of_a_large_group_each(tmp_path: Path) -> None:
    """They have directories of their own, and no other is named."""
    trellis.query(QUERY).detect(pa.table({"ts": [0], "id": [0], "x": [0], "g": [0]}), event_id="id").to_arrow()
    compiled = compiled_directory()
    conf = {
        "spark.executorEnv.NUMBA_CACHE_DIR": str(compiled),
        "spark.sql.shuffle.partitions": "2",
    }
    (tmp_path / "script.py").write_text(SCRIPT)
    with running_cluster(tmp_path / "logs") as cluster:
        settings = json.dumps({key: str(value) for key, value in (CONF | conf).items()})
        command = (sys.executable, tmp_path / "script.py", cluster.master, settings, QUERY)
        driver = cluster.start("driver", *command, PYSPARK_PYTHON=str(workers_python(tmp_path / "python")))
        assert driver.wait(400) == 0
        rows = dict(json.loads(cluster.log("driver").splitlines()[-1]))
    one, two = sorted(rows)
    assert "one-work" in one
    assert "two-work" in two
    assert sum(rows.values()) == 2**17 - 1
    assert abs(rows[one] - rows[two]) <= 2
