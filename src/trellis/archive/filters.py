"""The Bloom filters of leaves: how they are made from events and looked up by names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.kernels.bloom import filters as kernel
from trellis.properties import cached_property

Ints = NDArray[np.int64]
Slices = NDArray[np.uint64]
Records = Any
"""A structured array, of leaves or nodes: NumPy's types say nothing of its fields, and take long to check."""


def hashes_of(texts: pa.Array) -> NDArray[np.uint64]:
    """Return the hashes of texts, none of which is missing."""
    array = texts if pa.types.is_large_string(texts.type) else texts.cast(pa.large_string())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    out = np.empty(len(array), np.uint64)
    if len(array):
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        data = array.buffers()[2]
        kernel.hash_texts(offsets, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), out)
    return out


def coded(names: pa.ChunkedArray | pa.Array) -> tuple[Ints, pa.Array]:
    """Return names as numbers of distinct ones, by their first places; a missing name is -1."""
    array = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    encoded = pc.dictionary_encode(array.cast(pa.string()))
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def distinct_pairs(ones: Ints, others: Ints, number: int) -> tuple[Ints, Ints, Ints]:
    """Return the pairs of two codes as numbers of distinct ones, -1 where one of the two is, and both codes of each.

    `number` is how many codes the others have.
    """
    size = number + 1
    known = (ones >= 0) & (others >= 0)
    whole, places = np.unique(ones[known] * size + others[known], return_inverse=True)
    items = np.full(len(ones), -1, np.int64)
    items[known] = places
    return items, whole // size, whole % size


@dataclass
class Filters:
    """The filters of leaves as slices, tile by tile."""

    bits: int
    hashes: int
    tiles: list[Slices] = field(default_factory=list)
    leaves: int = 0

    def add(self, items: Ints, hashes: NDArray[np.uint64], first: int, capacity: int) -> set[int]:
        """Add items from a position on, by the hashes of distinct ones; return the tiles that changed."""
        if not len(items):
            return set()
        last = (first + len(items) - 1) // capacity
        self._reach(last + 1)
        table = kernel.positions(hashes, self.hashes, self.bits)
        changed = set(range(first // capacity // kernel.TILE, last // kernel.TILE + 1))
        events = kernel.TILE * capacity
        for tile in changed:
            low, high = max(first, tile * events), min(first + len(items), (tile + 1) * events)
            kernel.add_items(
                items[low - first : high - first], table, low - tile * events, capacity, self._own(tile)[None]
            )
        return changed

    def join(self, tile: int, other: Slices, leaves: int) -> None:
        """Add what a tile has that was made elsewhere; there are at least so many leaves then."""
        self._reach(leaves)
        own = self._own(tile)
        np.bitwise_or(own, other, out=own)

    def _reach(self, leaves: int) -> None:
        self.leaves = max(self.leaves, leaves)
        while len(self.tiles) * kernel.TILE < self.leaves:
            self.tiles.append(np.zeros((self.bits, kernel.WORDS), np.uint64))

    def _own(self, tile: int) -> Slices:
        """Return a tile that may be written."""
        if not self.tiles[tile].flags.writeable:
            self.tiles[tile] = self.tiles[tile].copy()
        return self.tiles[tile]

    def copied(self) -> Filters:
        """Return filters that may be added to, without a change of these."""
        tiles = [tile.view() for tile in self.tiles]
        for tile in tiles:
            tile.flags.writeable = False
        return Filters(self.bits, self.hashes, tiles, self.leaves)

    @classmethod
    def of_rows(cls, rows: Slices, bits: int, hashes: int) -> Filters:
        """Return filters that are given as rows of words."""
        tiles = np.zeros((-(-len(rows) // kernel.TILE), bits, kernel.WORDS), np.uint64)
        kernel.slice_filters(np.ascontiguousarray(rows), tiles)
        return cls(bits, hashes, list(tiles), len(rows))

    def has(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which leaves may hold one of some names."""
        return self.has_items(hashes_of(pa.array(list(names), pa.large_string())))

    def places(self, names: Iterable[str]) -> Ints:
        """Return the leaves that may hold one of some names, in order."""
        out = np.empty(self.leaves, np.int64)
        return out[: kernel.set_bits(self._bitmap(names), out)]

    def has_items(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which leaves may hold one of some items, by their hashes."""
        bitmap = self._bitmap_of(hashes)
        return np.unpackbits(bitmap.view(np.uint8), bitorder="little")[: self.leaves].view(np.bool_)

    def _bitmap(self, names: Iterable[str]) -> NDArray[np.uint64]:
        return self._bitmap_of(hashes_of(pa.array(list(names), pa.large_string())))

    def _bitmap_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        out = np.zeros(len(self.tiles) * kernel.WORDS, np.uint64)
        for row in kernel.positions(hashes, self.hashes, self.bits):
            for tile, slices in enumerate(self.tiles):
                kernel.leaves_of(row, slices[None], out[tile * kernel.WORDS : (tile + 1) * kernel.WORDS])
        return out

    def rows(self, first: int = 0) -> Slices:
        """Return the filters of the leaves from one on as rows of words."""
        out = np.zeros((max(0, self.leaves - first), self.bits // 64), np.uint64)
        for tile in range(first // kernel.TILE, len(self.tiles)):
            begin = tile * kernel.TILE
            low, high = max(first, begin), min(begin + kernel.TILE, self.leaves)
            if low < high:
                kernel.leaf_filters(self.tiles[tile], low - begin, high - begin, out[low - first : high - first])
        return out

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """The share of bits that are set in each leaf's filter."""
        return ones(self.rows()) / self.bits


def whole_tile(slices: Slices) -> Slices:
    """Return a tile of which only the words that are in use were written."""
    if slices.shape[1] == kernel.WORDS:
        return slices
    whole = np.zeros((slices.shape[0], kernel.WORDS), np.uint64)
    whole[:, : slices.shape[1]] = slices
    return whole


def ones(filters: Slices) -> Ints:
    """Return the number of bits that are set in filters."""
    out = np.zeros(len(filters), np.int64)
    kernel.count_bits(np.ascontiguousarray(filters), out)
    return out
