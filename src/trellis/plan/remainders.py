"""Remainders of patterns: what remains to be matched, which events may come next, and what remains after each.

A remainder is a partial derivative of a pattern. Reading an event as a variable leads from one to another, so that SEQ,
OR, AND, Kleene variables and groups need no cases of their own further on. NOT leaves no trace but a guard on the
transition, or on the acceptance, that crosses its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias


class Letter(NamedTuple):
    """A variable whose event begins an iteration of the `begins` innermost groups around it."""

    variable: str
    begins: int = 0


class PreviousIteration(NamedTuple):
    """A variable of the iteration before, of the group with a number."""

    group: int
    variable: str


Names: TypeAlias = "tuple[str | PreviousIteration, ...]"


class Leaving(IntEnum):
    """The kinds of questions that a transition has about a greedy letter.

    Where it leaves the letter: that it could take no event before, nor the event itself; where the letter waits in
    another arm of an AND: none before, or none at an earlier time. `TOGETHER`: the event has the time of the last one;
    `NEVER`: it is not taken, but a step can take it for policies.
    """

    LEAVES = 0
    WAITS = 1
    WAITS_IN_TIE = 2
    TOGETHER = 3
    NEVER = 4


class LeftLetter(NamedTuple):
    """A greedy letter, and the question that a transition has about it."""

    letter: Letter
    kind: Leaving = Leaving.LEAVES


class Watch(IntEnum):
    """The events that a greedy variable could have taken since its last one while other arms of an AND took theirs.

    `TIED`: none but perhaps at the time of the last event; `SOME`: it may not be left. Where it has no last event, that
    of the part before counts; without any, it is `UNASKED`.
    """

    NOTHING = 0
    TIED = 1
    SOME = 2
    UNASKED = 3


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
    iteration of one of them, so that conditions speak of the iteration before. A `PreviousIteration` in `after` is of
    the iteration before that of the NOT, as it has been since that began.
    """

    absent: tuple[str, ...]
    after: Names
    until: UntilEvent = UntilEvent.NO
    groups: tuple[int, ...] = ()
    closing: bool = False


