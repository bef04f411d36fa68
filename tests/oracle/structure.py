"""Patterns as states: what a pattern has taken so far, and which variables the next event may fill.

Events are offered in the order (time, event id). A state never changes; taking an event gives new states.
The places where a NOT must be looked after come out as gaps, with the times that bound them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from trellis.language import syntax

from .events import Event, OracleError


@dataclass(frozen=True, slots=True)
class Gap:
    """None of these events strictly between two times; a bound is None at an edge of the pattern."""

    absent: syntax.Absent
    after: Any
    before: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One way to take an event: the state after it, the variable it fills, the gaps it closes."""

    state: State
    var: str
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class One:
    """A Single or a Kleene variable; `latest` is the time of the last event taken."""

    node: syntax.Single | syntax.Kleene
    latest: Any = None

    @property
    def complete(self) -> bool:
        return self.latest is not None

    @property
    def open(self) -> frozenset[str]:
        """The variables that may still take an event."""
        full = isinstance(self.node, syntax.Single) and self.complete
        return frozenset() if full else frozenset({self.node.var})

    def steps(self, event: Event, left: Any) -> Iterator[Step]:
        """Yield all ways to take the event; `left` is the latest time of what stands before, or None."""
        if isinstance(self.node, syntax.Single):
            may_follow = not self.complete
        else:
            may_follow = not self.complete or event.time > self.latest
        if may_follow and fits(event, self.node.type):
            yield Step(replace(self, latest=event.time), self.node.var)

    def trailing(self) -> tuple[Gap, ...]:
        """Give the gaps that stay open at the right."""
        return ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """`SEQ`: parts, the gap before each of them and after the last, and the part that takes events now."""

    parts: tuple[syntax.Pattern, ...]
    absents: tuple[tuple[syntax.Absent, ...], ...]
    index: int
    part: State
    left: Any = None  # latest time of the parts before the current one

    @property
    def latest(self) -> Any:
        return self.part.latest if self.part.latest is not None else self.left

    @property
    def complete(self) -> bool:
        return self.index == len(self.parts) - 1 and self.part.complete

    @property
    def open(self) -> frozenset[str]:
        return self.part.open.union(*(variables(part) for part in self.parts[self.index + 1 :]))

    def steps(self, event: Event, left: Any) -> Iterator[Step]:
        lower = left if self.index == 0 else self.left
        closed = () if self.part.latest is not None else self._gaps(self.index, lower, event)
        for step in self.part.steps(event, lower):
            yield Step(replace(self, part=step.state), step.var, closed + step.gaps)
        if self.part.complete and self.index + 1 < len(self.parts) and event.time > self.part.latest:
            yield from self._move_on(event)

    def _move_on(self, event: Event) -> Iterator[Step]:
        lower = self.part.latest
        closed = tuple(replace(gap, before=event.time) for gap in self.part.trailing())
        closed += self._gaps(self.index + 1, lower, event)
        for step in start(self.parts[self.index + 1]).steps(event, lower):
            state = replace(self, index=self.index + 1, part=step.state, left=lower)
            yield Step(state, step.var, closed + step.gaps)

    def _gaps(self, index: int, after: Any, event: Event) -> tuple[Gap, ...]:
        return tuple(Gap(absent, after, event.time) for absent in self.absents[index])

    def trailing(self) -> tuple[Gap, ...]:
        own = tuple(Gap(absent, self.part.latest, None) for absent in self.absents[-1])
        return self.part.trailing() + own


@dataclass(frozen=True, slots=True)
class Arms:
    """`AND`: all arms take events, each its own, in any order."""

    arms: tuple[State, ...]

    @property
    def latest(self) -> Any:
        return max((arm.latest for arm in self.arms if arm.latest is not None), default=None)

    @property
    def complete(self) -> bool:
        return all(arm.complete for arm in self.arms)

    @property
    def open(self) -> frozenset[str]:
        return frozenset().union(*(arm.open for arm in self.arms))

    def steps(self, event: Event, left: Any) -> Iterator[Step]:
        for i, arm in enumerate(self.arms):
            for step in arm.steps(event, left):
                yield Step(Arms((*self.arms[:i], step.state, *self.arms[i + 1 :])), step.var, step.gaps)

    def trailing(self) -> tuple[Gap, ...]:
        return tuple(gap for arm in self.arms for gap in arm.trailing())


