from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the tests: local, quiet, in UTC."""
    from trellis.spark.session import get_session, stop_session

    session = get_session("local[2]", {"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"})
    yield session
    stop_session(session)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give what uses Spark to one worker, so that there is one session, and first; each other file to one worker."""
    for item in items:
        uses_spark = item.get_closest_marker("spark") or "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("spark" if uses_spark else item.nodeid.split("::")[0]))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group").args != ("spark",))  # type: ignore[union-attr]
