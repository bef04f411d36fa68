"""Readings: the ways in which a sequence of (event, variable) pairs is a match of a pattern, or the beginning of one.

A reading is a tree of the pattern's shape that says which part took which of the pairs. It is found by the
definition of each construct: SEQ cuts the pairs into the parts' own, strictly in time; so does a repeated group, into
its iterations, none of them empty; AND deals them out by variable, so that the arms may interleave; OR takes the pairs
into one arm; a variable takes them all. Conditions and NOT are
not looked at here; `Gap` says where a NOT has to be.

The beginning of a match is a match whose last events are not there yet: they are written `TO_COME`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Which, may_be_empty

from .conditions import TO_COME
from .events import Event, OracleError
from .structure import bounds, fits, has_absent, is_optional, labels, variables

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


@dataclass(frozen=True, slots=True, eq=False)
class Awaited:
    """Iterations of a group that are yet to come."""

    node: syntax.Group

    def leaves(self) -> Iterator[Taken]:
        """Yield the variables below, whose events are to come."""
        for name in variables(self.node):
            yield Taken(syntax.Single(None, name), (TO_COME,))


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A repeated group with the readings of its iterations, the last `Awaited` where more are to come."""

    node: syntax.Group
    parts: tuple[Reading, ...]

    def leaves(self) -> Iterator[Taken]:
        """Yield the variables below, in the order of the pattern, one iteration after another."""
        for part in self.parts:
            yield from part.leaves()


NOTHING = Composed(syntax.Seq(()), ())
"""An optional part without any event."""

