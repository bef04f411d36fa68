"""The CET paper's baseline, Algorithm 1: all trends so far are kept, and each new event is held against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trellis.errors import TrellisError
from trellis.kernels.papers.cet import baseline as kernel
from trellis.kernels.papers.cet.graph import predecessors
from trellis.language.syntax import Report
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.papers.cet.ground import split
from trellis.papers.contract import REFERENCE, Stage


def extract(stage: Stage) -> Iterator[PathBatch]:
    """Yield the trends of all windows.

    Raises
    ------
    TrellisError
        If the trends of a window take more than the limit to store, or too long to compare with one another.
    """
    graph = compatible(stage)
    before = predecessors(graph.offsets, graph.successors)
    limit = stage.settings.memory_limit
    most = stage.bounds.references if limit is None else limit // REFERENCE
    for task in range(len(stage.tasks)):
        lo, hi = int(stage.tasks.lo[task]), int(stage.tasks.hi[task])
        values, ends, peak, passed = kernel.baseline(lo, hi, stage.events.usable, *before, most, stage.bounds.steps)
        if passed:
            _refuse(passed, hi - lo, most, stage.bounds.steps)
        stage.meter.hold(REFERENCE * peak)
        yield from split(stage.bounds, task, values, np.ascontiguousarray(ends))
        stage.meter.release(REFERENCE * peak)


def compatible(stage: Stage) -> EventGraph:
    """Return the graph of all events that may follow one another, with and without a detour."""
    bound = stage.plan.bound
    if bound.report is not Report.MAXIMAL:
        return stage.graph
    return build_graph(replace(stage.plan, bound=replace(bound, report=Report.UNEXTENDABLE)), stage.events)


def _refuse(passed: int, events: int, most: int, steps: int) -> None:
    if passed == kernel.STEPS:
        raise TrellisError(
            f"the baseline compares every trend with every other: for a window of {events:,} events this takes more "
            f"than {steps:,} steps",
            "Use another algorithm, or a shorter WITHIN.",
        )
    raise TrellisError(
        f"the baseline keeps all trends of a window: for one of {events:,} events they take more than the "
        f"{most * REFERENCE:,} bytes allowed",
        "Raise the memory limit, use another algorithm, or a shorter WITHIN.",
    )
