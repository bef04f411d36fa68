"""Keys of events, such as the case of a log: which are in each leaf, and how far each goes through a pattern.

Filters hold the items `name` and, with a key, `key|name`; beside each leaf lie the keys that are in it. So one walk
over leaves and their keys tells for every key whether a pattern may have happened to it: only its next step is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.filters import Filters, coded, hashes_of
from trellis.archive.questions import Reading
from trellis.archive.words import Word
from trellis.kernels import bloom as kernel

Ints = NDArray[np.int64]
PAIR = np.dtype([("leaf", "<i8"), ("key", "<i8")])


@dataclass(frozen=True)
class Keys:
    """The keys of a history, as text, and the pairs of a leaf and a key in it, sorted."""

    values: pa.Array
    pairs: np.ndarray

    @classmethod
    def none(cls) -> Keys:
        """Return those of no event."""
        return cls(pa.array([], pa.string()), np.zeros(0, PAIR))

    def with_events(self, column: pa.ChunkedArray, first: int, capacity: int) -> tuple[Keys, Ints]:
        """Return the keys with those of events from a position on, and the number of each event's key; -1 for none."""
        codes, distinct = coded(column)
        known = distinct.is_valid().to_numpy(zero_copy_only=False)
        values = pa.concat_arrays([self.values, distinct.filter(distinct.is_valid())])
        numbers, unique = coded(values)
        of_event = np.full(len(distinct), -1, np.int64)
        of_event[known] = numbers[len(self.values) :]
        keys = of_event[codes] if len(codes) else codes
        leaf = (first + np.arange(len(keys))) // capacity
        pairs = np.zeros(int((keys >= 0).sum()), PAIR)
        pairs["leaf"], pairs["key"] = leaf[keys >= 0], keys[keys >= 0]
        return Keys(unique, np.unique(np.concatenate([self.pairs, pairs]))), keys


def pair_items(
    keys: Ints, key_hashes: NDArray[np.uint64], codes: Ints, names: pa.Array
) -> tuple[Ints, NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the items `key|name` of events as numbers of distinct ones, their hashes, and which of these are items."""
    size = len(names) + 1
    whole, items = np.unique((keys + 1) * size + codes, return_inverse=True)
    key, name = whole // size - 1, whole % size
    valid = names.is_valid().to_numpy(zero_copy_only=False)
    known = (key >= 0) & valid[name]
    hashes = kernel.join_hashes(
        np.where(key >= 0, key_hashes[np.maximum(key, 0)] if len(key_hashes) else np.uint64(0), np.uint64(0)),
        hashes_of(names.fill_null(""))[name],
    )
    return items.astype(np.int64), hashes, known


@dataclass(frozen=True)
class OfKeys:
    """For each key to which it may have happened: its number, and the leaves of its first and last step."""

    key: Ints
    start: Ints
    end: Ints


def walk(words: tuple[Word, ...], reading: Reading, keys: Keys, filters: Filters) -> OfKeys:
    """Return the keys to which one of some words may have happened, whatever NOT forbids."""
    number = len(keys.values)
    best_start, best_end = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    hashes = hashes_of(keys.values)
    for word in words:
        start, end = _walked(word, reading, keys, hashes, filters)
        better = (end >= 0) & ((best_end < 0) | (end < best_end))
        best_start[better], best_end[better] = start[better], end[better]
    found = np.flatnonzero(best_end >= 0)
    return OfKeys(found, best_start[found], best_end[found])


def _walked(
    word: Word, reading: Reading, keys: Keys, hashes: NDArray[np.uint64], filters: Filters
) -> tuple[Ints, Ints]:
    number = len(hashes)
    steps = [sorted(names) for block in word.blocks for names in block if names is not None]
    names = hashes_of(pa.array([name for step in steps for name in step], pa.string()))
    sets = np.concatenate([[0], np.cumsum([len(step) for step in steps])]).astype(np.int64)
    blocks = np.concatenate([[0], np.cumsum([len(block) for block in word.blocks])]).astype(np.int64)
    step, done = np.zeros(number, np.int64), np.zeros(number, np.int64)
    start, end = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    for tile, slices in enumerate(filters.tiles):
        first = tile * kernel.TILE
        leaves = np.arange(first, min(first + kernel.TILE, filters.leaves) + 1)
        begins = np.searchsorted(keys.pairs["leaf"], np.maximum(leaves, filters.first))
        kernel.walk_keys(
            first, begins, np.ascontiguousarray(keys.pairs["key"]), hashes, names, sets, blocks, reading is Reading.NO,
            filters.hashes, slices, step, done, start, end,
        )  # fmt: skip
    end[step < len(word.blocks)] = -1
    return start, end
