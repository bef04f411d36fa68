"""The contract of named algorithms: their input, batches of trends out, and a meter for what they store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Ints, Slice
from trellis.kernels.count.passes import first_successors
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.tasks import TrendTasks
from trellis.plan.plan import Plan
from trellis.plan.settings import AlgorithmSettings
from trellis.properties import cached_property

REFERENCE = 8  # bytes of a reference to an event: the papers' unit

__all__ = ["REFERENCE", "USUAL", "Algorithm", "AlgorithmInput", "AlgorithmSettings", "Bounds", "Meter"]


class Meter:
    """Counts the bytes of stored partial trends: 8 for each event that one refers to; any thread may tell it.

    `facts` is room for what `explain` and benchmarks tell of a run: short names, and texts or numbers.
    """

    def __init__(self, algorithm: str, limit: int | None = None) -> None:
        self.algorithm, self.limit = algorithm, limit
        self.held = self.peak = 0
        self.facts: dict[str, Any] = {}
        self._lock = Lock()

    def hold(self, size: int) -> None:
        """Tell that so many bytes more are stored.

        Raises
        ------
        TrellisError
            If they are more than the limit.
        """
        with self._lock:
            self.held += size
            self.peak = max(self.peak, self.held)
        if self.limit is not None and self.held > self.limit:
            raise TrellisError(
                f"the algorithm `{self.algorithm}` stores {self.held:,} bytes of partial trends, more than the memory "
                f"limit of {self.limit:,}",
                "Raise the memory limit, use a shorter WITHIN, or leave the algorithm out.",
            )

    def release(self, size: int) -> None:
        """Tell that so many bytes are no longer stored."""
        with self._lock:
            self.held -= size


@dataclass(frozen=True)
class Bounds:
    """How much an algorithm does at a time, which changes no answer, and at most, beyond which it refuses.

    Attributes
    ----------
    batch_values, batch_rows
        Events that the trends of a batch name, more or less, and trends of a batch.
    few
        Events that one thread takes.
    to_edges
        Explicit to-edges of an ABI graph.
    references
        Events that stored partial trends may name where no memory limit is set: 2 GiB in the papers' unit.
    steps
        Of comparing the trends of a window with one another: some seconds.
    """

    batch_values: int = 1 << 18
    batch_rows: int = 1 << 16
    few: int = 1 << 14
    to_edges: int = 250_000_000
    references: int = 1 << 28
    steps: int = 1 << 31


USUAL = Bounds()


@dataclass
class AlgorithmInput:
    """The input of a named algorithm: windows of sorted events, their graph, and settings.

    Task `t` is a window of a partition: the events `tasks.lo[t]` to before `tasks.hi[t]`. Its trends are the paths of
    the graph inside it from an event that `may_start` to one that `may_end`.

    Attributes
    ----------
    plan, events, tasks
        The query, the sorted events, and the windows.
    build
        Gives the event graph; under REPORT maximal it is transitively reduced.
    settings
        How to work.
    meter
        Is told what is stored.
    bounds
        How much to do at a time, and at most.
    """

    plan: Plan
    events: Slice
    tasks: TrendTasks
    build: Callable[[], EventGraph]
    settings: AlgorithmSettings
    meter: Meter = field(default_factory=lambda: Meter("none"))
    bounds: Bounds = USUAL

    @cached_property
    def graph(self) -> EventGraph:
        """The event graph of all tasks: edges that leave a task are to be passed over."""
        return self.build()

    @cached_property
    def nearest(self) -> Ints:
        """For each event its first successor, or the number of events."""
        nearest: Ints = first_successors(self.graph.offsets, self.graph.successors)
        return nearest

    def may_start(self, task: int) -> NDArray[np.bool_]:
        """Return which events of a task a trend may start with, from the first event of the task on."""
        lo, hi = int(self.tasks.lo[task]), int(self.tasks.hi[task])
        usable = self.events.usable[lo:hi]
        return usable.copy() if self.tasks.every else usable & (self.graph.latest[lo:hi] < lo)

    def may_end(self, task: int) -> NDArray[np.bool_]:
        """Return which events of a task a trend may end with, from the first event of the task on."""
        lo, hi = int(self.tasks.lo[task]), int(self.tasks.hi[task])
        usable = self.events.usable[lo:hi]
        return usable.copy() if self.tasks.every else usable & (self.nearest[lo:hi] >= hi)


# Yields all trends of an input, in any order: each batch is of one task (`PathBatch.of_task`), and their ranks are not
# known.
Algorithm = Callable[[AlgorithmInput], Iterator[PathBatch]]
