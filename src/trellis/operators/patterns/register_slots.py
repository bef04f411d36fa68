"""The registers of all terms over a slice: the slot of each in a match so far, and the rows that tell of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, TrellisError
from trellis.events.columns import decimals
from trellis.events.columns.arrow import is_valid, numbers
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import rank_codes, row_codes
from trellis.events.columns.program_tables import TooWideForKernels
from trellis.kernels.explore import tables as t
from trellis.language.bound import Reference, columns_of
from trellis.language.syntax import Which
from trellis.operators.patterns.letters import MOST_BITS, Alphabet
from trellis.operators.patterns.states import bits, ints
from trellis.plan.registers import ENOUGH, GuardTerm, Register, RegisterKind
from trellis.plan.views import counter
from trellis.properties import cached_property

Ints = NDArray[np.int64]
WIDEST = np.iinfo(np.int64).max
SUMMED = (RegisterKind.NUMBER, RegisterKind.SUM, RegisterKind.EXACT_SUM)
COUNTED = (RegisterKind.COUNT, RegisterKind.TALLY, RegisterKind.LENGTH, RegisterKind.TUPLES)


class EventRows:
    """The rows of the matrix of events, and where each kind of them begins."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first: dict[int, int] = {}
        self._rows: list[Ints] = [np.empty(0, np.int64)] * t.ROWS

    def times(self, *rows: Ints) -> None:
        """Set the rows that tell of times."""
        self._rows[: t.ROWS] = rows

    def add(self, field: int, rows: Sequence[Ints]) -> None:
        """Add rows of a kind."""
        self.first[field] = len(self._rows)
        self._rows += rows

    def matrix(self) -> Ints:
        """Return all rows; the last column stands for no event."""
        found = np.empty((len(self._rows), self.size + 1), np.int64)
        for row, values in zip(found, self._rows, strict=True):
            row[: len(values)], row[len(values) :] = values, 0
        return found


class RegisterSlots:
    """The registers of all terms, each once; slots of last times follow them, where guards ask for those."""

    def __init__(self, guard_terms: tuple[GuardTerm, ...], alphabet: Alphabet, timed: int) -> None:
        self.alphabet = alphabet
        self.slots: dict[Register, int] = {}
        self._columns: dict[Register, set[str]] = {}
        self._users: dict[Register, set[int]] = {}  # terms
        most: dict[str, int] = {}
        for one in guard_terms:
            for reference in one.references:
                var = reference.var
                if reference.which is Which.NTH and not one.is_forbidden(var) and not one.is_over(var):
                    most[var] = max(most.get(var, 0), reference.nth or 1)
        self._counts = {var: Register(RegisterKind.COUNT, var, nth) for var, nth in most.items()}
        for one in guard_terms:
            for reference in one.references:
                self._add(one, reference)
        self.times = timed
        self.width = len(self.slots) + timed
        if self.width > MOST_BITS:
            raise TrellisError(
                f"the conditions ask a match to remember {self.width} things; at most {MOST_BITS} fit",
                "Use fewer conditions between variables.",
            )

    def _add(self, one: GuardTerm, reference: Reference) -> None:
        register = one.register(reference)
        if register is None:
            return
        names = set(_names(one, reference))
        for wanted in (register, *self._beside(register)):
            self.slots.setdefault(wanted, len(self.slots))
            self._columns.setdefault(wanted, set()).update(names)
            self._users.setdefault(wanted, set()).add(one.number)

    def _beside(self, register: Register) -> tuple[Register, ...]:
        if register.kind is RegisterKind.NTH:
            return (self._counts[register.variable],)
        if register.kind is RegisterKind.PAIRS:
            return (Register(RegisterKind.LAST, register.variable),)
        return self.of_iterations(register)

    def of_iterations(self, register: Register) -> tuple[Register, ...]:
        """Return the register that one of the iteration before is copied from, or that counts iterations."""
        view = self.alphabet.view(register.variable) if register.variable else None
        if view is not None and view.source:
            return (replace(register, variable=view.source),)
        if view is not None and view.only:
            return (Register(RegisterKind.TALLY, counter(view.group, ()).name, ENOUGH),)
        return ()

    def slot(self, register: Register | None) -> int:
        """Return the slot of a register."""
        return 0 if register is None else self.slots[register]

    def count(self, var: str) -> int:
        """Return the slot that counts a variable's events, or 0."""
        return self.slots[self._counts[var]] if var in self._counts else 0

    def last(self, var: str) -> int:
        """Return the slot of a variable's last event, or 0."""
        return self.slots.get(Register(RegisterKind.LAST, var), 0)

    def tables(self) -> dict[int, Ints]:
        """Return the registers by variable; `rows` tells of the events that change them."""
        order = [register for _, register in self._order]
        begins = np.searchsorted(ints(code for code, _ in self._order), np.arange(len(self.alphabet.letters) + 1))
        beside = map(self._beside_slot, order)
        times = np.arange(self.times) + len(self.slots) if self.times else np.full(len(self.alphabet.variables), -1)
        return {
            t.R_BEGINS: begins,
            t.R_SLOT: ints(self.slots[r] for r in order),
            t.R_NTH: ints(r.nth for r in order),
            t.R_LAST: ints(beside),
            t.R_TIME_SLOT: times,
            t.R_VIEW: ints(self.alphabet.view_numbers.get(r.variable, 0) for r in order),
        }

    def _beside_slot(self, register: Register) -> int:
        """Return the slot that a register is changed by; of MET those, as bits, that nobody needs once it is met."""
        if register.kind is RegisterKind.MET:
            users, only = self._users, {register.nth}
            events = (RegisterKind.FIRST, RegisterKind.LAST)
            return bits(slot for r, slot in self.slots.items() if r.kind in events and users[r] == only)
        return self.count(register.variable) if register.kind is RegisterKind.NTH else self.last(register.variable)

    def rows(self, columns: Mapping[str, pa.Array], rows: EventRows) -> Ints:
        """Add the rows of events that change registers, by variable; return the kinds of these in the kernels."""
        coded: dict[tuple[str, ...], tuple[Ints, Ints]] = {}  # of registers that remember events
        found = [self._rows(register, columns, rows.size, coded) for _, register in self._order]
        rows.add(t.R_ALIKE, [alike for alike, _, _ in found])
        rows.add(t.R_CODES, [codes for _, codes, _ in found])
        return ints(kind for _, _, kind in found)

    def _takers(self, register: Register) -> Iterable[int]:
        """Return the letters whose events change a register."""
        if register.kind is RegisterKind.TUPLES:
            return ()  # an iteration that begins adds to them
        every = range(len(self.alphabet.letters))
        return every if register.kind is RegisterKind.LENGTH else self.alphabet.takers(register.variable)

    @cached_property
    def _order(self) -> list[tuple[int, Register]]:
        """The registers by the letter whose events change them; pairs and counts come first."""
        first = {RegisterKind.PAIRS: 0, RegisterKind.COUNT: 1}
        every = [(code, register) for register in self.slots for code in self._takers(register)]
        return sorted(every, key=lambda one: (one[0], first.get(one[1].kind, 2), self.slots[one[1]]))

    def place(self, register: Register | None) -> int:
        """Return the place of a variable's register in the tables."""
        return next(i for i, (_, other) in enumerate(self._order) if other == register)

    def _rows(
        self, register: Register, columns: Mapping[str, pa.Array], size: int,
        coded: dict[tuple[str, ...], tuple[Ints, Ints]],
    ) -> tuple[Ints, Ints, int]:  # fmt: skip
        """Return for each event the first that is alike for a register, its code, and the kind in the kernels.

        Of a sum the code is the value (the bits of a double), and alike tells whether there is one.
        """
        if register.kind in SUMMED and size:
            return _summands(register, columns[register.columns[0]])
        if register.kind in COUNTED or size == 0:
            return np.zeros(size, np.int64), np.zeros(size, np.int64), register.kind
        if register.kind is RegisterKind.MET:  # all events that meet it are one: any that has a value
            lacking = pc.is_null(columns[register.columns[0]], nan_is_null=True).to_numpy(zero_copy_only=False)
            return np.full(size, lacking.argmin()), np.zeros(size, np.int64), register.kind
        if register.value is not None:
            values = evaluate(register.value, lambda column: columns[column.name], size)
            codes = rank_codes([values])[0] if not pa.types.is_null(values.type) else np.full(size, -1)
            if register.kind is RegisterKind.EXTREME:
                codes = np.where(codes < 0, WIDEST, codes if register.greatest else -codes)
            if register.kind is RegisterKind.BEST:
                codes = np.where(codes < 0, -WIDEST, codes if register.greatest else -codes)
            return _alike(codes), codes.astype(np.int64), register.kind
        names = tuple(sorted(self._columns[register]))
        if names not in coded:
            codes = row_codes([columns[name] for name in names])
            coded[names] = _alike(codes), codes.astype(np.int64)
        return *coded[names], register.kind


