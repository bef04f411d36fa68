"""The parser of the grammar, with its tables kept as plain JSON: to make them takes longer than all else of a parse."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from trellis.caches import cache_directory, create_private, open_private

_OPTIONS: dict[str, Any] = {
    "start": ["query", "literal"], "parser": "lalr", "propagate_positions": True, "maybe_placeholders": False
}  # fmt: skip


@cache
def grammar() -> Lark:
    """Return the parser; its tables are made anew where the grammar, its options or Lark's version differ."""
    text = files("trellis.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    directory = cache_directory("grammar")
    if directory is None:
        return Lark(text, **_OPTIONS)
    key = hashlib.sha256(repr((text, _OPTIONS, lark.__version__)).encode()).hexdigest()
    file = directory / f"{key[:16]}.json"
    made = _read(file, key)
    if made is None:
        made = Lark(text, **_OPTIONS)
        with suppress(OSError):
            _write(made, file, key)
    return made


def _read(file: Path, key: str) -> Lark | None:
    """Return the parser that a file tells; None if there is none, or none for this key, or it is damaged."""
    try:
        with os.fdopen(open_private(file), "rb") as source:
            found, digest, tables = source.read().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    if found != key.encode() or digest != _digest(tables):
        return None
    return Lark.load(json.loads(tables, object_pairs_hook=_keyed))


def _write(made: Lark, file: Path, key: str) -> None:
    data, memo = made.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name in _OPTIONS or _is_plain(value)}
    tables = json.dumps({"data": data, "memo": memo}, separators=(",", ":")).encode()
    fresh = file.with_name(f".{secrets.token_hex(8)}")
    try:
        with os.fdopen(create_private(fresh), "wb") as out:
            out.write(b"\n".join([key.encode(), _digest(tables), tables]))
        os.replace(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)


def _digest(tables: bytes) -> bytes:
    return hashlib.sha256(tables).hexdigest().encode()


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str)


def _keyed(pairs: list[tuple[str, Any]]) -> dict[str | int, Any]:
    """Return a dictionary whose keys are numbers again, where JSON has made texts of them."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}
