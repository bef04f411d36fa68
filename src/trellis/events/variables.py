"""Which events may fill which variable of a pattern, by type and constant conditions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.adjacency import is_true, meets_condition
from trellis.events.columns.types import normalise
from trellis.language.bound import BoundQuery, Condition, ConditionKind, Variable
from trellis.language.schema import STRING

Mask = NDArray[np.bool_]


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
