"""Greatest and least values that must stay below or above another, `MAX(b.x) < a.x`, as conditions on each event.

Either says the same where no event of `b` has NULL for `x`, which MAX leaves out; but the greatest value is a register,
and what is asked of each event is not.
"""

from __future__ import annotations

from dataclasses import replace

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Constant, Operation, columns_of
from trellis.plan.automaton import Automaton
from trellis.plan.cuts import FLIPPED

Attributes = frozenset[tuple[str, str]]  # of variables
OF_EVERY = {("MAX", "<"), ("MAX", "<="), ("MIN", ">"), ("MIN", ">=")}


def with_each_event(bound: BoundQuery, automaton: Automaton) -> tuple[BoundQuery, Attributes]:
    """Return a query with such conditions, and the attributes whose values must not be NULL for it to mean the same.

    When a condition is asked matters to other policies than skip-till-any, and to what may be taken or forbidden.
    """
    kleene = {v.name for v in bound.variables if v.kleene and not v.absent and not v.groups}
    leaves = [leaf for leaf in s.leaves(bound.pattern) if isinstance(leaf, s.Kleene)]
    asked_later = any(leaf.greedy or leaf.until is not None for leaf in leaves) or any(automaton.policies)
    if bound.select is not s.Select.ANY or asked_later or bound.groups:
        return bound, frozenset()
    conditions, attributes = [], set[tuple[str, str]]()
    for condition in bound.conditions:
        while (found := _of_every(condition, kleene)) is not None:
            condition, column = found
            attributes.add((column.var, column.name))
        conditions.append(condition)
    return replace(bound, conditions=tuple(conditions)), frozenset(attributes)


def _of_every(condition: Condition, kleene: set[str]) -> tuple[Condition, Column] | None:
    """Return the condition on each event, and the aggregate that it is in place of, if there is such."""
    value = condition.value
    if not isinstance(value, Operation) or value.function not in FLIPPED:
        return None
    left, right = value.arguments
    for own, other, function in ((left, right, value.function), (right, left, FLIPPED[value.function])):
        if not isinstance(own, Column) or not isinstance(other, Column | Constant):
            continue
        whole = own.which is s.Which.WHOLE and own.at is None and own.var in kleene
        beside = [column for column in columns_of(other) if column.at is not None or column.var == own.var]
        if whole and (own.function, function) in OF_EVERY and not beside:
            each = replace(own, which=s.Which.EACH, function="")
            arguments = (each, right) if own is left else (left, each)
            functions = [column.function for column in columns_of(other)]
            kind = ConditionKind.ACROSS if functions else ConditionKind.CONSTANT
            kind = ConditionKind.REST if any(functions) else kind
            written = condition.written or condition
            return Condition(
                kind, condition.variables, replace(value, arguments=arguments), condition.text, written
            ), own
    return None
