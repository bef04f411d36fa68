"""Events that must be equal to the first of their variable, `a[i].x = FIRST(a).x`, as events equal to the one before.

Either says the same of every step, since equality is transitive; but the first event is a register, and the one
before is where a step comes from.
"""

from __future__ import annotations

from dataclasses import replace

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Operation
from trellis.language.printer import condition_text


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
