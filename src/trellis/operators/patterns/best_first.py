"""The best results of many windows or first events: those that can have them are looked into, the best ones first.

Classes of matches so far carry the value of the best of them, see `trellis.kernels.explore.starts`. So it is known
without a graph what the results of a window, or those of a span that begin with one event, are at most worth, and the
graphs of most of them are never made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Groups
from trellis.kernels.explore.easier import NO_EASE
from trellis.kernels.explore.starts import NONE_YET, CountedStarts
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.syntax import Select
from trellis.operators.batch import NO_RANK, VARIABLE, PathBatch
from trellis.operators.patterns.forecast import HopelessError
from trellis.operators.patterns.order_values import order_values
from trellis.operators.patterns.parts import PatternPart
from trellis.operators.patterns.paths import BoundVertices
from trellis.operators.patterns.structure import PatternStructure

Ints = NDArray[np.int64]
FEWEST = 4  # windows, or first events, of which some may be left out
MOST_WANTED = 1 << 12
MOST_AT_ONCE = 64
VALUE_BYTES, PART_OF_MEMORY = 48, 4  # of the values of one event as one variable; of the memory, all of them
LARGEST, NOTHING = (1 << 63) - 1, -NONE_YET


Batches = Iterable[PathBatch]


def best_first(
    structure: PatternStructure, bound: BoundQuery, per_group: bool, best_of: Callable[[PatternPart], Batches]
) -> PathBatch | None:
    """Return the best results of all groups together, in their order; None where they are to be found in another way.

    Parameters
    ----------
    structure
        The pattern's.
    bound
        The query, whose ORDER BY, LIMIT and OFFSET count.
    per_group
        Whether the best of each group are wanted.
    best_of
        Returns the best results of a part, with others perhaps, in the order of groups and ranks.
    """
    own, automaton = structure.plan.bound, structure.plan.automaton
    wanted = (bound.limit or 0) + bound.offset
    if not 0 < wanted <= MOST_WANTED or bound.limit_per or own.having or bound.having or bound.filters:
        return None
    if automaton.concurrent or automaton.paced or own.select is not Select.ANY:
        return None
    if per_group and len(structure.events.groups) > 1:
        return None
    space = _starts(structure) if own.window.kind is WindowKind.SPAN else _windows(structure)
    if space is None or len(space.groups) < FEWEST:
        return None
    try:
        values = _values(structure, bound, space)
        bounds = None if values is None else space.bounds(structure, values.most)
    except HopelessError:
        raise
    except TrellisError:  # too much: perhaps not for graphs
        return None
    if values is None or bounds is None:
        return None
    return _BestFirst(structure, space, values, best_of, wanted).find(bounds)


# --- Where results may be -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Space:
    """The windows of a slice, or the spans of the events that begin results: see `SingleStarts`."""

    groups: Groups
    number: Ints
    alone: bool
    covers: Ints
    chosen: NDArray[np.bool_]
    before: list[int]

    def bounds(self, structure: PatternStructure, gives: NDArray[np.int64]) -> Ints | None:
        """Return for each task what its results are at most worth, or `NOTHING`."""
        letters = np.array(structure.exploration.compiled.alphabet.codes, np.int64) & VARIABLE
        starts = CountedStarts(self.alone, -1, self.covers, 0 * self.covers, NO_EASE, gives[:, letters])
        numbers = structure.exploration.numbers(self.groups, starts, self.chosen, best=True)
        return None if numbers is None else np.array([n - NONE_YET for n in numbers], np.int64)

    def parts(self, structure: PatternStructure, tasks: Ints) -> Iterator[tuple[PatternPart, Ints]]:
        """Yield the paths of some tasks, in rising order, with the task of each group of a part."""
        if not self.alone:
            for part in structure.parts(tasks.tolist()):
                yield part, np.arange(part.first, part.last)
            return
        at = 0
        while at < len(tasks):
            own = tasks[at:]
            groups = Groups(self.groups.lo[own], self.groups.hi[own], self.groups.number[own])
            paths = structure.exploration.paths(groups, 0, len(own), self.covers)
            number = len(paths.begins) - 1
            yield PatternPart(structure.plan, paths, 0, number, structure.threads), own[:number]
            at += number


def _windows(structure: PatternStructure) -> _Space | None:
    events = structure.events
    covers, groups = np.zeros(len(events) + 1, np.int64), events.groups
    chosen = np.empty(0, np.bool_) if events.begins is None else events.begins
    return _Space(groups, np.arange(len(groups)), False, covers, chosen, [0] * len(groups))


def _starts(structure: PatternStructure) -> _Space | None:
    single = structure.single_starts
    if single is None:
        return None
    number, counts = single.number, single.counts
    ends = [*accumulate(counts, initial=0)]
    first = np.searchsorted(number, number)  # the first task of the same group
    before = [end - ends[at] for end, at in zip(ends, first.tolist(), strict=False)]
    some = np.flatnonzero(np.array([count > 0 for count in counts], np.bool_))
    groups = Groups(single.groups.lo[some], single.groups.hi[some], single.groups.number[some])
    return _Space(groups, number[some], True, single.covers, single.chosen, [before[at] for at in some.tolist()])


# --- Values -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """The values of events, int64 (3, variables, events), rounded upwards and downwards; see `OrderValues`."""

    most: NDArray[np.int64]
    least: NDArray[np.int64]
    exact: bool

    def of(self, batch: PathBatch) -> tuple[Ints, Ints]:
        """Return the values of results, rounded upwards and downwards."""
        assert batch.variables is not None
        places = batch.variables.astype(np.int64) * self.most.shape[2] + batch.positions
        begins, lasts = batch.offsets[:-1], places[batch.ends - 1]

        def rounded(gives: NDArray[np.int64]) -> Ints:
            each, first, last = (one.ravel() for one in gives)
            return np.add.reduceat(each[places], begins) + first[places[begins]] + last[lasts]

        most = rounded(self.most)
        return most, most if self.exact else rounded(self.least)


def _values(structure: PatternStructure, bound: BoundQuery, space: _Space) -> _Values | None:
    variables, size = structure.variables, len(structure.events)
    codes = list(variables.codes.values())
    usable = np.stack([variables.usable[name] for name in variables.codes])
    if usable.size * VALUE_BYTES > structure.plan.sizes.memory // PART_OF_MEMORY:
        return None
    of, rows = np.nonzero(usable)
    longest = int((space.groups.hi - space.groups.lo).max())
    vertices = BoundVertices(rows, np.array(codes, np.int64)[of])
    values = order_values(structure, bound, vertices, longest)
    if values is None:
        return None
    most, least = (np.zeros((3, len(codes), size), np.int64) for _ in range(2))
    for k in range(3):
        most[k, vertices.codes, rows], least[k, vertices.codes, rows] = values.most[k], values.least[k]
    return _Values(most, least, values.exact)


# --- The search ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """Results with their tasks, and their values rounded upwards and downwards."""

    batch: PathBatch
    tasks: Ints
    most: Ints
    least: Ints

    def with_more(self, batch: PathBatch, *columns: Ints) -> _Known:
        """Return these results and others behind them."""
        joined = (np.append(a, b) for a, b in zip((self.tasks, self.most, self.least), columns, strict=True))
        return _Known(PathBatch.concat([self.batch, batch]), *joined)


@dataclass(frozen=True)
class _BestFirst:
    """Looks into tasks, those that promise most first, until no other can have one of the best results."""

    structure: PatternStructure
    space: _Space
    values: _Values
    best_of: Callable[[PatternPart], Batches]
    wanted: int

    def find(self, bounds: Ints) -> PathBatch:
        """Return the best results, by what those of each task are at most worth."""
        order = np.lexsort((np.arange(len(bounds)), -bounds))
        order = order[: np.count_nonzero(bounds > NOTHING)]
        known = _Known(PathBatch.concat([]), *(np.empty(0, np.int64) for _ in range(3)))
        seen = np.zeros(len(bounds), np.bool_)  # a part that is at hand may have more tasks than are asked for
        at, size = 0, 1
        while at < len(order):
            some = self._promising(order[at : at + size], bounds, known)
            if not len(some):
                break
            for part, own in self.space.parts(self.structure, np.sort(some[~seen[some]])):
                for batch in self.best_of(part):
                    tasks = own[batch.groups - part.first]
                    new = np.flatnonzero(~seen[tasks])
                    if len(new):
                        more = batch.take(new)
                        known = self._best(known.with_more(more, tasks[new], *self.values.of(more)))
                seen[own[part.held]] = True
            at, size = at + size, min(2 * size, MOST_AT_ONCE)
        return self._labelled(known.batch, known.tasks)

    def _promising(self, some: Ints, bounds: Ints, known: _Known) -> Ints:
        """Return those of some tasks, in order, that can have one of the best results besides those that are known."""
        if len(known.least) < self.wanted:
            return some
        last = np.lexsort((known.tasks, -known.least))[self.wanted - 1]
        better, equal = bounds[some] > known.least[last], bounds[some] == known.least[last]
        return some[better | (equal & (some < known.tasks[last] if self.values.exact else True))]

    def _best(self, known: _Known) -> _Known:
        """Return the results that can be among the best, in the order of tasks and ranks."""
        order = np.argsort(known.tasks, kind="stable")
        if len(order) > self.wanted:
            least = known.least[order]
            if self.values.exact:
                order = order[np.sort(np.argsort(-least, kind="stable")[: self.wanted])]
            else:
                order = order[known.most[order] >= np.sort(least)[-self.wanted]]
        batch = known.batch.take(order)
        _ = batch.ranks  # else it would ask those before it, and they the ones before them, at the end
        return _Known(batch, known.tasks[order], known.most[order], known.least[order])

    def _labelled(self, batch: PathBatch, tasks: Ints) -> PathBatch:
        """Return results with their groups and their ranks in these."""
        before = [self.space.before[task] for task in tasks.tolist()]
        ranks = [NO_RANK if rank < 0 else rank + n for rank, n in zip(batch.ranks.tolist(), before, strict=True)]
        labels = np.array([NO_RANK if rank > LARGEST else rank for rank in ranks], np.int64), self.space.number[tasks]
        return PathBatch(batch.positions, batch.offsets, labels, batch.codes)
