"""The thesis's way to ask: the tree is walked from the top for each name, and chains go over the leaves that it finds.

A node has all bits of the leaves below it, so the walk finds the leaves that the slices find, and every answer is the
same. Where names are rare and nodes exist, it looks at fewer nodes than there are leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.filters import Filters, Ints, hashes_of
from trellis.archive.tree import FilterTree
from trellis.errors import UsageError, did_you_mean
from trellis.kernels.bloom import filters as kernel
from trellis.kernels.bloom import walk as walking

ALGORITHMS = ("auto", "slices", "tree")
NODE, WORD = 40.0, 0.35  # nanoseconds to look at a node, and to AND a word of a slice: estimates


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
    node_rows, leaf_rows
        Filters as rows of words.
    visited
        How many nodes and leaves were looked at.
    known
        The leaves of names that were looked up already, and from which leaf on.
    """

    filters: Filters
    spans: Ints
    nodes: Ints
    node_rows: NDArray[np.uint64]
    leaf_rows: NDArray[np.uint64]
    visited: int = 0
    known: dict[frozenset[str], tuple[int, NDArray[np.bool_]]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: FilterTree, entries: np.ndarray, filters: Filters) -> WalkedTree:
        """Return the tree over entries of leaves, to be walked."""
        at = tree.nodes["index"] * tree.capacity * tree.fan_out ** tree.nodes["level"]
        order = np.lexsort((-tree.nodes["level"], at))
        nodes, at = tree.nodes[order], at[order]
        begins, ends = (np.searchsorted(entries["at"], place) for place in (at, at + nodes["events"]))
        known = ends - begins > 1  # where the history was coarsened, a node may stand for one entry
        nodes, begins, ends = nodes[known], begins[known], ends[known]
        first = np.searchsorted(begins, np.arange(len(entries) + 1))
        rows = np.ascontiguousarray(nodes["filter"]) if len(nodes) else np.zeros((0, filters.bits // 64), np.uint64)
        return cls(filters, ends - begins, first, rows, filters.rows())

    def has(self, names: Iterable[str], begin: int = 0) -> NDArray[np.bool_]:
        """Return which leaves from one on may hold one of some names, by walks from the top."""
        wanted = frozenset(names)
        if self.known.get(wanted, (len(self.leaf_rows) + 1,))[0] > begin:
            hashes = hashes_of(pa.array(sorted(wanted), pa.large_string()))
            items = kernel.positions(hashes, self.filters.hashes, self.filters.bits)
            out = np.zeros(len(self.leaf_rows), np.bool_)
            self.visited += walking.walk(self.spans, self.nodes, self.node_rows, self.leaf_rows, items, begin, out)
            self.known[wanted] = begin, out
        return self.known[wanted][1]

    def anew(self) -> WalkedTree:
        """Return the tree for another question, for which nothing was looked at yet."""
        return replace(self, visited=0, known={})

    def pays(self) -> bool:
        """Return whether walks for rare names are expected to cost less than slices.

        A rare name is denied at the top, so a walk looks at the top nodes, and at half as many below by mistake; slices
        cost a word for 64 leaves and each bit of an item.
        """
        tops = len(self.leaf_rows) - int((self._largest() - 1).sum())
        slices = self.filters.hashes * len(self.filters.tiles) * kernel.WORDS * WORD
        return tops * 1.5 * NODE < slices

    def _largest(self) -> Ints:
        """Return how many leaves the nodes without a node above them stand for."""
        largest, leaf, found = self.nodes[:-1], 0, []
        while leaf < len(self.leaf_rows):
            node = int(largest[leaf])
            span = int(self.spans[node]) if node < self.nodes[leaf + 1] else 1
            found.append(span)
            leaf += span
        return np.array(found, np.int64)
