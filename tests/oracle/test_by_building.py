"""The oracle against a definition that builds instead of reading: every match of every part, put together.

The oracle reads sequences of pairs. Here the matches of a pattern are made from the matches of its parts, with no
condition looked at before they are whole: a Kleene variable takes every rising sequence of events, SEQ and AND put
together every choice from their parts, OR takes all of them. What a match so far is comes from the same matches, made
over imaginary later events as well: it is what one of them begins with. Windows, partitions and REPORT have a second
definition here too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hypothesis import given

from tests.oracle import OracleOverflow, run
from tests.oracle.conditions import Conjunct, compile_conjunct
from tests.oracle.events import Event, read
from tests.oracle.structure import absents, bounds, leaves, variables
from tests.profiles import examples
from tests.strategies import Case, case, general_case
from trellis.language import syntax as s
from trellis.language.syntax import Which

Pairs = tuple[tuple[Event, str], ...]
IMAGINARY = "an imaginary event, for the variable that is its id"


# --- Matches of a pattern -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """Pairs in order, and each NOT with the events before and after it, None where there is none yet."""

    pairs: Pairs
    nots: tuple[tuple[s.Absent, Event | None, Event | None], ...] = ()

    def between(self, before: Match | None, after: Match | None) -> Match:
        """Close the gaps at the ends by the neighbours in a SEQ."""
        left = before.pairs[-1][0] if before else None
        right = after.pairs[0][0] if after else None
        return replace(self, nots=tuple((absent, a or left, b or right) for absent, a, b in self.nots))


def matches(pattern: s.Pattern, events: list[Event]) -> Iterator[Match]:
    """Yield every match of a pattern, conditions and NOT apart."""
    if isinstance(pattern, s.Or):
        for arm in pattern.arms:
            yield from matches(arm, events)
    elif isinstance(pattern, s.Absent):
        yield Match((), ((pattern, None, None),))
    elif isinstance(pattern, s.And):
        for arms in itertools.product(*(list(matches(arm, events)) for arm in pattern.arms)):
            pairs = sorted((pair for arm in arms for pair in arm.pairs), key=lambda pair: pair[0].order)
            if all(a is not b for (a, _), (b, _) in itertools.pairwise(pairs)):
                yield Match(tuple(pairs), tuple(absent for arm in arms for absent in arm.nots))
    elif isinstance(pattern, s.Seq):
        positive = [part for part in pattern.parts if not isinstance(part, s.Absent)]
        for parts in itertools.product(*(list(matches(part, events)) for part in positive)):
            taking = [part for part in parts if part.pairs]
            if all(a.pairs[-1][0].tick < b.pairs[0][0].tick for a, b in itertools.pairwise(taking)):
                yield joined(pattern, list(parts))
    else:
        assert isinstance(pattern, s.Single | s.Kleene)
        own = [event for event in events if pattern.type in (None, event.type) or is_imaginary(event)]
        own = [event for event in own if not is_imaginary(event) or event.id == pattern.var]
        least, most = bounds(pattern)
        for size in range(least, 1 + (len(own) if most is None else most)):
            for chosen in itertools.combinations(own, size):
                if all(a.tick < b.tick for a, b in itertools.pairwise(chosen)):
                    yield Match(tuple((event, pattern.var) for event in chosen))


def joined(pattern: s.Seq, parts: list[Match]) -> Match:
    """Put the matches of a SEQ's parts one behind another, and its NOTs between them."""
    nots: list[Any] = []
    rest = iter(parts)
    before, behind = None, list(parts)
    for part in pattern.parts:
        here = Match((), ((part, None, None),)) if isinstance(part, s.Absent) else next(rest)
        behind = behind if isinstance(part, s.Absent) else behind[1:]
        nots += here.between(before, next((match for match in behind if match.pairs), None)).nots
        before = here if here.pairs else before
    return Match(tuple(pair for part in parts for pair in part.pairs), tuple(nots))


def is_imaginary(event: Event) -> bool:
    return event.type == IMAGINARY


# --- One small world ----------------------------------------------------------------------------------------


