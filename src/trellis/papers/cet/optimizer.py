"""The searches for a plan of H-CET: exhaustive, branch and bound with sound bounds, the paper's own, and greedy."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import accumulate, combinations
from math import ceil

from trellis.errors import TrellisError
from trellis.papers.cet.plans import FEW, Choice, Cuts, NoPlan, Problem
from trellis.papers.contract import REFERENCE

MOST_CUTS = 20  # that may be made or not, for an exhaustive search: a million plans
MOST_LABELS = 200_000  # that branch and bound holds
MOST_NODES = 2_000_000  # that the paper's search makes
STEPS = 20  # levels by which greedy goes up one at a time


class TooLarge(TrellisError):
    """A search would take too long."""

    def __init__(self, optimizer: str, problem: Problem) -> None:
        super().__init__(
            f"the optimizer `{optimizer}` would take too long: {len(problem):,} atomic graphlets of one partition "
            f"have {len(problem.optional):,} cuts to choose from",
            "Use the optimizer greedy, or leave it out.",
        )


def exhaustive(problem: Problem) -> Choice:
    """Look at every plan."""
    optional = problem.optional
    if len(optional) > MOST_CUTS:
        raise TooLarge("exhaustive", problem)
    best, least, looked_at = None, float("inf"), 0
    for number in range(len(optional) + 1):
        for some in combinations(optional, number):
            cuts = tuple(sorted({*problem.forced, *some}))
            cpu, memory = problem.cost(cuts)
            looked_at += 1
            if memory <= problem.limit and cpu < least:
                best, least = cuts, cpu
    return problem.chosen(problem.finest if best is None else best, looked_at, 1)


# --- Branch and bound ------------------------------------------------------------------------------------------------


def bnb(problem: Problem) -> Choice:
    """Choose graphlets from left to right, best first, with bounds that never leave out the optimum.

    A partial plan is left out if its windows cannot fit the limit even where every piece to come is a graphlet, which
    stores least, or if another one up to the same piece is no worse in steps and in what every open window stores. What
    is still to come costs at least what it would without a limit.
    """
    search = _Search(problem)
    heap: list[tuple[float, float, int, tuple[float, ...], Cuts]] = [(search.ahead[0], 0.0, 0, (), ())]
    expanded: list[list[tuple[float, ...]]] = [[] for _ in range(len(problem) + 1)]
    looked_at, held = 0, 1
    while heap:
        _, cpu, piece, loads, cuts = heapq.heappop(heap)
        if piece == len(problem):
            return problem.chosen(cuts[:-1], looked_at, held)
        if any(all(a <= b for a, b in zip(other, loads, strict=True)) for other in expanded[piece]):
            continue
        expanded[piece].append(loads)
        for stop, steps, more in search.next(piece, loads):
            looked_at += 1
            so_far = cpu + steps
            heapq.heappush(heap, (so_far + search.ahead[stop], so_far, stop, more, (*cuts, stop)))
        held = max(held, len(heap))
        if held > MOST_LABELS:
            raise TooLarge("bnb", problem)
    raise NoPlan(problem.limit, problem.smallest)


class _Search:
    """The tables of branch and bound: bounds for the rest of a plan, and which windows are open where."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.limit = problem, problem.limit / REFERENCE
        number = len(problem)
        self.least = [0.0, *accumulate(problem.graphlets(piece)[1][0] for piece in range(number))]
        self.ahead = [0.0] * (number + 1)
        for piece in reversed(range(number)):
            steps, _, grown = problem.graphlets(piece)
            self.ahead[piece] = min(
                (s + self.ahead[piece + 1 + i] for i, s in enumerate(steps) if grown[i] <= self.limit),
                default=float("inf"),
            )
        self._windows_at = [[w for w in problem.windows if w.first <= piece < w.stop] for piece in range(number)]

    def next(self, piece: int, loads: tuple[float, ...]) -> Iterator[tuple[int, float, tuple[float, ...]]]:
        """Yield for each graphlet that can follow where it stops, its steps, and what open windows then store.

        `loads` is what the windows that began before a piece and hold it store so far.
        """
        windows = self._windows_at[piece]
        before = iter(loads)
        stored = [next(before) if window.first < piece else 0.0 for window in windows]
        steps, kept, grown = self.problem.graphlets(piece)
        for place in range(len(steps)):
            stop = piece + place + 1
            # The graphlet grows for the first window that holds it, which began first and so stores most.
            if stored and stored[0] + grown[place] > self.limit:
                return  # longer ones take more
            after = [load + kept[place] for load in stored]
            if any(
                load + self.least[window.stop] - self.least[stop] + window.longest > self.limit
                for load, window in zip(after, windows, strict=True)
            ):
                continue
            still = tuple(load for load, window in zip(after, windows, strict=True) if window.stop > stop)
            yield stop, steps[place], still


