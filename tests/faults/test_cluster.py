"""Ten kills on one cluster: a worker, a Python of a worker and the driver, while it writes, counts and joins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.engines.spark.cluster import CONF, Cluster, running_cluster, trellis_command, workers_python
from tests.faults.killing import after_tasks, kill_python_worker
from trellis.caches import compiled_directory

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERY = "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any"
GROUPS, SIZE = 24, 12
JOIN_GROUPS, JOIN_SIZE = 8, 9


def events(groups: int, size: int) -> pa.Table:
    """Rising values in groups, in which every choice of events is a trend."""
    n = groups * size
    group, value = [i % groups for i in range(n)], [i // groups for i in range(n)]
    return pa.table({"ts": range(n), "id": range(n), "g": group, "x": value})


class Asked:
    """A command on the cluster, what it should give, and how many tasks a worker does before something is killed."""

    def __init__(self, directory: Path, name: str, table: pa.Table, arguments: tuple[str, ...], tasks: int) -> None:
        self.file, self.out = directory / f"{name}.parquet", directory / f"{name}-out"
        pq.write_table(table, self.file)
        self.table, self.arguments, self.tasks = table, arguments, tasks

    def command(self, cluster: Cluster, conf: dict[str, Any]) -> list[str]:
        verb, *more = self.arguments
        written = ("--out", str(self.out), "--overwrite") if verb == "detect" else ()
        given = (verb, QUERY, str(self.file), "--event-id", "id", *written, *more, "--json", "--master", cluster.master)
        return trellis_command(*given, conf=CONF | conf)

    def check(self, said: str) -> None:
        """Compare with what this process finds."""
        wanted = trellis.query(QUERY).detect(self.table, event_id="id")
        about = json.loads(said.splitlines()[-1])
        if self.arguments[0] == "count":
            assert about["results"] == str(wanted.count())
        else:
            rows = pq.read_table(self.out)
            assert in_order(rows).equals(in_order(wanted.to_arrow()))
            assert not list(self.out.parent.glob(f".{self.out.name}*")), "what a killed run left"


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([("g", "ascending"), ("rank", "ascending")])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[Cluster]:
    with running_cluster(place / "logs") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def conf(place: Path, cluster: Cluster) -> dict[str, Any]:
    trellis.query(QUERY).detect(events(3, 3), event_id="id").to_arrow()  # compiles what the workers are given
    return {
        "spark.executorEnv.NUMBA_CACHE_DIR": compiled_directory(),
        "spark.pyspark.python": workers_python(place / "python"),
        "spark.sql.shuffle.partitions": 12,
    }


@pytest.fixture(scope="module")
def asked(place: Path) -> dict[str, Asked]:
    table, small = events(GROUPS, SIZE), events(JOIN_GROUPS, JOIN_SIZE)
    return {
        "write": Asked(place, "write", table, ("detect",), 4),
        "count": Asked(place, "count", table, ("count",), 1),
        "join": Asked(place, "join", small, ("detect", "--algorithm", "join"), 12),
        "late join": Asked(place, "late", small, ("detect", "--algorithm", "join"), 40),
    }


KILLS = [(killed, during) for during in ("write", "count", "join") for killed in ("worker", "Python", "driver")]


@pytest.mark.parametrize(("killed", "during"), [*KILLS, ("worker", "late join")])
def test_a_kill_changes_nothing(
    cluster: Cluster, conf: dict[str, Any], asked: dict[str, Asked], killed: str, during: str
) -> None:
    work = asked[during]
    driver = cluster.start("driver", *work.command(cluster, conf))
    after_tasks(cluster, "two", work.tasks, lambda: driver.poll() is not None)
    assert driver.poll() is None, "nothing was left to kill"
    if killed == "worker":
        cluster.kill("two")
    elif killed == "Python":
        kill_python_worker(cluster, "two")
    else:
        cluster.kill("driver")
        driver = cluster.start("driver", *work.command(cluster, conf))
    assert driver.wait(300) == 0
    work.check(cluster.log("driver"))
    if killed == "worker":
        cluster.start_worker("two")
        cluster.said("two", r"Successfully registered with master (\S+)")
