"""Questions of a history, answered by going through all chains of leaves: slow, and obviously right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import ceil

from trellis.archive.leaves import Policy, Question, Reading
from trellis.archive.step_sequences import StepSequence


@dataclass(frozen=True)
class Leaf:
    """What is in a leaf, its positions and its times."""

    names: frozenset[str]
    first: int
    last: int
    since: float
    until: float


def chains(question: Question, leaves: list[Leaf], capacity: int) -> Iterator[tuple[list[int], bool]]:
    """Yield the chains of all sequences, each with whether nothing forbidden may be in its gaps."""
    for sequence in question.sequences:
        for steps in orders(sequence):
            yield from _of_steps(question, leaves, capacity, steps, sequence)


def orders(sequence: StepSequence) -> Iterator[list[tuple[frozenset[str] | None, int]]]:
    """Yield the steps of a sequence in all orders, each with its block."""
    found: list[list[tuple[frozenset[str] | None, int]]] = [[]]
    for b, block in enumerate(sequence.blocks):
        found = [[*one, *((names, b) for names in order)] for one in found for order in permutations(block)]
    yield from found


def _of_steps(
    question: Question,
    leaves: list[Leaf],
    capacity: int,
    steps: list[tuple[frozenset[str] | None, int]],
    sequence: StepSequence,
) -> Iterator[tuple[list[int], bool]]:  # fmt: skip
    def go(chain: list[int]) -> Iterator[list[int]]:
        if len(chain) == len(steps):
            yield chain
            return
        names, block = steps[len(chain)]
        for i, leaf in enumerate(leaves):
            if names is not None and not (names & leaf.names):
                continue
            if not _in_interval(question, leaf):
                continue
            if chain and not _gap(question, steps[len(chain) - 1][1], block, sequence, i - chain[-1]):
                continue
            yield from go([*chain, i])

    for chain in go([]):
        far = chain[-1] - chain[0]
        if (
            question.by_steps
            and question.policy is Policy.CONTIGUOUS
            and question.reading is Reading.MAYBE
            and far > ceil((len(steps) - 1) / capacity)
        ):
            continue
        if question.within is not None and not _span_limit(question, leaves[chain[0]], leaves[chain[-1]]):
            continue
        clear = True
        for (_, one), (_, other), low, high in zip(steps, steps[1:], chain, chain[1:], strict=False):
            if one != other:
                clear &= not any(sequence.forbidden[one] & leaves[i].names for i in range(low, high + 1))
        yield chain, clear


def _in_interval(question: Question, leaf: Leaf) -> bool:
    low, high = (leaf.since, leaf.until) if question.reading is Reading.NO else (leaf.until, leaf.since)
    near, far = (leaf.first, leaf.last) if question.reading is Reading.NO else (leaf.last, leaf.first)
    in_time = (question.begin is None or low >= question.begin) and (question.end is None or high <= question.end)
    return (
        in_time
        and (question.first is None or near >= question.first)
        and (question.last is None or far <= question.last)
    )


def _gap(question: Question, one: int, other: int, sequence: StepSequence, distance: int) -> bool:
    together = one == other or sequence.loose[one]
    if question.policy is Policy.ADJACENT_LEAVES:
        return distance in ((0, 1) if together else (1,))
    if question.by_steps:
        no = question.reading is Reading.NO and not together
        return distance in ((1,) if no else (0, 1))
    return distance >= (1 if question.reading is Reading.NO and not together else 0)


def _span_limit(question: Question, first: Leaf, last: Leaf) -> bool:
    within = question.within
    assert within is not None
    a, b = ((x.first, x.last) if within.in_positions else (x.since, x.until) for x in (first, last))
    if within.slide is None:
        return (b[1] - a[0] if question.reading is Reading.NO else b[0] - a[1]) <= within.size
    for number in range(int(-within.size), int(max(a[1], b[1]) / within.slide) + 2):
        begin, end = number * within.slide, number * within.slide + within.size
        if question.reading is Reading.NO:
            if begin <= a[0] and b[1] < end and a[1] < end and begin <= b[0]:
                return True
        elif a[1] >= begin and a[0] < end and b[1] >= begin and b[0] < end:
            return True
    return False
