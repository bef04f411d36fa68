"""The helpers that kernels share."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from numba import njit

from trellis.kernels.arrays import (
    FULL,
    first_at_least,
    first_at_least_in,
    grown,
    lowest_bit,
    ones,
    saturating_sum,
)
from trellis.kernels.sort import radix_order


@pytest.mark.parametrize("seed", range(5))
def test_binary_searches_find_the_first_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.integers(-5, 5, 12))
    order = rng.permutation(12)
    scattered = np.empty(12, np.int64)
    scattered[order] = values
    for begin, end, bound in rng.integers(0, 12, (20, 3)).tolist():
        low, high, wanted = min(begin, end), max(begin, end), bound - 6
        place = bisect_left(values.tolist(), wanted, low, high)
        assert first_at_least(values, low, high, wanted) == place
        assert first_at_least_in(order, scattered, low, high, wanted) == place


@pytest.mark.parametrize("high", [3, 2**20, 2**63])
def test_keys_are_sorted_digit_by_digit(high: int) -> None:
    for n in (0, 1, 50):
        keys = np.random.default_rng(n).integers(-high, high, n)
        assert radix_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@njit
def _bits(word: int) -> tuple[int, int]:
    return ones(word), lowest_bit(word)


def test_bits_are_counted() -> None:
    words = [1, 3, 2**63, 2**64 - 1, *np.random.default_rng(0).integers(1, 2**63, 20).tolist()]
    for word in words:
        low = (word & -word).bit_length() - 1
        assert _bits(np.uint64(word)) == (word.bit_count(), low)


@njit
def _sum(a: int, b: int) -> int:
    return saturating_sum(a, b)


def test_sums_saturate() -> None:
    for a, b in [(1, 2), (2**64 - 1, 1), (2**63, 2**63), (2**64 - 2, 1), (0, 2**64 - 1)]:
        assert int(_sum(np.uint64(a), np.uint64(b))) == min(a + b, int(FULL))


def test_an_array_grows() -> None:
    larger = grown(np.arange(5, dtype=np.int32), 3, 9)
    assert (larger.dtype, len(larger), larger[:3].tolist()) == (np.int32, 9, [0, 1, 2])
