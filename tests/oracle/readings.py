"""Readings: the ways in which a sequence of (event, variable) pairs is a match of a pattern, or the beginning of one.

A reading is a tree of the pattern's shape that says which part took which of the pairs. It is found by the
definition of each construct: SEQ cuts the pairs into the parts' own, strictly in time; AND deals them out by variable,
so that the arms may interleave; OR takes the pairs into one arm; a variable takes them all. Conditions and NOT are
not looked at here; `Gap` says where a NOT has to be.

The beginning of a match is a match whose last events are not there yet: they are written `TO_COME`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trellis.language import syntax

from .conditions import TO_COME
from .events import Event, OracleError
from .structure import bounds, fits, variables

Pair = tuple[Event, str]
Pairs = tuple[Pair, ...]

EDGE: Any = "an edge of the pattern"


@dataclass(frozen=True, slots=True)
class Taken:
    """A variable with the events it took, in time order, `TO_COME` at the end where more are to come."""

    node: syntax.Single | syntax.Kleene
    events: tuple[Event, ...]

    @property
    def var(self) -> str:
        """The variable."""
        return self.node.var

    def leaves(self) -> Iterator[Taken]:
        """Yield the variables below, in the order of the pattern."""
        yield self


@dataclass(frozen=True, slots=True)
class Stepped:
    """A part of a SEQ with a policy before it, and its reading."""

    node: syntax.PolicyStep
    inner: Reading

    def leaves(self) -> Iterator[Taken]:
        """Yield the variables below, in the order of the pattern."""
        yield from self.inner.leaves()


@dataclass(frozen=True, slots=True)
class Composed:
    """A SEQ or an AND with the readings of its parts; a NOT stands among them as it is."""

    node: syntax.Seq | syntax.And
    parts: Parts

    def leaves(self) -> Iterator[Taken]:
        """Yield the variables below, in the order of the pattern."""
        for part in self.parts:
            if not isinstance(part, syntax.Absent):
                yield from part.leaves()


Reading = Taken | Composed | Stepped
Parts = tuple[Reading | syntax.Absent, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """The place of a NOT: strictly between two events, `EDGE` where the pattern ends, or `TO_COME`."""

    absent: syntax.Absent
    after: Event
    before: Event


def readings(pattern: syntax.Pattern, pairs: Pairs, *, beginning: bool) -> Iterator[Reading]:
    """Yield all readings of the pairs, in the order (time, event id), as a match, or as the beginning of one."""
    match pattern:
        case syntax.Single(type_name, var) | syntax.Kleene(type_name, var):
            if not all(name == var and fits(event, type_name) for event, name in pairs):
                return
            yield from _of_variable(pattern, tuple(event for event, _ in pairs), beginning)
        case syntax.Seq(parts):
            for taken in _of_sequence(parts, pairs, beginning):
                yield Composed(pattern, taken)
        case syntax.And(arms):
            names = [variables(arm) for arm in arms]
            shares = [tuple(pair for pair in pairs if pair[1] in own) for own in names]
            if sum(map(len, shares)) == len(pairs):
                ways = [
                    [arm] if isinstance(arm, syntax.Absent) else list(readings(arm, own, beginning=beginning))
                    for arm, own in zip(arms, shares, strict=True)
                ]
                for each in itertools.product(*ways):
                    yield Composed(pattern, each)
        case syntax.Or(arms):
            for arm in arms:
                yield from readings(arm, pairs, beginning=beginning)
        case syntax.PolicyStep(_, inner):
            for reading in readings(inner, pairs, beginning=beginning):
                yield Stepped(pattern, reading)
        case _:
            raise OracleError(f"{type(pattern).__name__} is reserved, or not allowed here")


def _of_variable(leaf: syntax.Single | syntax.Kleene, events: tuple[Event, ...], beginning: bool) -> Iterator[Taken]:
    """Yield the ways in which a variable takes these events: as many as it may, each later than the one before."""
    least, most = bounds(leaf)
    if not all(a.tick < b.tick for a, b in itertools.pairwise(events)):
        return
    if len(events) >= least and (most is None or len(events) <= most):
        yield Taken(leaf, events)
    if beginning and (most is None or len(events) < most):
        yield Taken(leaf, (*events, TO_COME))


def _of_sequence(parts: tuple[syntax.Pattern, ...], pairs: Pairs, beginning: bool) -> Iterator[Parts]:
    """Yield the ways to cut the pairs into matches of the parts, each strictly before the next."""
    if not parts:
        if not pairs:
            yield ()
        return
    first, rest = parts[0], parts[1:]
    if isinstance(first, syntax.Absent):
        for taken in _of_sequence(rest, pairs, beginning):
            yield (first, *taken)
        return
    for cut in range(len(pairs) + 1):
        if 0 < cut < len(pairs) and not pairs[cut - 1][0].tick < pairs[cut][0].tick:
            continue
        for reading in readings(first, pairs[:cut], beginning=beginning and cut == len(pairs)):
            for taken in _of_sequence(rest, pairs[cut:], beginning):
                yield (reading, *taken)


def gaps(reading: Reading, after: Event = EDGE, before: Event = EDGE) -> Iterator[Gap]:
    """Yield the place of each NOT of a reading that has these two neighbours."""
    if isinstance(reading, Taken):
        return
    if isinstance(reading, Stepped):
        yield from gaps(reading.inner, after, before)
        return
    for i, part in enumerate(reading.parts):
        left, right = after, before
        if isinstance(reading.node, syntax.Seq):
            left, right = _latest(reading.parts[:i], after), _earliest(reading.parts[i + 1 :], before)
        if isinstance(part, syntax.Absent):
            yield Gap(part, left, right)
        else:
            yield from gaps(part, left, right)


def _latest(parts: Parts, otherwise: Event) -> Event:
    """Give the last event of these parts of a SEQ, or what stands before them."""
    events = _events(parts)
    return TO_COME if TO_COME in events else max(events, key=lambda event: event.order, default=otherwise)


def _earliest(parts: Parts, otherwise: Event) -> Event:
    """Give the first event of these parts of a SEQ, or what stands behind them."""
    events = _events(parts)
    there = [event for event in events if event is not TO_COME]
    return min(there, key=lambda event: event.order, default=TO_COME if events else otherwise)


def _events(parts: Parts) -> list[Event]:
    taken = [part for part in parts if not isinstance(part, syntax.Absent)]
    return [event for part in taken for leaf in part.leaves() for event in leaf.events]
