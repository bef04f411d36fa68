"""The thesis's way to ask: the tree is walked from the top for a whole question, and what is left is searched.

A node has all bits of the leaves below it. So where no chain of the steps goes through a node of a level, none goes
through the leaves below it, and every answer is that of the slices. Where names are rare and nodes exist, the walk
looks at fewer nodes than there are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.filters import Filters, Ints, Records, hashes_of
from trellis.archive.leaves import Leaves, Question, Reading
from trellis.archive.step_sequences import StepSequence, plain
from trellis.archive.tree import FilterTree
from trellis.archive.values import ChosenValues
from trellis.errors import UsageError, did_you_mean
from trellis.kernels.bloom import filters as kernel
from trellis.kernels.bloom import walk as walking
from trellis.properties import cached_property

ALGORITHMS = ("auto", "slices", "tree")
REMEMBERED = 1024  # names
SAMPLES, SHARE = 8, 16  # how many parts of the tree tell whether a walk pays, and which share of it they are
PASS = 0.25  # of a look: what it costs to pass over a leaf for a NOT


def check_algorithm(name: str) -> None:
    """Refuse an algorithm that there is none of."""
    if name not in ALGORITHMS:
        hint = did_you_mean(name, ALGORITHMS, f"Algorithms are {', '.join(ALGORITHMS)}.")
        raise UsageError(f"a history has no algorithm `{name}`", hint)


@dataclass
class WalkedTree:
    """The tree over the leaves as it is walked; `visited` counts the nodes and leaves that were looked at.

    Attributes
    ----------
    filters
        The filters of the leaves.
    spans
        For each node how many leaves it stands for.
    nodes
        For each leaf the first of the nodes that begin there, the highest first.
    tops
        The first leaves of the nodes, and of the leaves, without a node above them, and the number of leaves.
    node_rows, leaf_rows
        Filters as rows of words.
    visited
        How many nodes and leaves were looked at.
    known
        The bits of names that were looked up already.
    """

    filters: Filters
    spans: Ints
    nodes: Ints
    tops: Ints
    node_rows: NDArray[np.uint64]
    leaf_rows: NDArray[np.uint64]
    visited: int = 0
    known: dict[tuple[str, ...], NDArray[np.int32]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: FilterTree, entries: Records, filters: Filters) -> WalkedTree:
        """Return the tree over entries of leaves, to be walked."""
        at = tree.nodes["index"] * tree.capacity * tree.fan_out ** tree.nodes["level"]
        order = np.lexsort((-tree.nodes["level"], at))
        nodes, at = tree.nodes[order], at[order]
        begins, ends = (np.searchsorted(entries["at"], place) for place in (at, at + nodes["events"]))
        known = ends - begins > 1  # where the history was coarsened, a node may stand for one entry
        nodes, begins, ends = nodes[known], begins[known], ends[known]
        first = np.searchsorted(begins, np.arange(len(entries) + 1))
        rows = np.ascontiguousarray(nodes["filter"]) if len(nodes) else np.zeros((0, filters.bits // 64), np.uint64)
        return cls(filters, ends - begins, first, _tops(begins, ends, len(entries)), rows, filters.rows())

    def has(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which leaves may hold one of some names, by walks from the top."""
        out = np.zeros(len(self.leaf_rows), np.bool_)
        items = self._items(names)
        self.visited += walking.walk(self.spans, self.nodes, self.node_rows, self.leaf_rows, items, out)
        return out

    def narrowed(self, question: Question, leaves: Leaves) -> Leaves:
        """Return the leaves that some match of a question needs, with what may be forbidden between its steps.

        A search in these gives what it gives in all. Where steps are in the same leaf or the next, an empty leaf stands
        behind each that has no neighbour.
        """
        chosen, looked_at, _ = self._chosen(question, leaves, *_between(question, leaves))
        rows = self.leaf_rows[chosen]
        if question.by_steps:
            behind = chosen + 1
            empty = behind[(behind < len(leaves)) & ~np.isin(behind, chosen)]
            order = np.argsort(np.concatenate([chosen, empty]))
            rows = np.concatenate([rows, np.zeros((len(empty), rows.shape[1]), np.uint64)])[order]
            chosen = np.concatenate([chosen, empty])[order]
        return Leaves(
            ChosenLeaves(self, rows, looked_at), leaves.capacity, leaves.first[chosen], leaves.last[chosen],
            leaves.since[chosen], leaves.until[chosen],
            None if leaves.values is None else ChosenValues(leaves.values, chosen),
        )  # fmt: skip

    def _chosen(self, question: Question, leaves: Leaves, low: int, high: int) -> tuple[Ints, int, int]:
        """Return the leaves between two that some match needs, how often a name was looked for, and so inside."""
        tree = self.spans, self.nodes, self.tops, self.node_rows, self.leaf_rows
        chosen, looked_at, so_inside = [], 0, 0
        for sequence in question.sequences:
            names = [self._items(map(plain, some or ())) for block in sequence.blocks for some in block]
            sets = np.concatenate([[0], np.cumsum([len(items) for items in names])])
            blocks = np.concatenate([[0], np.cumsum([len(block) for block in sequence.blocks])])
            apart = int(question.reading is Reading.NO and not question.by_steps)
            gaps = np.array([0 if loose else apart for loose in sequence.loose], np.int64)
            reach = _reach(question, sequence, leaves)
            begins, holds, tested, within = walking.narrow(
                *tree, np.concatenate(names), sets, blocks, gaps, low, high, *reach
            )
            chosen.append(begins)
            looked_at, so_inside = looked_at + tested, so_inside + within
            for b, forbidden in enumerate(sequence.forbidden):
                inside = [begins[holds[:, blocks[i] : blocks[i + 1]].any(axis=1)] for i in (b, b + 1)]
                if forbidden and len(begins) and not question.by_steps:
                    found, tested = walking.next_places(
                        self.spans, self.nodes, self.node_rows, self.leaf_rows, self._items(forbidden), inside[0],
                        inside[1][-1], *reach,
                    )  # fmt: skip
                    chosen.append(found)
                    looked_at += tested
        return np.unique(np.concatenate(chosen)), looked_at, so_inside

    def _items(self, names: Iterable[str]) -> NDArray[np.int32]:
        """Return the bits of names, a row each."""
        wanted = tuple(sorted(set(names)))
        if wanted not in self.known:
            hashes = hashes_of(pa.array(wanted, pa.large_string()))
            self.known[wanted] = kernel.positions(hashes, self.filters.hashes, self.filters.bits)
            while len(self.known) > REMEMBERED:
                del self.known[next(iter(self.known))]
        return self.known[wanted]

    def anew(self) -> WalkedTree:
        """Return the tree for another question, for which nothing was looked at yet."""
        return replace(self, visited=0)

    # --- Which way is cheaper -----------------------------------------------------------------------------------

    def pays(self, question: Question, leaves: Leaves) -> bool:
        """Return whether a walk is expected to cost less than slices, by walks over parts of the leaves."""
        number = len(self.leaf_rows)
        some = number // (SAMPLES * SHARE)
        begins = np.linspace(0, number - some, SAMPLES).astype(np.int64)
        look, slice_ = self.costs
        slices = 0.0
        for sequence in question.sequences:
            gaps = sum(map(bool, sequence.forbidden))
            slices += (sum(map(len, sequence.blocks)) + gaps) * slice_ + gaps * number * PASS * look
        looked_at = 0
        for begin in begins.tolist():
            looked_at += self._chosen(question, leaves, begin, begin + some)[2]
            if looked_at * SHARE * look > slices:
                return False
        return True

    @cached_property
    def costs(self) -> tuple[float, float]:
        """The seconds that it takes to look for a name in a filter of this tree, and in all slices, measured here."""
        items, begins = self._items(["a name"]), np.zeros(len(self.leaf_rows), np.bool_)
        tree = self.spans, self.nodes, self.node_rows, self.leaf_rows
        visited = walking.walk(*tree, items, begins)
        walked = min(_seconds(lambda: walking.walk(*tree, items, begins)) for _ in range(3))
        return walked / max(1, visited), min(_seconds(lambda: self.filters.places(["a name"])) for _ in range(3))


