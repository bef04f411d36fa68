"""The events that may fill the variables of a sequence, without those that can be in no match."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trellis.kernels import sequences as kernel
from trellis.kernels.worlds import later_times
from trellis.patterns.variables import usable_events
from trellis.plan.plan import Plan
from trellis.plan.sequence import Sequence
from trellis.trends.adjacency import encode, meets_condition
from trellis.trends.slice import Slice

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROUNDS = 2  # of leaving out what has no partner


@dataclass
class _Condition:
    """A condition on two variables: codes of all events as the earlier and as the later one."""

    earlier: int
    later: int
    kind: int
    left: Ints
    right: Ints


class NotComparable(Exception):
    """A condition cannot be told by comparing two codes, on the events at hand."""


class Leaves:
    """The candidates of each variable of a sequence, and the conditions between them."""

    def __init__(self, plan: Plan, sequence: Sequence, events: Slice, reduce: bool = True) -> None:
        self.sequence, self.number = sequence, len(sequence.variables)
        usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
        for condition in sequence.inferred:
            (name,) = condition.variables
            usable[name] = usable[name] & meets_condition(condition, events.columns, usable[name])
        masks = [usable[name] for name in sequence.variables]
        self.conditions = _conditions(sequence, events, masks)
        self.sizes = [int(mask.sum()) for mask in masks]
        self.later = later_times(events.times, events.bounds)
        self.until = events.until
        self.of_variable = [np.flatnonzero(mask) for mask in masks]
        if reduce:
            self._reduce()

    def _reduce(self) -> None:
        """Leave out candidates that have no partner for some condition, or none at all, within reach."""
        for _ in range(ROUNDS):
            before = [len(one) for one in self.of_variable]
            for condition in sorted(self.conditions, key=self._work):
                self._keep_partners(condition)
            for v in range(self.number - 1):
                self._keep(v, v + 1, kernel.keep_with_partner)
            if [len(one) for one in self.of_variable] == before:
                return

    def _work(self, condition: _Condition) -> int:
        """Return how many candidates a condition is asked of: few first, so that the many are fewer then."""
        return min(len(self.of_variable[condition.earlier]), len(self.of_variable[condition.later]))

    def _keep_partners(self, condition: _Condition) -> None:
        one, other = (self.of_variable[v] for v in (condition.earlier, condition.later))
        left, right = condition.left[one], condition.right[other]
        if condition.kind == kernel.EQUAL:
            size = max(int(left.max(initial=-1)), int(right.max(initial=-1))) + 1
            self._keep(condition.earlier, condition.later, kernel.keep_equal, left, right, size)
        elif condition.kind == kernel.GREATER:
            self._keep(condition.earlier, condition.later, kernel.keep_greater, left, right)

    def _keep(self, earlier: int, later: int, keep_of, left=None, right=None, *more) -> None:  # type: ignore[no-untyped-def]
        one, other = self.of_variable[earlier], self.of_variable[later]
        keep, keep_other = np.ones(len(one), np.bool_), np.ones(len(other), np.bool_)
        reach = (one, self.later[one], self.until[one])
        if left is None:
            keep_of(*reach, other, keep, keep_other)
        else:
            keep_of(*reach, left, other, right, *more, keep, keep_other)
        self.of_variable[earlier], self.of_variable[later] = one[keep], other[keep_other]

    # --- For the walk -----------------------------------------------------------------------------------------

    @cached_property
    def candidates(self) -> kernel.Candidates:
        """The candidates as the kernels take them."""
        events = np.concatenate(self.of_variable)
        begin = np.concatenate([[0], np.cumsum([len(one) for one in self.of_variable])]).astype(np.int64)
        chosen = sorted(self.conditions, key=lambda c: (c.earlier, c.later, c.kind != kernel.EQUAL))
        codes = np.zeros((len(chosen), len(events)), np.int64)
        pairs = np.zeros((self.number, self.number, 2), np.int64)
        fresh = np.ones((self.number, self.number), np.bool_)
        runs: list[Ints] = [np.empty(0, np.int64)]
        begins: list[Ints] = [np.empty(0, np.int64)]
        run_at = np.full(len(chosen) + 1, -1)
        ran = placed = 0
        for c, condition in enumerate(chosen):
            v, w = condition.earlier, condition.later
            codes[c, begin[v] : begin[v + 1]] = condition.left[self.of_variable[v]]
            codes[c, begin[w] : begin[w + 1]] = condition.right[self.of_variable[w]]
            if pairs[v, w, 1] == 0:
                pairs[v, w] = c, c
                if condition.kind == kernel.EQUAL:
                    own = codes[c, begin[w] : begin[w + 1]]
                    size = max(int(codes[c].max(initial=-1)), 0) + 1
                    order = np.argsort(own, kind="stable")
                    runs.append(order + begin[w])
                    begins.append(np.searchsorted(own[order], np.arange(size + 1)) + ran)
                    run_at[c] = placed
                    ran, placed = ran + len(order), placed + size + 1
            pairs[v, w, 1] = c + 1
            fresh[v + 1 :, w] = False
        kinds = np.array([condition.kind for condition in chosen], np.int64)
        return kernel.Candidates(
            events, begin, self.later[events], self.until[events], pairs, kinds, codes, np.concatenate(runs),
            np.concatenate(begins), run_at, fresh,
        )  # fmt: skip

    @cached_property
    def cut(self) -> int:
        """The first variable behind which no two are asked about each other but time."""
        inner = [c.earlier for c in self.conditions]
        return min(max(inner, default=0), max(self.number - 2, 0))


def _conditions(sequence: Sequence, events: Slice, masks: list[Flags]) -> list[_Condition]:
    """Return the conditions as codes; what is asked of one variable alone is taken from its mask."""
    found: list[_Condition] = []
    every = np.ones(len(events), np.bool_)
    for (v, w), conditions in sequence.pairs.items():
        adjacency = encode(conditions, events.columns, every)
        if adjacency.residual:
            raise NotComparable
        masks[v], masks[w] = masks[v] & adjacency.gives, masks[w] & adjacency.takes
        if adjacency.key_next is not None and adjacency.key_prev is not None:
            masks[v], masks[w] = masks[v] & (adjacency.key_prev >= 0), masks[w] & (adjacency.key_next >= 0)
            found.append(_Condition(v, w, kernel.EQUAL, adjacency.key_prev, adjacency.key_next))
        for above, below in zip(adjacency.above, adjacency.below, strict=True):
            found.append(_Condition(v, w, kernel.GREATER, below, above))
        for after, before in zip(adjacency.differ_next, adjacency.differ_prev, strict=True):
            masks[v], masks[w] = masks[v] & (before >= 0), masks[w] & (after >= 0)
            found.append(_Condition(v, w, kernel.DIFFERENT, before, after))
    return found
