"""Engines as the rooms below them are given them: see `trellis.providers`."""

from __future__ import annotations

from typing import Any

from trellis.api.dispatch import detect
from trellis.api.prepared import PreparedQuery
from trellis.api.query import Query
from trellis.engines.options import RunOptions
from trellis.results.results import Results


class LocalEngine:
    """The local engine as an archive is given it."""

    def detect(self, text: str, table: Any, **options: Any) -> Results:
        """Return the results of a query text over an Arrow table."""
        return detect(Query(text), table, RunOptions.of(**{"time": None, **options}), engine="local")

    def prepare(self, text: str, schema: Any, **options: Any) -> PreparedQuery:
        """Return a query text bound to the columns of an Arrow schema."""
        return Query(text).prepare(schema, **options)


class SparkArchives:
    """Archives on Spark as an archive is given them."""

    def build(self, *given: Any) -> Any:
        """Build an archive of a Spark data frame: see `trellis.engines.spark.archive.build.build`."""
        from trellis.engines.spark.archive.build import build

        return build(*given)

    def append(self, *given: Any) -> Any:
        """Append a Spark data frame to an archive: see `trellis.engines.spark.archive.build.append`."""
        from trellis.engines.spark.archive.build import append

        return append(*given)

    def follow(self, *given: Any, **options: Any) -> Any:
        """Return the stream that appends a streaming data frame to an archive."""
        from trellis.engines.spark.archive.follow import ArchiveStream

        return ArchiveStream(*given, **options)
