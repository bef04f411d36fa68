"""Patterns with repeated groups equal the oracle, whatever is repeated and asked of iterations."""

from __future__ import annotations

from math import comb
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

import trellis
from tests.compare import assert_same
from tests.grouping import grouped_case, is_refused
from tests.profiles import examples
from tests.strategies import Case
from trellis.errors import TrellisError, UsageError
from trellis.language.parser import parse


def _assert_same_or_refused(drawn: Case) -> None:
    try:
        assert_same(drawn)
    except UsageError as error:
        if not is_refused(error):
            raise


@examples(90)
@given(drawn=grouped_case(most=6))
def test_groups(drawn: Case) -> None:
    _assert_same_or_refused(drawn)


@examples(60)
@given(drawn=grouped_case(most=6, clauses=True))
def test_groups_with_every_clause(drawn: Case) -> None:
    _assert_same_or_refused(drawn)


@pytest.mark.slow
@settings(max_examples=800)
@given(drawn=grouped_case(most=7, clauses=True))
def test_many_more_groups(drawn: Case) -> None:
    _assert_same_or_refused(drawn)


EVENTS = pd.DataFrame(
    {"id": range(1, 9), "t": range(1, 9), "type": list("ABBAABCB"), "x": [1, 5, 3, 2, 7, 1, 4, 6]}
).set_index("id", drop=False)


def detect(text: str, **options: Any) -> Any:
    return trellis.query(text).detect(EVENTS, time="t", type="type", event_id="id", **options)


def test_rows_tell_iterations() -> None:
    rows = detect("PATTERN SEQ(A a, SEQ(B b)+ h[])+ g[] REPORT maximal").to_arrow().to_pylist()
    assert list(rows[0]) == ["rank", "length", "start_time", "end_time", "events", "bindings", "iterations"]
    assert rows[0]["events"] == [1, 2, 3, 4, 6, 8]
    assert rows[0]["bindings"] == ["a", "b", "b", "a", "b", "b"]
    assert rows[0]["iterations"] == ["1", "1.1", "1.2", "2", "2.1", "2.2"]


def test_one_row_an_event_tells_the_iteration() -> None:
    rows = detect("PATTERN SEQ(A a, B b){2} g[] LIMIT 1").explode().to_arrow().to_pylist()
    assert [(row["variable"], row["iteration"]) for row in rows] == [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")]


def test_an_optional_group_has_no_iterations() -> None:
    rows = detect("PATTERN SEQ(A a, SEQ(B b, B c)?, C d)").to_arrow().to_pylist()
    assert list(rows[0])[4:] == ["a", "b", "c", "d"]
    assert [(row["a"], row["b"], row["c"]) for row in rows][:2] == [(1, 2, 3), (1, 2, 6)]
    assert (1, None, None) in [(row["a"], row["b"], row["c"]) for row in rows]


def test_a_group_counts_without_listing() -> None:
    half = 200
    events = pd.DataFrame({"id": range(2 * half), "t": range(2 * half), "type": list("AB") * half})
    found = trellis.query("PATTERN SEQ(A a, B b){100,} g[] REPORT any").detect(events, time="t", type="type")
    assert found.count() == sum(comb(half + k, 2 * k) for k in range(100, half + 1))


def test_compact_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="repeated groups"):
        next(detect("PATTERN (A a)+ g[]").batches(compact=True))


def test_a_trend_of_iterations_is_explained_by_the_conditions_of_each() -> None:
    assert not list(detect("PATTERN SEQ(A a, B b)+ g[]")[0].explain())
    found = detect("PATTERN SEQ(A a, B b)+ g[] WHERE a.x < b.x")
    assert max(trend.length for trend in found) > 2
    for trend in found:
        reasons = trend.explain()
        assert not reasons.failing
        assert len(list(reasons)) == trend.length // 2


