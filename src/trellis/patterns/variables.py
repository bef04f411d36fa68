"""Which events may fill which variable of a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.columns.types import normalise
from trellis.language.bound import BoundQuery, Condition, ConditionKind, Variable
from trellis.language.schema import STRING
from trellis.patterns.conditions import Conjunct, conjuncts_of
from trellis.plan.plan import Plan
from trellis.trends.adjacency import is_true, meets_condition
from trellis.trends.slice import Slice

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Variables:
    """The variables of a pattern over a slice.

    Attributes
    ----------
    usable
        For each variable, those of NOT too, the events that have its type and meet its constant conditions.
    codes
        The number of each variable that takes events, in the order of the pattern.
    conjuncts
        The other conditions.
    """

    usable: Mapping[str, Mask]
    codes: Mapping[str, int]
    conjuncts: tuple[Conjunct, ...]


def make_variables(plan: Plan, events: Slice) -> Variables:
    """Return the variables of a plan over a slice."""
    usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
    bound = [v.name for v in plan.bound.variables if not v.absent]
    return Variables(usable, {name: code for code, name in enumerate(bound)}, conjuncts_of(plan.bound))


def usable_events(
    bound: BoundQuery, constant: tuple[Condition, ...], columns: Mapping[str, pa.Array], size: int
) -> dict[str, Mask]:
    """Return for each variable which events have its type and meet its constant conditions."""
    return {v.name: _usable(v, bound, constant, columns, size) for v in bound.variables}


def _usable(
    variable: Variable, bound: BoundQuery, constant: tuple[Condition, ...], columns: Mapping[str, pa.Array], size: int
) -> Mask:
    meets = np.ones(size, np.bool_)
    name = None if bound.schema is None else bound.schema.type_column
    if name is not None and variable.type is not None:
        types = normalise(columns[name], STRING)
        meets = is_true(pc.equal(types, pa.scalar(variable.type, types.type)))
    for condition in constant:
        assert condition.kind is ConditionKind.CONSTANT
        if condition.variables in ((), (variable.name,)):
            meets = meets & meets_condition(condition, columns, meets)
    return meets
