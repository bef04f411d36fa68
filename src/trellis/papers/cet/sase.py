"""SASE: events on stacks with pointers to those they may follow, walked depth first when a window ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.operators.batch import PathBatch
from trellis.papers.cet.ground import Buffer, ground_of
from trellis.papers.cet.walks import walked
from trellis.papers.contract import REFERENCE, Stage


def extract(stage: Stage) -> Iterator[PathBatch]:
    """Yield the trends of all windows; each window's stacks and pointers count as stored, and the current trend."""
    ground = ground_of(stage)
    longest, edges = ground.extents
    buffer = Buffer(int(longest.max(initial=1)), stage.bounds)
    for task in range(len(stage.tasks)):
        events = int(np.count_nonzero(ground.ok[ground.lo[task] : ground.hi[task]]))
        stored = REFERENCE * (events + int(edges[task]) + int(longest[task]))
        stage.meter.hold(stored)
        yield from walked(stage, ground, task, buffer, backwards=True)
        stage.meter.release(stored)
