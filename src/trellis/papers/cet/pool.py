"""The stored partial trends of graphlets, one after another in one array; expired ones make room in front."""

from __future__ import annotations

from collections import deque

import numpy as np

from trellis.kernels.list.wide import SPARE
from trellis.kernels.papers.cet.grow import grow, keep_exits, sizes
from trellis.papers.cet.cet_graph import CetGraph
from trellis.papers.contract import REFERENCE, Meter


class Pool:
    """Graphlets that windows still need. Partial trends that end at event x are rows `begins[x]` to `stops[x]`.

    From `laters[x]` on they begin with an event that has a predecessor in the graphlet too.
    """

    def __init__(self, cet: CetGraph, events: int, meter: Meter) -> None:
        self.cet, self.meter = cet, meter
        self.values, self.ends = np.empty(0, np.int32), np.empty(0, np.int64)
        self.begins, self.laters, self.stops = np.zeros((3, events), np.int64)
        self.worked_on = 0
        self.bytes = 0  # that the arrays took at most
        self._used = self._rows = 0
        self._graphlets: deque[tuple[int, int, int, int]] = deque()  # events from and to, values and rows behind it

    def add(self, u: int, v: int) -> None:
        """Find the partial trends of the graphlet from event `u` to before `v`, and keep those that can be joined."""
        cet = self.cet
        rows, named, _, _ = sizes(u, v, True, cet.both)
        self.meter.hold(REFERENCE * int(named))
        self._make_room(int(named), int(rows))
        first_row, later_row = np.empty((2, v - u + 1), np.int64)
        arrays = self.values, self.ends, self._used, self._rows, first_row, later_row
        grow(u, v, True, cet.both, *arrays)
        used, self._rows = keep_exits(u, v, True, cet.both, *arrays, self.begins, self.laters, self.stops)
        self.meter.release(REFERENCE * (int(named) - (used - self._used)))
        self._used = used
        self._graphlets.append((u, v, self._used, self._rows))
        self.worked_on += 1

    def release_before(self, position: int) -> None:
        """Forget the graphlets that lie before an event."""
        begin = self._front
        while self._graphlets and self._graphlets[0][1] <= position:
            self._behind = self._graphlets.popleft()[2:]
        self.meter.release(REFERENCE * (self._front - begin))

    _behind = (0, 0)  # values and rows of graphlets that are forgotten and still in front

    @property
    def _front(self) -> int:
        return self._behind[0]

    def _make_room(self, values: int, rows: int) -> None:
        """Make room at the end, by moving what is stored to the front, or by longer arrays."""
        front, front_rows = self._behind
        values += SPARE  # for wide copies
        if self._used + values <= len(self.values) and self._rows + rows <= len(self.ends):
            return
        live, live_rows = self._used - front, self._rows - front_rows
        new_values, new_ends = self.values, self.ends
        if live + values > len(self.values):
            new_values = np.empty(live + values, np.int32)
        if live_rows + rows > len(self.ends):
            new_ends = np.empty(live_rows + rows, np.int64)
        new_values[:live] = self.values[front : self._used]
        new_ends[:live_rows] = self.ends[front_rows : self._rows] - front
        self.bytes = max(self.bytes, new_values.nbytes + new_ends.nbytes)
        self.values, self.ends = new_values, new_ends
        for u, v, _, _ in self._graphlets:
            for rows_of in (self.begins, self.laters, self.stops):
                rows_of[u:v] -= front_rows
        self._graphlets = deque((u, v, used - front, row - front_rows) for u, v, used, row in self._graphlets)
        self._used, self._rows, self._behind = live, live_rows, (0, 0)
