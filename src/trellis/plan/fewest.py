"""Patterns of which fewer events are enough: what can be completed can be so with the fewest that the pattern needs.

That is so if whatever holds of the events of a Kleene variable holds of the first some of them as well: conditions on
each of its events, on consecutive ones, on those so far; but not on its last event, its second, or its average.
"""

from __future__ import annotations

from trellis.language import syntax as s
from trellis.language.bound import Column, Condition, Operation, columns_of
from trellis.language.once import once
from trellis.plan.cuts import FLIPPED
from trellis.plan.extremes import Attributes
from trellis.plan.plan import Plan

LATE = (s.Which.LAST, s.Which.NTH, s.Which.WHOLE)


@once
def needs_fewest(plan: Plan) -> Attributes | None:
    """Return the attributes that must be neither NULL nor negative for fewer events to be enough; None where not."""
    bound = plan.bound
    leaves = [leaf for leaf in s.leaves(bound.pattern) if isinstance(leaf, s.Kleene)]
    asked_later = any(leaf.greedy or leaf.until is not None for leaf in leaves) or any(plan.automaton.policies)
    absent = bound.absent_patterns or any(v.absent for v in bound.variables)
    if bound.select is not s.Select.ANY or asked_later or bound.groups or absent:
        return None
    kleene, attributes = {v.name for v in bound.variables if v.kleene}, set[tuple[str, str]]()
    for condition in bound.conditions:
        late = [one for one in columns_of(condition.value) if one.var in kleene and one.which in LATE]
        if late:
            column = _sum_below(condition)
            if column is None or len(late) > 1:
                return None
            attributes.add((column.var, column.name))
    return frozenset(attributes)


def _sum_below(condition: Condition) -> Column | None:
    """Return the sum that a condition wants to be less than something, if it is such."""
    value = condition.value
    if not isinstance(value, Operation) or value.function not in FLIPPED:
        return None
    for own, function in zip(value.arguments, (value.function, FLIPPED[value.function]), strict=True):
        if isinstance(own, Column) and own.which is s.Which.WHOLE and own.function in ("SUM", "FSUM"):
            return own if function in ("<", "<=") else None
    return None