class World:
    """The events of one window and partition."""

    def __init__(self, query: s.QuerySyntax, conjuncts: list[Conjunct], events: list[Event], span: Any) -> None:
        self.query, self.conjuncts, self.events, self.span = query, conjuncts, events, span
        self.negated = {single.var for single in absents(query.pattern)}

    def trends(self) -> set[Pairs]:
        found = {match.pairs for match in matches(self.query.pattern, self.events) if self.holds(match, whole=True)}
        if self.query.select is s.Select.CONTIGUOUS:
            return {pairs for pairs in found if not any(self.skipped(pairs))}
        if self.query.select is s.Select.NEXT:
            so_far = self.matches_so_far()
            names = variables(self.query.pattern)
            return {
                pairs
                for pairs in found
                if not any((*start, (event, var)) in so_far for start, event in self.skipped(pairs) for var in names)
            }
        return found

    def skipped(self, pairs: Pairs) -> Iterator[tuple[Pairs, Event]]:
        """Yield each event that a match passes over, with what it had until then."""
        places = [self.events.index(event) for event, _ in pairs]
        for i, (a, b) in enumerate(itertools.pairwise(places)):
            for event in self.events[a + 1 : b]:
                yield pairs[: i + 1], event

    def matches_so_far(self) -> set[Pairs]:
        """Give what a match over real and then imaginary events begins with, as far as real events can tell."""
        last = self.events[-1]
        later = [
            replace(
                last,
                time=last.time + i,
                order=last.order + i,
                id=var,
                type=IMAGINARY,
                tick=(last.time + i, *last.tick[1:]),
            )
            for i, var in enumerate(
                (leaf.var for leaf in leaves(self.query.pattern) for _ in range(max(1, bounds(leaf)[0]))), 1
            )
        ]
        every = matches(self.query.pattern, [*self.events, *later])
        return {real(match.pairs) for match in every if real(match.pairs) and self.holds(match, whole=False)}

    def holds(self, match: Match, whole: bool) -> bool:
        """Test span, conditions and NOTs as far as they speak of real events; edges only where the match is whole."""
        pairs = real(match.pairs)
        if not self.in_span(pairs[0][0], pairs[-1][0]):
            return False
        if False in (t for c in self.conjuncts if not c.variables & self.negated for t in truths(c, match.pairs)):
            return False
        judged = [
            n for n in match.nots if whole or (n[1] and n[2] and not is_imaginary(n[1]) and not is_imaginary(n[2]))
        ]
        return not any(self.filled(*each, match.pairs) for each in judged)

    def in_span(self, first: Event, last: Event) -> bool:
        return self.span is None or Fraction(last.time) - Fraction(first.time) <= self.span

    def filled(self, absent: s.Absent, left: Event | None, right: Event | None, pairs: Pairs) -> bool:
        first, last = real(pairs)[0][0], real(pairs)[-1][0]
        inside = [
            event
            for event in self.events
            if (left.tick < event.tick if left else self.in_span(event, last))
            and (event.tick < right.tick if right else self.in_span(first, event))
        ]
        for forbidden in absent.events:
            names = set(variables(forbidden))
            deeper = {single.var for single in absents(forbidden)}
            asked = [c for c in self.conjuncts if names & c.variables and not deeper & c.variables]
            beside = pairs if isinstance(forbidden, s.Single) else ()  # conditions of a pattern stay inside it
            for match in matches(forbidden, inside):
                if all(t for c in asked for t in truths(c, (*beside, *match.pairs))) and not any(
                    self.filled(*each, match.pairs) for each in match.nots
                ):
                    return True
        return False


def real(pairs: Pairs) -> Pairs:
    return tuple(pair for pair in pairs if not is_imaginary(pair[0]))


def truths(conjunct: Conjunct, pairs: Pairs) -> Iterable[bool | None]:
    """Test every combination, None where one event is imaginary; a conjunct with an unbound variable is not applied."""
    bound = {var: [event for event, name in pairs if name == var] for _, var in pairs}
    if not conjunct.variables <= bound.keys():
        return
    spots = {var: range(len(bound[var])) for var in conjunct.variables}
    for combination in itertools.product(*spots.values()):
        at = dict(zip(spots, combination, strict=True))
        chosen = [pick(reference, bound[reference[0]], at[reference[0]]) for reference in conjunct.references]
        if "no such pair" not in chosen:
            unknown = any(event is not None and is_imaginary(event) for event in chosen)
            yield None if unknown else conjunct.test(tuple(chosen)) is True


def pick(reference: Any, events: list[Event], place: int) -> Any:
    _, which, nth = reference
    if which in (Which.EARLIER, Which.LATER):
        if place == 0:
            return "no such pair"
        return events[place - 1] if which is Which.EARLIER else events[place]
    if which is Which.NTH and len(events) < nth:
        return events[-1] if is_imaginary(events[-1]) else None  # there may be as many of these as one likes
    places = {Which.EACH: place, Which.FIRST: 0, Which.LAST: -1, Which.NTH: (nth or 0) - 1}
    return events[places[which]]


# --- Windows, partitions, report ----------------------------------------------------------------------------


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


def complete(trends: set[Pairs], mode: s.Report) -> Iterable[Pairs]:
    if mode is s.Report.ANY:
        return trends
    return [trend for trend in trends if not any(beats(other, trend, mode) for other in trends)]


def beats(other: Pairs, trend: Pairs, mode: s.Report) -> bool:
    if not set(trend) < set(other):
        return False
    added = [event.tick for event, _ in set(other) - set(trend)]
    first, last = trend[0][0].tick, trend[-1][0].tick
    before, after = all(tick < first for tick in added), all(tick > last for tick in added)
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


def has_no_groups(drawn: Case) -> bool:
    """Tell whether nothing is repeated inside of NOT, whose iterations are not built here."""
    return not any(isinstance(node, s.Group) for node in s.walk(drawn.query.pattern))


@examples(200)
@given(general_case().filter(has_no_groups))
def test_general_patterns(drawn: Case) -> None:
    check(drawn)


@examples(200)
@given(general_case(nots=2).filter(has_no_groups))
def test_patterns_with_many_nots(drawn: Case) -> None:
    check(drawn)


@examples(200)
@given(case(most=6, across=True, clauses=False))
def test_one_kleene_variable(drawn: Case) -> None:
    check(drawn)
