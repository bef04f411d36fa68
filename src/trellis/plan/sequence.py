"""The view of a pattern as a fixed sequence, `SEQ(A a, NOT(B b), C c)`, whose conditions compare any two variables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from trellis.language import syntax as s
from trellis.language.bound import (
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
from trellis.language.schema import Type
from trellis.plan.automaton import Automaton
from trellis.plan.positions import of_neighbours
from trellis.plan.relation import comparison, terms


@dataclass
class FixedSequence:
    """The variables in their order, and the conditions between any two of them.

    Attributes
    ----------
    absent
        The variables of NOT before each variable, and at last those behind the last.
    pairs
        The conditions on the events of two variables, the earlier one first.
    inferred
        Conditions on single variables that follow from others: `b.x = 1` from `a.x = b.x` and `a.x = 1`.
    partition
        The columns in which all events of a match are equal, though the query does not say it in brackets: matches can
        be found for each of their values alone. `a.x = b.x AND b.x = c.x` has `x`.
    """

    variables: tuple[str, ...]
    absent: tuple[tuple[str, ...], ...]
    pairs: dict[tuple[int, int], tuple[Condition, ...]] = field(default_factory=dict)
    inferred: list[Condition] = field(default_factory=list)
    partition: tuple[tuple[str, Type], ...] = ()


def fixed_sequence(
    automaton: Automaton, bound: BoundQuery, constant: tuple[Condition, ...], other: tuple[Condition, ...]
) -> FixedSequence | None:
    """Return an automaton as a sequence; None if it is not one, or its conditions are of another kind.

    Parameters
    ----------
    automaton, bound
        The pattern, and the query for its policy and partition.
    constant, other
        The conditions on single events, and those on several variables.
    """
    absent = automaton.chain() if bound.select is s.Select.ANY and not bound.filters else None
    if absent is None:
        return None
    sequence = FixedSequence(tuple(position.variable for position in automaton.positions), absent)
    places = {name: place for place, name in enumerate(sequence.variables)}
    for condition in other:
        for term in terms(condition.value):
            named = {c.var for c in columns_of(term)}
            if len(named) != 2 or not named <= places.keys() or any(c.function for c in columns_of(term)):
                return None
            earlier, later = sorted(places[name] for name in named)
            value = of_neighbours(term, sequence.variables[earlier])
            if comparison(value) is None:
                return None
            pair = replace(condition, kind=ConditionKind.ADJACENT, value=value)
            sequence.pairs[earlier, later] = (*sequence.pairs.get((earlier, later), ()), pair)
    equal = _equal_columns(other)
    sequence.inferred = list(_inferred(constant, equal))
    if not any(absent):
        sequence.partition = _partition(sequence.variables, equal, {name for name, _ in bound.partition})
    return sequence


def _partition(
    variables: tuple[str, ...], equal: list[tuple[Column, Column]], given: set[str]
) -> tuple[tuple[str, Type], ...]:
    """Return the columns that equalities tie together for all variables."""
    same = [(a, b) for a, b in equal if a.name == b.name and a.name not in given]
    found = {}
    for column in [a for a, _ in same]:
        joined, before = {column.var}, 0
        while len(joined) > before:
            before = len(joined)
            for a, b in same:
                if a.name == column.name and {a.var, b.var} & joined:
                    joined |= {a.var, b.var}
        if joined == set(variables):
            found[column.name] = column.type
    return tuple(found.items())


def depth_of_walk(sequence: FixedSequence) -> int:
    """Return how many variables a walk binds to count."""
    gaps = [v - 1 for v, absent in enumerate(sequence.absent[:-1]) if v and absent]
    asked = max([*gaps, *(v for v, _ in sequence.pairs)], default=0)
    return min(asked, max(len(sequence.variables) - 2, 0)) + 1


def sequence_texts(sequence: FixedSequence) -> dict[str, str]:
    """Say how the matches of a sequence are found, and what that costs."""
    names = sequence.variables
    joined = [f"{names[v]} and {names[w]}" for v, w in sorted(sequence.pairs)]
    more = [f"`{condition.text}` holds for {condition.variables[0]} too" for condition in sequence.inferred]
    behind = names[depth_of_walk(sequence) - 1]
    return {
        "candidates": "an event is a candidate for a variable; those without a partner in reach are left out first"
        + "".join(f"; {text}" for text in more),
        "conditions": f"conditions join {', '.join(joined)}" if joined else "no conditions join variables",
        "counting": f"a walk binds the variables up to {behind}; from there on only time is asked, and counts are "
        "added up over lists of candidates",
    }


def _inferred(constant: tuple[Condition, ...], equal: list[tuple[Column, Column]]) -> list[Condition]:
    """Carry `v.x = constant` over equalities of plain columns."""
    known: dict[tuple[str, str], tuple[Condition, Value]] = {}
    for condition in constant:
        for term in terms(condition.value):
            found = _column_is(term)
            if found is not None:
                known.setdefault((found[0].var, found[0].name), (condition, term))
    new: list[Condition] = []
    changed = True
    while changed:
        changed = False
        for one, other in [*equal, *((b, a) for a, b in equal)]:
            source, target = (one.var, one.name), (other.var, other.name)
            if source in known and target not in known:
                condition, term = known[source]
                value = with_columns(term, partial(replace, var=other.var, name=other.name))
                known[target] = (condition, value)
                new.append(replace(condition, value=value, variables=(other.var,)))
                changed = True
    return new


def _equal_columns(other: tuple[Condition, ...]) -> list[tuple[Column, Column]]:
    """Return the columns of two variables that must be equal."""
    return [
        (left, right)
        for condition in other
        for term in terms(condition.value)
        if isinstance(term, Operation) and term.function == "="
        for left, right in [term.arguments]
        if isinstance(left, Column) and isinstance(right, Column) and left.type == right.type
    ]


def _column_is(term: Value) -> tuple[Column, Value] | None:
    """Return the column that a term says is equal to a constant."""
    if not isinstance(term, Operation) or term.function != "=":
        return None
    left, right = term.arguments
    if isinstance(right, Column):
        left, right = right, left
    if isinstance(left, Column) and isinstance(right, Constant):
        return left, right
    return None
