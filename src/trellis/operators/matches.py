"""Matches of patterns without repetition: aggregates of variables, rows that are made on threads, parts by rank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, log2
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import plain_value
from trellis.events.slice import Ints
from trellis.language.bound import Output
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.batch import PathBatch, RankRange
from trellis.operators.contract import BestRequest, Counts, S, StructuredOperator
from trellis.operators.exact import SMALL, reconstruct
from trellis.operators.weights import weigh

NONE = np.iinfo(np.int64).max
MISSING = NONE - 1

T = TypeVar("T")
W = TypeVar("W")


class MatchOperator(StructuredOperator[S]):
    """Matches of a pattern without repetition."""

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List the best matches alone, by branch and bound; all where a key is none that a program computes."""
        found = self._search_best(request)
        return super().best(request) if found is None else map(request.make, found.pieces(self.plan.sizes.batch_values))

    @abstractmethod
    def _search_best(self, request: BestRequest[T]) -> PathBatch | None:
        """Return the best matches, in the order of groups and ranks; None where all are to be listed."""

    # --- Aggregates -------------------------------------------------------------------------------------------

    def aggregate(self) -> Sequence[Aggregates]:
        """Return the states of AGGREGATE of each group."""
        columns = [self._states(named.output) for named in self.plan.bound.aggregates]
        return [Aggregates(count, tuple(column[g] for column in columns)) for g, count in enumerate(self.counts)]

    def _states(self, output: Output) -> Sequence[Any]:
        if output.function == "COUNT":
            return list(self.counts) if output.variable is None else self._counts_with(output.variable)
        if output.column is None:  # LENGTH
            return self._lengths(output.function or "")
        column = self.events.columns[output.column.name]
        if output.function in ("SUM", "AVG"):
            return self._sums(column, output.column.var)
        return self._extremes(column, output.column.var, output.function == "MAX")

    @abstractmethod
    def _counts_with(self, variable: str) -> Counts:
        """Return for each group how many matches have an event of a variable."""

    @abstractmethod
    def _lengths(self, function: str) -> Sequence[Any]:
        """Return for each group the least or greatest length of a match, or the sum of all of them."""

    @abstractmethod
    def _weighed(self, weights: NDArray[np.uint64], variable: str, prime: int) -> NDArray[np.uint64]:
        """Return for each group the sum of the weights of a variable's events over all matches, modulo a prime."""

    @abstractmethod
    def _least(self, values: Ints, variable: str) -> Ints:
        """Return for each group the least value of a variable's events on any match; `NONE` without one."""

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

    def _extremes(self, column: pa.Array, variable: str, greatest: bool) -> Sequence[Any]:
        """Return the least or greatest value of a variable's events on any match of each group."""
        codes = rank_codes([column])[0]
        best = self._least(np.where(codes < 0, MISSING, len(codes) - codes if greatest else codes), variable).tolist()
        place = {int(code): i for i, code in enumerate(codes.tolist())}
        found = [len(codes) - b if greatest else b for b in best]
        return [None if b >= MISSING else plain_value(column[place[code]]) for b, code in zip(best, found, strict=True)]


def ranked_parts(
    tables: Iterable[tuple[int, int, W]], ranges: Sequence[RankRange], rows: int
) -> Iterator[tuple[W, slice, RankRange]]:
    """Yield the parts of tables of matches whose ranks are wanted: the table, the part of it, and its ranks.

    Parameters
    ----------
    tables
        Each with its group and number of matches; those of a group one after another, in the order of ranks.
    ranges
        The ranks that are wanted.
    rows
        Matches of a part at most.
    """
    wanted: dict[int, list[RankRange]] = {}
    for one in ranges:
        wanted.setdefault(one[0], []).append(one)
    before, last = 0, -1
    for group, number, table in tables:
        before, last = before if group == last else 0, group
        for _, begin, end in wanted.get(group, ()):
            for low in range(max(begin, before), min(end, before + number), rows):
                high = min(low + rows, end, before + number)
                yield table, slice(low - before, high - before), (group, low, high)
        before += number
