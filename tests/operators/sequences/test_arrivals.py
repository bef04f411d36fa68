"""Events that arrive in batches, of any size, complete what all of them together have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.errors import DataError, ListingRefused, UsageError

QUERIES = [
    "PATTERN a;b;c WHERE a.x > b.x AND a.x > c.x WITHIN 5",
    "PATTERN a;b WHERE [g] AND a.x = b.x WITHIN 4",
    "PATTERN a;b;c WHERE a.x < c.x",
    "PATTERN a;b;c WHERE a.g = c.g AND b.x > 2 WITHIN 6 SLIDE 2",
    "PATTERN a WHERE a.x > 2 WITHIN 3",
    "PATTERN SEQ(NOT(E n), E a, NOT(E m), E b) WHERE n.x = 5 AND m.x = 0 AND a.x != b.x WITHIN 6",
    "PATTERN a;b;c WHERE a.x != c.x WITHIN 5 RETURN a, b, c, c.x - a.x AS rise",
]


def events(n: int, seed_: int) -> pa.Table:
    rng = np.random.default_rng(seed_)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, n, n)),
            "id": [f"e{i:03}" for i in range(n)],
            "x": rng.integers(0, 6, n),
            "g": rng.integers(0, 2, n),
        }
    )


def rows(table: pa.Table) -> list[Any]:
    return sorted(map(repr, table.drop_columns(["rank"]).to_pylist()))


@examples(25)
@given(data=st.data(), text=st.sampled_from(QUERIES), n=st.integers(0, 25), number=st.integers(0, 1000))
def test_any_batches_give_what_the_whole_does(data: Any, text: str, n: int, number: int) -> None:
    table = events(n, number)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=n + 2)))
    arriving = trellis.query(text).arrivals(time="ts", event_id="id")
    found = [arriving.take(table.slice(a, b - a)) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow()
    assert rows(pa.concat_tables(found)) == rows(whole)


def test_one_event_at_a_time_and_what_is_held_stays_flat() -> None:
    table = events(400, 1)
    arriving = trellis.query(QUERIES[0]).arrivals(time="ts", event_id="id")
    found = 0
    most = 0
    for i in range(table.num_rows):
        found += arriving.take(table.slice(i, 1)).num_rows
        most = max(most, arriving.held)
    assert found == trellis.query(QUERIES[0]).detect(table, time="ts", event_id="id").count()
    assert most < 30


def test_mistakes() -> None:
    table = events(5, 1)
    with pytest.raises(UsageError, match="fixed sequences"):
        trellis.query("PATTERN E+ e[]").arrivals(time="ts", event_id="id").take(table)
    with pytest.raises(UsageError, match="events are still to come"):
        trellis.query("PATTERN a;b LIMIT 1").arrivals(time="ts", event_id="id").take(table)
    with pytest.raises(UsageError, match="NOT after the last event"):
        trellis.query("PATTERN SEQ(E a, NOT(E b))").arrivals(time="ts", event_id="id").take(table)
    arriving = trellis.query("PATTERN a;b WITHIN 2").arrivals(time="ts", event_id="id")
    arriving.take(table.slice(4, 1))
    with pytest.raises(DataError, match="earlier than one of an earlier batch"):
        arriving.take(table.slice(0, 1))
    with pytest.raises(ListingRefused):
        trellis.query("PATTERN a;b").arrivals(time="ts", event_id="id", max_trends=1).take(events(9, 1))
