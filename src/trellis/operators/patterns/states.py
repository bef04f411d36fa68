"""What a match so far may go on with: a pattern as states that take one event after another.

A state never changes; taking an event gives new ones. Events are offered in the order (time, id). Each NOT comes out
as a gap, bounded by the times of what stands before and after it; a bound is None at an edge of the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from trellis.language import syntax as s


@dataclass(frozen=True, slots=True)
class Gap:
    """No event that fits one of the variables `absent` strictly between two times."""

    absent: tuple[str, ...]
    after: Any
    before: Any


Steps = Iterator[tuple["State", tuple[Gap, ...]]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One variable; `latest` is the time of the last event it took."""

    var: str
    kleene: bool
    latest: Any = None

    @property
    def complete(self) -> bool:
        """Whether nothing more is needed."""
        return self.latest is not None

    @property
    def open(self) -> frozenset[str]:
        """The variables that may still take an event."""
        return frozenset({self.var}) if self.kleene or self.latest is None else frozenset()

    @property
    def next(self) -> frozenset[str]:
        """The variables that may take the next event."""
        return self.open

    def steps(self, var: str, time: Any, left: Any) -> Steps:
        """Yield the states after an event at `time` bound to `var`, and the gaps that it closes.

        `left` is the latest time of what stands before, or None.
        """
        if var == self.var and (self.latest is None or (self.kleene and time > self.latest)):
            yield replace(self, latest=time), ()

    def trailing(self) -> tuple[Gap, ...]:
        """Return the gaps that stay open at the right."""
        return ()


@dataclass(frozen=True, slots=True)
class Chain:
    """SEQ: its parts, the NOTs before each of them and after the last, and the part that takes events now."""

    parts: tuple[s.Pattern, ...]
    absent: tuple[tuple[tuple[str, ...], ...], ...]
    index: int
    part: State
    left: Any = None  # the latest time before the current part

    @property
    def latest(self) -> Any:
        """The time of the last event taken."""
        return self.part.latest if self.part.latest is not None else self.left

    @property
    def complete(self) -> bool:
        """Whether nothing more is needed."""
        return self.index == len(self.parts) - 1 and self.part.complete

    @property
    def open(self) -> frozenset[str]:
        """The variables that may still take an event."""
        return self.part.open.union(*(_variables(part) for part in self.parts[self.index + 1 :]))

    @property
    def next(self) -> frozenset[str]:
        """The variables that may take the next event."""
        if self.part.complete and self.index + 1 < len(self.parts):
            return self.part.next | start(self.parts[self.index + 1]).next
        return self.part.next

    def steps(self, var: str, time: Any, left: Any) -> Steps:
        """Yield the states after an event; see `Leaf.steps`."""
        before = left if self.index == 0 else self.left
        closed = () if self.part.latest is not None else self._gaps(self.index, before, time)
        for part, gaps in self.part.steps(var, time, before):
            yield replace(self, part=part, left=self.left if _waits(part) else None), closed + gaps
        if self.index + 1 < len(self.parts) and self.part.complete and time > self.part.latest:
            before = self.part.latest
            closed = tuple(replace(gap, before=time) for gap in self.part.trailing())
            closed += self._gaps(self.index + 1, before, time)
            for part, gaps in start(self.parts[self.index + 1]).steps(var, time, before):
                left = before if _waits(part) else None
                yield Chain(self.parts, self.absent, self.index + 1, part, left), closed + gaps

    def _gaps(self, index: int, after: Any, before: Any) -> tuple[Gap, ...]:
        return tuple(Gap(absent, after, before) for absent in self.absent[index])

    def trailing(self) -> tuple[Gap, ...]:
        """Return the gaps that stay open at the right."""
        return self.part.trailing() + tuple(Gap(absent, self.part.latest, None) for absent in self.absent[-1])


@dataclass(frozen=True, slots=True)
class Arms:
    """AND: each arm takes its own events, in any order."""

    arms: tuple[State, ...]

    @property
    def latest(self) -> Any:
        """The time of the last event taken."""
        return max((arm.latest for arm in self.arms if arm.latest is not None), default=None)

    @property
    def complete(self) -> bool:
        """Whether nothing more is needed."""
        return all(arm.complete for arm in self.arms)

    @property
    def open(self) -> frozenset[str]:
        """The variables that may still take an event."""
        return frozenset().union(*(arm.open for arm in self.arms))

    @property
    def next(self) -> frozenset[str]:
        """The variables that may take the next event."""
        return frozenset().union(*(arm.next for arm in self.arms))

    def steps(self, var: str, time: Any, left: Any) -> Steps:
        """Yield the states after an event; see `Leaf.steps`."""
        for i, arm in enumerate(self.arms):
            for taken, gaps in arm.steps(var, time, left):
                yield Arms((*self.arms[:i], taken, *self.arms[i + 1 :])), gaps

    def trailing(self) -> tuple[Gap, ...]:
        """Return the gaps that stay open at the right."""
        return tuple(gap for arm in self.arms for gap in arm.trailing())


@dataclass(frozen=True, slots=True)
class Choice:
    """OR, before its first event; after that only the arm's own state is left."""

    arms: tuple[s.Pattern, ...]
    latest = None
    complete = False

    @property
    def open(self) -> frozenset[str]:
        """The variables that may still take an event."""
        return frozenset().union(*map(_variables, self.arms))

    @property
    def next(self) -> frozenset[str]:
        """The variables that may take the next event."""
        return frozenset().union(*(start(arm).next for arm in self.arms))

    def steps(self, var: str, time: Any, left: Any) -> Steps:
        """Yield the states after an event; see `Leaf.steps`."""
        for arm in self.arms:
            yield from start(arm).steps(var, time, left)

    def trailing(self) -> tuple[Gap, ...]:
        """Return the gaps that stay open at the right."""
        return ()


State = Leaf | Chain | Arms | Choice


def start(pattern: s.Pattern) -> State:
    """Return the state of a pattern that has taken nothing."""
    match pattern:
        case s.Single(var=var):
            return Leaf(var, False)
        case s.Kleene(var=var):
            return Leaf(var, True)
        case s.Seq(parts=parts):
            return _chain(parts)
        case s.And(arms=arms):
            return Arms(tuple(map(start, arms)))
        case s.Or(arms=arms):
            return Choice(arms)
    raise AssertionError(pattern)


def _chain(parts: tuple[s.Pattern, ...]) -> Chain:
    kept: list[s.Pattern] = []
    absent: list[tuple[tuple[str, ...], ...]] = [()]
    for part in parts:
        if isinstance(part, s.Absent):
            absent[-1] += (tuple(e.var for e in part.events),)
        else:
            kept.append(part)
            absent.append(())
    return Chain(tuple(kept), tuple(absent), 0, start(kept[0]))


def _waits(state: State) -> bool:
    """Whether a part of a state has taken nothing, so that what stands before it is still its neighbour."""
    match state:
        case Arms(arms=arms):
            return any(map(_waits, arms))
        case Chain(part=part):
            return _waits(part)
        case _:
            return state.latest is None


def _variables(pattern: s.Node) -> frozenset[str]:
    """Return the variables that take events."""
    if isinstance(pattern, s.Single | s.Kleene):
        return frozenset({pattern.var})
    if isinstance(pattern, s.Absent):
        return frozenset()
    return frozenset().union(*map(_variables, s.children(pattern)))
