"""Matches that something may be put before: counted beside longer ones, as the oracle and the graph of all do."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, typed_rows
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.parts import PatternPart
from trellis.plan.carried import counts_beside
from trellis.plan.sizes import Sizes

OPERATORS = ("<", "<=", "=", "!=", ">=", ">")
OF_A = (
    *(f"FIRST(a).x {o} LAST(a).x" for o in OPERATORS), *(f"a[i].x {o} a[i-1].x" for o in OPERATORS), "SUM(a.x) < 4",
    "SUM(a.x) >= 3", "SUM(a.y) < 1.5", "COUNT(a) >= 2", "COUNT(a) % 2 = 0", "COUNT(a) <= 2", "MAX(a.x) > 2",
    "MIN(a.x) < 1", "a[2].x > 1", "AVG(a.x) > 1", "a[i].x > AVG(a[..i-1].x)", "a[i].x NOT IN (a[..i-1].x)",
    "FIRST(a).x > LAST(a).y", "a[i].x + 1 > a[i-1].x", "FIRST(a).y < LAST(a).x AND FIRST(a).x > LAST(a).y",
)  # fmt: skip
OF_BOTH = (
    *(f"{left} {o} {right}" for o in OPERATORS for left, right in (
        ("a.x", "b.x"), ("LAST(a).x", "b.x"), ("FIRST(a).x", "b.x"), ("a.x", "LAST(b).y"), ("SUM(a.x)", "LAST(b).x"),
        ("SUM(a.x)", "3 * FIRST(b).x"), ("MAX(a.x)", "LAST(b).x"), ("MIN(a.x)", "MIN(b.x)"),
        ("LAST(a).x", "LAST(b).x"),
    )),
    "a.x < b.x OR a.y = b.y", "ABS(a.x - b.x) < 2", "b.x - a.x > 0", "a[2].x >= b.x", "a.x + b.x < 3",
    "2 * FIRST(a).x < b.x + LAST(a).y",
)  # fmt: skip
OF_NOT = (
    "", *(f"n.x {o} a.x" for o in OPERATORS), "n.x > FIRST(a).x", "n.x < LAST(a).x", "n.x > a.x AND n.y = a.y",
    "n.x = COUNT(a)", "n.x <= COUNT(c)", "n.x > a.x AND n.x < c.x", "n.x = SUM(a.x)",
)  # fmt: skip
PATTERNS = {
    "A+ a[]": OF_A,
    "SEQ(A+ a[], B b)": (*OF_A, *OF_BOTH),
    "SEQ(A+ a[], B+ b[])": (*OF_A, *OF_BOTH),
    "SEQ(A{2,} a[], B+ b[], C? c)": (*OF_A, *OF_BOTH, "c.x > FIRST(a).x"),
    "SEQ(A? a, B+ b[])": OF_BOTH,
    "SEQ(C* c[], A+ a[], B b)": (*OF_BOTH, "LAST(c).x < b.x", "c.x < b.x", "FIRST(c).x >= LAST(a).x"),
    "SEQ(OR(A+ a[], C c), B+ b[])": (*OF_BOTH, "c.x < b.x"),
    "AND(A+ a[], B b)": (*OF_A, *OF_BOTH),
    "AND(A+ a[], B+ b[])": (*OF_A, *OF_BOTH),
    "SEQ(C? c, AND(A+ a[], B b))": (*OF_A, *OF_BOTH),
    "SEQ(A+ a[], NOT(B n), C c)": OF_NOT,
    "SEQ(A+ a[], NOT(B n), C+ c[])": OF_NOT,
    "SEQ(NOT(B n), A+ a[])": OF_NOT[:-3],
    "SEQ(NOT(B n), A+ a[], C c)": OF_NOT,
    "SEQ(A+ a[], C c, NOT(B n))": OF_NOT,
}
LARGER = ("A+ a[]", "SEQ(A+ a[], B b)", "SEQ(A+ a[], B+ b[])", "SEQ(A+ a[], NOT(B n), C c)")
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "", "", "", "REPORT any"),
    "within": ("", "", "WITHIN 5", "WITHIN 9", "WITHIN 6 SLIDE 3", "WITHIN 9 SLIDE 9"),
}


def text_of(pattern: str, where: list[str], rest: str) -> str:
    """Return a query with those of some conditions that name variables of its pattern."""
    asked = [f"({one})" if " OR " in one else one for one in where if one]
    return f"PATTERN {pattern} {'WHERE ' if asked else ''}{' AND '.join(asked)} {rest}"


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    if "? a," in pattern:
        where = [
            one for one in where if all(f"{name}(a)" not in one for name in ("SUM", "MAX", "MIN", "LAST", "FIRST"))
        ]
        where = [one for one in where if "a[2]" not in one]
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(text_of(pattern, where, chosen)).syntax
    rows = draw(typed_rows("AABBC", 8, nulls=draw(EITHER)))
    if draw(EITHER):  # a time for each event
        rows = [{**row, "ts": ts} for ts, row in enumerate(rows)]
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(600)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=Sizes(small_pairs=-1, explored_exponent=99.0))


def assert_same_as_the_graph(
    text: str, random: Random, size: int, ties: bool = True, pairs: int | None = None
) -> None:  # fmt: skip
    """Assert that a query over random events has the numbers of results that the graph of all matches has.

    With `pairs` there may be so many at a time, and these must be enough.
    """
    rows = [
        {
            "ts": random.randrange(size) if ties else i, "id": i, "type": random.choice("AABBC"),
            "x": random.randrange(5), "y": random.choice((0.0, 0.5, 1.0, 2.0)),
        }
        for i in range(size)
    ]  # fmt: skip
    found = trellis.query(text).detect(pa.Table.from_pylist(rows), time="ts", type="type", event_id="id")
    plan, events = found.plan, found.operator.events
    assert counts_beside(plan, not ties)
    plan = replace(
        plan, sizes=Sizes(least_vertices=2, **({} if pairs is None else {"beside_pairs": pairs, "beside_steps": 0}))
    )
    exploration = Exploration(plan, events, make_variables(plan, events))
    last = len(events.groups)
    part = PatternPart(plan, exploration.paths(events.groups, 0, last), 0, last, 1)
    counted = exploration.counts_beside(events.groups)
    assert counted == list(part.operator.counts) or (counted is None and pairs is None)


@pytest.mark.parametrize("rest", ["", "WITHIN 8", "WITHIN 12 SLIDE 6"])
@pytest.mark.parametrize("pattern", [*LARGER, "AND(A+ a[], B b)", "AND(A+ a[], B+ b[])"])
def test_counts_are_those_of_the_graph(pattern: str, rest: str) -> None:
    """More events than the oracle takes, at few times, and room that has to grow."""
    for number, where in enumerate(PATTERNS[pattern]):
        if not ("WITHIN 8" in rest and "% 2" in where):
            assert_same_as_the_graph(text_of(pattern, [where], rest), Random(number), 16, "AND" not in pattern)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A+ a[], B b) WHERE FIRST(a).x < LAST(a).x", "SEQ(A+ a[], B+ b[]) WHERE LAST(a).x < LAST(b).x",
        "AND(A+ a[], B b) WHERE a[i].x > a[i-1].x", "SEQ(A+ a[], NOT(B n), C c) WHERE n.x > FIRST(a).x",
    ],
)  # fmt: skip
def test_spans_take_room_for_the_matches_of_one_span(text: str, seed: int) -> None:
    assert_same_as_the_graph(f"PATTERN {text} WITHIN 8", Random(seed), 300, ties=False, pairs=128)


def test_room_that_a_small_window_took_does_not_refuse_a_larger_one() -> None:
    rows = [{"ts": 100 * (i > 12) + i, "id": i, "type": "AB"[i % 3 // 2], "x": i * 7 % 5} for i in range(60)]
    text = "PATTERN SEQ(A+ a[], B b) WHERE SUM(a.x) < 3 * LAST(b).x WITHIN 100 SLIDE 100"
    found = trellis.query(text.replace("LAST(b)", "b")).detect(
        pa.Table.from_pylist(rows), time="ts", type="type", event_id="id"
    )
    plan, events = (
        replace(found.plan, sizes=Sizes(least_vertices=2, beside_pairs=2, beside_steps=900)),
        found.operator.events,
    )
    exploration = Exploration(plan, events, make_variables(plan, events))
    assert exploration.counts_beside(events.groups) in (None, list(found.operator.counts))
