"""The kernels of the exploration against plain Python: lists that are kept once, and results by events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.kernels.explore.lists import FULL, clear, keep, keep_with, make_lists
from trellis.kernels.explore.order import NO_ROOM, list_by_events, make_levels, paths_to_ends
from trellis.kernels.explore.reach import BitRows, add_bits, bit_bounds, bit_words, meets_any, set_bits

Graph = tuple[list[int], list[list[int]]]
NUMBERS = st.lists(st.integers(-3, 12), max_size=5)


def members(lists: Any, number: int) -> list[int]:
    begin = lists.ends[number - 1] if number else 0
    return [int(value) for value in lists.values[begin : lists.ends[number]]]


@examples(60)
@given(some=st.lists(NUMBERS, max_size=30))
def test_equal_lists_have_equal_numbers(some: list[list[int]]) -> None:
    lists = make_lists(64, 512)
    clear(lists)
    numbers = [int(keep(lists, np.array([*one, 0], np.int64), len(one))) for one in some]
    assert [members(lists, number) for number in numbers] == some
    for one, number in zip(some, numbers, strict=True):
        for other, another in zip(some, numbers, strict=True):
            assert (one == other) == (number == another)
    clear(lists)
    assert lists.used[0] == 1
    assert not lists.table[lists.table > 1].any()


@examples(60)
@given(values=st.lists(st.integers(0, 20), max_size=12))
def test_sets_grow_by_one_value(values: list[int]) -> None:
    lists, scratch = make_lists(64, 512), np.empty(32, np.int64)
    clear(lists)
    number = 0
    for value in values:
        number = int(keep_with(lists, number, value, scratch))
    assert members(lists, number) == sorted(set(values))


def test_what_does_not_fit_is_told() -> None:
    lists, scratch = make_lists(4, 64), np.empty(2, np.int64)
    clear(lists)
    for value in range(3):
        assert keep(lists, np.array([value]), 1) == value + 1
    assert keep(lists, np.array([7]), 1) == FULL
    assert keep(lists, np.array([1]), 1) == 2
    clear(lists)
    number = keep_with(lists, keep_with(lists, 0, 5, scratch), 3, scratch)
    assert keep_with(lists, number, 4, scratch) == FULL


@st.composite
def graphs(draw: Any) -> Graph:
    """Draw the event of each vertex, in rising order, and the successors of each: no two of one vertex share both."""
    events = sorted(draw(st.lists(st.integers(0, 5), min_size=1, max_size=9)))
    after: list[list[int]] = []
    for vertex, event in enumerate(events):
        later = [v for v in range(vertex + 1, len(events)) if events[v] > event]
        after.append([v for v in later if draw(st.booleans())])
    return events, after


def naive_order(events: list[int], variables: list[int], after: list[list[int]]) -> list[list[int]]:
    """Return all paths from vertices without predecessors to those without successors.

    They are in the order of their events, then of their variables, then of their vertices.
    """
    entered = {w for row in after for w in row}
    found: list[list[int]] = []

    def walk(path: list[int]) -> None:
        if not after[path[-1]]:
            found.append(path)
        for vertex in after[path[-1]]:
            walk([*path, vertex])

    for vertex in range(len(events)):
        if vertex not in entered:
            walk([vertex])
    return sorted(found, key=lambda path: ([events[v] for v in path], [variables[v] for v in path], path))


@pytest.mark.parametrize("limbs", [1, 3])
@examples(60)
@given(graph=graphs(), data=st.data())
def test_results_come_by_events_from_any_rank_on(
    graph: tuple[list[int], list[list[int]]], data: Any, limbs: int
) -> None:
    events, after = graph
    offsets = np.cumsum([0, *(len(row) for row in after)]).astype(np.int64)
    successors = np.array([v for row in after for v in row], np.int32)
    least, most = data.draw(st.sampled_from([(1, 99), (2, 99), (1, 2), (2, 3)]))
    variables = data.draw(st.lists(st.integers(0, 2), min_size=len(events), max_size=len(events)))
    expected = [path for path in naive_order(events, variables, after) if least <= len(path) <= most]
    begin, wanted = data.draw(st.integers(0, len(expected))), data.draw(st.integers(1, 5))
    ways, starts = paths_to_ends(offsets, successors, 0, len(events), limbs)
    skip = np.zeros(limbs, np.uint64)
    skip[0] = begin
    room = 2
    while True:
        out, ends = np.empty(100, np.int32), np.empty(wanted, np.int64)
        given_levels = make_levels(room, room, limbs)
        written = list_by_events(
            offsets, successors, np.array(events), np.array(variables), 0, ways, starts, skip.copy(), wanted, least,
            min(most, len(events)), given_levels, out, ends,
        )  # fmt: skip
        if written != NO_ROOM:
            break
        room *= 2
    paths = [list(map(int, one)) for one in np.split(out[: ends[written - 1]], ends[: written - 1])] if written else []
    assert paths == expected[begin : begin + wanted]


@examples(80)
@given(size=st.integers(1, 300), reach=st.integers(1, 200), number=st.integers(0, 400), seed=st.integers(0, 1 << 20))
def test_rows_of_bits_are_what_comes_before_and_what_can_be_reached(
    size: int, reach: int, number: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, size, (number, 2)), axis=1)
    edges = {(v, w) for v, w in ends.tolist() if v < w <= v + reach}
    offsets = np.cumsum([0, *(sum(v == one for one, _ in edges) for v in range(size))])
    targets = np.array([w for _, w in sorted(edges)], np.int32)
    beyond: list[set[int]] = [set() for _ in range(size)]
    for v, w in sorted(edges, reverse=True):
        beyond[v] |= {w} | beyond[w]
    bounds = bit_bounds(offsets, targets)
    rows = [_unset(bounds[side], bounds[side + 1]) for side in (0, 2)]
    assert bit_words(bounds) == sum(len(one.words) for one in rows)
    set_bits(offsets, targets, *rows)
    near, filled = np.zeros((size + 63) // 64, np.uint64), np.array([len(targets), 0])
    for v in range(size):
        for one, wanted in zip(rows, ({u for u, w in edges if w == v}, beyond[v]), strict=True):
            near[:] = 0
            add_bits(one, v, near, filled)
            found = {i for i in range(size) if int(near[i >> 6]) >> (i & 63) & 1}
            assert found == wanted
            assert all(filled[0] <= i >> 6 < filled[1] for i in found)
    near[:] = 0
    add_bits(rows[1], 0, near, filled)
    assert [bool(meets_any(rows[0], v, near)) for v in range(size)] == [
        any((u, v) in edges for u in beyond[0]) for v in range(size)
    ]


def _unset(first: np.ndarray, last: np.ndarray) -> BitRows:
    offsets = np.cumsum(np.append(0, np.maximum(last - first + 1, 0)))
    return BitRows(first, offsets, np.zeros(offsets[-1], np.uint64))
