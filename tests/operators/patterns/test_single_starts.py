"""Counts and ORDER BY with LIMIT by first events: earlier ones tell what may be put before a match."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same, detect
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, arrow_table, lists
from trellis.operators.patterns.operator import PatternOperator
from trellis.plan.sizes import Sizes

COUNTED = Sizes(counted_pairs=-1, small_pairs=-1, explored_exponent=-1.0)
SEARCHED = replace(COUNTED, best_few=-1, best_worth=0, best_steps=1 << 60)
RISING = ("a[i].x > a[i-1].x", "a[i].y = a[i-1].y", "a[i].x >= a[i-1].x")
PATTERNS = {
    "SEQ(A+ a[], B b)": (*RISING, "a.x < b.x", "LAST(a).x >= b.x", "FIRST(a).x < LAST(a).x", "MAX(a.x) > b.x",
                         "SUM(a.x) < 5", "COUNT(a) >= 2", "a[2].x > b.x", "a[i].x > AVG(a[..i-1].x)"),
    "SEQ(A+ a[], B+ b[])": (*RISING, "a.x < b.x", "ABS(a.y - b.y) <= 0.5", "LAST(a).x < FIRST(b).x",
                            "b[i].x > b[i-1].x", "SUM(a.x) < SUM(b.x)", "MAX(b.x) > LAST(a).x"),
    "SEQ(A+ a[], B b, C+ c[])": (*RISING, "a.x < c.x", "LAST(a).x < b.x", "b.x < FIRST(c).x", "c[i].y != c[i-1].y"),
    "SEQ(A+ a[], B? b, C c)": (*RISING, "b.x < c.x", "LAST(a).x < b.x", "LAST(a).y <= c.y"),
    "SEQ(A{1,3} a[], B b)": (*RISING, "LAST(a).x < b.x"),
    "SEQ(A+ a[], NOT(B n), C c)": (*RISING, "n.x > a.x", "n.x > LAST(a).x", "n.y = c.y", "n.x > a.x AND n.x < c.x"),
    "SEQ(A+ a[], NOT(B n), C+ c[])": (*RISING, "n.x > LAST(a).x", "n.y = FIRST(c).y"),
    "SEQ(NOT(C n), A+ a[], B+ b[])": (*RISING, "a.x < b.x", "SUM(a.x) <= SUM(b.x)", "MAX(b.x) > LAST(a).x", "n.x > 1"),
    "SEQ(A+ a[], NOT(C n), SEQ(B b, A* c[]), B? d)": ("LAST(a).x < b.x", "SUM(a.x) >= b.x"),
    "SEQ(A+ a[] UNTIL (a.x > 2), B b)": (*RISING, "LAST(a).x < b.x"),
    "SEQ(SEQ(A a, B b)+ g[], C c)": ("a.x < b.x", "g[i].a.x > g[i-1].b.x", "g[i].a.y = g[i-1].b.y", "b.x < c.x",
                                     "FIRST(g).a.x < c.x", "LAST(g).b.x < c.x", "COUNT(g) >= 2"),
    "SEQ(SEQ(A a, B? b)+ g[], C c)": ("a.x < b.x", "g[i].a.x > g[i-1].a.x", "LAST(g).a.x < c.x"),
    "SEQ(SEQ(A a, NOT(C n), B b)+ g[], C c)": ("a.x < b.x", "n.x > a.x", "LAST(g).b.x < c.x"),
    "SEQ(SEQ(A+ a[], B b)+ g[], C c)": ("LAST(g).b.x < c.x", "g[i].b.x > g[i-1].b.x"),
    "SEQ(A+ a[], OR(B b, C c))": (*RISING, "LAST(a).x < b.x", "LAST(a).y = c.y"),
}  # fmt: skip
CLAUSES = {
    "having": ("", "", "", "HAVING SUM(a.x) > 2", "HAVING LENGTH >= 3", "HAVING MAX(a.x) = 3"),
    "report": ("", "", "", "REPORT any"),
    "within": ("", "WITHIN 5 SLIDE 5", "WITHIN 3 SLIDE 1", "WITHIN 4 SLIDE 2", "WITHIN 3", "WITHIN 5", "WITHIN 8"),
}
KEYS = ("LENGTH DESC", "LENGTH", "LENGTH DESC, FIRST(a).x", "SUM(a.x) DESC", "LAST(a).x - FIRST(a).x DESC",
        "AVG(a.x) DESC", "SUM(a.y) DESC", "MAX(a.x) DESC, LENGTH", "COUNT(a) DESC", "a[2].x DESC")  # fmt: skip
LIMITS = ("LIMIT 1", "LIMIT 2", "LIMIT 3", "LIMIT 3 OFFSET 2", "LIMIT 2 PER WINDOW", "LIMIT 100")
ROWS = lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9),
            "type": st.integers(0, 11),
            "x": among((0, 1, 2, 3, 0, 1, 2, 3, None)),
            "y": among((0.0, 0.5, 1.0, -0.0, 0.5, 1.0, 0.0, None, math.nan)),
        }
    ),
    min_size=5,
    max_size=11,
)
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
OPTIONS = {"time": "ts", "type": "type", "event_id": "id"}


@st.composite
def cases(draw: Any, arranged: bool) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=0, max_size=2, unique=True))
    clauses = " ".join(draw(among(some)) for some in CLAUSES.values())
    asks = f"WHERE {' AND '.join(where)}" if where else ""
    text = f"PATTERN {pattern} {asks} {clauses}"
    if arranged:
        keys = tuple(key for key in KEYS if "g[]" not in pattern or ".x" not in key)
        text += f" ORDER BY {draw(among(keys))} {draw(among(LIMITS))}"
    kinds = "ABC" if "C" in pattern else "AB"
    drawn = [{**row, "id": i, "type": kinds[row["type"] % len(kinds)]} for i, row in enumerate(draw(ROWS))]
    if draw(EITHER):  # a time for each event, so that many results are long
        drawn = [{**row, "ts": ts} for ts, row in enumerate(drawn)]
    if draw(EITHER):  # the last kinds come last
        drawn = [{**row, "type": kind} for row, kind in zip(drawn, sorted(row["type"] for row in drawn), strict=True)]
    return Case(trellis.query(text).syntax, drawn, OPTIONS, SCHEMA)


@examples(500)
@given(cases(arranged=False))
def test_counts_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=COUNTED)


@examples(500)
@given(cases(arranged=True), EITHER)
def test_the_best_results_are_those_of_the_oracle(case: Case, searched: bool) -> None:
    assert_same(case, sizes=SEARCHED if searched else COUNTED)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SEQ(A+ a[], NOT(B n), C c) WITHIN 9", True),
        ("SEQ(SEQ(A a, B b)+ g[], C c) WHERE a.x < b.x WITHIN 9", True),
        ("SEQ(A+ a[], B+ b[]) WHERE a[i].x > a[i-1].x AND a.x < b.x WITHIN 9", True),
        ("SEQ(A+ a[], B+ b[]) WHERE ABS(a.x - b.x) < 2 WITHIN 9", False),  # longer ones reach farther
        ("SEQ(SEQ(A+ a[], B b)+ g[], C c) WHERE b.x < c.x WITHIN 9", False),  # a match is cut in several ways
        ("SEQ(NOT(B n), A+ a[]) WHERE n.x < a.x WITHIN 9", True),
        ("SEQ(NOT(B n), A+ a[], C c) WHERE SUM(a.x) < c.x REPORT any WITHIN 9", True),
        ("SEQ(NOT(B n), A+ a[], C c) WHERE SUM(a.x) < c.x REPORT any WITHIN 9 SLIDE 9", True),
    ],
)  # fmt: skip
def test_what_is_told_by_first_events(text: str, told: bool) -> None:
    kinds = "ABABABCABC"
    rows = [{"ts": ts, "id": ts, "type": kind, "x": ts * 7 % 5, "y": 0.0} for ts, kind in enumerate(kinds)]
    operator = detect(Case(trellis.query(f"PATTERN {text}").syntax, rows, OPTIONS, SCHEMA), sizes=COUNTED).operator
    assert isinstance(operator, PatternOperator)
    assert (operator.structure.single_starts is not None) == told


def test_windows_that_were_counted_on_graphs_give_each_of_the_best_once() -> None:
    """The graphs of all windows are at hand then, whichever of them are looked into."""
    rows = [{"ts": ts, "id": ts, "type": "AAB"[ts % 3], "x": ts % 4, "y": 0.0} for ts in range(9)]
    text = "PATTERN SEQ(A+ a[], B b) WHERE SUM(a.x) > b.x REPORT maximal WITHIN 5 SLIDE 2 ORDER BY LENGTH DESC LIMIT 9"
    assert_same(Case(trellis.query(text).syntax, rows, OPTIONS, SCHEMA), sizes=COUNTED)  # counts, and then lists


@pytest.mark.parametrize("within", ["WITHIN 8 SLIDE 8", "WITHIN 7"])
def test_the_best_of_results_that_come_one_at_a_time(within: str) -> None:
    """Some hundreds, which are put in order first: each is told from those that are known before."""
    rows = [{"ts": ts, "id": ts, "type": "A", "x": ts % 3, "y": 0.0} for ts in range(40)]
    text = f"PATTERN SEQ(A+ a[], A b, A+ c[]) WHERE FIRST(a).x != LAST(c).x REPORT any {within}"
    table = arrow_table(rows, SCHEMA)
    every = trellis.query(text).detect(table, **OPTIONS).to_arrow().to_pylist()
    every.sort(key=lambda row: (row["events"][row["bindings"].index("b")] % 3, row["length"]))
    query = trellis.query(f"{text} ORDER BY b.x, LENGTH LIMIT 3")
    found = query.detect(table, **OPTIONS, sizes=replace(COUNTED, ordered_rows=1))
    assert found.to_arrow().to_pylist() == every[:3]
