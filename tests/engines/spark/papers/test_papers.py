"""Named algorithms inside Spark's tasks find what they find here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "PATTERN S+ s[] WHERE [k] AND s[i].price > s[i-1].price WITHIN 12 SLIDE 6"


def test_spark_lists_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    n = 60
    table = pa.table(
        {"ts": np.arange(n), "id": np.arange(n), "k": rng.integers(0, 2, n), "price": rng.integers(0, 50, n)}
    )
    given: dict[str, Any] = {"time": "ts", "event_id": "id"}
    usual = trellis.query(TEXT).detect(table, **given).to_arrow().to_pylist()
    settings = {"anchors": 2, "construction": "dynamic-range", "memory_limit": "1M"}
    trends = trellis.query(TEXT).detect(table, algorithm="anchor", engine="spark", spark=spark, **settings, **given)
    assert sorted(map(str, trends.to_arrow().to_pylist())) == sorted(map(str, usual))
    trends.write(str(tmp_path / "out"))
    written = pq.read_table(tmp_path / "out").select(list(usual[0]))
    assert sorted(map(str, written.to_pylist())) == sorted(map(str, usual))
