"""The graph of all matches of one window: what a match so far is, and with which events it goes on.

A node is an event bound to a variable, with all that the rest of the match depends on: the states of the automaton, the
NOTs that are not decided yet, and what conditions must remember. Matches that are alike in this are one node, so
that a path from a start to an accepting node is one match, and two paths are two matches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Slice
from trellis.language.bound import WindowKind
from trellis.language.syntax import Select, Which
from trellis.operators.patterns.conditions import Conditions, Conjunct, Mask, Register, trim
from trellis.operators.patterns.progress import Progress, Progresses, TimeGuard
from trellis.operators.patterns.variables import Variables
from trellis.plan.plan import Plan

MOST_NODES = 5_000_000


@dataclass(frozen=True, slots=True)
class Branch:
    """One reading of a match so far, and the NOTs that are not decided yet."""

    progress: Progress
    guards: tuple[TimeGuard, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A match so far, as far as its rest depends on it; `first` is its first event, under a span."""

    branches: frozenset[Branch]
    bound: frozenset[str]
    registers: frozenset[tuple[str, Register]]
    first: int | None = None


@dataclass
class MatchGraph:
    """Nodes in the order of their events; `successors` of a node are in the order (event, variable)."""

    events: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    accepting: list[bool] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.events)


class MatchSearch:
    """Finds the matches among the events `[lo, hi)` of a slice, which are numbered from 0 here."""

    def __init__(self, plan: Plan, events: Slice, variables: Variables, lo: int, hi: int) -> None:
        bound = plan.bound
        self.select, self.progresses = bound.select, Progresses(plan.automaton)
        self.size = hi - lo
        self.times: list[Any] = events.times[lo:hi].tolist()
        self.until = (np.minimum(events.until[lo:hi], hi) - lo).tolist()
        self.span = bound.window.kind is WindowKind.SPAN
        self.usable = {name: mask[lo:hi] for name, mask in variables.usable.items()}
        self.codes = variables.codes
        self.conditions = Conditions(bound, variables.conjuncts, events, lo, hi)
        self.late = [one for one in variables.conjuncts if one.late and one.absent is None]
        self.graph = MatchGraph()
        self._at: list[dict[tuple[int, Match], int]] = [{} for _ in range(self.size)]
        self._matches: list[Match] = []

    def run(self) -> MatchGraph:
        """Return the graph."""
        empty = Match(frozenset({Branch(Progress())}), frozenset(), frozenset())
        begins: dict[int, list[tuple[int, Match]]] = {}
        for event, code, match in self._continuations(empty, None):
            begins.setdefault(event, []).append((code, match))
        graph = self.graph
        for event in range(self.size):
            for code, match in begins.get(event, ()):
                graph.starts.append(self._node(event, code, match))
            for (_, match), node in list(self._at[event].items()):
                found = [self._node(*step) for step in self._continuations(match, event)]
                graph.successors[node] = sorted(found, key=lambda n: (graph.events[n], graph.variables[n]))
        return graph

    def _node(self, event: int, code: int, match: Match) -> int:
        key = (code, match)
        node = self._at[event].get(key)
        if node is None:
            graph = self.graph
            node = self._at[event][key] = len(graph)
            graph.events.append(event)
            graph.variables.append(code)
            graph.successors.append([])
            graph.accepting.append(self._is_complete(match, event))
            self._matches.append(match)
            if len(graph) > MOST_NODES:
                raise TrellisError(
                    f"the conditions across variables tell more than {MOST_NODES:,} partial matches of "
                    f"{self.size:,} events apart",
                    "Use a shorter WITHIN, a partition such as `[id]`, or narrower conditions.",
                )
        return node

    # --- Going on ---------------------------------------------------------------------------------------------

    def _continuations(self, match: Match, event: int | None) -> list[tuple[int, int, Match]]:
        """Return the events with which a match goes on, with their variables and the matches that come of it."""
        registers = dict(match.registers)
        names = frozenset().union(*(self.progresses.next_variables(branch.progress) for branch in match.branches))
        found: list[tuple[int, int, Match]] = []
        for var in sorted(names, key=self.codes.__getitem__):
            steps = self._taken(match, registers, var, self._candidates(match, registers, var, event))
            found += steps if self.select is Select.ANY or event is None else islice(steps, 1)
        if self.select is Select.ANY or event is None or not found:
            return found
        first = min(step[0] for step in found)
        return [step for step in found if step[0] == first]

    def _candidates(
        self, match: Match, registers: Mapping[str, Register], var: str, event: int | None
    ) -> NDArray[np.intp]:
        begin, end = 0 if event is None else event + 1, self.size
        if event is not None and match.first is not None:
            end = min(end, self.until[match.first])
        if self.select is Select.CONTIGUOUS and event is not None:
            end = min(end, event + 2)
        if begin >= end:
            return np.empty(0, np.intp)
        candidates = np.zeros(self.size, np.bool_)
        candidates[begin:end] = self.usable[var][begin:end]
        if event is not None:
            candidates = self._in_time(match, var, event, candidates)
        return np.flatnonzero(self.conditions.may_take(var, registers, match.bound, candidates))

    def _in_time(self, match: Match, var: str, event: int, candidates: Mask) -> Mask:
        """Leave out the events of the same time that may not follow: only arms of an AND accept an equal time."""
        time, place = self.times[event], event + 1
        same = None
        while place < self.size and self.times[place] == time:
            if same is None:
                same = any(True for branch in match.branches for _ in self.progresses.steps(branch.progress, var, time))
            if not same:
                candidates[place] = False
            place += 1
        return candidates

    def _taken(
        self, match: Match, registers: dict[str, Register], var: str, candidates: NDArray[np.intp]
    ) -> Iterator[tuple[int, int, Match]]:
        """Yield the matches after each of the candidates, bound to a variable."""
        bound = match.bound | {var}
        remembers = any(var in one.variables for one in self.conditions.conjuncts)
        for event in candidates.tolist():
            time = self.times[event]
            known = registers
            if remembers and (var not in match.bound or var in registers):
                known = {**registers, var: self.conditions.remembered(registers.get(var), var, event)}
            first = (event if match.first is None else match.first) if self.span else None
            branches = {
                Branch(progress, branch.guards + guards)
                for branch in match.branches
                for progress, guards in self.progresses.steps(branch.progress, var, time)
            }
            left = [self._checked(branch, known, bound, first, event) for branch in branches]
            alive = frozenset(branch for branch in left if branch is not None)
            if alive:
                open_ = frozenset().union(*(self.progresses.open_variables(branch.progress) for branch in alive))
                needs = self.conditions.needs(open_, bound)
                remaining = frozenset((v, trim(m, needs[v])) for v, m in known.items() if v in needs)
                yield event, self.codes[var], Match(alive, bound, remaining, first)

    def _checked(
        self, branch: Branch, registers: Mapping[str, Register], bound: frozenset[str], first: int | None, last: int
    ) -> Branch | None:
        """Test what can be decided now; return the rest of the branch, or None if something does not hold."""
        open_ = self.progresses.open_variables(branch.progress)
        for one in self.late:
            if (
                self._asks(one, registers, bound)
                and _decided(one, registers, open_)
                and not self.conditions.holds(one, registers)
            ):
                return None
        undecided = []
        for guard in branch.guards:
            if not self._is_decidable(guard, registers, open_):
                undecided.append(guard)
            elif self._filled(guard, registers, first, last):
                return None
        return Branch(branch.progress, tuple(undecided))

    @staticmethod
    def _asks(one: Conjunct, registers: Mapping[str, Register], bound: frozenset[str]) -> bool:
        """Whether all its variables have events, and were remembered: what is not needed any more was asked before."""
        return one.variables <= bound and all(var in registers for var in one.variables)

    def _is_complete(self, match: Match, event: int) -> bool:
        """Whether a match, taken as it is, matches the whole pattern."""
        registers = dict(match.registers)
        endings = [(b.guards, guards) for b in match.branches for guards in self.progresses.endings(b.progress)]
        if not endings:
            return False
        for one in self.late:
            if self._asks(one, registers, match.bound) and not self.conditions.holds(one, registers):
                return False
        return any(
            not any(self._filled(guard, registers, match.first, event) for guard in inner + trailing)
            for inner, trailing in endings
        )

    # --- NOT --------------------------------------------------------------------------------------------------

    def _is_decidable(self, guard: TimeGuard, registers: Mapping[str, Register], open_: frozenset[str]) -> bool:
        if guard.after is None or guard.before is None:
            return False
        for one in self.conditions.conjuncts:
            if one.absent not in guard.absent:
                continue
            for var, which, nth in one.references:
                if var == one.absent or var not in open_:
                    continue
                register = registers.get(var)
                if register is None or not (
                    which is Which.FIRST or (which is Which.NTH and len(register.nth or ()) >= (nth or 1))
                ):
                    return False
        return True

    def _filled(self, guard: TimeGuard, registers: Mapping[str, Register], first: int | None, last: int) -> bool:
        """Whether an event that a NOT forbids lies between the times of its guard."""
        low = 0 if guard.after is None else bisect_right(self.times, guard.after)
        high = self.size if guard.before is None else bisect_left(self.times, guard.before)
        if self.span and first is not None:
            if guard.before is None:
                high = min(high, self.until[first])
            if guard.after is None:
                low = max(low, bisect_right(self.until, last))
        if low >= high:
            return False
        inside = np.zeros(self.size, np.bool_)
        inside[low:high] = True
        return any(
            bool(self.conditions.forbidden(var, registers, self.usable[var] & inside).any()) for var in guard.absent
        )


def _decided(one: Conjunct, registers: Mapping[str, Register], open_: frozenset[str]) -> bool:
    """Whether the events that a conjunct names by LAST(v) and v[k] are known."""
    for var, which, nth in one.references:
        if which is Which.LAST and var in open_:
            return False
        if which is Which.NTH and var in open_ and len(registers[var].nth or ()) < (nth or 1):
            return False
    return True
