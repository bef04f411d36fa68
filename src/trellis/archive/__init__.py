"""The history of a stream: its events in Parquet, with filters over them that tell where to look."""

from trellis.archive.archive import Archive, Exact
from trellis.archive.questions import Answer

__all__ = ["Answer", "Archive", "Exact"]
