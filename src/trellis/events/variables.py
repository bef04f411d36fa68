"""Which events may fill which variable of a pattern, by type and constant conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.adjacency import meets_condition
from trellis.events.columns.types import normalise
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Condition, ConditionKind, Variable
from trellis.language.schema import STRING

Mask = NDArray[np.bool_]


def usable_events(
    bound: BoundQuery, constant: tuple[Condition, ...], columns: Mapping[str, pa.Array], size: int
) -> dict[str, Mask]:
    """Return for each variable which events have its type and meet its constant conditions."""
    having = events_of_types(bound, columns)
    everywhere = np.ones(size, np.bool_)
    return {v.name: _usable(v, constant, columns, having.get(v.type, everywhere)) for v in bound.variables}


def have_values(
    bound: BoundQuery, constant: tuple[Condition, ...], attributes: Iterable[tuple[str, str]], events: Slice
) -> bool:
    """Return whether attributes of variables have a value, neither NULL nor NaN, in all events that may fill them."""
    missing = {
        (var, name): pc.is_null(events.columns[name], nan_is_null=True).to_numpy(zero_copy_only=False)
        for var, name in attributes
    }
    missing = {key: flags for key, flags in missing.items() if flags.any()}
    if not missing:
        return True
    usable = usable_events(bound, constant, events.columns, len(events))
    return not any((flags & usable[var]).any() for (var, _), flags in missing.items())


def are_not_negative(attributes: Iterable[tuple[str, str]], events: Slice) -> bool:
    """Return whether attributes have a number that is not negative in all events."""
    for name in {name for _, name in attributes}:
        column = events.columns[name]
        kinds = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
        if not any(is_kind(column.type) for is_kind in kinds):
            return False
        some = pc.is_null(column, nan_is_null=True), pc.less(column, pa.scalar(0).cast(column.type))
        if any(pc.any(one).as_py() for one in some):
            return False
    return True


def events_of_types(bound: BoundQuery, columns: Mapping[str, pa.Array]) -> dict[str | None, Mask]:
    """Return for each type of a variable which events have it; none where events have no types."""
    name = None if bound.schema is None else bound.schema.type_column
    wanted = list(dict.fromkeys(v.type for v in bound.variables if v.type is not None))
    if name is None or not wanted:
        return {}
    types = normalise(columns[name], STRING)
    number = pc.fill_null(pc.index_in(types, pa.array(wanted, types.type)), -1).to_numpy(zero_copy_only=False)
    return {one: number == i for i, one in enumerate(wanted)}


def _usable(variable: Variable, constant: tuple[Condition, ...], columns: Mapping[str, pa.Array], meets: Mask) -> Mask:
    for condition in constant:
        assert condition.kind is ConditionKind.CONSTANT
        if condition.variables in ((), (variable.name,)):
            meets = meets & meets_condition(condition, columns, meets)
    return meets
