"""The best matches of patterns without repetition, by branch and bound: those of the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare import ByJoins, assert_same
from tests.profiles import examples
from tests.strategies import Case, fixed_case
from trellis.language import syntax as s
from trellis.language.parser import parse

SINGLE = ("{0}.x", "{0}.y", "{0}.k", "{0}.d", "{0}.time", "{0}", "MAX({0}.y)", "SUM({0}.d)", "COUNT({0})", "{0}.b")
DOUBLE = (
    "{0}.x - {1}.x", "{0}.y + {1}.y", "{0}.y - {1}.x", "{0}.y / {1}.y", "{0}.x * {1}.x", "{0}.y * {1}.y",
    "ABS({0}.y - {1}.y)", "({0}.y - {1}.y) / {1}.y", "COALESCE({0}.x, {1}.x)", "COALESCE({0}.y, {1}.x) - {1}.y",
    "{0}.d - {1}.d", "{0}.d * {1}.x", "-{0}.y - {1}.y", "{0}.x % {1}.x", "SUM({0}.y) + LENGTH", "{0}.n - {1}.n",
    "ABS({0}.x) + {1}.x - {0}.x", "{0}.x / {1}.x", "{0}.y % {1}.y",
)  # fmt: skip
FUNCTIONS = (
    "ROUND({0}.y - {1}.y)", "ROUND({0}.y / {1}.y, 1)", "ROUND({0}.y * {1}.x, -1)", "FLOOR({0}.y - {1}.y)",
    "CEIL({0}.y / {1}.y)", "FLOOR({0}.x - {1}.x)", "ROUND({0}.x - {1}.x)", "ROUND({0}.x + {1}.x, -1)",
    "SQRT({0}.y - {1}.y)", "LN({0}.x - {1}.x)", "EXP({0}.y - {1}.y)", "ROUND({0}.d - {1}.d)", "FLOOR({0}.y % {1}.x)",
    "CASE WHEN {0}.x > {1}.x THEN {0}.x ELSE {1}.x END", "CASE WHEN {0}.y < {1}.y THEN {0}.y ELSE {1}.x END",
    "CASE WHEN {0}.x > 1 THEN {0}.y - {1}.y END", "CASE WHEN {0}.x IS NULL THEN 1 ELSE {0}.x - {1}.x END",
    "CASE WHEN {0}.x = 1 OR {1}.y > 2 THEN {1}.d WHEN {0}.y > {1}.y THEN {0}.d ELSE 1.5 END",
    "ABS(ROUND({0}.y + {1}.y) - FLOOR({0}.y))", "SQRT(ABS({0}.x - {1}.x))", "ROUND({0}.y * 1e15 - {1}.y, 2)",
)  # fmt: skip


@st.composite
def best_case(draw: Any, most: int = 7) -> Case:
    """Draw a pattern without repetition, with ORDER BY and LIMIT."""
    case = draw(fixed_case(most=most))
    pattern = case.query.pattern
    negated = {leaf.var for one in s.absent_patterns(pattern) for leaf in s.leaves(one)}
    names = sorted({node.var for node in s.walk(pattern) if isinstance(node, s.Single)} - negated)
    keys = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 2, 3)))):
        texts = draw(st.sampled_from((SINGLE, DOUBLE, DOUBLE, FUNCTIONS, ("LENGTH",))))
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        keys.append(draw(st.sampled_from(texts)).format(one, other) + draw(st.sampled_from(("", " DESC"))))
    arranged = parse(f"PATTERN E e ORDER BY {', '.join(keys)} LIMIT {draw(st.sampled_from((0, 1, 2, 3, 5, 20)))}")
    query = replace(
        case.query, order_by=arranged.order_by, limit=arranged.limit, per_window=draw(st.booleans()),
        offset=draw(st.sampled_from((0, 0, 1, 3))), aggregates=(), group_by=(), limit_per=(), per_event=None,
    )  # fmt: skip
    return replace(case, query=query)


@st.composite
def case_per_item(draw: Any) -> Case:
    """Draw the same with LIMIT PER items, most of which are of one event."""
    case, keys = draw(best_case()), draw(st.booleans())
    pattern = case.query.pattern
    negated = {leaf.var for one in s.absent_patterns(pattern) for leaf in s.leaves(one)}
    names = sorted({node.var for node in s.walk(pattern) if isinstance(node, s.Single)} - negated)
    items = []
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        one, other = draw(st.sampled_from(names[:2])), draw(st.sampled_from(names))
        texts = (*SINGLE, "ABS({0}.x)", "{0}.x - {1}.x", "{0}.y * {0}.x")
        items.append(draw(st.sampled_from(texts)).format(one, other))
    per = parse(f"PATTERN E e LIMIT {draw(st.sampled_from((0, 1, 2, 5)))} PER {', '.join(items)}").limit_per
    return replace(case, query=replace(case.query, limit_per=per, order_by=case.query.order_by if keys else ()))


@st.composite
def kept_case(draw: Any) -> Case:
    """Draw the same with AFTER MATCH, which keeps the best of a first event."""
    case = draw(best_case())
    always = sorted(_always_bound(case.query.pattern))
    skip = draw(st.sampled_from([*s.Skip] if always else [s.Skip.PAST_LAST, s.Skip.TO_NEXT]))
    named = skip in (s.Skip.TO_FIRST, s.Skip.TO_LAST)
    after = s.AfterMatch(skip, draw(st.sampled_from(always)) if named else None)
    limit = draw(st.sampled_from((None, 2)))
    return replace(case, query=replace(case.query, after_match=after, limit=limit, per_window=False, offset=0))


def _always_bound(pattern: s.Pattern) -> set[str]:
    """Return the variables that every match binds."""
    match pattern:
        case s.Single(var=var, optional=optional):
            return set() if optional else {var}
        case s.Seq(parts=parts) | s.And(arms=parts):
            return set().union(*map(_always_bound, parts))
        case s.Or(arms=arms):
            return set.intersection(*map(_always_bound, arms))
    return set()


@examples(500)
@given(drawn=best_case())
def test_best_matches_equal_the_oracle(drawn: Case) -> None:
    assert_same(drawn, make=ByJoins)


@examples(200)
@given(drawn=best_case())
def test_whatever_operator_runs(drawn: Case) -> None:
    assert_same(drawn)


@examples(300)
@given(drawn=case_per_item())
def test_the_best_of_each_item_equal_the_oracle(drawn: Case) -> None:
    assert_same(drawn, make=ByJoins)


@examples(200)
@given(drawn=kept_case())
def test_after_match_keeps_the_best_of_each_first_event(drawn: Case) -> None:
    assert_same(drawn, make=ByJoins)


@pytest.mark.slow
@settings(max_examples=4000)
@given(drawn=best_case(most=8))
def test_many_more(drawn: Case) -> None:
    assert_same(drawn, make=ByJoins)
