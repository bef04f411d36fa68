"""Binds HAVING: bounds of the length, which operators count by, and other conditions on one trend."""

from __future__ import annotations

from trellis.language import syntax as s
from trellis.language.bound import Condition, ConditionKind, LengthBound, columns_of
from trellis.language.printer import condition_text
from trellis.language.scope import Scope
from trellis.language.values import bind_condition

FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bind_having(
    conditions: tuple[s.Condition, ...], scope: Scope
) -> tuple[tuple[LengthBound, ...], tuple[Condition, ...]]:
    """Return the bounds of the length, and the other conditions."""
    bounds, filters = [], []
    for condition in conditions:
        bound = _length_bound(condition)
        if bound is None:
            filters.append(_filter(condition, scope))
        else:
            bounds.append(bound)
    return tuple(bounds), tuple(filters)


def _length_bound(condition: s.Condition) -> LengthBound | None:
    """Return `LENGTH cmp n` as a bound; None for any other condition."""
    match condition:
        case s.Comparison(op=op, left=s.Length(), right=s.Integer(value=n)) if op in FLIPPED and n < 2**63:
            return LengthBound(op, n)
        case s.Comparison(op=op, left=s.Integer(value=n), right=s.Length()) if op in FLIPPED and n < 2**63:
            return LengthBound(FLIPPED[op], n)
    return None


def _filter(condition: s.Condition, scope: Scope) -> Condition:
    for node in s.walk(condition):
        if isinstance(node, s.Attribute):
            _check_single(node, scope)
    value = bind_condition(condition, scope.of_trends())
    named = {column.var for column in columns_of(value)}
    variables = tuple(v for v in scope.variables if v in named)
    return Condition(ConditionKind.REST, variables, value, condition_text(condition))


def _check_single(node: s.Attribute, scope: Scope) -> None:
    """Refuse an attribute of many events where one value is compared."""
    variable = scope.variable(node.var, node)
    if variable.absent:
        scope.fail(f"`{node.var}` is declared by NOT and bound to no event", node)