@dataclass(frozen=True)
class ChosenLeaves:
    """The filters of some leaves, and how often the walk that chose them looked for a name in a filter."""

    tree: WalkedTree
    rows: NDArray[np.uint64]
    visited: int

    def has(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which of them may hold one of some names."""
        out = np.zeros(len(self.rows), np.bool_)
        walking.hold(self.rows, self.tree._items(names), out)
        return out


def _tops(begins: Ints, ends: Ints, leaves: int) -> Ints:
    """Return where nodes, and leaves, begin that lie below no other node; nodes are sorted, the higher ones first."""
    covered = np.maximum.accumulate(np.concatenate([[0], ends]))[:-1]
    highest = begins >= covered  # the others lie below one of these
    inside = np.zeros(leaves + 1, np.int64)
    np.add.at(inside, begins[highest] + 1, 1)
    np.add.at(inside, ends[highest], -1)
    return np.append(np.flatnonzero(np.cumsum(inside)[:-1] == 0), leaves)


def _between(question: Question, leaves: Leaves) -> tuple[int, int]:
    """Return the leaves between which the times and positions of a question lie, the last not included."""
    low, high = 0, len(leaves)
    for begin, end, begins, ends in question.bounds(leaves):
        if begin is not None:
            low = max(low, int(np.searchsorted(ends, begin)))
        if end is not None:
            high = min(high, int(np.searchsorted(begins, end, side="right")))
    return low, max(low, high)


def _reach(
    question: Question, sequence: StepSequence, leaves: Leaves
) -> tuple[int, NDArray[Any], NDArray[Any], int | float]:
    """Return how many leaves a chain may span, and the ends and begins of leaves and how far apart they may be."""
    most, within = sequence.steps - 1 if question.by_steps else len(leaves), question.within
    if within is None or within.doubles is not None:
        return most, leaves.last[:0], leaves.first[:0], 0
    near, far = (leaves.last, leaves.first) if within.in_positions else (leaves.until, leaves.since)
    return most, near, far, within.size


def _seconds(work: Callable[[], Any]) -> float:
    begin = thread_time()
    work()
    return thread_time() - begin
