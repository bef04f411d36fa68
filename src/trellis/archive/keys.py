"""Keys of events, such as the case of a log: which are in each leaf, and how far each goes through a pattern.

Filters hold the items `name` and, with a key, `key|name`; beside each leaf lie the keys that are in it. So one walk
over leaves and their keys tells for every key whether a pattern may have happened to it: only its next step is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.filters import Filters, Records, coded, distinct_pairs, hashes_of
from trellis.archive.step_sequences import StepSequence, plain
from trellis.kernels.bloom import filters as kernel
from trellis.properties import cached_property

Ints = NDArray[np.int64]
PAIR = np.dtype([("leaf", "<i4"), ("key", "<i4")])


@dataclass(frozen=True)
class LeafKeys:
    """The keys of a history, as text, and the pairs of a leaf and a key in it, sorted."""

    values: pa.Array
    pairs: Records

    @classmethod
    def none(cls) -> LeafKeys:
        """Return those of no event."""
        return cls(pa.array([], pa.string()), np.zeros(0, PAIR))

    @cached_property
    def leaves(self) -> NDArray[np.int32]:
        """The leaf of each pair."""
        return np.ascontiguousarray(self.pairs["leaf"])

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The key of each pair."""
        return np.ascontiguousarray(self.pairs["key"])

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of the keys."""
        return hashes_of(self.values)

    @classmethod
    def of_events(cls, column: pa.ChunkedArray, first: int, capacity: int) -> tuple[LeafKeys, Ints]:
        """Return the keys of events from a position on, and the number of each event's key; -1 for none."""
        keys, values = coded(column)
        pairs = np.zeros(int((keys >= 0).sum()), PAIR)
        pairs["leaf"] = ((first + np.arange(len(keys))) // capacity)[keys >= 0]
        pairs["key"] = keys[keys >= 0]
        return cls(values, np.unique(pairs)), keys

    def joined(self, other: LeafKeys) -> LeafKeys:
        """Return the keys with those of later events."""
        numbers, values = coded(pa.concat_arrays([self.values, other.values]))
        pairs = other.pairs.copy()
        pairs["key"] = numbers[len(self.values) :][pairs["key"]]
        if len(self.pairs) and len(pairs) and self.pairs["leaf"][-1] < pairs["leaf"][0]:
            return LeafKeys(values, np.concatenate([self.pairs, np.sort(pairs)]))
        return LeafKeys(values, np.unique(np.concatenate([self.pairs, pairs])))


def pair_items(
    keys: Ints, key_hashes: NDArray[np.uint64], codes: Ints, names: pa.Array
) -> tuple[Ints, NDArray[np.uint64]]:
    """Return the items `key|name` of events as numbers of distinct ones, -1 for none, and their hashes."""
    items, key, name = distinct_pairs(keys, codes, len(names))
    return items, kernel.join_hashes(key_hashes[key], hashes_of(names)[name])


@dataclass(frozen=True)
class KeyIntervals:
    """For each key to which it may have happened: its number, and the leaves of its first and last step."""

    key: Ints
    start: Ints
    end: Ints


def walk(
    sequences: tuple[StepSequence, ...], earliest: Ints, keys: LeafKeys, filters: Filters, leaves: Ints
) -> KeyIntervals:
    """Return the keys to which one of some step sequences may have happened, whatever NOT forbids.

    `leaves` are the numbers of the leaves that have the filters; where these were coarsened, the first leaf of each.
    `earliest` tells for each of them the first in which the next step may be.
    """
    number = len(keys.values)
    best_start, best_end = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    begins = np.append(np.searchsorted(keys.leaves, leaves.astype(np.int32)), len(keys.pairs))
    for sequence in sequences:
        start, end = _walk_sequence(sequence, earliest, keys, filters, begins)
        better = (end >= 0) & ((best_end < 0) | (end < best_end))
        best_start[better], best_end[better] = start[better], end[better]
    chosen = np.flatnonzero(best_end >= 0)
    return KeyIntervals(chosen, best_start[chosen], best_end[chosen])


def _walk_sequence(
    sequence: StepSequence, earliest: Ints, keys: LeafKeys, filters: Filters, begins: Ints
) -> tuple[Ints, Ints]:
    number = len(keys.values)
    steps = [
        sorted({plain(name) for name in names}) for block in sequence.blocks for names in block if names is not None
    ]
    names = hashes_of(pa.array([name for step in steps for name in step], pa.string()))
    sets = np.concatenate([[0], np.cumsum([len(step) for step in steps])]).astype(np.int64)
    blocks = np.concatenate([[0], np.cumsum([len(block) for block in sequence.blocks])]).astype(np.int64)
    step, done = np.zeros(number, np.int64), np.zeros(number, np.int64)
    start, end = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    for tile, slices in enumerate(filters.tiles):
        first = tile * kernel.TILE
        kernel.walk_keys(
            first, begins[first : min(first + kernel.TILE, filters.leaves) + 1], keys.numbers, keys.hashes, names, sets,
            blocks, earliest, filters.hashes, slices, step, done, start, end,
        )  # fmt: skip
    end[step < len(sequence.blocks)] = -1
    return start, end