def _alike(codes: Ints) -> Ints:
    """Return for each event the first with the same code."""
    least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
    if most - least < 4 * len(codes):  # ranks mostly are
        first = np.empty(most - least + 1, np.int64)
        first[codes[::-1] - least] = np.arange(len(codes) - 1, -1, -1)
        return first[codes - least]
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first[which].astype(np.int64)


def _summands(register: Register, values: pa.Array) -> tuple[Ints, Ints, int]:
    """Return whether events have a value, and the values that are added: whole numbers, or the bits of doubles."""
    kind, size = register.kind, len(values)
    if pa.types.is_null(values.type):
        return (
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            RegisterKind.SUM if kind != RegisterKind.NUMBER else kind,
        )
    there = is_valid(values)
    if pa.types.is_floating(values.type):
        doubles = numbers(values, np.nan).astype(np.float64)
        there = there & ~np.isnan(doubles)
        bits = np.where(there, doubles, 0.0).view(np.int64)
        return there.astype(np.int64), bits, RegisterKind.REAL_SUM if kind is RegisterKind.SUM else kind
    if kind is RegisterKind.NUMBER:
        return there.astype(np.int64), np.zeros(size, np.int64), kind
    whole = decimals.as_int64(values) if pa.types.is_decimal(values.type) else numbers(values, 0).astype(np.int64)
    if whole is None:
        raise TooWideForKernels(register.columns[0])
    return there.astype(np.int64), np.where(there, whole, 0), RegisterKind.SUM


def sum_overflows(register: Register) -> TrellisError:
    """Return the error of a sum that leaves 64 bits."""
    name = f"SUM({register.variable}.{register.columns[0]})"
    return OverflowInCondition(
        f"`{name}` leaves 64 bits", "Add doubles, or decimals of fewer digits: CAST cannot stand here."
    )


def _names(one: GuardTerm, reference: Reference) -> Iterable[str]:
    if reference.function:
        yield reference.name
        return
    var, which = reference.var, reference.which
    moving = which in (Which.EARLIER, Which.LATER)
    for column in columns_of(one.value):
        if column.var == var and (column.which is which or (moving and column.which is not Which.FIRST)):
            yield column.name
