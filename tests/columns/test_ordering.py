"""Ranks, sorting and grouping against Python's own."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columns import trees
from trellis.columns.ordering import group_codes, rank_codes, sort_indices
from trellis.errors import DataError

NUMBERS = ["i", "j", "f", "g", "d", "e", "w"]
FAMILIES = [*[NUMBERS] * 5, ["s", "k"], ["b"], ["t", "z", "y"], ["r"], ["i", "n"], ["n"], ["f"]]
MANY = settings(max_examples=250, deadline=None)


@st.composite
def columns(draw: Any, names: list[str]) -> list[tuple[str, list[Any]]]:
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    return [(name, draw(st.lists(st.none() | trees.COLUMNS[name][1], max_size=6))) for name in chosen]


def arrow(name: str, values: list[Any]) -> pa.Array:
    return pa.array(values, trees.COLUMNS[name][0])


def key(name: str, value: Any) -> tuple[int, Any]:
    """Sorts as the language does: NULL first, NaN last, strings by bytes."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    if isinstance(value, str):
        return 1, value.encode()
    return 1, trees.in_micros(name, value)


@MANY
@given(st.sampled_from(FAMILIES).flatmap(columns))
def test_rank_codes(given_columns: list[tuple[str, list[Any]]]) -> None:
    keys = [[key(name, value) for value in values] for name, values in given_columns]
    distinct = sorted({k for column in keys for k in column if k[0] == 1})
    ranks = {k: rank for rank, k in enumerate(distinct)}
    codes = rank_codes([arrow(name, values) for name, values in given_columns])
    assert [c.dtype for c in codes] == [np.int64] * len(codes)
    assert [c.tolist() for c in codes] == [[ranks.get(k, -1) for k in column] for column in keys]


@st.composite
def rows_of_columns(draw: Any) -> list[tuple[str, list[Any]]]:
    rows = draw(st.integers(0, 8))
    names = draw(st.lists(st.sampled_from(list(trees.COLUMNS)), min_size=1, max_size=3))
    few = [(name, draw(st.lists(st.none() | trees.COLUMNS[name][1], min_size=1, max_size=3))) for name in names]
    return [(name, draw(st.lists(st.sampled_from(some), min_size=rows, max_size=rows))) for name, some in few]


@MANY
@given(rows_of_columns())
def test_sorting_and_grouping(given_columns: list[tuple[str, list[Any]]]) -> None:
    arrays = [arrow(name, values) for name, values in given_columns]
    keys = list(zip(*([key(name, v) for v in values] for name, values in given_columns), strict=True))
    assert sort_indices(arrays).tolist() == sorted(range(len(keys)), key=keys.__getitem__)
    codes, first = group_codes(arrays)
    distinct = sorted(set(keys))
    assert codes.tolist() == [distinct.index(k) for k in keys]
    assert first.tolist() == [keys.index(k) for k in distinct]


@pytest.mark.parametrize("spread", [10, 10**6, 2**62])
@pytest.mark.parametrize("rows", [1, 1000])
def test_sorting_of_many_integers_is_stable(spread: int, rows: int) -> None:
    random = np.random.default_rng(7)
    values = random.integers(-spread, spread, rows) // 3
    assert sort_indices([pa.array(values)]).tolist() == np.argsort(values, kind="stable").tolist()
    expected = np.unique(values, return_inverse=True)[1]
    assert rank_codes([pa.array(values)])[0].tolist() == expected.tolist()


def test_numbers_of_different_types_share_ranks() -> None:
    integers = pa.array([2**53 + 1, 2**53, 1, None])
    doubles = pa.array([2.0**53, 0.1, math.nan, -0.0, 0.0])
    tenths = pa.array([Decimal("0.1"), Decimal("0.0")], pa.decimal128(5, 1))
    codes = rank_codes([integers, doubles, tenths])
    assert [c.tolist() for c in codes] == [[5, 4, 3, -1], [4, 2, -1, 0, 0], [1, 0]]


def test_numbers_nearest_to_one_double_stay_apart() -> None:
    integers = pa.array([2**60 + 2, 2**60 + 1, 2**60, 2**60 - 1, 2**60 - 2, 2**60 + 1])
    codes = rank_codes([integers, pa.array([2.0**60])])
    assert [c.tolist() for c in codes] == [[4, 3, 2, 1, 0, 3], [2]]
    nearly = [Decimal("0.1"), Decimal("0.100000000000000005"), Decimal("0.100000000000000006")]
    codes = rank_codes([pa.array([0.1]), pa.array(nearly, pa.decimal128(38, 18))])
    assert [c.tolist() for c in codes] == [[2], [0, 1, 3]]


def test_nan_and_null_are_groups() -> None:
    codes, first = group_codes([pa.array([math.nan, None, -0.0, 0.0, math.nan, None])])
    assert codes.tolist() == [2, 0, 1, 1, 2, 0]
    assert first.tolist() == [1, 2, 0]


def test_what_has_no_order() -> None:
    with pytest.raises(DataError, match="list<"):
        rank_codes([pa.array([[1], [2]])])
    assert rank_codes([pa.array([5, 3], pa.time32("s"))])[0].tolist() == [1, 0]
    assert rank_codes([pa.array([b"b", b"a", None])])[0].tolist() == [1, 0, -1]
