"""Sums in place of events: the oracle's numbers, whatever the batches, and no more state than distinct values."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests import oracle
from tests.compare import plain_rows
from tests.profiles import examples
from tests.strategies import arrow_table
from tests.streams.test_bucket import in_any_order, rows_of, standing, through_a_stream
from trellis.language.parser import parse

SCHEMA = {
    "ts": "int64", "id": "int64", "g": "string", "a": "int64", "b": "int64", "x": "double", "m": "decimal(10,2)",
}  # fmt: skip
CONDITIONS = [
    "", "[g]", "t[i].a = t[i-1].b", "t[i].a > t[i-1].a", "[g] AND t[i].x >= t[i-1].x", "t[i].x < t[i-1].a",
    "t[i].a = t[i-1].b AND t[i].m > t[i-1].m", "[g] AND t[i].a > t[i-1].a AND t[i].a <= t[i-1].b AND t.b > 0",
]  # fmt: skip
ITEMS = [
    "COUNT(*)", "COUNT(t)", "SUM(LENGTH)", "AVG(LENGTH)", "SUM(t.a)", "AVG(t.a)", "SUM(t.x)", "AVG(t.x)", "MIN(t.x)",
    "MAX(t.g)", "SUM(t.m)", "MIN(t.m)",
]  # fmt: skip
SPECIAL = [None, 0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf")]
EVENT = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 9),
        "g": st.sampled_from([None, "a", "b"]),
        "a": st.one_of(st.none(), st.integers(0, 3), st.just(2**62)),
        "b": st.one_of(st.none(), st.integers(0, 3)),
        "x": st.sampled_from(SPECIAL),
        "m": st.one_of(st.none(), st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
    }
)


@examples(150)
@given(data=st.data(), events=st.lists(EVENT, min_size=1, max_size=8), number=st.integers(0, 10**6))
def test_any_batches_have_the_numbers_of_the_oracle(data: Any, events: list[dict[str, Any]], number: int) -> None:
    where = data.draw(st.sampled_from(CONDITIONS))
    items = data.draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3, unique=True))
    report = data.draw(st.sampled_from(["any", "unextendable"]))
    size, slide = data.draw(st.sampled_from([(4, 4), (6, 2), (5, 3)]))
    clauses = ["PATTERN T+ t[]", f"WHERE {where}" if where else "", f"WITHIN {size} SLIDE {slide} REPORT {report}"]
    text = " ".join([*clauses, "AGGREGATE " + ", ".join(items)])
    rows = [{"id": i} | event for i, event in enumerate(events)]
    rows = [{name: row[name] for name in SCHEMA} for row in rows]
    table = arrow_table(rows, SCHEMA)
    one = standing(text, table, time="ts", event_id="id")
    assert one.summed
    wanted = oracle.run(parse(text), rows, schema=SCHEMA, time="ts", event_id="id").aggregates
    outs = [out for _, some in through_a_stream(one, table, random.Random(number)) for out in some]
    assert sorted(rows_of(outs), key=place) == sorted(plain_rows(wanted or []), key=place)


def place(row: dict[str, Any]) -> tuple[int, str]:
    return row["window_start"], repr(row.get("g"))


@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_long_windows_keep_as_many_vertices_as_there_are_values(report: str) -> None:
    n, size = 60_000, 5_000
    draw = np.random.default_rng(3)
    values = {"x": draw.integers(0, 15, n), "y": draw.normal(size=n).round(3), "g": draw.integers(0, 3, n)}
    table = pa.table({"ts": np.arange(n) // 2, "id": np.arange(n), **values})
    text = (
        f"PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10000 SLIDE 5000 REPORT {report} AGGREGATE COUNT(*), "
    )
    query = trellis.query(text + "SUM(t.y), AVG(t.x), MAX(t.y)")
    arrivals, found, held, states = query.arrivals(time="ts", event_id="id"), [], [], []
    for begin in range(0, n, size):
        found.append(arrivals.take(table.slice(begin, size)))
        state = arrivals.snapshot()
        held.append(arrivals.held)
        states.append(len(state))
        arrivals = query.arrivals(time="ts", event_id="id", state=state)
    found.append(arrivals.end())
    wanted = query.detect(table, time="ts", event_id="id").to_arrow()
    assert in_any_order(pa.concat_tables(found).to_pylist()) == in_any_order(wanted.to_pylist())
    assert report != "any" or max(int(text) for text in wanted["count_text"].to_pylist()) > 2**64
    assert max(held) <= size  # of 20,000 in a window
    assert max(states) < 100_000  # bytes


def test_other_aggregates_hold_events_as_ever() -> None:
    table = pa.table({"ts": [0], "id": [0], "x": [1], "y": [2]})
    for text in (
        "WHERE t[i].x > t[i-1].x AND t[i].y > t[i-1].y WITHIN 5 SLIDE 5 AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x + 1 WITHIN 5 SLIDE 5 AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 AGGREGATE MAX(LENGTH)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 REPORT maximal AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 HAVING LENGTH > 2 AGGREGATE COUNT(*)",
    ):
        assert not standing(f"PATTERN T+ t[] {text}", table, time="ts", event_id="id").summed
