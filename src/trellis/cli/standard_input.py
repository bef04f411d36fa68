"""Standard input as events or as the query: `-` in place of a path."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from trellis.errors import UsageError

NAME = "-"
SHOWN = "standard input"
_BEGINNINGS = ((b"PAR1", "parquet"), (b"ORC", "orc"), (b"{", "json"))


def events_path(given: str, input_format: str | None) -> str:
    """Return a path as it is given; for `-` that of a file with what comes by standard input."""
    return str(_events_file(input_format)) if given == NAME else given


def query_from_input() -> str:
    """Return the query that comes by standard input."""
    _take("the query")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the query on standard input is not UTF-8 text") from None


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="trellis-")  # goes with the process


@cache
def _events_file(input_format: str | None) -> Path:
    """Copy standard input into a file: readers look at it more than once."""
    _take("the events")
    first = sys.stdin.buffer.read(4096)
    if not first.strip():
        hint = "Send some: `cat events.csv | trellis detect QUERY -`."
        raise UsageError("standard input is empty: it has no events", hint)
    start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    format_ = input_format or next((name for begin, name in _BEGINNINGS if start.startswith(begin)), "csv")
    file = Path(_folder().name) / f"input.{format_}"
    with file.open("wb") as out:
        out.write(first)
        shutil.copyfileobj(sys.stdin.buffer, out)
    return file


_taken: list[str] = []


def _take(what: str) -> None:
    if _taken and _taken[0] != what:
        raise UsageError("standard input cannot be both the query and the events", "Name a file for one of them.")
    _taken[:] = [what]