HARD = [
    "(A a)+ g[] WHERE g[2].a.x <= a.x",
    "SEQ(A a, B? b)+ g[] WHERE g[3].a.x != a.x AND g[2].b.x <= b.x",
    "(B{2,3} a[])+ g[] WHERE FIRST(g).a.x >= a.x",
    "AND(B a, A? b)+ g[] WHERE FIRST(g).a.x = a.x",
    "SEQ(NOT(C d), A a)+ g[] WHERE d.x > a.x",
    "AND(A a, B b, NOT(C d))+ g[]",
    "SEQ(AND(A a, NOT(C d), B? c), B b)+ g[] WHERE d.x > a.x",
    "SEQ(B x, AND(A a, SEQ(B b, NOT(C d)))+ g[])",
    "SEQ(A a, NOT(SEQ(B b, A d){2} g[]), B c) WHERE g[i].b.x > g[i-1].d.x",
    "SEQ(A a, NOT(SEQ(B b, A d)+ g[]), B c) WHERE COUNT(g) > 1",
    "SEQ(A a, NOT(SEQ(B b, NOT(SEQ(A d, A e)), B f)), B c) WHERE d.x < e.x AND b.x > f.x",
    "SEQ(A+ a[], B? b){2} g[] WHERE LAST(a).x >= LAST(g).b.x",
    "SEQ(B? b, A+ a[])+ g[] WHERE SUM(a.x) >= LAST(g).b.x",
    "SEQ(SEQ(A a, B+ b[])+ g[], C c) WHERE a.x + b.x <= c.x + 3",
    "SEQ(SEQ(A a, B+ b[])+ g[], C c) WHERE SUM(b.x) <= c.x + 2",
    "SEQ(SEQ(A a, B+ b[])+ g[], C c) WHERE g[i-1].a.x < c.x AND LAST(b).x < c.x + 2",
    "AND(SEQ(A a, B b)+ g[], C c) WHERE a.x + b.x <= c.x + 2",
    "SEQ(SEQ(A a, SEQ(B b)+ h[])+ g[], C c) WHERE a.x + b.x <= c.x + 2",
    "SEQ(A a, NOT(SEQ(B b, A d)), B c) WHERE b.x + d.x > a.x + c.x",
    "SEQ(A a, NOT(SEQ(SEQ(B b, A d){1,2} g[])), B c) WHERE b.x > a.x AND COUNT(g) < c.x",
    "SEQ(A a, NOT(SEQ(B+ b[], A d)), B c) WHERE SUM(b.x) > a.x",
    "SEQ(NOT(SEQ(B? b, A d)), B c) WHERE b.x > c.x",
    "SEQ(A a, NOT(SEQ(NOT(A e), B b, NOT(A d))), B c) WHERE b.x > a.x",
    "SEQ(A a, NOT(SEQ(B b, NOT(A d), C? e)), B c) WHERE b.x >= a.x",
    "SEQ(A a, NOT(SEQ(NOT(C e), A? b, B d)), B c) WHERE b.x < d.x AND d.x > a.x + 1",
    "SEQ(A a, NOT(SEQ(SEQ(NOT(A e), B b), OR(C f, SEQ(A g, NOT(C h))))), B c) WHERE b.x >= a.x AND g.x < c.x",
    "SEQ(A a, NOT(OR(SEQ(NOT(SEQ(B d, B e)), B b), C f)), B c) WHERE b.x > a.x AND d.x > e.x",
    "SEQ(A a, NOT(SEQ(NOT(A x), B b, NOT(C y))), B c) WHERE x.x < b.x AND y.x > b.x AND b.x > a.x",
    "SEQ(A a, NOT(AND(SEQ(NOT(A x), B b), C d, NOT(A y))), B c) WHERE x.x > d.x AND y.x > b.x",
    "SEQ(A a, NOT(SEQ(NOT(A x), B* d[], B b){2} g[]), B c) WHERE x.x > b.x AND COUNT(d) < 1",
    "SEQ(A a, NOT(SEQ(B b, NOT(SEQ(A x, C y)))), B c) WHERE x.x > b.x AND y.x < b.x",
    "SEQ(NOT(SEQ(NOT(C x), B b)), A c)+ g[] WHERE x.x < c.x",
    "SEQ(NOT(SEQ(NOT(SEQ(NOT(A x), C y)), B b)), A c) WHERE x.x > c.x",
    "SEQ(A a, NOT(SEQ(B+ b[], NOT(SEQ(C d, A f)), C e)), B c) WHERE d.x + b.x > a.x AND f.x > c.x",
    "SEQ(A a, NOT(SEQ(B b, NOT(SEQ(A d, NOT(B f), C h)), C e)), C c) WHERE f.x > b.x + a.x AND h.x < c.x",
    "SEQ(A a, NOT(SEQ(SEQ(NOT(C d), B b)+ g[], A e)), C c) WHERE d.x + b.x > a.x",
    "SEQ(A a, NOT(AND(B b, C d, NOT(SEQ(A e, B f)))), A c) WHERE e.x > c.x AND f.x < a.x",
    "SEQ(A a, NOT(AND(B b, C d, NOT(SEQ(NOT(C h), A e)))), A c) WHERE h.x > b.x",
    "SEQ(A a, NOT(SEQ(B b, NOT(SEQ(C d, B f){1,2} h[]), A e)), A c) WHERE h[i].d.x > h[i-1].f.x",
    "SEQ(A a, NOT(SEQ(B b, NOT((C d)+ h[]), A e)), A c) WHERE COUNT(h) > a.x AND d.x > e.x",
    "AND(SEQ(A a, B+ b[] UNTIL (b.x > a.x), B c), A d)",
    "AND(SEQ(A+ a[])+ g[], B+ b[]) WHERE SUM(a.x) < SUM(b.x)",
    "AND(SEQ(A a, B b)+ g[], SEQ(B c, A? d)+ h[]) WHERE a.x + b.x <= c.x + d.x",
    "SEQ(AND(SEQ(A a, B b)* g[], (B c)+ h[])+ k[], B f) WHERE a.x + b.x + f.x <= c.x + 9",
    "AND(SEQ(A a, contiguous B b), skip-till-next C c)",
]


