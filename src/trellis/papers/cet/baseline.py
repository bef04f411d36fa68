"""The CET paper's baseline, Algorithm 1: all trends so far are kept, and each new event is held against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trellis.errors import TrellisError
from trellis.kernels.papers.cet import baseline as kernel
from trellis.kernels.papers.cet.graph import predecessors
from trellis.language.syntax import Report
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.papers.contract import REFERENCE, AlgorithmInput


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows.

    Raises
    ------
    TrellisError
        If the trends of a window take more than the limit to store, or too long to compare with one another.
    """
    graph = compatible(given)
    before = predecessors(graph.offsets, graph.successors)
    limit = given.settings.memory_limit
    most = given.bounds.references if limit is None else limit // REFERENCE
    for task in range(len(given.tasks)):
        lo, hi = int(given.tasks.lo[task]), int(given.tasks.hi[task])
        values, ends, peak, passed = kernel.baseline(lo, hi, given.events.usable, *before, most, given.bounds.steps)
        if passed:
            _refuse(passed, hi - lo, most, given.bounds.steps)
        given.meter.hold(REFERENCE * peak)
        yield from PathBatch.of_task(values, ends, task).pieces(given.bounds.batch_values)
        given.meter.release(REFERENCE * peak)


def compatible(given: AlgorithmInput) -> EventGraph:
    """Return the graph of all events that may follow one another, with and without a detour."""
    bound = given.plan.bound
    if bound.report is not Report.MAXIMAL:
        return given.graph
    return build_graph(replace(given.plan, bound=replace(bound, report=Report.UNEXTENDABLE)), given.events)


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
