"""The exact cuts of conditions on two neighbours: for each event of one side the ranges of values of the other.

They are found by bisection among the sorted values, with the condition as it is written and the arithmetic by which it
would be evaluated on the pairs: rounding, overflow and NULL cannot differ. An operation on doubles that rises before it
is rounded never falls after it, so that what holds for two values holds for all between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.arrow import numbers
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import MISSING, order_codes
from trellis.language.bound import Column, Constant, Operation, Value, columns_of
from trellis.language.schema import Kind
from trellis.language.syntax import Which
from trellis.plan.cuts import Atom, Both, Monotonicity, NeighbourCut, Shape

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Sets = tuple[Ints, Ints]  # begins and ends of ranges of ranks, one row for each range, one column for each event
MOST_RANGES = 4
MOST_TRIED = 1 << 23  # pairs that are tried one by one where bisection cannot decide
STRIDE = 64  # of the values in their order every so many are bisected first, those between them from there


class Sides(Protocol):
    """The values of the earlier and the later event of pairs."""

    sizes: tuple[int, int]

    def of(self, value: Value) -> pa.Array:
        """Return a value of one of the two."""

    def column(self, name: str, later: bool) -> pa.Array:
        """Return a column of one of the two."""


@dataclass(frozen=True)
class CutRanges:
    """The ranges of what one side's `value` may be, for each event of the other side.

    Attributes
    ----------
    rows
        Events of the first side, one for each value that there is, in the order of the values.
    begins, ends
        For each event of the other side ranges of ranks among these values, rising and apart: int64 (ranges, events).
    """

    rows: Ints
    begins: Ints
    ends: Ints


class Undecided(Exception):
    """The condition does not cut the values into a few ranges."""


def ranges_of(cut: NeighbourCut, sides: Sides) -> CutRanges:
    """Return the ranges of a condition.

    Raises
    ------
    OverflowInCondition
        If a number overflows for some pair, be it one that is never asked for.
    Undecided
        If there are too many ranges, or too many values for which bisection cannot find them.
    """
    return _Bisection(cut, sides).ranges()


class _Bisection:
    """The values of one side in their order, and the different events of the other, each with its ranges."""

    def __init__(self, cut: NeighbourCut, sides: Sides) -> None:
        self.cut, self.sides = cut, sides
        self.later = cut.which is Which.LATER
        (codes,) = order_codes([sides.of(cut.value)])
        distinct, rows = np.unique(codes, return_index=True)
        self.rows = rows[distinct != MISSING]
        self.others, self.number = self._different()
        self._taken: dict[tuple[str, bool], pa.Array] = {}

    def ranges(self) -> CutRanges:
        if not len(self.rows) or not len(self.others):
            none = np.zeros((1, self.sides.sizes[not self.later]), np.int64)
            return CutRanges(self.rows, none, none.copy())
        begins, ends = self._sets(self.cut.shape)
        if len(begins) > MOST_RANGES:
            raise Undecided
        return CutRanges(self.rows, begins[:, self.number], ends[:, self.number])

    def _different(self) -> tuple[Ints, Ints]:
        """Return events of the other side that differ in what is read, by its order if it is one value, and numbers."""
        read = set(_read_alone(self.cut.shape, not_of=self.cut.which))
        size = self.sides.sizes[not self.later]
        if len(read) != 1:
            every = np.arange(size)
            return every, every
        (codes,) = order_codes([self.sides.of(read.pop())])
        _, rows, number = np.unique(codes, return_index=True, return_inverse=True)
        return rows, number

    # --- Sets of ranks --------------------------------------------------------------------------------------------

    def _sets(self, shape: Shape) -> Sets:
        if isinstance(shape, Atom):
            return self._atom(shape)
        sets = [self._sets(part) for part in shape.parts]
        found = sets[0]
        for other in sets[1:]:
            found = _common(found, other, len(self.rows)) if isinstance(shape, Both) else self._joined([found, other])
        return found

    def _joined(self, sets: list[Sets]) -> Sets:
        return _union(np.concatenate([s[0] for s in sets]), np.concatenate([s[1] for s in sets]), len(self.rows))

    def _atom(self, atom: Atom) -> Sets:
        condition, number, size = atom.condition, len(self.others), len(self.rows)
        whole = np.zeros(number, np.int64), np.full(number, size)
        if atom.course is Monotonicity.CONSTANT:
            holds, _ = self._evaluated(condition, whole[0], np.arange(number))
            return whole[0][None], np.where(holds, size, 0)[None]
        ways = {"=": ("<=", ">="), "!=": ("<", ">")}.get(condition.function, (condition.function,))
        doubtful = self._infinite(condition)
        sides, pieces = [], self._pieces(atom)
        for function in ways:
            asked, parts = Operation(function, condition.arguments), []
            for piece in pieces:
                begin, end, unknown = self._piece(asked, *piece)
                parts.append((begin[None], end[None]))
                doubtful |= unknown
            sides.append(self._joined(parts))
        found = sides[0]
        if len(sides) > 1:
            found = _common(sides[0], sides[1], size) if condition.function == "=" else self._joined(sides)
        return self._tried(condition, found, np.flatnonzero(doubtful & ~self._missing(condition)))

    def _pieces(self, atom: Atom) -> list[Sets]:
        """Return ranges of ranks in each of which a comparison keeps its course; in none it divides by zero."""
        whole = np.zeros(len(self.others), np.int64), np.full(len(self.others), len(self.rows))
        if atom.split is None:
            return [whole]
        zero = Constant(0.0 if atom.split.type.kind is Kind.DOUBLE else 0, atom.split.type)
        found = []
        for function in ("<", ">" if atom.pole else ">="):
            begin, end, unknown = self._piece(Operation(function, (atom.split, zero)), *whole)
            if (unknown & ~self._missing(atom.condition)).any():
                raise Undecided
            found.append((begin, end))
        return found

    def _infinite(self, condition: Operation) -> Flags:
        """Return by which of the different events a value is multiplied with an infinity: times 0 that is NULL."""
        found = np.zeros(len(self.others), np.bool_)
        for value in set(_factors(condition, self.cut.which)):
            if isinstance(value, Constant):
                found |= value.value in (np.inf, -np.inf)
            else:
                found |= np.isinf(numbers(self.sides.of(value), 0.0)[self.others])
        return found

    def _missing(self, condition: Operation) -> Flags:
        """Return which of the different events lack a value that a condition reads: it is NULL."""
        missing = np.zeros(len(self.others), np.bool_)
        for value in set(_alone(condition, self.cut.which)):
            of_all = self.sides.of(value)
            if of_all.null_count:
                missing |= of_all.is_null().to_numpy(zero_copy_only=False)[self.others]
        return missing

    def _tried(self, condition: Operation, sets: Sets, doubtful: Ints) -> Sets:
        """Replace the ranges of some events by those that trying all values gives."""
        size = len(self.rows)
        if not len(doubtful):
            return sets
        if len(doubtful) * size > MOST_TRIED or len(sets[0]) > MOST_RANGES:
            raise Undecided
        begins, ends = (np.zeros((MOST_RANGES, len(self.others)), np.int64) for _ in range(2))
        begins[: len(sets[0])], ends[: len(sets[1])] = sets
        begins[:, doubtful] = ends[:, doubtful] = 0
        for x in doubtful.tolist():
            holds, _ = self._evaluated(condition, np.arange(size), np.full(size, x))
            turns = np.flatnonzero(np.diff(holds, prepend=False, append=False))
            if len(turns) > 2 * MOST_RANGES:
                raise Undecided
            begins[: len(turns) // 2, x], ends[: len(turns) // 2, x] = turns[::2], turns[1::2]
        return _union(begins, ends, size)

    # --- Bisection ------------------------------------------------------------------------------------------------

    def _piece(self, condition: Operation, begin: Ints, end: Ints) -> tuple[Ints, Ints, Flags]:
        """Return where a condition is true between two ranks of each event, among which it changes at most once.

        The third is whether it was NULL at one of them, so that this is not known.
        """
        found_begin, found_end = np.zeros(len(begin), np.int64), np.zeros(len(begin), np.int64)
        unknown = np.zeros(len(begin), np.bool_)
        some = np.flatnonzero(begin < end)
        first, last = begin[some], end[some] - 1
        at_first, unknown_first = self._evaluated(condition, first, some)
        at_last, unknown_last = self._evaluated(condition, last, some)
        unknown[some] = unknown_first | unknown_last
        found_begin[some] = first
        found_end[some] = np.where(at_first & at_last, last + 1, first)
        turning = np.flatnonzero(at_first != at_last)
        if len(turning):
            who, is_true = some[turning], at_first[turning]
            turns = self._turns(condition, who, first[turning], last[turning], is_true)
            found_begin[who] = np.where(is_true, first[turning], turns)
            found_end[who] = np.where(is_true, turns, last[turning] + 1)
        return found_begin, found_end, unknown

    def _turns(self, condition: Operation, who: Ints, low: Ints, high: Ints, is_true: Flags) -> Ints:
        """Return the first rank at which a condition is no longer what it is at `low`; at `high` it is not."""
        if len(who) > STRIDE * STRIDE:
            low, high = self._narrowed(condition, who, low, high, is_true)
        while (high - low > 1).any():
            middle = (low + high) >> 1
            same = self._evaluated(condition, middle, who)[0] == is_true
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return high

    def _narrowed(self, condition: Operation, who: Ints, low: Ints, high: Ints, is_true: Flags) -> tuple[Ints, Ints]:
        """Bisect every so many events; of those between them the turns are mostly between theirs, which is checked."""
        every = np.append(np.arange(0, len(who) - 1, STRIDE), len(who) - 1)
        turns = self._turns(condition, who[every], low[every], high[every], is_true[every])
        before = np.minimum(np.arange(len(who)) // STRIDE, len(every) - 2)
        near = np.minimum(turns[before], turns[before + 1]) - 1, np.maximum(turns[before], turns[before + 1])
        lower, upper = np.clip(near[0], low, high), np.clip(near[1], low, high)
        below = self._evaluated(condition, lower, who)[0] == is_true
        above = self._evaluated(condition, upper, who)[0] != is_true
        return (
            np.where(above, np.where(below, lower, low), upper),
            np.where(below, np.where(above, upper, high), lower),
        )

    def _evaluated(self, condition: Operation, ranks: Ints, who: Ints) -> tuple[Flags, Flags]:
        """Return whether a condition is true, and whether it is NULL, for values with given ranks beside events."""
        places = pa.array(ranks), pa.array(who)

        def resolve(column: Column) -> pa.Array:
            own = (column.which is Which.LATER) == self.later
            return self._column(column.name, own).take(places[not own])

        result = evaluate(condition, resolve, len(ranks))
        unknown = np.zeros(len(ranks), np.bool_)
        if result.null_count:
            unknown = result.is_null().to_numpy(zero_copy_only=False)
            result = result.fill_null(False)
        return result.to_numpy(zero_copy_only=False), unknown

    def _column(self, name: str, own: bool) -> pa.Array:
        """Return a column of this side in the order of the values, or of the different events of the other."""
        if (name, own) not in self._taken:
            column = self.sides.column(name, self.later == own)
            self._taken[name, own] = column.take(pa.array(self.rows if own else self.others))
        return self._taken[name, own]


def _read_alone(shape: Shape, not_of: Which) -> Iterator[Value]:
    if isinstance(shape, Atom):
        yield from _alone(shape.condition, not_of)
    else:
        for part in shape.parts:
            yield from _read_alone(part, not_of)


def _alone(value: Value, not_of: Which) -> Iterator[Value]:
    """Yield the largest values in a tree that read the other event alone."""
    read = {c.which for c in columns_of(value)}
    if isinstance(value, Operation) and (not_of in read or value.type.kind is Kind.BOOLEAN):
        for argument in value.arguments:
            yield from _alone(argument, not_of)
    elif read and not_of not in read:
        yield value


def _factors(value: Value, of: Which) -> Iterator[Value]:
    """Yield the doubles that values of an event are multiplied with, and that do not depend on it."""
    if not isinstance(value, Operation):
        return
    if value.function == "*" and value.type.kind is Kind.DOUBLE:
        fixed = [all(column.which is not of for column in columns_of(one)) for one in value.arguments]
        yield from (one for one, is_fixed in zip(value.arguments, fixed, strict=True)
                    if is_fixed and not all(fixed) and one.type.kind is Kind.DOUBLE)  # fmt: skip
    for argument in value.arguments:
        yield from _factors(argument, of)


def _common(one: Sets, other: Sets, end: int) -> Sets:
    begins = np.concatenate([np.maximum(row, other[0]) for row in one[0]])
    ends = np.concatenate([np.minimum(row, other[1]) for row in one[1]])
    return _union(begins, ends, end)


def _union(begins: Ints, ends: Ints, end: int) -> Sets:
    """Return ranges as ones that rise and do not touch; those that are empty come last, at `end`."""
    empty = begins >= ends
    begins, ends = np.where(empty, end, begins), np.where(empty, end, ends)
    if len(begins) == 1:
        return begins, ends
    order = np.argsort(begins, axis=0, kind="stable")
    begins, ends = np.take_along_axis(begins, order, 0), np.take_along_axis(ends, order, 0)
    found = np.full_like(begins, end), np.full_like(ends, end)
    used, column = np.full(begins.shape[1], -1), np.arange(begins.shape[1])
    for begin, stop in zip(begins, ends, strict=True):
        real = begin < stop
        joins = real & (used >= 0)
        joins[joins] = begin[joins] <= found[1][used[joins], column[joins]]
        opens = real & ~joins
        used[opens] += 1
        found[0][used[opens], column[opens]] = begin[opens]
        found[1][used[opens], column[opens]] = stop[opens]
        found[1][used[joins], column[joins]] = np.maximum(found[1][used[joins], column[joins]], stop[joins])
    rows = max(1, int(used.max(initial=0)) + 1)
    return found[0][:rows], found[1][:rows]
