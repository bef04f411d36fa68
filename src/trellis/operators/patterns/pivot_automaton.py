"""The automaton of the results with one pivot, as tables: symbols of events lead from state to state.

A state is one of the pattern's automaton, with what the events so far have told of conditions, and beside it the states
that longer matches have reached, which begin before and read the same: so what REPORT asks is known where a match ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from trellis.kernels.pivots.cases import PivotAsks, PivotAutomaton
from trellis.language.bound import Column, Operation, Value
from trellis.language.bound import with_columns as put_columns
from trellis.language.syntax import Report, Which
from trellis.operators.batch import LEVEL
from trellis.plan.automaton import Automaton
from trellis.plan.pivots import MET, PivotPlan

MOST_STATES, MOST_SETS, MOST_SYMBOLS, MOST_PAIRS = 60, 64, 64, 1 << 10


class NotPivotal(Exception):
    """A pattern, or events, whose best results are not found by pivots."""


Beside = tuple[tuple[frozenset[int], ...], frozenset[str]]  # states that read the same, and letters that led there
State = tuple[frozenset[int], tuple[int, ...]]  # those of the pattern's automaton, and what conditions were told


class PivotMachine:
    """The automaton of results as tables: see `PivotAutomaton`.

    Raises
    ------
    NotPivotal
        If it has too many states, or reads an event of a variable in several ways.
    """

    def __init__(self, plan: PivotPlan, automaton: Automaton, codes: dict[str, int], report: Report) -> None:
        self._automaton, self._codes, self._plan = automaton, codes, plan
        self._noted = [c for c in plan.conditions if not c.is_of_each]
        self.sides, blocking = (False, False), False
        if plan.extreme is not None:
            (condition,) = plan.conditions
            self._noted.append(replace(condition, variable=plan.pivot, which=Which.WHOLE))  # the extreme one is there
            if report is not Report.ANY:
                self.sides = sides_of_more(automaton, plan.pivot)
                blocking = any(self.sides)
            if blocking:
                self._noted.append(replace(condition, which=Which.WHOLE))
        self._blocking = len(self._noted) - 1 if blocking else None
        self._of = {name: [i for i, c in enumerate(self._noted) if c.variable == name] for name in codes}
        self._symbols = [(name, bits) for name in codes for bits in product((False, True), repeat=len(self._of[name]))]
        if len(self._symbols) > MOST_SYMBOLS:
            raise NotPivotal
        self._ends = {one.state for one in automaton.accepting}
        self._steps: dict[tuple[frozenset[int], str], tuple[frozenset[int], int]] = {}
        self._read_all()
        self.tables = self._tables(report is Report.ANY)
        self.asks = self._asks(plan)

    def codes_of(self, variables: Sequence[str]) -> list[int]:
        """Return the codes of a result's events by their variables; see `PathBatch`."""
        base, found = frozenset([0]), []
        for name in variables:
            base, begins = self._step(base, name)
            found.append(self._codes[name] | begins << LEVEL)
        return found

    def _step(self, base: frozenset[int], name: str) -> tuple[frozenset[int], int]:
        """Return where an event of a variable leads, and how many iterations it begins."""
        if (base, name) not in self._steps:
            taken = [t for t in self._automaton.transitions if t.source in base and t.variable == name]
            begins = {len(t.begun) for t in taken}
            if len(begins) > 1:
                raise NotPivotal
            self._steps[base, name] = frozenset(t.target for t in taken), max(begins, default=0)
        return self._steps[base, name]

    def _read(self, state: State, symbol: int) -> State | None:
        name, bits = self._symbols[symbol]
        base, _ = self._step(state[0], name)
        if not base:
            return None
        told = [*state[1]]
        for i, meets in zip(self._of[name], bits, strict=True):
            after = self._noted[i].read(told[i], meets)
            if after is None:
                return None
            told[i] = after
        return base, tuple(told)

    def _read_all(self) -> None:
        """Find all states from which an end is reached, but for the first one, and the steps between them."""
        begin: State = (frozenset([0]), (0,) * len(self._noted))
        symbols = range(len(self._symbols))
        numbers, order, steps = {begin: 0}, [begin], list[list[int]]()
        for state in order:
            row = []
            for symbol in symbols:
                after = self._read(state, symbol)
                if after is not None and after not in numbers:
                    numbers[after] = len(order)
                    order.append(after)
                row.append(-1 if after is None else numbers[after])
            steps.append(row)
            if len(order) > 4 * MOST_STATES:
                raise NotPivotal
        ends = [
            bool(base & self._ends)
            and all(
                one.may_end(t) for i, (one, t) in enumerate(zip(self._noted, told, strict=True)) if i != self._blocking
            )
            for base, told in order
        ]
        live = _leading_to(ends, steps)
        kept = [i for i in range(len(order)) if live[i]]
        if not live[0] or len(kept) > MOST_STATES:
            raise NotPivotal
        new = {old: i for i, old in enumerate(kept)}
        self._accepts = [ends[i] for i in kept]
        self._wanted = [end and self._is_blocked(order[i]) for i, end in zip(kept, self._accepts, strict=True)]
        self._all = [[new.get(target, -1) for target in steps[i]] for i in kept]

    def _is_blocked(self, state: State) -> bool:
        """Return whether nothing of the pivot's variable that is more extreme can be put to a match."""
        return self._blocking is None or state[1][self._blocking] == MET

    def _targets(self, states: int, symbol: int) -> int:
        """Return where a set of states, as bits, leads to."""
        found = 0
        for i in _members(states):
            if self._all[i][symbol] >= 0:
                found |= 1 << self._all[i][symbol]
        return found

    def _sources(self, states: int, symbol: int) -> int:
        """Return the set of states from which a symbol leads to an end, or to a set of states."""
        rows = enumerate(self._all)
        return sum(1 << i for i, r in rows if (t := r[symbol]) >= 0 and (self._accepts[t] or states >> t & 1))

    def _tables(self, every: bool) -> PivotAutomaton:
        symbols = range(len(self._symbols))
        if every:
            before, behind, none = [0], [0], np.zeros((1, len(symbols)), np.int64)
            read_before = read_behind = none
        else:
            before, read_before = _sets(lambda some, symbol: self._targets(some | 1, symbol), symbols)
            behind, read_behind = _sets(self._sources, symbols)
        numbers: dict[tuple[int, int], int] = {}
        order: list[tuple[int, int]] = []

        def number(state: int, beside: int) -> int:
            """Return the number of a state with the states that longer matches have reached; -1 if they go along."""
            if state < 0 or beside >> state & 1:
                return -1
            if (state, beside) not in numbers:
                numbers[state, beside] = len(order)
                order.append((state, beside))
                if len(order) > 4 * MOST_STATES:
                    raise NotPivotal
            return numbers[state, beside]

        entry = [[number(self._all[0][s], self._targets(some, s)) for s in symbols] for some in before]
        steps = []
        for state, beside in order:
            steps.append([number(self._all[state][s], self._targets(beside, s)) for s in symbols])
        ends = [self._wanted[s] and not any(self._accepts[i] for i in _members(b)) for s, b in order]
        live = np.array(_leading_to(ends, steps), np.bool_)
        if not live.any():
            raise NotPivotal
        new = np.append(np.where(live, np.cumsum(live) - 1, -1), -1)
        step, kept = new[np.array(steps)][live], [one for one, is_live in zip(order, live, strict=True) if is_live]
        pairs = [np.flatnonzero(step[:, s] >= 0) for s in symbols]
        last = [[not some >> state & 1 for state, _ in kept] for some in behind]
        return PivotAutomaton(
            new[np.array(entry)], step, np.concatenate(pairs), np.cumsum([0, *map(len, pairs)]),
            np.array(ends, np.bool_)[live], np.array(before), read_before, np.array(behind), read_behind,
            np.array(last, np.bool_), np.array(self._all),
        )  # fmt: skip

    def _asks(self, plan: PivotPlan) -> PivotAsks:
        """Return the conditions by their variables; `values` are these in their order."""
        rows = [(self._codes[c.variable], c) for c in plan.conditions]
        rows.sort(key=lambda row: row[0])
        self.values = [c.value for _, c in rows]
        adds = [0 if c.is_of_each else self._added(self._noted.index(c)) for _, c in rows]
        begins = np.searchsorted([code for code, _ in rows], np.arange(len(self._codes) + 1))
        symbols = [next(s for s, (n, _) in enumerate(self._symbols) if n == name) for name in self._codes]
        extreme = self._plan.extreme
        if extreme is not None:  # behind the others, for its codes
            first, second = (
                put_columns(extreme.value, _of_variable(c.variable)) for c in (self._noted[0], plan.conditions[0])
            )
            self.values.append(Operation("<", (first, second)))
        own = 0 if extreme is None else self._added(next(i for i in self._of[self._plan.pivot]))
        blocks = 0 if self._blocking is None else self._added(self._blocking)
        return PivotAsks(
            begins.astype(np.int64), np.array(adds, np.int64), np.array(symbols, np.int64), -1,
            extreme is not None and not extreme.greatest, own, blocks, *self.sides,
        )  # fmt: skip

    def _added(self, number: int) -> int:
        """Return the number that a noted condition adds to the symbols of events that meet it."""
        own = self._of[self._noted[number].variable]
        return 1 << (len(own) - 1 - own.index(number))