@dataclass(frozen=True, slots=True)
class Choice:
    """`OR` before it has taken anything; after the first event only the arm's own state is left."""

    arms: tuple[syntax.Pattern, ...]
    latest = None
    complete = False

    @property
    def open(self) -> frozenset[str]:
        return frozenset().union(*(variables(arm) for arm in self.arms))

    def steps(self, event: Event, left: Any) -> Iterator[Step]:
        for arm in self.arms:
            yield from start(arm).steps(event, left)

    def trailing(self) -> tuple[Gap, ...]:
        return ()


State = One | Sequence | Arms | Choice


def start(pattern: syntax.Pattern) -> State:
    """Give the state of a pattern that has taken nothing."""
    match pattern:
        case syntax.Single() | syntax.Kleene():
            return One(pattern)
        case syntax.Seq(parts):
            return _sequence(parts)
        case syntax.And(arms):
            return Arms(tuple(start(arm) for arm in arms))
        case syntax.Or(arms):
            return Choice(arms)
    raise OracleError(f"{type(pattern).__name__} is reserved, or not allowed here")


def _sequence(parts: tuple[syntax.Pattern, ...]) -> Sequence:
    positive: list[syntax.Pattern] = []
    absents: list[tuple[syntax.Absent, ...]] = [()]
    for part in parts:
        if isinstance(part, syntax.Absent):
            absents[-1] += (part,)
        else:
            positive.append(part)
            absents.append(())
    return Sequence(tuple(positive), tuple(absents), 0, start(positive[0]))


def fits(event: Event, type_name: str | None) -> bool:
    """Tell whether an event has the type; where the input has no types every event does.

    `event.type` is None both for an event of no type and for one whose type is NULL, so the matcher replaces
    the pattern's types by None where the input has none.
    """
    return type_name is None or event.type == type_name


def leaves(pattern: syntax.Node) -> Iterator[syntax.Single | syntax.Kleene]:
    """Yield the leaves that take events, in the order of the pattern; those of a NOT are left out."""
    if isinstance(pattern, (syntax.Single, syntax.Kleene)):
        yield pattern
    elif not isinstance(pattern, syntax.Absent):
        for child in syntax.children(pattern):
            yield from leaves(child)


def absents(pattern: syntax.Node) -> Iterator[syntax.Single]:
    """Yield the leaves of all NOTs."""
    for node in syntax.walk(pattern):
        if isinstance(node, syntax.Absent):
            yield from node.events


def variables(pattern: syntax.Node) -> tuple[str, ...]:
    """Give the variables that take events, each once, in the order of the pattern."""
    return tuple(dict.fromkeys(leaf.var for leaf in leaves(pattern)))


def kleene_variables(pattern: syntax.Node) -> frozenset[str]:
    """Give the variables with a Kleene operator (in at least one arm of an OR)."""
    return frozenset(leaf.var for leaf in leaves(pattern) if isinstance(leaf, syntax.Kleene))


def untyped(pattern: Any) -> Any:
    """Give the same pattern with any event fitting every variable (an input without types has one type)."""
    if isinstance(pattern, (syntax.Single, syntax.Kleene)):
        return replace(pattern, type=None)
    if isinstance(pattern, syntax.Absent):
        return replace(pattern, events=tuple(untyped(event) for event in pattern.events))
    if isinstance(pattern, syntax.Seq):
        return replace(pattern, parts=tuple(untyped(part) for part in pattern.parts))
    return replace(pattern, arms=tuple(untyped(arm) for arm in pattern.arms))
