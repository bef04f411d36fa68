"""The operator for patterns without repetition: SEQ, AND, OR and NOT with any conditions.

Parts of the pattern that nothing joins are counted apart and multiplied; in each the fewest variables are bound, and
sums over the candidates of the others do the rest. Results are listed by a walk over events, in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.join import walk as kernel
from trellis.language.bound import BoundQuery
from trellis.operators.aggregates import Sum
from trellis.operators.batch import PathBatch, rank_labels
from trellis.operators.contract import BestRequest, Counts, ListRequest
from trellis.operators.joins.best import leading_matches, search_best
from trellis.operators.joins.counting import Numbers
from trellis.operators.joins.structure import BATCH_VALUES, JoinStructure
from trellis.operators.joins.tables import SlotArm
from trellis.operators.matches import NONE, MatchOperator
from trellis.operators.threads import made_on_threads
from trellis.providers import provided

STEP = 5e-9  # seconds that a step of counting takes
T = TypeVar("T")


class JoinOperator(MatchOperator[JoinStructure]):
    """Matches of a pattern without repetition, by joins of candidates.

    Raises
    ------
    NotComparable
        If a number that a condition computes may leave 64 bits, on the events at hand.
    """

    def _make_structure(self) -> JoinStructure:
        return JoinStructure(self.plan, self.events, self.threads)

    def describe(self) -> dict[str, str]:
        """Say what the candidates are, and how each arm is counted."""
        candidates, shapes = self.structure.candidates, self.structure.counter.shapes
        said, steps = dict[str, str](), self._steps
        for i, arm in enumerate(candidates.arms):
            sizes = ", ".join(f"{candidates.variable[s]} {len(candidates.of_slot[s]):,}" for s in arm.slots)
            parts = []
            for part in shapes.parts(arm):
                counted = shapes.of_part(part)
                names = ", ".join(candidates.variable[slot] for slot in part)
                bound = ", ".join(candidates.variable[slot] for slot in counted.bound)
                how = f"{bound} bound, sums over the others" if bound else "sums alone"
                parts.append(f"{names}: {how}, about {counted.cost:,.0f} steps for each window")
            said["candidates" if len(candidates.arms) == 1 else f"candidates_{i + 1}"] = sizes
            said["parts" if len(candidates.arms) == 1 else f"parts_{i + 1}"] = "; ".join(parts)
        if candidates.residuals:
            said["residuals"] = "; ".join(candidates.residuals)
        said["expected"] = f"about {steps:.2g} steps to count, {max(steps * STEP, 0.001):.1g} seconds"
        return said

    @property
    def _steps(self) -> float:
        """About how many steps counting takes."""
        candidates, shapes = self.structure.candidates, self.structure.counter.shapes
        costs = (self._times(arm) * sum(shapes.of_part(p).cost for p in shapes.parts(arm)) for arm in candidates.arms)
        return float(sum(costs))

    def _times(self, arm: SlotArm) -> int:
        """Return how often an arm is counted: for each window, or for each event at which a span begins."""
        counter = self.structure.counter
        if not self.structure.candidates.is_span:
            return len(self.events.groups)
        return sum(len(self.structure.candidates.of_slot[slot]) for slot in counter.open_slots(arm, ()))

    # --- Aggregates -------------------------------------------------------------------------------------------

    def _counts_with(self, variable: str) -> Counts:
        return self.structure.counts_of(self._having(variable, self.structure.signed))

    @staticmethod
    def _having(variable: str, arms: Sequence[SlotArm]) -> list[SlotArm]:
        return [arm for arm in arms if variable in arm.arm.variables]

    def _lengths(self, function: str) -> Sequence[Any]:
        arms = self.structure.signed
        lengths = sorted({len(arm.slots) for arm in arms})
        counts = [self.structure.counts_of([arm for arm in arms if len(arm.slots) == size]) for size in lengths]
        found: list[Any] = []
        for g, count in enumerate(self.counts):
            here = [(size, own[g]) for size, own in zip(lengths, counts, strict=True) if own[g]]
            if function in ("AVG", "SUM"):
                found.append(Sum(Fraction(sum(size * number for size, number in here)), count))
            else:
                found.append((min if function == "MIN" else max)((size for size, _ in here), default=None))
        return found

    def _weighed(self, weights: NDArray[np.uint64], variable: str, prime: int) -> NDArray[np.uint64]:
        candidates, counter = self.structure.candidates, self.structure.counter
        total = np.zeros(len(self.events.groups), np.uint64)
        for arm in self._having(variable, self.structure.signed):
            slot = arm.slot(variable)
            here = slice(*candidates.tables.begin[slot : slot + 2].tolist())
            own = np.ones(len(candidates.tables.events), np.uint64)
            own[here] = weights[candidates.tables.events[here]]
            total += counter.of_groups([arm], Numbers(prime, own))
        return (total % np.uint64(prime)).reshape(1, -1)

    def _least(self, values: Ints, variable: str) -> Ints:
        counter, own = self.structure.counter, values[self.structure.candidates.tables.events]
        best = np.full(len(self.events.groups), NONE)
        for arm in self._having(variable, self.structure.arms):
            best = np.minimum(best, counter.least(arm, arm.slot(variable), own))
        return best

    # --- Results ----------------------------------------------------------------------------------------------

    def first(self, begin: int, end: int) -> PathBatch | None:
        """Return the matches of all groups from one on, if they are few and come soon, and counting takes long."""
        structure, sizes = self.structure, self.plan.sizes
        known = structure.few is not None or "counts" in vars(structure)
        if known or end > sizes.walked_firsts or self._steps <= sizes.joined_steps:
            return None
        found: PathBatch | None = provided("walk to the first matches")(self.plan, self.events, begin, end, self._steps)
        return found

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the matches of a group with given ranks, of any size, in rising order."""
        if self.structure.few is not None:
            return self.structure.few.at(group, ranks)
        found = [self.structure.unrank(group, rank) for rank in ranks]
        positions = np.array([event for events, _ in found for event in events], np.int32)
        variables = np.array([code for _, codes in found for code in codes], np.int64)
        ends = np.cumsum([len(events) for events, _ in found], dtype=np.int32)
        return PathBatch.of_ends(positions, ends, partial(rank_labels, [(group, rank, 1) for rank in ranks]), variables)

    def rank_ends(self, group: int) -> tuple[Ints, NDArray[Any]]:
        """Return the first events of a group's matches, rising, and how many there are up to each of them."""
        begins, events, ends = self.structure.firsts
        here = slice(begins[group], begins[group + 1])
        before = ends[here.start - 1] if here.start else 0
        own = ends[here] - before
        some = np.diff(own, prepend=0) > 0
        return events[here][some], own[some]

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, in bounded batches, in order; rows are made on all threads."""
        ranges, few = [one for one in request.ranges if one[1] < one[2]], self.structure.few
        if few is not None:
            return map(request.made, few.of(ranges, BATCH_VALUES))
        return made_on_threads(request.made, self.structure.walk(ranges), request.threads)

    def _search_best(self, request: BestRequest[T]) -> PathBatch | None:
        return search_best(request, self.structure, self.events)

    def leading(self, bound: BoundQuery) -> tuple[PathBatch, Ints] | None:
        """Return the matches that AFTER MATCH keeps: the best one of each first event; None where it cannot."""
        return leading_matches(bound, self.structure, self.events)

    def leading_of_firsts(self) -> Iterator[PathBatch]:
        """Yield the first match of each first event, by a walk."""
        most = kernel.MOST_RESULTS
        return self.structure.walk([(group, 0, most) for group in range(len(self.events.groups))], leading=True)
