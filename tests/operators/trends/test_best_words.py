"""Sums of any size as words, where rounding puts them, and exact sums of integers in rows."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.kernels.best.nodes import WORD, widths, words_of
from trellis.kernels.list.aggregates import sum_integers
from trellis.operators.trends.keys import Rounding
from trellis.operators.trends.means import fraction_from
from trellis.operators.trends.search import number_of
from trellis.operators.trends.search import words_of as as_words

WHOLE = st.one_of(st.integers(-(2**127), 2**127 - 1), st.integers(-5, 5), st.sampled_from([2**64, -(2**64), 2**126]))


def halves(numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x >> 64 for x in numbers], np.int64), np.array([x % 2**64 for x in numbers], np.uint64)


@examples(200)
@given(st.lists(st.tuples(WHOLE, st.integers(0, 200)), min_size=1, max_size=5))
def test_whole_numbers_are_words(drawn: list[tuple[int, int]]) -> None:
    numbers = [x << shift for x, shift in drawn]
    high, low = halves([x for x, _ in drawn])
    shifts = np.array([shift for _, shift in drawn])
    bits, twos = widths(high, low, shifts)
    most = max(abs(x).bit_length() for x in numbers)
    assert most <= bits <= most + 2 or most == bits == 0
    if any(numbers):
        assert twos == min((x & -x).bit_length() - 1 for x in numbers if x)
    words = np.zeros((len(numbers), bits // WORD + 1), np.int64)
    words_of(high, low, shifts, words)
    assert [number_of(row) for row in words.tolist()] == numbers
    assert [as_words(x, words.shape[1]) for x in numbers] == words.tolist()
    assert all(0 <= word < 2**WORD for row in words.tolist() for word in row[1:])


@examples(200)
@given(st.integers(-(2**90), 2**90), st.integers(-1100, 1000), st.sampled_from([1, -1]))
def test_the_numbers_that_are_rounded_to_one_value(number: int, power: int, sign: int) -> None:
    rounded = Rounding(slice(0, 2), Fraction(2) ** power, 91, sign)
    shown = rounded.shown(number)
    worst, beyond = rounded.worst(shown)
    assert rounded.shown(worst) == shown
    assert sign * worst <= sign * number < sign * beyond
    assert sign * worst == -(2**91) or rounded.shown(worst - sign) < shown
    assert sign * beyond == 2**91 or rounded.shown(beyond) > shown


@examples(300)
@given(st.fractions(max_denominator=10**6), st.integers(1, 40), st.booleans())
def test_the_least_fraction_from_a_bound_on(bound: Fraction, most: int, closed: bool) -> None:
    each = (Fraction(ceil(bound * q), q) for q in range(1, most + 1))
    if not closed:
        each = (Fraction(floor(bound * q) + 1, q) for q in range(1, most + 1))
    assert fraction_from(bound, most, closed) == min(each)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_sums_of_integers_tell_when_they_do_not_fit(values: list[int]) -> None:
    sums = [sum(values[:i]) for i in range(1, len(values) + 1)]
    fits = all(-(2**63) <= x < 2**63 for x in sums)
    found, _, overflow = sum_integers(np.array([len(values)], np.int32), np.array(values), np.ones(len(values), bool))
    assert (overflow < 0) == fits
    assume(fits)
    assert found.tolist() == [sums[-1]]


def test_sums_beyond_64_bits_are_exact() -> None:
    table = pa.table({"ts": [1, 2, 3], "id": [1, 2, 3], "x": [2**63 - 1, 2**62, -(2**63)]})
    query = trellis.query("PATTERN S+ s[] REPORT any RETURN s, SUM(s.x) ORDER BY SUM(s.x) DESC")
    rows = query.detect(table, event_id="id").to_arrow().to_pylist()
    assert [(row["s"], int(row["sum_s_x"])) for row in rows] == [
        ([1, 2], 2**63 - 1 + 2**62), ([1], 2**63 - 1), ([2], 2**62), ([1, 2, 3], 2**62 - 1), ([1, 3], -1),
        ([2, 3], -(2**62)), ([3], -(2**63)),
    ]  # fmt: skip