@pytest.mark.parametrize("within", ["", "WITHIN 4", "WITHIN 4 SLIDE 2"])
@pytest.mark.parametrize("text", HARD)
def test_what_iterations_and_nots_ask_of_each_other(text: str, within: str) -> None:
    query = parse(f"PATTERN {text} REPORT any {within}")
    types = {"id": "int64", "t": "int64", "type": "string", "x": "int64"}
    assert_same(Case(query, EVENTS.to_dict("records"), {"time": "t", "type": "type", "event_id": "id"}, types))


def test_bounds_inside_of_bounds_multiply() -> None:
    with pytest.raises(TrellisError, match=r"states: every AND, and every bound"):
        detect("PATTERN SEQ(SEQ(A a){500} g[], B b){500} h[]").count()


def test_a_group_that_must_not_happen_must_not_happen_once() -> None:
    text = "PATTERN SEQ(A a, NOT({}), B c) WHERE b.x < d.x"
    once, often = (detect(text.format(f"SEQ(B b, A d){mark}")).to_arrow().to_pylist() for mark in ("", "+ g[]"))
    assert once == often
    assert 0 < len(once) < len(detect("PATTERN SEQ(A a, B c)"))


def test_too_many_conditions_on_iterations_are_named() -> None:
    where = " AND ".join(f"a.x + b.x < c.x + d.x + {k}" for k in range(40))
    query = trellis.query(f"PATTERN SEQ(AND(SEQ(A a, B b)+ g[], SEQ(C c, D d)+ h[]), Z z) WHERE {where}")
    events = pd.DataFrame({"ts": range(5), "type": list("ABCDZ"), "x": range(5)})
    with pytest.raises(TrellisError, match=r"look at variables and iterations of groups in 8\d ways; at most 60 fit"):
        query.detect(events, time="ts", type="type").count()
