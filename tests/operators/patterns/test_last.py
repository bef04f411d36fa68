"""Conditions on the last event of a variable, where others may come behind it and where none can: as the oracle."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, among, lists, rows_in_order
from trellis.plan.sizes import Sizes

SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
KINDS = ("AAABBCC", "AABACABB", "ABAABCBCA", "AAAABCACC", "CAABBACBA", "ABBABBBCB", "AAAAAAA", "AAB", "")
PATTERNS = {
    "A+ a[]": "a", "A{2,} a[]": "a", "SEQ(A+ a[], B? b)": "a", "SEQ(A+ a[], B b)": "a", "SEQ(A a, B+ b[])": "b",
    "SEQ(A a, B+ b[], C? c)": "b", "SEQ(A+ a[], B+ b[])": "ab", "SEQ(A a, OR(B+ b[], C c))": "b",
    "AND(A+ a[], B b)": "a", "SEQ(A a, NOT(C c), B+ b[])": "b", "SEQ(SEQ(A a, B+ b[])+ g[])": "b",
}  # fmt: skip
ASKED = (
    "LAST(v).x > FIRST(v).x", "LAST(v).x + FIRST(v).x > 2", "LAST(v).x + v.x > 1", "LAST(v).y >= MIN(v.y)",
    "LAST(v).x - a.x > 0", "LAST(v).x + LAST(a).x > a.x + 1", "v[i].x >= v[i-1].x", "v[i].x + v[i-1].x > 1",
    "ABS(v[i].x - v[i-1].x) < 3 OR v[i].y > v[i-1].y", "COUNT(v) >= 2", "LAST(v).x < v[2].x",
)  # fmt: skip
CLAUSES = ("", "REPORT any", "REPORT any", "REPORT any HAVING LAST(v).x > 0", "REPORT maximal")
WITHIN = ("", "", "WITHIN 4", "WITHIN 6 SLIDE 3")


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    v = draw(among(PATTERNS[pattern]))
    asked = draw(lists(among(ASKED), min_size=1, max_size=2))
    text = f"PATTERN {pattern} WHERE {' AND '.join(f'({one})' for one in asked)} {draw(among(CLAUSES))}"
    text = f"{text} {draw(among(WITHIN))}".replace("v.", f"{v}.").replace("(v)", f"({v})").replace("v[", f"{v}[")
    return Case(
        trellis.query(text).syntax, draw(rows_in_order(KINDS)), {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA
    )


@examples(500)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=Sizes(small_pairs=-1, counted_pairs=-1))
