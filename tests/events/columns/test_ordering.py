"""Ranks, sorting and grouping against Python's own."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events.columns import trees
from tests.profiles import examples
from trellis.errors import DataError
from trellis.events.columns.ordering import MISSING, group_codes, match_codes, order_codes, rank_codes, sort_indices
from trellis.events.columns.types import from_arrow, normalise

NUMBERS = ["i", "j", "f", "g", "d", "e", "w"]
FAMILIES = [*[NUMBERS] * 5, ["s", "k"], ["b"], ["t", "z", "y"], ["r"], ["i", "n"], ["n"], ["f"]]
MANY = examples(250)


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


def joint_ranks(given_columns: list[tuple[str, list[Any]]]) -> list[int]:
    """The ranks of all values, the columns end to end, as Python compares them; -1 for NULL and NaN."""
    keys = [key(name, value) for name, values in given_columns for value in values]
    distinct = sorted({k for k in keys if k[0] == 1})
    return [distinct.index(k) if k[0] == 1 else -1 for k in keys]


@MANY
@given(st.sampled_from(FAMILIES).flatmap(columns))
def test_order_codes(given_columns: list[tuple[str, list[Any]]]) -> None:
    codes = order_codes([arrow(name, values) for name, values in given_columns])
    check_shape(codes, given_columns)
    flat = np.concatenate(codes).tolist()
    ranks = joint_ranks(given_columns)
    for code, rank in zip(flat, ranks, strict=True):
        assert (code == MISSING) == (rank == -1)
        assert code == MISSING or MISSING + 4 <= code <= 2**63 - 5
    distinct = sorted(set(flat) - {MISSING})
    assert [distinct.index(code) if code != MISSING else -1 for code in flat] == ranks


@MANY
@given(st.sampled_from(FAMILIES).flatmap(columns))
def test_match_codes(given_columns: list[tuple[str, list[Any]]]) -> None:
    codes = match_codes([arrow(name, values) for name, values in given_columns])
    check_shape(codes, given_columns)
    flat = np.concatenate(codes).tolist()
    ranks = joint_ranks(given_columns)
    assert len(set(zip(flat, ranks, strict=True))) == len(set(flat)) == len(set(ranks)), "one code a value"
    assert set(flat) - {-1} == set(range(len(set(ranks) - {-1}))), "dense"
    assert [code == -1 for code in flat] == [rank == -1 for rank in ranks]


def check_shape(codes: list[Any], given_columns: list[tuple[str, list[Any]]]) -> None:
    """Codes are new arrays of one dtype, which a kernel compiled for one column takes for all."""
    assert [len(c) for c in codes] == [len(values) for _, values in given_columns]
    assert all(c.dtype == np.int64 and c.flags.writeable and c.flags.c_contiguous for c in codes)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.arange(500) % 90 - 40, np.arange(500) % 170),
        (np.arange(500) % 90 * 10**15, np.arange(500) % 170 * 10**15),
        (np.arange(500) % 90 / 7, np.arange(500) % 170 / 7),
        (np.arange(500) % 90 - 40, np.arange(500) % 170 / 1.0),
        (np.array(["x" * (i % 9) for i in range(500)]), np.array([f"{i % 90}" for i in range(500)])),
        (np.array([f"é{i % 90}" for i in range(500)]), np.array([f"é{i % 170}" for i in range(500)])),
    ],
    ids=["small range", "wide range", "doubles", "integers and doubles", "strings", "short strings"],
)
def test_codes_of_long_columns(left: Any, right: Any) -> None:
    ranks = np.concatenate(rank_codes([pa.array(left), pa.array(right)]))
    sliced = [pa.array(left.tolist() + left.tolist()[:3]).slice(0, 500), pa.array([right[0], *right]).slice(1)]
    ordered, matched = np.concatenate(order_codes(sliced)), np.concatenate(match_codes(sliced))
    assert np.unique(ordered, return_inverse=True)[1].tolist() == ranks.tolist()
    pairs = np.unique(np.stack([matched, ranks]), axis=1)
    assert sorted(pairs[0].tolist()) == sorted(pairs[1].tolist()) == list(range(ranks.max() + 1))


def test_strings_that_differ_in_zeros_and_length_alone_do_not_match() -> None:
    words = ["", "\0", "\0\0", "a", "a\0", "\0a", "a\0\0", "1234567", "123456\0", None]
    (codes,) = match_codes([pa.array(words)])
    assert sorted(codes.tolist()) == list(range(-1, len(words) - 1))
    assert codes.tolist()[-1] == -1
    first, second = match_codes([pa.array(words[1:]).slice(2), pa.array(["12345678", *words])])
    assert set(first.tolist()) <= set(second.tolist())
    assert len(set(second.tolist())) == len(words) + 1


def test_columns_in_their_physical_form_are_not_copied() -> None:
    for array in (pa.array([1, 2]), pa.array([1.5, 2.5]), pa.array([1, 2]).cast(pa.timestamp("us"))):
        whole = normalise(pa.chunked_array([array]), from_arrow(array.type))
        assert whole.buffers()[1].address == array.buffers()[1].address
    zoned = pa.array([1, 2]).cast(pa.timestamp("us", "UTC"))
    assert normalise(zoned, from_arrow(zoned.type)).buffers()[1].address == zoned.buffers()[1].address


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
    with pytest.raises(DataError, match="list<"):
        order_codes([pa.array([[1], [2]])])
    with pytest.raises(DataError, match="list<"):
        match_codes([pa.array([[1], [2]])])
    assert order_codes([pa.array([b"b", b"a", None])])[0].tolist() == [1, 0, MISSING]
    assert sorted(match_codes([pa.array([b"b", b"a", None])])[0].tolist()) == [-1, 0, 1]
