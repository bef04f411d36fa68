"""Several threads count and index what one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.operators.trends.operator import TrendOperator
from trellis.plan.sizes import Sizes

N = 400
RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "t": np.sort(RNG.integers(0, N, N)),
        "id": np.arange(N),
        "x": pa.array(RNG.integers(0, 40, N), mask=RNG.random(N) < 0.05),
        "y": RNG.integers(0, 9, N),
        "g": RNG.integers(0, 3, N),
    }
)
CONDITIONS = ["s[i].x > s[i-1].x", "s[i].x <= 2 * s[i-1].x", "[g] AND s[i].x > s[i-1].x", "s[i].y = s[i-1].g"]


@pytest.mark.parametrize("within", ["", "WITHIN 60 SLIDE 6", "WITHIN 20 SLIDE 20", "WITHIN 30"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_counts(condition: str, within: str) -> None:
    query = trellis.query(f"PATTERN E+ s[] WHERE {condition} {within}")
    trends: Any = query.detect(TABLE, time="t", event_id="id", sizes=Sizes(thread_events=1, thread_part=1))
    one, several = (TrendOperator(trends.plan, trends.operator.events, threads) for threads in (1, 3))
    assert several.counts == one.counts
    assert sum(one.counts) > N
    assert several.index is not None
    assert one.index is not None
    for found, wanted in zip(several.index.shape, one.index.shape, strict=True):
        assert np.array_equal(found, wanted)
