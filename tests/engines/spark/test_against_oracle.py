"""The Spark engine equals the oracle, on the same random queries as the local one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, case

pytestmark = pytest.mark.spark


@examples(20)
@given(drawn=case())
def test_results_ranks_and_aggregates_equal_the_oracle(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@settings(max_examples=200)
@given(drawn=case())
def test_many_more_equal_the_oracle(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)
