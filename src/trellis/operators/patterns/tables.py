"""Compiles a plan and a slice to the tables that the exploration goes by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, TrellisError
from trellis.events.columns import decimals
from trellis.events.columns.arrow import is_valid, numbers
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import rank_codes, row_codes
from trellis.events.columns.program import ProgramTables, TooWideForKernels, compile_programs
from trellis.events.slice import Slice
from trellis.kernels.explore import matches
from trellis.kernels.explore import tables as t
from trellis.kernels.expression.program import COMPARE_COLUMNS, EQUAL
from trellis.language.bound import Reference, WindowKind, columns_of
from trellis.language.syntax import Select, Which
from trellis.operators.patterns.variables import Variables
from trellis.plan.automaton import Guard, LazyAutomaton, Leaf, leaves_and_guards
from trellis.plan.plan import Plan
from trellis.plan.registers import SO_FAR, Guarding, Register, RegisterKind

Ints = NDArray[np.int64]
MOST_STATES = 1 << 14
MOST_VARIABLES = 60  # and registers: they are bits of a word
POLICIES = {Select.ANY: t.ANY, Select.NEXT: t.NEXT, Select.CONTIGUOUS: t.CONTIGUOUS}
KINDS = {
    Which.FIRST: t.OF_FIRST,
    Which.LAST: t.OF_LAST,
    Which.NTH: t.OF_NTH,
    Which.EACH: t.OF_EACH,
    Which.EARLIER: t.OF_EARLIER,
    Which.LATER: t.OF_LATER,
    Which.WHOLE: t.OF_WHOLE,
    Which.BEFORE: t.OF_BEFORE,
    Which.UPTO: t.OF_UPTO,
}
WIDEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Compiled:
    """The tables of a plan over a slice, and what they were made of."""

    tables: Ints
    columns: Ints
    programs: ProgramTables
    guardings: tuple[Guarding, ...]
    registers: tuple[Register, ...]
    begins: Ints

    def number(self, field: int) -> int:
        """Return a number of the tables' head."""
        return int(self.tables[field])

    def misfit(self, term: int, events: Ints) -> TrellisError:
        """Return the error of a term whose numbers leave 64 bits; `events` are those of all references."""
        if term < 0:
            return _sum_overflows(self.registers[-1 - term])
        begin = int(self.begins[term])
        references = self.guardings[term].references
        return self.programs.misfit(term, lambda reference: int(events[begin + references.index(reference)]))


def compile_tables(plan: Plan, events: Slice, variables: Variables) -> Compiled:
    """Return the tables of a plan over a slice."""
    codes = dict(variables.codes)
    alone = [v.name for v in plan.bound.variables if v.absent and v.name not in plan.bound.inside_not]
    codes |= {name: len(codes) + i for i, name in enumerate([*alone, *variables.ends])}
    if len(codes) > MOST_VARIABLES:
        raise TrellisError(
            f"the pattern has {len(codes)} variables; conditions beyond neighbours take at most {MOST_VARIABLES}",
            "Split the query into several.",
        )
    takes = len(variables.codes)
    if len(plan.automaton.policies) > MOST_VARIABLES:
        raise TrellisError(
            f"{len(plan.automaton.policies) - 1} steps have a policy of their own; at most {MOST_VARIABLES} can",
            "Say the policy of most steps by SELECT.",
        )
    guardings = variables.guardings
    registers = _Registers(guardings, codes, takes, plan.automaton.concurrent and _has_guards(codes, takes))
    programs = compile_programs(
        [one.value for one in guardings],
        lambda number, reference: guardings[number].references.index(reference),
        events.columns,
        len(events),
    )
    terms = _terms(guardings, codes, registers)
    rows = _Rows(len(events))
    parts = [
        _automaton(plan, codes),
        terms,
        registers.tables(events.columns, rows),
        _events(events, variables, codes, rows),
        _buckets(guardings, programs, variables, codes, terms, rows),
    ]
    numbers = {
        t.VARIABLES: takes,
        t.TERMS: len(guardings),
        t.SPAN: int(plan.bound.window.kind is WindowKind.SPAN),
        t.GREEDY: _mask((leaf.variable for leaf in _leaves(plan) if leaf.greedy), codes),
        t.STEPS: len(plan.automaton.policies),
        t.EVENTS: len(events),
        t.WIDTH: matches.SLOTS + registers.width,
        t.NOTS: len(codes) - takes,
        t.RESULTS: sum(one.result for one in guardings),
    }
    lists = {field: values for part in parts for field, values in part.items()}
    tables = t.pack(numbers | rows.first, lists)
    return Compiled(tables, rows.matrix(), programs, guardings, tuple(registers.slots), terms[t.T_BEGINS])


