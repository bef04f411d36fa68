"""Sums that can no longer be what is asked of them are left out: results are the oracle's, whatever the values."""

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
KINDS = ("AAABBCC", "AABACABB", "ABAABCBCA", "AAAABCACC", "CAABBACBA", "AACABBAAC", "AAAAAAA", "AAB", "ABB", "")
OF_A = ("SUM(a.x) < 3", "SUM(a.x) <= 2.5", "4 > SUM(a.x)", "SUM(a.x) = 2", "SUM(a.x) > 2", "SUM(a.y) < 1.5",
        "SUM(a.x) + 1 < 4", "a[i].x > a[i-1].x", "FIRST(a).x < LAST(a).x")  # fmt: skip
WITH_B = ("SUM(a.x) < b.x", "SUM(a.x) <= 2 * b.x", "SUM(a.x) < b.x + b.y", "2 * b.x > SUM(a.x)", "SUM(a.x) = b.x")
PATTERNS = {
    "A+ a[]": OF_A,
    "SEQ(A+ a[], B b)": (*OF_A, *WITH_B, *WITH_B),
    "SEQ(A+ a[], B? b)": (*OF_A, *WITH_B, *WITH_B),
    "SEQ(A* a[], B b)": (*OF_A, *WITH_B),
    "SEQ(A+ a[], B+ b[])": (*OF_A, *WITH_B, "SUM(a.x) < LAST(b).x", "SUM(a.x) < SUM(b.x)", "SUM(a.x) < b[2].x"),
    "SEQ(B b, A+ a[], C c)": (*WITH_B, "SUM(a.x) < c.x", "SUM(a.x) < b.x + c.x"),
    "SEQ(A+ a[], OR(B b, C c))": (*WITH_B, "SUM(a.x) < c.x"),
    "AND(A+ a[], B b)": (*OF_A, *WITH_B),
    "SEQ(A+ a[], NOT(C c), B b)": WITH_B,
    "SEQ(SEQ(A+ a[], B b)+ g[])": (*OF_A, *WITH_B),
}
CLAUSES = ("", "REPORT any", "REPORT any", "REPORT any", "REPORT maximal", "SELECT skip-till-next",
           "SELECT contiguous REPORT any", "REPORT any AGGREGATE COUNT(*), SUM(a.x)")  # fmt: skip
WITHIN = ("", "WITHIN 3", "WITHIN 4", "WITHIN 6 SLIDE 3")


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    asked = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    text = f"PATTERN {pattern} WHERE {' AND '.join(asked)} {draw(among(CLAUSES))} {draw(among(WITHIN))}"
    rows = draw(rows_in_order(KINDS))
    return Case(trellis.query(text).syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(500)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=Sizes(small_pairs=-1, counted_pairs=-1))
