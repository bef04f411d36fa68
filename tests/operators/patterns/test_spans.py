"""Spans of patterns that begin with a repeated variable: counted on the index, by divided or one by one, and listed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case
from trellis.operators.contract import ListRequest
from trellis.operators.patterns.operator import PatternOperator
from trellis.plan.sizes import USUAL, Sizes
from trellis.plan.spec import INDEX, PATTERNS, SEARCH, OperatorSpec

PATTERNS_OF = {
    "SEQ(A+ a[], B b)": ("a", "b"),
    "SEQ(A a, B+ b[], A c)": ("a", "b", "c"),
    "SEQ(A+ a[], B+ b[])": ("a", "b"),
    "SEQ(A+ a[], B? b, A+ c[])": ("a", "b", "c"),
    "SEQ(A+ a[], B b, B+ c[])": ("a", "b", "c"),
    "OR(A+ a[], SEQ(B+ b[], A c))": ("a", "b", "c"),
    "SEQ(B? a, A{2} b[])": ("a", "b"),
    "SEQ(A{1,2} a[], B{2,} b[])": ("a", "b"),
}
STEPS = {"a": "a[i].x {} a[i-1].x", "b": "b[i].x {} b[i-1].x", "c": "c[i].x {} c[i-1].x"}


@st.composite
def spans(draw: Any) -> tuple[str, pa.Table]:
    pattern = draw(st.sampled_from(list(PATTERNS_OF)))
    kleene = [v for v in PATTERNS_OF[pattern] if f" {v}[]" in pattern]
    where = [STEPS[v].format(draw(st.sampled_from((">", "<=", "=")))) for v in kleene if draw(st.booleans())]
    if "OR" not in pattern and "?" not in pattern and draw(st.booleans()):
        (one, other), how = (
            draw(st.sampled_from(list(pairwise(PATTERNS_OF[pattern])))),
            draw(st.sampled_from(("<", "="))),
        )
        last, first = (f"{end}({v})" if v in kleene else v for end, v in (("LAST", one), ("FIRST", other)))
        where.append(f"{last}.x {how} {first}.x")
    report = draw(st.sampled_from(("REPORT any", "")))
    conditions = f"WHERE {' AND '.join(where)}" if where else ""
    size = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    times = np.sort(rng.integers(0, draw(st.sampled_from((size // 2 + 1, 2 * size))), size))
    table = pa.table(
        {"ts": times, "id": np.arange(size), "type": rng.choice(["A", "B"], size), "x": rng.integers(0, 3, size)}
    )
    having = draw(st.sampled_from(("", "", "HAVING LENGTH >= 3", "HAVING LENGTH < 4")))
    return f"PATTERN {pattern} {conditions} {having} {report} WITHIN {draw(st.integers(1, 8))}", table


@examples(250)
@given(drawn=spans(), divided=st.booleans(), cut=st.integers(0, 9), threads=st.integers(1, 2))
def test_what_the_index_counts_and_lists_is_what_exploring_finds(
    drawn: tuple[str, pa.Table], divided: bool, cut: int, threads: int
) -> None:
    text, table = drawn
    sizes = Sizes(divided_events=0 if divided else 1 << 40)
    operator = _asked(text, table, sizes)
    counts = list(operator.counts)
    explored = PatternOperator(replace(operator.plan, operator=OperatorSpec(PATTERNS, SEARCH, "")), operator.events)
    assert counts == list(explored.counts)
    ranges = [(group, 0, number) for group, number in enumerate(counts) if number]
    wanted = _results(explored.list(ListRequest(ranges, lambda some: some)))
    assert _results(operator.list(ListRequest(ranges, lambda some: some, threads))) == wanted
    if not ranges:
        return
    some = [(group, min(cut, number), number - number // 3) for group, _, number in ranges]
    chosen = [one for one in wanted if some[0][1] <= one[-1] < some[0][2]]
    assert _results(operator.list(ListRequest(some, lambda some: some, threads))) == chosen
    if operator.plan.operator.method == INDEX:
        for group, _, number in ranges:
            assert _results([operator.at(group, range(number))]) == wanted
        for bits in (USUAL.wrapping_bits, 0):  # by 64 bits, then by primes, however small the numbers are
            assert list(_asked(text, table, replace(sizes, exact=1.0, wrapping_bits=bits)).counts) == counts


ORDERS = tuple(f"ORDER BY LENGTH{how} LIMIT 9" for how in (" DESC", ""))
CLAUSES = ("", "LIMIT 3", "LIMIT 2 OFFSET 3", *ORDERS, *ORDERS)
SEARCHED = Sizes(best_few=-1, best_worth=0, best_steps=1 << 60)  # even where listing would be quicker


@examples(200)
@given(drawn=spans(), clauses=st.sampled_from(CLAUSES), sizes=st.sampled_from([USUAL, SEARCHED]))
def test_what_spans_list_is_what_the_oracle_lists(drawn: tuple[str, pa.Table], clauses: str, sizes: Sizes) -> None:
    text, table = drawn
    schema = {"ts": "int64", "id": "int64", "type": "string", "x": "int64"}
    syntax = trellis.query(f"{text} {clauses}").syntax
    assert_same(Case(syntax, table.to_pylist(), {"time": "ts", "type": "type", "event_id": "id"}, schema), sizes=sizes)


def _asked(text: str, table: pa.Table, sizes: Sizes) -> Any:
    return trellis.query(text).detect(table, time="ts", event_id="id", type="type", sizes=sizes).operator


def _results(lots: Any) -> list[Any]:
    """Return the events, variables and rank of each result."""
    return [
        (some.positions[begin:end].tolist(), some.variables[begin:end].tolist(), rank)
        for some in lots
        for (begin, end), rank in zip(pairwise(some.offsets.tolist()), some.ranks, strict=True)
    ]


@pytest.mark.parametrize("report", ["REPORT any", ""])
def test_numbers_of_hundreds_of_digits_are_those_of_a_sum(report: str) -> None:
    """Of 900 events A and then B, by turns, one a second: any of the As from the first on, in the span of a B."""
    size, span = 900, 500
    table = pa.table({"ts": np.arange(size), "id": np.arange(size), "type": np.tile(["A", "B"], size // 2)})
    text = f"PATTERN SEQ(A+ a[], B b) {report} WITHIN {span}"
    found = trellis.query(text).detect(table, time="ts", event_id="id", type="type").count()
    assert found == sum(
        2 ** ((end - begin - 1) // 2)
        for begin in range(0, size, 2)
        for end in range(begin + 1, min(size, begin + span + 1), 2)
        if report or begin == 0 or end > begin - 2 + span
    )


@pytest.mark.parametrize("pattern", ["SEQ(B? a, B b, A c)", "SEQ(B? a, B b, A+ c[])", "SEQ(B* a[], B b, A+ c[])"])
@pytest.mark.parametrize("clauses", ["", "ORDER BY LENGTH DESC", "LIMIT 2", "AFTER MATCH SKIP TO NEXT"])
def test_results_that_begin_with_one_event_as_different_variables_are_in_the_order_of_their_events(
    pattern: str, clauses: str
) -> None:
    rows = [{"id": i, "ts": i, "type": type_} for i, type_ in enumerate("BABA")]
    syntax = trellis.query(f"PATTERN {pattern} REPORT any WITHIN 8 {clauses}").syntax
    schema = {"id": "int64", "ts": "int64", "type": "string"}
    assert_same(Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, schema))
