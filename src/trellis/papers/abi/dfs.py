"""Depth-first extraction: from each start vertex to the end vertices, one path at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.kernels.list import walk as kernel
from trellis.kernels.list.wide import SPARE
from trellis.operators.batch import PathBatch
from trellis.papers.contract import REFERENCE, AlgorithmInput

VALUES, ROWS = 1 << 18, 1 << 16  # of a batch


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield all trends of an input; what is stored is one path."""
    tasks = given.tasks
    graph = given.graph.of_tasks(tasks, given.events.usable)
    for task in range(len(tasks)):
        longest = int(tasks.hi[task] - tasks.lo[task])
        marks = kernel.WalkMarks(given.may_start(task), given.may_end(task), False)
        state, ranges = kernel.walk_of_task(task, longest)
        held = 0
        while not state.state[kernel.RANGE]:
            values, offsets = np.empty(max(VALUES, longest) + SPARE, np.int32), np.empty(ROWS + SPARE, np.int32)
            kernel.fill(state, ranges, graph, None, None, marks, kernel.WalkRows(values, offsets, None))
            number, used = state.state[kernel.ROWS : kernel.VALUES + 1].tolist()
            if number:
                deepest = max(held, int(np.diff(offsets[: number + 1]).max()))
                given.meter.hold(REFERENCE * (deepest - held))
                held = deepest
                yield PathBatch.of_task(values[:used].copy(), offsets[1 : number + 1].copy(), task)
        given.meter.release(REFERENCE * held)
