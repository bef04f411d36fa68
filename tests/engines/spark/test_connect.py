"""Spark Connect: a server in a process of its own, whose workers have no Trellis."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.engines.spark.cluster import Cluster, processes, running_cluster, workers_python
from tests.engines.spark.on_connect import answers, here
from trellis.caches import compiled_directory

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]


def ask(cluster: Cluster, directory: Path, master: str, *what: str, python: str | None = None) -> None:
    """Start a server whose workers have a bare Python, or another, and a client."""
    compiled = compiled_directory()
    python = python or str(workers_python(directory / "python"))
    environment = {"PYSPARK_PYTHON": python, "NUMBA_CACHE_DIR": str(compiled)}
    conf = {"spark.executorEnv.NUMBA_CACHE_DIR": compiled}
    address = cluster.start_connect("server", master, conf, **environment)
    asked = (sys.executable, "-m", "tests.engines.spark.on_connect", address, str(directory), *what)
    client = cluster.start("client", *asked, PYTHONPATH=str(ROOT))
    assert client.wait(500) == 0
    assert cluster.sent.is_dir()


@pytest.mark.slow
def test_count_detect_and_write(tmp_path: Path) -> None:
    here().to_arrow()  # compiles what the workers are given
    with processes(tmp_path / "logs") as cluster:
        ask(cluster, tmp_path, "local[2]")


@pytest.mark.slow
def test_a_stream_gives_the_rows_of_the_batch(tmp_path: Path) -> None:
    """The server's Python needs Trellis: what a session sends reaches the tasks, not the worker that plans a stream."""
    here().to_arrow()
    with processes(tmp_path / "logs") as cluster:
        ask(cluster, tmp_path, "local[2]", "stream", python=sys.executable)


@pytest.mark.slow
def test_everything_on_a_cluster(tmp_path: Path) -> None:
    answers(here())
    with running_cluster(tmp_path / "logs") as cluster:
        ask(cluster, tmp_path, cluster.master, "everything")
