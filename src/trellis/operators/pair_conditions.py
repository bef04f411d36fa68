"""Conditions on two variables as codes of their candidates, as fixed sequences and joins compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.adjacency import Adjacency, PairValues, encode_rows, encode_values
from trellis.kernels.sequence.walk import DIFFERENT, EQUAL, GREATER
from trellis.language.bound import Condition, columns_of

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass
class PairCondition:
    """A comparison of codes of the candidates of two variables; without a condition it is about time."""

    first: int
    second: int
    kind: int
    left: Ints
    right: Ints
    condition: Condition | None = None

    def terms(self, variable: int, names: tuple[str, ...]) -> list[str]:
        """Return the attributes of one of the two that it speaks of, as `variable.attribute`."""
        if self.condition is None:
            return []
        name = names[variable]
        return [f"{name}.{c.name}" for c in columns_of(self.condition.value) if c.var == name]


class PairEncoder:
    """Encodes conditions on two variables: the values of few events once for all candidates, of many as they are asked.

    Parameters
    ----------
    columns, size
        The columns of the events, and how many events there are.
    most
        How many are few.
    """

    def __init__(self, columns: Mapping[str, pa.Array], size: int, most: int) -> None:
        self.columns = columns
        self._values = PairValues.of_all(columns, size) if size <= most else None
        self._every = np.ones(size, np.bool_)

    def encode(
        self, first: int, second: int, condition: Condition, one: Ints, other: Ints
    ) -> tuple[list[PairCondition], Flags, Flags] | None:
        """Return a condition as comparisons, and which candidates of either variable it does not exclude by themselves.

        None where no codes decide it; `one` and `other` are the events that are candidates.
        """
        if self._values is not None:
            found = encode_values((condition,), self._values, self._every, holes=False)
            if not found.residual:  # which events that are no candidates may be the cause of
                return _compared(first, second, condition, found, (one, other))
        found = encode_rows((condition,), self.columns, one, other)
        return None if found.residual else _compared(first, second, condition, found, None)


def _compared(
    first: int, second: int, condition: Condition, adjacency: Adjacency, rows: tuple[Ints, Ints] | None
) -> tuple[list[PairCondition], Flags, Flags]:
    """Return the comparisons of an adjacency, of all its events or of some `rows` of either."""
    keep, keep_other = adjacency.gives, adjacency.takes
    made = []
    if adjacency.key_next is not None and adjacency.key_prev is not None:
        keep, keep_other = keep & (adjacency.key_prev >= 0), keep_other & (adjacency.key_next >= 0)
        made.append(PairCondition(first, second, EQUAL, adjacency.key_prev, adjacency.key_next, condition))
    for above, below in zip(adjacency.above, adjacency.below, strict=True):
        made.append(PairCondition(first, second, GREATER, below, above, condition))
    for after, before in zip(adjacency.differ_next, adjacency.differ_prev, strict=True):
        keep, keep_other = keep & (before >= 0), keep_other & (after >= 0)
        made.append(PairCondition(first, second, DIFFERENT, before, after, condition))
    if rows is None:
        return made, keep, keep_other
    one, other = rows
    for pair in made:
        pair.left, pair.right = pair.left[one], pair.right[other]
    return made, keep[one], keep_other[other]


def keep_candidates(variable: int, mask: Flags, candidates: list[Ints], conditions: Iterable[PairCondition]) -> None:
    """Leave out candidates of a variable, and their codes."""
    if mask.all():
        return
    candidates[variable] = candidates[variable][mask]
    for condition in conditions:
        if condition.first == variable:
            condition.left = condition.left[mask]
        elif condition.second == variable:
            condition.right = condition.right[mask]
