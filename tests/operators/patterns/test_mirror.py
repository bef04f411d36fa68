"""Queries that are counted backwards in time have the counts of the oracle, and it is known which they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same, detect
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, rows_in_order
from trellis.plan.mirror import mirrored
from trellis.plan.sizes import Sizes

SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
OPTIONS = {"time": "ts", "type": "type", "event_id": "id"}
COMPARED = ("ABS(a.x - b.x) < 2", "b.x - a.y > 0.5", "a.x < b.x OR a.y = b.y", "a.x != b.x", "a.y = b.y", "a.x <= b.x",
            "b.ts - a.ts <= 4", "a.x + b.x < 5")  # fmt: skip
OF_A = ("a[i].x > a[i-1].x", "a[i].y - a[i-1].y < 1", "FIRST(a).x < LAST(a).x", "MAX(a.x) > b.x", "MIN(a.y) > b.y",
        "COUNT(a) >= 2", "LAST(a).x > b.x", "FIRST(a).y < b.y", "SUM(a.x) < 2 * b.x",
        "a[i].ts - a[i-1].ts <= 3")  # fmt: skip
OF_C = ("c[i].x > c[i-1].x", "LAST(c).x > b.x", "c.x < b.x", "FIRST(c).x > LAST(a).x", "MAX(c.x) < b.x", "a.x < c.x")
PATTERNS = {
    "SEQ(A+ a[], B b)": (*COMPARED, *OF_A),
    "SEQ(A* a[], B b)": (*COMPARED, *OF_A),
    "SEQ(A+ a[], C? c, B b)": (*COMPARED, *OF_A, "c.x > b.x"),
    "SEQ(A{2,} a[], B b)": COMPARED,
    "SEQ(A+ a[], B b, C+ c[])": (*COMPARED, *OF_A, *OF_C),
    "SEQ(A+ a[], OR(B b, C d), A+ c[])": (*COMPARED, "a.x < d.x OR a.y > d.y", *OF_C),
    "SEQ(A+ a[], AND(B b, C d))": (*COMPARED, "ABS(a.x - d.x) < 2", *OF_A),
    "SEQ(A c, A+ a[], B b)": (*COMPARED, *OF_A, "c.x < b.x"),
    "SEQ(A a, B+ b[])": ("LAST(b).x > a.x", "LAST(b).x - a.x > 1", "ABS(a.x - b.x) < 2"),
}
KINDS = ("AAABBCC", "AABACABB", "ABAABCBCA", "AAAABCACC", "CAABBACBA", "AACABBAAC", "AAB", "ABB", "B", "")
WITHIN = ("", "WITHIN 3", "WITHIN 2", "WITHIN 6 SLIDE 3", "WITHIN 5 SLIDE 5")
REST = ("", "", "", "", "HAVING LENGTH > 2", "HAVING COUNT(a) < 3", "HAVING MAX(a.x) > 1", "LIMIT 2",
        "AFTER MATCH SKIP PAST LAST", "AGGREGATE COUNT(*), SUM(a.x)")  # fmt: skip


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    asked = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    where = " AND ".join(f"({one})" for one in asked) + draw(among(("", "", "", " AND [y]")))
    report = draw(among(("", "REPORT any", "REPORT any")))
    text = f"PATTERN {pattern} WHERE {where} {report} {draw(among(WITHIN))} {draw(among(REST))}"
    rows = draw(rows_in_order(KINDS))
    schema, options = SCHEMA, OPTIONS
    if draw(EITHER):
        schema, rows = {**SCHEMA, "ts": "double"}, [{**row, "ts": row["ts"] / 10} for row in rows]
        for size in "23456":
            text = text.replace(f"WITHIN {size}", f"WITHIN 0.{size}").replace(f"SLIDE {size}", f"SLIDE 0.{size}")
            text = text.replace(f"ts <= {size}", f"ts <= 0.{size}")
    elif draw(EITHER):
        options = {**OPTIONS, "time": ("ts", "x")}
        rows = [{**row, "x": row["x"] or 0} for row in rows]
    return Case(trellis.query(text).syntax, rows, options, schema)


@examples(600)
@given(cases())
def test_counts_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=Sizes(small_pairs=-1, counted_pairs=-1))


@pytest.mark.slow
@examples(4000)
@given(cases())
def test_counts_are_those_of_the_oracle_in_many_more(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize(
    ("text", "backwards"),
    [
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 REPORT any", True),
        ("SEQ(A+ a[], B b) WHERE a.x < b.x OR a.y = b.y REPORT any WITHIN 5", True),
        ("SEQ(A+ a[], B b) WHERE a.x < b.x", True),
        ("SEQ(A+ a[], B b, C+ c[]) WHERE a.x != b.x REPORT any WITHIN 5 SLIDE 5", True),
        ("SEQ(A a, B+ b[]) WHERE ABS(a.x - b.x) < 1 REPORT any", False),
        ("SEQ(A+ a[], B b) WHERE a.x < b.x REPORT maximal", False),
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 SELECT skip-till-next", False),
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 SELECT contiguous", False),
        ("SEQ(A+ a[], contiguous B b) WHERE ABS(a.x - b.x) < 1 REPORT any", False),
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 AND SUM(a.y) < b.x REPORT any", False),
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 AND a[2].x < b.x REPORT any", False),
        ("SEQ(A+ a[], B b) WHERE ABS(a.x - b.x) < 1 REPORT any AFTER MATCH SKIP PAST LAST", False),
    ],
)
def test_what_is_counted_backwards(text: str, backwards: bool) -> None:
    rows = [{"ts": 1, "id": 1, "type": "A", "x": 1, "y": 0.0}]
    case = Case(trellis.query(f"PATTERN {text}").syntax, rows, OPTIONS, SCHEMA)
    assert (mirrored(detect(case).plan) is not None) == backwards
