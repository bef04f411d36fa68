"""The first results of patterns by a walk over matches so far that are made on demand: those of the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import ByJoins, assert_same, detect, expected, plain_rows
from tests.grouping import greedy_case, grouped_case, is_refused
from tests.operators.patterns.test_first import random_case
from tests.profiles import examples
from tests.strategies import Case, chain_case, fixed_case, general_case
from trellis.api.query import Query
from trellis.errors import TrellisError
from trellis.plan.sizes import Sizes

WALKED = Sizes(counted_pairs=-1, walked_choices=-1, joined_steps=-1)  # even where all are counted sooner
LIMITS, OFFSETS = st.sampled_from([1, 2, 3, 8, 100]), st.sampled_from([0, 0, 1, 3])
SHAPES = [
    "SEQ(A a, B+ b[], C c) WHERE a.x < c.x", "SEQ(A a, B+ b[], C c) WHERE AVG(b.x) > c.x",
    "SEQ(A a, B+ b[], C c) WHERE b[2].x > c.x", "SEQ(A+ a[], B+ b[]) WHERE SUM(a.x) < SUM(b.x)",
    "SEQ(A+ a[], B b) WHERE SUM(a.x) < 5 * b.x", "SEQ(A+ a[], B b) WHERE a.x < b.x OR a.s = b.s",
    "SEQ(A+ a[], B b, C+ c[]) WHERE a.x < c.x", "SEQ(SEQ(A a, B b)+ g[], C c) WHERE b.x < c.x",
    "AND(A+ a[], B+ b[]) WHERE a.x < b.x", "A+ a[] WHERE a[i].x > AVG(a[..i-1].x)",
    "SEQ(A+ a[], NOT(B n), C c) WHERE n.x > a.x",
]  # fmt: skip


def assert_first(drawn: Case, limit: int, offset: int) -> None:
    """Compare the first results with the oracle's, unless the query is refused by name."""
    query = replace(drawn.query, limit=limit, offset=offset, order_by=(), limit_per=())
    try:
        assert_same(replace(drawn, query=query), sizes=WALKED)
    except TrellisError as error:
        if not is_refused(error):
            raise


def test_the_first_results_are_those_of_the_oracle() -> None:
    for seed in range(1000, 1120):
        assert_same(random_case(seed), sizes=WALKED)


@examples(300)
@given(drawn=general_case(most=7), limit=LIMITS, offset=OFFSETS)
def test_of_patterns_of_any_shape(drawn: Case, limit: int, offset: int) -> None:
    assert_first(drawn, limit, offset)


@examples(150)
@given(drawn=general_case(most=7, words=True), limit=LIMITS, offset=OFFSETS)
def test_with_policies_of_steps_greedy_and_until(drawn: Case, limit: int, offset: int) -> None:
    assert_first(drawn, limit, offset)


@examples(150)
@given(drawn=st.one_of(chain_case(), greedy_case()), limit=LIMITS, offset=OFFSETS)
def test_of_chains_and_greedy_inside_and(drawn: Case, limit: int, offset: int) -> None:
    assert_first(drawn, limit, offset)


@examples(300)
@given(drawn=grouped_case(), limit=LIMITS, offset=OFFSETS)
def test_of_repeated_groups(drawn: Case, limit: int, offset: int) -> None:
    assert_first(drawn, limit, offset)


@examples(200)
@given(drawn=fixed_case(), limit=LIMITS, offset=OFFSETS)
def test_of_patterns_without_repetition(drawn: Case, limit: int, offset: int) -> None:
    drawn = replace(drawn, query=replace(drawn.query, limit=limit, offset=offset, order_by=(), limit_per=()))
    answer = expected(drawn)
    if isinstance(answer, str) or answer.aggregates is not None:  # the walk need not come to what overflows
        return
    for make in (Query, ByJoins):
        rows = detect(drawn, sizes=WALKED, make=make).to_arrow().to_pylist()  # not counted before
        assert plain_rows(rows) == plain_rows(answer.rows)


def trades(size: int) -> pa.Table:
    """Return events, one a second."""
    rng = np.random.default_rng(size)
    kinds = np.array(["A", "B", "C"])[rng.integers(0, 3, size)]
    symbols = np.array(["u", "v", "w"])[rng.integers(0, 3, size)]
    return pa.table({"ts": np.arange(size), "id": np.arange(size), "kind": kinds, "x": rng.random(size), "s": symbols})


def rows_of(text: str, table: pa.Table, **options: Any) -> list[dict[str, Any]]:
    """List the results of a query."""
    found = trellis.query(text).detect(table, time="ts", event_id="id", type="kind", **options)
    return plain_rows(found.to_arrow().to_pylist())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_they_are_those_of_the_whole_graph(shape: str, report: str) -> None:
    for clauses in ("LIMIT 40", "LIMIT 30 OFFSET 35", "HAVING LENGTH >= 4 LIMIT 25", "WITHIN 9 LIMIT 200"):
        text = f"PATTERN {shape} REPORT {report} {clauses}"
        whole = replace(WALKED, walked_firsts=-1)
        assert rows_of(text, trades(24), sizes=WALKED) == rows_of(text, trades(24), sizes=whole)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_of_very_many_need_no_graph(shape: str) -> None:
    table = trades(3_000)
    for within in ("", "WITHIN 300", "WITHIN 300 SLIDE 300"):
        rows = rows_of(f"PATTERN {shape} REPORT any {within} LIMIT 6 OFFSET 2", table)
        behind = max(max(row["events"]) for row in rows) + 1
        assert len(rows) == 6
        if behind < 40:  # what lies behind decides nothing about matches that end before
            few = rows_of(f"PATTERN {shape} REPORT any {within} LIMIT 6 OFFSET 2", table.slice(0, behind + 300))
            assert rows == few
    assert len(rows_of(f"PATTERN {shape} LIMIT 6", table)) == 6
