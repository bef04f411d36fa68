"""NOTs in NOTs equal the oracle, whatever they are compared with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import trellis
from tests.compare import assert_same
from tests.forbidding import forbidding_case
from tests.grouping import is_refused
from tests.profiles import examples
from tests.strategies import Case
from trellis.errors import TrellisError, UsageError


@examples(300)
@given(drawn=forbidding_case())
def test_nots_in_nots(drawn: Case) -> None:
    _assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=1000)
@given(drawn=forbidding_case(most=9))
def test_many_more_nots_in_nots(drawn: Case) -> None:
    _assert_same(drawn)


def _assert_same(drawn: Case) -> None:
    try:
        assert_same(drawn)
    except TrellisError as error:
        if not is_refused(error):
            raise


def _case(text: str, events: list[tuple[int, str, int]]) -> Case:
    rows = [{"id": i, "t": t, "type": type_, "x": x} for i, (t, type_, x) in enumerate(events)]
    schema = {"id": "int64", "t": "int64", "type": "string", "x": "int64"}
    return Case(trellis.query(text).syntax, rows, {"time": "t", "type": "type", "event_id": "id"}, schema)


@pytest.mark.parametrize("forbidden", ["AND(A a, A b)", "SEQ(A a, NOT(C c), A b)", "SEQ(A a, A b, NOT(C c))"])
@pytest.mark.parametrize("times", [(4, 5, 7), (3, 5, 6), (3, 5, 7), (2, 5, 7), (3, 5, 8)])
def test_beside_arms_a_forbidden_match_may_be_longer_than_the_span(forbidden: str, times: tuple[int, ...]) -> None:
    events = [(t, type_, 0) for t, type_ in zip(times, "ABA", strict=True)]
    assert_same(_case(f"PATTERN AND(B v, NOT({forbidden})) REPORT any WITHIN 2", events))


ITERATIONS = [(0, "A", 1), (1, "B", 0), (2, "A", 2), (3, "B", 3), (4, "A", 3), (5, "A", 0), (6, "B", 3), (7, "A", 3)]


@pytest.mark.parametrize("where", ["b.x = d.x", "b.x < d.x", "b.x != d.x AND b.x > 0"])
@pytest.mark.parametrize(
    "repeated", ["SEQ(A a, NOT(B b))", "SEQ(A a, NOT(B b), A c)", "AND(A a, NOT(B b))", "SEQ(A a, NOT(SEQ(B b)))"]
)
@pytest.mark.parametrize("clauses", ["", "SELECT skip-till-next", "WITHIN 5", "WITHIN 6 SLIDE 2"])
def test_what_a_not_forbids_in_each_iteration_is_compared_with_what_comes_behind_the_group(
    repeated: str, where: str, clauses: str
) -> None:
    assert_same(_case(f"PATTERN SEQ({repeated}+ g[], A d) WHERE {where} {clauses} REPORT any", ITERATIONS))


def test_compared_with_an_iteration_and_with_what_comes_behind_it_is_refused() -> None:
    text = "PATTERN SEQ(SEQ(A a, NOT(B b))+ g[], A d) WHERE b.x = d.x AND b.x > a.x"
    with pytest.raises(UsageError, match=r"`b\.x = d\.x` compares `b` and `a`, which are repeated apart"):
        assert_same(_case(text, ITERATIONS))


@pytest.mark.parametrize("forbidden", ["OR(B b, B c)", "OR(SEQ(NOT(C d), B b), B c)"])
def test_what_a_condition_does_not_name_is_forbidden_whatever_it_is_compared_with(forbidden: str) -> None:
    text = f"PATTERN SEQ(NOT({forbidden}), A+ a[]) WHERE b.x = a.x REPORT any"
    assert_same(_case(text, [(0, "B", 9), (1, "A", 1), (2, "A", 2), (3, "A", 2)]))
