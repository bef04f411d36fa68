"""Windows of partitions: which events of a slice make a group, and how far the company of an event reaches."""

from __future__ import annotations

import numpy as np

from trellis.errors import UsageError
from trellis.events.clock import Clock
from trellis.events.slice import Groups, Ints
from trellis.kernels.events import partitions as kernel
from trellis.language.bound import BoundQuery, WindowKind
from trellis.memory import fits_memory, free_memory, gigabytes

MAX_WINDOWS = 1 << 31
BYTES_A_WINDOW = 150  # while the windows of a slice are made and counted


def make_groups(
    bound: BoundQuery, clock: Clock, times: np.ndarray, bounds: Ints, windows: tuple[Ints, Ints] | None = None
) -> tuple[Groups, Ints]:
    """Return the windows of partitions in output order, and for each event the end of its possible company.

    Parameters
    ----------
    bound, clock
        The query, and its times.
    times, bounds
        The times of the events, and where partitions begin and end.
    windows
        The first and the last window of each event; by default all that hold it.
    """
    if bound.window.kind is not WindowKind.SLIDING:
        until = (
            clock.span_ends(times, bounds)
            if bound.window.kind is WindowKind.SPAN
            else kernel.partition_ends(bounds, len(times))
        )
        return Groups(bounds[:-1], bounds[1:], np.zeros(len(bounds) - 1, np.int64)), until
    first, last = windows or clock.windows(times)
    total = kernel.count_windows(first, last, bounds)
    if total > MAX_WINDOWS or not fits_memory(total * BYTES_A_WINDOW):
        raise UsageError(
            f"the events fall into {total:,} windows, which take about {gigabytes(total * BYTES_A_WINDOW)}; there are "
            f"{gigabytes(free_memory())} free",
            "Make SLIDE longer or WITHIN shorter.",
        )
    number, partition, lo, hi = kernel.list_windows(first, last, bounds, total)
    order = np.lexsort((partition, number))
    return Groups(lo[order], hi[order], number[order]), kernel.window_ends(first, last, bounds)
