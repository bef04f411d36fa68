"""Compiles a plan and a slice to the tables that the exploration goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.program import compile_programs
from trellis.events.columns.program_tables import ProgramTables
from trellis.events.slice import Slice
from trellis.kernels.explore import matches
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.matches import BACK, OF
from trellis.language.absent import absent_at_edge
from trellis.language.bound import Reference, WindowKind, columns_of
from trellis.language.once import once
from trellis.language.syntax import Which
from trellis.operators.patterns.buckets import bucket_tables
from trellis.operators.patterns.letters import MOST_BITS, Alphabet, make_alphabet
from trellis.operators.patterns.register_slots import EventRows, RegisterSlots, sum_overflows
from trellis.operators.patterns.states import States, bits, forgotten, ints, letter_tables, mask, ragged
from trellis.operators.patterns.variables import Variables, variable_codes
from trellis.plan.forbidden import forbidden_paths, root_name
from trellis.plan.plan import Plan
from trellis.plan.registers import LATE, SO_FAR, GuardTerm, Register, RegisterKind, guard_terms_of
from trellis.plan.views import View

Ints = NDArray[np.int64]
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


@dataclass(frozen=True)
class PatternTables:
    """The tables of a plan over a slice, and what they were made of."""

    tables: Ints
    columns: Ints
    programs: ProgramTables
    guard_terms: tuple[GuardTerm, ...]
    registers: tuple[Register, ...]
    begins: Ints
    alphabet: Alphabet

    def number(self, field: int) -> int:
        """Return a number of the tables' head."""
        return int(self.tables[field])

    def misfit(self, term: int, events: Ints) -> TrellisError:
        """Return the error of a term whose numbers leave 64 bits; `events` are those of all references."""
        if term < 0:
            return sum_overflows(self.registers[-1 - term])
        begin = int(self.begins[term])
        references = self.guard_terms[term].references
        return self.programs.misfit(term, lambda reference: int(events[begin + references.index(reference)]))


@dataclass(frozen=True)
class PlanTables:
    """The tables of a plan that are the same for all events, and what they were made of.

    Attributes
    ----------
    guard_terms, alphabet, registers
        The terms of conditions, the letters that events are read as, and what matches remember.
    lists, numbers
        The lists of the tables, and the numbers of their head.
    """

    guard_terms: tuple[GuardTerm, ...]
    alphabet: Alphabet
    registers: RegisterSlots
    lists: Mapping[int, Ints]
    numbers: Mapping[int, int]


@once
def _plan_tables(plan: Plan) -> PlanTables:
    return _tables_of_terms(plan, guard_terms_of(plan.bound))


