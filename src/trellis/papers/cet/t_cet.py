"""T-CET: breadth first, with all partial trends of a window stored, so that each edge is gone over once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trellis.kernels.papers.cet.grow import grow, keep_exits, sizes
from trellis.operators.batch import PathBatch
from trellis.papers.cet.ground import CetGraph, check_size, ground_of, split
from trellis.papers.contract import REFERENCE, Stage


def extract(stage: Stage) -> Iterator[PathBatch]:
    """Yield the trends of all windows."""
    ground = ground_of(stage)
    places = np.zeros((3, len(stage.events)), np.int64)
    for task in range(len(stage.tasks)):
        lo, hi = int(ground.lo[task]), int(ground.hi[task])
        rows, named, _, _ = _sizes(ground, task)
        check_size(stage, named)
        stored = REFERENCE * int(named)
        stage.meter.hold(stored)
        values, ends = np.empty(int(named), np.int32), np.empty(int(rows), np.int64)
        arrays = values, ends, 0, 0, *np.empty((2, hi - lo + 1), np.int64)
        grow(lo, hi, False, ground.both, *arrays)
        used, kept = keep_exits(lo, hi, False, ground.both, *arrays, *places)
        yield from split(stage.bounds, task, values[:used], ends[:kept])
        stage.meter.release(stored)


def _sizes(ground: CetGraph, task: int) -> tuple[float, float, float, float]:
    lo, hi = int(ground.lo[task]), int(ground.hi[task])
    found: tuple[float, float, float, float] = sizes(lo, hi, False, ground.both)
    return found


def explain(stage: Stage) -> dict[str, Any]:
    """Tell how much would be stored."""
    ground = ground_of(stage)
    most = max((_sizes(ground, task)[1] for task in range(len(stage.tasks))), default=0.0)
    return {"expected_memory": f"{most * REFERENCE:,.0f} bytes of partial trends in the largest window"}
