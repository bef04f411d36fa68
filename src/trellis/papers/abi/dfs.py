"""Depth-first extraction: from each start vertex to the end vertices, one path at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.kernels.papers.abi import walk as kernel
from trellis.operators.batch import PathBatch
from trellis.papers.contract import REFERENCE, Stage

VALUES, ROWS = 1 << 18, 1 << 16  # of a batch


def extract(stage: Stage) -> Iterator[PathBatch]:
    """Yield all trends of a stage; what is stored is one path."""
    graph, tasks = stage.graph, stage.tasks
    for task in range(len(tasks)):
        lo, hi = int(tasks.lo[task]), int(tasks.hi[task])
        starts, ends = stage.may_start(task), stage.may_end(task)
        state = np.zeros(kernel.STATE_SIZE, np.int64)
        state[kernel.CURSOR] = lo
        nodes, places = np.empty((2, hi - lo + 1), np.int64)
        held = 0
        while True:
            values, path_ends = np.empty(max(VALUES, hi - lo), np.int32), np.empty(ROWS, np.int32)
            rows = kernel.walk(
                state, nodes, places, lo, hi, hi, graph.offsets, graph.successors, starts, ends, values, path_ends
            )
            if not rows:
                break
            stage.meter.hold(REFERENCE * (int(state[kernel.DEEPEST]) - held))
            held = int(state[kernel.DEEPEST])
            path_ends = path_ends[:rows].copy()
            yield PathBatch.of_task(values[: path_ends[-1]].copy(), path_ends, task)
        stage.meter.release(REFERENCE * held)
