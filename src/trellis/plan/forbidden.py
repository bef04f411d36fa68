"""Conditions that look out of what a NOT forbids: what they are asked of, and what is told of its matches for them.

A condition is asked of the innermost that a NOT forbids and whose variables it names. Of a pattern it names columns of
its matches, which are told when these are explored by themselves: for what a NOT inside of it forbids beside that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trellis.language import syntax as s
from trellis.language.absent import names_in
from trellis.language.bound import (
    AbsentPattern,
    BoundQuery,
    Column,
    Condition,
    ConditionKind,
    Constant,
    Operation,
    Value,
    columns_of,
    with_columns,
)
from trellis.language.printer import absent_name
from trellis.language.schema import BOOLEAN


def of_nots(bound: BoundQuery, condition: Condition, absent: set[str]) -> Iterator[tuple[str | None, Condition]]:
    """Yield a condition with what it is asked of that a NOT forbids, if it is: an event, or matches of patterns."""
    if not bound.inside_not & condition.names:
        yield next(iter(absent.intersection(condition.variables)), None), condition
    for whole, name in compared_from_inside(bound, condition):
        yield name, replace(condition, value=_of_match(condition.value, bound, whole, name))


def compared_from_inside(bound: BoundQuery, condition: Condition) -> list[tuple[AbsentPattern, str]]:
    """Return the patterns of NOTs some of whose variables, and others outside of these, a condition names.

    With each goes the name of what the condition is asked of: the pattern, or what a NOT inside of it forbids. There
    are several where one stands for alternatives; of those that lack a variable it is not asked.
    """
    names = condition.names - {""}
    inside = names & bound.inside_not
    return [
        (one, "\n".join((one.name, *path)))
        for one in bound.absent_patterns
        if inside and one.variables >= inside and (condition.kind is ConditionKind.TOLD or not one.variables >= names)
        for path in _innermost(one.pattern, names)
    ]


def _innermost(pattern: s.Pattern, names: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the ways, by names, through NOTs inside of a pattern to the innermost that has some of the names."""
    inner = [(one, frozenset(names_in(one))) for one in s.absent_patterns(pattern)]
    inside = names & frozenset().union(*(own for _, own in inner))
    if not inside:
        yield ()
    for one, own in inner:
        if inside and own >= inside:
            yield from ((absent_name(one), *path) for path in _innermost(one, names))


def root_name(name: str) -> str:
    """Return the name of the pattern that a NOT of the query forbids, of one that NOTs inside of it forbid."""
    return name.partition("\n")[0]


def told_condition(columns: tuple[Column, ...], name: str) -> Condition:
    """Return the condition by which columns are told, beside what a NOT forbids by name."""
    variables = tuple(dict.fromkeys(column.var for column in columns))
    return Condition(ConditionKind.TOLD, variables, Operation("or", stated_parts(columns)), name)


def columns_from_inside(bound: BoundQuery, whole: AbsentPattern, name: str) -> tuple[Column, ...]:
    """Return the columns of a NOT's pattern that conditions on what has a name compare with events outside of it."""
    asked = (c for c in bound.conditions if (whole, name) in compared_from_inside(bound, c))
    return tuple(
        dict.fromkeys(column for c in asked for column in columns_of(c.value) if column.var in whole.variables)
    )


def number_in_match(whole: str, name: str) -> int | None:
    """Return which of these columns has a name as one of a match of the pattern; None if none has it."""
    return int(name[len(whole) + 1 :]) if name.startswith(f"{whole}\n") else None


def _of_match(value: Value, bound: BoundQuery, whole: AbsentPattern, name: str) -> Value:
    """Return a value in which what is named inside of the pattern of a NOT is a column of what has a name."""
    inside = columns_from_inside(bound, whole, name)
    columns = {column: replace(column, var=f"{name}\n{i}", at=None) for i, column in enumerate(inside)}
    return with_columns(value, lambda column: columns.get(column, column))


def forbidden_paths(bound: BoundQuery) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the patterns that NOTs forbid, and the columns of their matches, with the groups around each NOT."""
    for one in bound.absent_patterns:
        inside = next(v for v in bound.variables if v.name in one.variables)
        path = tuple(group for group in inside.groups if group < len(bound.groups))
        yield one.name, path
        compared = (pair for c in bound.conditions for pair in compared_from_inside(bound, c))
        for name in dict.fromkeys(name for whole, name in compared if whole == one):
            yield name, path
            yield from ((f"{name}\n{i}", path) for i in range(len(columns_from_inside(bound, one, name))))


def stated_parts(columns: tuple[Column, ...]) -> tuple[Value, ...]:
    """Return the parts of a condition that is true, and names columns."""
    return (Constant(True, BOOLEAN), *(Operation("is null", (column,)) for column in columns))
