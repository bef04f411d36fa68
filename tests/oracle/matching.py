"""Matching: all trends of one window and partition, by trying sequences of (event, variable) pairs.

A sequence is a trend if some reading of it meets the conditions, the NOTs and the span. All sequences that begin like
a trend are tried, each judged as a whole; what cannot be continued is not tried further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Select

from .conditions import Bound, Conjunct
from .events import Event
from .readings import EDGE, TO_COME, Gap, Pairs, Reading, gaps, readings
from .structure import absents, fits, variables


def exact(number: Any) -> Any:
    """Make a number such that sums and differences are exact."""
    return Fraction(number) if not isinstance(number, int) else number


class Matcher:
    """Finds all trends among the events of one window and partition, given in the order (time, event id)."""

    def __init__(
        self,
        pattern: syntax.Pattern,
        conjuncts: Sequence[Conjunct],
        events: Sequence[Event],
        select: Select,
        span: Any = None,
    ) -> None:
        self.pattern = pattern
        self.events = events
        self.select = select
        self.span = span
        self.names = variables(pattern)
        negated = {single.var for single in absents(pattern)}
        self.positive = [c for c in conjuncts if not c.variables & negated]
        self.of_absent = {var: [c for c in conjuncts if var in c.variables] for var in negated}

    def trends(self) -> list[Pairs]:
        """List every trend once."""
        return list(self._grow((), 0))

    def _grow(self, so_far: Pairs, place: int) -> Iterator[Pairs]:
        """Yield the match so far, if it is a trend, and the trends it can grow into with events from `place` on."""
        if so_far and self.is_trend(so_far):
            yield so_far
        for i in range(place, len(self.events)):
            tried = [(*so_far, (self.events[i], var)) for var in self.names]
            longer = [pairs for pairs in tried if self.begins_a_trend(pairs)]
            for pairs in longer:
                yield from self._grow(pairs, i + 1)
            if so_far and (self.select is Select.CONTIGUOUS or (self.select is Select.NEXT and longer)):
                break

    def is_trend(self, pairs: Pairs) -> bool:
        """Tell whether the pairs are a match of the whole pattern that meets all that the query asks."""
        return self._in_span(pairs[0][0], pairs[-1][0]) and any(
            self._holds(reading) and not any(self._filled(gap, reading, pairs) for gap in gaps(reading))
            for reading in readings(self.pattern, pairs, beginning=False)
        )

    def begins_a_trend(self, pairs: Pairs) -> bool:
        """Tell whether the pairs are a match so far: all holds that can be judged without the events to come.

        A NOT at an edge of the pattern is judged when the match is whole.
        """
        return self._in_span(pairs[0][0], pairs[-1][0]) and any(
            self._holds(reading)
            and not any(
                self._filled(gap, reading, pairs)
                for gap in gaps(reading)
                if not {gap.after, gap.before} & {EDGE, TO_COME}
            )
            for reading in readings(self.pattern, pairs, beginning=True)
        )

    def _in_span(self, first: Event, last: Event) -> bool:
        if self.span is None:
            return True
        if isinstance(last.time, float):
            return last.time - first.time <= float(self.span)
        return exact(last.time) - exact(first.time) <= self.span

    def _holds(self, reading: Reading) -> bool:
        """Tell whether every condition holds; those that name a variable which the reading lacks are not applied."""
        bound = _bound(reading)
        applied = (conjunct for conjunct in self.positive if conjunct.variables <= bound.keys())
        return all(conjunct.holds(bound, of_coming=True) for conjunct in applied)

    def _filled(self, gap: Gap, reading: Reading, pairs: Pairs) -> bool:
        """Tell whether an event that the NOT forbids lies in the gap."""
        bound = _bound(reading)
        return any(
            self._inside(gap, event, pairs) and self._forbidden(single, event, bound)
            for single in gap.absent.events
            for event in self.events
        )

    def _inside(self, gap: Gap, event: Event, pairs: Pairs) -> bool:
        """Tell whether an event lies in the gap, which at an edge of the pattern reaches as far as the span."""
        first, last = pairs[0][0], pairs[-1][0]
        late = self._in_span(event, last) if gap.after is EDGE else gap.after.time < event.time
        early = self._in_span(first, event) if gap.before is EDGE else event.time < gap.before.time
        return late and early

    def _forbidden(self, single: syntax.Single, event: Event, bound: Bound) -> bool:
        """Tell whether the event meets all conditions of a NOT's variable; those on events to come it may not."""
        if not fits(event, single.type):
            return False
        full = {**bound, single.var: (event,)}
        applied = (conjunct for conjunct in self.of_absent[single.var] if conjunct.variables <= full.keys())
        return all(conjunct.holds(full, of_coming=False) for conjunct in applied)


def _bound(reading: Reading) -> Bound:
    return {leaf.var: leaf.events for leaf in reading.leaves() if leaf.events}
