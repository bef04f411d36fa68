"""Times at the ends of what fits, hidden names, and lengths that nothing has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.errors import BindError, DataError

LEAST, MOST = -(2**63), 2**63 - 1
RISING = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"


def found(text: str, times: list[float], **columns: list[object]) -> list[list[int]]:
    table = pa.table({"ts": times, "id": range(len(times)), "x": range(len(times)), **columns})
    trends = trellis.query(text).detect(table, event_id="id")
    rows = trends.to_arrow()["events"].to_pylist()
    assert trends.count() == len(rows)
    return rows


def test_times_at_the_ends_are_in_order() -> None:
    assert found(RISING, [LEAST, 0, MOST]) == [[0, 1, 2], [0, 2]]


def test_spans_do_not_wrap() -> None:
    assert found(f"{RISING} WITHIN 10", [LEAST + 1, MOST]) == [[0], [1]]
    assert found(f"{RISING} WITHIN 10", [LEAST, LEAST + 10, MOST - 10, MOST]) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("times", [[LEAST, 100], [100, MOST], [1e300, 2.0]])
def test_windows_that_do_not_fit_are_an_error(times: list[float]) -> None:
    with pytest.raises(DataError, match="too far away for windows"):
        found(f"{RISING} WITHIN 10 SLIDE 10", times)


def test_a_column_called_like_a_hidden_one_is_an_ordinary_one() -> None:
    assert found(RISING, [1, 2, 3], __type=["q", "q", "q"]) == [[0, 1, 2], [0, 2]]


def test_an_upper_bound_on_the_length_that_nothing_reaches_costs_nothing() -> None:
    n = 2000
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "x": np.random.default_rng(1).random(n)})
    counts = [
        trellis.query(f"{RISING} {having}").detect(table, event_id="id").count()
        for having in ("", "HAVING LENGTH <= 1999", "HAVING LENGTH >= 1 AND LENGTH < 5000")
    ]
    assert len(set(counts)) == 1


def test_a_partition_cannot_be_called_count() -> None:
    with pytest.raises(BindError, match="cannot be a partition"):
        found("PATTERN E+ s[] WHERE [count]", [1, 2], count=[1, 1])
