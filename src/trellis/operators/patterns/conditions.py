"""Conditions on the events of a match, and the registers that remember what they ask about.

A condition that names several variables holds if it is true for every combination of their events (and of consecutive
events, where it speaks of those). What a match so far must remember of a variable is its first, its last or its k-th
event, all of them, or the pairs of consecutive ones: no more than the conditions that can still be asked look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.adjacency import is_true
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import row_codes
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, columns_of
from trellis.language.syntax import Which

Reference = tuple[str, Which, int | None]
Mask = NDArray[np.bool_]
KEPT_BYTES = 1 << 27  # of rows of truth values that are remembered


@dataclass(frozen=True)
class Conjunct:
    """A condition between variables, or between events of one; `absent` is the variable of a NOT that it names."""

    number: int
    condition: Condition
    references: tuple[Reference, ...]
    variables: frozenset[str]  # without `absent`
    absent: str | None

    @cached_property
    def late(self) -> bool:
        """Whether it names an event that is only known later."""
        return any(which in (Which.LAST, Which.NTH) for _, which, _ in self.references)

    def of(self, var: str) -> list[Reference]:
        """Return the references to a variable."""
        return [reference for reference in self.references if reference[0] == var]

    def moves(self, var: str) -> set[Which]:
        """Return in which ways its references go over the events of a variable."""
        return {which for _, which, _ in self.of(var)} & {Which.EACH, Which.EARLIER, Which.LATER}


@dataclass(frozen=True, slots=True)
class Register:
    """The remembered events of a variable, as their representatives; None where they are not needed."""

    first: int | None = None
    last: int | None = None
    nth: tuple[int, ...] | None = None  # the first ones, up to the greatest k
    each: tuple[int, ...] | None = None  # all, without order
    pairs: tuple[tuple[int, int], ...] | None = None  # consecutive ones, without order


@dataclass(frozen=True, slots=True)
class Needs:
    """The parts of the register of a variable that are needed; `nth` is the greatest k."""

    first: bool = False
    last: bool = False
    nth: int = 0
    each: bool = False
    pairs: bool = False


def conjuncts_of(bound: BoundQuery) -> tuple[Conjunct, ...]:
    """Return the conditions that are asked of more than single events."""
    absent = {v.name for v in bound.variables if v.absent}
    found: list[Conjunct] = []
    for condition in bound.conditions:
        if condition.kind is ConditionKind.CONSTANT:
            continue
        named = [(c.var, c.which, c.nth) for c in columns_of(condition.value)]
        negated = absent.intersection(condition.variables)
        variables = frozenset(condition.variables) - negated
        one = next(iter(negated), None)
        found.append(Conjunct(len(found), condition, tuple(dict.fromkeys(named)), variables, one))
    return tuple(found)


class Conditions:
    """The conditions of a query over the events `[lo, hi)` of a slice; events are numbered from `lo`."""

    def __init__(self, bound: BoundQuery, conjuncts: tuple[Conjunct, ...], events: Slice, lo: int, hi: int) -> None:
        self.conjuncts, self.size = conjuncts, hi - lo
        named = {c.name for one in conjuncts for c in columns_of(one.condition.value)}
        self.columns = {name: events.columns[name].slice(lo, hi - lo) for name in named}
        self._needs: dict[tuple[frozenset[str], frozenset[str]], dict[str, Needs]] = {}
        self._rows: dict[Any, Mask] = {}
        self._single: dict[Any, bool] = {}

    # --- What is remembered -----------------------------------------------------------------------------------

    @cached_property
    def _alike(self) -> dict[str, NDArray[np.int64]]:
        """For each variable the first event that has the same values where conditions look at them."""
        found: dict[str, NDArray[np.int64]] = {}
        for var in {var for one in self.conjuncts for var in one.variables}:
            columns = [c for one in self.conjuncts for c in columns_of(one.condition.value) if c.var == var]
            names = sorted({c.name for c in columns})
            codes = row_codes([self.columns[name] for name in names])
            _, first, which = np.unique(codes, return_index=True, return_inverse=True)
            found[var] = first[which]
        return found

    def active(self, open_: frozenset[str], bound: frozenset[str]) -> Iterator[Conjunct]:
        """Yield the conjuncts that can still be asked."""
        for one in self.conjuncts:
            if one.variables <= bound | open_ and (one.absent is not None or not one.variables.isdisjoint(open_)):
                yield one

    def needs(self, open_: frozenset[str], bound: frozenset[str]) -> dict[str, Needs]:
        """Return the parts of the registers that are needed, of the variables that have an event."""
        key = (open_, bound)
        if key not in self._needs:
            found: dict[str, Needs] = {}
            for one in self.active(open_, bound):
                for var in one.variables & bound:
                    found[var] = _joined(found.get(var, Needs()), one, var, open_)
            self._needs[key] = found
        return self._needs[key]

    def remembered(self, before: Register | None, var: str, event: int) -> Register:
        """Return the register of a variable after one more event; `trim` drops what is not needed."""
        event = int(self._alike[var][event])
        if before is None:
            return Register(event, event, (event,), (event,), ())
        each = None if before.each is None else tuple(sorted({*before.each, event}))
        pairs = None
        if before.pairs is not None and before.last is not None:
            pairs = tuple(sorted({*before.pairs, (before.last, event)}))
        nth = None if before.nth is None else (*before.nth, event)
        return Register(before.first, event, nth, each, pairs)

    # --- What is asked ----------------------------------------------------------------------------------------

    def may_take(self, var: str, registers: Mapping[str, Register], bound: frozenset[str], candidates: Mask) -> Mask:
        """Return which of the events `candidates` meet the conditions that are decided when `var` takes them next."""
        for one in self.conjuncts:
            if one.late or one.absent is not None or var not in one.variables or not one.variables - {var} <= bound:
                continue
            for fixed in self._choices(one, registers, bound, var):
                candidates = candidates & self._row(one, fixed, candidates)
        return candidates

    def holds(self, one: Conjunct, registers: Mapping[str, Register]) -> bool:
        """Return whether a conjunct is true of all that is remembered."""
        bound = frozenset(registers)
        return all(self._true(one, fixed) for fixed in self._choices(one, registers, bound, None))

    def forbidden(self, var: str, registers: Mapping[str, Register], usable: Mask) -> Mask:
        """Return the events that a NOT of `var` forbids, if they fall between the times of its guard."""
        bound = frozenset(registers)
        for one in self.conjuncts:
            if one.absent == var and one.variables <= bound:
                for fixed in self._choices(one, registers, bound, None):
                    usable = usable & self._row(one, fixed, usable)
        return usable

    def _choices(
        self, one: Conjunct, registers: Mapping[str, Register], bound: frozenset[str], newest: str | None
    ) -> Iterator[dict[Reference, int | None]]:
        """Yield the combinations of remembered events; references to the new event of `newest` are left out."""
        ways: list[list[dict[Reference, int | None]]] = []
        for var in sorted(one.variables):
            register = registers.get(var)
            if var == newest:
                ways.append(_with_new(one, var, register if var in bound else None))
            else:
                assert register is not None
                ways.append(_of_register(one, var, register))
        for combination in product(*ways):
            yield {reference: event for way in combination for reference, event in way.items()}

    def _row(self, one: Conjunct, fixed: Mapping[Reference, int | None], candidates: Mask) -> Mask:
        """Return where a conjunct is true with the events `fixed`, the others being each event in turn."""
        key = (one.number, tuple(fixed.items()))
        row = self._rows.get(key)
        if row is None:
            try:
                row = is_true(evaluate(one.condition.value, lambda c: self._column(c, fixed, None), self.size))
            except OverflowInCondition:
                rows = np.flatnonzero(candidates)
                row = np.zeros(self.size, np.bool_)
                row[rows] = is_true(evaluate(one.condition.value, lambda c: self._column(c, fixed, rows), len(rows)))
                return row
            if (len(self._rows) + 1) * self.size > KEPT_BYTES:
                self._rows.clear()
            self._rows[key] = row
        return row

    def _true(self, one: Conjunct, fixed: Mapping[Reference, int | None]) -> bool:
        key = (one.number, tuple(fixed.items()))
        if key not in self._single:
            rows = np.zeros(1, np.int64)
            truth = is_true(evaluate(one.condition.value, lambda c: self._column(c, fixed, rows), 1))
            self._single[key] = bool(truth[0])
        return self._single[key]

    def _column(
        self, column: Column, fixed: Mapping[Reference, int | None], rows: NDArray[np.int64] | None
    ) -> pa.Array:
        reference = (column.var, column.which, column.nth)
        values, size = self.columns[column.name], self.size if rows is None else len(rows)
        if reference in fixed:
            event = fixed[reference]
            return pa.nulls(size, values.type) if event is None else pa.repeat(values[event], size)
        return values if rows is None else values.take(pa.array(rows))


def trim(register: Register, needs: Needs) -> Register:
    """Return a register without what is not needed any more."""
    return Register(
        register.first if needs.first else None,
        register.last if needs.last or needs.pairs else None,
        register.nth[: needs.nth] if needs.nth and register.nth is not None else None,
        register.each if needs.each else None,
        register.pairs if needs.pairs else None,
    )


def _joined(needs: Needs, one: Conjunct, var: str, open_: frozenset[str]) -> Needs:
    """Add what a conjunct needs of a variable: that its events meet new ones of the others, or of its own."""
    own = {which for _, which, _ in one.of(var)}
    others = bool(one.variables - {var}) or one.absent is not None
    again = others or one.late  # it is asked once more of events that were there before
    adjacent = bool(own & {Which.EARLIER, Which.LATER})
    return Needs(
        first=needs.first or Which.FIRST in own,
        last=needs.last or Which.LAST in own or adjacent,
        nth=max([needs.nth, *(nth or 0 for _, which, nth in one.of(var) if which is Which.NTH)]),
        each=needs.each or (again and Which.EACH in own),
        pairs=needs.pairs or (again and adjacent),
    )


def _with_new(one: Conjunct, var: str, register: Register | None) -> list[dict[Reference, int | None]]:
    """Return how the references to a variable that takes an event are fixed; those that are not are the new event."""
    fixed: dict[Reference, int | None] = {}
    for reference in one.of(var):
        which = reference[1]
        if which is Which.FIRST and register is not None:
            fixed[reference] = register.first
        if which is Which.EARLIER and register is not None:
            fixed[reference] = register.last
    if register is None and one.moves(var) & {Which.EARLIER, Which.LATER}:
        return []  # one event has no neighbour
    return [fixed]


def _of_register(one: Conjunct, var: str, register: Register) -> list[dict[Reference, int | None]]:
    """Return the ways in which the references to a variable are fixed by what is remembered."""
    own, moves = one.of(var), one.moves(var)
    moving: list[dict[Which, int]] = [{}]
    if moves & {Which.EARLIER, Which.LATER}:
        moving = [{Which.EARLIER: a, Which.LATER: b} for a, b in register.pairs or ()]
    elif moves:
        moving = [{Which.EACH: event} for event in register.each or ()]
    found = []
    for at in moving:
        fixed: dict[Reference, int | None] = {}
        for reference in own:
            _, which, nth = reference
            if which is Which.FIRST:
                fixed[reference] = register.first
            elif which is Which.LAST:
                fixed[reference] = register.last
            elif which is Which.NTH:
                known = register.nth or ()
                fixed[reference] = known[(nth or 1) - 1] if (nth or 1) <= len(known) else None
            else:
                fixed[reference] = at[which]
        found.append(fixed)
    return found