def absent_names(guards: tuple[Guard, ...]) -> tuple[str, ...]:
    """Return the variables that guards forbid."""
    return tuple(name for guard in guards if guard.until is UntilEvent.NO for name in guard.absent)


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` to `target` by an event bound to `variable`.

    The event must be later than the last events of the variables `after`, as far as they have any; arms of an AND may
    take events of the same time. It closes `guards`.

    `step` is the number of its policy among those of the automaton; `left` are the greedy variables that it leaves, or
    that wait, as they would take the event; `begun` the numbers of the groups of which it begins an iteration,
    outermost first.
    """

    source: int
    variable: str
    target: int
    guards: tuple[Guard, ...] = ()
    after: tuple[str, ...] = ()
    step: int = 0
    left: tuple[LeftLetter, ...] = ()
    begun: tuple[int, ...] = ()

    @property
    def absent(self) -> tuple[str, ...]:
        """The variables that must not occur in between."""
        return absent_names(self.guards)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A match may end in `state`; `guards` stay open to the end of the window."""

    state: int
    guards: tuple[Guard, ...] = ()

    @property
    def absent(self) -> tuple[str, ...]:
        """The variables that must not follow."""
        return absent_names(self.guards)


# --- What remains of a pattern ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """A variable that takes at least `least` and at most `most` more events; None: any number.

    They are later than the variables `after`; `taken` says that it has its first event. `again` is the number of the
    policy of its repetition; `until` the variable of its UNTIL; `watch` is of one that is greedy.
    """

    variable: str
    after: Names
    least: int = 1
    most: int | None = 1
    taken: bool = False
    again: int = 0
    greedy: bool = False
    until: str | None = None
    watch: Watch = Watch.NOTHING

    @property
    def is_over(self) -> bool:
        """Whether it takes no more events, and needs none."""
        return self.most == 0 and not self.least


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
    left: tuple[LeftLetter, ...] = ()
    begun: tuple[int, ...] = ()


def _steps(rest: Remainder) -> list[_Next]:
    """Return every event that may come next."""
    if not rest:
        return []
    head, tail = rest[0], rest[1:]
    behind = marked(tail, Watch.NOTHING)
    steps = [replace(one, rest=one.rest + behind) for one in _head_steps(head)]
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
            return [] if head.most == 0 else [_taken(head)]
        case PartEntry(step=step, rest=rest):
            return [replace(one, step=one.step or step) for one in _steps(rest)]
        case Alternation(arms=arms):
            return [step for arm in arms for step in _steps(arm)]
        case Interleaving(arms=arms):
            return [
                replace(
                    one, rest=_joined((*way.rest[:i], one.rest, *way.rest[i:])), guards=one.guards + way.guards,
                    left=one.left + way.left,
                )
                for i, arm in enumerate(arms)
                for one in _steps(arm)
                for way in _each([_of_next(other, _leaf_waiting) for other in (*arms[:i], *arms[i + 1 :])])
            ]  # fmt: skip
        case Loop():
            return _iteration(head)
        case Guard():
            return []


class _Way(NamedTuple):
    """A way in which a rest, or several, may wait while others take an event: what is asked then, and what remains."""

    guards: tuple[Guard, ...]
    left: tuple[LeftLetter, ...]
    rest: tuple[Any, ...]


def _each(ways: list[list[_Way]]) -> list[_Way]:
    """Return the ways of several together; what remains of each stands in a row."""
    return [
        _Way(*(sum(parts, ()) for parts in zip(*some, strict=True)))
        for some in product([_Way((), (), ())], *([way._replace(rest=(way.rest,)) for way in own] for own in ways))
    ]


def marked(rest: Remainder, watch: Watch) -> Remainder:
    """Return a rest with one mark at the greedy variables that may come next."""
    return _of_next(rest, lambda leaf: [_Way((), (), (replace(leaf, watch=watch) if leaf.greedy else leaf,))])[0].rest


def _of_next(rest: Remainder, ways: Callable[[Leaf], list[_Way]]) -> list[_Way]:
    """Return a rest with each choice from the ways of its variables that may come next."""
    if not rest:
        return [_Way((), (), ())]
    head, tail = rest[0], rest[1:]
    behind = _of_next(tail, ways) if tail and _head_endings(head) else [_Way((), (), tail)]
    return [way._replace(rest=way.rest[0] + way.rest[1]) for way in _each([_head_of_next(head, ways), behind])]


def _head_of_next(head: Item, ways: Callable[[Leaf], list[_Way]]) -> list[_Way]:
    match head:
        case Leaf():
            return ways(head)
        case Guard():
            return [_Way((), (), (head,))]
        case PartEntry(rest=rest):
            return [way._replace(rest=(replace(head, rest=way.rest),)) for way in _of_next(rest, ways)]
        case Alternation(arms=arms):
            return [way._replace(rest=(Alternation(way.rest),)) for way in _each([_of_next(arm, ways) for arm in arms])]
        case Interleaving(arms=arms):
            return [way._replace(rest=_joined(way.rest)) for way in _each([_of_next(arm, ways) for arm in arms])]
        case Loop(first=first):
            found = _of_next(first, ways)
            return [_Way(way.guards, _begun(way.left), (replace(head, first=way.rest),)) for way in found]


def _leaf_waiting(leaf: Leaf) -> list[_Way]:
    """Return the ways in which a variable may wait: with UNTIL it may also be over, if greedy its watch may change."""
    found = [_Way((), (), (leaf,))]
    if leaf.until is not None and leaf.taken and leaf.most != 0:
        over = replace(leaf, most=0)
        found = [
            _Way((Guard((leaf.until,), (), UntilEvent.AGAIN),), (), (leaf,)),
            _Way((), (), () if over.is_over and not leaf.greedy else (over,)),
        ]
    if not leaf.greedy or leaf.watch in (Watch.SOME, Watch.UNASKED):
        return found
    letter = Letter(leaf.variable)
    if leaf.watch is Watch.TIED:
        kept = [(Leaving.TOGETHER, Watch.TIED)]
    else:
        kept = [(Leaving.WAITS, Watch.NOTHING), (Leaving.WAITS_IN_TIE, Watch.TIED)]
    marks = [*(((LeftLetter(letter, kind),), watch) for kind, watch in kept), ((), Watch.SOME)]
    return [_Way(way.guards, left, (replace(way.rest[0], watch=watch),)) for way in found for left, watch in marks]


def _begun(left: tuple[LeftLetter, ...]) -> tuple[LeftLetter, ...]:
    """Return letters as they are when they begin an iteration of one more group."""
    return tuple(LeftLetter(Letter(name, begins + 1), kind) for (name, begins), kind in left)


def _iteration(loop: Loop) -> list[_Next]:
    """Return the events that may begin the next iteration of a group."""
    most = None if loop.most is None else loop.most - 1
    behind = replace(loop, first=loop.again, least=max(loop.least - 1, 0), most=most, step=loop.again_step)
    found, rest = [], () if most == 0 else (behind,)
    for one in _steps(loop.first):
        begun, step = (loop.group, *one.begun), one.step or loop.step
        found.append(replace(one, rest=one.rest + rest, begun=begun, step=step, left=_begun(one.left)))
    return found


def _taken(leaf: Leaf) -> _Next:
    """Return the step by which a variable takes an event."""
    left = None if leaf.most is None else leaf.most - 1
    again = replace(leaf, least=max(leaf.least - 1, 0), most=left, taken=True, watch=Watch.NOTHING)
    kind = UntilEvent.AGAIN if leaf.taken else UntilEvent.FIRST
    guards = () if leaf.until is None else (Guard((leaf.until,), (), kind),)
    return _Next(leaf, guards, () if left == 0 else (again,), leaf.again if leaf.taken else 0)


def _joined(arms: tuple[Remainder, ...]) -> Remainder:
    left = tuple(arm for arm in arms if arm)
    if not left:
        return ()
    return left[0] if len(left) == 1 else (Interleaving(left),)


_Ending = tuple[
    tuple[Guard, ...], tuple[LeftLetter, ...]
]  # the guards that stay open, and the greedy variables that end


def _endings(rest: Remainder) -> list[_Ending]:
    """Return the ways in which nothing more is needed."""
    return _together_ended([_head_endings(head) for head in rest])


def _together_ended(ways: list[list[_Ending]]) -> list[_Ending]:
    found = ((sum((g for g, _ in way), ()), sum((left for _, left in way), ())) for way in product(*ways))
    return list(dict.fromkeys(found))


def _head_endings(head: Item) -> list[_Ending]:
    match head:
        case Leaf(least=least):
            return [] if least else [((), tuple(LeftLetter(Letter(head.variable), kind) for kind in _questions(head)))]
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


def _questions(leaf: Leaf) -> tuple[Leaving, ...]:
    """Return the questions about a variable that is left."""
    if not leaf.greedy or leaf.watch is Watch.UNASKED:
        return ()
    if leaf.watch is Watch.SOME:
        return (Leaving.NEVER,)
    return (Leaving.LEAVES, Leaving.TOGETHER) if leaf.watch is Watch.TIED else (Leaving.LEAVES,)


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
    plain = (name.variable if isinstance(name, PreviousIteration) else name for name in names
             if not isinstance(name, PreviousIteration) or name.group in begun)  # fmt: skip
    return tuple(dict.fromkeys(plain))


def _guard_after(guard: Guard, begun: tuple[int, ...]) -> Names:
    """Return the variables behind which a NOT begins, for the event that ends it.

    Where that begins the iteration of the NOT, those of the iteration before have their last events still.
    """
    begins = () if guard.closing else begun
    return tuple(
        dict.fromkeys(
            name.variable if isinstance(name, PreviousIteration) and name.group in begins else name
            for name in guard.after
        )
    )


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
            guards = tuple(replace(guard, after=_guard_after(guard, one.begun)) for guard in one.guards)
            found.append(Transition(state, leaf.variable, target, guards, after, one.step, one.left, one.begun))
        return tuple(dict.fromkeys(found))

    def _endings(self, state: int) -> tuple[Acceptance, ...]:
        """Return the ways in which a match may end in a state."""
        ways = [
            [replace(one, after=_guard_after(one, ())) for one in guards] for guards, _ in _endings(self._rests[state])
        ]
        return tuple(Acceptance(state, guards) for guards in dict.fromkeys(map(tuple, ways)))

    def _open(self, state: int) -> frozenset[str]:
        """Return the variables that may still take an event."""
        items = leaves_and_guards(self._rests[state])
        return frozenset(item.variable for item in items if isinstance(item, Leaf) and not item.is_over)

    def _timed(self, state: int) -> frozenset[str]:
        """Return the variables for whose last events the rest of a match still asks when they were."""
        return frozenset(
            name.variable if isinstance(name, PreviousIteration) else name
            for item in leaves_and_guards(self._rests[state])
            for name in ((item.variable,) if isinstance(item, Leaf) and item.taken else item.after)
        )
