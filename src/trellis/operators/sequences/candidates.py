"""The events that may fill the variables of a sequence, without those that can be in no match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from trellis.events.adjacency import meets_condition
from trellis.events.slice import Slice, until_forbidden
from trellis.events.variables import usable_events
from trellis.kernels.events.partitions import later_times
from trellis.kernels.sequence import walk as kernel
from trellis.language.bound import Condition
from trellis.operators.contract import NotComparable
from trellis.operators.pair_conditions import Flags, Ints, PairCondition, PairEncoder, keep_candidates
from trellis.plan.plan import Plan
from trellis.plan.sequence import FixedSequence
from trellis.properties import cached_property

ROUNDS = 1  # more, of leaving out what has no partner


@dataclass(eq=False)
class SequenceCandidates:
    """The candidates of each variable of a sequence, and the conditions between them.

    Attributes
    ----------
    names
        The variables, in the order of the sequence.
    of_variable, sizes
        For each variable the events that are candidates, and how many there were at first.
    later, until
        For each event of the slice the first one that is later, and the first that can be in no match with it.
    forbidden
        Before each variable and after the last, which events a NOT forbids; None without one.
    conditions
        The conditions between two variables.
    """

    names: tuple[str, ...]
    of_variable: list[Ints]
    sizes: list[int]
    later: Ints
    until: Ints
    forbidden: list[Flags | None]
    conditions: list[PairCondition] = field(default_factory=list)

    @classmethod
    def find(
        cls, plan: Plan, sequence: FixedSequence, events: Slice, reduce: bool = True,
        only: Mapping[str, Flags] | None = None,
    ) -> SequenceCandidates:  # fmt: skip
        """Return the candidates of a plan over a slice.

        Without `reduce` those that can be in no match stay; `only` says of variables which events may fill them.

        Raises
        ------
        NotComparable
            If a condition cannot be decided by comparing two codes.
        """
        usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
        for condition in sequence.inferred:
            (name,) = condition.variables
            usable[name] = usable[name] & meets_condition(condition, events.columns, usable[name])
        for name, mask in (only or {}).items():
            usable[name] = usable[name] & mask
        forbidden = [
            np.logical_or.reduce([usable[name] for name in absent]) if absent else None for absent in sequence.absent
        ]
        of_variable = [np.flatnonzero(usable[name]) for name in sequence.variables]
        sizes, later = [len(one) for one in of_variable], later_times(events.ticks, events.bounds)
        found = cls(sequence.variables, of_variable, sizes, later, events.until, forbidden)
        encoder = PairEncoder(events.columns, len(events), plan.sizes.encoded_events)
        for pair in found._pairs(sequence.pairs) if reduce else sequence.pairs:
            if reduce:  # before codes are made: fewer are
                found._keep(*pair, kernel.keep_with_partner)
            for condition in sequence.pairs.get(pair, ()):
                for one in found._encoded(*pair, condition, encoder):
                    if reduce:
                        found._keep_partners(one)
        for _ in range(ROUNDS if reduce else 0):
            if not found._reduced():
                break
        return found

    @property
    def number(self) -> int:
        """The number of variables."""
        return len(self.names)

    def _pairs(self, compared: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield neighbours, and variables that are compared; of few candidates first: then the many are fewer."""
        left = {*compared, *pairwise(range(self.number))}
        while left:
            pair = min(left, key=lambda pair: (len(self.of_variable[pair[0]]) + len(self.of_variable[pair[1]]), pair))
            left.remove(pair)
            yield pair

    def _encoded(self, v: int, w: int, condition: Condition, encoder: PairEncoder) -> list[PairCondition]:
        """Add a condition as codes, and leave out candidates that one of the two alone excludes."""
        found = encoder.encode(v, w, condition, self.of_variable[v], self.of_variable[w])
        if found is None:
            raise NotComparable
        made, keep, keep_other = found
        self.conditions += made
        self._keep_only(v, keep)
        self._keep_only(w, keep_other)
        return made

    def _keep_only(self, variable: int, mask: Flags) -> None:
        """Leave out candidates of a variable."""
        keep_candidates(variable, mask, self.of_variable, self.conditions)

    def _reduced(self) -> bool:
        """Leave out candidates that have no partner for some condition, or none at all; return whether some were."""
        before = [len(one) for one in self.of_variable]
        for pair in self._pairs((one.first, one.second) for one in self.conditions):
            self._keep(*pair, kernel.keep_with_partner)
            for condition in self.conditions:
                if (condition.first, condition.second) == pair:
                    self._keep_partners(condition)
        return [len(one) for one in self.of_variable] != before

    def _keep_partners(self, condition: PairCondition) -> None:
        left, right = condition.left, condition.right
        if condition.kind == kernel.EQUAL:
            size = max(int(left.max(initial=-1)), int(right.max(initial=-1))) + 1
            self._keep(condition.first, condition.second, partial(kernel.keep_equal, size), left, right)
        elif condition.kind == kernel.GREATER:
            self._keep(condition.first, condition.second, kernel.keep_greater, left, right)

    def _keep(self, earlier: int, later: int, keep_partners: Callable[..., None], *codes: Ints) -> None:
        """Leave out candidates of two variables that a kernel finds no partner for."""
        one, other = self.of_variable[earlier], self.of_variable[later]
        keep, keep_other = np.ones(len(one), np.bool_), np.ones(len(other), np.bool_)
        keep_partners(one, self.later[one], self.until[one], other, *codes, keep, keep_other)
        self._keep_only(earlier, keep)
        self._keep_only(later, keep_other)

    def part(self, first: int, last: int, lo: int, hi: int) -> SequenceCandidates:
        """Return some of the variables, with their candidates among the events `[lo, hi)`."""
        here = {v: slice(*np.searchsorted(self.of_variable[v], [lo, hi])) for v in range(first, last + 1)}
        of_variable = [self.of_variable[v][here[v]] for v in range(first, last + 1)]
        conditions = [
            replace(
                c, first=c.first - first, second=c.second - first, left=c.left[here[c.first]],
                right=c.right[here[c.second]],
            )
            for c in self.conditions
            if first <= c.first and c.second <= last
        ]  # fmt: skip
        forbidden = [None, *self.forbidden[first + 1 : last + 1], None]
        return SequenceCandidates(
            self.names[first : last + 1], of_variable, [len(one) for one in of_variable], self.later, self.until,
            forbidden, conditions,
        )  # fmt: skip

    # --- For the walk -----------------------------------------------------------------------------------------

    @cached_property
    def candidates(self) -> kernel.WalkCandidates:
        """The candidates as the kernels take them."""
        events = np.concatenate(self.of_variable)
        begin = np.concatenate([[0], np.cumsum([len(one) for one in self.of_variable])]).astype(np.int64)
        chosen = sorted(self.conditions, key=lambda c: (c.first, c.second, c.kind != kernel.EQUAL))
        codes = np.zeros((len(chosen), len(events)), np.int64)
        pairs = np.zeros((self.number, self.number, 2), np.int64)
        fresh = np.ones((self.number, self.number), np.bool_)
        runs: list[Ints] = [np.empty(0, np.int64)]
        begins: list[Ints] = [np.empty(0, np.int64)]
        run_at = np.full(len(chosen) + 1, -1)
        ran = placed = 0
        for c, condition in enumerate(chosen):
            v, w = condition.first, condition.second
            codes[c, begin[v] : begin[v + 1]] = condition.left
            codes[c, begin[w] : begin[w + 1]] = condition.right
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
        return kernel.WalkCandidates(
            events, begin, self.later[events], self.until[events], self._bounds(), pairs, kinds, codes,
            np.concatenate(runs), np.concatenate(begins), run_at, fresh,
        )  # fmt: skip

    @cached_property
    def cut(self) -> int:
        """The first variable behind which no two are asked about each other but time."""
        inner = [c.first for c in self.conditions]
        inner += [v - 1 for v, forbidden in enumerate(self.forbidden[:-1]) if v and forbidden is not None]
        return min(max(inner, default=0), max(self.number - 2, 0))

    def _bounds(self) -> Ints:
        """Return for each candidate the first event that NOT makes too late for the next variable."""
        found = []
        for v, events in enumerate(self.of_variable):
            forbidden = self.forbidden[v + 1] if v + 1 < self.number else None
            if forbidden is None:
                found.append(np.full(len(events), len(self.later)))
            else:
                found.append(until_forbidden(self.later, forbidden)[events])
        return np.concatenate(found)
