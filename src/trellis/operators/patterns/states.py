"""The tables of the exploration that tell of the automaton and of its letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.kernels.explore import tables as t
from trellis.language.syntax import Select
from trellis.operators.patterns.letters import Alphabet
from trellis.plan.automaton import Automaton
from trellis.plan.plan import Plan
from trellis.plan.registers import ENOUGH, GuardTerm, Register, RegisterKind, variables_behind
from trellis.plan.remainders import (
    Acceptance,
    Guard,
    LazyAutomaton,
    Leaf,
    Leaving,
    Letter,
    Loop,
    PreviousIteration,
    Transition,
    items_of,
)
from trellis.plan.views import View, counter

Ints = NDArray[np.int64]
MOST_STATES = 1 << 14
POLICIES = {Select.ANY: t.ANY, Select.NEXT: t.NEXT, Select.CONTIGUOUS: t.CONTIGUOUS}


def ints(values: Iterable[Any]) -> Ints:
    """Return whole numbers as an array."""
    return np.array([*values], np.int64)


def mask(names: Iterable[Any], codes: Mapping[Any, int]) -> int:
    """Return the numbers of names as bits."""
    return bits(codes[name] for name in names)


def bits(numbers: Iterable[int]) -> int:
    """Return numbers as bits of one."""
    return sum(1 << number for number in set(numbers))


def ragged(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return where each row begins, and the rows one after another."""
    begins = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return begins, ints(value for row in rows for value in row)


