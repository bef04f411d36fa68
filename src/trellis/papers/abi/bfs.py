"""Breadth-first extraction: all partial trends are stored, and get one event more a round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.kernels.papers.abi import breadth as kernel
from trellis.operators.batch import PathBatch
from trellis.papers.contract import REFERENCE, AlgorithmInput, Bounds

MOST_VALUES = 1 << 30  # events of all partial trends of a length: 4 GiB, and as much for the next


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield all trends of an input, those of a window by length."""
    graph, meter = given.graph, given.meter
    for task in range(len(given.tasks)):
        lo, hi = int(given.tasks.lo[task]), int(given.tasks.hi[task])
        ends = given.may_end(task)
        paths = (lo + np.flatnonzero(given.may_start(task))).astype(np.int32).reshape(-1, 1)
        meter.hold(REFERENCE * paths.size)
        while len(paths):
            yield from batches_of_length(given.bounds, task, paths[ends[paths[:, -1] - lo]])
            number, length = kernel.count_longer(paths, hi, graph.offsets, graph.successors), paths.shape[1] + 1
            meter.hold(REFERENCE * number * length)
            _refuse_too_many(number, length)
            longer = np.empty((number, length), np.int32)
            kernel.extend(paths, hi, graph.offsets, graph.successors, longer)
            meter.release(REFERENCE * paths.size)
            paths = longer


def batches_of_length(bounds: Bounds, task: int, whole: NDArray[np.int32]) -> Iterator[PathBatch]:
    """Yield trends of one length, some at a time."""
    length = whole.shape[1]
    rows = max(1, bounds.batch_values // length)
    for begin in range(0, len(whole), rows):
        part = whole[begin : begin + rows]
        yield PathBatch.of_task(part.ravel(), np.arange(1, len(part) + 1, dtype=np.int32) * np.int32(length), task)


def _refuse_too_many(number: int, length: int) -> None:
    if number * length > MOST_VALUES:
        raise TrellisError(
            f"the algorithm `bfs` would store {number:,} partial trends of {length:,} events each",
            "Use a shorter WITHIN, another algorithm, or leave it out.",
        )
