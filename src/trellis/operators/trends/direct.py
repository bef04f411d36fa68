"""Direct successors: edges without a detour, whose paths are the maximal trends; found without testing all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from trellis.events.adjacency import HIGHEST, LOWEST, Adjacency, Order, encode
from trellis.events.slice import Ints, Slice
from trellis.kernels.maximal import conjunction, difference, equality
from trellis.kernels.maximal import inequality as kernel
from trellis.kernels.maximal.bisection import rank_codes
from trellis.language.syntax import Report, Select
from trellis.operators.trends.key_partitions import Flags, KeyPartitions, Places, arrange, runs_of
from trellis.plan.plan import Plan
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

Edges = tuple[Ints, NDArray[np.int32]]
STEP = 4  # what one step of a return to a key takes, in words of reachability
NONE = np.empty(0, np.int32)


class Method(StrEnum):
    """The method that finds direct successors."""

    BISECTION = "time bisection"
    RETURNS = "earliest return to each key"
    TURNS = "first other values"
    SCAN = "scan with a front"
    REACH = "reachability"


COMPLEXITY = {
    Method.BISECTION: "n log n + direct edges; counts alone never take more than n log^2 n",
    Method.RETURNS: "n * keys + direct edges",
    Method.TURNS: "n + direct edges",
    Method.SCAN: "every pair of events that share a window; memory only for direct edges",
    Method.REACH: "edges + direct edges * n / 64",
}


class DirectEdges:
    """The direct successors of the events of a slice under skip-till-any.

    `method` follows from the conditions and the values at hand, in time linear in the events: a condition need not be
    transitive as it is written, it has to be so on these events.
    """

    def __init__(self, events: Slice, adjacency: Adjacency, sizes: Sizes = USUAL) -> None:
        self.events, self.adjacency, self._sizes = events, adjacency, sizes
        self._inequalities = [pair for order in adjacency.orders for pair in _inequalities(order)]
        self._differ = list(zip(adjacency.differ_next, adjacency.differ_prev, strict=True))
        self._takes, self._gives = self._able()
        self.method = self._choose()
        self._degrees: Ints | None = None

    def _able(self) -> tuple[Flags, Flags]:
        """Return which events can follow another one at all, and which can be followed."""
        takes, gives = self.adjacency.takes.copy(), self.adjacency.gives.copy()
        if self.adjacency.key_next is not None and self.adjacency.key_prev is not None:
            takes &= self.adjacency.key_next >= 0
            gives &= self.adjacency.key_prev >= 0
        for above, below in self._inequalities:
            takes &= above != LOWEST
            gives &= below != HIGHEST
        for following, followed in self._differ:
            takes &= following >= 0
            gives &= followed >= 0
        return takes, gives

    def _choose(self) -> Method:
        several = self.adjacency.residual or self.adjacency.clauses
        if several or len(self._differ) > 1 or (self._differ and self._inequalities):
            return Method.REACH
        if not self._key_is_transitive:
            returns = not (self._differ or self._inequalities) and self._returns_pay
            return Method.RETURNS if returns else Method.REACH
        if self._differ:
            following, followed = self._differ[0]
            return Method.TURNS if (following == followed)[self._whole].all() else Method.REACH
        if len(self._inequalities) < 2:
            return Method.BISECTION
        return Method.SCAN if self._not_transitive < 2 else Method.REACH

    @property
    def complexity(self) -> str:
        """How the cost of the method grows."""
        return COMPLEXITY[self.method]

    @cached_property
    def _whole(self) -> Flags:
        """The events that can both follow and be followed: what detours are made of."""
        return self._takes & self._gives

    @cached_property
    def _key_is_transitive(self) -> bool:
        key_next, key_prev = self.adjacency.key_next, self.adjacency.key_prev
        return key_next is None or key_prev is None or bool((key_next == key_prev)[self._whole].all())

    @cached_property
    def _not_transitive(self) -> int:
        """How many inequalities are not transitive on the values at hand.

        If `above[z] > below[y] >= above[y] - 1` and `above[y] > below[x]`, then `above[z] > below[x]`.
        """
        return sum(not (below >= above - 1)[self._whole].all() for above, below in self._inequalities)

    # --- Arrays for the kernels -----------------------------------------------------------------------------------

    @cached_property
    def key_partitions(self) -> KeyPartitions:
        """The events by partition and key."""
        adjacency = self.adjacency
        if adjacency.key_next is None or adjacency.key_prev is None:
            return arrange(self.events, None)
        return arrange(self.events, np.where(self._takes, adjacency.key_next, adjacency.key_prev))

    @cached_property
    def codes(self) -> tuple[Places, Places]:
        """The one inequality as codes of 32 bits, by key partition; without a condition, one that holds."""
        n = len(self.events)
        return self._ranked(
            *(self._inequalities[0] if self._inequalities else (np.ones(n, np.int64), np.zeros(n, np.int64)))
        )

    def _ranked(self, above: Ints, below: Ints) -> tuple[Places, Places]:
        """Return codes of 32 bits that compare as the given ones do, in the order of the key partitions."""
        ranked = rank_codes(*_sorted(above, below, self._takes, self._gives), above, below)
        return ranked[0][self.key_partitions.order], ranked[1][self.key_partitions.order]

    @cached_property
    def _keys(self) -> tuple[Ints, Ints, Ints]:
        """The keys of events that can follow, and be followed, or -1; and -1 for each key."""
        assert self.adjacency.key_next is not None
        assert self.adjacency.key_prev is not None
        key_next = np.where(self._takes, self.adjacency.key_next, -1)
        key_prev = np.where(self._gives, self.adjacency.key_prev, -1)
        return key_next, key_prev, np.full(max(key_next.max(initial=-1), key_prev.max(initial=-1)) + 1, -1)

    @cached_property
    def _tiles(self) -> Ints:
        return kernel.tiles(self.events.bounds, self.events.until)

    @cached_property
    def _by_key(self) -> tuple[Ints, Ints]:
        """The events that can follow, by key, and where each key begins."""
        key_next, _, local = self._keys
        taking = np.flatnonzero(self._takes)
        by_key = taking[np.argsort(key_next[taking], kind="stable")]
        return by_key, np.searchsorted(key_next[by_key], np.arange(len(local) + 1))

    def _runs_of_key(self, after: Places, back: Ints) -> tuple[Ints, Ints]:
        """Return where the successors of each event that come before `back` begin and end in the order by key."""
        by_key, begins = self._by_key
        return equality.runs(after, back, self.events.until, self._keys[1], begins, by_key)

    @property
    def _returns_pay(self) -> bool:
        """Whether returns to keys take few steps, or no more than reachability would if all edges were direct."""
        events = self.events
        _, after = runs_of(events.later)
        begins, ends = self._runs_of_key(after, events.until)
        words = int((events.until - np.arange(len(events))).max(initial=0)) // 64
        steps = equality.steps(self._tiles, *self._keys[1:])
        return steps * STEP <= max(self._sizes.returns_steps, int((ends - begins).sum()) * (words + STEP))

    # --- Edges ----------------------------------------------------------------------------------------------------

    def exceeds(self, cap: int) -> bool:
        """Return whether time bisection finds more direct edges than `cap`; it stops there."""
        if self._degrees is not None:
            return int(self._degrees.sum()) > cap
        degrees = np.zeros(len(self.key_partitions.order), np.int64)
        if self._halve(degrees, NONE, cap) > cap:
            return True
        self._degrees = degrees
        return False

    def edges(self, cap: int) -> Edges | None:
        """Return offsets and successors, in time order for each event, or None if there are more edges than `cap`.

        Not for `Method.REACH`, which starts from all edges.
        """
        if self.method is Method.BISECTION:
            return self._by_bisection(cap)
        if self.method is Method.RETURNS:
            return self._by_returns(cap)
        return self._by_turns(cap) if self.method is Method.TURNS else self._by_scan(cap)

    def _halve(self, cursor: Ints, successors: NDArray[np.int32], cap: int) -> int:
        parts = self.key_partitions
        rows = kernel.tiles(parts.bounds, parts.limit)
        return kernel.direct_edges(rows, parts.first, parts.after, *self.codes, parts.limit, cursor, successors, cap)

    def _by_bisection(self, cap: int) -> Edges | None:
        if self.exceeds(cap):
            return None
        assert self._degrees is not None
        no_cap = np.iinfo(np.int64).max

        def write(cursor: Ints, successors: NDArray[np.int32]) -> None:
            self._halve(cursor, successors, no_cap)

        offsets, successors = self._filled(self._degrees, write)
        kernel.sort_rows(offsets, successors)
        return offsets, successors

    def _by_turns(self, cap: int) -> Edges | None:
        parts = self.key_partitions
        values = np.where(self._takes, *self._differ[0])
        seen = np.full(values.max(initial=-1) + 1, -1)
        takes, gives = self._takes[parts.order], self._gives[parts.order]

        def write(cursor: Ints, successors: NDArray[np.int32]) -> None:
            difference.differing_edges(
                parts.bounds, parts.first, parts.after, parts.limit, values[parts.order], takes, gives, seen,
                cursor, successors,
            )  # fmt: skip

        degrees = np.zeros(len(parts.order), np.int64)
        write(degrees, NONE)
        return None if degrees.sum() > cap else self._filled(degrees, write)

    def _filled(self, degrees: Ints, write: Callable[[Ints, NDArray[np.int32]], None]) -> Edges:
        """Write the edges to where they belong; the kernels speak of places in the order of the key partitions."""
        order = self.key_partitions.order
        offsets = _offsets(len(self.events), order, degrees)
        successors = np.empty(offsets[-1], np.int32)
        if len(successors):
            write(offsets[order], successors)
            kernel.to_positions(order, successors)
        return offsets, successors

    def _by_scan(self, cap: int) -> Edges | None:
        parts = self.key_partitions
        ranked = [self._ranked(above, below) for above, below in self._inequalities]
        above, below = (np.stack(codes) for codes in zip(*ranked, strict=True))
        degrees = np.zeros(len(parts.order), np.int64)
        found = conjunction.scanned_edges(
            parts.bounds, parts.after, parts.limit, above, below, not self._not_transitive, degrees, cap
        )
        if len(found) > cap:
            return None
        offsets = _offsets(len(self.events), parts.order, degrees)
        return offsets, kernel.placed_rows(parts.order, degrees, found, offsets)

    def _by_returns(self, cap: int) -> Edges | None:
        events = self.events
        first, after = runs_of(events.later)
        back = equality.returns(self._tiles, first, after, *self._keys)
        begins, ends = self._runs_of_key(after, back)
        offsets = np.concatenate([[0], np.cumsum(ends - begins)])
        if offsets[-1] > cap:
            return None
        successors = np.empty(offsets[-1], np.int32)
        equality.write_runs(begins, ends, self._by_key[0], successors)
        return offsets, successors


def find_direct(plan: Plan, events: Slice) -> DirectEdges | None:
    """Return the direct successors of a slice, still to be found, or None where a plan does not ask for them."""
    if plan.bound.report is not Report.MAXIMAL or plan.bound.select is not Select.ANY:
        return None
    return DirectEdges(events, encode(plan.adjacent, events.columns, events.usable), plan.sizes)


def _inequalities(order: Order) -> Iterator[tuple[Ints, Ints]]:
    """Yield codes (above, below) of the later and the earlier event: one pair for all that a value must be above."""
    missing = order.value == LOWEST
    for bounds, value, sign in ((">=", order.value, 0), ("<=", ~order.value, -1)):
        cuts = [(earlier ^ sign) - (op == bounds) for op, earlier in order.comparisons if op in (bounds, bounds[0])]
        if cuts:
            known = [earlier == LOWEST for op, earlier in order.comparisons if op in (bounds, bounds[0])]
            yield np.where(missing, LOWEST, value), np.where(np.any(known, axis=0), HIGHEST, np.max(cuts, axis=0))


def _sorted(above: Ints, below: Ints, takes: Flags, gives: Flags) -> tuple[Ints, Ints]:
    """Return the events that can follow by one code, and those that can be followed by the other."""
    by_above = np.argsort(above)
    by_below = by_above
    if (np.diff(below[by_above]) < 0).any():
        by_below = np.argsort(below)
    return by_above[takes[by_above]], by_below[gives[by_below]]


def _offsets(n: int, order: Ints, degrees: Ints) -> Ints:
    offsets = np.zeros(n + 1, np.int64)
    offsets[order + 1] = degrees
    return np.cumsum(offsets)
