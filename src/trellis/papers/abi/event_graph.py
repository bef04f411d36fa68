"""The event graph by way of the ABI graph: to-edges and from-edges are followed, and times and the rest are checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.adjacency import residual_holds
from trellis.events.slice import Ints, Slice
from trellis.kernels.event_graph.edges import keep_edges, latest_predecessors, sources_of
from trellis.kernels.papers.abi import edges as kernel
from trellis.language.syntax import Report
from trellis.operators.trends.graph import PAIRS_AT_ONCE, EventGraph, reduced
from trellis.papers.abi.graph import AbiGraph, Values, build, values_of
from trellis.plan.plan import Plan


def constructed_graph(plan: Plan, events: Slice, construction: str, threads: int) -> EventGraph:
    """Return the event graph of a plan, built by one of the ABI paper's constructions; the same as any other's.

    Raises
    ------
    TrellisError
        If there are too many edges, or the query has nothing that an ABI graph indexes.
    """
    values = values_of(plan, events)
    later = events.later
    degrees, parts = np.zeros(len(events), np.int64), [np.empty(0, np.int32)]
    found = 0
    for begin, middle, end in source_ranges(events):
        abi = build(values, begin, middle, end, construction, threads)
        for part in _followed(events, values, abi, later, degrees):
            parts.append(part)
            found += len(part)
            if found > plan.sizes.graph_edges:
                raise TrellisError(
                    f"{len(events):,} events have more than {plan.sizes.graph_edges:,} pairs that may follow one "
                    "another",
                    "Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition.",
                )
    offsets, successors = np.concatenate([[0], np.cumsum(degrees)]), np.concatenate(parts)
    if plan.bound.report is Report.MAXIMAL:
        offsets, successors = reduced(events, offsets, successors, plan.sizes)
    return EventGraph(offsets, successors, latest_predecessors(offsets, successors))


def source_ranges(events: Slice) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of events of ABI graphs: first source, the event after the last source, that after the last.

    Without windows that overlap it is a window. Else it is all that begins in one, with all that can follow it.
    """
    until = events.until
    for lo, hi in zip(events.bounds[:-1].tolist(), events.bounds[1:].tolist(), strict=True):
        begin = lo
        while begin < hi:
            middle = max(begin + 1, min(hi, int(until[begin])))
            yield begin, middle, max(middle, min(hi, int(until[middle - 1])))
            begin = middle


def _followed(events: Slice, values: Values, abi: AbiGraph, later: Ints, degrees: Ints) -> Iterator[NDArray[np.int32]]:
    """Yield the successors of the sources, some at a time, and write how many each has."""
    adjacency, n = values.adjacency, len(events)
    indexed = 0 if values.single else 1
    rest = (
        _rows(adjacency.above[indexed:], n), _rows(adjacency.below[indexed:], n), _rows(adjacency.differ_next, n),
        _rows(adjacency.differ_prev, n),
    )  # fmt: skip
    end = abi.begin + len(abi.first)
    candidates = np.cumsum(np.maximum(events.until[abi.begin : end] - later[abi.begin : end], 0))
    marks = np.empty(len(abi.vertex), np.bool_)
    row = abi.begin
    while row < end:
        before = candidates[row - abi.begin - 1] if row > abi.begin else 0
        stop = abi.begin + int(np.searchsorted(candidates, before + PAIRS_AT_ONCE, side="right"))
        stop = min(end, max(row + 1, stop))
        own = degrees[row:stop]
        arrays = (
            (row, stop), abi.begin, later, events.until, abi.first, abi.last, abi.offsets, abi.held, *rest, marks, own,
        )  # fmt: skip
        total = kernel.follow_edges(*arrays, np.empty(0, np.int32))
        if total:
            successors = np.empty(total, np.int32)
            kernel.follow_edges(*arrays, successors)
            if adjacency.residual:
                sources = sources_of(row, own, total)
                holds = residual_holds(adjacency.residual, events.columns, sources, successors)
                successors = successors[: keep_edges(own, successors, holds, False)].copy()
            yield successors
        row = stop


def _rows(arrays: list[Ints], n: int) -> np.ndarray:
    return np.stack(arrays) if arrays else np.empty((0, n), np.int64)
