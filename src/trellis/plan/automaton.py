"""The automaton of a pattern: its positions, and the steps and guards between them.

It is the only form in which a pattern leaves the plan. A state is what remains to be matched: see
`trellis.plan.remainders`. Two views are read off it: the `links` between positions, and the `chain` of a fixed
sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trellis.language import syntax as s
from trellis.plan.remainders import (
    Acceptance,
    LazyAutomaton,
    Leaf,
    Loop,
    Remainder,
    Transition,
    items_of,
    leaves_and_guards,
)
from trellis.plan.root import StepPolicies, compile_pattern

MAX_STATES = 256  # of a pattern with AND, whose states multiply
MOST_STATES = 4096  # of other patterns, which have hardly more than variables
MOST_POSITIONS = 64  # of a pattern that counts events of variables: more cost more than to remember a number


@dataclass(frozen=True, slots=True)
class Position:
    """A variable of the pattern that takes events: one, or with `kleene` several."""

    variable: str
    kleene: bool


@dataclass(frozen=True, slots=True)
class PositionLinks:
    """The steps between positions, by their numbers, and what NOT forbids between them.

    Attributes
    ----------
    variables
        The variable of each position, in the order of the pattern; one whose events are counted has several, one after
        another.
    steps
        For two positions that may follow one another, the variables that must not occur in between.
    firsts, lasts
        The positions at which a match may begin and end.
    before, after
        The variables that must not occur before the first and after the last event.
    """

    variables: tuple[str, ...]
    steps: Mapping[tuple[int, int], tuple[str, ...]]
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """The automaton of a pattern; its states are numbered from 0, the initial one.

    Attributes
    ----------
    positions
        The variables in the order of the pattern, each once.
    states, transitions, accepting
        The number of states, the transitions between them, and how a match may end.
    complete
        Whether all states are there; False where they are too many.
    concurrent
        Whether some events may come in any order: AND.
    repeated
        Whether a variable stands at several places of the pattern.
    root
        The whole pattern as a remainder, from which `LazyAutomaton` finds states beyond those that are here.
    composite
        Whether a NOT forbids a pattern of more than one event.
    policies
        Those of steps, by their numbers; the first, None, is that of SELECT.
    """

    positions: tuple[Position, ...]
    states: int
    transitions: tuple[Transition, ...]
    accepting: tuple[Acceptance, ...]
    complete: bool = True
    concurrent: bool = False
    repeated: bool = False
    root: Remainder = field(default=(), repr=False)
    composite: bool = False
    policies: tuple[s.Select | None, ...] = (None,)

    @property
    def worded(self) -> bool:
        """Whether a step has a policy of its own, or a variable is greedy or has an UNTIL."""
        return self.paced or any(leaf.until is not None for leaf in self._leaves)

    @property
    def paced(self) -> bool:
        """Whether a step has a policy of its own, or a variable is greedy."""
        return len(self.policies) > 1 or any(leaf.greedy for leaf in self._leaves)

    @property
    def _forbids(self) -> bool:
        """Whether a NOT forbids something, anywhere."""
        return any(one.guards for one in self.transitions) or any(one.guards for one in self.accepting)

    @property
    def _leaves(self) -> list[Leaf]:
        return [item for item in leaves_and_guards(self.root) if isinstance(item, Leaf)]

    @property
    def grouped(self) -> bool:
        """Whether a group is repeated."""
        return any(isinstance(item, Loop) for item, _ in items_of(self.root))

    def links(self) -> PositionLinks | None:
        """Return the steps between positions.

        None for AND, for repeated groups, for a variable at several places or of which very many events are counted,
        and where NOT depends on more than the variable: then positions do not tell what a match may go on with.
        """
        if self.concurrent or self.repeated or not self.complete or self.worded or self.composite or self.grouped:
            return None
        order = {position.variable: i for i, position in enumerate(self.positions)}
        places = sorted({(order[t.variable], t.target) for t in self.transitions})
        if len(places) > len(order) and (len(places) > MOST_POSITIONS or self._forbids):
            return None
        if len({(t.source, t.variable) for t in self.transitions}) < len(self.transitions):
            return None
        number = {(self.positions[variable].variable, target): i for i, (variable, target) in enumerate(places)}
        into: dict[int, set[int]] = {}
        for (_, target), i in number.items():
            into.setdefault(target, set()).add(i)
        to = [(t, number[t.variable, t.target]) for t in self.transitions]
        steps = {(source, i): t.absent for t, i in to for source in into.get(t.source, ())}
        firsts = {i: t.absent for t, i in to if t.source == 0}
        lasts = {position: a.absent for a in self.accepting for position in into[a.state]}
        before, after = set(firsts.values()), set(lasts.values())
        if len(before) > 1 or len(after) > 1:
            return None
        variables, ends = tuple(name for name, _ in number), (tuple(sorted(firsts)), tuple(sorted(lasts)))
        return PositionLinks(variables, dict(sorted(steps.items())), *ends, *before, *after)

    def is_preceded(self) -> bool:
        """Return whether something might be put before a match, with some events, or that is not known.

        A match and a longer one read the same variables, once the longer one has read what it has before: so two states
        go through the automaton together.
        """
        if not self.complete:
            return True
        ends = {one.state for one in self.accepting}
        longer = _together({(0, one.target) for one in self.transitions}, self._steps())
        return any(a in ends and b in ends for a, b in longer)

    def is_followed(self) -> bool:
        """Return whether something might be put after a match, with some events, or that is not known."""
        if not self.complete:
            return True
        ends = {one.state for one in self.accepting}
        back = ((one.target, one.source) for one in self.transitions)
        going_on = {one.target for one in self.transitions} & _reached(ends, back)
        return any(a in ends and b in going_on for a, b in _together({(0, 0)}, self._steps()))

    def forbids_behind(self) -> bool:
        """Return whether a NOT may forbid something behind an event with which a match may end."""
        ends = {one.state for one in self.accepting}
        behind = ends | _reached(ends, ((one.source, one.target) for one in self.transitions))
        at_end = any(one.guards for one in self.accepting)
        return at_end or any(one.guards and one.source in behind for one in self.transitions)

    def _steps(self) -> _Steps:
        """Return the variables that may be read in each state, each with the state behind it."""
        steps: _Steps = {}
        for one in self.transitions:
            steps.setdefault(one.source, []).append((one.variable, one.target))
        return steps

    def chain(self) -> tuple[tuple[str, ...], ...] | None:
        """Return the variables that NOT forbids around each position; None unless these are single events in a row.

        They are those before each position, and last those after the last position.
        """
        links = self.links()
        if links is None or any(position.kleene for position in self.positions):
            return None
        last = len(self.positions) - 1
        if list(links.steps) != [(i, i + 1) for i in range(last)] or (links.firsts, links.lasts) != ((0,), (last,)):
            return None
        return (links.before, *links.steps.values(), links.after)


_Steps = dict[int, list[tuple[str, int]]]


def _together(pairs: set[tuple[int, int]], steps: _Steps) -> Iterator[tuple[int, int]]:
    """Yield some pairs of states, and those that are reached from them by reading the same variables."""
    found, waiting = set(pairs), [*pairs]
    while waiting:
        a, b = waiting.pop()
        yield a, b
        for variable, target in steps.get(a, ()):
            for other, beside in steps.get(b, ()):
                if other == variable and (target, beside) not in found:
                    found.add((target, beside))
                    waiting.append((target, beside))


def _reached(states: set[int], steps: Iterable[tuple[int, int]]) -> set[int]:
    """Return the states to which one step or several lead from some."""
    leads: dict[int, set[int]] = {}
    for source, target in steps:
        leads.setdefault(source, set()).add(target)
    found, waiting = set[int](), [*states]
    while waiting:
        more = leads.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def build_automaton(pattern: s.Pattern) -> Automaton:
    """Return the automaton of a pattern."""
    policies = StepPolicies()
    root = compile_pattern(pattern, policies)
    leaves = [Position(item.variable, item.most != 1) for item in leaves_and_guards(root) if isinstance(item, Leaf)]
    positions = tuple(dict.fromkeys(leaves))
    concurrent = any(isinstance(node, s.And) for node in s.walk(pattern))
    composite = any(not isinstance(one, s.Single) for one in s.absent_patterns(pattern))
    lazy, most = LazyAutomaton(root), MAX_STATES if concurrent else MOST_STATES
    transitions: list[Transition] = []
    accepting: list[Acceptance] = []
    state = 0
    while state < len(lazy) <= most:
        transitions += lazy.transitions(state)
        accepting += lazy.endings(state)
        state += 1
    return Automaton(
        positions, min(len(lazy), most), tuple(transitions), tuple(accepting), len(lazy) <= most, concurrent,
        len(positions) < len(leaves), root, composite, tuple(policies),
    )  # fmt: skip
