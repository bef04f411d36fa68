"""Which events of results are bound to a variable, and which begin an iteration of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.language.bound import BoundQuery
from trellis.operators.batch import LEVEL, VARIABLE

Mask = NDArray[np.bool_]


def variable_paths(bound: BoundQuery) -> list[tuple[int, ...]]:
    """Return the groups around each variable that takes events, outermost first."""
    return [v.groups for v in bound.variables if not v.absent]


def begins_iteration(codes: NDArray[Any], paths: Sequence[tuple[int, ...]], group: int) -> Mask:
    """Return which events begin an iteration of a group.

    Parameters
    ----------
    codes
        The variable of each event and how many iterations it begins; see `PathBatch`.
    paths
        The groups around each variable, outermost first.
    group
        The number of the group.
    """
    inside = np.array([len(path) - path.index(group) if group in path else 1 << LEVEL for path in paths])
    return np.asarray(codes >> LEVEL >= inside[codes & VARIABLE])


def counted_events(bound: BoundQuery, name: str, codes: NDArray[Any] | None) -> Mask | None:
    """Return which events COUNT(name) counts: those of a variable, or those that begin an iteration of a group.

    None stands for all of them; `codes` are as above.
    """
    if codes is None:
        return None
    group = next((i for i, one in enumerate(bound.groups) if one.label == name), None)
    if group is not None:
        return begins_iteration(codes, variable_paths(bound), group)
    names = [v.name for v in bound.variables if not v.absent]
    return np.asarray(codes & VARIABLE == names.index(name))
