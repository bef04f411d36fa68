"""Texts in CSV that a spreadsheet would take for formulas: written so that it shows them, read back as they were.

A spreadsheet computes a field that begins with `=`, `+`, `-` or `@`, and drops a tab or an end of line before these. An
apostrophe and a word joiner, which takes no room, are put before such a text. Hardly another text begins so; one that
does gets the two a second time. Nothing but these two before such a sign is ever taken away by readers, so that CSV
from elsewhere is read as it is.
"""

from __future__ import annotations

import re

import pyarrow as pa

from trellis.events.columns.arrow import Array, Chunked, pc

GUARD = "'\u2060"
FORMULA = rf"\A((?:{GUARD})*[=+\-@\t\r\n])"
GUARDED = rf"\A{GUARD}((?:{GUARD})*[=+\-@\t\r\n])"


def guard_text(column: Array | Chunked) -> Array | Chunked:
    """Put the guard before the texts of a column that a spreadsheet would take for formulas."""
    return _replaced(column, FORMULA, rf"{GUARD}\1")


def unguard_text(column: Array | Chunked) -> Array | Chunked:
    """Take the guard away where `guard_text` has put it."""
    return _replaced(column, GUARDED, r"\1")


def _replaced(column: Array | Chunked, pattern: str, by: str) -> Array | Chunked:
    if not pc.any(pc.match_substring_regex(column, pattern)).as_py():
        return column
    return pc.replace_substring_regex(column, pattern, by)


def guard_name(name: str) -> str:
    """Return the name of a column as it stands in the header."""
    return GUARD + name if re.match(FORMULA, name) else name


def unguard_name(name: str) -> str:
    """Return the name of a column that stands in a header."""
    return name.removeprefix(GUARD) if re.match(GUARDED, name) else name


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column is text, which `guard_text` takes."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
