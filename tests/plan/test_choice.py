"""Which operator a plan names, how, and what takes its place: decided once, from the query alone."""

from __future__ import annotations

import pytest

import trellis
from trellis.errors import UsageError
from trellis.plan.choice import of_patterns, with_algorithm
from trellis.plan.plan import Plan
from trellis.plan.settings import AlgorithmSettings
from trellis.plan.variants import aggregate_plan, limited_plan, top_plan

SETTINGS = AlgorithmSettings(memory_limit=1000, max_trends=7)


def plan_of(text: str, algorithm: str = "auto") -> Plan:
    return with_algorithm(trellis.query(f"PATTERN {text}").plan(None), algorithm, SETTINGS)


RISING = "E+ s[] WHERE s[i].x > s[i-1].x"


@pytest.mark.parametrize(
    ("text", "algorithm", "ways"),
    [
        (RISING, "auto", ["trends index", "trends edges"]),
        (RISING, "ranks", ["trends index", "trends edges"]),
        (f"{RISING} REPORT maximal", "auto", ["trends edges"]),
        (f"{RISING} SELECT contiguous", "auto", ["trends edges"]),
        (RISING, "dfs", ["named dfs"]),
        ("E+ s[] WHERE FIRST(s).x < 3", "auto", ["patterns search"]),
        ("E e", "auto", ["patterns index", "patterns edges"]),
        ("SEQ(A a, B b) WHERE a.x < b.x", "auto", ["patterns index", "patterns edges"]),
        ("SEQ(A a, B b) WHERE a.x < b.x", "walk", ["sequences walk", "patterns index", "patterns edges"]),
        ("SEQ(A a, SEQ(B b, C c)) WHERE a.x < c.x", "auto", ["sequences walk", "patterns edges", "patterns search"]),
        ("SEQ(A a, NOT(B b), C c)", "auto", ["sequences walk", "patterns edges"]),
        ("SEQ(A a, B b, C c) WHERE a.x < c.x", "tree", ["tree tree", "patterns edges", "patterns search"]),
        ("SEQ(A a, B b, C c) WHERE a.x < c.x", "condensed", ["tree condensed", "patterns edges", "patterns search"]),
        ("SEQ(A a, B+ b[], C c) WHERE a.x < c.x", "auto", ["patterns edges", "patterns search"]),
        ("SEQ(A+ a[], B+ b[]) WHERE a.x < b.x", "auto", ["patterns search"]),
        ("AND(A a, B b)", "auto", ["joins walk", "patterns search"]),
        ("AND(A a, B b)", "condensed", ["join tree condensed", "patterns search"]),
        ("OR(SEQ(A a, B b), SEQ(B b, A a))", "auto", ["joins walk", "patterns search"]),
        ("OR(A a, SEQ(A a, B b))", "auto", ["patterns search"]),
        ("SEQ(A a, B b, C c) WHERE a.x + b.x < c.x", "auto", ["joins walk", "patterns search"]),
        ("SEQ(A a, B b) SELECT skip-till-next", "auto", ["patterns search"]),
    ],
)
def test_the_operator_and_those_that_take_its_place(text: str, algorithm: str, ways: list[str]) -> None:
    plan = plan_of(text, algorithm)
    chosen = plan.operator
    assert [f"{spec.name} {spec.method}" for spec in chosen.ways()] == ways
    for spec in (*chosen.ways(), *of_patterns(plan).ways()):
        assert (spec.algorithm, spec.settings) == (algorithm, SETTINGS)
        assert spec.reason
        assert spec.cost.strip()
        assert bool(spec.unless) == (spec.otherwise is not None), "what takes its place, and where, are said together"


@pytest.mark.parametrize(
    ("text", "algorithm", "message"),
    [
        ("SEQ(A a, B b)", "dfs", "finds the trends of one Kleene variable"),
        (RISING, "walk", "is for fixed sequences"),
        ("SEQ(A a, NOT(B b), C c)", "tree", "takes no NOT"),
        ("OR(A a, B b)", "tree", "takes no OR"),
        (f"{RISING} HAVING LENGTH > 2", "bfs", "takes no HAVING"),
    ],
)
def test_an_algorithm_that_does_not_take_the_query(text: str, algorithm: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_of(text, algorithm)


def test_other_output_keeps_the_operator() -> None:
    plan = plan_of("SEQ(A a, B b, C c) WHERE a.x < c.x", "tree")
    for other in (aggregate_plan(plan, ("count(*)",)), top_plan(plan, 2, "length"), limited_plan(plan, 3)):
        assert other.operator == plan.operator


def test_the_views_are_those_of_the_automaton() -> None:
    automaton = plan_of("SEQ(NOT(X x), A a, OR(B+ b[], SEQ(C c, NOT(Y y))), D d)").automaton
    links = automaton.links()
    assert links is not None
    assert dict(links.steps) == {(0, 1): (), (0, 2): (), (1, 1): (), (1, 3): (), (2, 3): ("y",)}
    assert (links.firsts, links.lasts, links.before, links.after) == ((0,), (3,), ("x",), ())
    assert automaton.chain() is None
    assert plan_of("SEQ(A a, NOT(X x), SEQ(B b, NOT(Y y)))").automaton.chain() == ((), ("x",), ("y",))
    assert plan_of("AND(A a, B b)").automaton.links() is None
