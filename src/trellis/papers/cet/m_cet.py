"""M-CET: depth first, with nothing stored but the current trend."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.operators.batch import PathBatch
from trellis.papers.cet.ground import Buffer, ground_of
from trellis.papers.cet.walks import walked
from trellis.papers.contract import REFERENCE, Stage


def extract(stage: Stage) -> Iterator[PathBatch]:
    """Yield the trends of all windows."""
    ground = ground_of(stage)
    longest = ground.extents[0]
    buffer = Buffer(int(longest.max(initial=1)), stage.bounds)
    for task in range(len(stage.tasks)):
        current = REFERENCE * int(longest[task])
        stage.meter.hold(current)
        yield from walked(stage, ground, task, buffer, backwards=False)
        stage.meter.release(current)
