"""The oracle's matcher against an even more naive one: all subsets of events times all bindings.

Nothing is built step by step here. A sequence of (event, variable) pairs is a match if it has the pattern's
shape, read off the variables' names, and meets every condition. Under skip-till-next no event in between may
continue a prefix; what can continue one is found by trying all ways to complete it with imaginary events.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given, settings

from tests.oracle import OracleOverflow, run
from tests.oracle.conditions import Conjunct, compile_conjunct
from tests.oracle.events import Event, read
from tests.oracle.structure import absents, leaves
from tests.strategies import Case, case, general_case
from trellis.language import syntax as s
from trellis.language.syntax import Which

Pairs = tuple[tuple[Event, str], ...]
IMAGINARY = "an imaginary event"
OPEN = "the edge of the pattern"


# --- Shape ------------------------------------------------------------------------------------------------


def alternatives(pattern: s.Pattern) -> list[s.Pattern]:
    """List the patterns without OR that a pattern stands for."""
    if isinstance(pattern, s.Or):
        return [one for arm in pattern.arms for one in alternatives(arm)]
    if isinstance(pattern, s.Seq):
        return [s.Seq(parts) for parts in itertools.product(*map(alternatives, pattern.parts))]
    if isinstance(pattern, s.And):
        return [s.And(arms) for arms in itertools.product(*map(alternatives, pattern.arms))]
    return [pattern]


def names(pattern: s.Node) -> set[str]:
    return {leaf.var for leaf in leaves(pattern)}


def own(pattern: s.Node, pairs: Pairs) -> Pairs:
    return tuple(pair for pair in pairs if pair[1] in names(pattern))


def has_type(event: Event, type_name: str | None) -> bool:
    return type_name is None or event.type in (type_name, IMAGINARY)


def has_shape(pattern: s.Pattern, pairs: Pairs) -> bool:
    """Tell whether the pairs are a match of a pattern without OR, conditions and NOT apart."""
    if isinstance(pattern, s.Single):
        return len(pairs) == 1 and has_type(pairs[0][0], pattern.type)
    if isinstance(pattern, s.Kleene):
        rising = all(a.time < b.time for (a, _), (b, _) in itertools.pairwise(pairs))
        return len(pairs) > 0 and rising and all(has_type(event, pattern.type) for event, _ in pairs)
    if isinstance(pattern, s.And):
        return all(has_shape(arm, own(arm, pairs)) for arm in pattern.arms)
    assert isinstance(pattern, s.Seq)
    parts = [part for part in pattern.parts if not isinstance(part, s.Absent)]
    ordered = all(
        a.time < b.time
        for left, right in itertools.pairwise(parts)
        for a, _ in own(left, pairs)
        for b, _ in own(right, pairs)
    )
    return ordered and all(has_shape(part, own(part, pairs)) for part in parts)


def gaps(pattern: s.Pattern, pairs: Pairs, after: Any, before: Any) -> Iterator[tuple[s.Absent, Any, Any]]:
    """Yield each NOT of a matched pattern with the events before and after it."""
    if isinstance(pattern, s.And):
        for arm in pattern.arms:
            yield from gaps(arm, own(arm, pairs), after, before)
    if isinstance(pattern, s.Seq):
        for i, part in enumerate(pattern.parts):
            earlier = [p for p in pattern.parts[:i] if not isinstance(p, s.Absent)]
            later = [p for p in pattern.parts[i + 1 :] if not isinstance(p, s.Absent)]
            left = max((e for e, _ in own(earlier[-1], pairs)), key=lambda e: e.time) if earlier else after
            right = min((e for e, _ in own(later[0], pairs)), key=lambda e: e.time) if later else before
            if isinstance(part, s.Absent):
                yield part, left, right
            else:
                yield from gaps(part, own(part, pairs), left, right)


# --- One small world --------------------------------------------------------------------------------------


class World:
    """The events of one window and partition."""

    def __init__(self, query: s.QuerySyntax, conjuncts: list[Conjunct], events: list[Event], span: Any) -> None:
        self.query, self.conjuncts, self.events, self.span = query, conjuncts, events, span
        self.readings = alternatives(query.pattern)
        self.negated = {single.var for single in absents(query.pattern)}

    def trends(self) -> list[Pairs]:
        matches = [pairs for pairs in self.sequences() if self.is_match(pairs)]
        if self.query.select is s.Select.NEXT:
            return [pairs for pairs in matches if not self.skips_a_fitting_event(pairs)]
        if self.query.select is s.Select.CONTIGUOUS:
            return [pairs for pairs in matches if not self.skips_an_event(pairs)]
        return matches

    def sequences(self) -> Iterator[Pairs]:
        for size in range(1, len(self.events) + 1):
            for events in itertools.combinations(self.events, size):
                for variables in itertools.product(sorted(names(self.query.pattern)), repeat=size):
                    yield tuple(zip(events, variables, strict=True))

    def is_match(self, pairs: Pairs) -> bool:
        if not self.in_span(pairs[0][0], pairs[-1][0]):
            return False
        if not all(self.holds(c, pairs) for c in self.conjuncts if not c.variables & self.negated):
            return False
        return any(self.fits(reading, pairs) for reading in self.readings)

    def fits(self, reading: s.Pattern, pairs: Pairs) -> bool:
        if {var for _, var in pairs} != names(reading) or not has_shape(reading, pairs):
            return False
        return not any(self.filled(gap, pairs) for gap in gaps(reading, pairs, OPEN, OPEN))

    def in_span(self, first: Event, last: Event) -> bool:
        return self.span is None or Fraction(last.time) - Fraction(first.time) <= self.span

    def holds(self, conjunct: Conjunct, pairs: Pairs) -> bool:
        """Test every combination; a conjunct that names an unbound variable is not applied."""
        bound = {var: [event for event, name in pairs if name == var] for _, var in pairs}
        if not conjunct.variables <= bound.keys():
            return True
        spots = {var: range(len(events)) for var, events in bound.items() if var in conjunct.variables}
        for combination in itertools.product(*spots.values()):
            at = dict(zip(spots, combination, strict=True))
            chosen = [pick(reference, bound[reference[0]], at[reference[0]]) for reference in conjunct.references]
            if "no such pair" not in chosen and conjunct.test(tuple(chosen)) is not True:
                return False
        return True

    def filled(self, gap: tuple[s.Absent, Any, Any], pairs: Pairs) -> bool:
        absent, left, right = gap
        for single, event in itertools.product(absent.events, self.events):
            late = self.in_span(event, pairs[-1][0]) if left is OPEN else left.time < event.time
            early = self.in_span(pairs[0][0], event) if right is OPEN else event.time < right.time
            inside = late and early
            if left is OPEN and right is not OPEN:
                inside = inside and event.time < right.time
            asked = [c for c in self.conjuncts if single.var in c.variables]
            with_it = (*pairs, (event, single.var))
            if inside and has_type(event, single.type) and all(self.holds(c, with_it) for c in asked):
                return True
        return False

    # --- Policies ---

    def skips_an_event(self, pairs: Pairs) -> bool:
        places = [self.events.index(event) for event, _ in pairs]
        return any(b - a > 1 for a, b in itertools.pairwise(places))

    def skips_a_fitting_event(self, pairs: Pairs) -> bool:
        for length in range(1, len(pairs)):
            first, last = (self.events.index(pairs[i][0]) for i in (length - 1, length))
            for event in self.events[first + 1 : last]:
                if any(self.can_go_on((*pairs[:length], (event, var))) for var in names(self.query.pattern)):
                    return True
        return False

    def can_go_on(self, prefix: Pairs) -> bool:
        """Tell whether the prefix has the shape of a beginning, and meets what is bound."""
        if not self.in_span(prefix[0][0], prefix[-1][0]):
            return False
        return any(self.can_go_on_as(reading, prefix) for reading in self.readings)

    def can_go_on_as(self, reading: s.Pattern, prefix: Pairs) -> bool:
        completions = list(self.completions(reading, prefix))
        if not completions:
            return False
        growing = {var for whole in completions for _, var in whole[len(prefix) :]}
        positive = [c for c in self.conjuncts if not c.variables & self.negated]
        if not all(self.holds(c, prefix) for c in positive if decided(c, prefix, growing)):
            return False
        for absent, left, right in gaps(reading, completions[0], OPEN, OPEN):
            real = all(bound is not OPEN and bound.type != IMAGINARY for bound in (left, right))
            if not real or not self.all_known(absent, prefix, growing):
                continue
            if self.filled((absent, left, right), prefix):
                return False
        return True

    def completions(self, reading: s.Pattern, prefix: Pairs) -> Iterator[Pairs]:
        """Yield ways to complete a beginning; each variable need take at most one more event."""
        if not {var for _, var in prefix} <= names(reading):
            return
        last = prefix[-1][0]
        for size in range(len(names(reading)) + 1):
            for variables in itertools.permutations(sorted(names(reading)), size):
                more = [(replace(last, time=last.time + i + 1, type=IMAGINARY), v) for i, v in enumerate(variables)]
                whole = (*prefix, *more)
                if {var for _, var in whole} == names(reading) and has_shape(reading, whole):
                    yield whole

    def all_known(self, absent: s.Absent, prefix: Pairs, growing: set[str]) -> bool:
        for single in absent.events:
            for conjunct in self.conjuncts:
                if single.var in conjunct.variables:
                    for var, which, nth in conjunct.references:
                        count = sum(name == var for _, name in prefix)
                        picked = (which is Which.FIRST and count) or (which is Which.NTH and count >= (nth or 0))
                        if var != single.var and var in growing and not picked:
                            return False
        return True


def decided(conjunct: Conjunct, prefix: Pairs, growing: set[str]) -> bool:
    for var, which, nth in conjunct.references:
        count = sum(name == var for _, name in prefix)
        if count == 0:
            return False
        if var in growing and (which is Which.LAST or (which is Which.NTH and count < (nth or 0))):
            return False
    return True


def pick(reference: Any, events: list[Event], place: int) -> Any:
    _, which, nth = reference
    if which in (Which.EARLIER, Which.LATER):
        if place == 0:
            return "no such pair"
        return events[place - 1] if which is Which.EARLIER else events[place]
    if which is Which.NTH:
        return events[nth - 1] if len(events) >= nth else None
    return {Which.EACH: events[place], Which.FIRST: events[0], Which.LAST: events[-1]}[which]


# --- Windows, partitions, report --------------------------------------------------------------------------


def brute(drawn: Case) -> dict[tuple, set[tuple]]:
    """Give the results of each window and partition, as sets of (event id, variable) pairs."""
    options: Mapping[str, Any] = drawn.options
    data = read(
        drawn.rows,
        time=options["time"],
        type=options["type"],
        event_id=options["event_id"],
        schema=drawn.schema,
    )
    query = drawn.query
    if options["type"] is None:
        assert isinstance(query.pattern, s.Kleene)
        query = replace(query, pattern=replace(query.pattern, type=None))
    types = {leaf.var: {leaf.type} for leaf in (*leaves(query.pattern), *absents(query.pattern))}
    conjuncts = [
        compile_conjunct(c, types, data, options["params"]) for c in query.where if not isinstance(c, s.PartitionClause)
    ]
    attributes = [n.value for c in query.where if isinstance(c, s.PartitionClause) for n in c.attributes]
    size, slide = (
        width(query.within.size if query.within else None),
        width(query.within.slide if query.within else None),
    )
    events = list(data.events)
    found: dict[tuple, set[tuple]] = {}
    for window in windows(events, size, slide):
        inside = [e for e in events if window is None or window[0] <= Fraction(e.time) < window[1]]
        for group in partitions(inside, attributes):
            span = size if slide is None else None
            results = complete(World(query, conjuncts, group, span).trends(), query.report)
            key = (window, repr([value_key(group[0].raw[a]) for a in attributes]))
            if results:
                found[key] = {tuple((event.id, var) for event, var in pairs) for pairs in results}
    return found


def width(node: Any) -> Fraction | None:
    if node is None:
        return None
    return Fraction(node.micros if isinstance(node, s.Duration) else node.value)


def windows(events: list[Event], size: Any, slide: Any) -> list[Any]:
    if slide is None:
        return [None]
    reach = max((abs(Fraction(event.time)) for event in events), default=Fraction(0)) + size
    starts = range(-int(reach / slide) - 2, int(reach / slide) + 3)
    return [(k * slide, k * slide + size) for k in starts]


def value_key(value: Any) -> str:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def partitions(events: list[Event], attributes: list[str]) -> list[list[Event]]:
    groups: dict[tuple, list[Event]] = {}
    for event in events:
        groups.setdefault(tuple(value_key(event.raw[a]) for a in attributes), []).append(event)
    return list(groups.values())


def complete(trends: list[Pairs], mode: s.Report) -> list[Pairs]:
    if mode is s.Report.ANY:
        return trends
    return [trend for trend in trends if not any(beats(other, trend, mode) for other in trends)]


def beats(other: Pairs, trend: Pairs, mode: s.Report) -> bool:
    if not set(trend) < set(other):
        return False
    added = [event.time for event, _ in set(other) - set(trend)]
    first, last = trend[0][0].time, trend[-1][0].time
    before, after = all(time < first for time in added), all(time > last for time in added)
    return mode is s.Report.MAXIMAL or before or after


def check(drawn: Case) -> None:
    try:
        expected = brute(drawn)
        answer = run(drawn.query, drawn.rows, schema=drawn.schema, **drawn.options)
    except OracleOverflow:
        return
    actual: dict[tuple, set[tuple]] = {}
    for trend in answer.trends:
        window = trend.window and tuple(map(Fraction, trend.window))
        key = (window, repr([value_key(value) for value in trend.partition]))
        assert trend.pairs not in actual.setdefault(key, set())
        actual[key].add(trend.pairs)
    assert actual == expected


@settings(max_examples=200, deadline=None)
@given(general_case())
def test_general_patterns(drawn: Case) -> None:
    check(drawn)


@settings(max_examples=200, deadline=None)
@given(general_case(nots=2))
def test_patterns_with_many_nots(drawn: Case) -> None:
    check(drawn)


@settings(max_examples=200, deadline=None)
@given(case(most=6, across=True, clauses=False))
def test_one_kleene_variable(drawn: Case) -> None:
    check(drawn)
