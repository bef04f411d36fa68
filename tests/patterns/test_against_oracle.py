"""Patterns of several variables equal the oracle: a thousand random queries in every run, more in the slow one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from tests.compare import assert_same
from tests.strategies import Case, chain_case, general_case

SETTINGS = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate], "database": None, "deadline": None}


@seed(6001)
@settings(max_examples=300, **SETTINGS)
@given(drawn=general_case(most=7))
def test_patterns_of_any_shape(drawn: Case) -> None:
    assert_same(drawn)


@seed(6002)
@settings(max_examples=300, **SETTINGS)
@given(drawn=general_case(most=7, clauses=True))
def test_with_every_clause(drawn: Case) -> None:
    assert_same(drawn)


@seed(6003)
@settings(max_examples=400, **SETTINGS)
@given(drawn=chain_case())
def test_chains(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@seed(6004)
@settings(max_examples=3000, **SETTINGS)
@given(drawn=general_case(most=8, most_leaves=4, clauses=True))
def test_many_more_patterns(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@seed(6005)
@settings(max_examples=2000, **SETTINGS)
@given(drawn=chain_case(most=10))
def test_many_more_chains(drawn: Case) -> None:
    assert_same(drawn)


@seed(6006)
@settings(max_examples=4, **SETTINGS)
@given(drawn=general_case(most=7, clauses=True))
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@seed(6007)
@settings(max_examples=60, **SETTINGS)
@given(drawn=general_case(most=7, clauses=True))
def test_more_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@seed(6008)
@settings(max_examples=60, **SETTINGS)
@given(drawn=chain_case())
def test_chains_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)
