"""H-CET: partial trends of graphlets are found breadth first and stored, then joined depth first to trends.

Graphlets lie between cuts that the optimizer chooses, and never across the border of a window: the part that has
expired and the part that is new are graphlets of their own. So each is worked on once, however many windows share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.list.wide import SPARE
from trellis.kernels.papers.cet.join import DEEPEST, STATE, JoinWalk, StoredTrends, join
from trellis.operators.batch import PathBatch
from trellis.papers.cet.cet_graph import Buffer, CetGraph, cet_graph_of
from trellis.papers.cet.graphlets import CetPartition, partitions
from trellis.papers.cet.optimizer import OPTIMIZERS
from trellis.papers.cet.plans import Choice, NoPlan, Problem
from trellis.papers.cet.pool import Pool
from trellis.papers.contract import REFERENCE, AlgorithmInput

SHOWN = 12  # graphlets of a plan that `explain` names one by one


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield the trends of all windows, partition by partition.

    Raises
    ------
    NoPlan
        If no plan of a partition fits the memory limit; nothing is yielded before.
    """
    cet = cet_graph_of(given)
    yield from execute(given, cet, list(planned(given, cet)))


def execute(given: AlgorithmInput, cet: CetGraph, plans: Sequence[tuple[CetPartition, Choice]]) -> Iterator[PathBatch]:
    """Yield the trends of all windows by given plans."""
    pool = Pool(cet, len(given.events), given.meter)
    graphlet_of, used = np.zeros(len(given.events), np.int64), 0
    buffer = Buffer(int(cet.extents[0].max(initial=1)), given.bounds)
    for partition, choice in plans:
        borders = partition.bounds[[0, *choice.cuts, len(partition.bounds) - 1]]
        for u, v in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            graphlet_of[u:v] = u
        done = 0
        for task in partition.tasks.tolist():
            first, stop = np.searchsorted(borders, [cet.lo[task], cet.hi[task]]).tolist()
            pool.release_before(int(cet.lo[task]))
            for graphlet in range(max(done, first), stop):
                pool.add(int(borders[graphlet]), int(borders[graphlet + 1]))
            done, used = max(done, stop), used + stop - first
            yield from _joined(given, cet, task, pool, graphlet_of, buffer, stop - first)
        pool.release_before(int(borders[-1]))
    given.meter.facts |= {"graphlets": pool.worked_on, "graphlets_used": used, "array_bytes": pool.bytes}


def _joined(
    given: AlgorithmInput, cet: CetGraph, task: int, pool: Pool, graphlet_of: Ints, buffer: Buffer, graphlets: int
) -> Iterator[PathBatch]:
    """Yield the trends of a window whose graphlets are all stored."""
    lo, hi, current = int(cet.lo[task]), int(cet.hi[task]), REFERENCE * int(cet.extents[0][task])
    state = np.zeros(STATE, np.int64)
    state[0] = lo
    at, rows, places = np.empty((3, graphlets), np.int64)
    tail = np.empty(int(cet.extents[0][task]) + SPARE, np.int32)
    walk = JoinWalk(state, at, rows, places, tail)
    stored = StoredTrends(pool.values, pool.ends, pool.begins, pool.laters, pool.stops, graphlet_of)
    given.meter.hold(current)
    over = False
    while not over:
        found, used, over = join(walk, lo, hi, cet.both, stored, buffer.values, buffer.ends)
        if found:
            yield buffer.batch(task, found, used)
    assert REFERENCE * state[DEEPEST] <= current
    given.meter.release(current)


def planned(given: AlgorithmInput, cet: CetGraph, shared: bool = True) -> Iterator[tuple[CetPartition, Choice]]:
    """Yield the partitions, or without sharing the windows, with the plan that the optimizer chooses for each.

    Where no plan of atomic graphlets fits the limit, cuts may be at any time: open graphlets can be joined at any cut,
    and pieces of one time store every event once, the least that is possible.

    Raises
    ------
    NoPlan
        If no plan of some partition fits the memory limit; it tells the smallest limit that would do for all.
    """
    search = OPTIMIZERS[given.settings.optimizer]
    missed: NoPlan | None = None
    for partition in partitions(given, cet, shared):
        try:
            found = _searched(partition, search)
        except NoPlan as error:
            missed = error if missed is None or error.smallest > missed.smallest else missed
        else:
            yield found
    if missed is not None:
        raise missed


def _searched(partition: CetPartition, search: Callable[[Problem], Choice]) -> tuple[CetPartition, Choice]:
    try:
        return partition, search(partition.problem)
    except NoPlan:
        if partition.finer is None:
            raise
        return _searched(partition.finer(), search)


def explain(given: AlgorithmInput) -> dict[str, Any]:
    """Tell the atomic graphlets, the plan, and what it is expected to cost."""
    plans = list(planned(given, cet_graph_of(given)))
    if not plans:
        return {}
    pieces = sum(len(partition.problem) for partition, _ in plans)
    finer = sum(partition.finer is None for partition, _ in plans)
    largest, choice = max(plans, key=lambda plan: len(plan[1].cuts))
    borders = largest.bounds[[0, *choice.cuts, len(largest.bounds) - 1]]
    sizes = np.diff(borders).tolist()
    shown = " + ".join(map(str, sizes[:SHOWN])) + (" + ..." if len(sizes) > SHOWN else "")
    cpu = sum(choice.cpu for _, choice in plans)
    memory = max(choice.memory for _, choice in plans)
    return {
        "optimizer": given.settings.optimizer,
        "atomic_graphlets": f"{pieces:,} in {len(plans):,} partitions"
        + (f", {finer:,} of which are cut at any time, since no plan fits otherwise" if finer else ""),
        "plan": f"{sum(len(choice.cuts) + 1 for _, choice in plans):,} graphlets; of the partition with most, events: "
        f"{shown}",
        "expected_cpu": f"{cpu:.3g} steps",
        "expected_memory": f"{memory:,} bytes of stored partial trends",
    }
