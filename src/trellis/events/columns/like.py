"""LIKE: `%` any run of characters, `_` any one, a backslash before one that is meant itself."""

from __future__ import annotations

import re

_PART = re.compile(r"\\.|.", re.DOTALL)
_WILD = {"%": ".*", "_": "."}


def like_to_regex(pattern: str) -> str:
    """Return the regular expression (of RE2, as Arrow reads it) for a pattern of LIKE.

    Parameters
    ----------
    pattern
        The pattern; a backslash at its very end stands for itself.

    Returns
    -------
    str
        An expression that matches whole strings; `.` also matches a newline.
    """
    parts = (_WILD.get(part) or _literal(part[-1]) for part in _PART.findall(pattern))
    return rf"\A(?s:{''.join(parts)})\z"


def _literal(character: str) -> str:
    plain = character.isalnum() or ord(character) > 127
    return character if plain else rf"\x{ord(character):02x}"