def _tables_of_terms(plan: Plan, guard_terms: tuple[GuardTerm, ...]) -> PlanTables:
    """Return the tables of a plan with these terms that are the same for all events."""
    if len(plan.automaton.policies) > MOST_BITS:
        raise TrellisError(
            f"{len(plan.automaton.policies) - 1} steps have a policy of their own; at most {MOST_BITS} can",
            "Say the policy of most steps by SELECT.",
        )
    bound, states = plan.bound, States(plan)
    paths = {v.name: v.groups for v in bound.variables} | dict(forbidden_paths(bound))
    alone = [v.name for v in bound.variables if v.absent and v.name not in bound.inside_not]
    roots = (*alone, *(one.name for one in bound.absent_patterns))
    inner = dict.fromkeys(one.absent for one in guard_terms if one.absent is not None and one.absent not in roots)
    absent = (*roots, *inner)
    root_of = {name: name if name in roots else root_name(name) for name in absent}
    told = {one.number: i for i, one in enumerate(one for one in guard_terms if one.stated and one.absent is not None)}
    edged = {one.name for one in bound.absent_patterns if any(True for _ in absent_at_edge(one.pattern))}
    noted = {one.name: t.WHOLE for one in bound.absent_patterns}
    noted |= {name: noted[name] | t.DEEP for name in (*edged, *map(root_name, inner))}
    compared = {root_of[one.absent] for one in guard_terms if one.absent is not None and one.number in told}
    noted |= {name: noted.get(name, 0) | t.DEEP | t.TOLD for name in compared}
    closes: dict[str, frozenset[int]] = {}  # groups in whose iterations something is that it is compared with
    for one in guard_terms:
        if one.absent is not None:
            own = closes.get(root_of[one.absent], frozenset())
            closes[root_of[one.absent]] = own.union(*(view.replaced_by for view in one.views))
    views = (view for one in guard_terms for view in one.views)
    alphabet = make_alphabet(states.flat, variable_codes(bound), paths, absent, views)
    before = states.before(alphabet)
    timed = len(alphabet.variables) + len(before) if plan.automaton.concurrent and absent else 0
    registers = RegisterSlots(guard_terms, alphabet, timed)
    lists = (
        states.tables(alphabet, noted, closes)
        | letter_tables(alphabet, registers.slots, before if timed else {})
        | forgotten(alphabet, registers.slots, guard_terms, plan.automaton)
        | _gathers(guard_terms, alphabet, registers)
        | _terms(guard_terms, alphabet, registers)
        | {
            t.T_ROOT: ints(
                -1 if n is None else alphabet.absent_numbers[root_of[n]] for n in (o.absent for o in guard_terms)
            ),
            t.T_TOLD: ints(told.get(one.number, -1) for one in guard_terms),
        }
        | registers.tables()
    )
    numbers = {
        t.VARIABLES: len(alphabet.letters),
        t.BASES: len(alphabet.variables) + len(before),
        t.TERMS: len(guard_terms),
        t.SPAN: int(bound.window.kind is WindowKind.SPAN),
        t.GREEDY: states.greedy(alphabet),
        t.STEPS: len(plan.automaton.policies),
        t.WIDTH: matches.SLOTS + registers.width,
        t.NOTS: len(roots),
        t.RESULTS: sum(one.result for one in guard_terms),
        t.GROUPS: len(bound.groups),
        t.ALONE: len(alone),
        t.TOLDS: len(told),
        t.EDGED: t.HAS_EDGES * bool(edged),
    }
    return PlanTables(guard_terms, alphabet, registers, lists, numbers)


def compile_tables(plan: Plan, events: Slice, variables: Variables) -> PatternTables:
    """Return the tables of a plan over a slice."""
    guard_terms = variables.guard_terms
    usual = guard_terms is guard_terms_of(plan.bound)
    known = _plan_tables(plan) if usual else _tables_of_terms(plan, guard_terms)
    programs = compile_programs(
        [one.value for one in guard_terms],
        lambda number, reference: guard_terms[number].references.index(reference),
        events.columns,
        len(events),
    )
    begins, rows = known.lists[t.T_BEGINS], EventRows(len(events))
    buckets, bucket_rows = bucket_tables(guard_terms, programs, variables, known.alphabet, begins)
    kinds = known.registers.rows(events.columns, rows)
    names = [*(one.variable for one in known.alphabet.letters), *known.alphabet.absent[: known.numbers[t.NOTS]]]
    times = _events(events, variables, names, rows)
    rows.add(t.B_BUCKET, bucket_rows)
    own = {t.EVENTS: len(events), t.EDGED: known.numbers[t.EDGED] + t.IN_GAP * variables.in_gap}
    tables = t.pack(
        {**known.numbers, **own, **rows.first},
        {**known.lists, t.R_KIND: kinds, **times, **_forbidden(variables, guard_terms, known.alphabet), **buckets},
    )
    slots = tuple(known.registers.slots)
    return PatternTables(tables, rows.matrix(), programs, guard_terms, slots, begins, known.alphabet)


# --- Terms ------------------------------------------------------------------------------------------------------


