"""The best results of a pattern that has a pivot, by the keys of ORDER BY, without a graph of all matches so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.program_tables import TooWideForKernels
from trellis.kernels.pivots import search as kernel
from trellis.kernels.pivots.cases import NOTHING, EventSymbols, best_of_pivots
from trellis.kernels.pivots.ranks import LARGEST, ranks_of
from trellis.language.bound import BoundQuery
from trellis.language.syntax import Report, Select
from trellis.operators.batch import NO_RANK, PathBatch
from trellis.operators.patterns.order_values import order_values
from trellis.operators.patterns.paths import BoundVertices
from trellis.operators.patterns.pivot_automaton import NotPivotal
from trellis.operators.patterns.pivot_events import PivotEvents
from trellis.operators.patterns.structure import PatternStructure
from trellis.plan.pivots import pivot_plan

Ints = NDArray[np.int64]
MOST_WANTED = 1 << 12  # results that are searched
MOST_WAYS = 1 << 22  # that a search for values leaves for later


def best_by_pivots(structure: PatternStructure, bound: BoundQuery, per_group: bool) -> PathBatch | None:
    """Return the best results, in the order of groups and ranks; None where they are to be found in another way.

    Parameters
    ----------
    structure
        The pattern's.
    bound
        The query, whose ORDER BY, LIMIT and OFFSET count.
    per_group
        Whether the best of each group are wanted, or those of all groups together.
    """
    wanted = (bound.limit or 0) + bound.offset
    plan = structure.plan
    own = plan.bound
    if not 0 < wanted <= MOST_WANTED or bound.limit_per or own.having or own.filters or bound.having or bound.filters:
        return None
    if own.select is not Select.ANY or own.report is Report.MAXIMAL:
        return None
    pivots = pivot_plan(own, plan.automaton)
    if pivots is None:
        return None
    try:
        read = PivotEvents(plan, pivots, structure.events, structure.variables)
        return _PivotSearch(structure, read, bound).find(wanted, per_group)
    except (NotPivotal, TooWideForKernels, OverflowInCondition):
        return None


@dataclass(frozen=True)
class _GroupPivots:
    """The events of a group, those of the pivot's variable among them, and the best value of each of these."""

    number: int
    events: EventSymbols
    pivots: Ints
    best: Ints


class _PivotSearch:
    """Searches the best results of a slice."""

    def __init__(self, structure: PatternStructure, read: PivotEvents, bound: BoundQuery) -> None:
        self._structure, self._read, self._bound = structure, read, bound
        vertices = BoundVertices(read.rows, read.codes)
        values = order_values(structure, bound, vertices, read.longest)
        if values is None or not values.exact:
            raise NotPivotal
        self._each, self._first, self._last = values.most

    # --- Search

    def find(self, wanted: int, per_group: bool) -> PathBatch | None:
        """Return the best results of all groups together or of each; None where conditions cannot be answered."""
        groups = [one for one in self._groups() if len(one.pivots)]
        batches = []
        for some in [[one] for one in groups] if per_group else [groups]:
            found = self._best(some, wanted)
            batches += [self._batch(one, paths) for one, paths in found if paths]
        return PathBatch.concat(batches)

    def _groups(self) -> Iterator[_GroupPivots]:
        """Yield the groups with the best value of each pivot that has results, the best first."""
        symbols = self._read.symbols(self._each, self._first, self._last)
        for number, (lo, hi) in enumerate(zip(self._read.begin.tolist(), self._read.end.tolist(), strict=True)):
            events = EventSymbols._make([*(one[lo:hi] for one in symbols[:-1]), symbols.span])
            pivots = np.flatnonzero(events.codes == self._read.code)
            best = np.empty(len(pivots), np.int64)
            if not best_of_pivots(events, *self._read.given, pivots, best):
                raise NotPivotal
            order = np.argsort(-best, kind="stable")
            order = order[: np.count_nonzero(best > NOTHING)]
            yield _GroupPivots(number, events, pivots[order], best[order])

    def _best(self, groups: list[_GroupPivots], wanted: int) -> list[tuple[_GroupPivots, list[list[int]]]]:
        """Return the best results of some groups together: of each its paths, in their order."""
        values, number, ways = np.empty(wanted, np.int64), 0, np.empty((1 << 12, 4), np.int64)
        waiting = sorted(groups, key=lambda one: -int(one.best[0]))
        while waiting:
            one = waiting[0]
            kept = values.copy()
            answer = kernel.best_values(
                one.events, *self._read.given, one.pivots, one.best, values, number, ways
            )  # fmt: skip
            if answer == kernel.NO_ROOM and len(ways) < MOST_WAYS:
                values, ways = kept, np.empty((4 * len(ways), 4), np.int64)
                continue
            if answer < 0:
                raise NotPivotal
            number = answer
            waiting.pop(0)
        if not number:
            return []
        theta = int(values[number - 1])
        more = int(np.count_nonzero(values[:number] > theta))
        found = []
        ties = number - more
        for one in groups:
            paths = self._paths(one, theta + 1, False, more) if more else []
            if ties:  # among equals those of the first groups, and there the first ones
                equal = self._paths(one, theta, True, ties)[:ties]
                ties -= len(equal)
                paths = sorted([*paths, *equal])
            found.append((one, paths))
        return found

    def _paths(self, one: _GroupPivots, theta: int, exact: bool, most: int) -> list[list[int]]:
        """Return the first paths of a group whose values are `theta`, or without `exact` at least that, in order."""
        found: list[list[int]] = []
        stack, room, rows = np.empty((self._read.longest + 1, 4), np.int64), 2 * self._read.longest + 16, most
        for pivot in one.pivots[one.best >= theta].tolist():
            number = kernel.NO_ROOM
            worst = np.array(found[-1] if len(found) == most else [], np.int64)
            while number == kernel.NO_ROOM:
                paths, ends = np.empty(room, np.int64), np.empty(rows, np.int64)
                number = kernel.paths_of(
                    one.events, *self._read.given, pivot, theta, exact, most, worst, paths, ends, stack
                )  # fmt: skip
                if number == kernel.NO_ROOM:
                    room, rows = 2 * room, 2 * rows
            if number < 0:
                raise NotPivotal
            if number:
                borders = [0, *ends[:number].tolist()]
                events = paths[: borders[-1]].tolist()
                found = sorted([*found, *(events[lo:hi] for lo, hi in pairwise(borders))])[:most]
        return found

    def _batch(self, one: _GroupPivots, paths: list[list[int]]) -> PathBatch:
        """Return paths of a group with their ranks."""
        ends = np.cumsum([len(path) for path in paths])
        events = np.array([*chain.from_iterable(paths)], np.int64)
        ranks = np.zeros(len(paths), np.uint64)
        given = one.events, *self._read.given, one.pivots
        if not ranks_of(*given, events, ends, ranks):
            raise NotPivotal
        numbers = np.where(ranks > LARGEST, np.uint64(0), ranks).astype(np.int64)
        labels = np.where(ranks > LARGEST, NO_RANK, numbers), np.full(len(paths), one.number)
        codes = one.events.codes[events]
        if self._structure.plan.automaton.grouped:  # they tell how many iterations begin, too
            each = np.split(codes, ends[:-1])
            machine, names = self._read.machine, self._read.names
            codes = np.concatenate([machine.codes_of([names[code] for code in own]) for own in each])
        return PathBatch.of_ends(one.events.rows[events].astype(np.int32), ends, labels, codes)
