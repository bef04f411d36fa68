"""Sample streams of events, of any size, from a seed."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trellis.errors import UsageError, did_you_mean
from trellis.io.generate.activity import activity
from trellis.io.generate.kite import kite
from trellis.io.generate.laundering import laundering
from trellis.io.generate.social import social
from trellis.io.generate.stock import stock
from trellis.io.generate.zipf import zipf

__all__ = [
    "FOLDERS",
    "KINDS",
    "Option",
    "activity",
    "generate_table",
    "kite",
    "laundering",
    "options_of",
    "social",
    "stock",
    "zipf",
]

KINDS: dict[str, Callable[..., pa.Table]] = {
    "kite": kite, "stock": stock, "activity": activity, "zipf": zipf,
    "laundering": laundering,
}  # fmt: skip
"""The kinds of streams, each a function of the number of events, a seed and options by name."""

FOLDERS: dict[str, Callable[..., dict[str, pa.Table]]] = {"social": social}
"""The kinds that have several files, likewise."""


@dataclass(frozen=True)
class Option:
    """An option of a kind: its name in Python, its type (int, float or str), its default, its help."""

    name: str
    type: type
    default: object
    help: str


def generate_table(kind: str, events: int, seed: int = 0, **options: object) -> pa.Table:
    """Make a sample stream of one of the `KINDS`.

    Parameters
    ----------
    kind
        Its name.
    events
        How many events.
    seed
        The same seed and options give the same events.
    options
        The options of the kind; see `options_of`.

    Returns
    -------
    pyarrow.Table
        The events in time order.

    Raises
    ------
    UsageError
        If the kind, an option or a value is unknown.
    """
    known = [option.name for option in options_of(kind)]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known, f"Its options: {', '.join(known)}.")
            raise UsageError(f"`{kind}` has no option `{name}`.", hint)
    return KINDS[kind](events, seed, **options)


def options_of(kind: str) -> list[Option]:
    """Return the options of a kind, as its signature and docstring tell.

    Raises
    ------
    UsageError
        If there is no such kind.
    """
    known: dict[str, Callable[..., Any]] = KINDS | FOLDERS
    if kind not in known:
        hint = did_you_mean(kind, known, f"Known kinds: {', '.join(known)}.")
        raise UsageError(f"There is no kind `{kind}` of sample stream.", hint)
    function = known[kind]
    types = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return [
        Option(p.name, types[p.name], p.default, _described(function, p.name))
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
    ]


def _described(function: Callable[..., Any], name: str) -> str:
    found = re.search(rf"^{name}\n((?:    .*\n?)+)", inspect.getdoc(function) or "", re.MULTILINE)
    return " ".join(found.group(1).split()) if found else ""
