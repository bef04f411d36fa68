"""The contents of an archive that answer questions without its events: leaves, their filters, and their keys.

They grow by *chunks*, the contents of consecutive events. Chunks are made anywhere, in any order, and joined: a leaf
that lies in two of them has the bits of both. So it does not matter how the events were cut into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.archive.events import numbers
from trellis.archive.filters import Filters, Ints, Records, Slices, coded, hashes_of
from trellis.archive.keys import PAIR, LeafKeys, pair_items
from trellis.archive.store import Manifest
from trellis.archive.values import fill_ranges, join_ranges, range_fields, value_items
from trellis.kernels.bloom.filters import TILE


def entry_type(times: np.dtype[Any], ranged: Sequence[str] = ()) -> np.dtype[Any]:
    """Return the type of a leaf in arrays; times are whole numbers, or doubles; `ranged` are columns of numbers."""
    number = "<f8" if times.kind == "f" else "<i8"
    fields = [("at", "<i8"), ("events", "<i8"), ("since", number), ("until", number)]
    return np.dtype(fields + range_fields(ranged))


@dataclass(frozen=True)
class Chunk:
    """The leaves, filters and keys of consecutive events.

    Attributes
    ----------
    entries
        Their leaves, the first and the last perhaps a part of one.
    tile, tiles
        The number of the first tile, and the bits of these leaves.
    keys
        The keys of the events.
    keyless
        Whether some have none.
    """

    entries: Records
    tile: int
    tiles: list[Slices]
    keys: LeafKeys
    keyless: bool

    def save(self, path: Path) -> None:
        """Write it into a file of plain arrays."""
        texts = self.keys.values.cast(pa.large_string())
        offsets, data = (_bytes(buffer) for buffer in texts.buffers()[1:])
        with path.open("wb") as file:
            np.savez(
                file, entries=self.entries, about=np.array([self.tile, self.keyless, len(texts)]), offsets=offsets,
                texts=data, pairs=self.keys.pairs, tiles=np.stack(self.tiles) if self.tiles else np.zeros(0, np.uint64),
            )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> Chunk:
        """Read a chunk that `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            tile, keyless, number = file["about"].tolist()
            buffers = [None, *(pa.py_buffer(file[name].tobytes()) for name in ("offsets", "texts"))]
            texts = pa.Array.from_buffers(pa.large_string(), number, buffers) if number else pa.array([], pa.string())
            keys = LeafKeys(texts.cast(pa.string()), file["pairs"])
            return cls(file["entries"], tile, list(file["tiles"]), keys, bool(keyless))


def _bytes(buffer: Any) -> np.ndarray:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)


def chunk_of(table: pa.Table, first: int, manifest: Manifest) -> Chunk:
    """Return the chunk of events in order, of which the first has a given position."""
    capacity = manifest.capacity
    codes, names = coded(table[manifest.type])
    tile = (first // capacity - manifest.shift) // TILE
    begin = first - (manifest.shift + tile * TILE) * capacity
    filters = Filters(manifest.bits, manifest.hashes)
    filters.add(codes, hashes_of(names), begin, capacity)
    keys, keyless = LeafKeys.none(), False
    if manifest.key is not None:
        keys, of_event = LeafKeys.of_events(table[manifest.key], first, capacity)
        keyless = bool((of_event < 0).any())
        filters.add(*pair_items(of_event, keys.hashes, codes, names), begin, capacity)
    for column in manifest.values:
        filters.add(*value_items(table, column, codes, names), begin, capacity)
    return Chunk(_entries(table, first, manifest), tile, filters.tiles, keys, keyless)


def _entries(table: pa.Table, first: int, manifest: Manifest) -> Records:
    times, capacity = numbers(table[manifest.time]), manifest.capacity
    leaf = (first + np.arange(len(times))) // capacity
    begins = np.flatnonzero(np.diff(leaf, prepend=-1))
    ends = np.append(begins[1:], len(leaf)) - 1 if len(begins) else begins
    entries = np.zeros(len(begins), entry_type(times.dtype, manifest.ranged))
    entries["at"] = leaf[begins] * capacity
    entries["events"] = ends - begins + 1
    entries["since"], entries["until"] = times[begins], times[ends]
    fill_ranges(entries, table, manifest.ranged, begins)
    return entries


@dataclass
class Contents:
    """The leaves, filters and keys of all events.

    Attributes
    ----------
    capacity
        How many events a leaf has.
    entries
        The leaves, in order; where the history was coarsened, one for several.
    filters
        Their filters, in the same order.
    keys, keyless
        The keys of the events, and whether some have none.
    """

    capacity: int
    entries: Records
    filters: Filters
    keys: LeafKeys
    keyless: bool = False

    @classmethod
    def none(cls, capacity: int, bits: int, hashes: int) -> Contents:
        """Return the contents of an archive without events."""
        return cls(capacity, np.zeros(0, entry_type(np.dtype(np.int64))), Filters(bits, hashes), LeafKeys.none())

    def copied(self) -> Contents:
        """Return a copy that can be added to without changing this one."""
        return replace(self, filters=self.filters.copied())

    def add(self, chunk: Chunk) -> set[int]:
        """Add the chunk of the events that come next; return the tiles that changed."""
        if not len(chunk.entries):
            return set()
        old, new = self.entries, chunk.entries
        if len(old) and old["at"][-1] == new["at"][0]:  # the last leaf goes on
            old, new = old.copy(), new[1:]
            old["events"][-1] += chunk.entries["events"][0]
            old["until"][-1] = chunk.entries["until"][0]
            join_ranges(old[-1], chunk.entries[0])
        self.entries = np.concatenate([old, new]) if len(old) else new.copy()
        for i, tile in enumerate(chunk.tiles):
            self.filters.join(chunk.tile + i, tile, len(self.entries))
        self.keys = self.keys.joined(chunk.keys)
        self.keyless |= chunk.keyless
        return set(range(chunk.tile, chunk.tile + len(chunk.tiles)))

    def only(self, places: Ints, entries: Records, rows: Slices) -> Contents:
        """Return the contents in which the entries at `places` stay, and others replace the rest."""
        filters = self.filters
        chosen = np.concatenate([self.entries[places], entries.astype(self.entries.dtype)])
        order = np.argsort(chosen["at"])
        every = np.concatenate([filters.rows()[places], rows])[order]
        return Contents(
            self.capacity, chosen[order], Filters.of_rows(every, filters.bits, filters.hashes),
            self._keys_of(chosen[order]), self.keyless,
        )  # fmt: skip

    @property
    def first_leaves(self) -> Ints:
        """The number of the first leaf of each entry."""
        leaves: Ints = self.entries["at"] // self.capacity
        return leaves

    def _keys_of(self, entries: Records) -> LeafKeys:
        """Return the keys with the leaves that entries begin with."""
        pairs, leaves = self.keys.pairs, entries["at"] // self.capacity
        place = np.searchsorted(leaves, pairs["leaf"], side="right") - 1
        chosen = place >= 0
        moved = np.zeros(int(chosen.sum()), PAIR)
        moved["leaf"], moved["key"] = leaves[place[chosen]], pairs["key"][chosen]
        return LeafKeys(self.keys.values, np.unique(moved))
