"""REPORT maximal in spans over many events: what lies further apart than a span is compared with nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import detect, expected, plain_rows, rows_of
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, typed_rows

PATTERNS = (
    "SEQ(A+ a[], B b) WHERE a.x <= b.x",
    "SEQ(A+ a[], B+ b[]) WHERE MAX(a.x) < MAX(b.x)",
    "SEQ(A a, B+ b[]) WHERE b.x >= a.x",
    "SEQ(A+ a[], B b, C? c) WHERE SUM(a.x) < 3 * b.x",
    "AND(A+ a[], B b) WHERE a.x != b.x",
    "SEQ(SEQ(A a, B b)+ g[], C? c) WHERE FIRST(g).a.x <= c.x",
)
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
APART = 100  # more than a span


@examples(20)
@given(st.data())
def test_results_of_events_far_apart_are_those_of_each_part(data: Any) -> None:
    syntax = trellis.query(
        f"PATTERN {data.draw(among(PATTERNS))} REPORT maximal WITHIN {data.draw(among((3, 5, 20)))}"
    ).syntax
    parts = data.draw(st.lists(typed_rows("AABBC", 6, nulls=data.draw(EITHER)), min_size=2, max_size=3))
    options = {"time": "ts", "type": "type", "event_id": "id"}
    wanted, rows = [], []
    for number in range(12):
        own = [row | {"ts": row["ts"] + APART * number} for row in parts[number % len(parts)]]
        own = [row | {"id": len(rows) + row["id"]} for row in own]
        answer = expected(Case(syntax, own, options, SCHEMA)) if own else None
        assert not isinstance(answer, str)
        wanted += [] if answer is None else [row | {"rank": len(wanted) + row["rank"]} for row in answer.rows]
        rows += own
    found = detect(Case(syntax, rows, options, SCHEMA))
    assert found.count() == len(wanted)
    assert plain_rows(rows_of(found)) == plain_rows(wanted)
