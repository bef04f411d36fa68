"""Variables whose events are counted, by a quantifier or a condition, are positions: results are the oracle's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same, detect
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, typed_rows
from trellis.plan.sizes import Sizes
from trellis.plan.spec import INDEX, SEARCH

COUNTED = ("{2}", "{2,}", "{3,}", "{1,3}", "{2,3}", "+", "*")
BOUNDS = (
    "COUNT(v) >= 2",
    "COUNT(v) > 2",
    "COUNT(v) = 2",
    "COUNT(v) BETWEEN 2 AND 3",
    "3 >= COUNT(v)",
    "COUNT(v[..i]) <= 2",
)
STEPS = ("v[i].x > v[i-1].x", "v[i].x = v[i-1].x", "v[i].y != v[i-1].y", "v[i].x - v[i-1].x >= 1", "v.x > 0")
PATTERNS = {
    "A@ a[]": ("a",),
    "SEQ(A a, B@ b[])": ("b", "a.x < b.x", "a.x = b.x", "FIRST(b).x > a.x", "b.y >= a.y"),
    "SEQ(A@ a[], B b)": ("a", "LAST(a).x < b.x", "a.x < b.x", "a.x != b.x"),
    "SEQ(A a, B@ b[], C c)": ("b", "LAST(b).x < c.x", "a.x < c.x", "a.y = b.y", "b.x <= c.x"),
    "SEQ(A@ a[], B@ b[], C c)": ("ab", "LAST(a).x < FIRST(b).x", "LAST(a).y = FIRST(b).y"),
    "SEQ(A a, B@ b[], A@ c[])": ("bc", "LAST(b).x > FIRST(c).x", "c.x > a.x"),
    "SEQ(A@ a[], A@ c[], B b)": ("ac", "LAST(a).x > FIRST(c).x"),
    "SEQ(C? c, B@ b[])": ("b", "c.x < b.x"),
    "SEQ(A a, B@ b[], C? c)": ("b", "LAST(b).x < c.x"),
    "SEQ(A a, OR(B@ b[], C c))": ("b", "a.x < c.x"),
    "SEQ(A a, NOT(C c), B@ b[])": ("b",),
}
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "", "REPORT any", "REPORT maximal"),
    "select": ("", "", "", "SELECT contiguous", "SELECT skip-till-next"),
    "within": ("", "WITHIN 5", "WITHIN 6 SLIDE 3", "WITHIN 9 SLIDE 9"),
    "rest": ("", "", "LIMIT 2 OFFSET 1", "HAVING LENGTH > 3", "HAVING COUNT(v) >= 2", "HAVING COUNT(v) = 2",
             "AGGREGATE COUNT(*), AVG(LENGTH)",
             "AGGREGATE COUNT(*) PER EVENT", "ORDER BY LENGTH DESC LIMIT 2", "AFTER MATCH SKIP PAST LAST"),
}  # fmt: skip
ON_INDEXES = Sizes(walked_choices=-1, counted_pairs=-1, small_pairs=-1, events_at_once=4, best_few=-1, best_worth=0)


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    variables, *others = PATTERNS[pattern]
    for _ in variables:
        pattern = pattern.replace("@", draw(among(COUNTED if "(A" in pattern else COUNTED[:-1])), 1)
    of_variables = [one.replace("v", variables[draw(st.integers(0, len(variables) - 1))]) for one in draw(
        lists(among((*BOUNDS, *STEPS)), min_size=1, max_size=3, unique=True)
    )]  # fmt: skip
    where = [*of_variables, *draw(lists(among(tuple(others)), max_size=1))] if others else of_variables
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values()).replace("(v)", f"({variables[-1]})")
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("AABBC", 8, nulls=draw(EITHER)))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(600)
@given(cases(), st.sampled_from((Sizes(), ON_INDEXES)))
def test_results_are_those_of_the_oracle(case: Case, sizes: Sizes) -> None:
    assert_same(case, sizes=sizes)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (
            "SEQ(A+ a[], B+ b[]) WHERE COUNT(a) >= 3 AND COUNT(b) >= 3 AND a[i].x > a[i-1].x AND b[i].x < b[i-1].x",
            INDEX,
        ),
        ("SEQ(A a, B{2,4} b[], C c) WHERE b[i].x > b[i-1].x WITHIN 5", INDEX),
        ("A{3,} a[] WHERE a[i].x > a[i-1].x WITHIN 5", INDEX),
        ("A{2,4} a[] WHERE a[i].x > a[i-1].x REPORT any", INDEX),
        ("SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x HAVING COUNT(b) >= 3", INDEX),
        ("SEQ(A a, B+ b[]) WHERE b[i].x > b[i-1].x HAVING COUNT(b) = 3", SEARCH),
        ("A{2,4} a[] WHERE a[i].x > a[i-1].x", SEARCH),
        ("SEQ(A a, OR(B+ b[], C c)) WHERE COUNT(b) >= 3", SEARCH),
        ("SEQ(A a, B{40,} b[], C{40,} c[])", SEARCH),
    ],
)
def test_where_events_are_counted_by_position(text: str, method: str) -> None:
    rows = [{"ts": 1, "id": 1, "type": "A", "x": 1, "y": 0.0}]
    case = Case(trellis.query(f"PATTERN {text}").syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)
    assert detect(case).plan.operator.method == method