class _Rows:
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


def _has_guards(codes: Mapping[str, int], takes: int) -> bool:
    return len(codes) > takes


def _ints(values: Iterable[Any]) -> Ints:
    return np.array([*values], np.int64)


def _leaves(plan: Plan) -> list[Leaf]:
    return [item for item in leaves_and_guards(plan.automaton.root) if isinstance(item, Leaf)]


def _mask(names: Iterable[str], codes: Mapping[str, int]) -> int:
    return sum(1 << codes[name] for name in set(names))


def _ragged(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return where each row begins, and the rows one after another."""
    begins = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return begins, _ints(value for row in rows for value in row)


# --- The automaton ----------------------------------------------------------------------------------------------


def _automaton(plan: Plan, codes: Mapping[str, int]) -> dict[int, Ints]:
    lazy, policies = LazyAutomaton(plan.automaton.root), plan.automaton.policies
    guards: dict[Guard, int] = {}
    transitions, ways, nexts, absent, guard_timed = [], [], [], [], []
    state = 0
    while state < len(lazy):
        if len(lazy) > MOST_STATES:
            raise TrellisError(
                f"the pattern has more than {MOST_STATES:,} states: every AND multiplies them",
                "Use fewer parts in AND.",
            )
        transitions.append(lazy.transitions(state))
        ways.append(lazy.endings(state))
        nexts.append(_mask((one.variable for one in transitions[-1]), codes))
        items = [*leaves_and_guards(lazy.remainder(state))]
        forbidden = [n for item in items if isinstance(item, Guard) for n in item.absent]
        forbidden += [item.until for item in items if isinstance(item, Leaf) and item.until is not None]
        absent.append(_mask(forbidden, codes))
        guard_timed.append(_mask((n for item in items if isinstance(item, Guard) for n in item.after), codes))
        state += 1

    def numbers(some: Iterable[Guard]) -> list[int]:
        return [guards.setdefault(guard, len(guards)) for guard in some]

    flat = [one for row in transitions for one in row]
    endings = [one for row in ways for one in row]
    guard_begins, guard_lists = _ragged([numbers(one.guards) for one in flat])
    way_guard_begins, way_guards = _ragged([numbers(one.guards) for one in endings])
    absent_begins, absents = _ragged([[codes[name] for name in guard.absent] for guard in guards])
    return {
        t.A_BEGINS: _ragged([[0] * len(row) for row in transitions])[0],
        t.A_VARIABLE: _ints(codes[one.variable] for one in flat),
        t.A_TARGET: _ints(one.target for one in flat),
        t.A_AFTER: _ints(_mask(one.after, codes) for one in flat),
        t.A_GUARD_BEGINS: guard_begins,
        t.A_GUARDS: guard_lists,
        t.A_NEXT: _ints(nexts),
        t.A_OPEN: _ints(_mask(lazy.open(s), codes) for s in range(len(lazy))),
        t.A_TIMED: _ints(_mask(lazy.timed(s), codes) for s in range(len(lazy))),
        t.A_GUARD_TIMED: _ints(guard_timed),
        t.A_ABSENT: _ints(absent),
        t.A_WAY_BEGINS: _ragged([[0] * len(row) for row in ways])[0],
        t.A_WAY_GUARD_BEGINS: way_guard_begins,
        t.A_WAY_GUARDS: way_guards,
        t.A_ABSENT_BEGINS: absent_begins,
        t.A_ABSENTS: absents,
        t.A_GUARD_AFTER: _ints(_mask(guard.after, codes) for guard in guards),
        t.A_GUARD_UNTIL: _ints(guard.until for guard in guards),
        t.A_STEP: _ints(one.step for one in flat),
        t.A_LEFT: _ints(_mask(one.left, codes) for one in flat),
        t.A_STEPS: _ints(sum(1 << step for step in {one.step for one in row}) for row in transitions),
        t.A_POLICIES: _ints(POLICIES[policy or plan.bound.select] for policy in policies),
        t.A_STEP_VARIABLES: _ints(
            _mask((one.variable for one in flat if one.step == step), codes) for step in range(len(policies))
        ),
    }


# --- Registers --------------------------------------------------------------------------------------------------


class _Registers:
    """The registers of all terms, each once; slots of last times follow them, where guards ask for those."""

    def __init__(self, guardings: tuple[Guarding, ...], codes: Mapping[str, int], takes: int, timed: bool) -> None:
        self.codes, self.takes = codes, takes
        self.slots: dict[Register, int] = {}
        self._columns: dict[Register, set[str]] = {}
        most: dict[str, int] = {}
        for one in guardings:
            for reference in one.references:
                var = reference.var
                if reference.which is Which.NTH and var != one.absent:
                    most[var] = max(most.get(var, 0), reference.nth or 1)
        self._counts = {var: Register(RegisterKind.COUNT, var, nth) for var, nth in most.items()}
        for one in guardings:
            for reference in one.references:
                self._add(one, reference)
        self.times = timed
        self.width = len(self.slots) + (takes if timed else 0)
        if self.width > MOST_VARIABLES:
            raise TrellisError(
                f"the conditions ask a match to remember {self.width} things; at most {MOST_VARIABLES} fit",
                "Use fewer conditions between variables.",
            )

    def _add(self, one: Guarding, reference: Reference) -> None:
        register = one.register(reference)
        if register is None:
            return
        names = set(_names(one, reference))
        for wanted in (register, *self._beside(register)):
            self.slots.setdefault(wanted, len(self.slots))
            self._columns.setdefault(wanted, set()).update(names)

    def _beside(self, register: Register) -> tuple[Register, ...]:
        if register.kind is RegisterKind.NTH:
            return (self._counts[register.variable],)
        if register.kind is RegisterKind.PAIRS:
            return (Register(RegisterKind.LAST, register.variable),)
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

    def tables(self, columns: Mapping[str, pa.Array], rows: _Rows) -> dict[int, Ints]:
        """Return the registers by variable."""
        order = [register for _, register in self._order]
        begins = np.searchsorted(_ints(code for code, _ in self._order), np.arange(self.takes + 1))
        found = [self._rows(register, columns, rows.size) for register in order]
        rows.add(t.R_ALIKE, [alike for alike, _, _ in found])
        rows.add(t.R_CODES, [codes for _, codes, _ in found])
        beside = [self.count(r.variable) if r.kind is RegisterKind.NTH else self.last(r.variable) for r in order]
        times = np.arange(self.takes) + len(self.slots) if self.times else np.full(self.takes, -1)
        return {
            t.R_BEGINS: begins,
            t.R_KIND: _ints(kind for _, _, kind in found),
            t.R_SLOT: _ints(self.slots[r] for r in order),
            t.R_NTH: _ints(r.nth for r in order),
            t.R_LAST: _ints(beside),
            t.R_TIME_SLOT: times,
        }

    def _takers(self, register: Register) -> Iterable[int]:
        """Return the variables whose events change a register."""
        return range(self.takes) if register.kind is RegisterKind.LENGTH else (self.codes[register.variable],)

    @cached_property
    def _order(self) -> list[tuple[int, Register]]:
        """The registers by the variable whose events change them; pairs and counts come first."""
        first = {RegisterKind.PAIRS: 0, RegisterKind.COUNT: 1}
        every = [(code, register) for register in self.slots for code in self._takers(register)]
        return sorted(every, key=lambda one: (one[0], first.get(one[1].kind, 2), self.slots[one[1]]))

    def place(self, register: Register | None) -> int:
        """Return the place of a variable's register in the tables."""
        return next(i for i, (_, other) in enumerate(self._order) if other == register)

    def _rows(self, register: Register, columns: Mapping[str, pa.Array], size: int) -> tuple[Ints, Ints, int]:
        """Return for each event the first that is alike for a register, its code, and the kind in the kernels.

        Of a sum the code is the value (the bits of a double), and alike tells whether there is one.
        """
        if register.kind in SUMMED and size:
            return _summands(register, columns[register.columns[0]])
        if register.kind in COUNTED or size == 0:
            return np.zeros(size, np.int64), np.zeros(size, np.int64), register.kind
        if register.value is not None:
            values = evaluate(register.value, lambda column: columns[column.name], size)
            codes = rank_codes([values])[0] if not pa.types.is_null(values.type) else np.full(size, -1)
            if register.kind is RegisterKind.EXTREME:
                codes = np.where(codes < 0, WIDEST, codes if register.greatest else -codes)
            if register.kind is RegisterKind.BEST:
                codes = np.where(codes < 0, -WIDEST, codes if register.greatest else -codes)
        else:
            codes = row_codes([columns[name] for name in sorted(self._columns[register])])
        return _alike(codes), codes.astype(np.int64), register.kind


def _alike(codes: Ints) -> Ints:
    """Return for each event the first with the same code."""
    least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
    if most - least < 4 * len(codes):  # ranks mostly are
        first = np.empty(most - least + 1, np.int64)
        first[codes[::-1] - least] = np.arange(len(codes) - 1, -1, -1)
        return first[codes - least]
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first[which].astype(np.int64)


SUMMED = (RegisterKind.NUMBER, RegisterKind.SUM, RegisterKind.EXACT_SUM)
COUNTED = (RegisterKind.COUNT, RegisterKind.TALLY, RegisterKind.LENGTH)


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


def _sum_overflows(register: Register) -> TrellisError:
    name = f"SUM({register.variable}.{register.columns[0]})"
    return OverflowInCondition(
        f"`{name}` leaves 64 bits", "Add doubles, or decimals of fewer digits: CAST cannot stand here."
    )


def _names(one: Guarding, reference: Reference) -> Iterable[str]:
    if reference.function:
        yield reference.name
        return
    var, which = reference.var, reference.which
    moving = which in (Which.EARLIER, Which.LATER)
    for column in columns_of(one.value):
        if column.var == var and (column.which is which or (moving and column.which is not Which.FIRST)):
            yield column.name


# --- Terms ------------------------------------------------------------------------------------------------------


def _terms(guardings: tuple[Guarding, ...], codes: Mapping[str, int], registers: _Registers) -> dict[int, Ints]:
    references = [(one, reference) for one in guardings for reference in one.references]
    loops = [_loops(one, codes, registers) for one in guardings]
    needs = [_needs(one, codes, registers) for one in guardings]
    loop_begins, _ = _ragged([[0] * len(row) for row in loops])
    need_begins, _ = _ragged([[0] * len(row) for row in needs])
    loop = np.array([row for rows in loops for row in rows], np.int64).reshape(-1, 3).T.copy()
    need = np.array([row for rows in needs for row in rows], np.int64).reshape(-1, 3).T.copy()
    return {
        t.T_VARIABLES: _ints(_mask(one.variables, codes) for one in guardings),
        t.T_ABSENT: _ints(-1 if one.absent is None else codes[one.absent] for one in guardings),
        t.T_LATE: _ints(one.late for one in guardings),
        t.T_PAIRED: _ints(_mask(one.paired & one.variables, codes) for one in guardings),
        t.T_MOVING: _ints(_mask(one.moving, codes) for one in guardings),
        t.T_BEGINS: _ragged([[0] * len(one.references) for one in guardings])[0],
        t.T_VARIABLE: _ints(codes.get(reference.var, 0) for _, reference in references),
        t.T_KIND: _ints(_reference_kind(one, r) for one, r in references),
        t.T_REGISTER: _ints(registers.place(one.register(r)) if r.which in SO_FAR else 0 for one, r in references),
        t.T_SO_FAR: _ints(_mask(one.so_far, codes) for one in guardings),
        t.T_RESULT: _ints(one.result for one in guardings),
        t.T_SLOT: _ints(registers.slot(one.register(r)) for one, r in references),
        t.T_LAST: _ints(registers.last(r[0]) for _, r in references),
        t.T_NTH: _ints(r[2] or 0 for _, r in references),
        t.T_COUNT: _ints(registers.count(r[0]) for _, r in references),
        t.T_LOOP_BEGINS: loop_begins,
        t.T_LOOP_SLOT: loop[0],
        t.T_LOOP_VARIABLE: loop[1],
        t.T_LOOP_PAIRS: loop[2],
        t.T_NEED_BEGINS: need_begins,
        t.T_NEED_SLOT: need[0],
        t.T_NEED_VARIABLE: need[1],
        t.T_NEED_KIND: need[2],
    }


def _reference_kind(one: Guarding, reference: Reference) -> int:
    if reference.var == one.absent:
        return t.OF_ABSENT
    return t.OF_BEFORE if reference.function == "LIST" else KINDS[reference.which]


def _loops(one: Guarding, codes: Mapping[str, int], registers: _Registers) -> list[tuple[int, int, int]]:
    found = dict.fromkeys(one.register(reference) for reference in one.references if not reference.function)
    return [
        (registers.slots[register], codes[register.variable], int(register.kind is RegisterKind.PAIRS))
        for register in found
        if register is not None and register.kind in (RegisterKind.PAIRS, RegisterKind.SET)
    ]


def _needs(one: Guarding, codes: Mapping[str, int], registers: _Registers) -> list[tuple[int, int, int]]:
    """Return the registers that a term needs, and how long."""
    found: dict[tuple[int, int, int], None] = {}
    for reference in one.references:
        register = one.register(reference)
        if register is None:
            continue
        var = register.variable
        how = t.WHILE_ASKED if register.kind <= RegisterKind.NTH or reference.function else t.WHILE_OTHERS
        if reference.which in SO_FAR:
            how = t.WHILE_OPEN
        if register.kind is RegisterKind.PAIRS:
            how = t.WHILE_OTHERS
            found[registers.last(var), codes[var], t.WHILE_OPEN] = None
        if register.kind is RegisterKind.NTH:
            found[registers.count(var), codes[var], t.WHILE_OPEN] = None
        found[registers.slots[register], codes.get(var, 0), how] = None
    return [*found]


# --- Events -----------------------------------------------------------------------------------------------------


def _events(events: Slice, variables: Variables, codes: Mapping[str, int], rows: _Rows) -> dict[int, Ints]:
    size = len(events)
    places = np.arange(size)
    changes = np.ones(size, np.bool_)
    if size:
        changes[1:] = events.ticks[1:] != events.ticks[:-1]
        inner = events.bounds[(events.bounds > 0) & (events.bounds < size)]
        changes[inner] = True
    same = np.maximum.accumulate(np.where(changes, places, 0))
    starts = np.append(np.flatnonzero(changes), size)
    later = starts[np.searchsorted(starts, places, side="right")]
    masks = [np.ones(size, np.bool_) if name in variables.ends else variables.usable[name] for name in codes]
    lists = [np.flatnonzero(mask) for mask in masks]
    ends = [variables.ends.get(name, own) for name, own in zip(codes, lists, strict=True)]
    begins = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    rows.times(same, later, events.until)
    rows.add(t.E_UPTO, [np.concatenate([[0], np.cumsum(mask)]) for mask in masks])
    nothing = np.empty(0, np.int64)
    usable, last = (np.concatenate([*rows, nothing]) for rows in (lists, ends))
    return {t.E_BEGINS: begins, t.E_USABLE: usable, t.E_ENDS: last}


def _buckets(
    guardings: tuple[Guarding, ...], programs: ProgramTables, variables: Variables, codes: Mapping[str, int],
    terms: Mapping[int, Ints], rows: _Rows,
) -> dict[int, Ints]:  # fmt: skip
    """Return the events by value for terms that equate two events."""
    size = rows.size
    of_term = np.full((len(guardings), max(1, len(variables.codes))), -1, np.int64)
    reference: list[int] = []
    buckets: list[Ints] = []
    begins, lists, first = [np.zeros(1, np.int64)], [], 0
    total = 0
    for number, one in enumerate(guardings):
        instructions = programs.instructions(number)
        code = instructions[0]
        if one.absent is not None or len(instructions) > 1 or code[0] != COMPARE_COLUMNS or code[1] != EQUAL:
            continue
        sides = [(code[2], int(code[3])), (code[4], int(code[5]))]
        for (own, mine), (other, theirs) in (sides, sides[::-1]):
            if not _is_found(one.references[mine], one.references[theirs], one):
                continue
            name = one.references[mine].var
            ints, there = programs.programs.ints, programs.programs.there
            usable = np.flatnonzero(variables.usable[name] & there[own, :size])
            values, which = np.unique(ints[own, usable], return_inverse=True)
            place = np.minimum(np.searchsorted(values, ints[other, :size]), max(len(values) - 1, 0))
            found = there[other, :size] & (values[place] == ints[other, :size] if len(values) else False)
            of_term[number, codes[name]] = len(buckets)
            buckets.append(np.where(found, place + first, -1))
            reference.append(int(terms[t.T_BEGINS][number]) + theirs)
            lists.append(usable[np.argsort(which, kind="stable")])
            begins.append(total + np.cumsum(np.bincount(which, minlength=len(values))))
            total += len(usable)
            first += len(values)
    rows.add(t.B_BUCKET, buckets)
    return {
        t.B_OF_TERM: of_term.ravel(),
        t.B_REFERENCE: _ints(reference),
        t.B_BEGINS: np.concatenate(begins),
        t.B_EVENTS: np.concatenate([*lists, np.empty(0, np.int64)]),
    }


def _is_found(own: Reference, other: Reference, one: Guarding) -> bool:
    """Return whether the new event is the one side of a term, and the other side one event that is remembered."""
    if own.which not in (Which.EACH, Which.LATER) or other.which is Which.UPTO or one.result:
        return False
    if other.function:
        return True
    if own.var == other.var:
        return own.which is Which.LATER and other.which is Which.EARLIER
    register = one.register(other)
    return register is not None and register.kind not in (RegisterKind.SET, RegisterKind.PAIRS)
