"""Queries asked of a data frame by the frame itself: `frame.trellis.detect(query, ...)`, whatever library it is of."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from trellis.api.query import Query

if TYPE_CHECKING:
    from trellis.api.explanation import Explanation
    from trellis.results.results import Results


class FrameAccessor:
    """The methods that `frame.trellis` has, for a data frame of Spark, pandas or polars.

    A query is a `trellis.query(...)`, a text, or the path of a file; the options are those of `Query.detect`.

    Parameters
    ----------
    frame
        The events.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def detect(self, query: Query | str | os.PathLike[str], **options: Any) -> Results:
        """Find the trends of the events; nothing is listed before it is asked for: see `Query.detect`."""
        return _query(query).detect(self._frame, **options)

    def count(self, query: Query | str | os.PathLike[str], **options: Any) -> int:
        """Return the exact number of results; nothing is listed."""
        return self.detect(query, **options).count()

    def explain(self, query: Query | str | os.PathLike[str], **options: Any) -> Explanation:
        """Explain a query, and how it runs over the events: see `Query.explain`."""
        return _query(query).explain(self._frame, **options)

    def detect_stream(self, query: Query | str | os.PathLike[str], **options: Any) -> Any:
        """Return the results over a streaming data frame as a streaming data frame: see `Query.detect_stream`."""
        return _query(query).detect_stream(self._frame, **options)


def _query(query: Query | str | os.PathLike[str]) -> Query:
    return query if isinstance(query, Query) else Query(query)
