"""The patterns that NOT forbids, where these are more than one event: `NOT(SEQ(A a, B b))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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


class EdgeNot(NamedTuple):
    """A NOT that may lack an event of its pattern on a side: `before` and `behind` tell where there always is one."""

    absent: s.Absent
    before: bool
    behind: bool


def absent_at_edge(node: s.Node, before: bool = False, behind: bool = False) -> Iterator[EdgeNot]:
    """Yield the NOTs at the edges of a pattern, which has events around it or not."""
    if isinstance(node, s.Absent):
        if not (before and behind):
            yield EdgeNot(node, before, behind)
    elif isinstance(node, s.Seq):
        filled = [not s.may_be_empty(part) for part in node.parts]
        for i, part in enumerate(node.parts):
            yield from absent_at_edge(part, before or any(filled[:i]), behind or any(filled[i + 1 :]))
    else:
        for child in s.children(node):
            yield from absent_at_edge(child, before, behind)


def names_in(pattern: s.Pattern) -> Iterator[str]:
    """Yield the variables and the labels of groups of a pattern."""
    for node in s.walk(pattern):
        name = node.var if isinstance(node, s.Single | s.Kleene) else getattr(node, "label", None)
        if name is not None:
            yield name
