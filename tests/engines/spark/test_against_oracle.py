"""The Spark engine equals the oracle, on the same random queries as the local one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from tests.compare import assert_same
from tests.strategies import Case, case

pytestmark = pytest.mark.spark


@seed(20161)
@settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None
)
@given(drawn=case())
def test_results_ranks_and_aggregates_equal_the_oracle(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


@pytest.mark.slow
@seed(20162)
@settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None
)
@given(drawn=case())
def test_many_more_equal_the_oracle(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)