class States:
    """The states of a plan's automaton, all of them."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.lazy = plan, LazyAutomaton(plan.automaton.root)
        self.transitions: list[tuple[Transition, ...]] = []
        self.ways: list[tuple[Acceptance, ...]] = []
        while len(self.transitions) < len(self.lazy):
            if len(self.lazy) > MOST_STATES:
                raise TrellisError(
                    f"the pattern has more than {MOST_STATES:,} states: every AND, and every bound of a quantifier "
                    "inside of a group, multiplies them",
                    "Use fewer parts in AND, or smaller bounds.",
                )
            state = len(self.transitions)
            self.transitions.append(self.lazy.transitions(state))
            self.ways.append(self.lazy.endings(state))
        self.flat = [one for row in self.transitions for one in row]

    def before(self, alphabet: Alphabet) -> dict[PreviousIteration, int]:
        """Return the variables for whose last times in the iteration before NOTs inside AND ask, with their numbers."""
        ended = (one.guards for row in self.ways for one in row)
        guards = (guard for some in (*(one.guards for one in self.flat), *ended) for guard in some)
        names = dict.fromkeys(n for guard in guards for n in guard.after if isinstance(n, PreviousIteration))
        return {name: len(alphabet.variables) + i for i, name in enumerate(names)}

    def greedy(self, alphabet: Alphabet) -> int:
        """Return the letters of greedy variables that transitions leave, as bits."""
        letters = (one.letter for transition in self.flat for one in transition.left)
        return bits(alphabet.numbers[letter] for letter in letters if letter in alphabet.numbers)

    def tables(
        self, alphabet: Alphabet, noted: Mapping[str, int], closes: Mapping[str, frozenset[int]]
    ) -> dict[int, Ints]:
        """Return the automaton.

        For what NOTs forbid, `noted` are the bits of `A_GUARD_NODES`, and `closes`, where it is compared, the groups
        at the end of whose iterations it has to be decided.
        """
        plan, lazy, flat = self.plan, self.lazy, self.flat
        bases: dict[Any, int] = {**alphabet.variables}
        bases.update(self.before(alphabet))
        policies = plan.automaton.policies
        guards: dict[Guard, int] = {}

        def numbers(some: Iterable[Guard]) -> list[int]:
            return [guards.setdefault(guard, len(guards)) for guard in some]

        items = [[*items_of(lazy.remainder(state))] for state in range(len(lazy))]
        forbidden = [[n for item, outer in row if outer is None for n in _forbidden(item)] for row in items]
        timed = [[*_timed(row, bases)] for row in items]
        loops = [[item.group for item, outer in row if isinstance(item, Loop) and outer is None] for row in items]
        endings = [one for row in self.ways for one in row]
        guard_begins, guard_lists = ragged([numbers(one.guards) for one in flat])
        way_guard_begins, way_guards = ragged([numbers(one.guards) for one in endings])
        absent_begins, absents = ragged([[alphabet.absent_numbers[n] for n in guard.absent] for guard in guards])
        return {
            t.A_BEGINS: ragged([[0] * len(row) for row in self.transitions])[0],
            t.A_VARIABLE: ints(alphabet.letter(one) for one in flat),
            t.A_TARGET: ints(one.target for one in flat),
            t.A_AFTER: ints(mask(one.after, bases) for one in flat),
            t.A_GUARD_BEGINS: guard_begins,
            t.A_GUARDS: guard_lists,
            t.A_NEXT: ints(bits(map(alphabet.letter, row)) for row in self.transitions),
            t.A_OPEN: ints(alphabet.open_views(lazy, state) for state in range(len(lazy))),
            t.A_TIMED: ints(mask(lazy.timed(state), bases) for state in range(len(lazy))),
            t.A_GUARD_TIMED: ints(mask(names, bases) for names in timed),
            t.A_ABSENT: ints(mask(names, alphabet.absent_numbers) for names in forbidden),
            t.A_LOOPS: ints(map(bits, loops)),
            t.A_WAY_BEGINS: ragged([[0] * len(row) for row in self.ways])[0],
            t.A_WAY_GUARD_BEGINS: way_guard_begins,
            t.A_WAY_GUARDS: way_guards,
            t.A_ABSENT_BEGINS: absent_begins,
            t.A_ABSENTS: absents,
            t.A_GUARD_AFTER: ints(mask(guard.after, bases) for guard in guards),
            t.A_GUARD_UNTIL: ints(guard.until for guard in guards),
            t.A_GUARD_GROUPS: ints(bits(_closing(guard, closes)) for guard in guards),
            t.A_GUARD_CLOSING: ints(guard.closing for guard in guards),
            t.A_GUARD_NODES: ints(reduce(or_, (noted.get(name, 0) for name in guard.absent), 0) for guard in guards),
            t.A_STEP: ints(one.step for one in flat),
            t.A_LEFT: ints(bits(_questions(one, kind, alphabet)) for one in flat for kind in range(t.WAITS_IN_TIE + 1)),
            t.A_STEPS: ints(bits(one.step for one in row) for row in self.transitions),
            t.A_POLICIES: ints(POLICIES[policy or plan.bound.select] for policy in policies),
            t.A_STEP_VARIABLES: ints(
                bits(alphabet.letter(one) for one in flat if one.step == step) for step in range(len(policies))
            ),
        }


def _questions(transition: Transition, kind: int, alphabet: Alphabet) -> Iterator[int]:
    """Yield the greedy letters of which a transition asks something, and, first of all, what it asks of itself."""
    for letter, how in transition.left:
        if how is Leaving.TOGETHER or how is Leaving.NEVER:
            if kind == t.LEAVES:
                yield t.TOGETHER if how is Leaving.TOGETHER else t.NEVER
        elif how == kind and letter in alphabet.numbers:
            yield alphabet.numbers[letter]


def _timed(items: Iterable[tuple[Loop | Leaf | Guard, Loop | None]], bases: Mapping[Any, int]) -> Iterator[Any]:
    """Yield those of variables, and of variables in the iteration before, after which the NOTs of a rest may begin."""
    for item, _ in items:
        for name in item.after if isinstance(item, Guard) else ():
            yield name.variable if isinstance(name, PreviousIteration) else name
            if isinstance(name, PreviousIteration) and name in bases:
                yield name


def _closing(guard: Guard, closes: Mapping[str, frozenset[int]]) -> Iterator[int]:
    """Yield the groups at the end of whose iterations a guard is decided; all around it, if nothing is compared."""
    compared = [closes[name] for name in guard.absent if name in closes]
    return (group for group in guard.groups if not compared or any(group in one for one in compared))


def _forbidden(item: Loop | Leaf | Guard) -> tuple[str, ...]:
    if isinstance(item, Guard):
        return item.absent
    return (item.until,) if isinstance(item, Leaf) and item.until is not None else ()


def letter_tables(
    alphabet: Alphabet, registers: Mapping[Register, int], before: Mapping[PreviousIteration, int]
) -> dict[int, Ints]:
    """Return the views that letters take, and those that the iterations they begin empty; `registers` are the slots.

    Last times lie behind them; `before` are the numbers of those that are of the iteration before.
    """
    only = [_once(letter, alphabet, registers) for letter in alphabet.letters]
    begun = [{*alphabet.begun(letter)} for letter in alphabet.letters]
    views = alphabet.views
    slots = [(slot, views[alphabet.view_numbers[r.variable]]) for r, slot in registers.items() if r.variable]
    first, own = len(registers), alphabet.variables
    times = [(name.group, first + number, first + own[name.variable]) for name, number in before.items()]
    copies = [
        _copied(some, slots, registers) + [(to, origin) for group, to, origin in times if group in some]
        for some in begun
    ]
    links = [_linked(some, alphabet) for some in begun]
    copy_begins, link_begins, only_begins = (
        ragged([[0] * len(row) for row in rows])[0] for rows in (copies, links, only)
    )
    return {
        t.L_BASE: ints(alphabet.variables[letter.variable] for letter in alphabet.letters),
        t.L_VIEWS: ints(
            bits(i for i, view in enumerate(views) if alphabet.takes(letter, view)) for letter in alphabet.letters
        ),
        t.L_GROUPS: ints(map(bits, begun)),
        t.L_EMPTIES: ints(bits(i for i, view in enumerate(views) if view.replaced_by & some) for some in begun),
        t.L_OPENS: ints(
            bits(i for i, view in enumerate(views) if view.emptied_by & some and not view.source) for some in begun
        ),
        t.L_CLEARS: ints(bits(slot for slot, view in slots if view.replaced_by & some) for some in begun),
        t.L_COPY_BEGINS: copy_begins,
        t.L_COPY_TO: ints(to for row in copies for to, _ in row),
        t.L_COPY_FROM: ints(origin for row in copies for _, origin in row),
        t.L_LINK_BEGINS: link_begins,
        t.L_LINK_TO: ints(to for row in links for to, _ in row),
        t.L_LINK_FROM: ints(origin for row in links for _, origin in row),
        t.L_ONLY_BEGINS: only_begins,
        t.L_ONLY_VIEW: ints(one[0] for row in only for one in row),
        t.L_ONLY_SLOT: ints(one[1] for row in only for one in row),
        t.L_ONLY_NUMBER: ints(one[2] for row in only for one in row),
        t.L_ONLY_BEGUN: ints(one[3] for row in only for one in row),
    }


def forgotten(
    alphabet: Alphabet, registers: Mapping[Register, int], terms: Sequence[GuardTerm], automaton: Automaton
) -> dict[int, Ints]:
    """Return for each letter the slots that only tell whether a match which ends with it is whole.

    That is the last event of a variable behind which no other comes: the next one takes its place.
    """
    behind, paired = variables_behind(automaton), frozenset().union(*(one.paired for one in terms))
    whole = automaton.complete and not (automaton.grouped or automaton.concurrent)
    slots = {
        register.variable: slot
        for register, slot in registers.items()
        if whole and register.kind is RegisterKind.LAST and register.variable not in paired
    }
    return {
        t.L_FORGETS: ints(
            1 << slots[one.variable] if one.variable in slots and behind[one.variable] <= {one.variable} else 0
            for one in alphabet.letters
        )
    }


def _copied(some: set[int], slots: list[tuple[int, View]], registers: Mapping[Register, int]) -> list[tuple[int, int]]:
    """Return the slots that get, when iterations of some groups begin, what others have had: these, and those."""
    by_slot = {slot: register for register, slot in registers.items()}
    return [
        (slot, registers[replace(by_slot[slot], variable=view.source)])
        for slot, view in slots
        if view.source and view.group in some and not view.emptied_by & some
    ]


def _linked(some: set[int], alphabet: Alphabet) -> list[tuple[int, int]]:
    """Return the views that get, when iterations of some groups begin, the events that others have had."""
    return [
        (i, alphabet.view_numbers[view.source])
        for i, view in enumerate(alphabet.views)
        if view.source and view.group in some and not view.emptied_by & some
    ]


def _once(letter: Letter, alphabet: Alphabet, registers: Mapping[Register, int]) -> list[tuple[int, int, int, int]]:
    """Return the views that take a letter's event in one iteration only.

    With each go the slot that counts iterations, the number of the iteration, and whether the letter begins one.
    """
    counts = {r.variable: slot for r, slot in registers.items() if r.kind is RegisterKind.TALLY and r.nth == ENOUGH}
    return [
        (i, counts[counter(view.group, ()).name], view.only, int(view.group in alphabet.begun(letter)))
        for i, view in enumerate(alphabet.views)
        if view.only and view.variable == letter.variable
    ]
