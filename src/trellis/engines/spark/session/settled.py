"""Frames whose rows are kept, so that what is built on them does not run them again, and may be large.

Rounds build on one another: without this, plans and lineages would grow with each. On a cluster the rows are kept by
two executors, so that the loss of a machine costs nothing; with `spark.checkpoint.dir` they go to that directory, which
outlives all of them. Spark forgets rows that executors keep when nothing refers to them any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

CHECKPOINT_DIRECTORY = "spark.checkpoint.dir"
BATCH_BYTES, UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", (1 << 31) - 1


def settled(frame: DataFrame, eager: bool = True) -> DataFrame:
    """Return a frame with the same rows that knows no more how they came about.

    Unless it is `eager`, it runs with the first job that uses it.
    """
    session = frame.sparkSession
    if session.conf.get(CHECKPOINT_DIRECTORY, None):
        return frame.checkpoint(eager)
    if _is_local(session):
        return frame.localCheckpoint(eager)
    return frame.localCheckpoint(eager, StorageLevel.MEMORY_AND_DISK_2)


def bound_batches(session: SparkSession) -> None:
    """Have rows that are large go to Python a few at a time: by their number alone a batch has ten thousand."""
    if int(session.conf.get(BATCH_BYTES, None) or UNLIMITED) >= UNLIMITED:
        session.conf.set(BATCH_BYTES, 16 << 20)


@contextmanager
def bounded_batches(session: SparkSession) -> Iterator[None]:
    """Have the same for some jobs, and leave the session as it was."""
    before = session.conf.get(BATCH_BYTES, None)
    bound_batches(session)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(BATCH_BYTES)
        else:
            session.conf.set(BATCH_BYTES, before)


def _is_local(session: SparkSession) -> bool:
    """Return whether all tasks run in one process, whose loss nothing survives."""
    master = session.conf.get("spark.master", None) or ""
    return master == "local" or master.startswith("local[")
