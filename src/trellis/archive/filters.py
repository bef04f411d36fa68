"""The filters of leaves: made from events, and asked for names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.kernels import bloom as kernel

Ints = NDArray[np.int64]
Slices = NDArray[np.uint64]


def hashes_of(texts: pa.Array) -> NDArray[np.uint64]:
    """Return the hashes of texts, none of which is missing."""
    array = texts.cast(pa.large_string())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    out = np.empty(len(array), np.uint64)
    if len(array):
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        data = array.buffers()[2]
        kernel.hash_texts(offsets, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), out)
    return out


def coded(names: pa.ChunkedArray | pa.Array) -> tuple[Ints, pa.Array]:
    """Return names as numbers of distinct ones; a missing name is one of its own, which no question has."""
    array = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    encoded = pc.dictionary_encode(array.cast(pa.string()), null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


@dataclass
class Filters:
    """The filters of leaves as slices, tile by tile."""

    capacity: int
    bits: int
    hashes: int
    tiles: list[Slices]
    leaves: int
    first: int = 0  # the leaves before it hold nothing any more

    @classmethod
    def empty(cls, capacity: int, bits: int, hashes: int) -> Filters:
        """Return the filters of no leaf."""
        return cls(capacity, bits, hashes, [], 0)

    def add(self, codes: Ints, names: pa.Array, first: int) -> set[int]:
        """Add the names of events from position `first` on, by their numbers; return the tiles that changed."""
        known = names.is_valid().to_numpy(zero_copy_only=False)
        return self.add_items(codes, hashes_of(names.fill_null("")), known, first)

    def add_items(self, codes: Ints, hashes: NDArray[np.uint64], known: NDArray[np.bool_], first: int) -> set[int]:
        """Add items by the hashes of distinct ones; those that are not `known` are left out."""
        if not len(codes):
            return set()
        last = (first + len(codes) - 1) // self.capacity
        begin = first // self.capacity // kernel.TILE
        while len(self.tiles) <= last // kernel.TILE:
            self.tiles.append(np.zeros((self.bits, kernel.WORDS), np.uint64))
        table = kernel.positions(hashes, self.hashes, self.bits)
        changed = set(range(begin, last // kernel.TILE + 1))
        for tile in changed:
            low = max(first, tile * kernel.TILE * self.capacity)
            high = min(first + len(codes), (tile + 1) * kernel.TILE * self.capacity)
            slices = self.tiles[tile]
            if not slices.flags.writeable:
                slices = self.tiles[tile] = slices.copy()
            some = codes[low - first : high - first]
            offset = low - tile * kernel.TILE * self.capacity
            if known.all():
                kernel.add_items(some, table, offset, self.capacity, slices[None])
            else:
                for place in np.flatnonzero(known[some]).tolist():
                    kernel.add_items(some[place : place + 1], table, offset + place, self.capacity, slices[None])
        self.leaves = last + 1
        return changed

    def has(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which leaves may hold one of some names."""
        out = np.zeros(len(self.tiles) * kernel.WORDS, np.uint64)
        rows = kernel.positions(hashes_of(pa.array(list(names), pa.string())), self.hashes, self.bits)
        for row in rows:
            for tile, slices in enumerate(self.tiles):
                kernel.leaves_of(row, slices[None], out[tile * kernel.WORDS : (tile + 1) * kernel.WORDS])
        found = np.unpackbits(out.view(np.uint8), bitorder="little")[: self.leaves].astype(np.bool_)
        found[: self.first] = False
        return found

    @cached_property
    def rows(self) -> Slices:
        """The filters of leaves as rows of words."""
        out = np.zeros((self.leaves, self.bits // 64), np.uint64)
        for tile, slices in enumerate(self.tiles):
            first = tile * kernel.TILE
            number = min(kernel.TILE, self.leaves - first)
            kernel.leaf_filters(slices[None], 0, number, out[first : first + number])
        return out

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """The share of bits that are set in each leaf's filter."""
        return ones(self.rows) / self.bits


def ones(filters: Slices) -> Ints:
    """Return the number of bits that are set in filters."""
    out = np.zeros(len(filters), np.int64)
    kernel.ones(filters, out)
    return out


@dataclass(frozen=True)
class Level:
    """The nodes of one level of the tree: their numbers, and their filters."""

    index: Ints
    filters: Slices


def tree_of(filters: Filters, closed: int, fan_out: int) -> list[Level]:
    """Return the canonical tree, from the leaves up.

    The node `b` of level `g` covers the leaves from `b * fan_out**g` on. It exists if all these are closed and at most
    half of the bits of their filters together are set; so it depends on nothing else, and never changes.
    """
    found = [Level(np.arange(filters.leaves), filters.rows)]
    index, rows = np.arange(closed), filters.rows[:closed]
    while len(index) >= fan_out:
        parents, begins, numbers = np.unique(index // fan_out, return_index=True, return_counts=True)
        whole = numbers == fan_out
        joined = np.stack([np.bitwise_or.reduce(rows[b : b + fan_out]) for b in begins[whole]] or [rows[:0]][0:0])
        if not len(joined):
            break
        kept = ones(joined) * 2 <= filters.bits
        index, rows = parents[whole][kept], joined[kept]
        if not len(index):
            break
        found.append(Level(index, rows))
    return found


def top_nodes(tree: Sequence[Level], fan_out: int) -> int:
    """Return the number of nodes without a parent."""
    total = 0
    for level, above in zip(tree, [*tree[1:], None], strict=True):
        parents = set() if above is None else set(above.index.tolist())
        total += sum(index // fan_out not in parents for index in level.index.tolist())
    return total
