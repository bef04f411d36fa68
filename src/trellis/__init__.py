"""Trellis finds event trends, sequences and communities in event data of any size, on Spark, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trellis.queries import Query


def query(text: str) -> Query:
    """Return the query that a text stands for.

    Raises
    ------
    trellis.errors.QuerySyntaxError
        If the text is not a query; says where and what was expected.
    """
    from trellis.queries import Query

    return Query(text)


__all__ = ["__version__", "query"]
