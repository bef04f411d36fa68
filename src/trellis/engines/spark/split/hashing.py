"""Spark's own hash of integers, computed here: where a shuffle sends a key is known without a job that asks Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

BUCKETS_A_TASK = 2  # what an operator of the user's own query has always had: its checkpoint does not tell them
PARTITIONS = "spark.sql.shuffle.partitions"
_MASK = 0xFFFFFFFF
_SEED = 42


def task_of(number: int, tasks: int) -> int:
    """Return which of the tasks of a shuffle gets the rows with an `int` as their key."""
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


def state_tasks(session: SparkSession) -> int:
    """Return how many tasks have events to hold: one for each core; more would load and store a state of nothing."""
    tasks = int(session.conf.get(PARTITIONS) or 1)
    context = getattr(session, "_sc", None)
    return min(tasks, context.defaultParallelism) if context else tasks


def bucket_keys(session: SparkSession, a_task: int = BUCKETS_A_TASK) -> list[int]:
    """Return numbers for buckets that Spark spreads evenly over the tasks of a shuffle, so many for each."""
    tasks, wanted = int(session.conf.get(PARTITIONS) or 1), state_tasks(session)
    of_task: dict[int, list[int]] = {}
    for key in range(64 * wanted):
        of_task.setdefault(task_of(key, tasks), []).append(key)
    chosen = sorted(of_task.values(), key=len, reverse=True)[:wanted]
    return sorted(key for keys in chosen for key in sorted(keys)[:a_task])


def spread_keys(number: int, tasks: int) -> list[int]:
    """Return so many numbers that Spark spreads evenly over the tasks of a shuffle."""
    of_task: dict[int, list[int]] = {}
    most = -(-number // tasks)
    key = 0
    while sum(min(len(keys), most) for keys in of_task.values()) < number:
        of_task.setdefault(task_of(key, tasks), []).append(key)
        key += 1
    in_turn = [keys[turn] for turn in range(most) for keys in of_task.values() if turn < len(keys)]
    return sorted(in_turn[:number])
