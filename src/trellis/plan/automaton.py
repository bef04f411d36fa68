"""The automaton of a pattern: its positions, and the steps and guards between them.

It is the only form in which a pattern leaves the plan. A state is what remains to be matched. Reading an event as a
variable leads to what remains after it (a partial derivative of the pattern), so SEQ, OR, AND and Kleene variables need
no cases of their own further on. NOT leaves no trace but a guard on the transition, or on the acceptance, that crosses
its place. Two views are read off it: the `links` between positions, and the `chain` of a fixed sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import TypeAlias

from trellis.language import syntax as s

MAX_STATES = 256  # of a pattern with AND, whose states multiply
MOST_STATES = 4096  # of other patterns, which have hardly more than variables


@dataclass(frozen=True, slots=True)
class Guard:
    """A NOT: no event that fits one of `absent` between the last events of the variables `after` and what comes next.

    Of `after` those count that have events; without any, the guard begins where the window does.
    """

    absent: tuple[str, ...]
    after: tuple[str, ...]


def _absent(guards: tuple[Guard, ...]) -> tuple[str, ...]:
    return tuple(name for guard in guards for name in guard.absent)


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` to `target` by an event bound to `variable`.

    The event must be later than the last events of the variables `after`, as far as they have any; arms of an AND may
    take events of the same time. It closes `guards`.
    """

    source: int
    variable: str
    target: int
    guards: tuple[Guard, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def absent(self) -> tuple[str, ...]:
        """The variables that must not occur in between."""
        return _absent(self.guards)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A match may end in `state`; `guards` stay open to the end of the window."""

    state: int
    guards: tuple[Guard, ...] = ()

    @property
    def absent(self) -> tuple[str, ...]:
        """The variables that must not follow."""
        return _absent(self.guards)


# --- What remains of a pattern ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """A variable that takes at least `least` and at most `most` more events; None: any number.

    They are later than the variables `after`; `taken` says that it has its first event.
    """

    variable: str
    after: tuple[str, ...]
    least: int = 1
    most: int | None = 1
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Alternation:
    """An OR: one of its arms remains."""

    arms: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class Interleaving:
    """An AND: all of its arms remain, in any order of their events."""

    arms: tuple[Remainder, ...]


Item: TypeAlias = "Leaf | Guard | Alternation | Interleaving"
Remainder: TypeAlias = "tuple[Item, ...]"  # one after another
_Step = tuple[Leaf, tuple[Guard, ...], Remainder]  # the variable, the guards before it, what remains


def _compiled(pattern: s.Pattern, after: tuple[str, ...] = ()) -> Remainder:
    """Return a pattern that stands behind the variables `after`."""
    match pattern:
        case s.Single(var=var, optional=optional):
            return (Leaf(var, after, 0 if optional else 1),)
        case s.Kleene(var=var, least=least, most=most):
            return (Leaf(var, after, least, most),)
        case s.Absent(events=events):
            return (Guard(tuple(event.var for event in events), after),)
        case s.Or(arms=arms):
            return (Alternation(tuple(_compiled(arm, after) for arm in arms)),)
        case s.And(arms=arms):
            return (Interleaving(tuple(_compiled(arm, after) for arm in arms)),)
        case s.Seq(parts=parts):
            found: Remainder = ()
            for part in parts:
                found += _compiled(part, after)
                after = _lasts(part, after)
            return found
    raise AssertionError(pattern)


def _lasts(pattern: s.Pattern, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return the variables that may have the last event up to the end of a pattern, those `before` it included."""
    match pattern:
        case s.Single(var=var) | s.Kleene(var=var):
            own: tuple[str, ...] = (var,)
        case s.Absent():
            return before
        case s.Seq(parts=parts):
            for part in parts:
                before = _lasts(part, before)
            return before
        case s.Or(arms=arms) | s.And(arms=arms):
            own = tuple(dict.fromkeys(var for arm in arms for var in _lasts(arm, ())))
        case _:
            raise AssertionError(pattern)
    return (*before, *own) if s.may_be_empty(pattern) else own


def _steps(rest: Remainder) -> list[_Step]:
    """Return every event that may come next."""
    if not rest:
        return []
    head, tail = rest[0], rest[1:]
    steps = [(leaf, guards, after + tail) for leaf, guards, after in _head_steps(head)]
    for skipped in _head_endings(head):
        steps += [(leaf, skipped + guards, after) for leaf, guards, after in _steps(tail)]
    return steps


def _head_steps(head: Item) -> list[_Step]:
    match head:
        case Leaf(least=least, most=most):
            left = None if most is None else most - 1
            again = replace(head, least=max(least - 1, 0), most=left, taken=True)
            return [(head, (), () if left == 0 else (again,))]
        case Alternation(arms=arms):
            return [step for arm in arms for step in _steps(arm)]
        case Interleaving(arms=arms):
            return [
                (leaf, guards, _joined((*arms[:i], after, *arms[i + 1 :])))
                for i, arm in enumerate(arms)
                for leaf, guards, after in _steps(arm)
            ]
        case Guard():
            return []


def _joined(arms: tuple[Remainder, ...]) -> Remainder:
    left = tuple(arm for arm in arms if arm)
    if not left:
        return ()
    return left[0] if len(left) == 1 else (Interleaving(left),)


def _endings(rest: Remainder) -> list[tuple[Guard, ...]]:
    """Return, for each way in which nothing more is needed, the guards that stay open."""
    ways = product(*(_head_endings(head) for head in rest))
    return list(dict.fromkeys(sum(way, ()) for way in ways))


def _head_endings(head: Item) -> list[tuple[Guard, ...]]:
    match head:
        case Leaf(least=least):
            return [] if least else [()]
        case Guard():
            return [(head,)]
        case Alternation(arms=arms):
            return [way for arm in arms for way in _endings(arm)]
        case Interleaving(arms=arms):
            return list(dict.fromkeys(sum(way, ()) for way in product(*(_endings(arm) for arm in arms))))


def leaves_and_guards(rest: Remainder) -> Iterator[Leaf | Guard]:
    """Yield the variables and the NOTs of what remains."""
    for item in rest:
        if isinstance(item, Leaf | Guard):
            yield item
        else:
            for arm in item.arms:
                yield from leaves_and_guards(arm)


class LazyAutomaton:
    """The automaton of a pattern, whose states are made and numbered as they are reached."""

    def __init__(self, root: Remainder) -> None:
        self._rests, self._numbers = [root], {root: 0}
        self.transitions, self.endings = cache(self._transitions), cache(self._endings)
        self.open, self.timed = cache(self._open), cache(self._timed)

    def __len__(self) -> int:
        return len(self._rests)

    def remainder(self, state: int) -> Remainder:
        """Return the rest of the pattern in a state."""
        return self._rests[state]

    def _transitions(self, state: int) -> tuple[Transition, ...]:
        """Return the transitions that leave a state."""
        found = []
        for leaf, guards, rest in _steps(self._rests[state]):
            if rest not in self._numbers:
                self._numbers[rest] = len(self._rests)
                self._rests.append(rest)
            after = (leaf.variable,) if leaf.taken else leaf.after
            found.append(Transition(state, leaf.variable, self._numbers[rest], guards, after))
        return tuple(dict.fromkeys(found))

    def _endings(self, state: int) -> tuple[Acceptance, ...]:
        """Return the ways in which a match may end in a state."""
        return tuple(Acceptance(state, guards) for guards in _endings(self._rests[state]))

    def _open(self, state: int) -> frozenset[str]:
        """Return the variables that may still take an event."""
        return frozenset(item.variable for item in leaves_and_guards(self._rests[state]) if isinstance(item, Leaf))

    def _timed(self, state: int) -> frozenset[str]:
        """Return the variables for whose last events the rest of a match still asks when they were."""
        return frozenset(
            name
            for item in leaves_and_guards(self._rests[state])
            for name in ((item.variable,) if isinstance(item, Leaf) and item.taken else item.after)
        )


# --- The automaton ----------------------------------------------------------------------------------------------


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
    """

    positions: tuple[Position, ...]
    states: int
    transitions: tuple[Transition, ...]
    accepting: tuple[Acceptance, ...]
    complete: bool = True
    concurrent: bool = False
    repeated: bool = False
    root: Remainder = field(default=(), repr=False)

    def links(self) -> PositionLinks | None:
        """Return the steps between positions.

        None for AND, for a variable at several places or whose events are counted, and where NOT depends on more than
        the position: then positions alone do not tell what a match may go on with.
        """
        if self.concurrent or self.repeated or not self.complete:
            return None
        number = {position.variable: i for i, position in enumerate(self.positions)}
        into: dict[int, set[int]] = {}
        for transition in self.transitions:
            into.setdefault(transition.target, set()).add(number[transition.variable])
        if len({(t.variable, t.target) for t in self.transitions}) > len(self.positions):
            return None
        if len({(t.source, t.variable) for t in self.transitions}) < len(self.transitions):
            return None
        steps = {(source, number[t.variable]): t.absent for t in self.transitions for source in into.get(t.source, ())}
        firsts = {number[t.variable]: t.absent for t in self.transitions if t.source == 0}
        lasts = {position: a.absent for a in self.accepting for position in into[a.state]}
        before, after = set(firsts.values()), set(lasts.values())
        if len(before) > 1 or len(after) > 1:
            return None
        return PositionLinks(dict(sorted(steps.items())), tuple(sorted(firsts)), tuple(sorted(lasts)), *before, *after)

    def reports_all(self) -> bool:
        """Return whether nothing can ever be put before or after a match, whatever the events: all are unextendable.

        A match and a longer one read the same variables, once the longer one has read what it has before: so two states
        go through the automaton together. False where it is not known.
        """
        if not self.complete:
            return False
        steps: dict[int, list[tuple[str, int]]] = {}
        for one in self.transitions:
            steps.setdefault(one.source, []).append((one.variable, one.target))
        ends = {one.state for one in self.accepting}
        begun = {one.target for one in self.transitions}
        longer_before = _together({(0, state) for state in begun}, steps)
        if any(a in ends and b in ends for a, b in longer_before):
            return False
        going_on = {a for a in begun if any(target in ends for target in _reached(a, steps))}
        return not any(a in ends and b in going_on for a, b in _together({(0, 0)}, steps))

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


def _together(pairs: set[tuple[int, int]], steps: _Steps) -> set[tuple[int, int]]:
    """Return the pairs of states that are reached from some by reading the same variables."""
    found, waiting = set(pairs), [*pairs]
    while waiting:
        a, b = waiting.pop()
        for variable, target in steps.get(a, ()):
            for other, beside in steps.get(b, ()):
                if other == variable and (target, beside) not in found:
                    found.add((target, beside))
                    waiting.append((target, beside))
    return found


def _reached(state: int, steps: _Steps) -> set[int]:
    """Return the states that are reached from one by reading something."""
    found: set[int] = set()
    waiting = [state]
    while waiting:
        for _, target in steps.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def build_automaton(pattern: s.Pattern) -> Automaton:
    """Return the automaton of a pattern."""
    root = _compiled(pattern)
    leaves = [Position(item.variable, item.most != 1) for item in leaves_and_guards(root) if isinstance(item, Leaf)]
    positions = tuple(dict.fromkeys(leaves))
    concurrent = any(isinstance(node, s.And) for node in s.walk(pattern))
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
        len(positions) < len(leaves), root,
    )  # fmt: skip
