"""The best trends on Spark, of more than can be listed: the same as in this process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.compare import plain_rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("tail", ["LIMIT 4 OFFSET 2", "LIMIT 3 PER WINDOW"])
@pytest.mark.parametrize("keys", ["LENGTH", pytest.param("SUM(s.x)", marks=pytest.mark.slow), "MAX(s.v), LENGTH"])
def test_the_best_of_more_than_can_be_listed(spark: SparkSession, keys: str, tail: str) -> None:
    rng = np.random.default_rng(2)
    n = 600
    table = pa.table(
        {
            "ts": np.arange(n),
            "id": np.arange(n),
            "g": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 2, n)),
            "x": np.round(rng.random(n), 2),
            "v": pa.array(rng.integers(0, 5, n), mask=rng.random(n) < 0.2),
        }
    )
    text = f"PATTERN S+ s[] WHERE [g] AND s[i].ts > s[i-1].ts REPORT any WITHIN 400 SLIDE 200 ORDER BY {keys} {tail}"
    query = trellis.query(text)
    here, there = query.detect(table, event_id="id"), query.detect(table, event_id="id", engine="spark", spark=spark)
    assert here.count() > 2**100
    rows = plain_rows(here.to_arrow().to_pylist())
    assert any(row["rank"] is None for row in rows)  # ranks of more than 64 bits do not tell the order
    assert plain_rows(there.to_arrow().to_pylist()) == rows
