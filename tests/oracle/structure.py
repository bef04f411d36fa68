"""Questions about a pattern: its leaves, its variables, and the types that events must have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any

from trellis.language import syntax

from .events import Event


def once(question: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Answer a question about a node once: it is asked again for every sequence that is tried."""
    known: dict[int, tuple[Any, Any]] = {}  # with the node, so that no other one gets its identity

    @wraps(question)
    def answer(node: Any) -> Any:
        found = known.get(id(node))
        if found is None:
            if len(known) > 10_000:
                known.clear()
            found = known[id(node)] = node, question(node)
        return found[1]

    return answer


def fits(event: Event, type_name: str | None) -> bool:
    """Tell whether an event has the type; where the input has no types every event does.

    `event.type` is None both for an event of no type and for one whose type is NULL, so the pattern's types are
    replaced by None where the input has none.
    """
    return type_name is None or event.type == type_name


@once
def leaves(pattern: syntax.Node) -> tuple[syntax.Single | syntax.Kleene, ...]:
    """Give the leaves that take events, in the order of the pattern; those of a NOT are left out."""
    if isinstance(pattern, (syntax.Single, syntax.Kleene)):
        return (pattern,)
    if isinstance(pattern, syntax.Absent | syntax.Condition):
        return ()
    return tuple(leaf for child in syntax.children(pattern) for leaf in leaves(child))


def bounds(leaf: syntax.Single | syntax.Kleene) -> tuple[int, int | None]:
    """Give the least and the greatest number of events that a variable takes; None where there is no greatest."""
    if isinstance(leaf, syntax.Kleene):
        return leaf.least, leaf.most
    return 0 if leaf.optional else 1, 1


def absents(pattern: syntax.Node) -> Iterator[syntax.Single | syntax.Kleene]:
    """Yield the leaves of all NOTs."""
    for node in syntax.walk(pattern):
        if isinstance(node, syntax.Absent):
            for event in node.events:
                yield from leaves(event)


@once
def has_absent(pattern: syntax.Node) -> bool:
    """Tell whether there is a NOT."""
    return any(isinstance(node, syntax.Absent) for node in syntax.walk(pattern))


@once
def variables(pattern: syntax.Node) -> tuple[str, ...]:
    """Give the variables that take events, each once, in the order of the pattern."""
    return tuple(dict.fromkeys(leaf.var for leaf in leaves(pattern)))


def is_optional(group: syntax.Group) -> bool:
    """Tell whether a group is an optional part without iterations: `SEQ(...)?` without a label."""
    return (group.least, group.most, group.label) == (0, 1, None)


@once
def groups(pattern: syntax.Node) -> list[syntax.Group]:
    """Give the repeated groups; those of a NOT are left out."""
    if isinstance(pattern, syntax.Absent | syntax.Condition):
        return []
    own = [pattern] if isinstance(pattern, syntax.Group) and not is_optional(pattern) else []
    return own + [group for child in syntax.children(pattern) for group in groups(child)]


@once
def labels(pattern: syntax.Node) -> frozenset[str]:
    """Give the labels of the repeated groups."""
    return frozenset(group.label for group in groups(pattern) if group.label is not None)


def kleene_variables(pattern: syntax.Node) -> frozenset[str]:
    """Give the variables to which a trend may bind several events: with a Kleene operator, or in a repeated group."""
    inside = {leaf.var for group in groups(pattern) for leaf in leaves(group)}
    return frozenset(inside | {leaf.var for leaf in leaves(pattern) if isinstance(leaf, syntax.Kleene)})


def untyped(pattern: Any) -> Any:
    """Give the same pattern with any event fitting every variable (an input without types has one type)."""
    if isinstance(pattern, (syntax.Single, syntax.Kleene)):
        return replace(pattern, type=None)
    if isinstance(pattern, syntax.Absent):
        return replace(pattern, events=tuple(untyped(event) for event in pattern.events))
    if isinstance(pattern, syntax.PolicyStep | syntax.Group):
        return replace(pattern, pattern=untyped(pattern.pattern))
    if isinstance(pattern, syntax.Seq):
        return replace(pattern, parts=tuple(untyped(part) for part in pattern.parts))
    return replace(pattern, arms=tuple(untyped(arm) for arm in pattern.arms))
