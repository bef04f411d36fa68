"""Greatest and least values compared with what is known before: bits of a match so far. Numbers of events: counters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, typed_rows

OF_B = (
    "MAX(b.x) > 1", "MIN(b.y) <= 0.5", "MAX(b.x) = 2", "COUNT(b) % 2 = 0", "COUNT(b) % 3 != 1", "COUNT(b) >= 2",
    "MAX(b.x) - MIN(b.x) < 2", "MAX(b.x) > 1 OR MIN(b.x) < 1", "MIN(b.x) > 0", "SUM(b.x) > 3", "LAST(b).x > 0",
    "MAX(b.x) > 1 AND MIN(b.y) < 1", "NOT (MAX(b.x) > 1)", "AVG(b.x) > 1", "SUM(b.x) <= 2", "MAX(b.x) != 2",
)  # fmt: skip
WITH_A = (
    "MAX(b.x) > a.x", "a.x <= MAX(b.x)", "MIN(b.x) < a.x", "MIN(b.y) <= a.y", "MAX(b.x) = a.x", "a.x = MIN(b.x)",
    "MAX(b.y) > 0.5 * a.y", "MAX(b.x) > a.x OR a.y > 0", "MAX(b.x) < a.x", "MIN(b.y) >= 0.5 + a.y", "COUNT(b) > a.x",
    "SUM(b.x) > a.x", "MAX(b.x) + 1 > a.x", "MIN(b.y) > a.y * a.x * 0.5",
)  # fmt: skip
PATTERNS = {
    "SEQ(A a, B+ b[])": OF_B + WITH_A,
    "SEQ(A a, B+ b[], C c)": (*OF_B, *WITH_A, "MAX(b.x) > c.x", "MIN(b.x) < a.x AND b[2].x > a.x", "MAX(b.x) < c.x"),
    "SEQ(A+ a[], B+ b[])": (*OF_B, "MAX(b.x) > FIRST(a).x", "MIN(b.x) < LAST(a).x", "MAX(b.x) > MAX(a.x)",
                            "MIN(b.x) < a.x", "MAX(b.x) > a[2].x", "MAX(b.x) >= COUNT(a)"),
    "SEQ(A? a, B+ b[], C? c)": OF_B + WITH_A,
    "OR(SEQ(C c, B+ b[]), A+ a[])": (*OF_B, "MAX(b.x) > c.x", "MAX(a.x) > 1"),
    "AND(B+ b[], A a)": OF_B + WITH_A,
    "SEQ(A a, NOT(C c), B+ b[])": (*OF_B, *WITH_A, "c.x < a.x"),
    "SEQ(B+ b[], A a)": OF_B + WITH_A,
    "SEQ(A a, (SEQ(B+ b[], C c))+ g[])": (*OF_B, "MAX(b.x) > a.x"),
    "B+ b[]": OF_B,
}  # fmt: skip
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "REPORT any", "REPORT any", "REPORT maximal"),
    "select": ("", "", "", "SELECT skip-till-next", "SELECT contiguous"),
    "within": ("", "WITHIN 4", "WITHIN 6 SLIDE 3"),
    "rest": ("", "AGGREGATE COUNT(*)", "AFTER MATCH SKIP PAST LAST", "LIMIT 2", "HAVING LENGTH > 2"),
}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(tuple(PATTERNS[pattern])), min_size=1, max_size=2, unique=True))
    where = [f"({one})" if " OR " in one else one for one in where]
    if draw(EITHER):
        where.append(draw(st.sampled_from(("b[i].x >= b[i-1].x", "b[i].y != b[i-1].y"))))
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("ABBBC", 7, nulls=draw(EITHER)))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(600)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("MAX(b.x) > a.x", "whether some b had `b.x > a.x`"),
        ("MIN(b.x) = 2", "whether some b had `b.x < 2`"),
        ("MIN(b.y) < 0.5 * a.y", "a for `MIN(b.y) < 0.5 * a.y`"),
        ("COUNT(b) % 2 = 0", "how many b, modulo 2"),
        ("MAX(b.x) > c.x", "the greatest x of b"),
    ],
)
def test_explanations_name_the_register(condition: str, text: str) -> None:
    events = pa.Table.from_pylist([{"ts": i, "id": i, "type": "ABC"[i], "x": i, "y": 0.5} for i in range(3)])
    query = trellis.query(f"PATTERN SEQ(A a, B+ b[], C c) WHERE {condition}")
    assert text in str(query.explain(events, time="ts", event_id="id", type="type"))
