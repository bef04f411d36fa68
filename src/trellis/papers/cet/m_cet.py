"""M-CET: depth first, with nothing stored but the current trend."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.operators.batch import PathBatch
from trellis.papers.cet.cet_graph import Buffer, cet_graph_of, walk_trends
from trellis.papers.contract import REFERENCE, AlgorithmInput


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows."""
    cet = cet_graph_of(given)
    longest = cet.extents[0]
    buffer = Buffer(int(longest.max(initial=1)), given.bounds)
    for task in range(len(given.tasks)):
        current = REFERENCE * int(longest[task])
        given.meter.hold(current)
        yield from walk_trends(given, cet, task, buffer, backwards=False)
        given.meter.release(current)
