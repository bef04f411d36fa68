"""The operator for patterns without repetition: SEQ, AND, OR and NOT with any conditions.

Parts of the pattern that nothing joins are counted apart and multiplied; in each the fewest variables are bound, and
sums over the candidates of the others do the rest. Results are listed by a walk over events, in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from math import ceil, log2
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import plain_value
from trellis.events.slice import Slice
from trellis.language.bound import Output
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.batch import PathBatch, rank_labels
from trellis.operators.contract import Counts, ListRequest, QueryOperator, state_of
from trellis.operators.exact import SMALL, reconstruct
from trellis.operators.joins.counting import NONE, Numbers
from trellis.operators.joins.structure import JoinStructure
from trellis.operators.joins.tables import SlotArm
from trellis.operators.weights import weigh
from trellis.plan.plan import Plan

MISSING = NONE - 1
STEP = 5e-9  # seconds that a step of counting takes
T = TypeVar("T")


class JoinOperator(QueryOperator):
    """Matches of a pattern without repetition.

    Parameters
    ----------
    plan, events, threads
        See `QueryOperator`.
    structure
        What was built before for the same matches.

    Raises
    ------
    NotComparable
        If a number that a condition computes may leave 64 bits, on the events at hand.
    """

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, structure: JoinStructure | None = None) -> None:
        super().__init__(plan, events, threads)
        self.structure = structure or self._make_structure()

    def _make_structure(self) -> JoinStructure:
        return JoinStructure(self.plan, self.events, self.threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return state_of(self, "plan", "events", "threads", "structure")

    def variant(self, plan: Plan, events: Slice) -> JoinOperator:
        """Return an operator for the same matches with other output."""
        return type(self)(plan, events, self.threads, self.structure)

    @property
    def counts(self) -> Counts:
        """The exact number of matches of each group."""
        return self.structure.counts

    def describe(self) -> dict[str, str]:
        """Say what the candidates are, and how each arm is counted."""
        candidates, shapes = self.structure.candidates, self.structure.counter.shapes
        said: dict[str, str] = {}
        steps = 0.0
        for i, arm in enumerate(candidates.arms):
            sizes = ", ".join(f"{candidates.variable[s]} {len(candidates.of_slot[s]):,}" for s in arm.slots)
            parts = []
            for part in shapes.parts(arm):
                counted = shapes.of_part(part)
                names = ", ".join(candidates.variable[slot] for slot in part)
                bound = ", ".join(candidates.variable[slot] for slot in counted.bound)
                how = f"{bound} bound, sums over the others" if bound else "sums alone"
                parts.append(f"{names}: {how}, about {counted.cost:,.0f} steps for each window")
            steps += sum(shapes.of_part(part).cost for part in shapes.parts(arm)) * self._times(arm)
            said["candidates" if len(candidates.arms) == 1 else f"candidates_{i + 1}"] = sizes
            said["parts" if len(candidates.arms) == 1 else f"parts_{i + 1}"] = "; ".join(parts)
        if candidates.residuals:
            said["residuals"] = "; ".join(candidates.residuals)
        said["expected"] = f"about {steps:.2g} steps to count, {max(steps * STEP, 0.001):.1g} seconds"
        return said

    def _times(self, arm: SlotArm) -> int:
        """Return how often an arm is counted: for each window, or for each event at which a span begins."""
        counter = self.structure.counter
        if not self.structure.candidates.is_span:
            return len(self.events.groups)
        return sum(len(self.structure.candidates.of_slot[slot]) for slot in counter.open_slots(arm, ()))

    # --- Aggregates -------------------------------------------------------------------------------------------

    def aggregate(self) -> Sequence[Aggregates]:
        """Return the states of AGGREGATE of each group."""
        columns = [self._states(named.output) for named in self.plan.bound.aggregates]
        return [Aggregates(count, tuple(column[g] for column in columns)) for g, count in enumerate(self.counts)]

    def _states(self, output: Output) -> Sequence[Any]:
        if output.function == "COUNT":
            if output.variable is None:
                return list(self.counts)
            return self.structure.counts_of(self._having(output.variable, self.structure.signed))
        if output.column is None:  # LENGTH
            return self._lengths(output.function)
        column = self.events.columns[output.column.name]
        if output.function in ("SUM", "AVG"):
            return self._sums(column, output.column.var)
        return self._extremes(column, output.column.var, output.function == "MAX")

    @staticmethod
    def _having(variable: str, arms: Sequence[SlotArm]) -> list[SlotArm]:
        return [arm for arm in arms if variable in arm.arm.variables]

    def _lengths(self, function: str) -> Sequence[Any]:
        """Return for each group the least or greatest length of a match, or the sum of all of them."""
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

    def _sums(self, column: pa.Array, variable: str) -> Sequence[Any]:
        weight = weigh(column)
        largest = max(self.counts, default=0)
        bits = largest.bit_length() + weight.bits + 2 + ceil(log2(len(self.events) + 1))

        def totals(values: Callable[[int], NDArray[np.uint64]]) -> Sequence[int]:
            return reconstruct(bits, lambda prime: self._weighed(values(prime), variable, prime), True, SMALL)[0]

        present = weight.present.astype(np.uint64)
        sums, numbers = totals(weight.modulo), totals(lambda _: present)
        infinite = [[False] * len(sums), [False] * len(sums)]
        if weight.infinite.any():
            for i, sign in enumerate((1, -1)):
                flags = (weight.infinite == sign).astype(np.uint64)
                infinite[i] = [number > 0 for number in totals(lambda _, flags=flags: flags)]  # type: ignore[misc]
        return [
            Sum(total * weight.unit, number, plus, minus)
            for total, number, plus, minus in zip(sums, numbers, *infinite, strict=True)
        ]

    def _weighed(self, weights: NDArray[np.uint64], variable: str, prime: int) -> NDArray[np.uint64]:
        """Return for each group the sum of the weights of a variable's events over all matches, modulo a prime."""
        candidates, counter = self.structure.candidates, self.structure.counter
        total = np.zeros(len(self.events.groups), np.uint64)
        for arm in self._having(variable, self.structure.signed):
            slot = arm.slot(variable)
            here = slice(*candidates.tables.begin[slot : slot + 2].tolist())
            own = np.ones(len(candidates.tables.events), np.uint64)
            own[here] = weights[candidates.tables.events[here]]
            total += counter.of_groups([arm], Numbers(prime, own))
        return (total % np.uint64(prime)).reshape(1, -1)

    def _extremes(self, column: pa.Array, variable: str, greatest: bool) -> Sequence[Any]:
        """Return the least or greatest value of a variable's events on any match of each group."""
        candidates, counter = self.structure.candidates, self.structure.counter
        codes = rank_codes([column])[0]
        best = np.full(len(self.events.groups), NONE)
        for arm in self._having(variable, self.structure.arms):
            own = codes[candidates.tables.events]
            values = np.where(own < 0, MISSING, len(codes) - own if greatest else own)
            best = np.minimum(best, counter.least(arm, arm.slot(variable), values))
        place = {int(code): i for i, code in enumerate(codes.tolist())}
        found = [len(codes) - b if greatest else b for b in best.tolist()]
        return [
            None if b >= MISSING else plain_value(column[place[code]])
            for b, code in zip(best.tolist(), found, strict=True)
        ]

    # --- Results ----------------------------------------------------------------------------------------------

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the matches of a group with given ranks, of any size, in rising order."""
        found = [self.structure.unrank(group, rank) for rank in ranks]
        positions = np.array([event for events, _ in found for event in events], np.int32)
        variables = np.array([code for _, codes in found for code in codes], np.int64)
        ends = np.cumsum([len(events) for events, _ in found], dtype=np.int32)
        return PathBatch.of_ends(positions, ends, partial(rank_labels, [(group, rank, 1) for rank in ranks]), variables)

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, in bounded batches, in order; rows are made on all threads."""
        if request.threads < 2:
            yield from map(request.made, self._batches(request))
            return
        with ThreadPoolExecutor(request.threads) as pool:
            waiting: list[Future[T]] = []
            for batch in self._batches(request):
                waiting.append(pool.submit(request.made, batch))
                if len(waiting) > 2 * request.threads:
                    yield waiting.pop(0).result()
            yield from (future.result() for future in waiting)

    def _batches(self, request: ListRequest[T]) -> Iterator[PathBatch]:
        for group, begin, end in request.ranges:
            if begin >= end:
                continue
            for positions, variables, ends in self.structure.walk(group, begin):
                number = min(len(ends), end - begin)
                last = int(ends[number - 1])
                labels = partial(rank_labels, [(group, begin, number)])
                yield PathBatch.of_ends(positions[:last], ends[:number], labels, variables[:last].astype(np.int64))
                begin += number
                if begin >= end:
                    break
