"""Patterns of several variables equal the oracle, on random queries of every shape."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.compare import assert_same, detect
from tests.grouping import greedy_case, grouped_case, is_refused
from tests.profiles import examples
from tests.strategies import Case, best_case, chain_case, general_case
from trellis.errors import OverflowInCondition, TrellisError
from trellis.operators.batch import PathBatch
from trellis.operators.contract import ListRequest
from trellis.operators.patterns.operator import PatternOperator
from trellis.plan.sizes import Sizes
from trellis.plan.spec import PATTERNS, SEARCH, OperatorSpec

AS_MANY = Sizes(walked_choices=-1)  # few events of a sequence are not walked


@examples(500)
@given(drawn=general_case(most=7))
def test_patterns_of_any_shape(drawn: Case) -> None:
    assert_same(drawn, sizes=AS_MANY)


@examples(400)
@given(drawn=general_case(most=7, clauses=True))
def test_with_every_clause(drawn: Case) -> None:
    assert_same(drawn)


@examples(300)
@given(drawn=general_case(most=7, words=True))
def test_with_policies_of_steps_greedy_and_until(drawn: Case) -> None:
    assert_same(drawn)


@examples(100)
@given(drawn=greedy_case())
def test_greedy_inside_and(drawn: Case) -> None:
    _assert_same_or_refused(drawn)


@pytest.mark.slow
@settings(max_examples=400)
@given(drawn=greedy_case())
def test_many_more_greedy_inside_and(drawn: Case) -> None:
    _assert_same_or_refused(drawn)


@examples(400)
@given(drawn=chain_case(), sizes=st.sampled_from([Sizes(), AS_MANY]))
def test_chains(drawn: Case, sizes: Sizes) -> None:
    assert_same(drawn, sizes=sizes)


SEARCHING = replace(AS_MANY, best_few=-1, best_worth=0, best_steps=1 << 60)  # even where listing would be quicker


@examples(300)
@given(drawn=best_case())
def test_the_best_are_searched(drawn: Case) -> None:
    assert_same(drawn, sizes=SEARCHING)


@pytest.mark.slow
@settings(max_examples=800)
@given(drawn=best_case())
def test_the_best_are_searched_in_many_more(drawn: Case) -> None:
    assert_same(drawn, sizes=SEARCHING)


@examples(400)
@given(drawn=general_case(most=7))
def test_the_exploration_finds_what_other_operators_find(drawn: Case) -> None:
    _assert_explored(drawn)


@pytest.mark.slow
@settings(max_examples=800)
@given(drawn=general_case(most=8, most_leaves=4))
def test_the_exploration_finds_it_in_many_more(drawn: Case) -> None:
    _assert_explored(drawn)


def _assert_explored(drawn: Case) -> None:
    """Take the exploration where the plan would take another operator, and compare the results."""
    try:
        operator = detect(drawn).operator
        counts = list(operator.counts)
    except TrellisError:
        return
    plan = operator.plan
    search = OperatorSpec(PATTERNS, SEARCH, "")
    explored = PatternOperator(replace(plan, operator=search), operator.events)
    assert list(explored.counts) == counts
    ranges = [(group, 0, count) for group, count in enumerate(counts) if count]
    lots = [list(one.list(ListRequest(ranges, lambda some: some))) for one in (operator, explored)]
    assert _events(lots[0]) == _events(lots[1])


def _events(lots: list[PathBatch]) -> list[Any]:
    """Return the events and the rank of each result."""
    return [(events, rank) for events, _, rank in _paths(lots)]


@pytest.mark.slow
@settings(max_examples=3500)
@given(drawn=general_case(most=8, most_leaves=4, clauses=True))
def test_many_more_patterns(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=800)
@given(drawn=chain_case(most=10), sizes=st.sampled_from([Sizes(), AS_MANY]))
def test_many_more_chains(drawn: Case, sizes: Sizes) -> None:
    assert_same(drawn, sizes=sizes)


@examples(10)
@given(drawn=st.one_of(general_case(most=7, clauses=True, words=True), grouped_case(clauses=True), greedy_case()))
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    _assert_same_or_refused(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=st.one_of(general_case(most=7, clauses=True, words=True), grouped_case(clauses=True), greedy_case()))
def test_more_on_spark(spark: SparkSession, drawn: Case) -> None:
    _assert_same_or_refused(drawn, engine="spark", spark=spark)


def _assert_same_or_refused(drawn: Case, **options: Any) -> None:
    try:
        assert_same(drawn, **options)
    except TrellisError as error:
        if not is_refused(error):
            raise


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=chain_case())
def test_chains_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@examples(150)
@given(drawn=chain_case(most=10))
def test_results_found_by_rank_are_those_listed(drawn: Case) -> None:
    try:
        operator = detect(drawn).operator
        counts = operator.counts
    except OverflowInCondition:
        return
    every: list[Any] = []
    for group, count in ((g, c) for g, c in enumerate(counts) if c):
        listed = list(operator.list(ListRequest([(group, 0, count)], lambda some: some)))
        assert _paths([operator.at(group, range(count))]) == _paths(listed)
        every += _paths(listed)
    indexed = operator.indexed if isinstance(operator, PatternOperator) else None
    for begin, end in ((1, 4), (0, 1), (3, 9)) if indexed is not None and indexed.in_order else ():
        few = indexed.operator.first_on_index(begin, end) if indexed is not None else None
        if few is not None and indexed is not None:
            assert _paths([few.on(*indexed.vertices)]) == every[begin:end]


def _paths(lots: list[PathBatch]) -> list[Any]:
    """Return the events, variables and rank of each result."""
    found = []
    for some in lots:
        variables = some.positions if some.variables is None else some.variables
        for (begin, end), rank in zip(pairwise(some.offsets), some.ranks, strict=True):
            found.append((some.positions[begin:end].tolist(), variables[begin:end].tolist(), rank))
    return found
