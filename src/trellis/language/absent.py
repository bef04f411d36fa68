"""The patterns that NOT forbids, where these are more than one event: `NOT(SEQ(A a, B b))`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product, takewhile
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import AbsentPattern
from trellis.language.groups import is_repeated, walk_paths
from trellis.language.printer import absent_name

MOST_WAYS = 64  # alternatives of a pattern inside NOT


def forbidden_patterns(pattern: s.Pattern) -> tuple[AbsentPattern, ...]:
    """Return the patterns of more than one event that NOTs below a pattern forbid."""
    numbers = {id(node): path[-1] for node, path in walk_paths(pattern) if is_repeated(node)}
    found = []
    for one in s.absent_patterns(pattern):
        if not isinstance(one, s.Single):
            own = {path[-1]: numbers[id(node)] for node, path in walk_paths(one) if is_repeated(node)}
            names = frozenset(names_in(one))
            found.append(AbsentPattern(absent_name(one), one, names, tuple(own[i] for i in range(len(own)))))
    return tuple(found)


def without_edges(pattern: s.Pattern) -> tuple[tuple[s.Pattern, ...], s.Pattern, tuple[s.Pattern, ...]]:
    """Return a pattern that a NOT forbids, without the NOTs at its edges; and what these forbid, before and behind."""
    if not isinstance(pattern, s.Seq):
        return (), pattern, ()
    parts = [*pattern.parts]
    before = [*takewhile(lambda part: isinstance(part, s.Absent), parts)]
    after = [*takewhile(lambda part: isinstance(part, s.Absent), reversed(parts))]
    if not before and not after:
        return (), pattern, ()
    core = parts[len(before) : len(parts) - len(after)]
    first, last = ([one for absent in some for one in s.absent_patterns(absent)] for some in (before, after))
    return tuple(first), core[0] if len(core) == 1 else replace(pattern, parts=tuple(core)), tuple(last)


def absent_at_edge(node: s.Node, before: bool = False, behind: bool = False) -> Iterator[s.Absent]:
    """Yield the NOTs that may lack an event of a pattern before or behind them; it has these around it."""
    if isinstance(node, s.Absent):
        if not (before and behind):
            yield node
    elif isinstance(node, s.Seq):
        filled = [not s.may_be_empty(part) for part in node.parts]
        for i, part in enumerate(node.parts):
            yield from absent_at_edge(part, before or any(filled[:i]), behind or any(filled[i + 1 :]))
    else:
        for child in s.children(node):
            yield from absent_at_edge(child, before, behind)


def is_placed(pattern: s.Pattern) -> bool:
    """Return whether the NOTs at the edges of a pattern are the first and the last parts of its SEQ."""
    before, _, after = without_edges(pattern)
    return all({*absent.events} <= {*before, *after} for absent in absent_at_edge(pattern))


def alternatives(pattern: s.Pattern) -> tuple[s.Pattern, ...]:
    """Return patterns of which NOT forbids each by itself where it forbids one that has a NOT at its edge.

    These have no optional parts and no OR, so that a NOT at an edge is the first or last part of a SEQ; it is not where
    it stands in an AND or in a repeated group, of which there is one only where nothing is optional.
    """
    if is_placed(pattern):
        return (pattern,)
    if isinstance(pattern, s.Or):
        return tuple(one for arm in pattern.arms for one in alternatives(arm))
    ways = [*islice(_ways(pattern), MOST_WAYS + 1)]
    repeated = any(is_repeated(node) for node in s.walk(pattern))
    if len(ways) > MOST_WAYS or (repeated and len(ways) > 1):
        return (pattern,)
    return tuple(s.Seq(parts, span=pattern.span) for parts in ways)


def _ways(node: s.Pattern) -> Iterator[tuple[s.Pattern, ...]]:
    """Yield the sequences of parts, each with an event, that a pattern stands for."""
    if isinstance(node, s.Single | s.Kleene | s.Group) and s.may_be_empty(node):
        yield ()
    match node:
        case s.Seq(parts=parts):
            for each in product(*(tuple(_ways(part)) for part in parts)):
                yield tuple(part for some in each for part in some)
        case s.Or(arms=arms):
            for arm in arms:
                yield from _ways(arm)
        case s.Single():
            yield (replace(node, optional=False),)
        case s.Kleene(least=least):
            yield (replace(node, least=max(least, 1)),)
        case s.Group(pattern=inner) if not is_repeated(node):
            yield from (way for way in _ways(inner) if way)
        case _:
            yield (node,)


def apart(pattern: s.Pattern) -> s.Pattern:
    """Return a pattern in which NOT forbids each of the alternatives by itself that what it forbids stands for."""

    def forbidden(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.Absent):
            return None
        events = (cast(s.Pattern, s.rebuild(event, forbidden)) for event in node.events)
        return replace(node, events=tuple(one for event in events for one in alternatives(event)))

    return cast(s.Pattern, s.rebuild(pattern, forbidden))


def names_in(pattern: s.Pattern) -> Iterator[str]:
    """Yield the variables and the labels of groups of a pattern."""
    for node in s.walk(pattern):
        name = node.var if isinstance(node, s.Single | s.Kleene) else getattr(node, "label", None)
        if name is not None:
            yield name
