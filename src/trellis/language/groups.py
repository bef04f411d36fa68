"""The repeated groups of a pattern: `SEQ(A a, B+ b[])+ g[]`, whose variables are bound anew in each iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

from trellis.language import syntax as s


class RepeatedGroup(NamedTuple):
    """A repeated group; groups have the numbers 0, 1, ... in the order of the pattern, those inside NOT behind others.

    `path` are the numbers of the groups around it, outermost first, its own last.
    """

    label: str | None
    path: tuple[int, ...]


def is_repeated(node: s.Node) -> bool:
    """Return whether a node is a group with iterations; `SEQ(...)?` is an optional part without any."""
    return isinstance(node, s.Group) and ((node.least, node.most) != (0, 1) or node.label is not None)


def repeated_groups(pattern: s.Node) -> tuple[RepeatedGroup, ...]:
    """Return the repeated groups of a pattern by their numbers, but for those inside NOT, whose numbers follow."""
    inside = {id(node) for one in s.absent_patterns(pattern) for node in s.walk(one)}
    return tuple(
        RepeatedGroup(node.label, path)
        for node, path in walk_paths(pattern)
        if isinstance(node, s.Group) and is_repeated(node) and id(node) not in inside
    )


def labels_of(pattern: s.Node) -> dict[str, int]:
    """Return the labels of repeated groups, those inside NOT too, with their numbers."""
    return {
        node.label: path[-1]
        for node, path in walk_paths(pattern)
        if isinstance(node, s.Group) and node.label is not None
    }


def walk_paths(pattern: s.Node) -> Iterator[tuple[s.Node, tuple[int, ...]]]:
    """Yield a node and all below it, parents first, with the numbers of the groups around each (its own included)."""
    absent = {id(node) for one in s.absent_patterns(pattern) for node in s.walk(one)}
    repeated = [id(node) for node in s.walk(pattern) if is_repeated(node)]
    numbers = {group: number for number, group in enumerate(sorted(repeated, key=absent.__contains__))}

    def below(node: s.Node, path: tuple[int, ...]) -> Iterator[tuple[s.Node, tuple[int, ...]]]:
        if is_repeated(node):
            path = (*path, numbers[id(node)])
        yield node, path
        for child in s.children(node):
            yield from below(child, path)

    return below(pattern, ())


def once_inside_not(pattern: s.Pattern) -> s.Pattern:
    """Return a pattern in which a group that a NOT forbids happens once: where it does not, it never does.

    One with a label, by which conditions may tell its iterations apart, stays as it is; and so do all beside another
    NOT, whose gap would reach further.
    """

    def once(node: s.Node) -> s.Node | None:
        plain = isinstance(node, s.Group) and node.least == 1 and node.label is None
        return s.rebuild(cast(s.Group, node).pattern, once) if plain else None

    def forbidden(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.Absent) or any(isinstance(one, s.Absent) for e in node.events for one in s.walk(e)):
            return None
        return replace(node, events=tuple(cast(s.Pattern, s.rebuild(one, once)) for one in node.events))

    found = s.rebuild(pattern, forbidden)
    assert isinstance(found, s.Pattern)
    return found


def without_groups(pattern: s.Pattern) -> s.Pattern:
    """Return a pattern in which every repeated group happens once."""

    def once(node: s.Node) -> s.Node | None:
        return s.rebuild(node.pattern, once) if isinstance(node, s.Group) and is_repeated(node) else None

    found = s.rebuild(pattern, once)
    assert isinstance(found, s.Pattern)
    return found
