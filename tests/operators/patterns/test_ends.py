"""Matches that something can be put after: counted without a graph, as the oracle and the graph of all matches do."""

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
from trellis.plan.carried import counts_alone
from trellis.plan.sizes import Sizes

OPERATORS = ("<", "<=", "=", "!=", ">=", ">")
LAST = tuple(f"LAST(b).{side}" for o in OPERATORS for side in (f"x {o} a.x", f"y {o} 0.5 * a.y", f"x + 1 {o} a.x * 2"))
REPEATED = tuple(f"b[i].x {operator} b[i-1].x" for operator in OPERATORS)
OF_B = (*LAST, "SUM(b.x) > 2", "SUM(b.x) = a.x", "COUNT(b) % 2 = 0", "COUNT(b) = 2", "MAX(b.x) > a.x", "AVG(b.y) < 0.7",
        "b[2].x > a.x", "LAST(b).x > FIRST(b).x", "b.x >= a.x", "LAST(b).x > a.x OR LAST(b).y < a.y")  # fmt: skip
PATTERNS = {
    "SEQ(A a, B+ b[])": OF_B,
    "SEQ(A a, C+ c[], B+ b[])": (*OF_B, "LAST(b).x > LAST(c).x", "c[i].x < c[i-1].x", "LAST(c).y != a.y"),
    "SEQ(A a, B+ b[], C? c)": (*OF_B, "c.x > a.x", "c.x < LAST(b).x"),
    "SEQ(A a, B{2,3} b[], C* c[])": (*OF_B, "LAST(c).x = a.x", "LAST(c).y > FIRST(b).y", "c[i].x != c[i-1].x"),
    "SEQ(A a, OR(B+ b[], C+ c[]))": (*OF_B, "LAST(c).x = a.x", "c[i].x >= c[i-1].x"),
    "SEQ(A a, NOT(C c), B+ b[])": (*OF_B, "c.x < a.x"),
    "SEQ(A a, SEQ(B+ b[], C c)+ g[])": (*LAST, "LAST(b).x < c.x"),
    "SEQ(A+ a[], B+ b[])": ("LAST(b).x > FIRST(a).x", "LAST(b).x < LAST(a).x", "SUM(b.x) > 2"),
    "B+ b[]": ("LAST(b).x > FIRST(b).x", "SUM(b.x) > 2", "COUNT(b) = 2"),
}
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "", "", "REPORT any", "REPORT maximal"),
    "within": ("", "WITHIN 5", "WITHIN 6 SLIDE 3", "WITHIN 9 SLIDE 9"),
    "rest": (
        "",
        "",
        "",
        "LIMIT 2 OFFSET 1",
        "HAVING LENGTH > 2",
        "HAVING LAST(b).x > 0",
        "AGGREGATE COUNT(*), SUM(b.x)",
    ),
}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(tuple(PATTERNS[pattern])), min_size=1, max_size=2, unique=True))
    where = [f"({one})" if " OR " in one else one for one in where]
    where += draw(lists(among(tuple(REPEATED)), max_size=1))
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("ABBBC", 8, nulls=draw(EITHER)))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(600)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case)


QUERIES = [
    ("SEQ(A a, B+ b[])", "LAST(b).x > a.x AND b[i].x > b[i-1].x"),
    ("SEQ(A a, B+ b[])", "LAST(b).x < a.x AND b[i].x != b[i-1].x"),
    ("SEQ(A a, B+ b[])", "LAST(b).x = a.x"),
    ("SEQ(A a, B+ b[])", "SUM(b.x) = 7 AND b[i].x >= b[i-1].x"),
    ("SEQ(A a, B+ b[], C* c[])", "LAST(b).x < a.x AND LAST(c).x = a.x AND b[i].x > b[i-1].x"),
    ("SEQ(A a, C+ c[], B+ b[])", "LAST(b).x > a.x AND c[i].x < c[i-1].x AND b[i].x > b[i-1].x"),
    ("SEQ(A a, B{2,5} b[])", "LAST(b).x != a.x"),
    ("SEQ(A a, B+ b[])", "b.x = a.x AND COUNT(b) % 2 = 0"),
    ("SEQ(A a, B+ b[])", "b[i].x = b[i-1].x AND LAST(b).id > a.id"),
    ("SEQ(A a, B+ b[], C+ c[])", "b.x = a.x AND c.x = a.x AND COUNT(c) > 1"),
    ("SEQ(A a, B+ b[], C* c[])", "b.x = a.x AND c[i].x = c[i-1].x AND SUM(b.x) > 3"),
]


@pytest.mark.parametrize("rest", ["", "WITHIN 15", "WITHIN 20 SLIDE 10", "WITHIN 20 REPORT any"])
@pytest.mark.parametrize(("pattern", "where"), QUERIES)
def test_counts_are_those_of_the_graph(pattern: str, where: str, rest: str) -> None:
    """More events than the oracle takes, at few times, and room that has to grow."""
    for seed in range(8):
        random = Random(seed)
        rows = [
            {"ts": random.randrange(30), "id": i, "type": random.choice("ABBBBC"), "x": random.randrange(5)}
            for i in range(36)
        ]
        query = trellis.query(f"PATTERN {pattern} WHERE {where} {rest}")
        found = query.detect(pa.Table.from_pylist(rows), time="ts", type="type", event_id="id")
        plan, events = found.plan, found.operator.events
        assert counts_alone(plan)
        plan = replace(plan, sizes=Sizes(least_vertices=2))
        exploration = Exploration(plan, events, make_variables(plan, events))
        last = len(events.groups)
        part = PatternPart(plan, exploration.paths(events.groups, 0, last), 0, last, 1)
        assert exploration.counts(events.groups) == list(part.operator.counts)
