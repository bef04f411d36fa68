"""Room that is lent is nobody else's until the last array of it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.operators.lent import KEPT, give_back, lent


@pytest.fixture(autouse=True)
def _nothing_lent() -> Iterator[None]:
    give_back()
    yield
    give_back()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 50), st.booleans()), max_size=40))
def test_what_is_held_stays_as_it_is(steps: list[tuple[str, int, bool]]) -> None:
    held = []
    for value, (purpose, number, keep) in enumerate(steps):
        array = lent(purpose, number, np.int64)
        assert len(array) == number
        array.fill(value)
        if keep:
            held.append((value, array[number // 2 :]))
        del array
    assert all((part == value).all() for value, part in held)


def test_room_that_nobody_looks_at_is_lent_again() -> None:
    array = lent("values", 100, np.int32)
    address = _address(array)
    other = lent("values", 100, np.int32)
    assert _address(other) != address
    del array
    larger = lent("values", 90, np.int64)
    assert _address(larger) != address, "it is too small"
    assert _address(lent("values", 110, np.int32)) == address


def test_arrow_holds_room() -> None:
    array = lent("values", 3, np.int64)
    array[:] = [1, 2, 3]
    shown = pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(array)])[1:]
    del array
    lent("values", 3, np.int64).fill(0)
    assert shown.to_pylist() == [2, 3]


def test_little_is_kept() -> None:
    held = [lent("values", 10, np.int64) for _ in range(3 * KEPT)]
    first = _address(held[0])
    held.clear()
    assert first not in {_address(lent("values", 10, np.int64)) for _ in range(2 * KEPT)}


def test_a_thread_has_room_of_its_own() -> None:
    mine, theirs = _address(lent("values", 10, np.int64)), []
    thread = Thread(target=lambda: theirs.append(_address(lent("values", 10, np.int64))))
    thread.start()
    thread.join()
    assert _address(lent("values", 10, np.int64)) == mine
    assert theirs != [mine]


def test_what_is_held_outlives_what_is_given_back() -> None:
    array = lent("values", 4, np.int64)
    array.fill(7)
    give_back()
    lent("values", 4, np.int64).fill(0)
    assert array.tolist() == [7] * 4
