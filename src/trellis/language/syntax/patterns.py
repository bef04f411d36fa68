"""The syntax of patterns: single events, repetition, order, choice and absence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from trellis.language.syntax.nodes import Node, children, walk
from trellis.language.syntax.values import Condition


class Select(StrEnum):
    """How a trend may go on."""

    ANY = "skip-till-any"
    NEXT = "skip-till-next"
    CONTIGUOUS = "contiguous"


@dataclass(frozen=True, slots=True)
class Single(Node):
    """`E v`: one event, or with `optional` (`E? v`) perhaps none; `type` is None where any event may fill it."""

    type: str | None
    var: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Kleene(Node):
    """`E+ v[]`, `E* v[]`, `E{2,5} v[]`: at least `least` and at most `most` events, in time order; None: any number.

    `policy` says how its own repetition selects; `greedy` and `until` are the words behind its brackets.
    """

    type: str | None
    var: str
    least: int = 1
    most: int | None = None
    policy: Select | None = None
    greedy: bool = False
    until: Condition | None = None


@dataclass(frozen=True, slots=True)
class Seq(Node):
    """`SEQ(p, ...)` or `p; ...`: the parts, two or more, one after another; not all of them NOT."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """`OR(p, ...)`: one of the arms, two or more."""

    arms: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """`AND(p, ...)`: all arms, two or more, in any order, interleaved."""

    arms: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """`NOT(E v, ...)`: none of these events, nor a match of these patterns, at this place of a SEQ or an AND."""

    events: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """`SEQ(A+ a[], B b)+ g[]`: a pattern, at least `least` and at most `most` times; `label` is `g`, or None."""

    pattern: Pattern
    least: int = 1
    most: int | None = None
    label: str | None = None
    policy: Select | None = None


@dataclass(frozen=True, slots=True)
class PolicyStep(Node):
    """`contiguous B b` inside a SEQ: a part, and how the step into it selects."""

    policy: Select
    pattern: Pattern


Pattern = Single | Kleene | Seq | Or | And | Absent | Group | PolicyStep


def may_be_empty(pattern: Pattern) -> bool:
    """Return whether a pattern can match without any event."""
    match pattern:
        case Single(optional=optional):
            return optional
        case Kleene(least=least):
            return least == 0
        case Group(pattern=inner, least=least):
            return least == 0 or may_be_empty(inner)
        case Or(arms=arms):
            return any(map(may_be_empty, arms))
        case And(arms=parts) | Seq(parts=parts):
            return all(map(may_be_empty, parts))
        case PolicyStep(pattern=inner):
            return may_be_empty(inner)
    return True


def always_bound(pattern: Node) -> set[str]:
    """Return the variables that every match binds."""
    if isinstance(pattern, Single | Kleene):
        return set() if may_be_empty(pattern) else {pattern.var}
    below = [always_bound(child) for child in children(pattern)]
    if isinstance(pattern, Or):
        return set.intersection(*below)
    if isinstance(pattern, Group) and not pattern.least:
        return set()
    return set().union(*below) if isinstance(pattern, Seq | And | PolicyStep | Group) else set()


def leaves(pattern: Node) -> Iterator[Single | Kleene]:
    """Yield the variables below a pattern, those of NOT too."""
    for node in walk(pattern):
        if isinstance(node, Single | Kleene):
            yield node


def absent_patterns(pattern: Node) -> Iterator[Pattern]:
    """Yield the patterns that NOTs below a pattern forbid, but for NOTs inside of these."""
    if isinstance(pattern, Absent):
        yield from pattern.events
    else:
        for child in children(pattern):
            yield from absent_patterns(child)
