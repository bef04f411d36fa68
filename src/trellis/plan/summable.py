"""Queries whose trends are counted by sums over ranges of values: in tiles of a group, and of a stream's past."""

from __future__ import annotations

from trellis.language.bound import Column, Output, Value, WindowKind
from trellis.language.syntax import Report, Select
from trellis.plan.plan import Plan
from trellis.plan.spec import NAMED


def can_be_tiled(plan: Plan) -> bool:
    """Return whether a query can be counted in tiles: one Kleene variable, equalities and comparisons of one value."""
    bound, relation = plan.bound, plan.relation
    plain = plan.one_kleene and not bound.having and bound.after_match is None and plan.operator.name != NAMED
    known = bound.select is Select.ANY and bound.report in (Report.UNEXTENDABLE, Report.ANY)
    simple = not (relation.cuts or relation.either or relation.rest) and len(relation.orders) < 2
    ranges = all(one.function != "!=" for order in relation.orders for one in order)
    return plain and known and simple and ranges and bound.window.kind is not WindowKind.SPAN


def can_be_summed(plan: Plan) -> bool:
    """Return whether sums tell all that a query asks for: one Kleene variable, attributes compared as they are."""
    bound = plan.bound
    if bound.window.kind is not WindowKind.SLIDING or not bound.aggregates or bound.arranged or not can_be_tiled(plan):
        return False
    relation = plan.relation
    sides = [side for one in relation.keys for side in (one.later, one.earlier)]
    sides += [side for order in relation.orders for one in order for side in (one.later, one.earlier)]
    plain = not relation.single and all(map(_is_attribute, sides))
    return plain and bound.per_event is None and all(_is_summed(named.output) for named in bound.aggregates)


def _is_attribute(value: Value) -> bool:
    return isinstance(value, Column) and not value.function and value.at is None and value.nth is None


def _is_summed(output: Output) -> bool:
    if output.arguments or output.value is not None:
        return False
    if output.function == "COUNT":
        return output.column is None
    if output.function in ("MIN", "MAX"):
        return output.column is not None
    return output.function in ("SUM", "AVG")
