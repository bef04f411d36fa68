"""Conditions written in a way that costs less: bounds of quantifiers, and neighbours in place of first events.

Conditions that bound how many events a variable takes, `COUNT(v[..i]) <= 5`, become bounds of its quantifier: the
automaton counts these; as a condition they would be a register, asked of every event.

Events that must be equal to the first of their variable, `a[i].x = FIRST(a).x`, are equal to the one before. Either
says the same of every step, since equality is transitive; but the first event is a register, and the one before is
where a step comes from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Constant, Operation
from trellis.language.printer import condition_text
from trellis.plan.cuts import FLIPPED

MOST = 32  # a greater number is cheaper to remember than as many states


def with_bounds(bound: BoundQuery) -> BoundQuery:
    """Return a query without conditions that only bound the number of a variable's events.

    Where there are groups or AND, which multiply states, they stay conditions.
    """
    if any(isinstance(node, s.Group | s.And) for node in s.walk(bound.pattern)):
        return bound
    kept, most = [], dict[str, int]()
    least = {leaf.var: leaf.least for leaf in s.leaves(bound.pattern) if isinstance(leaf, s.Kleene)}
    absent = {variable.name for variable in bound.variables if variable.absent}
    for condition in bound.conditions:
        var, number = _bounded(condition)
        if var in least and var not in absent and max(least[var], 2) <= number <= MOST:
            most[var] = min(number, most.get(var, number))
        else:
            kept.append(condition)
    if not most:
        return bound

    def bounded(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Kleene) and node.var in most:
            return replace(node, most=min(most[node.var], most[node.var] if node.most is None else node.most))
        return None

    pattern = cast(s.Pattern, s.rebuild(bound.pattern, bounded))
    counted = tuple(condition for condition in bound.conditions if condition not in kept)
    return replace(bound, pattern=pattern, conditions=tuple(kept), counted=bound.counted + counted)


def _bounded(condition: Condition) -> tuple[str, int]:
    """Return the variable whose events a condition bounds, and the most that it may have; else no name."""
    value = condition.value
    if isinstance(value, Operation) and value.function in FLIPPED and len(value.arguments) == 2:
        left, right = value.arguments
        function = value.function
        if isinstance(left, Constant):
            left, right, function = right, left, FLIPPED[function]
        if (
            isinstance(left, Column)
            and (left.function, left.which, left.at) == ("COUNT", s.Which.UPTO, None)
            and isinstance(right, Constant)
            and isinstance(right.value, int)
            and function in ("<", "<=")
        ):
            return left.var, right.value - (function == "<")
    return "", 0


def with_neighbours(bound: BoundQuery) -> BoundQuery:
    """Return a query whose conditions compare no event with a first one that could compare it with its neighbour."""
    kleene = {v.name for v in bound.variables if v.kleene and not v.absent and not v.groups}
    conditions: list[Condition] = []
    for condition in bound.conditions:
        column = _equal_to_first(condition)
        if column is None or column.var not in kleene:
            conditions.append(condition)
            continue
        before, here = (replace(column, which=which) for which in (s.Which.EARLIER, s.Which.LATER))
        conditions.append(_equality(ConditionKind.ADJACENT, here, before, condition))
        conditions.append(_equality(ConditionKind.CONSTANT, column, column, condition))  # NULL and NaN equal nothing
    return bound if len(conditions) == len(bound.conditions) else replace(bound, conditions=tuple(conditions))


def _equality(kind: ConditionKind, left: Column, right: Column, written: Condition) -> Condition:
    sides = (s.Attribute(column.var, column.name, column.which) for column in (left, right))
    text = condition_text(s.Comparison("=", *sides))
    return Condition(kind, written.variables, Operation("=", (left, right), source=text), text, written)


def _equal_to_first(condition: Condition) -> Column | None:
    """Return the attribute of each event that must be that of the first, if a condition asks for no more."""
    value = condition.value
    if not isinstance(value, Operation) or value.function != "=":
        return None
    for one, other in (value.arguments, value.arguments[::-1]):
        if isinstance(one, Column) and one.which is s.Which.EACH and not one.function:
            first, also_first = replace(one, which=s.Which.FIRST), replace(one, which=s.Which.NTH, nth=1)
            if other in (first, also_first):
                return one
    return None
