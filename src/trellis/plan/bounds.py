"""Conditions that bound how many events a variable takes, `COUNT(v[..i]) <= 5`, as bounds of its quantifier.

The automaton counts what a quantifier bounds; as a condition it would be a register, asked of every event.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, Constant, Operation
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
