"""Cuts of conditions on neighbours: on every pair of adversarial values they say what the condition does."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.errors import OverflowInCondition
from trellis.events.adjacency import Adjacency, encode, encode_rows, residual_holds
from trellis.events.columns.types import from_arrow, normalise
from trellis.plan.relation import terms

CONDITIONS = [
    "e[i].a - e[i-1].a > 5",
    "e[i].a - e[i-1].a >= e[i-1].b",
    "e[i].a + e[i-1].a < 3.5",
    "e[i-1].a - e[i].a != 0.1",
    "e[i].a - e[i-1].a = 0.1",
    "e[i].a / e[i-1].a > 1.05",
    "e[i].a / e[i-1].a <= 1",
    "e[i-1].a / e[i].a < 0.95",
    "e[i-1].a / e[i].a != 1",
    "e[i].a * e[i-1].a >= 0",
    "e[i].a * e[i-1].b <= e[i-1].b",
    "(e[i].a - 1) * e[i-1].b >= -1 * ABS(e[i-1].b)",
    "-2 * e[i].a - e[i-1].a * 3 < e[i-1].b",
    "(e[i].a - e[i-1].a) / e[i-1].a > 0.05",
    "(e[i].a - e[i-1].a) / e[i].a > 0.05",
    "100 * (e[i].a / e[i-1].a - 1) >= 5",
    "ABS(e[i].a - e[i-1].a) < 2",
    "ABS(e[i].a - e[i-1].a) >= e[i-1].b",
    "3 > ABS(e[i].a + e[i-1].b)",
    "ABS(e[i].a - e[i-1].a) / e[i-1].a <= 0.1",
    "ABS(e[i].a - e[i-1].a) = 1",
    "ABS(e[i].a - e[i-1].a) != 1",
    "e[i].a - e[i-1].a BETWEEN -1 AND 1",
    "e[i].a - e[i-1].a NOT BETWEEN -1 AND 1",
    "NOT (e[i].a - e[i-1].a > 5 AND e[i].a < e[i-1].b)",
    "e[i].a > 1.1 * e[i-1].a OR e[i].a < 0.9 * e[i-1].a",
    "e[i].a IN (e[i-1].a, e[i-1].b, 0)",
    "e[i].a > e[i-1].a OR e[i-1].b > 0 OR e[i].a = 0",
    "(e[i].a - e[i-1].a) * (e[i-1].b - 1) > 0 AND e[i].a != e[i-1].b",
    "e[i].b * 0.5 - e[i-1].a > e[i].b",
    "e[i].a * e[i].b - e[i-1].a > 0",
    "1 / (e[i].a - e[i-1].a) > 0.5",
    "e[i].a > e[i-1].a OR e[i].b < e[i-1].b",
    "e[i].a != e[i-1].a OR (e[i].b = e[i-1].b AND e[i-1].b > 0) OR ABS(e[i].b - e[i-1].a) > 1",
    "e[i].a * e[i-1].b > e[i].b * e[i-1].a",
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
           -1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 0.1, 0.3, 1e16, 2.0**53]  # fmt: skip
BASE = st.one_of(st.none(), st.sampled_from(SPECIAL), st.floats(), st.integers(-4, 12).map(float))


@st.composite
def near(draw: st.DrawFn) -> list[float | None]:
    """Some values, and others a step or two beside what they add up, multiply and divide to."""
    values = draw(st.lists(BASE, min_size=1, max_size=5))
    known = [v for v in values if v is not None]
    for _ in range(draw(st.integers(0, 8)) if known else 0):
        x = draw(st.sampled_from(known))
        with np.errstate(all="ignore"):
            y = np.float64(draw(st.sampled_from([1.05, 0.95, 1.1, 0.9, 1.0]))) * x
            y += draw(st.sampled_from([0, 5, -5, 0.1, 1, 2, -1]))
        for _ in range(draw(st.integers(0, 2))):
            y = math.nextafter(float(y), draw(st.sampled_from([math.inf, -math.inf])))
        values.append(float(y))
    return values


def columns_of(a: list[Any], b: list[Any], type_: pa.DataType) -> dict[str, pa.Array]:
    arrays = {"a": pa.array(a, type_), "b": pa.array((b * len(a))[: len(a)], type_)}
    return {name: normalise(array, from_arrow(array.type)) for name, array in arrays.items()}


def follow(adjacency: Adjacency, columns: dict[str, pa.Array]) -> np.ndarray:
    """Return for each pair (x, y) whether the codes let y follow x, and what is left holds."""
    may = adjacency.gives[:, None] & adjacency.takes[None, :]
    if adjacency.key_next is not None and adjacency.key_prev is not None:
        may = may & (adjacency.key_prev[:, None] == adjacency.key_next[None, :]) & (adjacency.key_prev >= 0)[:, None]
    for above, below in zip(adjacency.above, adjacency.below, strict=True):
        may = may & (above[None, :] > below[:, None])
    for after, before in zip(adjacency.differ_next, adjacency.differ_prev, strict=True):
        may = may & (after[None, :] != before[:, None]) & (after >= 0)[None, :] & (before >= 0)[:, None]
    for clause in adjacency.clauses:
        may = may & np.any([above[None, :] > below[:, None] for above, below in clause], axis=0)
    x, y = np.nonzero(may)
    if adjacency.residual:
        may[x, y] = residual_holds(adjacency.residual, columns, x, y.astype(np.int32))
    return may


def by_pairs(plan: Any, columns: dict[str, pa.Array]) -> np.ndarray:
    """Return the same with the conditions as they are written, pair by pair."""
    n = len(columns["a"])
    x, y = (a.ravel() for a in np.indices((n, n)))
    values = [term for condition in plan.adjacent for term in terms(condition.value)]
    return residual_holds(values, columns, x, y.astype(np.int32)).reshape(n, n)


def plan_of(condition: str, a: str = "double", b: str = "double") -> Any:
    types = {"double": pa.float64(), "integer": pa.int64(), "decimal": pa.decimal128(9, 2)}
    table = pa.table({"ts": pa.array([], pa.int64()), "a": pa.array([], types[a]), "b": pa.array([], types[b])})
    return trellis.query(f"PATTERN E+ e[] WHERE {condition}").detect(table).plan


PLANS = {condition: plan_of(condition) for condition in CONDITIONS}


@examples(450)
@given(condition=st.sampled_from(CONDITIONS), a=near(), b=st.lists(BASE, min_size=1, max_size=4))
def test_cuts_agree_with_the_condition_on_every_pair_of_doubles(condition: str, a: list[Any], b: list[Any]) -> None:
    columns, plan = columns_of(a, b, pa.float64()), PLANS[condition]
    every = np.ones(len(a), np.bool_)
    expected = by_pairs(plan, columns)
    for holes in (True, False):
        found = follow(encode(plan.adjacent, columns, every, holes), columns)
        assert (found == expected).all(), np.argwhere(found != expected)
    rows = np.arange(len(a))
    assert (follow(encode_rows(plan.adjacent, columns, rows, rows), columns) == expected).all()


@pytest.mark.parametrize("condition", ["e[i].a * e[i-1].b <= e[i-1].b", "(e[i].a - 0) * e[i-1].b <= e[i-1].b"])
def test_zero_times_an_infinity_is_null_between_two_values_for_which_it_holds(condition: str) -> None:
    columns, plan = columns_of([-1.0, 0.0, 1.0, 2.0], [math.inf], pa.float64()), plan_of(condition)
    found = follow(encode(plan.adjacent, columns, np.ones(4, np.bool_)), columns)
    assert found.tolist() == by_pairs(plan, columns).tolist() == [[True, False, True, True]] * 4


@examples(250)
@given(
    condition=st.sampled_from(CONDITIONS),
    a=st.lists(st.one_of(st.none(), st.integers(-9, 9), st.integers(-(2**40), 2**40)), min_size=1, max_size=8),
    b=st.lists(st.integers(-3, 3), min_size=1, max_size=3),
    decimals=st.booleans(),
)
def test_cuts_agree_on_whole_numbers_and_decimals(condition: str, a: list[Any], b: list[int], decimals: bool) -> None:
    if decimals:
        numbers: list[Any] = [None if v is None else Decimal(v % 10**7) / 100 for v in a]
        columns = columns_of(numbers, [Decimal(v) for v in b], pa.decimal128(9, 2))
        plan = plan_of(condition, "decimal", "decimal")
    else:
        columns, plan = columns_of(a, b, pa.int64()), plan_of(condition, "integer", "integer")
    try:
        expected = by_pairs(plan, columns)
    except OverflowInCondition:
        with pytest.raises(OverflowInCondition):
            follow(encode(plan.adjacent, columns, np.ones(len(a), np.bool_)), columns)
        return
    found = follow(encode(plan.adjacent, columns, np.ones(len(a), np.bool_)), columns)
    assert (found == expected).all()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_cuts_agree_at_the_ends_of_the_doubles(condition: str) -> None:
    columns, plan = columns_of([*SPECIAL, None], [0.0, 2.0, float("inf"), -1.0, None], pa.float64()), PLANS[condition]
    found = follow(encode(plan.adjacent, columns, np.ones(len(SPECIAL) + 1, np.bool_)), columns)
    assert (found == by_pairs(plan, columns)).all()


def test_most_conditions_leave_nothing_to_test_on_pairs() -> None:
    rng = np.random.default_rng(3)
    columns = columns_of(list(np.round(rng.random(60) * 9 + 1, 1)), list(rng.random(60)), pa.float64())
    left = [c for c, plan in PLANS.items() if encode(plan.adjacent, columns, np.ones(60, np.bool_)).residual]
    assert left == ["e[i].a * e[i-1].b > e[i].b * e[i-1].a"]
    assert [c for c, plan in PLANS.items() if plan.relation.kind is None] == left
