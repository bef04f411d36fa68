"""Ranks of any size in arrays, and drawing them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.errors import UsageError
from trellis.operators.ranks import Ranks, draw

numbers = st.one_of(st.integers(0, 20), st.integers(2**64 - 3, 2**64 + 3), st.integers(0, 2**200))


@given(st.lists(numbers, max_size=8), st.data())
def test_ranks_are_numbers(values: list[int], data: st.DataObject) -> None:
    values.sort()
    ranks = Ranks.of(values)
    assert list(ranks) == values == [ranks[i] for i in range(len(values))] == list(ranks[:])
    assert ranks.shown().tolist() == [v if v < 2**63 else -1 for v in values]
    bits = data.draw(st.integers(20, 63))
    room = max(1, -(-max(values, default=0).bit_length() // bits)) + data.draw(st.integers(0, 1))
    limbs = ranks.limbs(bits, room).tolist()
    assert [sum(limb << bits * i for i, limb in enumerate(row)) for row in limbs] == values
    assert all(0 <= limb < 2**bits for row in limbs for limb in row)
    if values:
        less = data.draw(st.integers(0, values[0]))
        assert list(ranks.minus(less)) == [v - less for v in values]
    begin, wanted = data.draw(st.integers(0, len(values))), data.draw(st.one_of(numbers, st.sampled_from([0, *values])))
    assert ranks.first_at_least(wanted, begin) == bisect_left(values, wanted, begin)


@examples(200)
@given(
    st.one_of(st.integers(0, 40), st.integers(1, 2**70), st.sampled_from([2**64, 2**64 + 1, 2**128, 2**2000])),
    st.integers(0, 30),
    st.integers(-(2**70), 2**70),
)
def test_draws_are_distinct_and_below_the_total(total: int, number: int, seed: int) -> None:
    drawn = list(draw(total, number, seed))
    assert len(drawn) == min(total, number)
    assert drawn == sorted(set(drawn))
    assert all(0 <= rank < total for rank in drawn)
    assert drawn == list(draw(total, number, seed))


@pytest.mark.parametrize(("total", "number"), [(5, 2), (5, 3), (6, 1), (4, 4)])
def test_every_set_is_equally_likely(total: int, number: int) -> None:
    sets = list(combinations(range(total), number))
    tries = 500 * len(sets)
    drawn = Counter(tuple(draw(total, number, seed)) for seed in range(tries))
    assert set(drawn) == set(sets)
    assert all(400 < drawn[s] <= tries and (drawn[s] < 600 or len(sets) == 1) for s in sets)


def test_large_draws_spread_evenly() -> None:
    total, number = 3 * 2**166 + 12345, 20_000
    tenth = Counter(10 * rank // total for rank in draw(total, number, 1))
    assert all(1800 < tenth[i] < 2200 for i in range(10))
    low = Counter(rank % 10 for rank in draw(total, number, 1))
    assert all(1800 < low[i] < 2200 for i in range(10))
    assert list(draw(total, 50, 1)) != list(draw(total, 50, 2)) != list(draw(total, 50, -2))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="a sample of -1 cannot be drawn"):
        draw(5, -1, 0)
