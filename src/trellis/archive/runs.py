"""The chains of a step sequence over the leaves of a search: where they start and end."""

from __future__ import annotations

from math import ceil

import numpy as np

from trellis.archive.leaves import Flags, Policy, Reading, SearchedLeaves, Small
from trellis.archive.step_sequences import StepSequence
from trellis.kernels.bloom import chains as kernel
from trellis.properties import cached_property


class Run:
    """The chains of a step sequence over the leaves of a search."""

    def __init__(self, search: SearchedLeaves, sequence: StepSequence, strictly: bool) -> None:
        self.search, self.sequence = search, sequence
        leaves, size = search.leaves, len(search.leaves)
        sets = [some for block in sequence.blocks for some in block]
        self.has = np.stack([leaves.has(some) & search.usable for some in sets])
        self.blocks = np.concatenate([[0], np.cumsum([len(block) for block in sequence.blocks])]).astype(np.int64)
        apart = int(search.question.reading is Reading.NO)
        self.gaps = np.array([0 if loose else apart for loose in sequence.loose], np.int64)
        self.strict = np.zeros(size + 1, np.int64)
        if strictly:
            self.strict[:size] = np.searchsorted(leaves.since, leaves.until, side="right")
        self.after = kernel.nexts(self.has)
        self.first = np.empty(size, np.int32)
        kernel.first_ends(self.has, self.after, self.blocks, self.gaps, self.strict, search.limit, self.first)

    def tell_clear(self, first: Small, only_first: bool, out: Flags) -> None:
        """Note the rows that a chain of this sequence has without what is forbidden."""
        mine = np.where((self.first >= 0) & ((self.first <= first) | (not only_first)), first, -1).astype(np.int32)
        if not any(self.sequence.forbidden):
            if only_first:  # a chain may end in any later leaf that holds the last step, in the row's too if it does
                out |= (mine >= 0) & (self.first == mine)
            else:
                out |= mine >= 0
            mine[out] = -1
            if not only_first or not (mine >= 0).any():
                return
        search = self.search
        if len(self.has) == len(self.sequence.blocks):
            clear = np.empty(len(mine), np.int32)
            kernel.clear_first_ends(self.has, self.gaps, self.strict, self.forbidden, clear)
            out |= (mine >= 0) & (clear >= 0) & (clear <= (mine if only_first else search.limit))
            return
        kernel.clear_rows(
            self.has, self.after, self.blocks, self.gaps, self.strict, self.forbidden, mine, search.limit, only_first,
            out,
        )  # fmt: skip

    @cached_property
    def forbidden(self) -> Small:
        """For each gap and leaf the first leaf from there on that may hold what is forbidden in the gap."""
        size = len(self.search.leaves)
        forbidden = np.full((max(1, len(self.sequence.forbidden)), size + 1), size, np.int32)
        for gap, names in enumerate(self.sequence.forbidden):
            if names:
                forbidden[gap] = kernel.nexts(self.search.leaves.has(names)[None])[0][: size + 1]
        return forbidden

    def add_ends(self, a: int, reached: Flags, clear: Flags) -> None:
        """Add the ends of chains from a start, and those of chains without what is forbidden."""
        if self.first[a] < 0:
            return
        limit = self.search.limit
        kernel.add_ends(self.has, self.after, self.blocks, self.first, limit, a, reached)
        if not any(self.sequence.forbidden):
            kernel.add_ends(self.has, self.after, self.blocks, self.first, limit, a, clear)
            return
        free, other = np.zeros((2, len(reached)), np.bool_)
        end = min(int(limit[a]), len(reached) - 1)
        kernel.clear_ends(
            self.has, self.after, self.blocks, self.gaps, self.strict, self.forbidden, a, end, free, other
        )
        clear |= free


class Steps:
    """The chains of a step sequence whose steps are in the same leaf as the one before, or in the next."""

    def __init__(self, search: SearchedLeaves, sequence: StepSequence, strictly: bool) -> None:
        self.search, self.sequence = search, sequence
        leaves = search.leaves
        self.size = len(leaves)
        self.adjacent = search.question.policy is Policy.ADJACENT_LEAVES
        apart = self.adjacent or search.question.reading is Reading.NO
        self.gaps = (1,) if apart else (0, 1)
        self.most = (
            sequence.steps - 1 if apart else min(sequence.steps - 1, ceil((sequence.steps - 1) / leaves.capacity))
        )
        self.later = np.zeros(self.size, np.bool_)  # whether a leaf is later than the one before, in time too
        self.later[1:] = leaves.since[1:] > leaves.until[:-1]
        self.strictly = strictly

    def offsets(self, heed: bool) -> list[Flags]:
        """Return for each distance the leaves at which a chain starts that ends so far behind; heed NOT, or do not."""
        leaves = self.search.leaves
        current: list[Flags] | None = None
        for b, block in enumerate(self.sequence.blocks):
            has = [leaves.has(some) & self.search.usable for some in block]
            forbidden = self.sequence.forbidden[b - 1] if b else frozenset()
            loose = bool(b and self.sequence.loose[b - 1])
            current = self._block(current, has, leaves.has(forbidden) if forbidden and heed else None, loose)
        assert current is not None
        flags = []
        for offset, starts in enumerate(current):
            ends = np.arange(self.size) + offset
            flags.append(starts & (ends <= self.search.limit))
        return flags

    def _block(self, before: list[Flags] | None, has: list[Flags], forbidden: Flags | None, loose: bool) -> list[Flags]:
        """Go through a block in all orders of its steps, by the subsets that are done."""
        none = [np.zeros(self.size, np.bool_) for _ in range(self.most + 1)]
        done: dict[int, list[Flags]] = {}
        for e, here in enumerate(has):
            if before is None:
                done[1 << e] = [here.copy(), *none[1:]]
            else:
                done[1 << e] = self._stepped(before, here, (0, 1) if loose else self.gaps, forbidden)
        for mask in range(1, 1 << len(has)):
            if mask not in done:
                done[mask] = [flags.copy() for flags in none]
            for e, here in enumerate(has):
                bit = 1 << e
                if mask & bit and mask != bit and (mask ^ bit) in done:
                    more = self._stepped(done[mask ^ bit], here, (0, 1), None)
                    done[mask] = [one | other for one, other in zip(done[mask], more, strict=True)]
        return done[(1 << len(has)) - 1]

    def _stepped(self, before: list[Flags], here: Flags, gaps: tuple[int, ...], forbidden: Flags | None) -> list[Flags]:
        flags = []
        for offset in range(self.most + 1):
            reached = np.zeros(self.size, np.bool_)
            for gap in gaps:
                if offset - gap < 0:
                    continue
                come = before[offset - gap]
                if forbidden is not None:
                    come = come & ~_shifted(forbidden, offset - gap) & ~_shifted(forbidden, offset)
                if self.strictly and gap:
                    come = come & _shifted(self.later, offset)
                reached |= come
            flags.append(reached & _shifted(here, offset))
        return flags


def _shifted(flags: Flags, offset: int) -> Flags:
    """Return for each leaf the flag of the one so far behind it."""
    out = np.zeros(len(flags), np.bool_)
    if offset < len(flags):
        out[: len(flags) - offset] = flags[offset:]
    return out
