"""The patterns that NOT forbids, where these are more than one event: `NOT(SEQ(A a, B b))`."""

from __future__ import annotations

from collections.abc import Iterator

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


def names_in(pattern: s.Pattern) -> Iterator[str]:
    """Yield the variables and the labels of groups of a pattern."""
    for node in s.walk(pattern):
        name = node.var if isinstance(node, s.Single | s.Kleene) else getattr(node, "label", None)
        if name is not None:
            yield name
