"""Sums that only grow: of values none of which is negative, a sum so far is no more than the whole sum may be.

`SUM(a.x) < 5 * b.x` is true of no match whose sum so far has reached five times the greatest `b.x`. What these values
are only the events tell, so this is asked besides where matches are explored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.arrow import numbers
from trellis.events.columns.evaluate import evaluate
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Constant, Operation, Value, columns_of
from trellis.language.schema import BOOLEAN, Kind
from trellis.language.syntax import Select, Which, always_bound
from trellis.plan.cuts import FLIPPED
from trellis.plan.plan import Plan
from trellis.plan.relation import terms

Masks = Mapping[str, NDArray[np.bool_]]
AT_MOST = {"<": "<", "<=": "<=", "=": "<="}
ONE_EVENT = (Which.EACH, Which.FIRST, Which.LAST, Which.NTH)
MOST = float(1 << 62)


def sums_fit(bound: BoundQuery, events: Slice) -> bool:
    """Return whether all sums that conditions name are of whole numbers, and fit in 64 bits in whatever order."""
    columns = (c for one in (*bound.conditions, *bound.filters) for c in columns_of(one.value))
    return all(_fits(events.columns[c.name]) for c in columns if c.function == "SUM")


def with_bounds_of_sums(plan: Plan, events: Slice, usable: Masks) -> Plan:
    """Return a plan that also asks of sums so far whether they can still be what is asked of the whole sums.

    Its matches are the same. `usable` are the events that may fill each variable.
    """
    bound = plan.bound
    if (
        bound.select is not Select.ANY
        or plan.automaton.worded
        or bound.groups
        or any(v.absent for v in bound.variables)
    ):
        return plan
    added = tuple(_bounds(bound, events, usable))
    return replace(plan, bound=replace(bound, conditions=(*bound.conditions, *added))) if added else plan


def _bounds(bound: BoundQuery, events: Slice, usable: Masks) -> Iterator[Condition]:
    kleene, always = {v.name for v in bound.variables if v.kleene}, always_bound(bound.pattern)
    for condition in bound.conditions:
        for value in terms(condition.value):
            if not isinstance(value, Operation) or value.function not in FLIPPED:
                continue
            left, right = value.arguments
            for own, other, function in ((left, right, value.function), (right, left, FLIPPED[value.function])):
                if not isinstance(own, Column) or own.var not in kleene or function not in AT_MOST:
                    continue
                whole = own.function == "SUM" and own.which is Which.WHOLE and own.at is None
                if whole and _only_grows(events.columns[own.name], usable[own.var]):
                    most = _greatest(other, own.var, always, events, usable)
                    if most is not None:
                        yield _bound_so_far(own, AT_MOST[function], most)


def _bound_so_far(own: Column, function: str, most: Constant) -> Condition:
    text = f"SUM({own.var}[..i].{own.name}) {function} {most.value}"
    value = Operation(function, (replace(own, which=Which.UPTO), most), BOOLEAN, text)
    return Condition(ConditionKind.REST, (own.var,), value, text)


def _fits(values: pa.Array) -> bool:
    return bool(pa.types.is_integer(values.type) and np.abs(numbers(values, 0).astype(np.float64)).sum() < MOST)


def _only_grows(values: pa.Array, usable: NDArray[np.bool_]) -> bool:
    """Return whether all values of some events are whole numbers, none of them NULL or negative, and sums fit."""
    some = values.filter(pa.array(usable))
    return _fits(values) and not some.null_count and (not len(some) or pc.min(some).as_py() >= 0)


def _greatest(value: Value, var: str, always: set[str], events: Slice, usable: Masks) -> Constant | None:
    """Return the greatest that a value may be, of one event of a variable that every match has; None if unknown."""
    if isinstance(value, Constant):
        return value if value.type.kind in (Kind.INTEGER, Kind.DOUBLE) and value.value is not None else None
    columns = [*columns_of(value)]
    named = {(c.var, c.which, c.nth) for c in columns}
    plain = all(c.which in ONE_EVENT and not c.function and c.at is None for c in columns)
    if len(named) != 1 or not plain or columns[0].var == var or columns[0].var not in always:
        return None
    rows = pa.array(np.flatnonzero(usable[columns[0].var]))
    try:
        values = evaluate(value, lambda column: events.columns[column.name].take(rows), len(rows))
    except OverflowInCondition:
        return None
    greatest = pc.max(values).as_py() if value.type.kind in (Kind.INTEGER, Kind.DOUBLE) else None
    return None if greatest is None else Constant(greatest, value.type)
