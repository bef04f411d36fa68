"""`PathBatch` against plain lists: whatever is taken, joined, cut or made compact, results stay the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trellis.operators.batch import NO_RANK, RANK_LIMIT, PathBatch, rank_labels

Result = tuple[tuple[int, ...], int, int]  # events, rank, group
RESULTS = st.lists(
    st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=5).map(tuple), st.integers(0, 9), st.integers(0, 3)),
    max_size=12,
)
EQUALLY_LONG = st.lists(st.tuples(st.tuples(*[st.integers(0, 5)] * 3), st.integers(0, 9), st.integers(0, 3)))


def ragged(results: list[Result]) -> PathBatch:
    events = np.array([event for one, _, _ in results for event in one], np.int32)
    ends = np.cumsum([len(one) for one, _, _ in results], dtype=np.int32)
    variables = np.array([place for one, _, _ in results for place in range(len(one))], np.int64)
    return PathBatch.of_ends(events, ends, labels(results), variables)


def table(results: list[Result]) -> PathBatch:
    return PathBatch.of_table(np.array([one for one, _, _ in results], np.int32).reshape(-1, 3).T, labels(results))


def labels(results: list[Result]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([rank for _, rank, _ in results], np.int64), np.array([g for *_, g in results], np.int64)


def plain(batch: PathBatch) -> list[Result]:
    assert batch.variables is not None
    found = []
    for (begin, end), rank, group in zip(pairwise(batch.offsets), batch.ranks, batch.groups, strict=True):
        assert batch.variables[begin:end].tolist() == list(range(end - begin))
        found.append((tuple(batch.positions[begin:end].tolist()), int(rank), int(group)))
    return found


@given(RESULTS)
def test_the_arrays_of_a_ragged_batch(results: list[Result]) -> None:
    batch = ragged(results)
    assert plain(batch) == results
    assert batch.lengths.tolist() == [len(one) for one, _, _ in results]
    assert batch.firsts.tolist() == [one[0] for one, _, _ in results]
    assert batch.lasts.tolist() == [one[-1] for one, _, _ in results]


@given(EQUALLY_LONG)
def test_a_table_is_the_same_batch(results: list[Result]) -> None:
    one, other = table(results), ragged(results)
    assert plain(one) == results
    for name in ("lengths", "firsts", "lasts", "ends"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for place in range(3):
        some, has = one.of_variable(place)
        assert has is None
        assert some.positions.tolist() == [events[place] for events, _, _ in results]


@given(RESULTS, st.data())
def test_results_are_taken_joined_and_cut(results: list[Result], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(results) - 1), max_size=8)) if results else []
    assert plain(ragged(results).take(np.array(rows, np.int64))) == [results[row] for row in rows]
    cut = data.draw(st.integers(0, len(results)))
    whole = PathBatch.concat([ragged(results[:cut]), ragged(results[cut:])])
    assert plain(whole) == results
    most = data.draw(st.integers(1, 12))
    pieces = list(whole.pieces(most))
    assert [one for piece in pieces for one in plain(piece)] == results
    assert all(len(piece) == 1 or 0 < len(piece.positions) <= most for piece in pieces)


@given(EQUALLY_LONG, RESULTS, st.data())
def test_tables_are_taken_joined_and_cut_as_others(
    even: list[Result], others: list[Result], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(even) - 1), max_size=8)) if even else []
    some = table(even).take(np.array(rows, np.int64))
    assert some.table is not None
    assert plain(some) == [even[row] for row in rows]
    assert plain(PathBatch.concat([table(even), ragged(others), some])) == [*even, *others, *plain(some)]
    assert [one for piece in table(even).pieces(7) for one in plain(piece)] == even


@given(RESULTS.filter(bool))
def test_one_result_is_a_batch_too(results: list[Result]) -> None:
    ones = [ragged([one]) for one in results]
    assert plain(PathBatch.concat(ones)) == results
    assert [plain(ragged(results).take(np.array([row]))) for row in range(len(results))] == [[one] for one in results]
    assert PathBatch.concat(ones[:1]) is ones[0]


@given(RESULTS)
def test_the_compact_form_shares_all_that_it_can(results: list[Result]) -> None:
    batch = ragged(results).compacted()
    assert batch.shared is not None
    before: tuple[int, ...] = ()
    for (one, _, _), shared, (begin, end) in zip(results, batch.shared, pairwise(batch.offsets), strict=True):
        common = [a == b for a, b in zip(before, one, strict=False)]
        assert shared == (common.index(False) if False in common else len(common))
        assert batch.positions[begin:end].tolist() == list(one[shared:])
        before = one
    assert batch.lengths.tolist() == [len(one) for one, _, _ in results]
    assert batch.firsts.tolist() == [one[0] for one, _, _ in results]
    assert batch.ranks.tolist() == [rank for _, rank, _ in results]


@given(RESULTS, st.integers(0, 4))
def test_the_events_of_a_variable(results: list[Result], variable: int) -> None:
    some, has = ragged(results).of_variable(variable)
    assert (np.ones(len(results), np.bool_) if has is None else has).tolist() == [
        len(one) > variable for one, _, _ in results
    ]
    assert some.positions.tolist() == [one[variable] for one, _, _ in results if len(one) > variable]
    assert some.ranks.tolist() == [rank for one, rank, _ in results if len(one) > variable]


@given(st.integers(1, 4).flatmap(lambda size: st.lists(st.permutations(range(size)), min_size=1, max_size=6)))
def test_the_events_of_variables_in_any_order(orders: list[list[int]]) -> None:
    size, rows = len(orders[0]), np.arange(len(orders))
    codes = np.array(orders).ravel()
    positions = (10 * np.repeat(rows, size) + codes).astype(np.int32)
    batch = PathBatch.of_ends(positions, np.arange(size, len(positions) + 1, size, dtype=np.int32), (rows, rows), codes)
    for variable in range(size):
        some, has = batch.of_variable(variable)
        assert has is None
        assert some.firsts.tolist() == [10 * row + variable for row in range(len(orders))]
        assert some.positions.tolist() == some.firsts.tolist()
        assert some.ranks.tolist() == rows.tolist()


def test_ranks_that_do_not_fit_are_not_told() -> None:
    ranks, groups = rank_labels([(3, 5, 2), (4, RANK_LIMIT - 1, 2)])
    assert ranks.tolist() == [5, 6, RANK_LIMIT - 1, NO_RANK]
    assert groups.tolist() == [3, 3, 4, 4]


def test_nothing_is_a_batch_too() -> None:
    none = PathBatch.concat([])
    assert len(none) == len(none.ranks) == len(none.positions) == 0
    assert list(none.pieces(3)) == []
    assert len(none.take(np.empty(0, np.int64))) == len(none.compacted()) == len(table([])) == 0
