"""How a join is counted: its independent parts, the slots that are bound, and the forest that is left.

Slots are joined where time orders them, a condition compares them, or one event may be a candidate of both. Parts that
nothing joins are counted apart, and multiplied. In each part the fewest slots are bound that leave no cycle: what then
remains is counted by sums that each slot passes on to its neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import log2

import numpy as np

from trellis.kernels.join.count import JoinShape
from trellis.kernels.join.placed import CODE, SCAN, TIME
from trellis.language.once import MadeOnce, once
from trellis.operators.joins.tables import JoinCandidates, SlotArm, bits

MOST_TRIED = 10  # slots of which every choice is tried
Slots = tuple[int, ...]


@dataclass(frozen=True)
class CountedShape:
    """How a part is counted: for the kernel, and what it costs for one window, as steps."""

    shape: JoinShape
    bound: Slots
    cost: float


class Shapes:
    """Chooses how the parts of arms are counted, and remembers it."""

    def __init__(self, candidates: JoinCandidates) -> None:
        self.candidates = candidates
        tables = candidates.tables
        self._conditions = tables.pairs[:, :, 1] - tables.pairs[:, :, 0]
        self._first = tables.pairs[:, :, 0]
        self._masks = [test.mask for test in candidates.due]
        self._covers = _covers(candidates.order)
        size = max(1, len(candidates.events))
        reach = float((candidates.events.until - np.arange(len(candidates.events))).mean()) if size > 1 else 1.0
        self._sizes = [max(1.0, len(one) * min(1.0, reach / size)) for one in candidates.of_slot]
        self.made = MadeOnce()

    @once
    def parts(self, arm: SlotArm) -> tuple[Slots, ...]:
        """Return the parts of an arm that nothing joins."""
        group = {slot: slot for slot in arm.slots}

        def root(slot: int) -> int:
            while group[slot] != slot:
                slot = group[slot]
            return slot

        for u, v in combinations(arm.slots, 2):
            if self._joined(u, v):
                group[root(v)] = root(u)
        for mask in self._masks:
            own = [slot for slot in arm.slots if mask >> slot & 1] if not mask & ~arm.mask else []
            for slot in own[1:]:
                group[root(slot)] = root(own[0])
        return tuple(tuple(s for s in arm.slots if root(s) == r) for r in arm.slots if root(r) == r)

    def _joined(self, u: int, v: int) -> bool:
        return bool(self._covers[u, v] or self._conditions[u, v] or self.candidates.distinct[u, v])

    @once
    def of_part(self, part: Slots, given: Slots = (), target: int = -1) -> CountedShape:
        """Return how a part is counted; the slots `given` have their events, a `target` passes its sums to none."""
        rest = tuple(slot for slot in part if slot not in given)
        best: tuple[float, Slots, list[list[int]]] | None = None
        for number in range(len(rest) + 1):
            for cut in combinations(rest, number) if len(rest) <= MOST_TRIED else [self._greedy(rest, number)]:
                edges = self._forest(tuple(s for s in rest if s not in cut), bits((*given, *cut)))
                if edges is None:
                    continue
                cost = self._cost(rest, cut, edges)
                if best is None or cost < best[0]:
                    best = cost, cut, edges
            if best is not None and len(best[1]) < number:
                break
        assert best is not None
        cost, cut, edges = best
        left = [slot for slot in rest if slot not in cut]
        rooted, roots = _rooted(left, edges, target)
        order = sorted(cut, key=lambda slot: self._sizes[slot])
        shape = JoinShape(
            np.array([bits(part)], np.uint64), np.array([*given, *order], np.int64),
            np.array(rooted, np.int64).reshape(-1, 5), np.array(roots, np.int64),
        )  # fmt: skip
        return CountedShape(shape, tuple(order), cost)

    def _greedy(self, rest: Slots, number: int) -> Slots:
        """Return the slots that are joined to most others."""
        joined = {u: sum(self._joined(u, v) for v in rest if v != u) for u in rest}
        return tuple(sorted(rest, key=lambda slot: -joined[slot])[:number])

    def _forest(self, left: Slots, bound: int) -> list[list[int]] | None:
        """Return the pairs that join slots when others are bound; None if these make a cycle, or more are asked of."""
        due = set()
        for mask in self._masks:
            if mask & ~(bits(left) | bound):
                continue  # of another part, or of slots that are left out
            open_ = [slot for slot in left if mask >> slot & 1]
            if len(open_) > 2:
                return None
            if len(open_) == 2:
                due.add((open_[0], open_[1]))
        tree = {slot: slot for slot in left}

        def root(slot: int) -> int:
            while tree[slot] != slot:
                slot = tree[slot]
            return slot

        edges = []
        for u, v in combinations(left, 2):
            if not self._joined(u, v) and (u, v) not in due:
                continue
            if root(u) == root(v):
                return None
            tree[root(v)] = root(u)
            conditions = int(self._conditions[u, v])
            how = SCAN if (u, v) in due or conditions > 1 else CODE if conditions else TIME
            order = int(self.candidates.order[u, v]) if self._covers[u, v] or how == SCAN else 0
            edges.append([u, v, how, order, int(self._first[u, v])])
        return edges

    def _cost(self, rest: Slots, cut: Slots, edges: list[list[int]]) -> float:
        """Return about how many steps a window takes: sums over the forest, and lists that bindings narrow."""
        steps = 1.0
        for u, v, how, *_ in edges:
            a, b = self._sizes[u], self._sizes[v]
            scanned = how == SCAN and not self._is_by_ease(u, v, cut)
            steps += a * b if scanned else (a + b) * (1.0 if how == TIME else log2(a + b))
        times, bound = 1.0, [-1]
        for slot in sorted(cut, key=lambda one: self._sizes[one]):
            times *= self._sizes[slot]
            bound.append(slot)
            waiting = [v for v in rest if v not in bound]
            steps += sum(self._sizes[v] if self._filters(slot, v) else 1.0 for v in waiting)
        return steps * times

    def _is_by_ease(self, u: int, v: int, cut: Slots) -> bool:
        """Return whether two slots are joined by one condition that either's candidates meet more or less easily.

        The slots that are bound must tell their order.
        """
        asked = [h for h, mask in enumerate(self._masks) if mask >> u & 1 and mask >> v & 1]
        if len(asked) != 1 or self._conditions[u, v] or self.candidates.distinct[u, v]:
            return False
        order = self.candidates.order
        told = not order[u, v] or any(order[u, x] == order[x, v] == order[u, v] for x in cut)
        eases = self.candidates.tables.eases
        return told and bool(eases[asked[0], u] and eases[asked[0], v])

    def cost_with(self, part: Slots, slot: int) -> float:
        """Return about how many steps a part takes where a slot has its event, which narrows the lists of others."""
        if slot not in part:
            return self.of_part(part).cost
        lists = sum(self._sizes[v] if self._filters(slot, v) else 1.0 for v in part if v != slot)
        return self.of_part(part, (slot,)).cost + lists

    def _filters(self, u: int, v: int) -> bool:
        """Return whether an event of one slot leaves some candidates of the other, one by one."""
        due = any(mask >> u & 1 and mask >> v & 1 for mask in self._masks)
        return bool(self._conditions[u, v] or self.candidates.distinct[u, v] or due)


def _covers(order: np.ndarray) -> np.ndarray:
    """Return between which slots the order is not implied by a third that stands between them."""
    earlier = order > 0
    implied = (earlier[:, :, None] & earlier[None, :, :]).any(axis=1)
    covers = earlier & ~implied
    return covers | covers.T


def _rooted(left: list[int], edges: list[list[int]], target: int) -> tuple[list[list[int]], list[int]]:
    """Direct the edges of a forest to its roots, those farthest from them first; a target is a root."""
    rooted: list[list[int]] = []
    roots: list[int] = []
    seen: set[int] = set()
    for start in sorted(left, key=lambda slot: slot != target):
        if start in seen:
            continue
        roots.append(start)
        seen.add(start)
        found, at = [start], 0
        own: list[list[int]] = []
        while at < len(found):
            for u, v, how, order, condition in edges:
                child = v if u == found[at] else u if v == found[at] else -1
                if child >= 0 and child not in seen:
                    seen.add(child)
                    found.append(child)
                    own.append([child, found[at], how, order if child == u else -order, condition])
            at += 1
        rooted += own[::-1]
    return rooted, roots