def _terms(guard_terms: tuple[GuardTerm, ...], alphabet: Alphabet, registers: RegisterSlots) -> dict[int, Ints]:
    codes = alphabet.view_numbers
    references = [(one, reference) for one in guard_terms for reference in one.references]
    loops = [_loops(one, codes, registers) for one in guard_terms]
    needs = [_needs(one, codes, registers) for one in guard_terms]
    loop_begins, _ = ragged([[0] * len(row) for row in loops])
    need_begins, _ = ragged([[0] * len(row) for row in needs])
    loop = np.array([row for rows in loops for row in rows], np.int64).reshape(-1, 4).T.copy()
    need = np.array([row for rows in needs for row in rows], np.int64).reshape(-1, 3).T.copy()
    lasting = [
        _lasting(one, alphabet, alphabet.views[view], how) | _gathered_by(guard_terms, one, alphabet.views[view])
        for one, rows in zip(guard_terms, needs, strict=True)
        for _, view, how in rows
    ]
    return {
        t.T_VARIABLES: ints(mask(one.variables, codes) for one in guard_terms),
        t.T_ABSENT: ints(-1 if one.absent is None else alphabet.absent_numbers[one.absent] for one in guard_terms),
        t.T_CLOSES: ints(bits(_closed_by(one)) for one in guard_terms),
        t.T_LATE: ints(
            t.NOTED if one.noted else t.LATE if one.late else t.TWICE * _is_of_two(one) for one in guard_terms
        ),
        t.T_PAIRED: ints(mask(one.paired & one.variables, codes) for one in guard_terms),
        t.T_MOVING: ints(mask(one.moving, codes) for one in guard_terms),
        t.T_BEGINS: ragged([[0] * len(one.references) for one in guard_terms])[0],
        t.T_VARIABLE: ints(codes.get(_seen(one, reference), 0) for one, reference in references),
        t.T_GATHERED: ints(_gathered_to(one, reference.var, registers) for one, reference in references),
        t.T_KIND: ints(_reference_kind(one, r) for one, r in references),
        t.T_REGISTER: ints(registers.place(one.register(r)) if r.which in SO_FAR else 0 for one, r in references),
        t.T_SO_FAR: ints(mask(one.so_far, codes) for one in guard_terms),
        t.T_RESULT: ints(one.result for one in guard_terms),
        t.T_SLOT: ints(registers.slot(one.register(r)) for one, r in references),
        t.T_LAST: ints(registers.last(r[0]) for _, r in references),
        t.T_NTH: ints(
            _place_in_tuple(guard_terms, one, r) if one.is_over(r.var) else r.nth or 0 for one, r in references
        ),
        t.T_COUNT: ints(registers.count(r[0]) for _, r in references),
        t.T_LOOP_BEGINS: loop_begins,
        t.T_LOOP_SLOT: loop[0],
        t.T_LOOP_VARIABLE: loop[1],
        t.T_LOOP_KIND: loop[2],
        t.T_LOOP_GATHERED: loop[3],
        t.T_NEED_BEGINS: need_begins,
        t.T_NEED_SLOT: need[0],
        t.T_NEED_VARIABLE: need[1],
        t.T_NEED_KIND: need[2],
        t.T_NEED_GROUPS: ints(map(bits, lasting)),
    }


def _seen(one: GuardTerm, reference: Reference) -> str:
    """Return the view that a reference looks at."""
    over = one.over_of(reference.var)
    return reference.var if over is None else over.name


def _place_in_tuple(guard_terms: tuple[GuardTerm, ...], one: GuardTerm, reference: Reference) -> int:
    """Return the place of what a reference names, of iterations that are over, in the tuples of these."""
    last = next(other for other in guard_terms if other.gathered == one.gathered and not other.over)
    over = one.over_of(reference.var)
    assert over is not None
    return last.references.index(reference._replace(var=reference.var[len(over.name) + 1 :]))


def _gathered_to(one: GuardTerm, name: str, registers: RegisterSlots) -> int:
    """Return the slots, as bits, to which a term gathers what has a name, or a view."""
    slots = {view.group: registers.slots[Register(RegisterKind.TUPLES, view.name)] for view in one.gathering}
    if one.stated:  # all that a whole match has
        return bits(slots.values()) or 1
    seen = one.over_of(name)
    inside = [view.replaced_by for view in one.views if view.name == (name if seen is None else seen.name)]
    return bits(slot for group, slot in slots.items() if any(group in groups for groups in inside))


