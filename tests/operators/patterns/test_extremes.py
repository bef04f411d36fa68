"""Greatest and least values compared with others: asked of each event where none is NULL, of registers elsewhere."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case

PATTERNS = {
    "SEQ(A a, B+ b[])": ("MAX(b.x) < a.x", "MIN(b.y) >= a.y", "a.x >= MAX(b.x)", "MAX(b.x) > a.x"),
    "SEQ(A a, B+ b[], A c)": ("MAX(b.x) <= c.x", "MIN(b.x) > a.x", "c.y > MAX(b.y)", "MAX(b.x) < 2"),
    "SEQ(A+ a[], B+ b[])": ("MAX(a.x) < MIN(b.x)", "MIN(b.x) >= MAX(a.x)", "MAX(a.y) <= b.y", "LAST(b).x > MAX(a.x)"),
    "SEQ(A+ a[], B? b, A c)": ("MAX(a.x) < b.x", "MAX(a.x) <= c.x", "MIN(a.y) > 0.5"),
    "OR(A+ a[], SEQ(B b, A+ c[]))": ("MAX(a.x) <= 1", "b.x < MIN(c.x)", "MIN(c.y) > b.y"),
    "A+ a[]": ("MAX(a.x) <= 1", "MIN(a.y) > 0.5"),
    "AND(A+ a[], B b)": ("MAX(a.x) < b.x", "MIN(a.y) >= b.y"),
}
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "REPORT any", "REPORT maximal"),
    "select": ("", "", "SELECT skip-till-next", "SELECT contiguous"),
    "within": ("", "WITHIN 4", "WITHIN 6 SLIDE 3"),
    "rest": ("", "AGGREGATE COUNT(*)", "AFTER MATCH SKIP PAST LAST", "LIMIT 2"),
}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(st.sampled_from(list(PATTERNS)))
    where = draw(st.lists(st.sampled_from(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    if draw(st.booleans()) and "a[]" in pattern:
        where.append("a[i].x >= a[i-1].x")
    chosen = " ".join(draw(st.sampled_from(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    x, y = st.integers(0, 3), st.sampled_from((0.0, 0.5, 1.0))
    if draw(st.booleans()):
        x, y = x | st.none(), y | st.none() | st.just(float("nan"))
    row = st.fixed_dictionaries({"ts": st.integers(0, 9), "type": st.sampled_from("AB"), "x": x, "y": y})
    rows = [{"id": i, **one} for i, one in enumerate(draw(st.lists(row, max_size=7)))]
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(300)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize(
    ("values", "method"), [([5, 1, 2, 3], "index"), ([5, 1, None, 3], "search"), ([None, 1, 2, 3], "index")]
)
def test_each_event_is_asked_where_no_event_of_the_variable_has_null(values: list[Any], method: str) -> None:
    events = pa.Table.from_pylist([{"ts": i, "id": i, "type": "AB"[i > 0], "x": x} for i, x in enumerate(values)])
    query = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE MAX(b.x) < 4 AND FIRST(b).x < a.x")
    found = query.detect(events, time="ts", event_id="id", type="type")
    assert found.operator.plan.operator.method == method
    assert "where no b.x is NULL" in str(query.explain(events, time="ts", event_id="id", type="type"))
