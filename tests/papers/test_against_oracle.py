"""Every named algorithm, by every construction, finds what the oracle does, with the same ranks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare import detect, expected, plain_rows, rows_of
from tests.papers.cases import CONSTRUCTIONS, comparable, named_cases
from tests.profiles import examples
from tests.strategies import Case
from trellis.errors import OverflowInCondition, UsageError
from trellis.papers.registry import ABI

REFUSED = "an ABI graph indexes", "takes no AGGREGATE PER EVENT"


def check(drawn: Case, name: str, **options: Any) -> None:
    """Compare what an algorithm finds with the oracle's rows; some queries have nothing to index or to list."""
    answer = expected(drawn)
    try:
        trends = detect(drawn, algorithm=name, **options)
        found = rows_of(trends)
    except OverflowInCondition:
        assert isinstance(answer, str)
        return
    except UsageError as refused:
        if not any(reason in refused.what for reason in REFUSED):
            raise
        return
    assert not isinstance(answer, str), "the oracle overflows, the engine does not"
    assert trends.count() == answer.count
    if answer.aggregates is not None:
        assert plain_rows(found) == plain_rows(answer.aggregates)
    else:
        assert comparable(drawn, found) == comparable(drawn, answer.rows)


@examples(80)
@given(named_cases(clauses=False), st.sampled_from(sorted(ABI)), st.sampled_from(["auto", *CONSTRUCTIONS]))
def test_results_and_ranks_equal_the_oracle(drawn: Case, name: str, construction: str) -> None:
    check(drawn, name, construction=construction)


@pytest.mark.slow
@settings(max_examples=600)
@given(named_cases(most=12), st.sampled_from(sorted(ABI)), st.sampled_from(["auto", *CONSTRUCTIONS]))
def test_many_results_and_ranks_equal_the_oracle(drawn: Case, name: str, construction: str) -> None:
    check(drawn, name, construction=construction)
