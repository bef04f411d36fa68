"""The iterations of the events of results, as numbers and as texts such as `2.1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.language.bound import BoundQuery
from trellis.language.groups import RepeatedGroup
from trellis.operators.batch import VARIABLE
from trellis.operators.bindings import begins_iteration, variable_paths

Ints = NDArray[np.int64]
Path = tuple[int, ...]


def iteration_texts(codes: NDArray[Any], offsets: NDArray[Any], bound: BoundQuery) -> pa.Array:
    """Return for each event of results the numbers of its iterations, from 1, outermost first; empty outside.

    `codes` are as in `PathBatch`; results begin at `offsets`.
    """
    paths, groups = variable_paths(bound), bound.groups
    numbers = _iteration_numbers(codes, offsets, paths, groups)
    variables = codes & VARIABLE
    which, texts = np.zeros(len(codes), np.int64), [""]
    for variable, path in enumerate(paths):
        own = np.flatnonzero(variables == variable)
        if not path or not len(own):
            continue
        different, inverse = np.unique(numbers[[*path]][:, own].T, axis=0, return_inverse=True)
        which[own] = inverse.ravel() + len(texts)
        texts += [".".join(map(str, row)) for row in different.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(which))


def _iteration_numbers(
    codes: NDArray[Any], offsets: NDArray[Any], paths: Sequence[Path], groups: Sequence[RepeatedGroup]
) -> Ints:
    """Return int64 (groups, events): how many iterations of each group there are in what is around, up to an event."""
    starts = np.zeros(len(codes), np.bool_)
    starts[offsets[:-1]] = True
    begins = [begins_iteration(codes, paths, group) for group in range(len(groups))]
    found = np.zeros((len(groups), len(codes)), np.int64)
    places = np.arange(len(codes))
    for group, (_, path) in enumerate(groups):
        anew = starts if len(path) == 1 else starts | begins[path[-2]]
        total = np.cumsum(begins[group])
        since = np.maximum.accumulate(np.where(anew, places, 0))
        found[group] = total - (total - begins[group])[since]
    return found
