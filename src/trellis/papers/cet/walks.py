"""Depth-first walks with one current trend, window by window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import walk as kernel
from trellis.operators.batch import PathBatch
from trellis.operators.trends.tasks import NO_BOUND
from trellis.papers.cet.cet_graph import Buffer, CetGraph
from trellis.papers.contract import AlgorithmInput


def walk_trends(
    given: AlgorithmInput, cet: CetGraph, task: int, buffer: Buffer, backwards: bool
) -> Iterator[PathBatch]:
    """Yield the trends of a window, found forwards over successors or backwards over predecessors."""
    first, last = given.may_start(task), given.may_end(task)
    marks = kernel.WalkMarks(last, first, True) if backwards else kernel.WalkMarks(first, last, False)
    edges = cet.behind if backwards else cet.after
    nearest_end = np.where(cet.ok, np.arange(len(cet.ok)), NO_BOUND)
    graph = TaskGraph(cet.lo, cet.hi, cet.lo, False, False, *edges, given.graph.latest, nearest_end)
    state, ranges = kernel.walk_of_task(task, int(cet.extents[0][task]))
    while not state.state[kernel.RANGE]:
        rows = kernel.WalkRows(buffer.values, buffer.offsets, None)
        kernel.fill(state, ranges, graph, None, None, marks, rows)
        number, used = state.state[kernel.ROWS : kernel.VALUES + 1].tolist()
        if number:
            yield buffer.batch(task, number, used)
