"""A real cluster: Trellis is sent to its workers, and the loss of one of them changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numba.core.caching import UserProvidedCacheLocator

import trellis
from tests.spark.cluster import CONF, python_with, running_cluster, trellis_command, wait_until
from trellis.kernels import worlds
from trellis.spark.ship import package
from trellis.spark.unpack import PACKAGE
from trellis.spark.workers import NEEDED

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
    # What the README says that an executor needs: not Trellis, and not what only a driver uses.
    python = python_with(directory / "python", {*NEEDED, "llvmlite"})
    out = directory / "out"
    asked = ("detect", QUERY, str(directory / "events.parquet"), "--event-id", "id", "--out", str(out), "--json")
    with running_cluster(directory / "logs") as cluster:
        conf = CONF | {"spark.pyspark.python": python} | conf
        driver = cluster.start("driver", *trellis_command(*asked, "--master", cluster.master, conf=conf))
        wait_until("rows", lambda: list(directory.glob(".out.*/**/*.parquet")) or driver.poll() is not None, 150)
        cluster.kill("two")
        assert not out.exists()
        assert driver.wait(150) == 0
        assert "Running task" in cluster.executor_log("two")
        said = json.loads(cluster.log("driver").splitlines()[-1])
        assert cluster.sent.is_dir()
    rows = pq.read_table(out)
    assert said["results"] == str(rows.num_rows)
    return in_order(rows)


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([("g", "ascending"), ("rank", "ascending")])


def compiled_here(directory: Path, sent: Path) -> Path:
    """Give the workers what this process has compiled, as if they had run before; they would take as long as it."""
    kernels = sent / package(directory).stem / PACKAGE / "trellis" / "kernels"
    cache = directory / "compiled" / UserProvidedCacheLocator.get_suitable_cache_subpath(str(kernels / "worlds.py"))
    cache.mkdir(parents=True)
    for file in Path(worlds.world_ends.stats.cache_path).glob("*.nb?"):
        os.link(file, cache / file.name)
    return directory / "compiled"


def test_a_listing_survives_the_loss_of_a_worker(tmp_path: Path) -> None:
    table = events(24, 14)
    wanted = trellis.query(QUERY).detect(table, event_id="id").to_arrow()
    compiled = compiled_here(tmp_path, tmp_path / "logs" / "cache" / "trellis" / "sent")
    conf = {"spark.sql.shuffle.partitions": 12, "spark.executorEnv.NUMBA_CACHE_DIR": compiled}
    assert list_and_lose_a_worker(tmp_path, table, conf).equals(in_order(wanted))


@pytest.mark.slow
def test_a_longer_listing_survives_the_loss_of_a_worker(tmp_path: Path) -> None:
    """With nothing compiled before, and more rows than a worker holds."""
    table = events(60, 16)
    wanted = trellis.query(QUERY).detect(table, event_id="id").to_arrow()
    assert list_and_lose_a_worker(tmp_path, table, {"spark.sql.shuffle.partitions": 40}).equals(in_order(wanted))
