"""What all tests share: the profiles of Hypothesis, and the one Spark session."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import profiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


gc.set_threshold(200_000, 20, 100)  # compiling makes millions of objects that stay
profiles.register()
settings.load_profile("ci")  # `--hypothesis-profile=explore` comes after this

SETTINGS = {
    "spark.sql.shuffle.partitions": 2,
    "spark.driver.memory": "1536m",
    "spark.python.daemon.module": "tests.spark_daemon",
    # Spark's usual class for checkpoints starts `readlink` and `chmod` for each file on a local disk: some fifty
    # processes a batch. Streams that are run as commands, in the slow tests, have the usual one.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
# Of any JVM that a test starts. Most of its code runs a few times only, and two cores have other work than four threads
# that collect garbage; without the sizes it would look for code and classes to drop while it still loads more.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=400m -XX:NewRatio=1"
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the tests: local, quiet, in UTC; a task that fails gets a second chance."""
    from trellis.engines.spark.session.session import get_session, stop_session

    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    session = get_session("local[2,2]", {**SETTINGS, "spark.sql.warehouse.dir": warehouse})
    yield session
    stop_session(session)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses the Spark session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
