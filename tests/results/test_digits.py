"""Whole numbers of any size as text and back."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from trellis.digits import digits_of, number_of, number_text


@given(st.integers(0, 10**40) | st.integers(3990, 30_000).map(lambda n: 7**n // 3))
def test_digits_there_and_back(number: int) -> None:
    text = digits_of(number)
    assert number_of(text) == number
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert text == str(number)
    finally:
        sys.set_int_max_str_digits(limit)


def test_numbers_for_people() -> None:
    assert number_text(1_234_567) == "1,234,567"
    assert number_text(3 * 10**20) == "300000000000000000000 (about 3.00e20)"
    assert number_text(10**5000) == "about 1.00e5000 (5,001 digits)"
