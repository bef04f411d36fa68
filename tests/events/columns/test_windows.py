"""Windows over doubles: bounds are the doubles nearest to the exact decimals, whatever the size of the numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracle.windows import windows_of
from trellis.errors import DataError, UsageError
from trellis.events.columns.windows import DoubleWindows

DURATIONS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(1, 10**6), st.integers(-9, 6)
) | st.sampled_from([Decimal("0.1"), Decimal("0.30000000000000004"), Decimal("1e300"), Decimal("3.3e-200")])


@given(slide=DURATIONS, factor=st.sampled_from([1, 1, 2, 3, Decimal("1.5")]), data=st.data())
@example(slide=Decimal("0.1"), factor=1, data=None)
def test_bounds_are_those_of_the_definition(slide: Decimal, factor: int | Decimal, data: st.DataObject | None) -> None:
    size = slide * factor
    windows = DoubleWindows(size, slide)
    numbers = range(450) if data is None else data.draw(st.lists(st.integers(-(2**45), 2**45), min_size=1, max_size=5))
    exact = [float(Fraction(slide) * k) for k in numbers if abs(Fraction(slide) * k) < Fraction(10) ** 308]
    times = np.array([t for e in exact for t in (e, math.nextafter(e, -math.inf), math.nextafter(e, math.inf))])
    times = times[np.abs(times) < 1e307]
    first, last = windows.of(times)
    for time, low, high in zip(times.tolist(), first.tolist(), last.tolist(), strict=True):
        wanted = windows_of(time, Fraction(size), Fraction(slide), "float")
        ks = np.arange(low, high + 1)
        assert list(zip(windows.starts(ks).tolist(), windows.ends(ks).tolist(), strict=True)) == wanted
        if size == slide:
            assert low == high, "in exactly one window"


def test_numbers_too_far_and_durations_too_long_are_refused() -> None:
    with pytest.raises(DataError, match="too far away for windows"):
        DoubleWindows(1, 1).of(np.array([0.0, 1e15]))
    with pytest.raises(UsageError, match="more than 17 digits together"):
        DoubleWindows(Decimal("1e300"), 1)
    with pytest.raises(UsageError, match="more than 17 digits together"):
        DoubleWindows(Decimal("1.0000000000000000000000000000000000000001"), Decimal("0.5"))
