"""The beginnings of a sequence that did not go on: for each of them a query whose matches they are.

`SEQ(A a, B b, C c)` that got as far as `b` and waited for `c` until time was up is a match of
`SEQ(A a, B b, NOT(C c))`, with the conditions that speak of these three. One that NOT ended did not wait: what
`SEQ(A a, NOT(N n), B b)` began and waited for is a match of `SEQ(A a, NOT(N n), NOT(B b))`.
"""

from __future__ import annotations

from dataclasses import dataclass

from trellis.language import syntax as s
from trellis.language.printer import condition_text

OF_TWO = (s.Which.EARLIER, s.Which.LATER)


@dataclass(frozen=True)
class Beginning:
    """A beginning of a sequence: the query of those that went no farther, and the text of what they have and await."""

    syntax: s.QuerySyntax
    matched: str
    awaited: str
    condition: str


def beginnings(query: s.QuerySyntax) -> list[Beginning] | None:
    """Return the beginnings of a sequence, the shortest first; None for other patterns, policies and conditions."""
    parts = query.pattern.parts if isinstance(query.pattern, s.Seq) else ()
    places = [place for place, part in enumerate(parts) if _is_awaited(part)]
    plain = all(_is_awaited(part) or _forbids_events(part) for part in parts)
    if len(places) < 2 or not plain or query.select is not s.Select.ANY or query.aggregates:
        return None
    found = []
    for place in places[1:]:
        one = None if _looks_ahead(query, parts) else _beginning(query, parts, place)
        if one is None:
            return None
        found.append(one)
    return found


def _is_awaited(part: s.Pattern) -> bool:
    """Return whether a part is a variable that takes an event at least."""
    if isinstance(part, s.Single):
        return not part.optional
    special = isinstance(part, s.Kleene) and (part.policy or part.greedy or part.until or part.most is not None)
    return isinstance(part, s.Kleene) and bool(part.least) and not special


def _forbids_events(part: s.Pattern) -> bool:
    return isinstance(part, s.Absent) and all(isinstance(one, s.Single) for one in part.events)


def _names(part: s.Pattern) -> set[str]:
    inside = part.events if isinstance(part, s.Absent) else (part,)
    return {str(name) for one in inside if (name := getattr(one, "var", None)) is not None}


def _looks_ahead(query: s.QuerySyntax, parts: tuple[s.Pattern, ...]) -> bool:
    """Return whether it depends on what comes later whether a NOT forbids an event."""
    for place, part in enumerate(parts):
        if isinstance(part, s.Absent):
            own, later = _names(part), set().union(*map(_names, parts[place + 1 :]))
            if any(_used(condition) & own and _used(condition) & later for condition in query.where):
                return True
    return False


def _used(condition: s.Condition) -> set[str]:
    return {name for node in s.walk(condition) if (name := getattr(node, "var", None)) is not None}


def _beginning(query: s.QuerySyntax, parts: tuple[s.Pattern, ...], place: int) -> Beginning | None:
    """Return the beginning that awaits a part; None if a condition asks more of that than of one event."""
    awaited = parts[place]
    assert isinstance(awaited, s.Single | s.Kleene)
    matched = [part.var for part in parts[:place] if isinstance(part, s.Single | s.Kleene)]
    known = set().union(*map(_names, parts[:place]))
    kept, asked = [], []
    for condition in query.where:
        used = _used(condition)
        if not used <= {*known, awaited.var}:
            continue
        if awaited.var not in used:
            kept.append(condition)
            continue
        of_one = _of_one(condition, awaited.var)
        if of_one is not None:
            if any(_asks_more(node, awaited.var) for node in s.walk(of_one)):
                return None
            kept.append(of_one)
            asked.append(condition_text(of_one))
    absent = s.Absent((s.Single(awaited.type, awaited.var),))
    syntax = s.QuerySyntax(
        s.Seq((*parts[:place], absent)), tuple(kept), select=query.select, report=query.report, within=query.within
    )
    return Beginning(syntax, ", ".join(matched), awaited.var, " AND ".join(asked))


def _of_one(condition: s.Condition, var: str) -> s.Condition | None:
    """Return a condition as it is asked of the first event of a variable; None if it is asked of two of its events."""
    if any(isinstance(node, s.Attribute) and node.var == var and node.which in OF_TWO for node in s.walk(condition)):
        return None

    def first(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Attribute) and node.var == var and node.which is s.Which.FIRST:
            return s.Attribute(node.var, node.attr)
        return None

    return s.rebuild(condition, first)  # type: ignore[return-value]


def _asks_more(node: s.Node, var: str) -> bool:
    if getattr(node, "var", None) != var:
        return False
    return not isinstance(node, s.Attribute) or node.which is not s.Which.EACH or node.iteration is not None
