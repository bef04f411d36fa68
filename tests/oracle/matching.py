"""Matching: all trends of one window and partition, by trying sequences of (event, variable) pairs.

A sequence is a trend if some reading of it meets the conditions, the NOTs and the span. All sequences that begin like
a trend are tried, each judged as a whole; what cannot be continued is not tried further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Select, absent_patterns

from .conditions import Bound, Conjunct, variable_of
from .events import Event
from .readings import (
    EDGE,
    TO_COME,
    Cut,
    Gap,
    Pairs,
    Reading,
    Taken,
    Within,
    bindings,
    cut_of,
    gaps,
    leaves_within,
    readings,
)
from .steps import Left, Ways, left_by, steps_of
from .structure import fits, is_optional, variables


def exact(number: Any) -> Any:
    """Make a number such that sums and differences are exact."""
    return Fraction(number) if not isinstance(number, int) else number


@dataclass(frozen=True, slots=True)
class Longer:
    """A match so far with one more event: its place and variable, its steps, and the greedy variables it leaves.

    `cut` are the iterations of its events.
    """

    place: int
    var: str
    ways: Ways
    left: Left
    cut: Cut

    @property
    def policy(self) -> Select | None:
        """The policy of the last step; None for that of the query."""
        return None if self.ways[-1] is None else self.ways[-1][1]


History = tuple[tuple[int, list[Longer]], ...]  # for each beginning of a match the next place, and what could follow


@dataclass(frozen=True, slots=True)
class GivenConjunct:
    """A conjunct on the variables of a pattern inside NOT, with each way in which those outside are bound."""

    conjunct: Conjunct | GivenConjunct
    own: frozenset[str]
    outside: tuple[Bound, ...]

    @property
    def named(self) -> frozenset[Any]:
        """What it names inside."""
        return frozenset(name for name in self.conjunct.named if variable_of(name) in self.own)

    @property
    def variables(self) -> frozenset[Any]:
        """What must be bound inside."""
        return frozenset(name for name in self.conjunct.variables if variable_of(name) in self.own)

    @property
    def names(self) -> frozenset[str]:
        """The variables and labels inside."""
        return frozenset(map(variable_of, self.named))

    def holds(self, bound: Bound, *, of_coming: bool) -> bool:
        """Test it; of an event outside that is yet to come the answer is no, so that nothing is forbidden."""
        coming = of_coming and any(TO_COME in events for events in bound.values())
        return all(self.conjunct.holds({**outside, **bound}, of_coming=coming) for outside in self.outside)


class Matcher:
    """Finds all trends among the events of one window and partition, given in the order (time, event id)."""

    def __init__(
        self,
        pattern: syntax.Pattern,
        conjuncts: Sequence[Conjunct | GivenConjunct],
        events: Sequence[Event],
        select: Select,
        span: Any = None,
        untils: Mapping[str, Conjunct] | None = None,
    ) -> None:
        self.untils = untils or {}
        self.pattern = pattern
        self.events = events
        self.select = select
        self.span = span
        self.names = variables(pattern)
        negated = _names_inside(*absent_patterns(pattern))
        self.conjuncts = conjuncts
        self.positive = [c for c in conjuncts if not c.names & negated]
        self.innermost = dict(_innermost(pattern, None))
        self.of_absent = {var: [c for c in conjuncts if var in c.names] for var in negated}

    def trends(self) -> list[tuple[Pairs, Cut]]:
        """List every trend once: its pairs, and how these are cut into iterations."""
        return list(self._grow((), (), {()}, 0, ()))

    def _grow(
        self, so_far: Pairs, cut: Cut, ways: set[Ways], place: int, earlier: History
    ) -> Iterator[tuple[Pairs, Cut]]:
        """Yield the match so far, if it is a trend, and the trends it can grow into with events from `place` on.

        `ways` are the steps by which policies let it come about; `earlier` is what each of its beginnings could have
        gone on with.
        """
        if so_far and self.is_trend(so_far, cut, ways):
            yield so_far, cut
        found = [more for i in range(place, len(self.events)) for more in self._longer(so_far, cut, ways, i)]
        history = (*earlier, (place, found))
        allowed = [one for one in found if not so_far or self._is_selected(one, history, so_far)]
        for i, var, longer in dict.fromkeys((one.place, one.var, one.cut) for one in allowed):
            own = {one.ways for one in allowed if (one.place, one.var, one.cut) == (i, var, longer)}
            yield from self._grow((*so_far, (self.events[i], var)), longer, own, i + 1, history)

    def _longer(self, so_far: Pairs, cut: Cut, ways: set[Ways], place: int) -> Iterator[Longer]:
        """Yield the matches so far with one more event, whatever policies say of it."""
        for var in self.names:
            pairs = (*so_far, (self.events[place], var))
            if not self._in_span(pairs[0][0], pairs[-1][0]):
                continue
            for reading in readings(self.pattern, pairs, beginning=True):
                steps, own = steps_of(reading, pairs), cut_of(reading, pairs)
                if steps[:-1] in ways and own[:-1] == cut and self.can_go_on(reading, pairs):
                    yield Longer(place, var, steps, left_by(reading, pairs), own)

    def _is_selected(self, one: Longer, history: History, so_far: Pairs) -> bool:
        """Tell whether the policy of a step, and every `greedy` that it leaves, let it take its event."""
        place, found = history[-1]
        policy = one.policy or self.select
        if policy is Select.CONTIGUOUS and one.place != place:
            return False
        alike = [other for other in found if other.ways[-1] == one.ways[-1]]
        if policy is Select.NEXT and any(other.place < one.place for other in alike):
            return False
        return not any(self._could_take(var, path, order, one, history, so_far) for var, path, order in one.left)

    def _could_take(
        self, var: str, path: tuple[int, ...], order: int, one: Longer, history: History, so_far: Pairs
    ) -> bool:
        """Tell whether a variable could have taken an event behind that of an order, and before the next or as it.

        Each beginning of the match from that event on could have taken those before its own next event.
        """
        tick = self.events[one.place].tick
        ends = [place - 1 for place, _ in history[1:]] + [one.place]
        begun = next(i for i, (event, _) in enumerate(so_far) if event.order == order)
        return any(
            (other.var, other.cut[-1]) == (var, path)
            and (other.place == place or (other.policy or self.select) is not Select.CONTIGUOUS)
            and (other.place == one.place == end or (other.place < end and self.events[other.place].tick < tick))
            for (place, found), end in list(zip(history, ends, strict=True))[begun + 1 :]
            for other in found
        )

    def is_trend(self, pairs: Pairs, cut: Cut, ways: set[Ways]) -> bool:
        """Tell whether the pairs, so cut, are a match of the whole pattern that meets all that the query asks."""
        return self._in_span(pairs[0][0], pairs[-1][0]) and any(
            cut_of(reading, pairs) == cut
            and self._holds(reading)
            and steps_of(reading, pairs) in ways
            and not any(self._filled(gap, reading, pairs) for gap in gaps(reading))
            for reading in readings(self.pattern, pairs, beginning=False)
        )

    def can_go_on(self, reading: Reading, pairs: Pairs) -> bool:
        """Tell whether all holds, for a match so far, that can be judged without the events to come.

        A NOT at an edge of the pattern is judged when the match is whole.
        """
        judged = [gap for gap in gaps(reading) if not {gap.after, gap.before} & {EDGE, TO_COME}]
        return self._holds(reading) and not any(self._filled(gap, reading, pairs) for gap in judged)

    def _in_span(self, first: Event, last: Event) -> bool:
        if self.span is None:
            return True
        if isinstance(last.time, float):
            return last.time - first.time <= float(self.span)
        return exact(last.time) - exact(first.time) <= self.span

    def _holds(self, reading: Reading) -> bool:
        """Tell whether every condition holds; those that name a variable which the reading lacks are not applied."""
        for conjunct in self.positive:
            for bound in bindings(reading, conjunct.named):
                if self._is_asked(conjunct, bound) and not conjunct.holds(bound, of_coming=True):
                    return False
        return not any(self._met_until(leaf, reading, within) for leaf, _, within in leaves_within(reading))

    def _is_asked(self, conjunct: Conjunct, bound: Bound) -> bool:
        """Tell whether all variables are bound, and there is an iteration of the group around each of the others."""
        inside = {self.innermost[name] for name in conjunct.named if name in self.innermost}
        return conjunct.variables <= bound.keys() and inside - {None} <= bound.keys()

    def _met_until(self, leaf: Taken, reading: Reading, within: Within) -> bool:
        """Tell whether an event of a variable's type, from its first event to its last, meets its UNTIL."""
        taken = [event for event in leaf.events if event is not TO_COME]
        condition = self.untils.get(leaf.var)
        if condition is None or not taken:
            return False
        ways = [bound for bound in bindings(reading, condition.named, within) if self._is_asked(condition, bound)]
        return any(
            taken[0].order <= event.order <= taken[-1].order
            and fits(event, leaf.node.type)
            and all(condition.holds({**bound, leaf.var: (event,)}, of_coming=False) for bound in ways)
            for event in self.events
            if ways
        )

    def _filled(self, gap: Gap, reading: Reading, pairs: Pairs) -> bool:
        """Tell whether an event, or the whole of a match, that the NOT forbids lies in the gap."""
        inside = [event for event in self.events if self._inside(gap, event, pairs)]
        for absent in gap.absent.events:
            if isinstance(absent, syntax.Single):
                if any(self._forbidden(absent, event, reading, gap.within) for event in inside):
                    return True
            elif Matcher(absent, self._of_pattern(absent, reading, gap.within), inside, Select.ANY).trends():
                return True
        return False

    def _of_pattern(self, absent: syntax.Pattern, reading: Reading, within: Within) -> list[Any]:
        """List the conditions on the variables of a pattern that a NOT forbids, given those outside of it."""
        own = _names_inside(absent)
        found = []
        for conjunct in self.conjuncts:
            if conjunct.names & own:
                bound = [*bindings(reading, conjunct.named, within)] if conjunct.names - own else [{}]
                outside = [
                    one for one in bound if {n for n in conjunct.variables if variable_of(n) not in own} <= {*one}
                ]
                found.append(GivenConjunct(conjunct, own, tuple(outside)))
        return found

    def _inside(self, gap: Gap, event: Event, pairs: Pairs) -> bool:
        """Tell whether an event lies in the gap, which at an edge of the pattern reaches as far as the span."""
        first, last = pairs[0][0], pairs[-1][0]
        late = self._in_span(event, last) if gap.after is EDGE else gap.after.tick < event.tick
        early = self._in_span(first, event) if gap.before is EDGE else event.tick < gap.before.tick
        return late and early

    def _forbidden(self, single: syntax.Single, event: Event, reading: Reading, within: Within) -> bool:
        """Tell whether the event meets all conditions of a NOT's variable; those on events to come it may not."""
        if not fits(event, single.type):
            return False
        for conjunct in self.of_absent[single.var]:
            for bound in bindings(reading, conjunct.named, within):
                full = {**bound, single.var: (event,)}
                if conjunct.variables <= full.keys() and not conjunct.holds(full, of_coming=False):
                    return False
        return True


def _names_inside(*patterns: syntax.Node) -> frozenset[str]:
    """Give the variables and the labels of patterns, those of NOTs too."""
    nodes = [node for pattern in patterns for node in syntax.walk(pattern)]
    names = {node.var for node in nodes if isinstance(node, syntax.Single | syntax.Kleene)}
    return frozenset(names | {node.label for node in nodes if isinstance(node, syntax.Group) and node.label})


def _innermost(pattern: syntax.Node, group: int | None) -> Iterator[tuple[str, int | None]]:
    """Yield each variable, and each label, with the identity of the innermost repeated group around it."""
    if isinstance(pattern, syntax.Single | syntax.Kleene):
        yield pattern.var, group
    if isinstance(pattern, syntax.Group) and not is_optional(pattern):
        if pattern.label is not None:
            yield pattern.label, group
        group = id(pattern)
    if not isinstance(pattern, syntax.Absent | syntax.Condition):
        for child in syntax.children(pattern):
            yield from _innermost(child, group)
