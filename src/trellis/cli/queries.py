"""The QUERY argument: a file or the text itself."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trellis.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from trellis.api.query import Query

SUFFIX = ".tq"


def read_query(given: str, limit: int | None = None) -> Query:
    """Return the query that an argument names or is.

    The name of a file that exists is a file; anything else with a blank or the word PATTERN in it is the text itself.

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
    import trellis

    query = trellis.query(query_text(given))
    if limit is not None:
        query.syntax = replace(query.syntax, limit=limit)
    return query


def query_text(given: str) -> str:
    """Return the text of a query that an argument names or is."""
    if _exists(given):
        return _contents(Path(given))
    if _is_text(given):
        return given
    raise _missing(given)


def _exists(given: str) -> bool:
    try:
        return bool(given.strip()) and Path(given).exists()
    except (OSError, ValueError):
        return False  # too long for a name, or with characters that no name has


def _contents(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"the query file {path} is not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"the query file {path} cannot be read: {os.strerror(error.errno or 0).lower()}") from None
    if not text.strip():
        raise UsageError(f"the query file {path} is empty", "A query begins with PATTERN.")
    return text


def _is_text(given: str) -> bool:
    if re.search(r"\bpattern\b", given, re.IGNORECASE) and not given.endswith(SUFFIX):
        return True
    return bool(re.search(r"\s", given)) and not given.rstrip().endswith(SUFFIX)


def _missing(given: str) -> UsageError:
    if not given.strip():
        return UsageError("the query is empty", "Name a file, or write the query: 'PATTERN ...'.")
    path = Path(given)
    try:
        neighbours = [name for name in os.listdir(path.parent) if name.endswith(path.suffix or SUFFIX)]
    except OSError:
        neighbours = []
    otherwise = "Name a file that is there, or write the query itself in quotation marks: 'PATTERN ...'."
    return UsageError(f"there is not a query file {given}", did_you_mean(path.name, neighbours, otherwise))
