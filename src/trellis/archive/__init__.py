"""The history of a stream: its events in Parquet, with filters over them that tell where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.archive.archive import Archive
    from trellis.archive.exact import Exact
    from trellis.archive.leaves import Answer

__all__ = ["Answer", "Archive", "Exact"]


def __getattr__(name: str) -> Any:
    """Return a class when it is asked for: Spark's tasks use parts of this room, and have no parser."""
    if name == "Archive":
        from trellis.archive.archive import Archive

        return Archive
    if name == "Exact":
        from trellis.archive.exact import Exact

        return Exact
    if name == "Answer":
        from trellis.archive.leaves import Answer

        return Answer
    raise AttributeError(name)
