"""A graph that is larger than the driver's heap: the cluster keeps it, and the driver holds a piece of it at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import trellis
from tests.engines.spark.cluster import CONF, QUICK_START, running_cluster
from tests.engines.spark.graphs import small_driver

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_driver_with_a_heap_smaller_than_the_graph(tmp_path: Path) -> None:
    conf = CONF | {
        "spark.driver.memory": "480m",  # with less Spark does not start
        "spark.driver.extraJavaOptions": f"{QUICK_START} -XX:+ExitOnOutOfMemoryError",
        "spark.executor.memory": "1500m",
        "spark.sql.shuffle.partitions": 8,
        "spark.ui.showConsoleProgress": "false",
    }
    source = str(Path(trellis.__file__).parents[1])
    try:
        with running_cluster(tmp_path / "logs", ()) as cluster:
            cluster.start_worker("one", cores=2, memory="1600m")
            given = json.dumps({"spark.master": cluster.master} | {name: str(value) for name, value in conf.items()})
            driver = cluster.start(
                "driver", sys.executable, small_driver.__file__, given, PYTHONPATH=source, PYSPARK_PYTHON=sys.executable
            )
            assert driver.wait(900) == 0
            said = json.loads(cluster.log("driver").splitlines()[-1])
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "logs" / "scratch", tmp_path / "logs" / "one-work"], check=True)
    assert said["heap"] < small_driver.EDGES * small_driver.NOTE
    assert (said["groups"], said["accounts"]) == (2, small_driver.ACCOUNTS)
