"""Threads that share the vertices of a graph: each has blocks of them, with about as much work as the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

import numpy as np

from trellis.graphs.values import Ints

WORTH = 50_000  # edges that are worth a thread
VERTEX = 8  # edges that cost as much as a vertex by itself
T = TypeVar("T")

allowed: ContextVar[int | None] = ContextVar("allowed", default=None)
"""How many threads a run may take; None for one a core."""


def cuts_of(offsets: Ints, each: int = 1) -> Ints:
    """Return where the blocks of vertices begin, and where the last ends, so many for each thread, by their work."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = max(1, min(allowed.get() or cores, int(offsets[-1]) // WORTH)) if allowed.get() != 1 else 1
    number *= each if number > 1 else 1
    work = offsets + VERTEX * np.arange(len(offsets)) if number > 1 else offsets
    wanted = np.linspace(0, work[-1], number + 1)[1:-1]
    return np.concatenate([[0], np.searchsorted(work, wanted), [len(offsets) - 1]]).astype(np.int64)


class Threads:
    """Runs work on blocks of vertices, all at once; with one block in the thread that asks.

    Parameters
    ----------
    offsets
        Where the edges of each vertex begin.
    each
        How many blocks each thread has; several where it cannot be told what a vertex costs.
    """

    def __init__(self, offsets: Ints, each: int = 1) -> None:
        self.cuts = cuts_of(offsets, each).tolist()
        self._pool = ThreadPoolExecutor((len(self.cuts) - 1) // each) if len(self.cuts) > 2 else None

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return the outcome of work on each block, in order."""
        if self._pool is None:
            return [work(self.cuts[0], self.cuts[1])]
        waiting = [self._pool.submit(work, low, high) for low, high in zip(self.cuts, self.cuts[1:], strict=False)]
        return [one.result() for one in waiting]

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
