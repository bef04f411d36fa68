"""The automaton of a pattern: its positions, and the steps and guards between them.

It is the only form in which a pattern leaves the plan. A state is what remains to be matched. Reading an event as a
variable leads to what remains after it (a partial derivative of the pattern), so SEQ, OR, AND, Kleene variables and
groups need no cases of their own further on. NOT leaves no trace but a guard on the transition, or on the acceptance,
that crosses its place. Two views are read off it: the `links` between positions, and the `chain` of a fixed sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from itertools import product
from typing import NamedTuple, TypeAlias

from trellis.language import syntax as s
from trellis.language.bound import until_name
from trellis.language.groups import is_repeated
from trellis.language.printer import absent_name

MAX_STATES = 256  # of a pattern with AND, whose states multiply
MOST_STATES = 4096  # of other patterns, which have hardly more than variables


class Letter(NamedTuple):
    """A variable whose event begins an iteration of the `begins` innermost groups around it."""

    variable: str
    begins: int = 0


class OfBefore(NamedTuple):
    """A variable of the iteration before, of the group with a number."""

    group: int
    variable: str


Names: TypeAlias = "tuple[str | OfBefore, ...]"


class UntilEvent(IntEnum):
    """Whether a guard is an UNTIL, and of which event of its variable."""

    NO = 0
    FIRST = 1
    AGAIN = 2


@dataclass(frozen=True, slots=True)
class Guard:
    """A NOT: no event that fits one of `absent` between the last events of the variables `after` and what comes next.

    Of `after` those count that have events; without any, the guard begins where the window does. With `until` it is an
    UNTIL: none from behind the event before (for a `FIRST` event of the variable: from it) to the new one, inclusive.

    `groups` are the numbers of the repeated groups around it; `closing` says that the transition begins another
    iteration of one of them, so that conditions speak of the iteration before.
    """

    absent: tuple[str, ...]
    after: Names
    until: UntilEvent = UntilEvent.NO
    groups: tuple[int, ...] = ()
    closing: bool = False


def _absent(guards: tuple[Guard, ...]) -> tuple[str, ...]:
    return tuple(name for guard in guards if guard.until is UntilEvent.NO for name in guard.absent)


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` to `target` by an event bound to `variable`.

    The event must be later than the last events of the variables `after`, as far as they have any; arms of an AND may
    take events of the same time. It closes `guards`.

    `step` is the number of its policy among those of the automaton; `left` are the greedy variables that it leaves, as
    they would take the event; `begun` the numbers of the groups of which it begins an iteration, outermost first.
    """

    source: int
    variable: str
    target: int
    guards: tuple[Guard, ...] = ()
    after: tuple[str, ...] = ()
    step: int = 0
    left: tuple[Letter, ...] = ()
    begun: tuple[int, ...] = ()

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

    They are later than the variables `after`; `taken` says that it has its first event. `again` is the number of the
    policy of its repetition; `until` the variable of its UNTIL.
    """

    variable: str
    after: Names
    least: int = 1
    most: int | None = 1
    taken: bool = False
    again: int = 0
    greedy: bool = False
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Alternation:
    """An OR: one of its arms remains."""

    arms: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class Interleaving:
    """An AND: all of its arms remain, in any order of their events."""

    arms: tuple[Remainder, ...]


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A part with a policy before it, whose first event is still to come; `step` is the number of the policy."""

    step: int
    rest: Remainder


@dataclass(frozen=True, slots=True)
class Loop:
    """A repeated group of which at least `least` and at most `most` iterations are still to come; None: any number.

    `first` is the next iteration, `again` each one behind it; `step` is the number of the policy of the next one's
    first event, `again_step` that of the others.
    """

    group: int
    first: Remainder
    again: Remainder
    least: int
    most: int | None
    step: int = 0
    again_step: int = 0


Item: TypeAlias = "Leaf | Guard | Alternation | Interleaving | PartEntry | Loop"
Remainder: TypeAlias = "tuple[Item, ...]"  # one after another


@dataclass(frozen=True, slots=True)
class _Next:
    """An event that may come next: its variable, the guards before it, what remains, its policy, what it leaves.

    `begun` are the groups of which it begins an iteration.
    """

    leaf: Leaf
    guards: tuple[Guard, ...]
    rest: Remainder
    step: int = 0
    left: tuple[Letter, ...] = ()
    begun: tuple[int, ...] = ()


class _Policies(list[s.Select | None]):
    """The policies of steps by their numbers; None, the first, is that of SELECT. Groups are numbered here, too."""

    def __init__(self) -> None:
        super().__init__([None])
        self._known: dict[int, int] = {}
        self._groups: dict[int, int] = {}

    def number(self, node: s.Kleene | s.PolicyStep | s.Group) -> int:
        """Return the number of the step that a node's policy is of."""
        if node.policy is None:
            return 0
        if id(node) not in self._known:
            self._known[id(node)] = len(self)
            self.append(node.policy)
        return self._known[id(node)]

    def group(self, node: s.Group) -> int:
        """Return the number of a repeated group."""
        return self._groups.setdefault(id(node), len(self._groups))


