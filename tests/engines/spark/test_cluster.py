"""A real cluster: Trellis is sent to its workers, and the loss of one of them changes nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.engines.spark.cluster import (
    CONF,
    running_cluster,
    trellis_command,
    wait_until,
    workers_python,
)
from trellis.caches import compiled_directory

pytestmark = pytest.mark.spark
QUERY = "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any"


def events(groups: int, size: int) -> pa.Table:
    """Rising values in groups, in which every choice of events is a trend."""
    n = groups * size
    group, value = [i % groups for i in range(n)], [i // groups for i in range(n)]
    return pa.table({"ts": range(n), "id": range(n), "g": group, "x": value})


def list_and_lose_a_worker(directory: Path, table: pa.Table, conf: dict[str, Any]) -> pa.Table:
    """Have the command list on a cluster of two, kill one when the first rows are there; return all rows, in order."""
    pq.write_table(table, directory / "events.parquet")
    out = directory / "out"
    asked = ("detect", QUERY, str(directory / "events.parquet"), "--event-id", "id", "--out", str(out), "--json")
    with running_cluster(directory / "logs") as cluster:
        command = trellis_command(*asked, "--master", cluster.master, conf=CONF | conf)
        driver = cluster.start("driver", *command)
        wait_until("rows", lambda: list(directory.glob(".out.*/**/*.parquet")) or driver.poll() is not None, 400)
        cluster.kill("two")
        assert not out.exists()
        assert driver.wait(400) == 0
        assert "Running task" in cluster.executor_log("two")
        said = json.loads(cluster.log("driver").splitlines()[-1])
        assert cluster.sent.is_dir()
    rows = pq.read_table(out)
    assert said["results"] == str(rows.num_rows)
    return in_order(rows)


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([("g", "ascending"), ("rank", "ascending")])


@pytest.mark.slow
def test_a_listing_survives_the_loss_of_a_worker(tmp_path: Path) -> None:
    table = events(24, 14)
    wanted = trellis.query(QUERY).detect(table, event_id="id").to_arrow()
    compiled = compiled_directory()
    conf = {
        "spark.executorEnv.NUMBA_CACHE_DIR": compiled,
        "spark.pyspark.python": workers_python(tmp_path / "python"),
        "spark.sql.shuffle.partitions": 12,
    }
    assert list_and_lose_a_worker(tmp_path, table, conf).equals(in_order(wanted))


@pytest.mark.slow
def test_a_longer_listing_in_an_environment_that_is_sent_along(tmp_path: Path) -> None:
    """As the README has it, with nothing compiled before, and more rows than a worker has memory for."""
    table = events(64, 17)
    wanted = trellis.query(QUERY).detect(table, event_id="id").to_arrow()
    archive = packed(workers_python(tmp_path / "python"), tmp_path / "environment.tar.gz")
    conf = {
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.sql.shuffle.partitions": 40,
    }
    try:
        assert list_and_lose_a_worker(tmp_path, table, conf).equals(in_order(wanted))
    finally:
        for large in (archive, *tmp_path.glob("logs/*-work/app-*/*/environment*"), *tmp_path.glob("logs/scratch")):
            subprocess.run(["rm", "-rf", large], check=True)


def packed(python: Path, archive: Path) -> Path:
    """Pack an environment; Spark keeps who may run a file only of what is compressed."""
    environment = ("-C", python.parents[1], "bin", "lib", "pyvenv.cfg")
    subprocess.run(["tar", "--dereference", "-I", "gzip -1", "-cf", archive, *environment], check=True)
    return archive
