"""Matches of sequences beside all choices of one candidate for each variable."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from trellis.kernels.sequence import tree, walk
from trellis.kernels.sequence.sweep import sweep

N = 12  # events, each at a time of its own


class Case:
    """Three variables; the second has a code equal to the first's, the third a greater one than the second's."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.of_variable = [np.flatnonzero(rng.random(N) < 0.6) for _ in range(3)]
        sizes = [len(one) for one in self.of_variable]
        events, begin = np.concatenate(self.of_variable), np.concatenate([[0], np.cumsum(sizes)])
        self.codes = rng.integers(0, 3, (2, len(events)))
        pairs, fresh = np.zeros((3, 3, 2), int), np.ones((3, 3), np.bool_)
        pairs[0, 1], pairs[1, 2] = (0, 1), (1, 2)
        fresh[1:, 1] = fresh[2:, 2] = False
        order = np.argsort(self.codes[0, begin[1] : begin[2]], kind="stable")
        run_begins = np.searchsorted(self.codes[0, begin[1] : begin[2]][order], np.arange(4))
        self.candidates = walk.WalkCandidates(
            events, begin, events + 1, np.full(len(events), N), np.full(len(events), N), pairs,
            np.array([walk.EQUAL, walk.GREATER]), self.codes, order + begin[1], run_begins, np.array([0, -1, -1]),
            fresh,
        )  # fmt: skip
        first = np.arange(sizes[0])
        self.tasks = walk.SequenceTasks(first, np.minimum(events[first] + 9, N), events[first] + 2)
        place = [{int(e): begin[v] + i for i, e in enumerate(one)} for v, one in enumerate(self.of_variable)]
        self.places = place
        self.matches = [
            [
                m
                for m in naive.increasing_choices(self.of_variable)
                if m[0] == e and m[2] < limit and m[2] >= least and self.holds(*(place[v][x] for v, x in enumerate(m)))
            ]
            for e, limit, least in zip(self.of_variable[0], self.tasks.limit, self.tasks.least, strict=True)
        ]

    def holds(self, a: int, b: int, c: int) -> bool:
        return bool(self.codes[0, a] == self.codes[0, b] and self.codes[1, c] > self.codes[1, b])

    def walk(self) -> walk.Walk:
        size = len(self.candidates.events)
        pool = np.concatenate([np.arange(size), np.zeros(3 * size + 1, int)])
        low, high = np.zeros((2, 3, 3), int)
        return walk.Walk(low, high, np.zeros(4, int), pool, np.zeros(5, int))

    def weight(self, weights: np.ndarray, match: naive.Path) -> int:
        return sum(int(weights[self.places[v][e]]) for v, e in enumerate(match))


@pytest.mark.parametrize("seed", range(4))
def test_matches_are_counted_weighed_listed_and_unranked(seed: int) -> None:
    case = Case(seed)
    numbers = [len(found) for found in case.matches]
    given, size = (case.candidates, case.tasks, 1), len(case.candidates.events)
    assert walk.count(*given, 0.0, 0.0, case.walk(), np.empty((3, size))).tolist() == numbers
    weights, prime = np.arange(size, dtype=np.uint64), np.uint64(2**31 - 1)
    scratch = np.empty((2, 3, size), np.uint64)
    sums = [sum(case.weight(weights, m) for m in found) for found in case.matches]
    assert walk.weigh(*given, prime, weights, case.walk(), *scratch).tolist() == sums
    none = 1 << 62
    values = np.random.default_rng(seed).integers(0, 99, size)
    least = [
        min((int(values[case.places[v][e]]) for m in found for v, e in enumerate(m)), default=none)
        for found in case.matches
    ]
    assert walk.least(*given, values, none, case.walk(), np.empty((3, size), int)).tolist() == least
    every = [m for found in case.matches for m in found]
    out = np.full((3, len(every)), -1, np.int32)
    walk.fill(case.candidates, case.tasks, 0, 0, case.walk(), out, 0, len(every), len(every))
    assert [tuple(m) for m in out.T.tolist()] == every
    row = np.zeros(3, int)
    for task, found in enumerate(case.matches):
        for rank, match in enumerate(found):
            walk.unrank_match(case.candidates, case.tasks, task, np.uint64(rank), 1, case.walk(), scratch[0], row)
            assert tuple(row.tolist()) == match


