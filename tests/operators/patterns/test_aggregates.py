"""Conditions on the events so far and on whole variables, and HAVING, equal the oracle."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, running_case
from trellis.errors import OverflowInCondition, TrellisError, UsageError
from trellis.plan.sizes import Sizes


@examples(150)
@given(drawn=running_case())
def test_running_and_whole_aggregates(drawn: Case) -> None:
    assert_same(drawn)


@examples(100)
@given(drawn=running_case(most=6, general=True))
def test_aggregates_of_any_pattern(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=300)
@given(drawn=running_case(most=8))
def test_many_more(drawn: Case) -> None:
    assert_same(drawn)


@pytest.mark.slow
@settings(max_examples=300)
@given(drawn=running_case(most=7, general=True))
def test_many_more_patterns(drawn: Case) -> None:
    assert_same(drawn)


@examples(10)
@given(drawn=running_case())
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, engine="spark", spark=spark)


# --- By hand ------------------------------------------------------------------------------------------------


def trends(text: str, **columns: Any) -> Any:
    """Return the results over events of the times 0, 1, 2, ...; a column `kind` is their type."""
    events = pd.DataFrame(columns)
    return trellis.query(text).detect(
        events.assign(t=range(len(events))), time="t", type="kind" if "kind" in columns else None
    )


def test_counts_of_a_running_sum_need_no_listing() -> None:
    text = "PATTERN E+ s[] WHERE SUM(s[..i].x) <= 60 REPORT any"
    ways = [1] + [0] * 60  # sets of events by their sum
    for x in range(1, 61):
        for total in range(60, x - 1, -1):
            ways[total] += ways[total - x]
    assert trends(text, x=range(1, 61)).count() == sum(ways) - 1


def test_having_counts_without_listing() -> None:
    found = trends("PATTERN E+ s[] HAVING SUM(s.x) = 100 REPORT any", x=[1] * 200)
    assert str(found.count()) == "90548514656103281165404177077484163874504589675413336841320"


def test_no_value_twice_is_refused_where_sets_are_too_many() -> None:
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x NOT IN (s[..i-1].x) REPORT any")
    events = pd.DataFrame({"ts": range(64), "x": range(64)})
    found = query.detect(events, time="ts", sizes=Sizes(most_vertices=1 << 13))
    wanted = r"more than .* of 64 events; most of all they differ in the different values of every s, for `s.x NOT IN"
    with pytest.raises(TrellisError, match=wanted):
        found.count()


def test_a_sum_that_leaves_64_bits_is_told() -> None:
    found = trends("PATTERN E+ s[] WHERE SUM(s[..i].x) > 0", x=[2**62, 2**62, 2**62])
    with pytest.raises(OverflowInCondition, match=r"`SUM\(s.x\)` leaves 64 bits"):
        found.count()


def test_events_so_far_beside_a_later_variable_are_refused() -> None:
    with pytest.raises(UsageError, match="speaks of the events of a so far and of b, which is not complete before a"):
        trends("PATTERN SEQ(A+ a[], B b) WHERE SUM(a[..i].x) < b.x", x=[1, 2], kind=["A", "B"])


def test_events_so_far_beside_those_to_come_are_refused() -> None:
    with pytest.raises(UsageError, match="speaks of the events of s so far and of those to come"):
        trends("PATTERN E+ s[] WHERE SUM(s[..i].x) < LAST(s).x", x=[1, 2])


def test_sums_of_doubles_in_having_are_rounded_once() -> None:
    columns = {"y": [1e16, 1.0, -1e16, 0.5]}
    text = "PATTERN E+ s[] WHERE COUNT(s) = 4 HAVING {} REPORT any"
    assert trends(text.format("SUM(s.y) = 1.5"), **columns).count() == 1
    assert trends(text.format("AVG(s.y) = 0.375"), **columns).count() == 1


def test_an_explanation_tells_aggregates() -> None:
    found = trends("PATTERN E+ s[] WHERE s[i].x > AVG(s[..i-1].x) HAVING SUM(s.x) > 3 REPORT maximal", x=[1, 3, 2, 5])
    text = str(found[0].explain())
    assert "AVG(s[..1].x) = 1" in text
    assert "SUM(s.x) > 3 holds: SUM(s.x) = 9" in text


def test_an_explanation_tells_the_values_so_far() -> None:
    found = trends("PATTERN E+ s[] WHERE s[i].x NOT IN (s[..i-1].x) REPORT maximal", x=["a", "b"])
    assert "s[2].x = b, s[..1].x = a" in str(found[0].explain())


def test_the_plan_tells_running_registers() -> None:
    text = str(trellis.query("PATTERN E+ s[] WHERE s[i].x > AVG(s[..i-1].x) HAVING COUNT(s) < 3").explain())
    assert "the sum of x of s for `s.x > AVG(s[..i-1].x)`" in text
    assert "how many s, up to 4 for `COUNT(s) < 3`" in text
