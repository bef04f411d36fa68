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


DECIDED = [  # whose results wait until no event can change them
    "PATTERN E+ e[] WHERE [g] AND NEXT(e).x > e.x WITHIN 6 SLIDE 3",
    "PATTERN E+ e[] WHERE NEXT(e).x >= e.x WITHIN 5",
    "PATTERN E+ e[] WHERE [g] AND NEXT(e).x > e.x REPORT any WITHIN 6 SLIDE 4 AGGREGATE COUNT(*), SUM(e.x)",
    "PATTERN E+ e[] SELECT contiguous WHERE NEXT(e).x > e.x WITHIN 6 SLIDE 6 ORDER BY LENGTH DESC LIMIT 2 PER WINDOW",
    "PATTERN SEQ(E a, E+ b[]) SELECT skip-till-next WHERE a.x < b.x AND NEXT(b).x > b.x WITHIN 4",
    "PATTERN SEQ(E a, NOT(E b)) WHERE [g] AND a.x = 1 AND b.x = 3 WITHIN 5",
    "PATTERN a;b WHERE a.x = b.x WITHIN 6 SLIDE 6 AGGREGATE COUNT(*)",
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


def rows(table: pa.Table, ranks: bool) -> list[Any]:
    return sorted(map(repr, (table if ranks else table.drop_columns(["rank"])).to_pylist()))


@examples(40)
@given(data=st.data(), text=st.sampled_from(QUERIES + DECIDED), n=st.integers(1, 25), number=st.integers(0, 1000))
def test_any_batches_and_snapshots_give_what_the_whole_does(data: Any, text: str, n: int, number: int) -> None:
    table = events(n, number)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=n + 2)))
    options = {"time": "ts", "event_id": "id"}
    arriving = trellis.query(text).arrivals(**options)
    found = []
    for a, b in zip([0, *cuts], [*cuts, n], strict=True):
        found.append(arriving.take(table.slice(a, b - a)))
        if data.draw(st.integers(0, 3)) == 0:
            arriving = trellis.query(text).arrivals(**options, state=arriving.snapshot())
    found.append(arriving.end())
    whole = trellis.query(text).detect(table, **options).to_arrow()
    named = text not in QUERIES  # the results of fixed sequences come before their ranks are known
    assert rows(pa.concat_tables(found), named) == rows(whole, named)
    with pytest.raises(UsageError, match="after the end"):
        arriving.take(table)


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


def test_mistakes_leave_nothing_behind() -> None:
    table = events(9, 1)
    options = {"time": "ts", "event_id": "id"}
    with pytest.raises(UsageError, match="no WITHIN"):
        trellis.query("PATTERN E+ e[]").arrivals(**options).take(table)
    with pytest.raises(UsageError, match="a stream has no end"):
        trellis.query("PATTERN a;b LIMIT 1").arrivals(**options).take(table)
    arriving = trellis.query("PATTERN a;b WITHIN 2").arrivals(**options)
    arriving.take(table.slice(8, 1))
    with pytest.raises(DataError, match="earlier than one of an earlier batch"):
        arriving.take(table.slice(0, 1))
    with pytest.raises(ListingRefused):
        trellis.query("PATTERN a;b").arrivals(**options, max_trends=1).take(table)
    text = "PATTERN E+ e[] WHERE NEXT(e).x > e.x REPORT any WITHIN 3 SLIDE 3"
    arriving = trellis.query(text).arrivals(**options, max_trends=3)
    arriving.take(pa.table({"ts": [0, 1, 2], "id": ["a", "b", "c"], "x": [1, 2, 3]}))
    before = arriving.snapshot()
    with pytest.raises(ListingRefused):
        arriving.take(pa.table({"ts": [3], "id": ["d"], "x": [1]}))
    assert arriving.snapshot() == before
    with pytest.raises(UsageError, match="another query"):
        trellis.query("PATTERN a;b WITHIN 2").arrivals(**options, state=before)
    with pytest.raises(DataError, match="damaged"):
        trellis.query(text).arrivals(**options, state=before[:-1] + b"x")
