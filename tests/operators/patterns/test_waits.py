"""NOTs that wait for events of a variable that goes on: what is left of them is told by few forbidden events."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists
from trellis.plan.sizes import Sizes

COUNTED = Sizes(counted_pairs=-1, small_pairs=-1, explored_exponent=-1.0)
SEARCHED = replace(COUNTED, best_few=-1, best_worth=0, best_steps=1 << 60)
OPERATORS = ("<", "<=", "=", "!=", ">=", ">")
OF_A = tuple(f"n.{column} {operator} a.{column}" for operator in OPERATORS for column in "xy")
OF_C = tuple(f"n.{column} {operator} c.{column}" for operator in OPERATORS for column in "xy")
OTHERS = ("a.x < n.x + 1", "n.x + a.x > 3", "n.x > FIRST(a).x", "n.x > LAST(a).x", "n.y <= 0.5")
PATTERNS = {
    "SEQ(NOT(B n), A+ a[])": (*OF_A, *OTHERS, "a[i].x > a[i-1].x"),
    "SEQ(NOT(B n), A+ a[], C c)": (*OF_A, *OTHERS, *OF_C, "a.x < c.x"),
    "SEQ(NOT(B n), A a, C+ c[])": (*OF_A, *OF_C, "a.x < c.x", "c[i].x != c[i-1].x"),
    "SEQ(A a, NOT(B n), C+ c[])": (*OF_A, *OF_C, "a.x <= c.x", "n.x < LAST(c).x", "n.x < c.x + a.x"),
    "SEQ(A+ a[], NOT(B n), C+ c[])": (*OF_A, *OF_C, *OTHERS, "LAST(a).x < FIRST(c).x"),
    "SEQ(A+ a[], NOT(B n), C c)": (*OF_A, *OF_C, *OTHERS),
    "SEQ(A a, NOT(B n), C c, A+ d[])": (*OF_C, "n.x < d.x", "n.y = d.y", "n.x > d.x", "n.x >= a.x"),
    "SEQ(A a, NOT(B n), C? c, A+ d[])": (*OF_C, "n.x < d.x", "n.y = d.y", "n.x > d.x", "n.x >= a.x"),
    "SEQ(A a, NOT(B n, C m), A+ d[])": ("n.x < d.x", "m.x > d.x", "n.y = d.y", "m.y = a.y"),
    "SEQ(NOT(B n), A a, NOT(C m), A+ d[])": ("n.x < d.x", "m.x > d.x", "n.y = d.y", "m.y = a.y", "n.x > a.x"),
    "SEQ(A+ a[], C c, NOT(B n))": (*OF_A, *OF_C),
}
CLAUSES = {
    "report": ("", "", "", "REPORT any", "REPORT any", "REPORT maximal"),
    "select": ("",) * 6 + ("SELECT skip-till-next", "SELECT contiguous"),
    "within": ("", "WITHIN 5 SLIDE 5", "WITHIN 4 SLIDE 2", "WITHIN 3", "WITHIN 5", "WITHIN 8"),
    "rest": ("", "", "", "", "HAVING LENGTH > 2", "LIMIT 3", "AGGREGATE COUNT(*), MAX(LENGTH)",
             "ORDER BY LENGTH DESC LIMIT 3"),
}  # fmt: skip
ROWS = lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9),
            "type": st.integers(0, 11),
            "x": among((0, 1, 2, 3, 0, 1, 2, 3, None)),
            "y": among((0.0, 0.5, 1.0, -0.0, 0.5, 1.0, 0.0, None, math.nan)),
        }
    ),
    min_size=4,
    max_size=11,
)
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
OPTIONS = {"time": "ts", "type": "type", "event_id": "id"}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=0, max_size=3, unique=True))
    clauses = " ".join(draw(among(some)) for some in CLAUSES.values())
    asks = f"WHERE {' AND '.join(where)}" if where else ""
    kinds = "ABC" if "C" in pattern else "AAB"
    drawn = [{**row, "id": i, "type": kinds[row["type"] % len(kinds)]} for i, row in enumerate(draw(ROWS))]
    if draw(EITHER):  # a time for each event
        drawn = [{**row, "ts": ts} for ts, row in enumerate(drawn)]
    return Case(trellis.query(f"PATTERN {pattern} {asks} {clauses}").syntax, drawn, OPTIONS, SCHEMA)


@examples(700)
@given(cases(), among((None, COUNTED, COUNTED, SEARCHED)))
def test_results_are_those_of_the_oracle(case: Case, sizes: Sizes | None) -> None:
    assert_same(case, **({"sizes": sizes} if sizes else {}))


@pytest.mark.slow
@settings(max_examples=4000)
@given(cases(), among((None, COUNTED, COUNTED, SEARCHED)))
def test_many_more_results_are_those_of_the_oracle(case: Case, sizes: Sizes | None) -> None:
    assert_same(case, **({"sizes": sizes} if sizes else {}))


@pytest.mark.parametrize(
    "clauses", ["REPORT any WITHIN 4", "WITHIN 4", "REPORT any WITHIN 4 ORDER BY LENGTH DESC LIMIT 5"]
)
def test_what_comes_before_the_first_event_of_a_span_is_looked_at(clauses: str) -> None:
    kinds, values = "BAABAABAAA", (3, 1, 2, 0, 1, 2, 9, 1, 5, 2)
    rows = [
        {"ts": ts, "id": ts, "type": kind, "x": x, "y": 0.0}
        for ts, (kind, x) in enumerate(zip(kinds, values, strict=True))
    ]
    for asks in ("", "WHERE n.x > a.x", "WHERE n.x < a.x", "WHERE n.x = a.x"):
        text = f"PATTERN SEQ(NOT(B n), A+ a[]) {asks} {clauses}"
        assert_same(Case(trellis.query(text).syntax, rows, OPTIONS, SCHEMA), sizes=SEARCHED)
