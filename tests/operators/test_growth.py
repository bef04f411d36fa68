"""What is told of large groups from few events is what work that grows in a known way takes."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.operators.growth import ENOUGH, LEAST_EVENTS, duration, extrapolated


@examples(30)
@given(
    power=st.sampled_from((1, 2, 3)),
    reach=st.sampled_from((inf, 100.0, 1_000.0)),
    sizes=st.lists(st.integers(1, 1 << 14), min_size=1, max_size=3),
)
def test_work_that_grows_by_a_power_as_far_as_events_reach(power: int, reach: float, sizes: list[int]) -> None:
    def work(size: int) -> float:
        near = min(size, reach)
        return 1e-6 * (near**power + power * near ** (power - 1) * (size - near))

    def attempt(_: int, size: int) -> tuple[float, float]:
        return work(size), work(size)

    exact = sum(map(work, sizes))
    _, seconds = extrapolated(np.array(sizes, np.float64), attempt, reach=reach)
    assert exact / 10 <= max(seconds, 1e-3)
    assert seconds <= 10 * max(exact, 1e-3)


def test_no_more_is_tried_where_that_would_take_long_or_has_no_room() -> None:
    tried = []

    def attempt(_: int, size: int) -> tuple[float, float]:
        tried.append(size)
        return (2.0**size, ENOUGH * 2.0 ** (size - 100)) if size < 40 else (inf, inf)

    amount, _ = extrapolated(np.array([1000.0]), attempt)
    assert max(tried) <= 4 * LEAST_EVENTS
    assert 2.0**40 < amount < inf


@pytest.mark.parametrize(("seconds", "text"), [(0.5, "less than a second"), (7, "7 seconds"), (1e10, "317 years")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
