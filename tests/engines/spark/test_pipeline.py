"""A Declarative Pipeline, run by Spark's own command: detecting is lazy, so that it may be a part of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.engines.spark.cluster import SPARK_HOME
from trellis.engines.spark.session.session import find_java

QUERY = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"
EVENTS = 'spark.range(9).selectExpr("id", "id AS ts", "(id * 3) % 5 AS x")'
SPEC = """
name: trends
storage: file://{folder}/storage
libraries: [{{glob: {{include: "transformations/**"}}}}]
configuration: {{spark.sql.shuffle.partitions: "2"}}
"""
SOURCE = f"""
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
import trellis
spark = SparkSession.active()
frame = trellis.query("{QUERY}").detect({EVENTS}, time="ts", event_id="id").to_spark()
trellis.register(spark)

@dp.materialized_view
def numbers():
    return {EVENTS}

@dp.materialized_view
def trends():
    return frame

@dp.materialized_view
def of_a_dataset():
    return spark.sql("SELECT * FROM trellis_detect(TABLE(numbers), '{QUERY}', time => 'ts', event_id => 'id')")
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_pipeline_has_frames_of_trends_and_the_function_of_sql(tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "trends.py").write_text(SOURCE)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK_HOME), "JAVA_HOME": str(find_java()),
    }  # fmt: skip
    command = [SPARK_HOME / "bin" / "spark-pipelines", "run", "--spec", "spark-pipeline.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=500)
    # Spark 4.3's command then fails on messages of its own about Python tasks, so its exit code tells nothing.
    assert b"Run is COMPLETED" in done.stdout + done.stderr, done.stderr.decode()[-2000:]
    table = {"id": range(9), "ts": range(9), "x": [i * 3 % 5 for i in range(9)]}

    wanted = trellis.query(QUERY).detect(pa.table(table), time="ts", event_id="id").to_arrow()["events"].to_pylist()
    for name in ("trends", "of_a_dataset"):
        rows = pq.read_table(tmp_path / "spark-warehouse" / name)
        assert sorted(rows["events"].to_pylist()) == sorted(wanted)
