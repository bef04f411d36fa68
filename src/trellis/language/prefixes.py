"""The beginnings of a sequence that did not go on: for each of them a query whose matches they are.

`SEQ(A a, B b, C c)` that got as far as `b` and waited for `c` until time was up is a match of
`SEQ(A a, B b, NOT(C c))`, with the conditions that speak of these three.
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
    plain = [part for part in parts if isinstance(part, s.Single) and not part.optional]
    kleene = [part for part in parts if isinstance(part, s.Kleene) and part.least and not _special(part)]
    if len(parts) < 2 or len(plain) + len(kleene) < len(parts) or query.select is not s.Select.ANY or query.aggregates:
        return None
    found = []
    for number in range(1, len(parts)):
        one = _beginning(query, [*plain, *kleene], parts, number)
        if one is None:
            return None
        found.append(one)
    return found


def _special(part: s.Kleene) -> bool:
    return part.policy is not None or part.greedy or part.until is not None or part.most is not None


def _beginning(
    query: s.QuerySyntax, bound: list[s.Single | s.Kleene], parts: tuple[s.Pattern, ...], number: int
) -> Beginning | None:
    """Return the beginning of so many variables; None if a condition asks more of the next one than of one event."""
    by_place = [next(one for one in bound if one is part) for part in parts]
    names, awaited = [one.var for one in by_place[:number]], by_place[number]
    kept, asked = [], []
    for condition in query.where:
        used = {name for node in s.walk(condition) if (name := getattr(node, "var", None)) is not None}
        if not used <= {*names, awaited.var}:
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
        s.Seq((*parts[:number], absent)), tuple(kept), select=query.select, report=query.report, within=query.within
    )
    return Beginning(syntax, ", ".join(names), awaited.var, " AND ".join(asked))


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
