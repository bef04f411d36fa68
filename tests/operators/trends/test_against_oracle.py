"""The local engine equals the oracle: every kind of window, policy, report mode and clause of one Kleene variable."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.compare import assert_same
from tests.strategies import Case, case


@settings(max_examples=1200, deadline=None, suppress_health_check=list(HealthCheck))
@given(case())
def test_results_ranks_and_aggregates_equal_the_oracle(drawn: Case) -> None:
    assert_same(drawn)