def _is_of_two(one: GuardTerm) -> bool:
    """Return whether a term compares two views of one variable that may take the same event, one of them several."""
    taken = [view for view in one.views if view.name in one.variables and view.variable and not view.source]
    return any(
        own.name in one.moving and any(own != other and own.variable == other.variable for other in taken)
        for own in taken
    )


def _lasting(one: GuardTerm, alphabet: Alphabet, view: View, how: int) -> frozenset[int]:
    """Return the groups for whose next iterations a register of a view is kept."""
    if how == t.WHILE_LOOPS:
        users = (v for v in one.views if v.source == view.name or (v.only and v.group == view.group))
        return frozenset(user.group for user in users)
    return _living_in(one, alphabet) - view.replaced_by


def _gathered_by(guard_terms: tuple[GuardTerm, ...], one: GuardTerm, view: View) -> frozenset[int]:
    """Return the groups whose next iterations gather what a term names of a view, whatever else has events then."""
    return frozenset(own.group for own in one.gathering if view.name in _over_names(guard_terms, own))


def _living_in(one: GuardTerm, alphabet: Alphabet) -> frozenset[int]:
    """Return the groups in whose iterations a term is asked anew."""
    of_not = alphabet.paths[one.absent] if one.absent is not None else ()
    return frozenset(of_not).union(*(view.emptied_by for view in one.views))


def _closed_by(one: GuardTerm) -> frozenset[int]:
    """Return the groups whose next iteration makes known what a term waits for."""
    late = {c.var for c in columns_of(one.condition.value) if c.which in LATE and not one.is_over(c.var)}
    late |= {view.name for view in one.awaited}
    return frozenset().union(*(view.emptied_by for view in one.views if view.name in late))


def _reference_kind(one: GuardTerm, reference: Reference) -> int:
    if one.is_forbidden(reference.var):
        return t.OF_ABSENT
    if one.is_over(reference.var):
        return t.OF_TUPLE
    return t.OF_BEFORE if reference.function == "LIST" else KINDS[reference.which]


LOOPS = {RegisterKind.PAIRS: t.OVER_PAIRS, RegisterKind.SET: t.OVER_SET, RegisterKind.TUPLES: t.OVER_TUPLES}


def _loops(one: GuardTerm, codes: Mapping[str, int], registers: RegisterSlots) -> list[tuple[int, int, int, int]]:
    """Return the sets that a term goes over: the slot, the view, the kind, and where it gathers their members."""
    plain = (one.register(r) for r in one.references if not r.function or one.is_over(r.var))
    return [
        (
            registers.slots[register],
            codes[register.variable],
            LOOPS[register.kind],
            _gathered_to(one, register.variable, registers),
        )
        for register in dict.fromkeys(plain)
        if register is not None and register.kind in LOOPS
    ] + [(0, 0, t.OVER_FORBIDDEN, int(one.stated))] * any(
        r.var != one.absent and one.is_forbidden(r.var) for r in one.references
    )


def _needs(one: GuardTerm, codes: Mapping[str, int], registers: RegisterSlots) -> list[tuple[int, int, int]]:
    """Return the registers that a term needs, and how long."""
    found: dict[tuple[int, int, int], None] = {}
    for reference in one.references:
        register = one.register(reference)
        if register is None:
            continue
        var = register.variable
        plain = register.kind <= RegisterKind.NTH or register.kind is RegisterKind.TUPLES
        how = t.WHILE_ASKED if plain or reference.function else t.WHILE_OTHERS
        if reference.which in SO_FAR and register.kind is not RegisterKind.TUPLES:
            how = t.WHILE_OPEN
        if register.kind is RegisterKind.PAIRS:
            how = t.WHILE_OTHERS
            found[registers.last(var), codes[var], t.WHILE_OPEN] = None
        if register.kind is RegisterKind.NTH:
            found[registers.count(var), codes[var], t.WHILE_OPEN] = None
        found[registers.slots[register], codes.get(var, 0), how] = None
        for other in registers.of_iterations(register):
            found[registers.slots[other], codes[other.variable], t.WHILE_LOOPS] = None
    return [*found]


