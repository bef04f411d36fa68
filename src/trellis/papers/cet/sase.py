"""SASE: events on stacks with pointers to those they may follow, walked depth first when a window ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.operators.batch import PathBatch
from trellis.papers.cet.cet_graph import Buffer, cet_graph_of, walk_trends
from trellis.papers.contract import REFERENCE, AlgorithmInput


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows; each window's stacks and pointers count as stored, and the current trend."""
    cet = cet_graph_of(given)
    longest, edges = cet.extents
    buffer = Buffer(int(longest.max(initial=1)), given.bounds)
    for task in range(len(given.tasks)):
        events = int(np.count_nonzero(cet.ok[cet.lo[task] : cet.hi[task]]))
        stored = REFERENCE * (events + int(edges[task]) + int(longest[task]))
        given.meter.hold(stored)
        yield from walk_trends(given, cet, task, buffer, backwards=True)
        given.meter.release(stored)
