"""Hands engines to rooms that must not know one."""

from __future__ import annotations

from typing import Any


def detect_here(text: str, table: Any, **options: Any) -> Any:
    """Run a query over an Arrow table in this process."""
    from trellis.queries import Query

    return Query(text).detect(table, engine="local", **options)


def is_spark(data: Any) -> bool:
    """Return whether events are a data frame of Spark's."""
    return type(data).__module__.startswith("pyspark.")


def history_on_spark() -> Any:
    """Return what makes histories on Spark."""
    from trellis import run

    return run.history_on_spark()


def following(frame: Any, archive: str, checkpoint: str, **options: Any) -> Any:
    """Return what appends a stream of Spark's to an archive."""
    from trellis import run

    return run.following(frame, archive, checkpoint, **options)
