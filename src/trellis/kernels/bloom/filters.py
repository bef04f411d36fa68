"""Bloom filters of leaves: hashes of texts, bits of items, and the leaves that may hold an item.

An item has `k` positions in a filter of `m` bits, each from bits of its own: the hash is mixed anew for each. Plain
double hashing has too few distinct sequences for small filters, and errs many times as often.

Leaves are stored as *slices*: for each tile of `TILE` leaves and each bit of a filter, a bitmap over the leaves of the
tile. So the leaves that may hold an item are the AND of `k` bitmaps.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import ONE, ones
from trellis.kernels.jit import njit

TILE = 4096  # leaves
WORDS = TILE // 64  # of a bitmap over them
ODD = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _mix(h):
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True)
def hash_texts(offsets, data, out):
    """Hash texts that lie one after another as UTF-8 bytes."""
    for i in range(out.shape[0]):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        out[i] = _mix(h ^ np.uint64(offsets[i + 1] - offsets[i]))


@njit(cache=True, nogil=True)
def join_hashes(keys, names):
    """Return hashes of pairs of a key and a name, by the hashes of these."""
    out = np.empty(keys.shape[0], np.uint64)
    for i in range(keys.shape[0]):
        out[i] = _mix(_mix(keys[i] + ODD) ^ names[i])
    return out


@njit(cache=True, nogil=True)
def positions(hashes, k, m):
    """Return the bits of items, a row each."""
    out = np.empty((hashes.shape[0], k), np.int32)
    for i in range(hashes.shape[0]):
        for j in range(k):
            mixed = _mix(hashes[i] + np.uint64(j + 1) * ODD)
            out[i, j] = np.int32(((mixed >> np.uint64(32)) * np.uint64(m)) >> np.uint64(32))
    return out


@njit(cache=True, nogil=True)
def add_items(items, table, first, size, slices):
    """Set the bits of items, rows of `table` and the first of them at position `first`; one below 0 is not an item."""
    k = table.shape[1]
    for i in range(items.shape[0]):
        if items[i] < 0:
            continue
        leaf = (first + i) // size
        tile, word = leaf // TILE, (leaf % TILE) >> 6
        bit = ONE << np.uint64(leaf & 63)
        row = items[i]
        for j in range(k):
            slices[tile, table[row, j], word] |= bit


@njit(cache=True, nogil=True)
def leaves_of(rows, slices, out):
    """Write a bitmap of the leaves that may hold an item with given positions."""
    found = np.empty(WORDS, np.uint64)
    for tile in range(slices.shape[0]):
        found[:] = slices[tile, rows[0]]
        for j in range(1, rows.shape[0]):
            for word in range(WORDS):
                found[word] &= slices[tile, rows[j], word]
        for word in range(WORDS):
            out[tile * WORDS + word] |= found[word]


@njit(cache=True, nogil=True)
def set_bits(bitmap, out):
    """Write the places of the bits of a bitmap, in order; return how many there are."""
    number = 0
    for word in range(bitmap.shape[0]):
        bits, place = bitmap[word], word << 6
        while bits:
            if bits & ONE:
                out[number] = place
                number += 1
            bits >>= ONE
            place += 1
    return number


@njit(cache=True, nogil=True)
def _holds(item, k, m, slices, word, bit):
    """Return whether a leaf of a tile may hold an item."""
    for j in range(k):
        mixed = _mix(item + np.uint64(j + 1) * ODD)
        position = ((mixed >> np.uint64(32)) * np.uint64(m)) >> np.uint64(32)
        if (slices[np.int64(position), word] >> bit) & ONE == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def walk_keys(first, begins, keys, hashes, names, sets, blocks, earliest, k, slices, step, done, start, end):
    """Take the keys of the leaves of a tile through the blocks of a word, each as far as it goes.

    Parameters
    ----------
    first
        The first leaf of the tile.
    begins, keys
        The keys of each leaf: where they begin, and their numbers.
    hashes, names
        The hashes of keys, and of the names of the word.
    sets, blocks
        Where the names of each step begin, and where the steps of each block begin.
    earliest
        For each leaf the first one in which the next block may be: itself, or a later one.
    k, slices
        The bits of an item, and the tile.
    step, done
        For each key the block it is in, and the steps of it that were seen.
    start, end
        For each key the leaves of its first and its last step.
    """
    number, m = blocks.shape[0] - 1, slices.shape[0]
    for leaf in range(begins.shape[0] - 1):
        word, bit = leaf >> 6, np.uint64(leaf & 63)
        for i in range(begins[leaf], begins[leaf + 1]):
            key = keys[i]
            going = step[key] == 0 or done[key] != 0 or earliest[end[key]] <= first + leaf
            while going and step[key] < number:
                going = False
                block = step[key]
                for e in range(blocks[block], blocks[block + 1]):
                    flag = np.int64(1) << (e - blocks[block])
                    if done[key] & flag:
                        continue
                    for n in range(sets[e], sets[e + 1]):
                        item = _mix(_mix(hashes[key] + ODD) ^ names[n])
                        if _holds(item, k, m, slices, word, bit):
                            done[key] |= flag
                            if start[key] < 0:
                                start[key] = first + leaf
                            end[key] = first + leaf
                            break
                if done[key] == (np.int64(1) << (blocks[block + 1] - blocks[block])) - 1:
                    step[key] += 1
                    done[key] = 0
                    going = earliest[first + leaf] <= first + leaf


@njit(cache=True, nogil=True)
def leaf_filters(slices, first, last, out):
    """Write the filters of leaves `[first, last)` of a tile as rows of words: its slices, the other way round."""
    for position in range(slices.shape[0]):
        place, flag = position >> 6, ONE << np.uint64(position & 63)
        for word in range(first >> 6, (last + 63) >> 6):
            bits, leaf = slices[position, word], word << 6
            while bits:
                if bits & ONE and first <= leaf < last:
                    out[leaf - first, place] |= flag
                bits >>= ONE
                leaf += 1


@njit(cache=True, nogil=True)
def slice_filters(filters, slices):
    """Write filters of leaves, a row of words each, as slices, the first at the first leaf of the first tile."""
    for leaf in range(filters.shape[0]):
        tile, word, bit = leaf // TILE, (leaf % TILE) >> 6, ONE << np.uint64(leaf & 63)
        for position in range(slices.shape[1]):
            if (filters[leaf, position >> 6] >> np.uint64(position & 63)) & ONE:
                slices[tile, position, word] |= bit


@njit(cache=True, nogil=True)
def count_bits(filters, out):
    """Count the bits that are set in each filter, a row of words."""
    for i in range(filters.shape[0]):
        total = 0
        for j in range(filters.shape[1]):
            total += ones(filters[i, j])
        out[i] = total
