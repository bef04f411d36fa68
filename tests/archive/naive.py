"""Questions of a history, answered by going through all chains of leaves: slow, and obviously right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import ceil

from trellis.archive.leaves import Asked, Policy, Reading
from trellis.archive.words import Word


@dataclass(frozen=True)
class Leaf:
    """What is in a leaf, its positions and its times."""

    names: frozenset[str]
    first: int
    last: int
    since: float
    until: float


def chains(asked: Asked, leaves: list[Leaf], capacity: int) -> Iterator[tuple[list[int], bool]]:
    """Yield the chains of all words, each with whether nothing forbidden may be in its gaps."""
    for word in asked.words:
        for steps in orders(word):
            yield from _of_steps(asked, leaves, capacity, steps, word)


def orders(word: Word) -> Iterator[list[tuple[frozenset[str] | None, int]]]:
    """Yield the steps of a word in all orders, each with its block."""
    found: list[list[tuple[frozenset[str] | None, int]]] = [[]]
    for b, block in enumerate(word.blocks):
        found = [[*one, *((names, b) for names in order)] for one in found for order in permutations(block)]
    yield from found


def _of_steps(
    asked: Asked, leaves: list[Leaf], capacity: int, steps: list[tuple[frozenset[str] | None, int]], word: Word
) -> Iterator[tuple[list[int], bool]]:
    def go(chain: list[int]) -> Iterator[list[int]]:
        if len(chain) == len(steps):
            yield chain
            return
        names, block = steps[len(chain)]
        for i, leaf in enumerate(leaves):
            if names is not None and not (names & leaf.names):
                continue
            if not _in_interval(asked, leaf):
                continue
            if chain and not _gap(asked, steps[len(chain) - 1][1], block, word, i - chain[-1]):
                continue
            yield from go([*chain, i])

    for chain in go([]):
        far = chain[-1] - chain[0]
        if (
            asked.by_steps
            and asked.policy is Policy.CONTIGUOUS
            and asked.reading is Reading.MAYBE
            and far > ceil((len(steps) - 1) / capacity)
        ):
            continue
        if asked.within is not None and not _within(asked, leaves[chain[0]], leaves[chain[-1]]):
            continue
        clear = True
        for (_, one), (_, other), low, high in zip(steps, steps[1:], chain, chain[1:], strict=False):
            if one != other:
                clear &= not any(word.forbidden[one] & leaves[i].names for i in range(low, high + 1))
        yield chain, clear


def _in_interval(asked: Asked, leaf: Leaf) -> bool:
    low, high = (leaf.since, leaf.until) if asked.reading is Reading.NO else (leaf.until, leaf.since)
    near, far = (leaf.first, leaf.last) if asked.reading is Reading.NO else (leaf.last, leaf.first)
    in_time = (asked.begin is None or low >= asked.begin) and (asked.end is None or high <= asked.end)
    return in_time and (asked.first is None or near >= asked.first) and (asked.last is None or far <= asked.last)


def _gap(asked: Asked, one: int, other: int, word: Word, distance: int) -> bool:
    together = one == other or word.loose[one]
    if asked.policy is Policy.ADJACENT_LEAVES:
        return distance in ((0, 1) if together else (1,))
    if asked.by_steps:
        no = asked.reading is Reading.NO and not together
        return distance in ((1,) if no else (0, 1))
    return distance >= (1 if asked.reading is Reading.NO and not together else 0)


def _within(asked: Asked, first: Leaf, last: Leaf) -> bool:
    within = asked.within
    assert within is not None
    a, b = ((x.first, x.last) if within.in_positions else (x.since, x.until) for x in (first, last))
    if within.slide is None:
        return (b[1] - a[0] if asked.reading is Reading.NO else b[0] - a[1]) <= within.size
    for number in range(int(-within.size), int(max(a[1], b[1]) / within.slide) + 2):
        begin, end = number * within.slide, number * within.slide + within.size
        if asked.reading is Reading.NO:
            if begin <= a[0] and b[1] < end and a[1] < end and begin <= b[0]:
                return True
        elif a[1] >= begin and a[0] < end and b[1] >= begin and b[0] < end:
            return True
    return False
