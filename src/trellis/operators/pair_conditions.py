"""Conditions on two variables as codes of their candidates, as fixed sequences and joins compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.adjacency import encode_rows
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


def encode_pair(
    first: int, second: int, condition: Condition, columns: Mapping[str, pa.Array], one: Ints, other: Ints
) -> tuple[list[PairCondition], Flags, Flags] | None:
    """Return a condition as comparisons, and which candidates of either variable it does not exclude by themselves.

    None where no codes decide it; `one` and `other` are the events that are candidates.
    """
    found = encode_rows((condition,), columns, one, other)
    if found.residual:
        return None
    keep, keep_other = found.gives, found.takes
    made = []
    if found.key_next is not None and found.key_prev is not None:
        keep, keep_other = keep & (found.key_prev >= 0), keep_other & (found.key_next >= 0)
        made.append(PairCondition(first, second, EQUAL, found.key_prev, found.key_next, condition))
    for above, below in zip(found.above, found.below, strict=True):
        made.append(PairCondition(first, second, GREATER, below, above, condition))
    for after, before in zip(found.differ_next, found.differ_prev, strict=True):
        keep, keep_other = keep & (before >= 0), keep_other & (after >= 0)
        made.append(PairCondition(first, second, DIFFERENT, before, after, condition))
    return made, keep, keep_other


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
