"""Greatest and least values compared with others: asked of each event where none is NULL, of registers elsewhere."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, typed_rows

PATTERNS = {
    "SEQ(A a, B+ b[])": ("MAX(b.x) < a.x", "MIN(b.y) >= a.y", "a.x >= MAX(b.x)", "MAX(b.x) > a.x"),
    "SEQ(A a, B+ b[], A c)": ("MAX(b.x) <= c.x", "MIN(b.x) > a.x", "c.y > MAX(b.y)", "MAX(b.x) < 2"),
    "SEQ(A+ a[], B+ b[])": ("MAX(a.x) < MIN(b.x)", "MIN(b.x) >= MAX(a.x)", "MAX(a.y) <= b.y", "LAST(b).x > MAX(a.x)"),
    "SEQ(A+ a[], B? b, A c)": ("MAX(a.x) < b.x", "MAX(a.x) <= c.x", "MIN(a.y) > 0.5"),
    "SEQ(A+ a[], B{1,2} b[])": ("COUNT(a) <= MAX(b.x)", "MAX(b.y) >= SUM(a.y)", "MIN(b.x) < COUNT(a)"),
    "SEQ(A+ a[], B{2} b[], A? c)": ("COUNT(a) <= MAX(b.x)", "LAST(a).x + 1 >= MIN(b.x)", "MAX(b.x) >= c.x"),
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


OF_PAIRS = {
    "SEQ(A+ a[], B+ b[])": (
        "ABS(a.x - b.x) < 2", "a.y - b.y < 0.5", "a.y - b.y BETWEEN -0.5 AND 0.5", "1 >= ABS(a.y - 2 * b.y)",
        "a.y - b.y <= b.y", "ABS(a.x - b.x) <= b.x", "ABS(a.y - b.y) > 0.5", "2 * a.x + b.x > 3", "a.y / b.y <= 1",
        "a.y * b.y <= b.y", "ABS(FIRST(a).x - b.x) < 2", "ABS(a.x) <= b.x", "-a.y - b.y <= 0.5",
    ),
    "SEQ(A+ a[], B+ b[], A c)": ("ABS(a.x - b.x) < 2", "ABS(b.x - c.x) < 2", "a.y - b.y + c.y <= 0.5", "a.x - c.x < 1"),
    "AND(A+ a[], B+ b[])": ("ABS(a.x - b.x) < 2", "a.y - b.y >= 0.5", "ABS(a.y - b.y) <= 0.5"),
    "SEQ(A+ a[], B? b, NOT(B d), A c)": ("ABS(a.x - b.x) < 2", "ABS(a.y - d.y) < 1", "a.x - c.x > -1"),
    "SEQ(SEQ(A a, B+ b[])+ g[], A c)": ("ABS(a.x - b.x) < 2", "ABS(b.x - c.x) <= 1"),
}  # fmt: skip


@st.composite
def cases(draw: Any, patterns: dict[str, tuple[str, ...]] = PATTERNS, special: tuple[float, ...] = ()) -> Case:
    pattern = draw(among(tuple(patterns)))
    where = draw(lists(among(tuple(patterns[pattern])), min_size=1, max_size=2, unique=True))
    if draw(EITHER) and "A+ a[]" in pattern:
        where.append("a[i].x >= a[i-1].x")
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("AB", 7, reals=(0.0, 0.5, 1.0, *special), nulls=draw(EITHER)))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(300)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case)


@examples(300)
@given(cases(OF_PAIRS, (-0.0, math.inf, -math.inf)))
def test_extremes_decide_what_is_asked_of_every_pair(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize("where", ["COUNT(a) <= MAX(b.y)", "MAX(b.y) >= SUM(a.y)", "COUNT(a) >= MIN(b.y)"])
@pytest.mark.parametrize("bounds", ["{2}", "{1,2}", "+"])
def test_the_last_event_that_a_bound_allows_may_be_the_one_that_meets_it(where: str, bounds: str) -> None:
    values = (1.5, -0.0, 1.5, None, 1.0)
    rows = [{"ts": i, "id": i, "type": "A", "x": 0, "y": y} for i, y in enumerate(values)]
    syntax = trellis.query(f"PATTERN SEQ(A{{1,2}} a[], A{bounds} b[]) WHERE {where} REPORT any").syntax
    assert_same(Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA))


def test_two_parts_whose_events_are_compared_carry_two_numbers() -> None:
    events = pa.Table.from_pylist([{"ts": i, "id": i, "type": "AB"[i % 2], "x": i % 7} for i in range(200)])
    query = trellis.query("PATTERN SEQ(A+ a[], B+ b[]) WHERE ABS(a.x - b.x) < 3 REPORT any")
    options = {"time": "ts", "event_id": "id", "type": "type"}
    text = str(query.explain(events, **options))
    assert "the greatest x of a" in text
    assert "the least x of a" in text
    found, below = 0, [[0, 0] for _ in range(7 * 7)]  # runs of a by their least and greatest, and with b behind them
    for event in events.to_pylist():
        x = event["x"]
        before = [one[:] for one in below]
        for least, most in ((i, k) for i in range(7) for k in range(i, 7)):
            if event["type"] == "A":
                below[7 * min(least, x) + max(most, x)][0] += before[7 * least + most][0]
            elif most - x < 3 and x - least < 3:
                below[7 * least + most][1] += sum(before[7 * least + most])
        below[7 * x + x][0] += event["type"] == "A"
    found = sum(one[1] for one in below)
    assert query.detect(events, **options).count() == found


@pytest.mark.parametrize(
    ("values", "method"), [([5, 1, 2, 3], "index"), ([5, 1, None, 3], "search"), ([None, 1, 2, 3], "index")]
)
def test_each_event_is_asked_where_no_event_of_the_variable_has_null(values: list[Any], method: str) -> None:
    events = pa.Table.from_pylist([{"ts": i, "id": i, "type": "AB"[i > 0], "x": x} for i, x in enumerate(values)])
    query = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE MAX(b.x) < 4 AND FIRST(b).x < a.x")
    found = query.detect(events, time="ts", event_id="id", type="type")
    assert found.operator.plan.operator.method == method
    assert "where no b.x is NULL" in str(query.explain(events, time="ts", event_id="id", type="type"))