def _gathers(guard_terms: tuple[GuardTerm, ...], alphabet: Alphabet, registers: RegisterSlots) -> dict[int, Ints]:
    """Return by letter the terms whose tuples an iteration adds, that is over when the letter begins another."""
    found, gathers = [], [(one, view) for one in guard_terms for view in one.gathering]
    for letter in alphabet.letters:
        begun, rows = {*alphabet.begun(letter)}, []
        for one, view in gathers:
            if not begun & {*view.path[view.level :]} or begun & view.emptied_by:
                continue
            own = _over_names(guard_terms, view) & one.named
            slot = registers.slots[Register(RegisterKind.TUPLES, view.name)]
            rows.append((one.number, slot, mask(own, alphabet.view_numbers)))
        found.append(rows)
    flat = np.array([row for rows in found for row in rows], np.int64).reshape(-1, 3).T.copy()
    begins, _ = ragged([[0] * len(rows) for rows in found])
    return {t.L_GATHER_BEGINS: begins, t.L_GATHER_TERM: flat[0], t.L_GATHER_SLOT: flat[1], t.L_GATHER_VIEWS: flat[2]}


def _over_names(guard_terms: tuple[GuardTerm, ...], view: View) -> frozenset[str]:
    """Return the names of the views that terms of a group's iterations which are over have from these."""
    prefix = f"{view.name}\n"
    references = (reference for one in guard_terms if view in one.over for reference in one.references)
    return frozenset(r.var.removeprefix(prefix) for r in references if r.var.startswith(prefix))


# --- Events -----------------------------------------------------------------------------------------------------


def _events(events: Slice, variables: Variables, names: list[str], rows: EventRows) -> dict[int, Ints]:
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
    masks = [
        np.bincount(variables.ends[n].begins, minlength=size) if n in variables.ends else variables.usable[n]
        for n in names
    ]
    lists = [
        variables.ends[n].begins if n in variables.ends else np.flatnonzero(m)
        for n, m in zip(names, masks, strict=True)
    ]
    begins = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    rows.times(same, later, events.until)
    rows.add(t.E_UPTO, [np.concatenate([[0], np.cumsum(mask)]) for mask in masks])
    return {t.E_BEGINS: begins, t.E_USABLE: np.concatenate([*lists, np.empty(0, np.int64)])}


def _forbidden(variables: Variables, guard_terms: tuple[GuardTerm, ...], alphabet: Alphabet) -> dict[int, Ints]:
    """Return the matches of patterns that NOTs forbid as a whole, their nodes, and what terms name of these."""
    every = [*variables.ends.values()]
    of_term, first = np.full(len(guard_terms), -1, np.int64), np.zeros(len(guard_terms), np.int64)
    begins, tuples, places, size, count = [], [np.empty(0, np.int64)], 0, 0, 0
    nothing = [np.empty(0, np.int64)]
    roots, nodes = [*nothing], [*nothing]
    for found in every:
        for number, (own, members) in found.tuples.items():
            of_term[number], first[number] = places - count, size
            begins.append(own)
            tuples.append(members)
            places += len(own)
            size += len(members)
        own_nodes = found.nodes.copy()
        own_nodes[:, OF] = ints([*(alphabet.absent_numbers.get(name, -1) for name in found.names), -1])[
            own_nodes[:, OF]
        ]
        (at,) = np.nonzero(own_nodes[:, BACK] == 0)
        roots.append(at + count if len(own_nodes) else np.full(len(found.ends), -1))
        nodes.append(own_nodes.ravel())
        count += len(own_nodes)
    return {
        t.C_ENDS: np.concatenate([one.ends for one in every] or nothing),
        t.C_SOONEST: np.concatenate([np.minimum.accumulate(one.ends[::-1])[::-1] for one in every] or nothing),
        t.C_ROOT: np.concatenate(roots),
        t.C_NODES: np.concatenate(nodes),
        t.C_OF_TERM: of_term,
        t.C_BEGINS: np.concatenate(begins or nothing),
        t.C_FIRST: first,
        t.C_TUPLES: np.concatenate(tuples),
    }
