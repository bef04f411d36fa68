"""T-CET: breadth first, with all partial trends of a window stored, so that each edge is gone over once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trellis.kernels.papers.cet.grow import grow, keep_exits, sizes
from trellis.operators.batch import PathBatch
from trellis.papers.cet.cet_graph import CetGraph, cet_graph_of, check_size
from trellis.papers.contract import REFERENCE, AlgorithmInput


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows."""
    cet = cet_graph_of(given)
    places = np.zeros((3, len(given.events)), np.int64)
    for task in range(len(given.tasks)):
        lo, hi = int(cet.lo[task]), int(cet.hi[task])
        rows, named, _, _ = _sizes(cet, task)
        check_size(given, named)
        stored = REFERENCE * int(named)
        given.meter.hold(stored)
        values, ends = np.empty(int(named), np.int32), np.empty(int(rows), np.int64)
        arrays = values, ends, 0, 0, *np.empty((2, hi - lo + 1), np.int64)
        grow(lo, hi, False, cet.both, *arrays)
        used, kept = keep_exits(lo, hi, False, cet.both, *arrays, *places)
        yield from PathBatch.of_task(values[:used], ends[:kept], task).pieces(given.bounds.batch_values)
        given.meter.release(stored)


def _sizes(cet: CetGraph, task: int) -> tuple[float, float, float, float]:
    lo, hi = int(cet.lo[task]), int(cet.hi[task])
    found: tuple[float, float, float, float] = sizes(lo, hi, False, cet.both)
    return found


def explain(given: AlgorithmInput) -> dict[str, Any]:
    """Tell how much would be stored."""
    cet = cet_graph_of(given)
    most = max((_sizes(cet, task)[1] for task in range(len(given.tasks))), default=0.0)
    return {"expected_memory": f"{most * REFERENCE:,.0f} bytes of partial trends in the largest window"}
