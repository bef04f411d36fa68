"""The automaton of a pattern: its states, and which variable leads from one to the next.

It is the only form in which a pattern leaves the plan. A state is what remains to be matched. Reading an event as a
variable leads to what remains after it (a partial derivative of the pattern), so SEQ, OR, AND and Kleene variables need
no cases of their own further on. NOT leaves no trace but a guard on the transition, or on the acceptance, that crosses
its place. Two views are read off it: the `links` between positions, and the `chain` of a fixed sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from trellis.language import syntax as s

MAX_STATES = 256  # of a pattern with AND, whose states multiply
MOST_STATES = 4096  # of other patterns, which have hardly more than variables


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` to `target` by an event bound to `variable`; `absent` must not occur in between."""

    source: int
    variable: str
    target: int
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A trend may end in `state`, if nothing of `absent` follows."""

    state: int
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """A variable of the pattern that takes events: one, or with `kleene` any number from one on."""

    variable: str
    kleene: bool


@dataclass(frozen=True, slots=True)
class PositionLinks:
    """Which positions may follow one another, by their numbers, and what NOT forbids between them.

    Attributes
    ----------
    steps
        For two positions that may follow one another, the variables that must not occur in between.
    firsts, lasts
        The positions at which a match may begin and end.
    before, after
        The variables that must not occur before the first and after the last event.
    """

    steps: Mapping[tuple[int, int], tuple[str, ...]]
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """The states of a pattern, numbered from 0, the initial one.

    Attributes
    ----------
    positions
        The variables in the order of the pattern, each once.
    states, transitions, accepting
        How many states there are, and what leads from one to the next and ends a match.
    complete
        Whether all states are there; False where they are too many.
    concurrent
        Whether some events may come in any order: AND.
    repeated
        Whether a variable stands at several places of the pattern.
    """

    positions: tuple[Position, ...]
    states: int
    transitions: tuple[Transition, ...]
    accepting: tuple[Acceptance, ...]
    complete: bool = True
    concurrent: bool = False
    repeated: bool = False

    def links(self) -> PositionLinks | None:
        """Return the steps between positions.

        None for AND, for a variable at several places, and where NOT at an edge depends on the position there: then
        positions alone do not tell what a match may go on with.
        """
        if self.concurrent or self.repeated or not self.complete:
            return None
        number = {position.variable: i for i, position in enumerate(self.positions)}
        into: dict[int, set[int]] = {}
        for transition in self.transitions:
            into.setdefault(transition.target, set()).add(number[transition.variable])
        steps = {(source, number[t.variable]): t.absent for t in self.transitions for source in into.get(t.source, ())}
        firsts = {number[t.variable]: t.absent for t in self.transitions if t.source == 0}
        lasts = {position: a.absent for a in self.accepting for position in into[a.state]}
        before, after = set(firsts.values()), set(lasts.values())
        if len(before) > 1 or len(after) > 1:
            return None
        return PositionLinks(dict(sorted(steps.items())), tuple(sorted(firsts)), tuple(sorted(lasts)), *before, *after)

    def chain(self) -> tuple[tuple[str, ...], ...] | None:
        """Return what NOT forbids before each position and after the last; None if these are not single events."""
        links = self.links()
        if links is None or any(position.kleene for position in self.positions):
            return None
        if list(links.steps) != [(i, i + 1) for i in range(len(self.positions) - 1)]:
            return None
        return (links.before, *links.steps.values(), links.after)


# What remains of a pattern: a tuple of these, one after another.
@dataclass(frozen=True, slots=True)
class _Loop:
    """A Kleene variable that has its first event."""

    var: str


@dataclass(frozen=True, slots=True)
class _All:
    """What remains of an AND: one remainder an arm."""

    arms: tuple[_Rest, ...]


_Rest = tuple["s.Pattern | _Loop | _All", ...]
_Step = tuple[str, tuple[str, ...], _Rest]  # variable, absent before it, what remains


def build_automaton(pattern: s.Pattern) -> Automaton:
    """Return the automaton of a pattern."""
    leaves = list(_leaves(pattern))
    positions = tuple(dict.fromkeys(leaves))
    repeated = len(positions) < len(leaves)
    concurrent = any(isinstance(node, s.And) for node in s.walk(pattern))
    start: _Rest = (pattern,)
    numbers: dict[_Rest, int] = {start: 0}
    queue = [start]
    transitions: list[Transition] = []
    accepting: list[Acceptance] = []
    while queue:
        state = queue.pop(0)
        for absent in _endings(state):
            accepting.append(Acceptance(numbers[state], absent))
        for variable, absent, rest in _steps(state):
            if rest not in numbers:
                if len(numbers) >= (MAX_STATES if concurrent else MOST_STATES):
                    found = len(numbers), tuple(transitions), tuple(accepting)
                    return Automaton(positions, *found, complete=False, concurrent=concurrent, repeated=repeated)
                numbers[rest] = len(numbers)
                queue.append(rest)
            transitions.append(Transition(numbers[state], variable, numbers[rest], absent))
    found = len(numbers), tuple(dict.fromkeys(transitions)), tuple(dict.fromkeys(accepting))
    return Automaton(positions, *found, concurrent=concurrent, repeated=repeated)


def _leaves(pattern: s.Node) -> Iterator[Position]:
    """Yield the places at which the pattern takes events."""
    if isinstance(pattern, s.Single | s.Kleene):
        yield Position(pattern.var, isinstance(pattern, s.Kleene))
    elif not isinstance(pattern, s.Absent):
        for child in s.children(pattern):
            yield from _leaves(child)


def _steps(rest: _Rest) -> list[_Step]:
    """Return every event that may come next."""
    if not rest:
        return []
    head, tail = rest[0], rest[1:]
    steps = [(variable, absent, after + tail) for variable, absent, after in _head_steps(head)]
    for skipped in _head_endings(head):
        steps += [(variable, skipped + absent, after) for variable, absent, after in _steps(tail)]
    return steps


def _head_steps(head: s.Pattern | _Loop | _All) -> list[_Step]:
    match head:
        case s.Single(var=var):
            return [(var, (), ())]
        case s.Kleene(var=var) | _Loop(var=var):
            return [(var, (), (_Loop(var),))]
        case s.Seq(parts=parts):
            return _steps(parts)
        case s.Or(arms=arms):
            return [step for arm in arms for step in _steps((arm,))]
        case s.And(arms=arms):
            return _head_steps(_All(tuple((arm,) for arm in arms)))
        case _All(arms=rests):
            return [
                (variable, absent, _joined((*rests[:i], after, *rests[i + 1 :])))
                for i, rest in enumerate(rests)
                for variable, absent, after in _steps(rest)
            ]
        case _:
            return []


def _joined(arms: tuple[_Rest, ...]) -> _Rest:
    left = tuple(arm for arm in arms if arm)
    if not left:
        return ()
    return left[0] if len(left) == 1 else (_All(left),)


def _endings(rest: _Rest) -> list[tuple[str, ...]]:
    """Return, for each way in which nothing more is needed, what must be absent for it."""
    ways = product(*(_head_endings(head) for head in rest))
    return list(dict.fromkeys(sum(way, ()) for way in ways))


def _head_endings(head: s.Pattern | _Loop | _All) -> list[tuple[str, ...]]:
    match head:
        case _Loop():
            return [()]
        case s.Absent(events=events):
            return [tuple(e.var for e in events)]
        case s.Seq(parts=parts):
            return _endings(parts)
        case s.Or(arms=arms):
            return [way for arm in arms for way in _head_endings(arm)]
        case _All(arms=rests):
            return list(dict.fromkeys(sum(way, ()) for way in product(*(_endings(r) for r in rests))))
        case _:
            return []