def _compiled(pattern: s.Pattern, policies: _Policies, after: Names = (), groups: tuple[int, ...] = ()) -> Remainder:
    """Return a pattern that stands behind the variables `after` and inside of groups."""
    match pattern:
        case s.Single(var=var, optional=optional):
            return (Leaf(var, after, 0 if optional else 1),)
        case s.Kleene(var=var, least=least, most=most, greedy=greedy):
            until = None if pattern.until is None else until_name(var)
            return (Leaf(var, after, least, most, False, policies.number(pattern), greedy, until),)
        case s.PolicyStep(pattern=inner):
            step = policies.number(pattern)
            return (PartEntry(step, _compiled(inner, policies, after, groups)),)
        case s.Absent(events=events):
            return (Guard(tuple(map(absent_name, events)), after, groups=groups),)
        case s.Or(arms=arms):
            return (Alternation(tuple(_compiled(arm, policies, after, groups) for arm in arms)),)
        case s.And(arms=arms):
            return (Interleaving(tuple(_compiled(arm, policies, after, groups) for arm in arms)),)
        case s.Group():
            return _compiled_group(pattern, policies, after, groups)
        case s.Seq(parts=parts):
            found: Remainder = ()
            for part in parts:
                found += _compiled(part, policies, after, groups)
                after = _lasts(part, after)
            return found
    raise AssertionError(pattern)


def _compiled_group(group: s.Group, policies: _Policies, after: Names, groups: tuple[int, ...]) -> Remainder:
    """Return a group: an optional part, or a loop, each of whose iterations is later than the one before."""
    if not is_repeated(group):
        return (Alternation((_compiled(group.pattern, policies, after, groups), ())),)
    number = policies.group(group)
    inside = (*groups, number)
    first = _compiled(group.pattern, policies, after, inside)
    before = tuple(OfBefore(number, str(name)) for name in _lasts(group.pattern, ()))
    again = _compiled(group.pattern, policies, before, inside)
    least = 0 if s.may_be_empty(group.pattern) else group.least  # an iteration without events leaves no trace
    return (Loop(number, first, again, least, group.most, 0, policies.number(group)),)


def _lasts(pattern: s.Pattern, before: Names) -> Names:
    """Return the variables that may have the last event up to the end of a pattern, those `before` it included."""
    match pattern:
        case s.Single(var=var) | s.Kleene(var=var):
            own: Names = (var,)
        case s.Absent():
            return before
        case s.Seq(parts=parts):
            for part in parts:
                before = _lasts(part, before)
            return before
        case s.Or(arms=arms) | s.And(arms=arms):
            own = tuple(dict.fromkeys(var for arm in arms for var in _lasts(arm, ())))
        case s.PolicyStep(pattern=inner):
            return _lasts(inner, before)
        case s.Group(pattern=inner):
            own = _lasts(inner, ())
        case _:
            raise AssertionError(pattern)
    return (*before, *own) if s.may_be_empty(pattern) else own


def _steps(rest: Remainder) -> list[_Next]:
    """Return every event that may come next."""
    if not rest:
        return []
    head, tail = rest[0], rest[1:]
    steps = [replace(one, rest=one.rest + tail) for one in _head_steps(head)]
    for skipped, left in _head_endings(head):
        for one in _steps(tail):
            steps.append(replace(one, guards=_closed(skipped, one.begun) + one.guards, left=left + one.left))
    return steps


def _closed(guards: tuple[Guard, ...], begun: tuple[int, ...]) -> tuple[Guard, ...]:
    """Return guards that are open when iterations begin; those inside of these groups are of the iteration before."""
    return tuple(replace(guard, closing=True) if {*guard.groups} & {*begun} else guard for guard in guards)


def _head_steps(head: Item) -> list[_Next]:
    match head:
        case Leaf():
            return [_taken(head)]
        case PartEntry(step=step, rest=rest):
            return [replace(one, step=one.step or step) for one in _steps(rest)]
        case Alternation(arms=arms):
            return [step for arm in arms for step in _steps(arm)]
        case Interleaving(arms=arms):
            return [
                replace(one, rest=_joined((*arms[:i], one.rest, *arms[i + 1 :])))
                for i, arm in enumerate(arms)
                for one in _steps(arm)
            ]
        case Loop():
            return _iteration(head)
        case Guard():
            return []


def _iteration(loop: Loop) -> list[_Next]:
    """Return the events that may begin the next iteration of a group."""
    most = None if loop.most is None else loop.most - 1
    behind = replace(loop, first=loop.again, least=max(loop.least - 1, 0), most=most, step=loop.again_step)
    found, rest = [], () if most == 0 else (behind,)
    for one in _steps(loop.first):
        left = tuple(Letter(name, begins + 1) for name, begins in one.left)
        begun, step = (loop.group, *one.begun), one.step or loop.step
        found.append(replace(one, rest=one.rest + rest, begun=begun, step=step, left=left))
    return found


