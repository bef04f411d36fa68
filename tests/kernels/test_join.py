"""The nearest candidates of joins equal those that a loop finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.kernels.join.nearest import first_greater

CODES = st.lists(st.integers(0, 4), max_size=12)


@examples(100)
@given(own=CODES, codes=CODES, data=st.data())
def test_the_first_greater_one(own: list[int], codes: list[int], data: st.DataObject) -> None:
    starts = sorted(data.draw(st.lists(st.integers(0, 15), min_size=len(own), max_size=len(own))))
    places = sorted(data.draw(st.sets(st.integers(0, 15), min_size=len(codes), max_size=len(codes))))
    found = first_greater(*(np.array(one, np.int64) for one in (own, starts, codes, places)))
    naive = [
        next((k for k, code in enumerate(codes) if places[k] >= start and code > mine), len(codes))
        for mine, start in zip(own, starts, strict=True)
    ]
    assert found.tolist() == naive
