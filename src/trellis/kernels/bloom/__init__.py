"""Bloom filters over the leaves of an archive, and chains of leaves that may hold a match.

Arrays
------
slices : uint64 (tiles, m, TILE / 64)
    For each tile of `TILE` leaves and each bit of a filter a bitmap over the leaves.
hashes, keys, names : uint64 (items,)
    Hashes of items, keys and names. `positions` gives int32 (items, k): the bits of each item.
filters : uint64 (leaves, words)
    The filters of leaves, a row each.
has : bool (sets, leaves)
    Whether a leaf may hold a name of a set.
after, before : int32 (sets, leaves + 2), (sets, leaves)
    The first leaf from one on, and the last up to one, that may hold a set: `nexts` and `befores`.
blocks, gaps : int64 (blocks + 1,), (blocks - 1,)
    The sets of each block, and how many leaves (0 or 1) lie at least between two blocks.
strict, limit : int64 (leaves,)
    The first leaf at which the next block may come, and the last leaf that a chain from a leaf may end in, -1: none.
first, last, number, out : int32 or int64 (leaves,)
    For each start the earliest and the last end of a chain and how many ends there are; -1 without one.
forbidden : int32 (blocks - 1, leaves)
    The first leaf from one on that may hold what is forbidden before the next block.
marks, reached, other : bool (leaves,)
    Leaves on some chain; leaves that chains from one start reach with a block, and scratch for the next.
only_first : bool
    Whether only chains to the first end count.

Invariants: a filter never denies what was put in, so chains leave out no match. Cost: k bitmaps for each item and tile;
chains are one pass over the leaves for each set, `clear_rows` up to the square of the reach. Source: own, after the
thesis that docs/history.md follows.
"""
