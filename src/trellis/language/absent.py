"""The patterns that NOT forbids, where these are more than one event: `NOT(SEQ(A a, B b))`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import AbsentPattern
from trellis.language.groups import is_repeated, walk_paths
from trellis.language.printer import absent_name


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


def apart(pattern: s.Pattern) -> s.Pattern:
    """Return a pattern in which NOT forbids each arm of an OR by itself where one of them has a NOT at its edge."""

    def arms(node: s.Pattern) -> Iterator[s.Pattern]:
        if isinstance(node, s.Or) and any(without_edges(arm)[1] is not arm for arm in node.arms):
            for arm in node.arms:
                yield from arms(arm)
        else:
            yield node

    def forbidden(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.Absent):
            return None
        events = tuple(cast(s.Pattern, s.rebuild(one, forbidden)) for event in node.events for one in arms(event))
        return replace(node, events=events)

    return cast(s.Pattern, s.rebuild(pattern, forbidden))


def names_in(pattern: s.Pattern) -> Iterator[str]:
    """Yield the variables and the labels of groups of a pattern."""
    for node in s.walk(pattern):
        name = node.var if isinstance(node, s.Single | s.Kleene) else getattr(node, "label", None)
        if name is not None:
            yield name
