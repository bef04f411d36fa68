"""Results in their order where the same events may be bound to different variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.kernels.explore import order as kernel
from trellis.operators.patterns.paths import BoundVertices

Ints = NDArray[np.int64]
LIMB = 64
LEAST_ROOM = 1 << 10
VALUES = 1 << 18  # vertices of the results that are written at once


class EventOrder:
    """The paths of one group: vertices `[lo, hi)` of a graph, in the order of their events; `total` paths or more."""

    def __init__(
        self, offsets: Ints, successors: NDArray[np.int32], vertices: BoundVertices, lo: int, hi: int, total: int
    ) -> None:
        self._graph = offsets, successors, vertices.events, vertices.variables, lo
        self.limbs = (max(total, 1) * 2).bit_length() // LIMB + 1
        self._ways, self._starts = kernel.paths_to_ends(offsets, successors, lo, hi, self.limbs)
        self._room = LEAST_ROOM
        self._levels = kernel.make_levels(self._room, self._room, self.limbs)

    def paths(self, begin: int, wanted: int, least: int, most: int) -> tuple[NDArray[np.int32], Ints]:
        """Return some paths from the rank `begin` on, in their order, among those of `least` to `most` vertices.

        They are the vertices one after another, and where each path ends; not more than `wanted`, but at least one, if
        there is one.
        """
        values = max(VALUES, len(self._ways))
        out, ends = np.empty(values, np.int32), np.empty(wanted, np.int64)
        most = min(most, len(self._ways))
        while True:
            skip = np.array([begin >> (LIMB * i) & (2**LIMB - 1) for i in range(self.limbs)], np.uint64)
            written = kernel.list_by_events(
                *self._graph, self._ways, self._starts, skip, wanted, least, most, self._levels, out, ends
            )
            if written != kernel.NO_ROOM:
                return out[: ends[written - 1] if written else 0].copy(), ends[:written]  # without the room behind them
            self._room *= 2
            self._levels = kernel.make_levels(self._room, self._room, self.limbs)
