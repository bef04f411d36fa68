"""The settings of a named algorithm: plain numbers and names that are part of the plan."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.limits import DEFAULT_MAX_TRENDS


@dataclass(frozen=True, slots=True)
class AlgorithmSettings:
    """The settings of a named algorithm.

    Attributes
    ----------
    anchors
        How many attribute vertices `anchor` takes as anchors; None: it chooses.
    memory_limit
        The bytes that stored partial trends may take, 8 for each event they refer to; None: no limit. Where no named
        algorithm runs, the `memory` of the plan's sizes is this one.
    optimizer
        How the CET paper's partitioning is chosen.
    construction
        How the graph is built: `auto`, `dynamic`, `dynamic-range` or `parallel`.
    threads
        How many threads work.
    max_trends
        The bound on listing.
    """

    anchors: int | None = None
    memory_limit: int | None = None
    optimizer: str = "auto"
    construction: str = "auto"
    threads: int = 1
    max_trends: int = DEFAULT_MAX_TRENDS
