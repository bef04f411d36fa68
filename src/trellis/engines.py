"""Hands an engine to rooms that must not know one."""

from __future__ import annotations

from typing import Any


def detect_here(text: str, table: Any, **options: Any) -> Any:
    """Run a query over an Arrow table in this process."""
    from trellis.queries import Query

    return Query(text).detect(table, engine="local", **options)
