"""Leaves, filters and the tree of a history as the definitions say, event by event: slow, and obviously right."""

from __future__ import annotations

from typing import Any

MASK = (1 << 64) - 1
Row = dict[str, Any]
Node = tuple[int, int, int, Any, Any, frozenset[int]]  # level, place, events, first and last time, bits


def mix(h: int) -> int:
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 & MASK
    h ^= h >> 27
    h = h * 0x94D049BB133111EB & MASK
    return h ^ h >> 31


def hash_of(text: str) -> int:
    h, data = 0xCBF29CE484222325, text.encode()
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return mix(h ^ len(data))


def bits_of(item: int, bits: int, hashes: int) -> set[int]:
    return {(mix(item + (j + 1) * 0x9E3779B97F4A7C15 & MASK) >> 32) * bits >> 32 for j in range(hashes)}


def leaves(rows: list[Row], capacity: int, bits: int, hashes: int, key: str | None = None) -> list[Node]:
    """Return the leaves of events: `t`, `id`, `n` and perhaps a key."""
    ordered = sorted(rows, key=lambda row: (row["t"], row["id"]))
    found: list[Node] = []
    for at in range(0, len(ordered), capacity):
        some = ordered[at : at + capacity]
        set_: set[int] = set()
        for row in some:
            if row["n"] is not None:
                set_ |= bits_of(hash_of(row["n"]), bits, hashes)
                if key is not None and row[key] is not None:
                    item = mix(mix(hash_of(row[key]) + 0x9E3779B97F4A7C15 & MASK) ^ hash_of(row["n"]))
                    set_ |= bits_of(item, bits, hashes)
        found.append((0, at // capacity, len(some), some[0]["t"], some[-1]["t"], frozenset(set_)))
    return found


def tree(bottom: list[Node], capacity: int, fan_out: int, bits: int) -> list[Node]:
    """Return the nodes above closed leaves: those of which no more than half of the bits are set."""
    closed = [leaf for leaf in bottom if leaf[2] == capacity]
    found: list[Node] = []
    level, size = 1, fan_out
    while size <= len(closed):
        for place in range(len(closed) // size):
            below = closed[place * size : (place + 1) * size]
            joined = frozenset().union(*(leaf[5] for leaf in below))
            if 2 * len(joined) <= bits:
                found.append((level, place, capacity * size, below[0][3], below[-1][4], joined))
        level, size = level + 1, size * fan_out
    return found
