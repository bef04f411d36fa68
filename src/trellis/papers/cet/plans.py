"""Plans of H-CET: pieces of a stream grouped into graphlets, and what a plan costs.

The costs are those of the CET paper's Table 2 with exact numbers of paths: to make the partial trends of each graphlet,
its edges and the partial trends; to join them, twice the graphlets that each trend of each window visits. The graph
costs all plans the same and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.kernels.papers.cet.cuts import EDGES, GROWN, KEPT, UPDATES, VISITS
from trellis.papers.contract import REFERENCE
from trellis.properties import cached_property

FEW = 400  # pieces up to which the costs of all graphlets that begin with one are found at once
Cuts = tuple[int, ...]  # pieces before which a graphlet begins, without the first
Costs = NDArray[np.float64]


@dataclass(frozen=True)
class PlannedWindow:
    """The pieces of a window, the events on its longest trend, and how many trends it has of which mean length."""

    first: int
    stop: int
    longest: int
    trends: float
    mean: float


@dataclass(frozen=True)
class Choice:
    """A plan, what it is expected to cost, and how many plans were looked at, and held at once, to find it.

    `memory` is in bytes of stored partial trends, with the current trend, at most; `cpu` is in steps.
    """

    cuts: Cuts
    cpu: float
    memory: int
    looked_at: int = 0
    held: int = 0


class NoPlan(TrellisError):
    """No plan fits the memory limit; `smallest` is the least limit that one fits."""

    def __init__(self, limit: int, smallest: int) -> None:
        super().__init__(
            f"no plan of h-cet fits a memory limit of {limit:,} bytes: the smallest limit that one fits is "
            f"{smallest:,} bytes",
            "Raise the memory limit, use m-cet, or leave the algorithm out.",
        )
        self.smallest = smallest


class Problem:
    """Pieces of one partition that follow one another, windows over them, and what graphlets of pieces cost.

    Parameters
    ----------
    sizes
        The number of events of each piece.
    forced
        The cuts at borders of windows, which every plan has, so that a graphlet is in a window wholly or not at all.
    windows
        In the order of their beginnings.
    costs_from
        Gives, for a piece, the costs of the graphlets that begin with it and end with it, with the next one, and so on.
    limit
        The memory limit in bytes.
    """

    def __init__(
        self, sizes: Sequence[int], forced: Sequence[int], windows: Sequence[PlannedWindow],
        costs_from: Callable[[int, int], Costs], limit: int,
    ) -> None:  # fmt: skip
        self.sizes, self.forced, self.windows, self.limit = list(sizes), set(forced), list(windows), limit
        self._costs_from = costs_from
        self._rows: dict[int, tuple[list[float], list[float], list[float]]] = {}
        self._before = [0, *accumulate(self.sizes)]  # events before each piece
        borders = sorted({*forced, len(self.sizes)})
        self.border_after = [0] * len(self.sizes)  # where the graphlet that begins here has to stop
        for begin, end in pairwise([0, *borders]):
            self.border_after[begin:end] = [end] * (end - begin)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def optional(self) -> list[int]:
        """The cuts that a plan may have or not."""
        return [cut for cut in range(1, len(self)) if cut not in self.forced]

    @property
    def finest(self) -> Cuts:
        """The plan in which every piece is a graphlet."""
        return tuple(range(1, len(self)))

    def graphlets(self, first: int) -> tuple[list[float], list[float], list[float]]:
        """Return steps, events stored, and events stored while it grows, of the graphlets that begin with a piece.

        Those that alone are beyond the limit are left out, except for the shortest one.
        """
        row = self._rows.get(first)
        if row is None:
            row = self._rows[first] = _as_lists(self._costs_from(first, self.border_after[first]))
        return row

    def _graphlet(self, first: int, stop: int) -> tuple[float, float, float] | None:
        """Return the costs of one graphlet, as `graphlets` does, or None if it alone is beyond the limit."""
        place = stop - first - 1
        if len(self) <= FEW:
            steps, stored, grown = self.graphlets(first)
        else:  # where there are many pieces, a search asks for few of all graphlets
            steps, stored, grown = _as_lists(self._costs_from(first, stop))
        return (steps[place], stored[place], grown[place]) if place < len(steps) else None

    def cost(self, cuts: Cuts) -> tuple[float, float]:
        """Return steps and bytes of a plan."""
        cpu, stored, grown = 0.0, [0.0], []
        borders = [0, *cuts, len(self)]
        for first, stop in pairwise(borders):
            costs = self._graphlet(first, stop)
            if costs is None:
                return np.inf, np.inf
            cpu += costs[0]
            stored.append(stored[-1] + costs[1])
            grown.append(costs[2])
        return cpu, REFERENCE * self._stored(borders, stored, grown)

    def _stored(self, borders: list[int], stored: list[float], grown: list[float]) -> float:
        """Return how many events are stored at most, where graphlets grow when the first window needs them."""
        at = {piece: graphlet for graphlet, piece in enumerate(borders)}
        most, grown_so_far = 0.0, 0
        for window in self.windows:
            first, stop = at[window.first], at[window.stop]
            for graphlet in range(max(first, grown_so_far), stop):
                most = max(most, stored[graphlet] - stored[first] + grown[graphlet])
            grown_so_far = max(grown_so_far, stop)
            most = max(most, stored[stop] - stored[first] + window.longest)
        return most

    @cached_property
    def smallest(self) -> int:
        """The bytes of the plan that stores least.

        To cut between atomic graphlets never stores more, and pieces of one time store each event once, as every plan
        does at least.
        """
        return int(self.cost(self.finest)[1])

    def chosen(self, cuts: Cuts, looked_at: int = 0, held: int = 0) -> Choice:
        """Return a plan with its costs.

        Raises
        ------
        NoPlan
            If it does not fit the limit.
        """
        cpu, memory = self.cost(cuts)
        if memory > self.limit:
            raise NoPlan(self.limit, self.smallest)
        return Choice(cuts, cpu, int(memory), looked_at, held)

    def balanced(self, number: int) -> float:
        """Return the bytes of a plan of so many graphlets, were it possible to balance it perfectly.

        The paper's estimate for 3^(n/3) trends, with the number and the mean length that they have.
        """
        most = 0.0
        for window in self.windows:
            events = self._before[window.stop] - self._before[window.first]
            share = max(number * events / self._before[-1], 1.0)
            most = max(most, window.mean * window.trends ** (1 / share))
        return REFERENCE * most


def _as_lists(costs: Costs) -> tuple[list[float], list[float], list[float]]:
    """Return steps, events stored, and events stored while they grow, of graphlets."""
    cpu = costs[:, EDGES] + costs[:, UPDATES] + 2 * costs[:, VISITS]
    return cpu.tolist(), costs[:, KEPT].tolist(), costs[:, GROWN].tolist()
