"""Spark's own hash of integers, computed here: where a shuffle sends a key is known without a job that asks Spark."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED = 42


def task_of(number: int, tasks: int) -> int:
    """Return the task of a shuffle that gets the rows with an `int` as their key.

    Parameters
    ----------
    number
        The key.
    tasks
        How many tasks the shuffle has.
    """
    hashed = hash_int(number)
    return (hashed - (1 << 32) if hashed >= 1 << 31 else hashed) % tasks


def hash_int(number: int) -> int:
    """Return the bits of Spark's `hash` of an `int`: Murmur3 of four bytes."""
    mixed = _SEED ^ (_rotated(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK)
    mixed = (_rotated(mixed, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    return mixed ^ mixed >> 16


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> (32 - by)) & _MASK
