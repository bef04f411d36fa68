"""Conditions written in a way that costs less: bounds of quantifiers, and neighbours in place of first events.

Conditions that bound how many events a variable takes, `COUNT(v[..i]) <= 5` or `COUNT(v) >= 3`, become bounds of its
quantifier: the automaton counts these; as a condition they would be a register, asked of every event.

Events that must be equal to the first of their variable, `a[i].x = FIRST(a).x`, are equal to the one before, and so are
those of neighbouring variables of a SEQ that must be equal to one another, `b.x = a.x AND c.x = a.x`. Either says the
same of every step, since equality is transitive; but another event than the one before is a register, and the one
before is where a step comes from.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Constant, Operation, Value
from trellis.language.printer import condition_text
from trellis.plan.cuts import FLIPPED
from trellis.plan.relation import terms

MOST = 32  # a greater number is cheaper to remember than as many states
UNBOUNDED = 1 << 62


def with_bounds(bound: BoundQuery) -> BoundQuery:
    """Return a query without conditions that only bound the number of a variable's events.

    Those of HAVING do where they ask for so many at least: what a longer match has, too, does not change which results
    are complete. Where there are groups or AND, which multiply states, all stay conditions.
    """
    if any(isinstance(node, s.Group | s.And) for node in s.walk(bound.pattern)):
        return bound
    kept, absent = [], {variable.name for variable in bound.variables if variable.absent}
    leaves = {
        leaf.var: leaf for leaf in s.leaves(bound.pattern) if isinstance(leaf, s.Kleene) and leaf.var not in absent
    }
    plain = bound.select is not s.Select.NEXT and not any(isinstance(node, s.Or) for node in s.walk(bound.pattern))
    for condition in (*bound.conditions, *bound.filters):
        var, least, most, whole = _bounded(condition)
        leaf = leaves.get(var)
        if condition in bound.filters and (most != UNBOUNDED or bound.select is not s.Select.ANY):
            leaf = None
        if leaf is not None and not (whole and (not plain or leaf.greedy or leaf.policy or leaf.until)):
            least, most = max(least, leaf.least), min(most, leaf.most or most)
            if least <= most >= 2 and least <= MOST and (most <= MOST or most == UNBOUNDED):
                leaves[var] = replace(leaf, least=least, most=None if most == UNBOUNDED else most)
                continue
        kept.append(condition)
    if len(kept) == len(bound.conditions) + len(bound.filters):
        return bound

    def bounded(node: s.Node) -> s.Node | None:
        return leaves.get(node.var) if isinstance(node, s.Kleene) else None

    pattern = cast(s.Pattern, s.rebuild(bound.pattern, bounded))
    asked, filters = (tuple(one for one in some if one in kept) for some in (bound.conditions, bound.filters))
    counted = tuple(one for one in (*bound.conditions, *bound.filters) if one not in kept)
    return replace(bound, pattern=pattern, conditions=asked, filters=filters, counted=bound.counted + counted)


def _bounded(condition: Condition) -> tuple[str, int, int, bool]:
    """Return the variable whose events a condition bounds, the least and the most that it may have; else no name.

    Last, whether it speaks of all events of the variable, and not of those so far.
    """
    found = [_bound_of(term) for term in terms(condition.value)]
    if len({(var, whole) for var, _, _, whole in found}) > 1:
        return "", 0, 0, False
    return found[0][0], max(least for _, least, _, _ in found), min(most for _, _, most, _ in found), found[0][3]


def _bound_of(value: Value) -> tuple[str, int, int, bool]:
    if isinstance(value, Operation) and value.function in FLIPPED and len(value.arguments) == 2:
        left, right = value.arguments
        function = value.function
        if isinstance(left, Constant):
            left, right, function = right, left, FLIPPED[function]
        if (
            isinstance(left, Column)
            and (left.function, left.at) == ("COUNT", None)
            and isinstance(right, Constant)
            and isinstance(right.value, int)
        ):
            number = right.value
            whole = left.which is s.Which.WHOLE
            most = {"<": number - 1, "<=": number, "=": number}.get(function, UNBOUNDED)
            least = {">": number + 1, ">=": number, "=": number}.get(function, 0)
            if function != "!=" and (whole or (left.which is s.Which.UPTO and not least)):
                return left.var, least, most, whole
    return "", 0, 0, False


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
    return Condition(
        kind, tuple(dict.fromkeys((right.var, left.var))), Operation("=", (left, right), source=text), text, written
    )


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


def with_equal_neighbours(bound: BoundQuery) -> BoundQuery:
    """Return a query in which events of neighbouring variables that must be equal are compared with the one before.

    That is where a repeated variable is among them: single ones are joined, which needs all that is asked of them.
    """
    order = _neighbours(bound)
    equal = [c for c in bound.conditions if len({*_equal_columns(c)} & order.keys()) == 2]
    kept, made = list(bound.conditions), list[Condition]()
    for members in _classes(equal, order):
        own = [c for c in equal if {*_equal_columns(c).values()} <= {*members}]
        pairs = {frozenset(_equal_columns(c)): c for c in own}
        steps = [(u, v) for u, v in pairwise(members) if frozenset((u.var, v.var)) not in pairs]
        far = [c for c in own if abs(order[c.variables[0]][0] - order[c.variables[1]][0]) > 1][: len(steps)]
        made += [_equality(ConditionKind.ACROSS, v, u, c) for (u, v), c in zip(steps, far, strict=True)]
        for one in members:
            if order[one.var][1]:
                before, here = (replace(one, which=which) for which in (s.Which.EARLIER, s.Which.LATER))
                written = next(c for c in own if one.var in c.variables)
                made.append(_equality(ConditionKind.ADJACENT, here, before, written))
        kept = [c for c in kept if c not in far]
    return replace(bound, conditions=(*kept, *made)) if made else bound


def _neighbours(bound: BoundQuery) -> dict[str, tuple[int, bool]]:
    """Return the place in the SEQ of each variable that every match binds and that selects as the query does.

    With it comes whether the variable is repeated.
    """
    pattern = bound.pattern
    if not isinstance(pattern, s.Seq) or bound.select is not s.Select.ANY:
        return {}
    parts = [part for part in pattern.parts if not isinstance(part, s.Absent)]
    found = {}
    for place, part in enumerate(parts):
        if isinstance(part, s.Single) and not part.optional:
            found[part.var] = place, False
        if isinstance(part, s.Kleene) and part.least and not (part.policy or part.greedy or part.until):
            found[part.var] = place, part.most != 1
    return found


def _equal_columns(condition: Condition) -> dict[str, Column]:
    """Return the attributes of every event of two variables that a condition says are equal, by variable."""
    value = condition.value
    if condition.kind is not ConditionKind.ACROSS or not isinstance(value, Operation) or value.function != "=":
        return {}
    sides = [
        side for side in value.arguments
        if isinstance(side, Column) and side.which is s.Which.EACH and not side.function and side.at is None
    ]  # fmt: skip
    found = {side.var: side for side in sides}
    return found if len(found) == 2 and sides[0].type == sides[1].type else {}


def _classes(equal: list[Condition], order: dict[str, tuple[int, bool]]) -> list[list[Column]]:
    """Return attributes of neighbouring variables that must be equal, one of a repeated variable among them."""
    classes: list[dict[str, Column]] = []
    for condition in equal:
        joined = _equal_columns(condition)
        apart = []
        for one in classes:
            if any(one.get(var) == column for var, column in joined.items()):
                if any(one.get(var, column) != column for var, column in joined.items()):
                    return []  # two attributes of one variable are equal as well
                joined = one | joined
            else:
                apart.append(one)
        classes = [*apart, joined]
    found = []
    for one in classes:
        members = sorted(one.values(), key=lambda column: order[column.var][0])
        places = [order[column.var][0] for column in members]
        if places[-1] - places[0] == len(places) - 1 and any(order[column.var][1] for column in members):
            found.append(members)
    return found