Reading = Taken | Composed | Stepped | Repeated | Awaited
Within = tuple[Reading, ...]  # the iterations around a part, outermost first
Cut = tuple[tuple[int, ...], ...]  # for each event the numbers of its iterations, from 1, outermost first
Parts = tuple[Reading | syntax.Absent, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """The place of a NOT: strictly between two events, `EDGE` where the pattern ends, or `TO_COME`.

    `within` are the iterations that it stands in.
    """

    absent: syntax.Absent
    after: Event
    before: Event
    within: Within = ()


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
        case syntax.Group(inner) if is_optional(pattern):
            if not pairs:
                yield NOTHING
            yield from readings(inner, pairs, beginning=beginning)
        case syntax.Group():
            yield from _of_group(pattern, pairs, beginning)
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


def _of_group(group: syntax.Group, pairs: Pairs, beginning: bool) -> Iterator[Repeated]:
    """Yield the ways to cut the pairs into iterations, each strictly before the next, as many as there may be."""
    least = 0 if may_be_empty(group.pattern) else group.least
    for iterations in _iterations(group.pattern, pairs, beginning):
        if len(iterations) >= least and (group.most is None or len(iterations) <= group.most):
            yield Repeated(group, iterations)
        if beginning and (group.most is None or len(iterations) < group.most):
            yield Repeated(group, (*iterations, Awaited(group)))


def _iterations(body: syntax.Pattern, pairs: Pairs, beginning: bool) -> Iterator[tuple[Reading, ...]]:
    if not pairs:
        yield ()
    for cut in range(1, len(pairs) + 1):
        if cut < len(pairs) and not pairs[cut - 1][0].tick < pairs[cut][0].tick:
            continue
        for reading in readings(body, pairs[:cut], beginning=beginning and cut == len(pairs)):
            for others in _iterations(body, pairs[cut:], beginning):
                yield (reading, *others)


def cut_of(reading: Reading, pairs: Pairs) -> Cut:
    """Give the numbers of the iterations of each of the pairs."""
    numbers = {
        event.order: path for leaf, path, _ in leaves_within(reading) for event in leaf.events if event is not TO_COME
    }
    return tuple(numbers[event.order] for event, _ in pairs)


def leaves_within(
    reading: Reading, path: tuple[int, ...] = (), within: Within = ()
) -> Iterator[tuple[Taken, tuple[int, ...], Within]]:
    """Yield the variables of a reading, each with the numbers of its iterations, and with these."""
    match reading:
        case Taken():
            yield reading, path, within
        case Stepped(_, inner):
            yield from leaves_within(inner, path, within)
        case Composed(_, parts):
            for part in parts:
                if not isinstance(part, syntax.Absent):
                    yield from leaves_within(part, path, within)
        case Repeated(_, parts):
            for number, part in enumerate(parts, start=1):
                yield from leaves_within(part, (*path, number), (*within, part))


def bindings(reading: Reading, names: frozenset[str], within: Within = ()) -> Iterator[dict[Any, tuple[Event, ...]]]:
    """Yield what the variables of a condition are bound to: in one iteration of each group that has any of them.

    All of them are in the same iteration of the groups that they share. Those in the iterations `within` are meant
    where a group has one of these. The label of a group is bound to the first event of each of its iterations; the
    group itself, by its identity, tells that there is an iteration.
    """
    match reading:
        case Taken(_, events):
            yield {reading.var: events} if events and reading.var in names else {}
        case Stepped(_, inner):
            yield from bindings(inner, names, within)
        case Composed(_, parts):
            ways = [list(bindings(part, names, within)) for part in parts if not isinstance(part, syntax.Absent)]
            for each in itertools.product(*ways):
                yield {name: events for one in each for name, events in one.items()}
        case Awaited(node):
            yield {name: (TO_COME,) for name in (*variables(node), *labels(node.pattern)) if name in names}
        case Repeated(node, parts):
            firsts = tuple(earliest((part,), TO_COME) for part in parts)
            own = {node.label: firsts} if node.label in names and firsts else {}
            own |= {name: _in(parts, name) for name in _others(node, names) if name[2] is not Which.EARLIER}
            before = [name for name in _others(node, names) if name[2] is Which.EARLIER]
            plain = {name for name in names if isinstance(name, str)}
            inside = {name for name in names if not isinstance(name, str) and name[0] in variables(node)}
            if not plain & {*variables(node), *labels(node.pattern)} and not before and not inside - {*own}:
                yield {name: events for name, events in own.items() if events}
                return
            for place, part in enumerate(parts):
                if any(other in within for other in parts) and part not in within:
                    continue
                there = own | {name: _events_of(parts[place - 1], name[0]) if place else () for name in before}
                for one in bindings(part, names, within):
                    bound = {**one, **there, id(node): ()}
                    yield {name: events for name, events in bound.items() if events or isinstance(name, int)}


def _others(group: syntax.Group, names: frozenset[Any]) -> list[Any]:
    """Give the variables of other iterations of a group."""
    return [name for name in names if not isinstance(name, str) and name[1] == group.label]


def _in(parts: tuple[Reading, ...], name: Any) -> tuple[Event, ...]:
    """Give the events of a variable in the first, the last or another iteration; none where there is no such."""
    var, _, which, nth = name
    if which is Which.LAST:
        return _events_of(parts[-1], var) if parts else ()
    place = (nth or 1) - 1
    return _events_of(parts[place], var) if place < len(parts) else ()


def _events_of(reading: Reading, var: str) -> tuple[Event, ...]:
    return tuple(event for leaf in reading.leaves() if leaf.var == var for event in leaf.events)


def gaps(reading: Reading, after: Event = EDGE, before: Event = EDGE, within: Within = ()) -> Iterator[Gap]:
    """Yield the place of each NOT of a reading that has these two neighbours."""
    if isinstance(reading, Taken | Awaited) or not has_absent(reading.node):
        return
    if isinstance(reading, Stepped):
        yield from gaps(reading.inner, after, before, within)
        return
    for i, part in enumerate(reading.parts):
        left, right, around = after, before, within
        if isinstance(reading.node, syntax.Seq | syntax.Group):
            left, right = latest(reading.parts[:i], after), earliest(reading.parts[i + 1 :], before)
        if isinstance(reading, Repeated):
            around = (*within, part)
        if isinstance(part, syntax.Absent):
            yield Gap(part, left, right, around)
        else:
            yield from gaps(part, left, right, around)


def latest(parts: Parts, otherwise: Event) -> Event:
    """Give the last event of these parts of a SEQ, or what stands before them."""
    events = _events(parts)
    return TO_COME if TO_COME in events else max(events, key=lambda event: event.order, default=otherwise)


def earliest(parts: Parts, otherwise: Event) -> Event:
    """Give the first event of these parts of a SEQ, or what stands behind them."""
    events = _events(parts)
    there = [event for event in events if event is not TO_COME]
    return min(there, key=lambda event: event.order, default=TO_COME if events else otherwise)


def _events(parts: Parts) -> list[Event]:
    taken = [part for part in parts if not isinstance(part, syntax.Absent)]
    return [event for part in taken for leaf in part.leaves() for event in leaf.events]
