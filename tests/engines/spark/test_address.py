"""Trends by rank and by chance are the same on Spark as in this process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import trellis

pytestmark = pytest.mark.spark


def test_trend_and_sample_equal_the_local_ones(spark: SparkSession) -> None:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "ts": np.sort(rng.integers(0, 40, 120)),
            "x": rng.integers(0, 30, 120).astype(float),
            "g": np.where(rng.random(120) < 0.2, np.nan, rng.integers(0, 2, 120)),
            "id": np.arange(120),
        }
    )
    query = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 20 SLIDE 10 RETURN s, SUM(s.x)")
    here, there = query.detect(table, event_id="id"), query.detect(table, event_id="id", engine="spark", spark=spark)
    assert repr(there.sample(25, seed=3).to_pylist()) == repr(here.sample(25, seed=3).to_pylist())
    last = int(here.counts().filter(pc.field("window_start") == 10).to_pylist()[0]["count_text"]) - 1
    assert there.trend(last, window=10, partition=0.0) == here.trend(last, window=10, partition=0.0)
