"""Conditions on the events so far and on whole variables, and HAVING, equal the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, running_case


@examples(150)
@given(drawn=running_case())
def test_running_and_whole_aggregates(drawn: Case) -> None:
    assert_same(drawn)


@examples(100)
@given(drawn=running_case(most=6, general=True))
def test_aggregates_of_any_pattern(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=3000)
@given(drawn=running_case(most=8))
def test_many_more(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=3000)
@given(drawn=running_case(most=7, general=True))
def test_many_more_patterns(drawn: Case) -> None:
    assert_same(drawn)


@examples(4)
@given(drawn=running_case())
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)
