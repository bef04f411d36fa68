"""The canonical tree over leaves: a node has all bits of those below it, their number of events and their times.

The node `b` of level `g` covers the leaves from `b * fan_out**g` on. It exists if all these are closed and at most half
of the bits of their filters together are set. So it depends on nothing else, never changes, and is the same however the
leaves were made. It never changes an answer either: what its leaves have, it has. A part that was coarsened has nodes
in place of leaves, and the tree stands on these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.filters import Filters, Ints, Records, hashes_of, ones
from trellis.kernels.bloom import filters as kernel


def node_type(bits: int, times: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a node in arrays."""
    return np.dtype(
        [("level", "<i8"), ("index", "<i8"), ("events", "<i8"), ("since", times), ("until", times),
         ("filter", "<u8", (bits // 64,))]
    )  # fmt: skip


def levels_of(entries: Records, capacity: int, fan_out: int) -> Ints:
    """Return of which level each entry of the leaves is: 0, or that of the node that stands for its leaves."""
    levels = np.zeros(len(entries), np.int64)
    size = capacity * fan_out
    while (larger := entries["events"] >= size).any():
        levels += larger
        size *= fan_out
    return levels


@dataclass(frozen=True)
class FilterTree:
    """The nodes above the entries of the leaves, by level and place."""

    capacity: int
    fan_out: int
    nodes: Records

    @property
    def height(self) -> int:
        """The highest level."""
        return int(self.nodes["level"].max(initial=0))

    def grown(self, entries: Records, filters: Filters, before: int, settled: int) -> Records:
        """Return the nodes that are new now that so many events have come, where there were some before."""
        new = np.zeros(0, node_type(filters.bits, entries["since"].dtype))
        old = self.nodes if len(self.nodes) else new
        levels = levels_of(entries, self.capacity, self.fan_out)
        size, level = self.capacity, 0
        while size * self.fan_out <= settled:
            above = size * self.fan_out
            first = before // above * above  # the position from which on parents were not whole before
            closed = (levels == level) & (entries["at"] >= first) & (entries["at"] + size <= settled)
            below = [_bottoms(entries, filters, closed, level, size)]
            below += [nodes[(nodes["level"] == level) & (nodes["index"] * size >= first)] for nodes in (old, new)]
            new = np.concatenate([new, self._parents(np.concatenate(below), level + 1)])
            size, level = above, level + 1
        return new

    def _parents(self, below: Records, level: int) -> Records:
        below = below[np.argsort(below["index"])]
        parents, begins, numbers = np.unique(below["index"] // self.fan_out, return_index=True, return_counts=True)
        begins = begins[numbers == self.fan_out]
        nodes = np.zeros(len(begins), below.dtype)
        nodes["level"], nodes["index"] = level, parents[numbers == self.fan_out]
        if not len(nodes):
            return nodes
        for child in range(self.fan_out):
            nodes["filter"] |= below["filter"][begins + child]
            nodes["events"] += below["events"][begins + child]
        nodes["since"], nodes["until"] = below["since"][begins], below["until"][begins + self.fan_out - 1]
        return nodes[ones(nodes["filter"]) * 2 <= nodes["filter"].shape[1] * 64]

    def tops(self, entries: Records) -> int:
        """Return the number of nodes, and of entries, without a node above them."""
        bottoms = set(zip(*self._places(entries), strict=True))
        nodes = set(zip(self.nodes["level"].tolist(), self.nodes["index"].tolist(), strict=True))
        return sum((level + 1, index // self.fan_out) not in nodes for level, index in bottoms | nodes)

    def _places(self, entries: Records) -> tuple[list[int], list[int]]:
        levels = levels_of(entries, self.capacity, self.fan_out)
        return levels.tolist(), (entries["at"] // (self.capacity * self.fan_out**levels)).tolist()

    def leaves_of(self, name: str, entries: Records, rows: NDArray[np.uint64], hashes: int) -> NDArray[np.bool_]:
        """Return which entries may hold a name, by a walk from the top: it does not look below a node without it."""
        (positions,) = kernel.positions(hashes_of(pa.array([name])), hashes, 64 * rows.shape[1])
        word, bit = positions >> 6, (positions & 63).astype(np.uint64)

        def holds(filters: NDArray[np.uint64]) -> NDArray[np.bool_]:
            held: NDArray[np.bool_] = ((filters[:, word] >> bit) & np.uint64(1)).all(axis=1)
            return held

        levels = levels_of(entries, self.capacity, self.fan_out)
        places = entries["at"] // (self.capacity * self.fan_out**levels)
        out = np.zeros(len(entries), np.bool_)
        denied = np.empty(0, np.int64)  # the nodes of the level above that do not hold it
        for level in range(max(self.height, int(levels.max(initial=0))), -1, -1):
            mine = np.flatnonzero(levels == level)
            mine = mine[~np.isin(places[mine] // self.fan_out, denied)]
            out[mine] = holds(rows[mine])
            nodes = self.nodes[self.nodes["level"] == level]
            below = np.isin(nodes["index"] // self.fan_out, denied)
            reached = nodes[~below]
            denied = np.concatenate([nodes["index"][below], reached["index"][~holds(reached["filter"])]])
        return out


def _bottoms(entries: Records, filters: Filters, chosen: NDArray[np.bool_], level: int, size: int) -> Records:
    """Return entries of a level, which have so many events, as nodes."""
    places = np.flatnonzero(chosen)
    nodes = np.zeros(len(places), node_type(filters.bits, entries["since"].dtype))
    if len(places):
        nodes["level"], nodes["index"] = level, entries["at"][places] // size
        for name in ("events", "since", "until"):
            nodes[name] = entries[name][places]
        nodes["filter"] = filters.rows(int(places[0]))[places - places[0]]
    return nodes
