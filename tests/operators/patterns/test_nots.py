"""NOTs in NOTs equal the oracle, whatever they are compared with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.compare import assert_same
from tests.forbidding import forbidding_case
from tests.grouping import is_refused
from tests.profiles import examples
from tests.strategies import Case
from trellis.errors import TrellisError


@examples(300)
@given(drawn=forbidding_case())
def test_nots_in_nots(drawn: Case) -> None:
    _assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=5000)
@given(drawn=forbidding_case(most=9))
def test_many_more_nots_in_nots(drawn: Case) -> None:
    _assert_same(drawn)


def _assert_same(drawn: Case) -> None:
    try:
        assert_same(drawn)
    except TrellisError as error:
        if not is_refused(error):
            raise
