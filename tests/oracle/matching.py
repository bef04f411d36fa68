"""Matching: all trends of one window and partition, event by event, under one of the three policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Select, Which

from .conditions import Bound, Conjunct
from .events import Event
from .structure import Gap, State, absents, fits, start

Pairs = tuple[tuple[Event, str], ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One reading of a match so far: its place in the pattern, and the NOTs that are not decided yet."""

    state: State
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Partial:
    """A match so far; one that arms of an OR share has several readings, but is one match."""

    pairs: Pairs
    bound: Bound
    branches: tuple[Branch, ...]


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
        negated = {single.var for single in absents(pattern)}
        self.constants = [c for c in conjuncts if not c.variables]
        self.of_absent = {var: [c for c in conjuncts if var in c.variables] for var in negated}
        positive = [c for c in conjuncts if c.variables and not c.variables & negated]
        self.early = [c for c in positive if not c.late]
        self.late = [c for c in positive if c.late]

    def trends(self) -> list[Pairs]:
        """List every trend once."""
        if not all(conjunct.holds({}) for conjunct in self.constants):
            return []
        found: list[Pairs] = []
        empty = Partial((), {}, (Branch(start(self.pattern)),))
        for index, event in enumerate(self.events):
            for first in self._continuations(empty, event):
                found.extend(self._grow(first, index + 1))
        return found

    def _grow(self, match: Partial, index: int) -> Iterator[Pairs]:
        """Yield the match, if it is one, and all that it can grow into with events from `index` on."""
        if self._is_trend(match):
            yield match.pairs
        for i in range(index, len(self.events)):
            longer = self._continuations(match, self.events[i])
            for next_match in longer:
                yield from self._grow(next_match, i + 1)
            if self.select is Select.CONTIGUOUS or (self.select is Select.NEXT and longer):
                break

    def _continuations(self, match: Partial, event: Event) -> list[Partial]:
        """List the ways in which the match so far can be continued with this event, one for each variable."""
        if match.pairs and not self._within_span(match.pairs[0][0], event):
            return []
        steps: dict[str, list[Branch]] = {}
        for branch in match.branches:
            for step in branch.state.steps(event, None):
                steps.setdefault(step.var, []).append(Branch(step.state, branch.gaps + step.gaps))
        longer = (self._take(match, event, var, branches) for var, branches in steps.items())
        return [candidate for candidate in longer if candidate is not None]

    def _take(self, match: Partial, event: Event, var: str, branches: list[Branch]) -> Partial | None:
        """Bind the event, or give None if a condition whose variables are then bound does not hold."""
        bound = {**match.bound, var: (*match.bound.get(var, ()), event)}
        pairs = (*match.pairs, (event, var))
        for conjunct in self.early:
            concerned = var in conjunct.variables and conjunct.variables <= bound.keys()
            if concerned and not conjunct.holds(bound, newest=var):
                return None
        checked = (self._checked(branch, pairs, bound) for branch in branches)
        alive = tuple(dict.fromkeys(branch for branch in checked if branch is not None))
        return Partial(pairs, bound, alive) if alive else None

    def _checked(self, branch: Branch, pairs: Pairs, bound: Bound) -> Branch | None:
        """Test what can be decided now; give the rest of the branch, or None if something does not hold."""
        open_variables = branch.state.open
        for conjunct in self.late:
            if self._decided(conjunct, bound, open_variables) and not conjunct.holds(bound):
                return None
        undecided = []
        for gap in branch.gaps:
            if not self._gap_decided(gap, bound, open_variables):
                undecided.append(gap)
            elif self._gap_filled(gap, pairs, bound):
                return None
        return Branch(branch.state, tuple(undecided))

    def _is_trend(self, match: Partial) -> bool:
        """Tell whether the match so far, taken as it is, matches the whole pattern."""
        applied = [conjunct for conjunct in self.late if conjunct.variables <= match.bound.keys()]
        if not all(conjunct.holds(match.bound) for conjunct in applied):
            return False
        return any(self._is_complete(branch, match) for branch in match.branches)

    def _is_complete(self, branch: Branch, match: Partial) -> bool:
        if not branch.state.complete:
            return False
        gaps = branch.gaps + branch.state.trailing()
        return not any(self._gap_filled(gap, match.pairs, match.bound) for gap in gaps)

    def _within_span(self, first: Event, last: Event) -> bool:
        if self.span is None:
            return True
        if isinstance(last.time, float):
            return last.time - first.time <= float(self.span)
        return exact(last.time) - exact(first.time) <= self.span

    @staticmethod
    def _decided(conjunct: Conjunct, bound: Bound, open_variables: frozenset[str]) -> bool:
        """Tell whether the events that a conjunct names by LAST(v) and v[k] are known."""
        for var, which, nth in conjunct.references:
            if var not in bound:
                return False
            if which is Which.LAST and var in open_variables:
                return False
            if which is Which.NTH and len(bound[var]) < (nth or 0) and var in open_variables:
                return False
        return True

    # --- NOT ----------------------------------------------------------------------------------------------

    def _gap_decided(self, gap: Gap, bound: Bound, open_variables: frozenset[str]) -> bool:
        """Tell whether both bounds and all events that the NOT's conditions name are known."""
        if gap.after is None or gap.before is None:
            return False
        for single in gap.absent.events:
            for conjunct in self.of_absent[single.var]:
                for var, which, nth in conjunct.references:
                    if var == single.var or var not in open_variables:
                        continue
                    known = len(bound.get(var, ()))
                    if not (which is Which.FIRST and known) and not (which is Which.NTH and known >= (nth or 0)):
                        return False
        return True

    def _gap_filled(self, gap: Gap, pairs: Pairs, bound: Bound) -> bool:
        """Tell whether an event that the NOT forbids lies in the gap."""
        return any(
            self._inside(gap, event, pairs) and self._forbidden(single, event, bound)
            for single in gap.absent.events
            for event in self.events
        )

    def _inside(self, gap: Gap, event: Event, pairs: Pairs) -> bool:
        first, last = pairs[0][0], pairs[-1][0]
        if gap.after is not None and not gap.after < event.time:
            return False
        if gap.before is not None and not event.time < gap.before:
            return False
        if gap.after is None and not self._within_span(event, last):
            return False
        return gap.before is not None or self._within_span(first, event)

    def _forbidden(self, single: syntax.Single, event: Event, bound: Bound) -> bool:
        if not fits(event, single.type):
            return False
        full = {**bound, single.var: (event,)}
        applied = [conjunct for conjunct in self.of_absent[single.var] if conjunct.variables <= full.keys()]
        return all(conjunct.holds(full) for conjunct in applied)
