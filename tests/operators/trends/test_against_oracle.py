"""The local engine equals the oracle: every kind of window, policy, report mode and clause of one Kleene variable."""

from __future__ import annotations

from hypothesis import given

from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, case


@examples(600)
@given(case())
def test_results_ranks_and_aggregates_equal_the_oracle(drawn: Case) -> None:
    assert_same(drawn)