@pytest.mark.parametrize("seed", range(5))
def test_candidates_without_a_partner_are_dropped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    events, others = (np.flatnonzero(rng.random(20) < 0.5) for _ in range(2))
    later, until = events + 1, events + 6
    codes, other_codes = rng.integers(-1, 3, len(events)), rng.integers(-1, 3, len(others))

    def kept(allows: object) -> tuple[list[bool], list[bool]]:
        pairs = [
            (i, j)
            for i, j in np.ndindex(len(events), len(others))
            if later[i] <= others[j] < until[i] and allows(codes[i], other_codes[j])  # type: ignore[operator]
        ]
        return [any(a == i for a, _ in pairs) for i in range(len(events))], [
            any(b == j for _, b in pairs) for j in range(len(others))
        ]

    def flags() -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(events), np.bool_), np.ones(len(others), np.bool_)

    keep = flags()
    walk.keep_with_partner(events, later, until, others, *keep)
    assert tuple(k.tolist() for k in keep) == kept(lambda a, b: True)
    keep = flags()
    walk.keep_equal(3, events, later, until, others, codes, other_codes, *keep)
    assert tuple(k.tolist() for k in keep) == kept(lambda a, b: a >= 0 and a == b)
    keep = flags()
    walk.keep_greater(events, later, until, others, codes, other_codes, *keep)
    assert tuple(k.tolist() for k in keep) == kept(lambda a, b: b > a)


@pytest.mark.parametrize("modulus", [0, 2**31 - 1])
@pytest.mark.parametrize("seed", range(3))
def test_the_sweep_counts_what_the_first_event_accepts(seed: int, modulus: int) -> None:
    rng, times, width = np.random.default_rng(seed), 9, 2
    values, low = rng.integers(0, 5, 4), rng.integers(0, 4, 4)
    high = low + rng.integers(1, 6, 4)
    codes, places, variables = rng.integers(0, 6, 10), rng.integers(0, times, 10), rng.integers(0, width, 10)
    falling = np.argsort(codes)[::-1]
    given = codes[falling], places[falling], variables[falling]
    zero = np.uint64(0) if modulus else 0.0
    order = np.argsort(-values)
    found = sweep(times, width, order, values, low, high, *given, zero, type(zero)(modulus))
    wanted = [
        sum(
            codes[i] > values[t] and codes[j] > values[t] and low[t] <= places[i] < places[j] < high[t]
            for i in range(10)
            for j in range(10)
            if (variables[i], variables[j]) == (0, 1)
        )
        for t in range(4)
    ]
    assert found.tolist() == wanted


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_joins_of_partial_matches(seed: int, hashed: bool) -> None:
    rng, rows = np.random.default_rng(seed), 8
    kinds = np.array([walk.EQUAL, walk.GREATER, walk.DIFFERENT])
    left, right = rng.integers(0, 3, (2, 3, rows))
    after, until = rng.integers(0, 6, rows), rng.integers(6, 12, rows)
    starts = np.sort(rng.integers(0, 9, rows))
    ends = starts + rng.integers(0, 4, rows)
    weights, right_weights = rng.integers(1, 5, (2, rows)).astype(float)

    def reaches(a: int, b: int) -> bool:
        return bool(after[a] <= starts[b] < until[a])

    def matches(a: int, b: int) -> bool:
        equal, greater, other = left[0, a] == right[0, b], right[1, b] > left[1, a], left[2, a] != right[2, b]
        return bool(reaches(a, b) and ends[b] < until[a] and equal and greater and other)

    wanted = [(a, b) for a in range(rows) for b in range(rows) if matches(a, b)]
    weight = sum(weights[a] * right_weights[b] for a, b in wanted)
    order, by_code = np.arange(rows), np.empty(0, int)
    if hashed:
        order = np.argsort(right[0], kind="stable")
        by_code = np.searchsorted(right[0][order], np.arange(4))
    out = np.zeros((2, 100), int)
    found, total, _ = tree.join_pairs(
        kinds, left, tree.LeftRows(after, until, weights), right, tree.RightRows(starts, ends, right_weights), order,
        by_code, *out,
    )  # fmt: skip
    assert (sorted(zip(*out[:, :found].tolist(), strict=True)), total) == (wanted, weight)
    looked = sum(reaches(a, b) and (not hashed or left[0, a] == right[0, b]) for a in range(rows) for b in range(rows))
    assert tree.pairs_in_reach(left, after, until, starts, order, by_code) == looked
    groups = []
    for side in (left, right):
        distinct = sorted({tuple(column) for column in side.T.tolist()})
        members = [[i for i in range(rows) if tuple(side[:, i].tolist()) == one] for one in distinct]
        groups.append((np.array(distinct).T.copy(), np.cumsum([0, *map(len, members)]), np.concatenate(members)))
    codes = np.searchsorted(groups[1][0][0], np.arange(4)) if hashed else np.empty(0, int)
    found, total, _ = tree.join_groups(
        kinds, tree.RowGroups(*groups[0]), tree.LeftRows(after, until, weights), tree.RowGroups(*groups[1]),
        tree.RightRows(starts, ends, right_weights), codes, *out,
    )  # fmt: skip
    assert (sorted(zip(*out[:, :found].tolist(), strict=True)), total) == (wanted, weight)
