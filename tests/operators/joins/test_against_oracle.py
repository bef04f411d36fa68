"""Patterns without repetition equal the oracle: random ones of SEQ, AND, OR and NOT with any conditions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.compare import ByJoins, assert_same
from tests.profiles import examples
from tests.strategies import Case, Table, fixed_case, tables
from trellis.language.parser import parse
from trellis.plan.sizes import USUAL, Sizes

COUNTED = Sizes(counted_pairs=-1, encoded_events=-1)  # even where a walk would find all matches sooner


@examples(400)
@given(drawn=fixed_case(), sizes=st.sampled_from([USUAL, COUNTED, COUNTED]))
def test_fixed_patterns(drawn: Case, sizes: Sizes) -> None:
    assert_same(drawn, make=ByJoins, sizes=sizes)


COMPARED = (
    "{0}.x > {1}.x",
    "{0}.x <= {1}.x",
    "{1}.y + {0}.y < 2",
    "{0}.k = {1}.k",
    "{0}.x - {1}.x = 1",
    "{0}.x != {1}.x",
)
BESIDE = ("SEQ(A a, NOT(B n), C c)", "SEQ(A a, NOT(B n), C c, B d)", "SEQ(A a, OR(SEQ(NOT(B n), C c), SEQ(B b, A d)))")


@examples(80)
@given(
    table=tables(types=["A", "B", "B", "C"], most=10), pattern=st.sampled_from(BESIDE), beside=st.sampled_from("ac"),
    texts=st.lists(st.sampled_from(COMPARED), min_size=1, max_size=2, unique=True),
    within=st.sampled_from(["", "", "WHERE [g]"]), sizes=st.sampled_from([USUAL, COUNTED]),
)  # fmt: skip
def test_not_compared_with_one_end_of_its_gap(
    table: Table, pattern: str, beside: str, texts: list[str], within: str, sizes: Sizes
) -> None:
    conditions = [text.format("n", beside) for text in texts]
    query = parse(f"PATTERN {pattern} WHERE {' AND '.join([*conditions, *within.split()[1:]])}")
    assert_same(Case(query, table.rows, table.options, table.schema), make=ByJoins, sizes=sizes)


@pytest.mark.slow
@settings(max_examples=1000)
@given(drawn=fixed_case(most=8, most_leaves=5), sizes=st.sampled_from([USUAL, COUNTED]))
def test_many_more(drawn: Case, sizes: Sizes) -> None:
    assert_same(drawn, make=ByJoins, sizes=sizes)


@examples(6)
@given(drawn=fixed_case())
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, make=ByJoins, engine="spark", spark=spark)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=fixed_case())
def test_more_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, make=ByJoins, engine="spark", spark=spark)
