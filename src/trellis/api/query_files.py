"""Query files: the text of a query, given as a path or as the text itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trellis.errors import UsageError, did_you_mean

SUFFIX = ".tq"


def text_or_file(given: str | os.PathLike[str]) -> str:
    """Return the text of a query that is given as a path, as the name of a file, or as the text itself.

    A text is the name of a file if it ends with `.tq`, or is one word that a file is called.

    Raises
    ------
    UsageError
        If there is no such file, or it cannot be read.
    """
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"a query is a text or the path of a file, not of the type {type(given).__name__}")
    name = os.fspath(given)
    is_name = "\n" not in name and (name.rstrip().endswith(SUFFIX) or len(name.split()) == 1) and "(" not in name
    if isinstance(given, os.PathLike) or (is_name and (_exists(name) or name.rstrip().endswith(SUFFIX))):
        return query_text(name)
    return name


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
    return UsageError(f"there is no query file {given}", did_you_mean(path.name, neighbours, otherwise))