def _of_variable(name: str) -> Callable[[Column], Value]:
    return lambda column: replace(column, var=name, which=Which.EACH)


def _members(states: int) -> Iterable[int]:
    return (i for i in range(states.bit_length()) if states >> i & 1)


def _leading_to(ends: Sequence[bool], steps: Sequence[Sequence[int]]) -> list[bool]:
    """Return from which states an end is reached."""
    live, changed = [*ends], True
    while changed:
        changed = False
        for i, row in enumerate(steps):
            if not live[i] and any(target >= 0 and live[target] for target in row):
                live[i] = changed = True
    return live


def _sets(read: Callable[[int, int], int], symbols: range) -> tuple[list[int], Any]:
    """Return all sets that grow from the empty one by what events of one time lead to, and what each reads."""
    found, changed = [0], True
    while changed:
        changed = False
        for small, symbol in product([*found], symbols):
            more = read(small, symbol)
            for large in [*found]:
                if large & small == small and large | more not in found:
                    found.append(large | more)
                    changed = True
            if len(found) > MOST_SETS:
                raise NotPivotal
    return found, np.array([[read(some, symbol) for symbol in symbols] for some in found], np.int64)


# --- What may be put to matches ---------------------------------------------------------------------------------


def sides_of_more(automaton: Automaton, name: str) -> tuple[bool, bool]:
    """Return whether an event of a variable may be put before every match, and behind; if not, it is before none.

    Raises
    ------
    NotPivotal
        If it is so for some matches only, or if several events can be put to one to which none of them can by itself.
    """
    ends = {one.state for one in automaton.accepting}
    names = sorted({one.variable for one in automaton.transitions})

    @cache
    def read(states: frozenset[int], variable: str) -> frozenset[int]:
        return frozenset(t.target for t in automaton.transitions if t.source in states and t.variable == variable)

    def closure(begin: Iterable[Beside]) -> set[Beside]:
        found = {*begin}
        waiting = [*found]
        while waiting:
            states, letters = waiting.pop()
            for variable in names:
                after = tuple(read(one, variable) for one in states), letters
                if after[0][0] and after not in found:
                    found.add(after)
                    waiting.append(after)
            if len(found) > MOST_PAIRS:
                raise NotPivotal
        return found

    def longer(states: frozenset[int]) -> set[tuple[frozenset[int], frozenset[str]]]:
        """Return where some events lead from a state, and of which variables they are."""
        found = {(read(states, v), frozenset([v])) for v in names if read(states, v)}
        waiting = [*found]
        while waiting:
            one, letters = waiting.pop()
            for v in names:
                after = read(one, v), letters | {v}
                if after[0] and after not in found:
                    found.add(after)
                    waiting.append(after)
        return found

    start = frozenset([0])
    before = set()
    for one, letters in longer(start):
        for (match, more, *single), _ in closure([((start, one, *(read(start, v) for v in sorted(letters))), letters)]):
            if match & ends and more & ends and not any(s & ends for s in single):
                raise NotPivotal
    for (match, more), _ in closure([((start, read(start, name)), frozenset())]):
        if match & ends:
            before.add(bool(more & ends))
    matches = [one for (one,), _ in closure([((start,), frozenset())]) if one & ends]
    behind = {bool(read(one, name) & ends) for one in matches}
    for match in matches:
        for one, letters in longer(match):
            if one & ends and not any(read(match, v) & ends for v in letters):
                raise NotPivotal
    if len(before) > 1 or len(behind) > 1:
        raise NotPivotal
    return True in before, True in behind
