"""Atomic graphlets: the pieces of a partition between places where its graph may be cut, as a problem to plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.papers.cet import cuts as kernel
from trellis.kernels.papers.cet.grow import sizes
from trellis.papers.cet.cet_graph import CetGraph
from trellis.papers.cet.plans import Costs, PlannedWindow, Problem
from trellis.papers.contract import REFERENCE, AlgorithmInput

MOST_COUNTED = 1 << 25  # events, once for each window, whose paths are counted to tell the steps of a plan


@dataclass(frozen=True)
class CetPartition:
    """A partition with events: its windows as tasks in the order of their beginnings, and the borders of its pieces.

    `finer` gives the same with pieces of one time each.
    """

    tasks: Ints
    bounds: Ints
    problem: Problem
    finer: Callable[[], CetPartition] | None = None


def partitions(given: AlgorithmInput, cet: CetGraph, shared: bool = True) -> Iterator[CetPartition]:
    """Yield the partitions of an input, each with the problem of planning it; without sharing each window is one."""
    limit = given.settings.memory_limit
    limit = given.bounds.references * REFERENCE if limit is None else limit
    times, bounds = given.events.ticks, given.events.bounds
    order = np.lexsort((cet.hi, cet.lo))
    partition = np.searchsorted(bounds, cet.lo[order], side="right") - 1
    cuts = np.flatnonzero(np.diff(partition)) + 1 if shared else np.arange(1, len(order))
    for tasks in np.split(order, cuts) if len(order) else []:
        begin, end = int(cet.lo[tasks[0]]), int(cet.hi[tasks].max())
        between = times[begin + 1 : end] != times[begin : end - 1]
        allowed = between & ~kernel.forbidden_cuts(begin, end, cet.both)[1:-1]
        finer = partial(_partition, cet, tasks, begin + 1 + np.flatnonzero(between), limit)
        yield replace(_partition(cet, tasks, begin + 1 + np.flatnonzero(allowed), limit), finer=finer)


def _partition(cet: CetGraph, tasks: Ints, cuts: Ints, limit: int) -> CetPartition:
    """Return a partition in pieces between given cuts and the borders of windows."""
    forced = np.unique(np.concatenate([cet.lo[tasks], cet.hi[tasks]]))
    bounds = np.union1d(forced, cuts)
    inner = np.searchsorted(bounds, forced[1:-1]).tolist()
    return CetPartition(tasks, bounds, _problem(cet, tasks, bounds, inner, limit))


def _problem(cet: CetGraph, tasks: Ints, bounds: Ints, forced: list[int], limit: int) -> Problem:
    lo, hi = cet.lo[tasks], cet.hi[tasks]
    bases = np.concatenate([[0], np.cumsum(hi - lo)])
    counted = bases[-1] <= MOST_COUNTED
    if not counted:  # plans are then told apart by what they store, and by the steps inside graphlets
        bases = bases[:1]
    lo_counted, hi_counted = (lo, hi) if counted else (lo[:0], hi[:0])
    forwards, backwards = kernel.paths_of_windows(lo_counted, hi_counted, bases, cet.both)

    def costs_from(first: int, stop: int) -> Costs:
        holding = np.flatnonzero((lo_counted <= bounds[first]) & (hi_counted >= bounds[stop]))
        costs = np.empty((stop - first, kernel.COSTS))
        number = kernel.graphlet_costs(
            bounds, first, stop, limit / REFERENCE, lo_counted[holding], hi_counted[holding], bases[holding],
            forwards, backwards, cet.both, costs,
        )  # fmt: skip
        return costs[: max(number, 1)]

    starts, stops = np.searchsorted(bounds, lo).tolist(), np.searchsorted(bounds, hi).tolist()
    longest = cet.extents[0][tasks].tolist()
    windows = []
    for task, first, stop, most in zip(tasks.tolist(), starts, stops, longest, strict=True):
        _, _, trends, named = sizes(int(cet.lo[task]), int(cet.hi[task]), False, cet.both)
        windows.append(PlannedWindow(first, stop, most, max(trends, 1.0), named / max(trends, 1.0)))
    return Problem(np.diff(bounds).tolist(), forced, windows, costs_from, limit)
