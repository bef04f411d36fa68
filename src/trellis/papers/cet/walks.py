"""Depth-first walks with one current trend, window by window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.kernels.list.blocks import SPARE
from trellis.kernels.papers.cet.walk import STATE, walk
from trellis.operators.batch import PathBatch
from trellis.papers.cet.ground import Buffer, TwoWayGraph


def walked(ground: TwoWayGraph, task: int, buffer: Buffer, backwards: bool) -> Iterator[PathBatch]:
    """Yield the trends of a window, found forwards over successors or backwards over predecessors."""
    lo, hi = int(ground.lo[task]), int(ground.hi[task])
    deepest = int(ground.extents[0][task])
    state, places = np.zeros(STATE, np.int64), np.empty(deepest, np.int64)
    nodes = np.empty(deepest + SPARE, np.int32)
    state[0] = lo
    ways = (*ground.behind, *ground.after) if backwards else (*ground.after, *ground.behind)
    over = False
    while not over:
        rows, used, over = walk(
            state, nodes, places, lo, hi, ground.ok, *ways, backwards, buffer.values, buffer.ends
        )  # fmt: skip
        if rows:
            yield buffer.found(task, rows, used)
