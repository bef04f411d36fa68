"""Patterns without repetition equal the oracle: random ones of SEQ, AND, OR and NOT with any conditions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, fixed_case


def _never(*_: object) -> bool:
    return False


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the operator of joins answer, also where one of patterns or sequences would."""
    monkeypatch.setattr("trellis.plan.positions._can_index", _never)
    monkeypatch.setattr("trellis.plan.choice.fixed_sequence", lambda *_: None)


@examples(400)
@given(drawn=fixed_case())
def test_fixed_patterns(always: None, drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=4000)
@given(drawn=fixed_case(most=8, most_leaves=5))
def test_many_more(always: None, drawn: Case) -> None:
    assert_same(drawn)


@examples(3)
@given(drawn=fixed_case())
def test_on_spark(spark: SparkSession, always: None, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=fixed_case())
def test_more_on_spark(spark: SparkSession, always: None, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)