# --- The paper's own -------------------------------------------------------------------------------------------------


def bnb_paper(problem: Problem) -> Choice:
    """Search as the paper's Algorithm 2 does: from the first level that may fit, nearly balanced plans only.

    Both comparisons with the limit allow equality, and a level without a nearly balanced plan is passed over.
    """
    level, number = _first_level(problem), len(problem)
    best, least, looked_at, held = None, float("inf"), 0, 0
    pruned: list[frozenset[int]] = []
    heap: list[tuple[float, Cuts]] = []

    def push(level: int) -> int:
        while level <= number:
            nodes = [n for n in _nearly_balanced(problem, level) if not any(p.issubset(n) for p in pruned)]
            for node in nodes:
                heapq.heappush(heap, (problem.cost(node)[0], node))
            if nodes:
                return level
            level += 1
        return level

    level = push(level)
    while heap:
        held = max(held, len(heap))
        _, node = heapq.heappop(heap)
        looked_at += 1
        if looked_at + held > MOST_NODES:
            raise TooLarge("bnb-paper", problem)
        if any(p.issubset(node) for p in pruned):
            continue
        cpu, memory = problem.cost(node)
        if memory <= problem.limit:
            pruned.append(frozenset(node))
            if cpu < least:
                best, least = node, cpu
        if len(node) + 1 == level:
            level = push(level + 1)
    return problem.chosen(problem.finest if best is None else best, looked_at, held)


def _first_level(problem: Problem) -> int:
    """Return the least number of graphlets that would fit the limit if they were perfectly balanced."""
    low, high = len(problem.forced) + 1, len(problem)
    level = high
    while low <= high:
        middle = low + (high - low) // 2
        if problem.balanced(middle) <= problem.limit:
            level, high = middle, middle - 1
        else:
            low = middle + 1
    return level


def _nearly_balanced(problem: Problem, level: int) -> Iterator[Cuts]:
    """Yield the plans of so many graphlets that Definition 8 calls balanced or nearly balanced."""
    before = [0, *accumulate(problem.sizes)]
    number, ideal = len(problem), ceil(before[-1] / level)

    def fits(first: int, stop: int, place: int) -> bool:
        size = before[stop] - before[first]
        if size <= ideal:
            return True
        return (place == 1 or size < ideal + problem.sizes[first]) and (
            place == level or size < ideal + problem.sizes[stop - 1]
        )

    made = 0
    stack: list[tuple[int, Cuts]] = [(0, ())]
    while stack:
        first, cuts = stack.pop()
        made += 1
        if made > MOST_NODES:
            raise TooLarge("bnb-paper", problem)
        place = len(cuts) + 1
        if place == level:
            if problem.border_after[first] == number and fits(first, number, place):
                yield cuts
            continue
        last = min(problem.border_after[first], number - (level - place))
        for stop in range(last, first, -1):
            if fits(first, stop, place):
                stack.append((stop, (*cuts, stop)))


# --- Greedy ----------------------------------------------------------------------------------------------------------


def greedy(problem: Problem) -> Choice:
    """Take the first nearly balanced plan that fits, one a level, from the level that may fit on."""
    level, number, looked_at = _first_level(problem), len(problem), 0
    while True:
        cuts = _filled(problem, level)
        looked_at += 1
        if problem.cost(cuts)[1] <= problem.limit:
            return problem.chosen(cuts, looked_at, 1)
        if level == number:
            raise NoPlan(problem.limit, problem.smallest)
        level = min(level + 1 + level // STEPS, number)  # where there are very many, not every one of them


def _filled(problem: Problem, level: int) -> Cuts:
    """Fill graphlets from left to right up to the ideal size; there are as many as asked for, or as borders need."""
    ideal = ceil(sum(problem.sizes) / level)
    cuts: list[int] = []
    filled = 0
    for piece, size in enumerate(problem.sizes[:-1]):
        filled += size
        left = level - len(cuts) - 1
        if piece + 1 in problem.forced or filled >= ideal or len(problem) - piece - 1 <= left:
            cuts.append(piece + 1)
            filled = 0
    return tuple(cuts)


def auto(problem: Problem) -> Choice:
    """Search by branch and bound where that is quick, and greedily elsewhere."""
    if len(problem) > FEW:
        return greedy(problem)
    try:
        return bnb(problem)
    except TooLarge:
        return greedy(problem)


OPTIMIZERS: dict[str, Callable[[Problem], Choice]] = {
    "auto": auto, "bnb": bnb, "bnb-paper": bnb_paper, "exhaustive": exhaustive, "greedy": greedy,
}  # fmt: skip
