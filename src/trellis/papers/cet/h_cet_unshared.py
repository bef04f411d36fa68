"""H-CET without the paper's § 6.3: every window is planned and worked on for itself, to measure what sharing saves."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.operators.batch import PathBatch
from trellis.papers.cet.cet_graph import cet_graph_of
from trellis.papers.cet.h_cet import execute, planned
from trellis.papers.contract import AlgorithmInput


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows."""
    cet = cet_graph_of(given)
    yield from execute(given, cet, list(planned(given, cet, shared=False)))