def _taken(leaf: Leaf) -> _Next:
    """Return the step by which a variable takes an event."""
    left = None if leaf.most is None else leaf.most - 1
    again = replace(leaf, least=max(leaf.least - 1, 0), most=left, taken=True)
    kind = UntilEvent.AGAIN if leaf.taken else UntilEvent.FIRST
    guards = () if leaf.until is None else (Guard((leaf.until,), (), kind),)
    return _Next(leaf, guards, () if left == 0 else (again,), leaf.again if leaf.taken else 0)


def _joined(arms: tuple[Remainder, ...]) -> Remainder:
    left = tuple(arm for arm in arms if arm)
    if not left:
        return ()
    return left[0] if len(left) == 1 else (Interleaving(left),)


_Ending = tuple[tuple[Guard, ...], tuple[Letter, ...]]  # the guards that stay open, and the greedy variables that end


def _endings(rest: Remainder) -> list[_Ending]:
    """Return the ways in which nothing more is needed."""
    return _together_ended([_head_endings(head) for head in rest])


def _together_ended(ways: list[list[_Ending]]) -> list[_Ending]:
    found = ((sum((g for g, _ in way), ()), sum((left for _, left in way), ())) for way in product(*ways))
    return list(dict.fromkeys(found))


def _head_endings(head: Item) -> list[_Ending]:
    match head:
        case Leaf(least=least):
            return [] if least else [((), (Letter(head.variable),) if head.greedy else ())]
        case Guard():
            return [((head,), ())]
        case Loop(least=least):
            return [] if least else [((), ())]
        case PartEntry(rest=rest):
            return _endings(rest)
        case Alternation(arms=arms):
            return [way for arm in arms for way in _endings(arm)]
        case Interleaving(arms=arms):
            return _together_ended([_endings(arm) for arm in arms])


def items_of(rest: Remainder, outer: Loop | None = None) -> Iterator[tuple[Loop | Leaf | Guard, Loop | None]]:
    """Yield the loops, the variables and the NOTs of what remains, each with the outermost loop around it."""
    for item in rest:
        if isinstance(item, Leaf | Guard):
            yield item, outer
        elif isinstance(item, Loop):
            yield item, outer
            for body in (item.first, item.again if item.most != 1 else ()):
                yield from items_of(body, outer or item)
        elif isinstance(item, PartEntry):
            yield from items_of(item.rest, outer)
        else:
            for arm in item.arms:
                yield from items_of(arm, outer)


def leaves_and_guards(rest: Remainder) -> Iterator[Leaf | Guard]:
    """Yield the variables and the NOTs of what remains."""
    return (item for item, _ in items_of(rest) if not isinstance(item, Loop))


def _after(names: Names, begun: tuple[int, ...]) -> tuple[str, ...]:
    """Return the variables that an event must be later than.

    Those of the iteration before count for the event that begins the next: all others of that are later anyway.
    """
    plain = (name.variable if isinstance(name, OfBefore) else name for name in names
             if not isinstance(name, OfBefore) or name.group in begun)  # fmt: skip
    return tuple(dict.fromkeys(plain))


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
        for one in _steps(self._rests[state]):
            if one.rest not in self._numbers:
                self._numbers[one.rest] = len(self._rests)
                self._rests.append(one.rest)
            leaf, target = one.leaf, self._numbers[one.rest]
            after = (leaf.variable,) if leaf.taken else _after(leaf.after, one.begun)
            guards = tuple(replace(guard, after=_after(guard.after, one.begun)) for guard in one.guards)
            found.append(Transition(state, leaf.variable, target, guards, after, one.step, one.left, one.begun))
        return tuple(dict.fromkeys(found))

    def _endings(self, state: int) -> tuple[Acceptance, ...]:
        """Return the ways in which a match may end in a state."""
        ways = [
            [replace(one, after=_after(one.after, ())) for one in guards] for guards, _ in _endings(self._rests[state])
        ]
        return tuple(Acceptance(state, guards) for guards in dict.fromkeys(map(tuple, ways)))

    def _open(self, state: int) -> frozenset[str]:
        """Return the variables that may still take an event."""
        return frozenset(item.variable for item in leaves_and_guards(self._rests[state]) if isinstance(item, Leaf))

    def _timed(self, state: int) -> frozenset[str]:
        """Return the variables for whose last events the rest of a match still asks when they were."""
        return frozenset(
            name.variable if isinstance(name, OfBefore) else name
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
        leaves = (item for item in leaves_and_guards(self.root) if isinstance(item, Leaf))
        return len(self.policies) > 1 or any(leaf.greedy or leaf.until is not None for leaf in leaves)

    @property
    def grouped(self) -> bool:
        """Whether a group is repeated."""
        return any(isinstance(item, Loop) for item, _ in items_of(self.root))

    def links(self) -> PositionLinks | None:
        """Return the steps between positions.

        None for AND, for repeated groups, for a variable at several places or whose events are counted, and where NOT
        depends on more than the position: then positions alone do not tell what a match may go on with.
        """
        if self.concurrent or self.repeated or not self.complete or self.worded or self.composite or self.grouped:
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
    policies = _Policies()
    root = _compiled(pattern, policies)
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
