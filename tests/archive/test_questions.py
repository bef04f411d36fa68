"""Questions on leaves equal the naive evaluator, and the truth lies between the two readings."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.archive.naive import Leaf, chains
from tests.profiles import examples
from trellis.archive.leaves import (
    Answer,
    LeafIntervals,
    Leaves,
    Policy,
    Question,
    Reading,
    SpanLimit,
)
from trellis.archive.search import LeafSearch
from trellis.archive.step_sequences import step_sequences_of

NAMES = "ABCDE"
PATTERNS = [
    "SEQ(A, B)", "SEQ(A, B, C)", "SEQ(A, A)", "SEQ(A, OR(B, C))", "SEQ(A, AND(B, C))", "SEQ(AND(A, B), C)",
    "SEQ(A, NOT(B), C)", "SEQ(A, NOT(B, D), AND(C, E), NOT(A), B)", "AND(A, B, C)", "OR(A, B)", "SEQ(A, B, C, D, A)",
    "OR(SEQ(A, B), SEQ(C, D, E))", "AND(SEQ(A, B), C)", "SEQ(A, OR(SEQ(B, NOT(E), D), C))",
    "SEQ(AND(A, B), NOT(C), AND(D, E))", "OR(A, SEQ(B, C))", "OR(AND(A, B), SEQ(C, D))",
]  # fmt: skip


@dataclass(frozen=True)
class Exact:
    """Leaves that are known exactly."""

    sets: list[frozenset[str]]

    def has(self, names: frozenset[str], begin: int = 0) -> np.ndarray:
        return np.array([bool(names & one) for one in self.sets], np.bool_)


def history(events: str, capacity: int, times: list[int] | None = None) -> tuple[Leaves, list[Leaf]]:
    times = list(range(len(events))) if times is None else times
    begins = range(0, len(events), capacity)
    cut = [(i, min(i + capacity, len(events)) - 1) for i in begins]
    sets = [frozenset(events[i : j + 1]) for i, j in cut]
    leaves = [Leaf(names, i, j, times[i], times[j]) for names, (i, j) in zip(sets, cut, strict=True)]
    columns = [np.array([getattr(leaf, name) for leaf in leaves]) for name in ("first", "last", "since", "until")]
    return Leaves(Exact(sets), capacity, *columns), leaves


def sequences(text: str) -> tuple:
    plan = trellis.query(f"PATTERN {text}").plan(None)
    return tuple(step_sequences_of(plan.automaton, {v.name: v.type for v in plan.bound.variables}))


def expected(question: Question, leaves: list[Leaf], capacity: int) -> list[tuple[int, int, int, int, bool]]:
    found = list(chains(question, leaves, capacity))
    pairs: dict[tuple[int, int], bool] = {}
    for chain, clear in found:
        key = chain[0], chain[-1]
        pairs[key] = pairs.get(key, False) or clear
    if question.by_steps:
        return sorted((a, d, d, 1, clear) for (a, d), clear in pairs.items())
    rows = []
    for a in sorted({a for a, _ in pairs}):
        ends = sorted(d for b, d in pairs if b == a)
        if question.policy is Policy.NEXT:
            rows.append((a, ends[0], ends[0], 1, pairs[a, ends[0]]))
        else:
            rows.append((a, ends[0], ends[-1], len(ends), any(pairs[a, d] for d in ends)))
    return rows


def draw(dice: random.Random) -> tuple[Question, Leaves, list[Leaf], int, str, list[int]]:
    size = dice.choice([0, 3, 9, 14, 20])
    events = "".join(dice.choice(NAMES[: dice.choice([2, 3, 5])]) for _ in range(size))
    capacity = dice.choice([1, 2, 3, 4])
    times = sorted(dice.randrange(2 * size + 1) for _ in range(size))
    leaves, plain = history(events, capacity, times)
    within = dice.choice(
        [None, None, SpanLimit(dice.choice([1, 3, 8])), SpanLimit(dice.choice([4, 8]), dice.choice([2, 4])),
         SpanLimit(dice.choice([2, 6]), in_positions=True)]
    )  # fmt: skip
    begin = dice.choice([None, None, dice.randrange(10)])
    end = dice.choice([None, None, dice.randrange(5, 40)])
    question = Question(
        sequences(dice.choice(PATTERNS)), dice.choice(list(Policy)), dice.choice(list(Reading)), within, begin, end
    )
    return question, leaves, plain, capacity, events, times


@examples(600)
@given(number=st.integers(0, 10**9))
def test_questions_equal_the_naive_evaluator(number: int) -> None:
    question, leaves, plain, capacity, _, _ = draw(random.Random(number))
    found = LeafSearch(question, leaves).intervals()
    rows = list(zip(found.start, found.end, found.last_end, found.ends, found.clear, strict=True))
    assert [(int(a), int(b), int(c), int(d), bool(e)) for a, b, c, d, e in rows] == expected(question, plain, capacity)
    needed = np.zeros(len(plain), np.bool_)
    if not question.by_steps:
        for chain, _ in chains(question, plain, capacity):
            needed[chain] = True
        assert LeafSearch(question, leaves).needed().tolist() == needed.tolist()


@examples(150)
@given(number=st.integers(0, 10**9))
def test_the_truth_lies_between_the_readings(number: int) -> None:
    dice = random.Random(number)
    question, leaves, _, _, events, times = draw(dice)
    question = replace(question, policy=Policy.ANY, within=None, begin=None, end=None)
    if any(any(sequence.forbidden) for sequence in question.sequences) or not events:
        return
    true = _happened(question, events, times)
    answer = LeafSearch(replace(question, reading=Reading.MAYBE), leaves).simple()
    assert true <= (answer is not Answer.NO)
    assert (answer is Answer.LIKELY) <= true


def _happened(question: Question, events: str, times: list[int]) -> bool:
    """Tell whether a sequence is there, event by event: strictly later ones, in any order inside an AND."""
    _, plain = history(events, 1, times)
    for chain, _ in chains(replace(question, reading=Reading.NO), plain, 1):
        if len(set(chain)) == len(chain):
            sequences = question.sequences
            loose = any(len(block) > 1 for sequence in sequences for block in sequence.blocks) or any(
                any(sequence.loose) for sequence in sequences
            )
            if loose or all(times[a] < times[b] for a, b in pairwise(chain)):
                return True
    return False


@pytest.mark.parametrize("factor", [2, 3])
def test_coarse_levels(factor: int) -> None:
    for number in range(60):
        question, leaves, plain, capacity, _, _ = draw(random.Random(number))
        blocks = [plain[i : i + factor] for i in range(0, len(plain), factor)]
        joined = [
            Leaf(
                frozenset().union(*(x.names for x in some)), some[0].first, some[-1].last, some[0].since, some[-1].until
            )
            for some in blocks
        ]
        found = LeafSearch(question, leaves.coarser(factor)).intervals()
        rows = sorted({(int(a), int(b)) for a, b in zip(found.start, found.end, strict=True)})
        assert rows == sorted({(a, d) for a, d, *_ in expected(question, joined, capacity * factor)})


def test_what_sequences_leave_out() -> None:
    """Optional parts, words behind steps and NOT at an edge leave no trace; what there must be is asked for."""
    for text in ("SEQ(A a, D? d, contiguous B+ b[] skip-till-next UNTIL (b.x > 1))", "SEQ(NOT(C), A, B, NOT(D))"):
        assert sequences(text)[0].names == {"A", "B"}
    assert [len(one.blocks) for one in sequences("AND(A, OR(A, B))")] == [2, 2]


@examples(150)
@given(number=st.integers(0, 10**9))
def test_other_lists_of_the_same_chains(number: int) -> None:
    dice = random.Random(number)
    question, leaves, plain, capacity, _, _ = draw(dice)
    question = replace(question, first=dice.choice([None, 2]), last=dice.choice([None, 11]))
    clear: dict[tuple[int, int], bool] = {}
    for chain, free in chains(question, plain, capacity):
        key = chain[0], chain[-1]
        clear[key] = clear.get(key, False) or free
    search = LeafSearch(question, leaves)
    if question.by_steps or question.policy is Policy.ANY:
        assert rows_of(search.pairs()) == [(*pair, clear[pair]) for pair in sorted(clear)]
        limit = dice.randrange(4)
        assert rows_of(search.pairs(limit)) == [(*pair, clear[pair]) for pair in sorted(clear)][:limit]
    inner = [(a, d) for a, d in clear if not any((a, d) != (b, e) and a <= b and e <= d for b, e in clear)]
    assert rows_of(search.minimal()) == [(*pair, clear[pair]) for pair in sorted(inner)]
    if question.policy is Policy.NEXT:
        taken: list[tuple[int, int]] = []
        for a in sorted({a for a, _ in clear}):
            if not taken or a >= taken[-1][1]:
                taken.append((a, min(d for b, d in clear if b == a)))
        assert rows_of(search.after()) == [(*pair, clear[pair]) for pair in taken]


def rows_of(found: LeafIntervals) -> list[tuple[int, int, bool]]:
    return list(zip(found.start.tolist(), found.end.tolist(), found.clear.tolist(), strict=True))


@dataclass(frozen=True)
class Erring:
    """Leaves whose filters often say yes wrongly, and never no."""

    exact: Exact
    seed: int

    def has(self, names: frozenset[str], begin: int = 0) -> np.ndarray:
        found = np.zeros(len(self.exact.sets), np.bool_)
        for name in names:
            rng = np.random.default_rng([self.seed, ord(name)])
            found |= self.exact.has(frozenset(name)) | (rng.random(len(found)) < 0.25)
        return found


@examples(400)
@given(number=st.integers(0, 10**9))
def test_what_errors_of_filters_can_do(number: int) -> None:
    question, leaves, *_ = draw(random.Random(number))
    assert isinstance(leaves.index, Exact)
    exact, erring = (
        LeafSearch(question, leaves),
        LeafSearch(question, replace(leaves, index=Erring(leaves.index, number))),
    )
    found: dict[int, int] = {}
    for a, d, _ in rows_of(erring.intervals()):
        found[a] = min(d, found.get(a, d))
    for a, d, _ in rows_of(exact.intervals()):  # a row may become shorter, and there may be more; no start is lost
        assert found[a] <= d
    assert erring.simple() is not Answer.NO or exact.simple() is Answer.NO
    if not question.by_steps:
        assert (erring.needed() >= exact.needed()).all()
