"""The QUERY argument: a file or the text itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trellis.api.query_files import query_text
from trellis.cli.standard_input import NAME, query_from_input

if TYPE_CHECKING:
    from trellis.api.query import Query


def read_query(given: str, limit: int | None = None) -> Query:
    """Return the query that an argument names or is.

    The name of a file that exists is a file, `-` is standard input; anything else with a blank or the word PATTERN in
    it is the text itself.

    Parameters
    ----------
    given
        The argument.
    limit
        Takes the place of LIMIT.

    Raises
    ------
    TrellisError
        If there is no such file, it cannot be read, or it is not a query.
    """
    from trellis.api.query import Query

    query = Query(query_from_input() if given == NAME else query_text(given))
    if limit is not None:
        query.syntax = replace(query.syntax, limit=limit)
    return query
