"""Depth-first walks with one current trend, window by window."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import walk as kernel
from trellis.operators.batch import PathBatch
from trellis.papers.cet.ground import Buffer, CetGraph
from trellis.papers.contract import Stage


def walked(stage: Stage, ground: CetGraph, task: int, buffer: Buffer, backwards: bool) -> Iterator[PathBatch]:
    """Yield the trends of a window, found forwards over successors or backwards over predecessors."""
    first, last = stage.may_start(task), stage.may_end(task)
    marks = kernel.WalkMarks(last, first, True) if backwards else kernel.WalkMarks(first, last, False)
    edges = ground.behind if backwards else ground.after
    graph = TaskGraph(ground.lo, ground.hi, ground.lo, False, False, *edges, stage.graph.latest, ground.ok)
    state, ranges = kernel.walk_of_task(task, int(ground.extents[0][task]))
    while not state.state[kernel.RANGE]:
        rows = kernel.WalkRows(buffer.values, buffer.offsets, None)
        kernel.fill(state, ranges, graph, None, None, marks, rows)
        number, used = state.state[kernel.ROWS : kernel.VALUES + 1].tolist()
        if number:
            yield buffer.found(task, number, used)
